"""Requests that wait until a notification is answered or acknowledged. Must not know requests."""

import threading
from collections.abc import Callable

from process import clock
from store import buttons, engine

MAX_WAITING = 8  # requests at the same time
MAX_WAITING_OF_ACCOUNT = 4
POLLED_EVERY_S = 0.5  # another process may take the answer, or this one just before the wait begins

_waiting = list[int]()  # the accounts (their seqs) of the requests that wait
_changed = threading.Condition()


def goes_on() -> bool:
    """Whether the process goes on serving; the server replaces this function."""
    return True


def wait_for(account_seq: int, notification_seq: int, wait_s: float, confirm: Callable[[], object]) -> bool:
    """Wait until the account's notification was answered, acknowledged or deleted, at most `wait_s` seconds.

    Returns early when the process ends, and at once, with False, if enough requests wait already. `confirm` may raise
    an exception to end the wait.
    """
    with _changed:
        if len(_waiting) >= MAX_WAITING or _waiting.count(account_seq) >= MAX_WAITING_OF_ACCOUNT:
            return False
        _waiting.append(account_seq)
    try:
        engine.make_way()
        until_s = clock.monotonic_s() + wait_s
        while buttons.is_answered(notification_seq) == 0 and goes_on():
            left_s = until_s - clock.monotonic_s()
            if left_s <= 0:
                break
            _pause(min(left_s, POLLED_EVERY_S))
            confirm()
    finally:
        with _changed:
            _waiting.remove(account_seq)
    return True


def note_change() -> None:
    """Wake the waiting requests after an answer or an acknowledgement."""
    with _changed:
        _changed.notify_all()


def _pause(pause_s: float) -> None:
    """Wait at most `pause_s` seconds for a change."""
    with _changed:
        _changed.wait(pause_s)
