"""On which cores the service's threads run: on one, and on any for what is computed beside Python.

Python runs one thread at a time. On several cores they wake each other at every statement, and mostly in vain: a
request costs twice as much.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_allowed = frozenset[int]()  # before the process kept to one; none where it does not


def keep_to_one() -> None:
    """Let this thread, and those that it starts, run on the last core that the process may use."""
    global _allowed
    with suppress(OSError, AttributeError):  # where the system has it, and allows it
        allowed = frozenset(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {max(allowed)})
        _allowed = allowed


@contextmanager
def any_of_them() -> Iterator[None]:
    """Let this thread run on every core meanwhile: for long work that does not keep other threads waiting."""
    if not _allowed:
        yield
        return
    with suppress(OSError):
        os.sched_setaffinity(0, _allowed)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, {max(_allowed)})
