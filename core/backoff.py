"""Exponential backoff, for deliveries and for rows whose work keeps failing. Must not know what the work is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from process import clock
from process.clock import DAY_MS
from process.faults import log_fault

FIRST_RETRY_S = 30  # of a delivery
MAX_RETRY_S = 3600
GIVEN_UP_AFTER_MS = DAY_MS
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0  # of a row


def retry_s(attempts: int) -> int:
    """The seconds until a delivery's next attempt: 30 s after the first one, then 1 min, 2 min … at most 1 h."""
    return int(min(FIRST_RETRY_S * 2 ** min(attempts, 10), MAX_RETRY_S))


class Backoff:
    """The rows of one kind whose work failed lately in this process. `fault` is the line in the log."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._waits: dict[int, tuple[float, float]] = {}  # by seq: until when, and for how long

    def clear(self) -> None:
        """Forget all (another database was opened)."""
        self._waits.clear()

    def due(self, find: Callable[[int], list[tuple[int, int]]], limit: int) -> list[tuple[int, int]]:
        """At most `limit` rows that `find`, called with a number, returns, without the rows that wait.

        A row is its account's seq and its own.
        """
        now_s = clock.monotonic_s()
        # A row that was not tried again for this long is no longer due, or deleted.
        self._waits = {seq: wait for seq, wait in list(self._waits.items()) if now_s < wait[0] + LONGEST_WAIT_S}
        waiting = {seq for seq, (until_s, _) in self._waits.items() if now_s < until_s}
        return [one for one in find(limit + len(waiting)) if one[1] not in waiting][:limit]

    @contextmanager
    def tried(self, seq: int) -> Iterator[None]:
        """Work on a row. If that fails, it is logged, and the row waits: twice as long as the last time."""
        try:
            yield
            self._waits.pop(seq, None)
        except Exception as error:  # the other rows must not wait for this one
            log_fault(self._fault, error)
            wait_s = min(LONGEST_WAIT_S, 2 * self._waits[seq][1]) if seq in self._waits else FIRST_WAIT_S
            self._waits[seq] = clock.monotonic_s() + wait_s, wait_s
