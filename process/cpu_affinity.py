"""Keeps the service's threads on one core, except for long work outside the interpreter.

Python runs one thread at a time. Spread over several cores, threads keep waking each other only to find the
interpreter's lock taken, and a request costs twice as much. Two services on one machine choose different cores as
long as there are enough.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NAME = "pocketbell-core"
MAX_ON_ONE_CORE = 16  # services that can tell that they share it

_allowed = frozenset[int]()  # the cores allowed before the process chose one; empty if it did not
_claim: socket.socket | None = None  # must stay open as long as the process lives


def keep_to_one() -> None:
    """Restrict this thread, and those that it starts, to one of the cores that the process may use."""
    global _allowed, _claim
    with suppress(OSError, AttributeError):  # not every system has affinity, or permits to change it
        allowed = frozenset(os.sched_getaffinity(0))
        own, claim = _free_core(sorted(allowed, reverse=True))
        os.sched_setaffinity(0, {own})
        _allowed, _claim = allowed, claim


def _free_core(cores: list[int]) -> tuple[int, socket.socket | None]:
    """The first of the cores that the fewest other services have claimed, and our claim to it.

    A claim is a socket's name in Linux's abstract namespace: the system frees it when the process ends, however that
    happens. Containers do not see each other's claims. Where nothing can be claimed, the first core is chosen.
    """
    for services in range(MAX_ON_ONE_CORE):
        for core in cores:
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(f"\0{NAME}-{core}-{services}")
            except OSError:  # another service has this name
                claim.close()
            else:
                return core, claim
    return cores[0], None


@contextmanager
def any_of_them() -> Iterator[None]:
    """Let this thread run on every core within the block: for long work that does not hold the interpreter's lock."""
    if not _allowed:
        yield
        return
    own = os.sched_getaffinity(0)
    with suppress(OSError):
        os.sched_setaffinity(0, _allowed)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, own)
