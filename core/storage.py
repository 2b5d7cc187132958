"""The most that an account may store (`ACCOUNT_MEGABYTES`), and the accounts that have reached it.

A background thread looks every few seconds; requests only read the result. Must not know requests.
"""

from store import notification_days
from wire.errors import Refused

LOOKED_EVERY_S = 15.0
MEGABYTE = 1_000_000

_megabytes = 0  # set by `configure`
_full = frozenset[int]()  # accounts


def configure(megabytes: int) -> None:
    """Set the limit; no account is known to have reached it."""
    global _megabytes, _full
    _megabytes, _full = megabytes, frozenset()


def look(now: int) -> None:
    """Find the accounts that have reached the limit."""
    global _full
    _full = frozenset(notification_days.accounts_with(_megabytes * MEGABYTE))


def check(account_seq: int) -> None:
    """`Refused` (429) if the account may store nothing more."""
    if account_seq in _full:
        raise Refused(429, f"{what_is_full()} Delete notifications or metrics, then try again after a minute.")


def is_full(account_seq: int) -> bool:
    """Whether the account may store nothing more."""
    return account_seq in _full


def what_is_full() -> str:
    """The limit, in a sentence."""
    return f"This account has stored {_megabytes:,} MB, the most that it may (ACCOUNT_MEGABYTES)."
