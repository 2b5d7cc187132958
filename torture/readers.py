"""Clients that ask for long answers and read them fast, slowly, or not at all: what others notice, and the memory."""

import multiprocessing
import os
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.certificates import make
from tests.support.ntfy_app import add_topic
from tests.support.server import OWNER, Server
from torture.client import counted, forget_peak, head, logged_faults, memory_mb, ms, started, worker_pid
from torture.figure import Figure
from torture.flood import Others
from torture.load import PASSWORD, SignedIn, seed, write
from torture.sockets import DEPLOY, caddy, nginx

LASTS_S = 15.0
MAX_P99_S, MAX_S, MAX_MB = 0.25, 2.0, 400.0
UNREAD, PIPELINED = 6, 75
POLLS, LISTS, DOWNLOADS, PAGES, STREAMS = 88, 200, 20, 16, 8
PACES = {"not read": 0, "read slowly": 4_096, "read fast": 1_048_576}  # bytes between two pauses
PAUSE_S = 0.05
GIVES_UP_S, AGAIN_S = 5.0, 1.0  # who does not read asks again after the first, others after the second
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

    def __init__(self, server: Server, certificate: str) -> None:
        asking, other = seed(server.data_dir, [OWNER, "other@example.org"], password=PASSWORD)
        self.server, self.pid = server, worker_pid(server)
        self.key, self.others_key = asking.keys[0], other.keys[0]
        self.topic = add_topic(server, self.key)["topic"]
        now = time.time_ns() // 1_000_000 - 60_000
        write(server.data_dir / "pocketbell.db", *(one.format(now=now, account=asking.seq) for one in LARGE))
        self.cookie = {"Cookie": SignedIn(server, OWNER).cookie}
        self.context = ssl.create_default_context(cafile=certificate)

    def asked(self, path: str, headers: dict[str, str]) -> bytes:
        """The bytes of a GET, whose answer ends its connection."""
        return head("GET", path, {**headers, "Connection": "close"})

    @contextmanager
    def crowd(self, requests: list[bytes], pace: int, port: int = 0) -> Iterator[Others]:
        """What others notice while each of these is sent again and again."""
        context = self.context if port else None
        crowd = multiprocessing.Process(target=ask, args=(port or self.server.port, context, requests, pace))
        crowd.start()
        try:
            with Others(self.server, self.others_key) as others:
                time.sleep(LASTS_S)
                yield others
        finally:
            crowd.terminate()
            crowd.join()


def figures(scratch: Path) -> Iterator[Figure]:
    """Who takes nothing, directly and through the proxies; who asks for much; and the streams and pages of one."""
    certificates = make(scratch)
    with started(scratch, "readers", BASE_URL="https://localhost") as server:
        target = Target(server, certificates.ca_file)
        yield untaken(target, "directly", 0)
        for name, serve, file in (("nginx", nginx, "nginx.conf"), ("caddy", caddy, "Caddyfile")):
            if shutil.which(name):
                directory = scratch / name
                directory.mkdir()
                with serve(directory, (DEPLOY / file).read_text(), server.port, certificates) as port:
                    time.sleep(2)
                    yield untaken(target, f"through {name}", port)
        for name, pace in PACES.items():
            yield from much(target, name, pace)
        yield pages(target)
        yield logged_faults(server)


def untaken(target: Target, where: str, port: int) -> Figure:
    """Sends with long answers, one after the other on a connection that is never read."""
    body = b"title=" + b"\1" * 1_000 + b"&message=" + b"\1" * 10_000
    form = {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
    request = head("POST", "/gotify/message", {"X-Gotify-Key": target.key, **form}, body) * PIPELINED
    with target.crowd([request] * UNREAD, 0, port) as others:
        pass
    what = f"{UNREAD} connections {where}, each with {PIPELINED} sends at once whose answers nobody reads"
    return Figure(what, f"others' sends {GOAL}", told(others), holds(others))


def much(target: Target, how: str, pace: int) -> Iterator[Figure]:
    """Polls, lists and downloads at once."""
    poll = target.asked(f"/{target.topic}/json?poll=1&since=1", {})
    listed = target.asked("/api/v1/notifications?limit=100", {"Authorization": f"Bearer {target.key}"})
    history = target.asked("/app/notifications.csv", target.cookie)
    metric = target.asked("/app/metrics/one.csv?project=p&metric=m&range=7+d", target.cookie)
    forget_peak(target.pid)
    requests = [poll] * POLLS + [listed] * LISTS + [history, metric] * (DOWNLOADS // 2)
    with target.crowd(requests, pace) as others:
        pass
    peak_mb = memory_mb(target.pid, "VmHWM")
    what = f"{POLLS} polls, {LISTS} lists and {DOWNLOADS} downloads of 40 kB texts, {how}"
    yield Figure(what, f"peak below {MAX_MB:.0f} MB", f"{peak_mb:.0f} MB", peak_mb < MAX_MB)
    yield Figure(what, f"others' sends {GOAL}", told(others), holds(others))


def pages(target: Target) -> Figure:
    """One account's pages at once."""
    with target.crowd([target.asked("/app/notifications", target.cookie)] * PAGES, PACES["read fast"]) as others:
        pass
    return Figure(f"{PAGES} pages of one account's history", f"others' sends {GOAL}", told(others), holds(others))


GOAL = f"stored, below {ms(MAX_P99_S)} at p99, none after {ms(MAX_S)}"


def told(others: Others) -> str:
    """What the others noticed, for people."""
    return f"{others.told}, at most {ms(max(others.times))}; {counted(others.statuses.elements())}"


def holds(others: Others) -> bool:
    """Whether the others noticed little."""
    return others.all_stored and others.p99_s < MAX_P99_S and max(others.times) < MAX_S


# --- the crowd, in its own process --------------------------------------------------------------------------


def ask(port: int, context: ssl.SSLContext | None, requests: list[bytes], pace: int) -> None:
    """Ask on a connection for each of these requests, again and again."""
    os.nice(19)  # it would have machines of its own: do not take the service's CPU
    for request in requests:
        threading.Thread(target=repeat, args=(port, context, request, pace), daemon=True).start()
    threading.Event().wait()


def repeat(port: int, context: ssl.SSLContext | None, request: bytes, pace: int) -> None:
    """Send the request and take the answer at that pace, until the process ends."""
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=GIVES_UP_S) as plain:
            one = context.wrap_socket(plain, server_hostname="localhost") if context else plain
            one.sendall(request)
            while pace and one.recv(pace):
                time.sleep(PAUSE_S if pace < PACES["read fast"] else 0)
            time.sleep(AGAIN_S if pace else GIVES_UP_S)
