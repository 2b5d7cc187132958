"""Clients that ask for long answers and read them fast, slowly, or not at all: what others notice, and the memory."""

import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.ntfy_app import add_topic
from tests.support.processes import memory_mb
from tests.support.proxies import PROXIES, Proxy, program
from tests.support.server import OWNER, Server
from torture.figure import Figure
from torture.load import FAST, MAX_P99_S, Flood, Others, counted, ms, raw_request
from torture.service import FILE, PASSWORD, SignedIn, forget_peak, logged_faults, seed, started, worker_pid, write
from torture.sockets import behind

LASTS_S = 15.0
MAX_S, MAX_MB = 2.0, 400.0
UNREAD, PIPELINED = 6, 75
POLLS, LISTS, DOWNLOADS, PAGES = 88, 200, 20, 16
GOAL = f"stored, below {ms(MAX_P99_S)} at p99, none after {ms(MAX_S)}"
PACES = {"not read": 0, "read slowly": 4_096, "read fast": FAST}  # bytes between two pauses
LARGE = (  # notifications of 40 kB that the account's devices have, and values of a metric
    "INSERT INTO notification (id, account_seq, title, body, status, created_at)"
    " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)"
    f" SELECT printf('%012x%020x', {{now}} + i, i), {{account}}, 't', '{'🔔' * 10_000}', 'delivered',"
    " {now} + i FROM n",
    "INSERT INTO delivery (notification_seq, device_seq, status, attempts)"
    " SELECT n.seq, d.seq, 'delivered', 1 FROM notification n, device d",
    "INSERT INTO metric_series (seq, account_seq, project_id, metric_id) VALUES (1, {account}, 'p', 'm')",
    "INSERT INTO metric (series_seq, metric_name, value, unit, timestamp)"
    " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
    " SELECT 1, 'm', i, 'ms', {now} - i FROM n",
)


class Target:
    """The service, the account that asks for much, and another one, whose sends are timed."""

    def __init__(self, server: Server) -> None:
        asking, other = seed(server.data_dir, [OWNER, "other@example.org"], keys=3, password=PASSWORD)
        self.server, self.pid = server, worker_pid(server)
        self.key, self.others_keys = asking.keys[0], other.keys
        self.topic = add_topic(server, self.key)["topic"]
        now = time.time_ns() // 1_000_000 - 60_000
        write(server.data_dir / FILE, *(one.format(now=now, account=asking.seq) for one in LARGE))
        self.cookie = {"Cookie": SignedIn(server, OWNER).cookie}

    def asked(self, path: str, headers: dict[str, str]) -> bytes:
        """The bytes of a GET, whose answer ends its connection."""
        return raw_request("GET", path, {**headers, "Connection": "close"})

    def crowd(self, requests: list[bytes], pace: int, proxy: Proxy | None = None) -> tuple[Others, Flood]:
        """What others notice while each of these is sent again and again."""
        port, context = (proxy.port, proxy.context()) if proxy else (self.server.port, None)
        flood = Flood(port, [[one] for one in requests], pace, context)
        with flood, Others(self.server, *self.others_keys) as others:
            time.sleep(LASTS_S)
        return others, flood


def figures(scratch: Path) -> Iterator[Figure]:
    """Who takes nothing, directly and through the proxies; who asks for much; and many pages of one account."""
    with started(scratch / "data", BASE_URL="https://localhost") as server:
        target = Target(server)
        yield untaken(target, "directly")
        for kind in filter(program, PROXIES):
            with behind(kind, scratch / kind, server.port) as proxy:
                yield untaken(target, f"through {kind}", proxy)
        for name, pace in PACES.items():
            yield from much(target, name, pace)
        yield pages(target)
        yield logged_faults(server)


def untaken(target: Target, where: str, proxy: Proxy | None = None) -> Figure:
    """Sends with long answers, one after the other on a connection that is never read."""
    body = b"title=" + b"\1" * 1_000 + b"&message=" + b"\1" * 10_000
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    request = raw_request("POST", "/gotify/message", {"X-Gotify-Key": target.key, **form}, body) * PIPELINED
    others, _ = target.crowd([request] * UNREAD, 0, proxy)
    what = f"{UNREAD} connections {where}, each with {PIPELINED} sends at once whose answers nobody reads"
    return Figure(what, f"others' sends {GOAL}", others.told, holds(others))


def much(target: Target, how: str, pace: int) -> Iterator[Figure]:
    """Polls, lists and downloads at once."""
    poll = target.asked(f"/{target.topic}/json?poll=1&since=1", {})
    listed = target.asked("/api/v1/notifications?limit=100", {"Authorization": f"Bearer {target.key}"})
    history = target.asked("/app/notifications.csv", target.cookie)
    metric = target.asked("/app/metrics/one.csv?project=p&metric=m&range=7+d", target.cookie)
    forget_peak(target.pid)
    requests = [poll] * POLLS + [listed] * LISTS + [history, metric] * (DOWNLOADS // 2)
    others, flood = target.crowd(requests, pace)
    peak_mb = memory_mb(target.pid, "VmHWM")
    what = f"{POLLS} polls, {LISTS} lists and {DOWNLOADS} downloads of 40 kB texts, {how}"
    told = f"{peak_mb:.0f} MB; {counted(flood.statuses.elements())}"
    yield Figure(what, f"peak below {MAX_MB:.0f} MB", told, peak_mb < MAX_MB)
    yield Figure(what, f"others' sends {GOAL}", others.told, holds(others))


def pages(target: Target) -> Figure:
    """One account's pages at once."""
    others, _ = target.crowd([target.asked("/app/notifications", target.cookie)] * PAGES, FAST)
    return Figure(f"{PAGES} pages of one account's history", f"others' sends {GOAL}", others.told, holds(others))


def holds(others: Others) -> bool:
    """Whether the others noticed little."""
    return others.are_served and max(others.times) < MAX_S
