"""Lets long work in the background take turns with requests more often than Python does by itself.

Python takes its lock from a thread that computes only when others have waited for the switch interval, and a request
waits for it again after each system call.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERVAL_S, SHORT_S = sys.getswitchinterval(), 0.001

_blocks = 0  # that threads are in
_lock = threading.Lock()


@contextmanager
def often() -> Iterator[None]:
    """Switch between threads after `SHORT_S` within the block; at other times that would only slow all of them."""
    global _blocks
    with _lock:
        _blocks += 1
        sys.setswitchinterval(SHORT_S)
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                sys.setswitchinterval(INTERVAL_S)
