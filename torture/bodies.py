"""Bodies around MAX_BODY_BYTES, with wrong lengths and in tiny chunks. A truncated body must never be accepted."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from tests.support.server import Server
from torture.client import (
    Browser,
    account,
    alerts_of,
    asked,
    counted,
    cpu_s,
    head,
    ms,
    raw,
    send,
    started,
    tell,
    worker_pid,
)
from torture.figure import Figure
from torture.flood import Flood, Others, alone
from torture.load import rows

LIMIT = 65_536
MEBIBYTE = 1_048_576
MOST_CPU_S = 10.0
AT_ONCE = 32
MAX_P99_S = 0.5
MAX_GROWTH_MB = 150.0
SHAPES = {"floats": "0.1", "nested objects": "[{}]", "integers and a -0": "1", "great exponents": "1e-300"}


class Case(NamedTuple):
    """Header lines and a body, the statuses that are allowed, and whether the message may be stored."""

    name: str
    fields: list[str]
    body: bytes
    statuses: tuple[int, ...]
    is_stored: bool


class Door(NamedTuple):
    """An endpoint that takes a body: its path, its credential, and a message that contains a mark."""

    name: str
    path: str
    fields: list[str]
    message: str


def figures(scratch: Path) -> Iterator[Figure]:
    """Every case at every endpoint, then a megabyte in chunks of one byte."""
    with started(scratch, "bodies", MAX_BODY_BYTES=str(LIMIT), INGEST_PER_MINUTE="1000000") as server:
        key = account(server, "owner@example.org")
        browser = Browser(server.port).sign_in("owner@example.org")
        codes = [code for _, code in alerts_of(browser, 1)]
        wrong, fives, cut, number = list[str](), 0, 0, 0
        for door in doors(key, codes[0]):
            for case in cases(door):
                answer = raw(server.port, head("POST", door.path, pairs(door.fields + case.fields), case.body))
                status = answer.status if answer else 0
                stored = is_stored(server, browser, key, door, case.name)
                number, fives, cut = number + 1, fives + (status >= 500), cut + (stored and not case.is_stored)
                if status not in case.statuses or stored != (status in (200, 201, 303) and case.is_stored):
                    wrong.append(f"{door.name}, {case.name}: {status}, stored: {stored}")
        for line in wrong:
            tell("wrong", line)
        what = f"{number} bodies around a limit of {LIMIT} bytes, at {len(doors(key, codes[0]))} addresses"
        yield Figure(what, "each the documented status", f"{len(wrong)} others", not wrong)
        yield Figure("truncated bodies that were stored", "0", str(cut), cut == 0)
        yield Figure("5xx answers to them", "0", str(fives), fives == 0)
        last = send(server, key).status
        yield Figure("a notification after them", "200", str(last), last == 200)
    yield from slow_chunks(scratch)
    yield from large_at_once(scratch)


def pairs(lines: list[str]) -> list[tuple[str, str]]:
    """Header lines as pairs of name and value."""
    return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]


def doors(key: str, code: str) -> list[Door]:
    """The endpoints that take bodies. The mark is the name of the case."""
    bearer = [f"Authorization: Bearer {key}"]
    metric = '{"metricId": "MARK", "metricName": "m", "value": 1}'
    return [
        Door("send", "/api/v1/notifications/send", bearer, '{"title": "MARK", "body": "b"}'),
        Door("event", f"/p/{code}", [], '{"title": "MARK", "body": "b"}'),
        Door("metrics", "/api/webhooks/custom", bearer, '{"projectId": "p", "metrics": [' + metric + "]}"),
    ]


def is_stored(server: Server, browser: Browser, key: str, door: Door, mark: str) -> bool:
    """Whether the message with the mark was stored."""
    if door.name == "metrics":
        return browser.get(f"/app/metrics/one?project=p&metric={quote(marked(door, mark))}").status == 200
    path = f"/api/v1/notifications?search={quote(marked(door, mark))}"
    return len(asked(server.port, "GET", path, key=key).json["notifications"]) > 0


def marked(door: Door, name: str) -> str:
    """The mark of a case at an endpoint; no mark is part of another."""
    return f"<{door.name} {name}>"


def cases(door: Door) -> Iterator[Case]:
    """All cases, each with its own mark."""
    for make in (lengths, chunks, lies, codings):
        yield from make(lambda name: json.dumps(marked(door, name))[1:-1], door)


def padded(door: Door, mark: str, size: int) -> bytes:
    """A valid message of exactly this size, padded with a field that is ignored."""
    text = door.message.replace("MARK", mark)[:-1] + ', "padding": ""}'
    return (text[:-2] + "x" * (size - len(text)) + text[-2:]).encode()


def spaced(door: Door, mark: str, size: int) -> bytes:
    """A valid message followed by spaces."""
    return door.message.replace("MARK", mark).encode().ljust(size)


def lengths(mark: Callable[[str], str], door: Door) -> Iterator[Case]:
    """With Content-Length, around the limit."""
    for size, statuses, stored in ((LIMIT - 1, (200,), True), (LIMIT, (200,), True), (LIMIT + 1, (413,), False)):
        for name, make in (("padded", padded), ("spaced", spaced)):
            title = f"{name} {size}"
            yield Case(title, [f"Content-Length: {size}"], make(door, mark(title), size), statuses, stored)
    title = "spaces far beyond"
    yield Case(title, [f"Content-Length: {LIMIT * 20}"], spaced(door, mark(title), LIMIT * 20), (413,), False)


def chunks(mark: Callable[[str], str], door: Door) -> Iterator[Case]:
    """In chunks, around the limit, and with broken chunks."""
    coded = ["Transfer-Encoding: chunked"]
    for size, statuses, stored in ((LIMIT, (200,), True), (LIMIT + 1, (413,), False), (LIMIT * 20, (413,), False)):
        for chunk in (100, 4096, LIMIT, LIMIT * 20):
            title = f"chunks of {chunk} bytes, {size}"
            yield Case(title, coded, chunked(spaced(door, mark(title), size), chunk), statuses, stored)
    for title, end in (("no last chunk", b""), ("a broken last chunk", b"zz\r\n"), ("half a chunk", b"50\r\n   ")):
        body = chunked(spaced(door, mark(title), 500), 100).removesuffix(b"0\r\n\r\n")
        yield Case(title, coded, body + end, (400,), False)


def lies(mark: Callable[[str], str], door: Door) -> Iterator[Case]:
    """A Content-Length that does not match the body. A message that is complete within its stated length is valid."""
    size = 400
    table: tuple[tuple[str, list[str], tuple[int, ...], bool], ...] = (
        ("one byte too large", [f"Content-Length: {size + 1}"], (400,), False),
        ("far too large", [f"Content-Length: {size * 50}"], (400,), False),
        ("within the message", ["Content-Length: 20"], (400,), False),
        ("negative", [f"Content-Length: -{size}"], (400,), False),
        ("with a plus", [f"Content-Length: +{size}"], (400,), False),
        ("with a blank", [f"Content-Length: {size} 0"], (400,), False),
        ("hexadecimal", [f"Content-Length: {size:#x}"], (400,), False),
        ("twice the same", [f"Content-Length: {size}"] * 2, (200, 400), True),
        ("two that differ", [f"Content-Length: {size}", "Content-Length: 20"], (400,), False),
        ("two that differ, turned", ["Content-Length: 20", f"Content-Length: {size}"], (400,), False),
        ("a list", [f"Content-Length: {size}, {size}"], (400,), False),
        ("none", [], (400,), False),
        ("beyond 64 bits", ["Content-Length: " + "9" * 30], (400, 413), False),
        ("beside chunks", [f"Content-Length: {size}", "Transfer-Encoding: chunked"], (400,), False),
    )
    for title, fields, statuses, stored in table:
        yield Case(title, fields, spaced(door, mark(title), size), statuses, stored)
    title = "chunked beside a length"
    fields = ["Transfer-Encoding: chunked", "Content-Length: 20"]
    yield Case(title, fields, chunked(spaced(door, mark(title), size), 50), (400,), False)


def codings(mark: Callable[[str], str], door: Door) -> Iterator[Case]:
    """With Content-Encodings and Transfer-Encodings that are not supported."""
    title = "gzip"
    body = gzip.compress(spaced(door, mark(title), 400))
    yield Case(title, ["Content-Encoding: gzip", f"Content-Length: {len(body)}"], body, (400,), False)
    title = "a gzip bomb"
    body = gzip.compress(spaced(door, mark(title), 50 * MEBIBYTE))
    yield Case(title, ["Content-Encoding: gzip", f"Content-Length: {len(body)}"], body, (400,), False)
    title = "plain, called gzip"
    body = spaced(door, mark(title), 400)
    yield Case(title, ["Content-Encoding: gzip", "Content-Length: 400"], body, (200, 400), True)
    for title in ("gzip, chunked", "identity", "chunked, chunked", "nonsense"):
        body = chunked(spaced(door, mark(title), 400), 400)
        taken = title in ("gzip, chunked", "identity")  # its chunks are read as they are: all of it or nothing
        yield Case(title, [f"Transfer-Encoding: {title}"], body, (200, 400, 501) if taken else (400, 501), taken)


def chunked(body: bytes, size: int) -> bytes:
    """The body in chunks."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def slow_chunks(scratch: Path) -> Iterator[Figure]:
    """A megabyte in one-byte chunks: its CPU time, and whether other requests are answered meanwhile."""
    with started(scratch, "chunks") as server:
        key, pid = account(server, "owner@example.org"), worker_pid(server)
        send(server, key)
        done, waits = threading.Event(), list[float]()

        def look() -> None:
            while not done.wait(0.1):
                began = time.perf_counter()
                asked(server.port, "GET", "/healthz")
                waits.append(time.perf_counter() - began)

        watcher = threading.Thread(target=look)
        watcher.start()
        before, began = cpu_s(pid), time.perf_counter()
        message = b'{"title": "slow", "body": "b"}'.ljust(MEBIBYTE)
        fields = {"Authorization": f"Bearer {key}", "Transfer-Encoding": "chunked"}
        answer = raw(
            server.port, head("POST", "/api/v1/notifications/send", fields, chunked(message, 1)), timeout=120
        )
        used_s, took_s = cpu_s(pid) - before, time.perf_counter() - began
        done.set()
        watcher.join()
        status, worst = answer.status if answer else 0, max(waits, default=0.0)
        seen = f"{status}; {used_s:.1f} s of CPU in {took_s:.1f} s; /healthz meanwhile at most {ms(worst)}"
        must = "accepted or refused; at most 10 s of CPU; /healthz below 1 s"
        holds = status in (200, 400, 413) and used_s <= MOST_CPU_S and worst < 1
        yield Figure("1 MB in chunks of one byte", must, seen, holds)


