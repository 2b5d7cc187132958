"""The latest requests to each alert with their answers: noted in memory, written in the background once a second.

So a flood of requests writes one row a second, and a restart loses at most the last second. They have no payloads.
Must not know requests.
"""

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from store import alert_events
from store.database import WriteFailed, transaction
from store.senders import Webhook
from wire.json_text import as_json

MAX_KEPT = 30  # of each alert
MAX_ALERTS = 1_000  # whose requests wait to be written
MAX_WRITTEN = 50  # alerts in a transaction, so that it is short


class Seen(NamedTuple):
    """A request to an alert, or equal ones in a row: the time of the last, the HTTP status, the reason, their number.

    `notification_id` is its notification, if there is one; `since` the time of the first of several.
    """

    at: int
    status: int
    words: str
    times: int = 1
    notification_id: str | None = None
    since: int | None = None


_Unwritten = tuple[int, deque[Seen]]  # the account of an alert, and its requests, newest first

_unwritten: OrderedDict[int, _Unwritten] = OrderedDict()  # by alert; the least recently used first
_lock = threading.Lock()
_writing = threading.Lock()  # held while requests are neither in memory nor in the database


def note(webhook: Webhook, seen: Seen) -> None:
    """Remember a request's answer; equal refusals in a row become one entry."""
    with _lock:
        _note(webhook.alert_seq, webhook.account_seq, [seen])


def of_alert(alert_seq: int) -> list[Seen]:
    """The latest requests to an alert, newest first."""
    with _writing:
        with _lock:
            noted = [*_unwritten[alert_seq][1]] if alert_seq in _unwritten else []
        return list(_with_kept(alert_seq, noted))


def write(now: int) -> bool:
    """Write the requests of some alerts; returns whether there may be more."""
    with _writing:
        with _lock:
            taken = [_unwritten.popitem(last=False) for _ in range(min(MAX_WRITTEN, len(_unwritten)))]
        try:
            _write(taken)
        except WriteFailed:
            with _lock:
                for alert_seq, (account_seq, noted) in taken:
                    _, since = _unwritten.pop(alert_seq, (0, deque[Seen]()))
                    _note(alert_seq, account_seq, [*reversed(noted), *reversed(since)])
            return False
    return len(taken) == MAX_WRITTEN


def write_all() -> None:
    """Write the requests of all alerts, until writing fails."""
    while write(0):
        pass


def _write(taken: list[tuple[int, _Unwritten]]) -> None:
    if not taken:
        return
    with transaction(*sorted({account_seq for _, (account_seq, _) in taken})):
        for alert_seq, (_, noted) in sorted(taken):
            alert_events.put_requests(as_json(list(_with_kept(alert_seq, noted))), alert_seq)


def _note(alert_seq: int, account_seq: int, oldest_first: Iterable[Seen]) -> None:
    _, noted = _unwritten.get(alert_seq) or (account_seq, deque(maxlen=MAX_KEPT))
    _unwritten[alert_seq] = account_seq, noted
    _unwritten.move_to_end(alert_seq)
    if len(_unwritten) > MAX_ALERTS:
        _unwritten.popitem(last=False)
    for seen in oldest_first:
        _add(noted, seen)


def _with_kept(alert_seq: int, noted: Sequence[Seen]) -> deque[Seen]:
    """The alert's requests in the database, with the noted ones."""
    found = deque((Seen(*one) for one in json.loads(alert_events.find_requests(alert_seq) or "[]")), MAX_KEPT)
    for seen in reversed(noted):
        _add(found, seen)
    return found


def _add(requests: deque[Seen], seen: Seen) -> None:
    if requests and requests[0].status == seen.status != 200 and requests[0].words == seen.words:
        last = requests.popleft()
        since = last.at if last.since is None else last.since
        seen = seen._replace(at=max(seen.at, last.at), times=seen.times + last.times, since=since)
    requests.appendleft(seen)
