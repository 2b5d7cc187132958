"""What a push costs (`handover.py`), sends pushed to a provider that takes 50 ms, and how long others wait meanwhile.

The provider runs in its own process (`provider.py`). Of 32 threads, the service lets at most 24 push at the same
time, and at most 8 for one account. So 24 clients send for eight accounts, and every response must say
delivered.
"""

import http.client
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import handover, measure, stand_in
from bench.client import Client, Load, Request, requests_of
from bench.measure import Person, Row, percentile, worker_of
from tests.support.processes import cpu_s
from tests.support.push_service import Browser
from tests.support.server import Server, bearer

DELAY_MS = 50
ACCOUNTS = 8
THREADS = 32
AT_ONCE = 24
SECONDS = 10
READS_PER_S = 40


def pushing_to(service: dict[str, Any]) -> dict[str, str]:
    """The settings of a service that pushes to this stand-in."""
    return {"WEBPUSH_HOSTS": service["url"], "SSL_CERT_FILE": service["ca_file"]}


def with_devices(server: Server, service: dict[str, Any], keys_each: int) -> list[Person]:
    """Accounts with a device each."""
    from store import database

    database.open_database(server.data_dir / "pocketbell.db")
    persons = measure.people(ACCOUNTS, keys_each, name="pushed")
    for number, person in enumerate(persons):
        subscription = Browser(f"{service['url']}/push/{number}").subscription
        device = json.dumps({"kind": "webpush", "subscription": subscription})
        added = server.request("POST", "/api/v1/devices", device, bearer(person.keys[0]))
        assert added.status == 201, added.text
    return persons


def sending(persons: list[Person]) -> list[Request]:
    """Sends of the accounts in turn, so that none exceeds its share of the threads."""
    keys = [person.keys[place] for place in range(len(persons[0].keys)) for person in persons]
    return requests_of(keys, [])["send"]


def rows(scratch: Path) -> Iterator[Row]:
    """CPU of a push, pushes per second compared with the ideal, and the latency of reads meanwhile."""
    yield from handover.rows(scratch)
    with stand_in.running(scratch, DELAY_MS) as service:
        server = Server(scratch / "data", THREADS=str(THREADS), **pushing_to(service))
        with measure.running(server):
            persons = with_devices(server, service, 5)
            reader = measure.people(1, 10, name="reader")[0]
            measure.record(reader, 60)
            client = Client(server.port, sending(persons), [worker_of(server.process.pid)])
            measure.keep_off_service(service["pid"])
            client.run(AT_ONCE, 2)
            before = cpu_s(service["pid"])
            wait = client.start(AT_ONCE, SECONDS)
            reads = read_times(server.port, reader, SECONDS - 1)
            load = wait()
            provider_us = (cpu_s(service["pid"]) - before) / load.answered * 1e6
        yield pushes_row(load, provider_us)
        p95, p50 = percentile(reads, 0.95), percentile(reads, 0.5)
        more = f"p50 {p50:.1f}, {len(reads)} reads"
        yield measure.at_most("(12) reads' p95 during inline pushes", p95, 30, 15, " ms", more)


def pushes_row(load: Load, provider_us: float) -> Row:
    """Delivered sends per second, compared with the rate at which only the provider would take time."""
    delivered = load.per_s * (load.answered - load.pending) / load.answered
    ideal = AT_ONCE * 1000 / DELAY_MS
    more = (
        f"{delivered:.0f}/s, which is {delivered / (THREADS * 1000 / DELAY_MS):.2f} of {THREADS} threads ÷ latency;"
        f" p50 {load.p50_ms:.0f}, p99 {load.p99_ms:.0f} ms; {load.pending} of {load.answered} pending;"
        f" CPU a send {load.cpu_us:.0f} µs, the provider's {provider_us:.0f}"
    )
    what = f"(12) inline push, {DELAY_MS} ms provider: of {AT_ONCE} at once ÷ latency"
    return measure.at_least(what, delivered / ideal, 0.75, 0.9, more=more)


def read_times(port: int, reader: Person, seconds: float) -> list[float]:
    """Latencies in ms of reads on one persistent connection, at a fixed rate."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    times: list[float] = []
    ends_s = time.monotonic() + seconds
    while (began := time.monotonic()) < ends_s:
        path = ("/api/v1/stats", "/api/v1/notifications")[len(times) % 2]
        connection.request("GET", path, headers=bearer(reader.keys[len(times) % len(reader.keys)]))
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        times.append((time.monotonic() - began) * 1000)
        time.sleep(max(0.0, 1 / READS_PER_S - (time.monotonic() - began)))
    connection.close()
    return times


if __name__ == "__main__":
    sys.exit(measure.main("push", rows))
