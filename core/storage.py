"""The most that an account may store (`ACCOUNT_MEGABYTES`) or have pending, and the accounts that have reached it.

A row counts what an account has stored, except the last payloads of its alerts: a background thread adds those up
every few seconds. Must not know requests.
"""

from process import clock
from store import notification_days, notifications
from wire.errors import Refused

LOOKED_EVERY_S = 15.0
MEGABYTE = 1_000_000
MAX_PENDING = 100_000  # notifications of an account, pending or with `deliverAt`
FULL_FOR_S = 1.0  # how long a backlog counts as full without another look

_megabytes = 0  # set by `configure`
_payloads: dict[int, int] = {}  # bytes of alerts by account, when a thread last looked
_full_until_s: dict[int, float] = {}  # by account: until when its backlog counts as full


def configure(megabytes: int) -> None:
    """Set the limit."""
    global _megabytes
    _megabytes = megabytes


def look(now: int) -> None:
    """Find how large the last payloads of each account's alerts are."""
    global _payloads
    _payloads = notification_days.payload_bytes()


def check(account_seq: int, stored_bytes: int) -> None:
    """`Refused` (429) if the account may store nothing more."""
    if is_full(account_seq, stored_bytes):
        raise Refused(429, f"{what_is_full()} Delete notifications or metrics, then try again after a minute.")


def is_full(account_seq: int, stored_bytes: int) -> bool:
    """Whether the account, which has stored so much, may store nothing more."""
    return stored_bytes + _payloads.get(account_seq, 0) >= _megabytes * MEGABYTE


def what_is_full() -> str:
    """The limit, in a sentence."""
    return f"This account has stored {_megabytes:,} MB, the most that it may (ACCOUNT_MEGABYTES)."


def has_full_backlog(account_seq: int) -> bool:
    """Whether the account has `MAX_PENDING` notifications pending or to be sent later; call inside `transaction()`.

    Counting 100,000 rows takes a while, so a full backlog counts as full for a second.
    """
    if clock.monotonic_s() < _full_until_s.get(account_seq, 0.0):
        return True
    is_full = notifications.has_pending(account_seq, MAX_PENDING)
    if is_full:
        _full_until_s[account_seq] = clock.monotonic_s() + FULL_FOR_S
    return is_full
