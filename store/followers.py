"""The table of followers and its queries: who gets a copy of what something sends, and who is invited to.

An invitation that nobody accepted counts from `since` on: older ones are as if deleted.
"""

from typing import NamedTuple

from store import subjects
from store.database import run
from store.enabled import IS_ENABLED
from store.engine import Values
from store.rows import Change, Query, columns, new_id
from store.senders import QUIET_HOURS_OF_ALERT, Subject

INVITATION_LIFE_MS = 30 * 86_400_000


class ListedFollower(NamedTuple):
    """A follower as the owner sees it: `is_following` once the invitation was accepted."""

    id: str
    email: str
    is_following: int


class Followed(NamedTuple):
    """What an account follows or is invited to, and whose it is."""

    seq: int
    id: str
    account_seq: int
    owner: str  # the owner's address
    what: str
    subject_seq: int
    name: str
    is_following: int
    created_at: int


class Follower(NamedTuple):
    """A follower, as the sender of his copy: with his own zone and quiet hours, and the frequency of the alert."""

    account_seq: int
    email: str
    time_zone: str
    quiet_hours: str | None  # also None for what they do not hold
    frequency: str
    urgent_passes_quiet_hours: int
    is_enabled: int
    what: str
    subject_seq: int

    @property
    def key_seq(self) -> None:
        """The key is another account's."""

    @property
    def subject(self) -> Subject:
        """The sender, whose frequency holds the copy, too."""
        return self.what, self.subject_seq


IS_FOLLOWING = "CASE WHEN f.follower_seq IS NULL THEN 0 ELSE 1 END"
LISTED = (  # if they follow, or the invitation is not older
    f"SELECT {columns(ListedFollower, 'f', is_following=IS_FOLLOWING)} FROM follower f"
    " WHERE f.what = ? AND f.subject_seq = ? AND (f.follower_seq IS NOT NULL OR f.created_at > ?)"
)
# The followers of a subject and the invited, newest invitation first.
of_subject = Query(ListedFollower, f"{LISTED} ORDER BY f.created_at DESC, f.seq DESC").all
# The follower of a subject, or the invited, with that address.
find_email = Query(ListedFollower, f"{LISTED} AND f.email = ?").first
OF_FOLLOWED = {"owner": "o.email", "name": subjects.NAME, "is_following": IS_FOLLOWING}
# What the `account` with this `email` follows, or is invited to, the newest first.
followed = Query(
    Followed,
    f"SELECT {columns(Followed, 'f', **OF_FOLLOWED)} FROM follower f JOIN account o ON o.seq = f.account_seq"
    f"{subjects.joined('f')} WHERE f.email = :email AND (f.follower_seq = :account OR"
    f" (f.follower_seq IS NULL AND f.created_at > :since)) AND {subjects.ID} IS NOT NULL AND k.revoked_at IS NULL"
    " ORDER BY f.seq DESC",
).all
QUIET_HOURS = f"CASE f.what WHEN 'key' THEN NULL ELSE {QUIET_HOURS_OF_ALERT} END"
OF_FOLLOWER = {
    **{name: f"a.{name}" for name in ("email", "time_zone")},
    "account_seq": "a.seq",
    "quiet_hours": QUIET_HOURS,
    "frequency": "coalesce(l.frequency, 'instant')",
    "urgent_passes_quiet_hours": "coalesce(l.urgent_passes_quiet_hours, 0)",
    "is_enabled": f"CASE WHEN {IS_ENABLED} THEN 1 ELSE 0 END",
}
# The accounts that follow a sender, disabled ones too.
of_sender = Query(
    Follower,
    f"SELECT {columns(Follower, 'f', **OF_FOLLOWER)} FROM follower f JOIN account a ON a.seq = f.follower_seq"
    " LEFT JOIN alert l ON f.what = 'alert' AND l.seq = f.subject_seq"
    " WHERE f.what = ? AND f.subject_seq = ? ORDER BY a.seq",
).all
# The accounts (their seqs) that follow anything of this owner.
accounts_of = Query(
    int, "SELECT DISTINCT follower_seq FROM follower WHERE account_seq = ? AND follower_seq IS NOT NULL"
).all
# The account that follows by the row with this id; None if none does yet, or there is no such row.
account_of = Query(int, "SELECT follower_seq FROM follower WHERE id = ?").first
INVITE = (
    "INSERT INTO follower (id, account_seq, what, subject_seq, email, created_at) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (what, subject_seq, email) DO UPDATE SET id = excluded.id, created_at = excluded.created_at"
)
NOTE = (
    "UPDATE account SET has_followers = CASE WHEN EXISTS (SELECT 1 FROM follower WHERE account_seq = account.seq)"
    " THEN 1 ELSE 0 END WHERE seq = ?"
)
# Let this account follow by the row with that seq; nothing happens the second time.
accept = Change("UPDATE follower SET follower_seq = ? WHERE seq = ? AND follower_seq IS NULL")
IS_OVER = (
    "f.account_seq = :account AND ((f.follower_seq IS NULL AND f.created_at <= :since)"
    " OR (f.what = 'key' AND f.subject_seq NOT IN (SELECT seq FROM api_key WHERE account_seq = :account"
    " AND revoked_at IS NULL)))"
)
THEIR_MUTES = (  # what the accounts that follow have muted of it
    "SELECT m.seq FROM follower f JOIN mute m"
    " ON m.account_seq = f.follower_seq AND m.what = f.what AND m.subject_seq = f.subject_seq"
)


def invite(account_seq: int, subject: Subject, email: str, now: int) -> ListedFollower:
    """Add an invitation, or renew one that has expired."""
    id_ = new_id(now)
    run(INVITE, (id_, account_seq, *subject, email, now))
    run(NOTE, (account_seq,))
    return ListedFollower(id_, email, 0)


def remove(account_seq: int, id_: str) -> None:
    """Delete a row of this owner."""
    _end(account_seq, "f.id = ?", (id_,))


def forget(account_seq: int, subject: Subject) -> None:
    """Delete the followers and the mutes of what is deleted, and its silent changes: its seq may be given again."""
    _end(account_seq, "f.account_seq = ? AND f.what = ? AND f.subject_seq = ?", (account_seq, *subject))
    for table in ("mute", "silent_change"):
        run(f"DELETE FROM {table} WHERE account_seq = ? AND what = ? AND subject_seq = ?", (account_seq, *subject))


def forget_account(seq: int) -> None:
    """End all that an account shares and follows."""
    _end(seq, "f.account_seq = :account OR f.follower_seq = :account", {"account": seq})


def prune(account_seq: int, since: int) -> None:
    """Delete expired invitations, and followers of keys that have ended."""
    _end(account_seq, IS_OVER, {"account": account_seq, "since": since})


def _end(account_seq: int, which: str, values: Values) -> None:
    """Delete these rows, and the mutes that the followers made of what they followed; note it if none are left."""
    run(f"DELETE FROM mute WHERE seq IN ({THEIR_MUTES} WHERE {which})", values)
    run(f"DELETE FROM follower AS f WHERE {which}", values)
    run(NOTE, (account_seq,))
