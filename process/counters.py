"""What has happened since this process began, for whoever watches it (`monitoring`). Must not know what it means."""

import threading
from collections import Counter

_counts: Counter[tuple[str, ...]] = Counter()
_lock = threading.Lock()


def count(what: str, *labels: str) -> None:
    """Count one of `what`; there must be few different labels, and none that a stranger chooses."""
    with _lock:
        _counts[what, *labels] += 1


def counted(what: str) -> dict[tuple[str, ...], int]:
    """How many there were of `what`, by their labels."""
    with _lock:
        return {key[1:]: number for key, number in _counts.items() if key[0] == what}


def reset() -> None:
    """Begin anew (another database was opened)."""
    with _lock:
        _counts.clear()
