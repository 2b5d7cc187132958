"""Hostile requests to the real service, over persistent sockets that carry several requests at a time.

FUZZ is the number of requests (100,000), FUZZ_SEED the seed they are made from. Two processes send; what they send is
repeatable.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.support.server import Server
from torture.client import (
    Answer,
    Browser,
    Connection,
    account,
    alerts_of,
    asked,
    logged_faults,
    ms,
    new_keys,
    percentile,
    send,
    started,
    strict_json,
    tell,
)
from torture.figure import Figure
from torture.seeds import Hostile, Maker, Target

CLIENTS = 2
PIPELINED = 4  # requests in flight on one connection
SLOW_S = 1.0
# Hashing a password takes time, and waits for its turn.
HASHING = re.compile(r"/app/(login|setup/|settings/password)")
HASHING_S = 3.0
DRAINED = 65_536  # gunicorn reads this much of a body that was not read; beyond that it closes
JSON_SURFACE = re.compile(r"/(api/|p/|healthz(\?|$))")
SHOWN = 20  # errors to print


class Tally(NamedTuple):
    """What one client saw."""

    statuses: Counter[int]
    times: list[float]
    hashing: list[float]
    faults: Counter[str]


def figures(scratch: Path) -> Iterator[Figure]:
    """Send the requests; check every answer, then the service and its log."""
    number, seed = int(os.environ.get("FUZZ", "100000")), int(os.environ.get("FUZZ_SEED", "1"))
    with started(scratch, "fuzz", INGEST_PER_MINUTE="1000000") as server:
        target = prepared(server)
        began = time.monotonic()
        with ProcessPoolExecutor(CLIENTS, get_context("fork")) as pool:
            parts = [pool.submit(attack, seed + n, number // CLIENTS, target) for n in range(CLIENTS)]
            tallies = [part.result() for part in parts]
        took_s = time.monotonic() - began
        yield from told(tallies, took_s)
        answer = send(server, target.keys[-1])
        yield Figure("a notification after it", "200", str(answer.status), answer.status == 200)
        yield logged_faults(server)
        pids = server.log.count("Booting worker")
        yield Figure("workers that were started", "1", str(pids), pids == 1)


def told(tallies: list[Tally], took_s: float) -> Iterator[Figure]:
    """The rows about the answers."""
    statuses, faults = sum((t.statuses for t in tallies), Counter()), sum((t.faults for t in tallies), Counter())
    times = [one for tally in tallies for one in tally.times]
    total = statuses.total()
    shares = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    what = f"{total} hostile requests"
    fives = sum(count for status, count in statuses.items() if status >= 500)
    yield Figure(what, "0 answers of 5xx", f"{fives} ({shares})", fives == 0)
    seen = f"{took_s:.0f} s, {total / took_s:.0f} a second"
    yield Figure("time for them, with nothing else on the machine", "at most 300 s", seen, took_s <= 300)
    missing, again = faults["no answer"], faults["closed"]
    seen = f"{missing}; {again} had to be sent again: the connection closed behind a large body that was refused"
    yield Figure("whole requests without an answer", "0", seen, missing == 0)
    wrong = faults["not JSON"]
    yield Figure("answers of a JSON address that are not strict JSON", "0", str(wrong), wrong == 0)
    slow = sum(one > SLOW_S for one in times)
    seen = f"{slow}; p99 {ms(percentile(times, 0.99))}, worst {ms(max(times))}"
    yield Figure("answers slower than 1 s", "0", seen, slow == 0)
    hashing = [one for tally in tallies for one in tally.hashing]
    late = sum(one > HASHING_S for one in hashing)
    what = f"answers slower than 3 s of the pages that check a password ({len(hashing)})"
    yield Figure(what, "0", f"{late}; worst {ms(max(hashing, default=0.0))}", late == 0)
    passed = sum(count for status, count in statuses.items() if status in (200, 201, 303, 422)) / total
    limited = statuses[429] / total
    seen = f"{passed:.0%}; 429: {limited:.1%}"
    what, must = "answers from behind the guards (200, 201, 303, 422)", "at least 20 %; 429 at most 10 %"
    yield Figure(what, must, seen, passed >= 0.2 and limited <= 0.1)


def prepared(server: Server) -> Target:
    """A service with accounts, keys, alerts, notifications and sessions."""
    keys, browsers = list[str](), list[Browser]()
    for name in ("one", "two", "three", "four"):
        keys.append(account(server, f"{name}@example.org"))
        browsers.append(Browser(server.port).sign_in(f"{name}@example.org"))
    alerts = alerts_of(browsers[0], 120)
    sent = [send(server, keys[0], f"n{n}").json["notification"]["id"] for n in range(30)]
    revocable = [
        asked(server.port, "POST", "/api/v1/api-keys/generate", {"name": "x"}, keys[0]).json for _ in range(20)
    ]
    device = {"kind": "apns", "token": "ab" * 32}
    devices = [asked(server.port, "POST", "/api/v1/devices", device, keys[1]).json["device"]["id"]]
    pages = [asked(server.port, "GET", f"/api/v1/notifications?limit={n}", key=keys[0]).json for n in range(1, 9)]
    cursors = [page["pagination"]["nextCursor"] for page in pages]
    lost = [Browser(server.port).sign_in("four@example.org") for _ in range(4)]
    everyones = [*keys, *(key for one in keys for key in new_keys(server, one, 15))]
    return Target(
        server.port,
        everyones,
        [code for _, code in alerts] * 9 + ["0000000", "abc", "x" * 50],
        [
            *sent,
            *devices,
            *(one["apiKey"]["id"] for one in revocable),
            *[alert for alert, _ in alerts[:20]],
            "x",
            "0",
            "-1",
        ],
        cursors,
        [(one.cookie, one.csrf) for one in browsers[:3]],
        [(one.cookie, one.csrf) for one in lost],
    )


def attack(seed: int, number: int, target: Target) -> Tally:
    """Send that many requests and judge the answers."""
    maker, tally = Maker(seed, target), Tally(Counter(), [], [], Counter())
    connection, left = None, number
    while left > 0:
        batch = [maker.request() for _ in range(min(left, maker.random.choice((1, 1, 2, PIPELINED))))]
        cut = next((n for n, one in enumerate(batch) if not one.is_framed), len(batch) - 1) + 1
        batch, left = batch[:cut], left - cut
        connection = connection or Connection(target.port, 15)
        connection = exchange(connection, batch, tally)
    return tally


def exchange(connection: Connection, batch: list[Hostile], tally: Tally) -> Connection | None:
    """Send a batch at once and read the answers; returns the connection if it can be used again."""
    began = time.perf_counter()
    connection.send(b"".join(one.data for one in batch))
    if not batch[-1].is_framed:
        connection.half_close()
    for place, request in enumerate(batch):
        answer, before = answer_to(connection, request), connection.before
        if answer is None and isinstance(before, Hostile) and len(before.data) > DRAINED:
            tally.faults["closed"] += 1
            connection.close()
            return repeated(connection, batch[place:], tally)
        now = time.perf_counter()
        judge(request, answer, now - began, tally)
        began, connection.before = now, request
        if answer is None or answer.header("Connection").lower() == "close" or not request.is_framed:
            connection.close()
            return repeated(connection, batch[place + 1 :], tally)
    return connection


def repeated(closed: Connection, rest: list[Hostile], tally: Tally) -> Connection | None:
    """Send again what followed a request after which the service closed the connection."""
    if not rest:
        return None
    return exchange(Connection(closed.port, 15), rest, tally)


def answer_to(connection: Connection, request: Hostile) -> Answer | None:
    """The answer, or None if none came in time."""
    try:
        return connection.answer(request.is_head)
    except TimeoutError:
        return None


def judge(request: Hostile, answer: Answer | None, took_s: float, tally: Tally) -> None:
    """Count the answer, and print a request that shows an error."""
    hashes = HASHING.match(request.path)
    (tally.hashing if hashes else tally.times).append(took_s)
    tally.statuses[answer.status if answer else 0] += 1
    fault = ""
    if answer is None:
        fault = "no answer" if request.is_framed else ""
    elif answer.status >= 500:
        fault = "5xx"
    elif JSON_SURFACE.match(request.path) and not request.is_head and not strict_json(answer.body):
        fault = "not JSON"
    elif took_s > (HASHING_S if hashes else SLOW_S):
        fault = "slow"
    if fault:
        tally.faults[fault] += 1
        if tally.faults.total() - tally.faults["closed"] <= SHOWN:
            data = request.data if len(request.data) < 20_000 else request.data[:20_000] + b"..."
            tell(f"{fault} after {took_s:.2f} s", f"{data!r}\n      -> {answer}")
