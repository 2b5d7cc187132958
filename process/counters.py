"""Counts of what has happened since this process started, for `GET /metrics`. Must not know what is counted."""

import threading
from collections import Counter

_counts: Counter[tuple[str, ...]] = Counter()
_lock = threading.Lock()


def count(what: str, *labels: str) -> None:
    """Count one more of `what`. Labels must take few values, and none that a stranger can choose."""
    with _lock:
        _counts[what, *labels] += 1


def counted(what: str) -> dict[tuple[str, ...], int]:
    """How many of `what` were counted, by labels."""
    with _lock:
        return {key[1:]: number for key, number in _counts.items() if key[0] == what}


def reset() -> None:
    """Forget all counts (another database was opened)."""
    with _lock:
        _counts.clear()
