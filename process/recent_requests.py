"""The latest requests to each alert with their answers, in this process's memory. Must not know handlers or SQL."""

import threading
from collections import OrderedDict, deque
from typing import NamedTuple

MAX_KEPT = 30  # of each alert
MAX_ALERTS = 1_000


class Seen(NamedTuple):
    """A request to an alert, or several alike in a row: when the last came, the HTTP status, why, and how many."""

    at: int
    status: int
    words: str
    times: int


_seen: OrderedDict[int, deque[Seen]] = OrderedDict()
_lock = threading.Lock()


def note(alert_seq: int, status: int, words: str, now: int) -> None:
    """Remember a request's answer; equal refusals in a row become one entry."""
    with _lock:
        kept = _seen.setdefault(alert_seq, deque(maxlen=MAX_KEPT))
        _seen.move_to_end(alert_seq)
        if len(_seen) > MAX_ALERTS:
            _seen.popitem(last=False)
        times = 1
        if kept and kept[0].status == status != 200 and kept[0].words == words:
            times += kept.popleft().times
        kept.appendleft(Seen(now, status, words, times))


def of_alert(alert_seq: int) -> list[Seen]:
    """The latest requests to an alert since this process started, newest first."""
    with _lock:
        return list(_seen.get(alert_seq, ()))


def reset() -> None:
    """Forget all requests (another database was opened)."""
    with _lock:
        _seen.clear()
