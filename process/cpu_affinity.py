"""On which cores the service's threads run: on one, and on any for what is computed beside Python.

Python runs one thread at a time. On several cores they wake each other at every statement, and mostly in vain: a
request costs twice as much. Two services on one machine take different cores, as long as there are enough.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NAME = "pocketbell-core"
MAX_ON_ONE_CORE = 16  # services that find each other there

_allowed = frozenset[int]()  # before the process kept to one; none where it does not
_own = 0  # the one it keeps to
_claim: socket.socket | None = None  # kept open as long as the process lives


def keep_to_one() -> None:
    """Let this thread, and those that it starts, run on one of the cores that the process may use."""
    global _allowed, _own, _claim
    with suppress(OSError, AttributeError):  # where the system has it, and allows it
        allowed = frozenset(os.sched_getaffinity(0))
        own, claim = _free_core(sorted(allowed, reverse=True))
        os.sched_setaffinity(0, {own})
        _allowed, _own, _claim = allowed, own, claim


def _free_core(cores: list[int]) -> tuple[int, socket.socket | None]:
    """The first of these that the fewest other services have claimed, and the claim.

    A claim is a name in Linux's abstract namespace: the system frees it when the process ends, however that happens.
    Containers do not see each other's. Where nothing can be claimed it is the first.
    """
    for services in range(MAX_ON_ONE_CORE):
        for core in cores:
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(f"\0{NAME}-{core}-{services}")
            except OSError:  # another service's
                claim.close()
            else:
                return core, claim
    return cores[0], None


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
            os.sched_setaffinity(0, {_own})
