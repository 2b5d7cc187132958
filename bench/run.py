"""The cost of requests under gunicorn, compared with a bare Flask hello; latency, memory and start-up time.

Both servers run at the same time with the same settings, on one core, as the service chooses itself; the client
runs on another if there is one. Slices of a second go to each kind of request and to hello in turn, and a figure is
the median of the rounds' ratios. The product's rate limits are active: requests are spread over so many keys and
alerts that none is refused.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import measure
from bench.client import Client, Load, Request, requests_in
from bench.measure import Row, ratio, worker_of
from tests.support.processes import memory_mb
from tests.support.server import Server

ROUNDS = 5
CONNECTIONS = 16
CLIENTS = 32
INGEST = "1000000"
GOALS = {"send": ("1", 2.5, 2.0), "event": ("2", 3.0, 2.3), "stats": ("3", 2.0, 1.6), "list of 50": ("3", 3.0, 2.5)}


def rows(scratch: Path) -> Iterator[Row]:
    """All rows."""
    yield from start_rows(scratch)
    service = Server(scratch / "data", INGEST_PER_MINUTE=INGEST)
    hello = Server(scratch / "hello", under=(sys.executable, "-m", "bench.hello"))
    with measure.running(service, hello):
        worker, other = worker_of(service.process.pid), worker_of(hello.process.pid)
        measure.keep_with_service(other)
        idle_mb = memory_mb(worker)
        wanted = requests_in(scratch / "data" / "pocketbell.db")
        clients = {name: Client(service.port, requests, [worker]) for name, requests in wanted.items()}
        clients["hello"] = Client(hello.port, [Request("GET", "/")], [other])
        slices = {name: partial(client.run, CONNECTIONS, 1) for name, client in clients.items()}
        yield from cost_rows(measure.in_rounds(slices, ROUNDS))
        yield latency_row(clients)
        loaded_mb = memory_mb(worker)
    yield measure.at_most(
        "(13) memory of the worker, idle before a push", idle_mb, 50, 40, " MB", f"{loaded_mb:.0f} MB after this load"
    )


def cost_rows(seen: dict[str, list[Load]]) -> Iterator[Row]:
    """CPU per request in hellos, and metrics stored per second."""
    hello = statistics.median(one.cpu_us for one in seen["hello"])
    for name, (number, must, moonshot) in GOALS.items():
        cpu, per_s = (statistics.median(getattr(one, field) for one in seen[name]) for field in ("cpu_us", "per_s"))
        pairs = list(zip(seen[name], seen["hello"], strict=True))
        ratios = [a.cpu_us / b.cpu_us for a, b in pairs]
        rate = ratio([(a.per_s, b.per_s) for a, b in pairs])
        more = (
            f"{min(ratios):.1f} to {max(ratios):.1f}; {cpu:.0f} µs, hello {hello:.0f};"
            f" {per_s:,.0f} requests/s, {rate:.2f} of hello's"
        )
        what = f"({number}) {name}: CPU per request / hello"
        yield measure.at_most(what, statistics.median(ratios), must, moonshot, more=more)
    stored = [one.per_s * 100 for one in seen["metrics"]]
    cpu = statistics.median(one.cpu_us for one in seen["metrics"])
    more = f"best second {max(stored):,.0f}; {cpu:.0f} µs CPU a batch of 100, {cpu / hello:.1f} hellos"
    yield measure.at_least(
        "(4) metrics stored per second, over HTTP", statistics.median(stored), 50_000, 80_000, more=more
    )


def latency_row(clients: dict[str, Client]) -> Row:
    """The 99th percentile of a send's latency, compared with the median."""
    slices = {name: partial(clients[name].run, CLIENTS, 2) for name in ("send", "hello")}
    seen = measure.in_rounds(slices, 4)
    tails = {name: statistics.median(one.p99_ms / one.p50_ms for one in loads) for name, loads in seen.items()}
    p50, p99 = (statistics.median(getattr(one, field) for one in seen["send"]) for field in ("p50_ms", "p99_ms"))
    more = f"{p99:.0f} ms / {p50:.0f} ms; hello's own {tails['hello']:.2g}"
    return measure.at_most("(6) send p99 / p50 at 32 clients", tails["send"], 3, 2, more=more)


def start_rows(scratch: Path) -> Iterator[Row]:
    """The time from starting gunicorn to the first 200 of /healthz."""
    times = []
    for _ in range(6):
        began = time.monotonic()
        server = Server(scratch / "started")
        while not server.is_ready():
            time.sleep(0.002)
        times.append((time.monotonic() - began) * 1000)
        server.terminate()
    first, later = times[0], times[1:]
    more = f"{min(later):.0f} to {max(later):.0f}; {first:.0f} when it makes the database"
    median = statistics.median(later)
    yield measure.at_most("(14) start to the first answer, median of 5", median, 400, 250, " ms", more)


if __name__ == "__main__":
    sys.exit(measure.main("run", rows))
