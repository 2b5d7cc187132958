"""Rows whose work fails again and again: each waits longer every time, and keeps no other row waiting.

Must not know what the work is.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from process import clock
from process.faults import log_fault

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0

log = logging.getLogger("pocketbell")


class Setbacks:
    """What failed lately of one kind of rows, as far as this process knows. `fault` is what the log says of one."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._waits: dict[int, tuple[float, float]] = {}  # by seq: until when, and for how long

    def clear(self) -> None:
        """Forget all (another database was opened)."""
        self._waits.clear()

    def due(self, find: Callable[[int], list[tuple[int, int]]], limit: int) -> list[tuple[int, int]]:
        """At most `limit` of what `find` finds when asked for so many, without those that wait.

        Each is an account's seq and a row's.
        """
        now_s = clock.monotonic_s()
        # One that was not tried again for so long is no longer due, or deleted.
        self._waits = {seq: wait for seq, wait in list(self._waits.items()) if now_s < wait[0] + LONGEST_WAIT_S}
        waiting = {seq for seq, (until_s, _) in self._waits.items() if now_s < until_s}
        return [one for one in find(limit + len(waiting)) if one[1] not in waiting][:limit]

    @contextmanager
    def tried(self, seq: int) -> Iterator[None]:
        """Work on a row. If that fails, it is logged, and the row waits: twice as long as the last time."""
        try:
            yield
            self._waits.pop(seq, None)
        except Exception as error:  # the others must not wait for this one
            log_fault(log, self._fault, error)
            wait_s = min(LONGEST_WAIT_S, 2 * self._waits[seq][1]) if seq in self._waits else FIRST_WAIT_S
            self._waits[seq] = clock.monotonic_s() + wait_s, wait_s
