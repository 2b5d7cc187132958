"""Exponential backoff, for deliveries and for rows whose work keeps failing. Must not know what the work is."""

from collections.abc import Callable

from process import clock
from process.clock import DAY_MS
from process.faults import log_fault
from store import copies
from store.database import transaction

FIRST_RETRY_S = 30  # of a delivery
MAX_RETRY_S = 3600
GIVEN_UP_AFTER_MS = DAY_MS
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0  # of a row
ROWS_AT_ONCE = 500


def retry_s(attempts: int) -> int:
    """The seconds until a delivery's next attempt: 30 s after the first one, then 1 min, 2 min … at most 1 h."""
    return int(min(FIRST_RETRY_S * 2 ** min(attempts, 10), MAX_RETRY_S))


class Backoff:
    """The rows of one kind whose work failed lately in this process. `fault` is the line in the log."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._waits: dict[int, tuple[float, float]] = {}  # by seq: until when, and for how long

    def each(
        self, now: int, find: Callable[[int, int], list[tuple[int, int]]], work: Callable[[int, int], None]
    ) -> bool:
        """Work on the rows due now, each in a transaction of its account and its followers; whether more are left.

        `find` gets the time and how many are wanted at most, and returns them after their accounts. `work` gets the
        row's seq, and the time.
        """
        now_s = clock.monotonic_s()
        # A row that was not tried again for this long is no longer due, or deleted.
        self._waits = {seq: wait for seq, wait in list(self._waits.items()) if now_s < wait[0] + LONGEST_WAIT_S}
        waiting = {seq for seq, (until_s, _) in self._waits.items() if now_s < until_s}
        due = [one for one in find(now, ROWS_AT_ONCE + len(waiting)) if one[1] not in waiting][:ROWS_AT_ONCE]
        for account_seq, seq in due:
            try:
                with transaction(*copies.accounts_of(account_seq)):
                    work(seq, now)
                self._waits.pop(seq, None)
            except Exception as error:  # the other rows must not wait for this one
                log_fault(self._fault, error)
                wait_s = min(LONGEST_WAIT_S, 2 * self._waits[seq][1]) if seq in self._waits else FIRST_WAIT_S
                self._waits[seq] = clock.monotonic_s() + wait_s, wait_s  # twice as long as the last time
        return len(due) == ROWS_AT_ONCE
