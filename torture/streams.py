"""What as many open streams as there may be cost. A busy machine is slow at times: so requests take turns."""

import time
from collections.abc import Iterator
from pathlib import Path

from process.streams import MAX_STREAMS, MAX_STREAMS_OF_KEY, MAX_STREAMS_OF_OWNER
from tests.support.ntfy_app import Listener, add_topic
from tests.support.processes import cpu_s, memory_mb
from tests.support.server import Server
from torture.figure import Figure
from torture.load import asked, counted, ms, percentile
from torture.service import logged_faults, seed, started, worker_pid

OWNERS = MAX_STREAMS // MAX_STREAMS_OF_OWNER
REQUESTS, TURNS = 400, 8  # of REST, with and without streams
ASKING, KEYS = 8, 2  # accounts and keys of each, so many that none reaches its limit
RESTED_S = 20.0
MAX_MORE_MB, MAX_SHARE = 20.0, 0.01


def figures(scratch: Path) -> Iterator[Figure]:
    """Memory, CPU at rest, and the latency of other requests."""
    accounts = seed(scratch / "data", [f"owner-{number}@example.org" for number in range(ASKING)], keys=KEYS)
    keys = [key for account in accounts for key in account.keys]
    with started(scratch / "data") as server:
        worker, what = worker_pid(server), f"{MAX_STREAMS} open streams"
        of_owner = MAX_STREAMS_OF_OWNER // MAX_STREAMS_OF_KEY
        devices = [add_topic(server, one.keys[0])["topic"] for one in accounts[:OWNERS] for _ in range(of_owner)]
        topics = devices * MAX_STREAMS_OF_KEY
        with_s, without_s = list[float](), [_p99_s(server, keys)]
        before_mb = memory_mb(worker)
        listeners = _listening(server, topics)
        more = memory_mb(worker) - before_mb
        yield Figure(what, f"at most {MAX_MORE_MB:.0f} MB more memory", f"{more:.1f} MB", more < MAX_MORE_MB)
        begun, used = time.monotonic(), cpu_s(worker)
        time.sleep(RESTED_S)
        share = (cpu_s(worker) - used) / (time.monotonic() - begun)
        yield Figure(what, "at most 1 % of a core at rest", f"{share:.2%}", share < MAX_SHARE)
        for _ in range(TURNS):
            with_s.append(_p99_s(server, keys))
            for listener in listeners:
                listener.close()
            without_s.append(_p99_s(server, keys))
            listeners = _listening(server, topics)
        told = f"{ms(min(with_s))} with, {ms(min(without_s))} without, the best of {TURNS} turns"
        holds = min(with_s) < min(without_s) * 1.5 + 0.001
        yield Figure(what, "REST's p99 at most a half and 1 ms more", told, holds)
        yield logged_faults(server)


def _listening(server: Server, topics: list[str]) -> list[Listener]:
    """An open stream of each topic."""
    listeners = [Listener(server, topic) for topic in topics]
    for listener in listeners:
        assert listener.event(), listener.status
    return listeners


def _p99_s(server: Server, keys: list[str]) -> float:
    """The p99 of requests."""
    answers = [asked(server, "GET", "/api/v1/stats", key=keys[number % len(keys)]) for number in range(REQUESTS)]
    assert all(answer.status == 200 for answer in answers), counted(answer.status for answer in answers)
    return percentile((answer.seconds for answer in answers), 0.99)
