"""The number of request threads that may push at the same time, in total and for each account.

A provider that does not answer holds a thread for seconds: the slots keep some threads free for other requests, and
some for other accounts. A request without a slot leaves its pushes to the retries.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

FREE_THREADS = 8  # that never push

_threads = 32
_taken = Counter[int]()  # by account
_lock = threading.Lock()


def configure(threads: int) -> None:
    """Begin with all slots free, for this number of request threads."""
    global _threads, _taken
    _threads, _taken = threads, Counter()


@contextmanager
def slot(account_seq: int) -> Iterator[bool]:
    """Whether this thread may push for the account now; if so, it holds a slot until the block ends."""
    taken = _taken
    with _lock:
        is_free = taken.total() < max(1, _threads - FREE_THREADS) and taken[account_seq] < max(1, _threads // 4)
        taken[account_seq] += is_free
    try:
        yield is_free
    finally:
        with _lock:
            taken[account_seq] -= is_free
