"""Load over HTTP, from a process of its own: on another core than the service, if there is one."""

import http.client
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import getpid
from typing import Any, NamedTuple

from bench.measure import EVENT, MESSAGE, METRICS, alert_codes, cpu_of, keep_off_service, people, percentile, record

JSON = "application/json"
ACCOUNTS, KEYS, ALERTS, NOTIFICATIONS = 40, 5, 50, 60  # keys and so on of each; so many that no limit refuses one

Answers = list[tuple[float, int, bool]]  # ms, status, whether it says pending
sender = ProcessPoolExecutor(1, get_context("spawn"))


class Request(NamedTuple):
    """One request of a list that is sent in turn."""

    method: str
    path: str
    key: str = ""
    body: str = ""
    kind: str = ""  # of the body

    @property
    def headers(self) -> dict[str, str]:
        """The headers, with the API key."""
        kind = {"Content-Type": self.kind} if self.kind else {}
        return kind | ({"Authorization": f"Bearer {self.key}"} if self.key else {})


def requests_of(keys: Sequence[str], codes: Sequence[str]) -> dict[str, list[Request]]:
    """The requests of each kind, one for each key or short code."""
    return {
        "send": [Request("POST", "/api/v1/notifications/send", key, MESSAGE, JSON) for key in keys],
        "event": [Request("POST", f"/p/{code}", "", EVENT, JSON) for code in codes],
        "list of 50": [Request("GET", "/api/v1/notifications", key) for key in keys],
        "stats": [Request("GET", "/api/v1/stats", key) for key in keys],
        "metrics": [Request("POST", "/api/webhooks/custom", key, METRICS, JSON) for key in keys],
    }


def requests_in(place: Any) -> dict[str, list[Request]]:
    """Fill a service's database with accounts; the requests of each kind for them."""
    from store import database

    database.open_database(place)
    persons = people(ACCOUNTS, KEYS)
    for person in persons:
        record(person, NOTIFICATIONS)
    codes = [code for person in persons for code in alert_codes(person.seq, ALERTS)]
    database.close()
    return requests_of([person.keys[number] for number in range(KEYS) for person in persons], codes)


class Load(NamedTuple):
    """What sending for some seconds saw."""

    per_s: float  # of those that were taken
    cpu_us: float  # of the server, for each of these
    p50_ms: float
    p99_ms: float
    failed: float  # the share of all
    answered: int = 0
    pending: int = 0  # answers that say so


class Client(NamedTuple):
    """Sends a list of requests in turn over persistent connections to a server with these processes.

    An answer that is not a 2xx is an error, unless it is to be counted (`may_fail`).
    """

    port: int
    requests: Sequence[Request]
    pids: Sequence[int] = ()
    may_fail: bool = False

    def run(self, connections: int, seconds: int) -> Load:
        """Send for that many seconds."""
        return self.start(connections, seconds)()

    def start(self, connections: int, seconds: int) -> Callable[[], Load]:
        """Start sending, and return a function that waits for the end."""
        before = cpu_of(self.pids)
        sending = sender.submit(send, self.port, self.requests, connections, seconds)

        def wait() -> Load:
            seen, took_s = sending.result(seconds + 60)
            used_us = (cpu_of(self.pids) - before) * 1e6
            taken = sum(200 <= status < 300 for _, status, _ in seen)
            if not taken or (taken < len(seen) and not self.may_fail):
                raise AssertionError(f"{taken} of {len(seen)} answers are 2xx: the figures mean nothing.")
            times = [ms for ms, _, _ in seen]
            tail = percentile(times, 0.5), percentile(times, 0.99), 1 - taken / len(seen)
            pending = sum(is_pending for _, _, is_pending in seen)
            return Load(taken / took_s, used_us / taken, *tail, len(seen), pending)

        return wait


# --- in the process that sends ------------------------------------------------------------------------------


def send(port: int, requests: Sequence[Request], connections: int, seconds: int) -> tuple[Answers, float]:
    """Send on so many connections; all answers, and the seconds that it took."""
    keep_off_service(getpid())
    seen: Answers = []
    began, turn = time.monotonic(), itertools.count()
    work = (port, requests, turn, began + seconds, seen)
    threads = [threading.Thread(target=_send_on, args=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen, time.monotonic() - began


def _send_on(port: int, requests: Sequence[Request], turn: Iterator[int], ends_s: float, seen: Answers) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    while time.monotonic() < ends_s:
        one, began = requests[next(turn) % len(requests)], time.monotonic()
        try:
            connection.request(one.method, one.path, one.body or None, one.headers)
            answer = connection.getresponse()
            status, body = answer.status, answer.read()
        except OSError:
            status, body = 0, b""
            connection.close()
        seen.append(((time.monotonic() - began) * 1000, status, b'"pending"' in body))
