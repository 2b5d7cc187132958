"""Batches of pushes in threads: a slow provider of one account delays no other. Must not know what is pushed."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from process.faults import log_fault

ACCOUNTS = 8  # that have a batch at the same time
ALL: list["Batches"] = []  # of every kind


class Batches:
    """The batches of one kind. `fault` is the line in the log when one fails.

    Kinds that the same thread starts share `due`.
    """

    def __init__(self, name: str, fault: str, due: threading.Event | None = None) -> None:
        self.due = due or threading.Event()  # set when something is due that must not wait for the next round
        self.busy = set[int]()  # accounts with a batch under way
        self.turns = dict[int, int]()  # by account: the number of its latest batch
        self._fault = fault
        self._running = list[Future[None]]()
        self._threads = ThreadPoolExecutor(ACCOUNTS, thread_name_prefix=name)
        ALL.append(self)

    @property
    def room(self) -> int:
        """How many more accounts may have a batch."""
        return ACCOUNTS - len(self.busy)

    def start(self, account_seq: int, work: Callable[[], None], is_full: bool) -> None:
        """Start an account's batch; after a full one, the next round starts at once."""
        self._running = [batch for batch in self._running if not batch.done()]
        self.busy.add(account_seq)
        self.turns[account_seq] = max(self.turns.values(), default=0) + 1
        self._running.append(self._threads.submit(self._run, account_seq, work, is_full))

    def finish(self) -> None:
        """Wait for the running batches to end."""
        wait(self._running)

    def _run(self, account_seq: int, work: Callable[[], None], is_full: bool) -> None:
        try:
            work()
        except Exception as error:  # its pushes are due again when their leases end
            log_fault(self._fault, error)
        finally:
            may_be_waited_for = self.room <= 0  # by another account
            self.busy.discard(account_seq)
            if may_be_waited_for or is_full:
                self.due.set()
