"""Followers: other accounts that get what an alert, an API key, a heartbeat or a rule sends.

An owner invites an address, whether or not it has an account; the invited accept, decline or leave.
`recording.copy` makes what followers get. Must not know requests or commands.
"""

from functools import partial

from core import accounts, deletion, subjects
from models import Account
from store import copies
from store import followers as stored
from store.database import transaction
from store.followers import INVITATION_LIFE_MS, Followed, ListedFollower
from store.senders import Subject
from wire.errors import Refused, existing

MAX_FOLLOWERS = 20  # of an alert, a key, a heartbeat or a rule


def of_subject(account_seq: int, what: str, id_: str, now: int) -> list[ListedFollower]:
    """The followers and the invited of the account's alert, key, heartbeat or rule; `Refused` (404) without it."""
    return stored.of_subject(*_subject(account_seq, what, id_), now - INVITATION_LIFE_MS)


def invite(account_seq: int, what: str, id_: str, email: str, now: int) -> tuple[ListedFollower, bool]:
    """Invite an address to follow; returns the invited, and whether the address was not invited before.

    Whether there is an account with that address is not looked at, so that nobody can tell. `Refused` (400) for a
    wrong address, the owner's own, or one too many, (404) without such an alert, key, heartbeat or rule.
    """
    address, since = accounts.checked_email(email), now - INVITATION_LIFE_MS
    with transaction(account_seq):
        owner, subject = Account.with_seq(account_seq), _subject(account_seq, what, id_)
        if owner is None or owner.email == address:
            raise Refused(400, "This is your own address.", field="email")
        if known := stored.find_email(*subject, since, address):
            return known, False
        if len(stored.of_subject(*subject, since)) >= MAX_FOLLOWERS:
            raise Refused(400, f"At most {MAX_FOLLOWERS} addresses can follow. Remove one first.")
        return stored.invite(account_seq, subject, address, now), True


def remove(account_seq: int, what: str, id_: str, follower_id: str, now: int) -> ListedFollower:
    """Remove a follower or an invitation; `Refused` (404) if there is none with that id."""
    follower_seq = stored.account_of(follower_id)
    with transaction(account_seq, *([follower_seq] if follower_seq else [])):
        subject = _subject(account_seq, what, id_)
        listed = stored.of_subject(*subject, now - INVITATION_LIFE_MS)
        found = existing(next((one for one in listed if one.id == follower_id), None))
        stored.remove(account_seq, follower_id)
    if follower_seq:
        _end_waiting(follower_seq, subject)
    return found


def _subject(account_seq: int, what: str, id_: str) -> Subject:
    found = subjects.find(account_seq, what, id_)
    if what == "key" and found.revoked_at is not None:
        raise Refused(404)
    return what, found.seq


def followed(account: Account, now: int) -> list[Followed]:
    """What the account follows, or is invited to follow."""
    return stored.followed(account=account.seq, email=account.email, since=now - INVITATION_LIFE_MS)


def find_followed(account: Account, id_: str, now: int) -> Followed:
    """One of these; `Refused` (404) when the account neither follows nor is invited by that id."""
    found = next((one for one in followed(account, now) if one.id == id_), None)
    return existing(found, "There is no such invitation: it has expired, or was withdrawn.")


def accept(account: Account, id_: str, now: int) -> Followed:
    """Accept an invitation; nothing happens the second time."""
    with transaction(find_followed(account, id_, now).account_seq, account.seq):
        stored.accept(account.seq, find_followed(account, id_, now).seq)
        return find_followed(account, id_, now)


def leave(account: Account, id_: str, now: int) -> Followed:
    """Decline an invitation, or stop following: what still repeats or is held is deleted, and the rest stays."""
    with transaction(find_followed(account, id_, now).account_seq, account.seq):
        found = find_followed(account, id_, now)
        stored.remove(found.account_seq, id_)
    if found.is_following:
        _end_waiting(account.seq, (found.what, found.subject_seq))
    return found


def _end_waiting(account_seq: int, subject: Subject) -> None:
    """Delete what an account that followed a sender still waits for."""
    deletion.delete_found(account_seq, partial(copies.waiting_of, account_seq, subject))
