"""The table of mutes and its queries. Callers decide whether a mute is in force."""

from typing import Any, NamedTuple

from store import subjects
from store.database import THESE, run
from store.rows import Query, add_own, columns, counting
from store.senders import Subject

HOLD, HISTORY = "hold", "history"
ALL = "all"
NO_SUBJECT = 0
EVERYTHING: Subject = (ALL, NO_SUBJECT)


class Mute(NamedTuple):
    """What is muted, how, and until when."""

    seq: int
    id: str
    what: str  # one of `subjects.SUBJECTS`, or `ALL`
    subject_seq: int  # of the alert, the key, …; `NO_SUBJECT`
    mode: str
    urgent_passes: int
    created_at: int
    until: int | None  # None if it comes again
    cron: str | None
    for_s: int | None
    time_zone: str  # the account's

    @property
    def subject(self) -> Subject:
        """What is muted."""
        return self.what, self.subject_seq


class ListedMute(NamedTuple):
    """A mute with the id and the name of what is muted; None for everything.

    What the account follows goes by the id in the table of followers.
    """

    mute: Mute
    subject_id: str | None
    name: str | None


MUTE = columns(Mute, "m", time_zone="a.time_zone")
FROM = "FROM mute m JOIN account a ON a.seq = m.account_seq"
# The account's mutes, also those that have ended.
of_account = Query(Mute, f"SELECT {MUTE} {FROM} WHERE m.account_seq = ? ORDER BY m.seq").all
# The same with the names of what is muted, newest first.
listed = Query(
    ListedMute,
    f"SELECT {MUTE}, coalesce(f.id, {subjects.ID}), {subjects.NAME} {FROM}{subjects.joined('m')} LEFT JOIN follower f"
    " ON f.follower_seq = m.account_seq AND f.what = m.what AND f.subject_seq = m.subject_seq"
    f" WHERE m.account_seq = ? AND (m.what = '{ALL}' OR {subjects.ID} IS NOT NULL) ORDER BY m.seq DESC",
).all
NOTE = (
    "UPDATE account SET has_mutes = CASE WHEN EXISTS (SELECT 1 FROM mute WHERE account_seq = account.seq)"
    " THEN 1 ELSE 0 END WHERE seq = ?"
)
# Some of the account's mutes (their seqs) whose end has passed.
ended = Query(int, "SELECT seq FROM mute WHERE account_seq = ? AND until <= ? LIMIT ?").all

count = counting("mute")  # also of those that have ended


def add(account_seq: int, values: dict[str, Any], now: int) -> str:
    """The id of a new mute with these columns."""
    id_ = add_own("mute", account_seq, values, now)
    run(NOTE, (account_seq,))
    return id_


def remove(account_seq: int, seqs: list[int]) -> None:
    """Delete these mutes of the account."""
    run(f"DELETE FROM mute WHERE seq IN {THESE}", (seqs,))
    run(NOTE, (account_seq,))
