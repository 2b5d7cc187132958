"""One account takes all that it can of what all share: another is served as promised. And commands beside load."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from core.long_poll import MAX_WAITING
from process.streams import MAX_STREAMS, MAX_STREAMS_OF_KEY, MAX_STREAMS_OF_OWNER
from tests.support.ntfy_app import Listener, add_topic
from tests.support.server import OWNER, Server
from torture.figure import Figure
from torture.load import (
    MAX_P99_S,
    SEND,
    Answer,
    Crowd,
    Flood,
    Others,
    asked,
    counted,
    happen,
    latency,
    ms,
    raw_request,
    send,
    stored_id,
)
from torture.service import FILE, Seeded, logged_faults, rows, seed, started, write

DUE = 90_000  # of one account, which may have 100,000 pending: its events need some
DEVICES, ALERTS, FLOODERS, EVENTS = 20, 105, 8, 1_000
BEGINS_IN_S = 20.0  # until then all is prepared
REMINDERS = 10  # of the other account, one a second
MAX_LATE_S, GIVEN_UP_S = 5.0, 60.0
ALONE_S, WAIT_S = 3.0, 3
SENDERS, COMMANDS = 24, 50
PIECE = 5_000  # rows, which keep the service waiting for less than it tries
SCHEDULE = """
WITH RECURSIVE copy (number) AS (SELECT {0} UNION ALL SELECT number + 1 FROM copy LIMIT {1})
INSERT INTO notification (id, account_seq, api_key_seq, title, body, status, created_at, actions, deliver_at)
SELECT printf('%032x', number), account_seq, api_key_seq, title, body, status, created_at, actions, deliver_at
FROM notification, copy WHERE seq = (SELECT min(seq) FROM notification WHERE deliver_at IS NOT NULL)
"""
LATE = (
    "SELECT max(released_at - deliver_at) / 1000.0 FROM notification WHERE account_seq = ? AND deliver_at IS NOT NULL"
)
BUTTONS = {"actions": [{"label": text, "answer": text} for text in ("Yes", "No", "Later")]}


def figures(scratch: Path) -> Iterator[Figure]:
    """A greedy account beside another one, then commands beside senders."""
    yield from _beside_a_greedy_account(scratch / "shares")
    yield from _commands(scratch / "commands")


def _beside_a_greedy_account(data_dir: Path) -> Iterator[Figure]:
    greedy, other = seed(data_dir, ["greedy@example.org", OWNER], keys=2, hooks=ALERTS)
    with started(data_dir, INGEST_PER_MINUTE=str(EVENTS)) as server:
        with Others(server, other.keys[0]) as undisturbed:
            time.sleep(ALONE_S)
        due_at = int((time.time() + BEGINS_IN_S) * 1000)
        topics = [add_topic(server, greedy.keys[0])["topic"] for _ in range(DEVICES)]
        asked(server, "POST", SEND, {"title": "t", "body": "b", "deliverAt": due_at, **BUTTONS}, greedy.keys[0])
        for number in range(0, DUE, PIECE):
            write(data_dir / FILE, SCHEDULE.format(number, PIECE))
        wanted = topics[: MAX_STREAMS // MAX_STREAMS_OF_KEY] * MAX_STREAMS_OF_KEY
        taken = [Listener(server, topic) for topic in wanted]
        question = stored_id(send(server, greedy.keys[0])) or ""
        waits = Crowd(*[lambda: _ask(server, greedy.keys[0], question)] * MAX_WAITING)
        events = [
            raw_request("POST", f"/p/{code}", {"Connection": "close"}, b'{"message": "m"}') for code in greedy.codes
        ]
        flood = Flood(server.port, [events[place::FLOODERS] for place in range(FLOODERS)], pause_s=0)
        with Others(server, other.keys[1]) as others, flood:
            yield from _served(server, other, due_at)
        waits.end()
        statuses, answers = Counter(one.status for one in taken), flood.statuses
        told = f"streams {counted(statuses.elements())}, events {counted(answers.elements())}"
        must = f"200, p99 < {ms(MAX_P99_S)}"
        yield Figure("the other account's sends", must, f"{others.told}; alone {undisturbed.told}", others.are_served)
        holds = statuses == {200: MAX_STREAMS_OF_OWNER, 429: MAX_STREAMS - MAX_STREAMS_OF_OWNER}
        holds = holds and answers[200] <= EVENTS // 2 and max(answers) < 500
        yield Figure("the greedy account", f"{MAX_STREAMS_OF_OWNER} streams, half of the events", told, holds)
        yield logged_faults(server)


def _ask(server: Server, key: str, id_: str) -> Answer:
    """Wait for an answer, as a program does that asks again."""
    answer = asked(server, "GET", f"/api/v1/notifications/{id_}?wait=25", key=key)
    time.sleep(max(0.0, 1 - answer.seconds))
    return answer


def _served(server: Server, other: Seeded, due_at: int) -> Iterator[Figure]:
    """What the other account gets meanwhile."""
    key = other.keys[0]
    listener = Listener(server, add_topic(server, key)["topic"])
    yield Figure("the other account's stream", "granted", str(listener.status), listener.status == 200)
    times = {f"reminder {number}": due_at + 1000 * number for number in range(1, REMINDERS + 1)}
    for body, at in times.items():
        asked(server, "POST", SEND, {"title": "t", "body": body, "deliverAt": at}, key)
    time.sleep(max(0.0, due_at / 1000 - time.time()))
    events = Counter(happen(server, code).status for code in other.codes[:10])
    yield Figure("its events", "200", counted(events.elements()), set(events) == {200})
    waited = asked(server, "GET", f"/api/v1/notifications/{stored_id(send(server, key))}?wait={WAIT_S}", key=key)
    yield Figure("its wait", "granted", f"returned after {ms(waited.seconds)}", waited.seconds >= WAIT_S)
    late = _late(listener, times)
    released = rows(server.data_dir / FILE, LATE, [other.seq])[0][0]
    told = f"at most {max(late, default=0):.1f} s ({released:.1f} s until the release), {len(late)} came"
    holds = len(late) == REMINDERS and max(late) < MAX_LATE_S
    yield Figure(f"its scheduled sends while {DUE:,} are due", f"< {MAX_LATE_S:.0f} s late", told, holds)


def _late(listener: Listener, times: dict[str, int]) -> list[float]:
    """How late each came over the stream, in seconds; without those that did not come in time."""
    late, ends_s = list[float](), max(times.values()) / 1000 + GIVEN_UP_S
    while len(late) < len(times) and time.time() < ends_s and (message := listener.message()):
        if message["message"] in times:
            late.append(time.time() - times[message["message"]] / 1000)
    return late


def _commands(data_dir: Path) -> Iterator[Figure]:
    """Commands that write, beside a service whose disk is never at rest."""
    accounts = seed(data_dir, [OWNER, *(f"sender-{number}@example.org" for number in range(1, SENDERS))], keys=3)
    with started(data_dir) as server:
        sends = list[Answer]()
        works = [_sender(server, account.keys, sends) for account in accounts]
        crowd, failed, times = Crowd(*works), list[str](), list[float]()
        for number in range(COMMANDS):
            began = time.monotonic()
            try:
                server.flask("key", "create", OWNER, f"made {number}")
            except AssertionError as fault:
                failed.append(str(fault))
            times.append(time.monotonic() - began)
        crowd.end()
        what = f"{COMMANDS} commands beside {SENDERS} senders"
        said = f"{len(failed)} failed {sorted(set(failed))}; {latency(times)}"
        told = f"{said}; {len(sends)} sends: {counted(one.status for one in sends)}"
        yield Figure(what, "all succeed", told, not failed)


def _sender(server: Server, keys: list[str], sends: list[Answer]) -> Callable[[], None]:
    turn = itertools.cycle(keys)  # no key reaches its limit
    return lambda: sends.append(send(server, next(turn)))