def large_at_once(scratch: Path) -> Iterator[Figure]:
    """32 expensive events of 1 MB at the same moment to one address, while others send."""
    with started(scratch, "large") as server:
        key = account(server, "owner@example.org")
        browser = Browser(server.port).sign_in("owner@example.org")
        for (shape, item), (_, code) in zip(SHAPES.items(), alerts_of(browser, len(SHAPES)), strict=True):
            first = "-0" if "-0" in shape else item
            event = f'{{"title": "{shape}", "x": [{",".join([first] + [item] * (1_040_000 // (len(item) + 1)))}]}}'
            before = alone(server, key)
            flood = Flood(server.port, AT_ONCE, [(f"/p/{code}", {}, event)], times=1)
            with Others(server, key) as others:
                answers = flood.run()
            statement = "SELECT count(*) FROM notification WHERE title = ?"
            ((stored,),) = rows(server.data_dir / "pocketbell.db", statement, [f"MCP - {shape}"])
            what = f"{AT_ONCE} events of 1 MB at once: {shape}"
            told = f"{counted(answers.elements())}; {stored} stored; sends {counted(others.statuses.elements())}"
            yield Figure(what, "all 200 and stored", told, stored == answers[200] == AT_ONCE and others.all_stored)
            told = f"{others.told}; {before}"
            yield Figure(what, f"others' sends below {ms(MAX_P99_S)} at p99", told, others.p99_s < MAX_P99_S)
            told = f"+ {others.grown_mb:.0f} MB on {others.before_mb:.0f}"
            yield Figure(what, f"less than {MAX_GROWTH_MB:.0f} MB of memory", told, others.grown_mb < MAX_GROWTH_MB)
