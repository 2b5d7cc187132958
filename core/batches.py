"""Batches of pushes in threads, one of an account at a time: a slow provider of one account delays no other.

Must not know what is pushed.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from process.faults import log_fault

ACCOUNTS = 8  # with a batch at the same time

log = logging.getLogger("pocketbell")


class Batches:
    """The batches of one kind. `fault` is the line in the log when one fails."""

    def __init__(self, name: str, fault: str) -> None:
        self.due = threading.Event()  # set when something is due that must not wait for the next round
        self.busy = set[int]()  # accounts with a batch under way
        self._name, self._fault = name, fault
        self._running = list[Future[None]]()
        self._threads = ThreadPoolExecutor(ACCOUNTS, thread_name_prefix=name)

    @property
    def room(self) -> int:
        """How many more accounts may have a batch."""
        return ACCOUNTS - len(self.busy)

    def start(self, account_seq: int, work: Callable[[], None], is_full: bool) -> None:
        """Begin an account's batch; after a full one, another round begins at once."""
        self._running = [batch for batch in self._running if not batch.done()]
        self.busy.add(account_seq)
        self._running.append(self._threads.submit(self._run, account_seq, work, is_full))

    def finish(self) -> None:
        """Wait until the batches that are under way have ended."""
        wait(self._running)

    def reset(self) -> None:
        """Begin with new threads: the old ones have connections to the database before."""
        self._threads.shutdown()
        self._threads = ThreadPoolExecutor(ACCOUNTS, thread_name_prefix=self._name)

    def _run(self, account_seq: int, work: Callable[[], None], is_full: bool) -> None:
        try:
            work()
        except Exception as error:  # its pushes are due again when their leases end
            log_fault(log, self._fault, error)
        finally:
            has_waited = self.room <= 0  # perhaps another account
            self.busy.discard(account_seq)
            if has_waited or is_full:
                self.due.set()
