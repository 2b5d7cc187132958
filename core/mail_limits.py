"""How many mails an account gets: at most 60 within any hour, and then one that says how many more there were.

Each mail takes a place, whatever it is about and however often it is tried. Must not know how one is sent.
"""

from process.clock import HOUR_MS
from store import mails as stored
from store.database import transaction
from store.mails import Limit
from wire.errors import Refused

MAX_MAILS = 60  # of an account, within an hour
TOO_MANY = f"{MAX_MAILS} mails were sent within an hour: the next one says how many more there were."


def take(account_seq: int, device_seq: int | None, now: int) -> bool:
    """Take a place for a mail; if there is none, count it for the mail that tells this device how many more.

    Call inside `transaction()`.
    """
    found = _lately(account_seq, now)
    if not found.more and len(found.sent) < MAX_MAILS:  # while others wait to be counted in one mail, none goes out
        stored.put_limit(account_seq, Limit((*found.sent, now), 0), None, None)
        return True
    until = found.sent[0] + HOUR_MS if found.sent else now
    stored.put_limit(account_seq, Limit(found.sent, found.more + 1), device_seq, until)
    return False


def check(account_seq: int, now: int) -> None:
    """Take a place for a mail that somebody asks for; `Refused` (429) if there is none. Call in `transaction()`."""
    if not take(account_seq, None, now):  # the refusal undoes its count
        raise Refused(429, f"{MAX_MAILS} mails of this account were sent within an hour. Try again later.")


def _lately(account_seq: int, now: int) -> Limit:
    found = stored.limit(account_seq)
    return Limit(tuple(at for at in found.sent if abs(now - at) < HOUR_MS), found.more)


def tell_how_many_more(now: int) -> None:
    """Add the mails that say how many more there were, once a place is free."""
    for account_seq in stored.limits_over(now):
        with transaction(account_seq):
            found, device_seq = _lately(account_seq, now), stored.told_device(account_seq)
            if not found.more or len(found.sent) >= MAX_MAILS:  # another process was faster
                continue
            if device_seq is not None:
                stored.add(account_seq, "more", device_seq, str(found.more), now)
            stored.put_limit(account_seq, Limit((*found.sent, now), 0), None, None)
