"""The number of request threads that may push at the same time, in total and for each account.

A provider that does not answer holds a thread for seconds: the slots keep some threads free for other requests, and
some for other accounts. A request without a slot leaves its pushes to the retries.
"""

import threading
from contextlib import AbstractContextManager

FREE_THREADS = 8  # that never push
DEFAULT_THREADS = 32


class Slots:
    """The slots of a process with this number of request threads."""

    def __init__(self, threads: int) -> None:
        self.free = max(1, threads - FREE_THREADS)
        self.per_account = max(1, threads // 4)
        self.taken: dict[int, int] = {}  # by account
        self.lock = threading.Lock()

    def take(self, account_seq: int) -> bool:
        """Whether this thread may push for the account now; if so, it holds a slot until it gives it back."""
        with self.lock:
            taken = self.taken.get(account_seq, 0)
            granted = self.free > 0 and taken < self.per_account
            if granted:
                self.free, self.taken[account_seq] = self.free - 1, taken + 1
        return granted

    def give_back(self, account_seq: int) -> None:
        """Let another thread have the slot."""
        with self.lock:
            self.free += 1
            self.taken[account_seq] -= 1
            if not self.taken[account_seq]:
                del self.taken[account_seq]


class _Slot:
    """The context manager of `slot`. A class, since a generator with `@contextmanager` takes three times as long."""

    def __init__(self, account_seq: int) -> None:
        self.account_seq = account_seq

    def __enter__(self) -> bool:
        self.slots = _slots
        self.granted = self.slots.take(self.account_seq)
        return self.granted

    def __exit__(self, *_: object) -> None:
        if self.granted:
            self.slots.give_back(self.account_seq)


_slots = Slots(DEFAULT_THREADS)


def configure(threads: int) -> None:
    """Begin with all slots free, for this number of request threads."""
    global _slots
    _slots = Slots(threads)


def slot(account_seq: int) -> AbstractContextManager[bool]:
    """Whether this thread may push for the account now; if so, it holds a slot until the block ends."""
    return _Slot(account_seq)
