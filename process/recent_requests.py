"""The latest requests to each alert and what they were answered, in this process's memory.

Must not know handlers or SQL.
"""

import threading
from collections import OrderedDict, deque
from typing import NamedTuple

KEPT = 30  # of each alert
MOST_ALERTS = 1_000


class Seen(NamedTuple):
    """A request to an alert, or several alike in a row: when the last came, the HTTP status, why, how many."""

    at: int
    status: int
    words: str
    times: int


_seen: OrderedDict[int, deque[Seen]] = OrderedDict()
_lock = threading.Lock()


def note(alert_seq: int, status: int, words: str, now: int) -> None:
    """Remember what a request was answered; refusals that are alike become one."""
    with _lock:
        kept = _seen.setdefault(alert_seq, deque(maxlen=KEPT))
        _seen.move_to_end(alert_seq)
        if len(_seen) > MOST_ALERTS:
            _seen.popitem(last=False)
        times = 1
        if kept and kept[0].status == status != 200 and kept[0].words == words:
            times += kept.popleft().times
        kept.appendleft(Seen(now, status, words, times))


def of_alert(alert_seq: int) -> list[Seen]:
    """Those of an alert since this process began, newest first."""
    with _lock:
        return list(_seen.get(alert_seq, ()))


def reset() -> None:
    """Forget all (another database was opened)."""
    with _lock:
        _seen.clear()
