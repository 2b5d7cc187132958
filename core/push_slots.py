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
    """Count the slots of this number of request threads."""
    global _threads
    _threads = threads


@contextmanager
def slot(account_seq: int) -> Iterator[bool]:
    """Whether this thread may push for the account now; if so, it holds a slot until the block ends."""
    with _lock:
        is_free = _taken.total() < max(1, _threads - FREE_THREADS) and _taken[account_seq] < max(1, _threads // 4)
        _taken[account_seq] += is_free
    try:
        yield is_free
    finally:
        with _lock:
            _taken[account_seq] -= is_free
