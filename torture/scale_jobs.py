"""What four processes do once between them: digests, retries, repeats, heartbeats, rules. Each round makes all due.

The times are moved in the database behind the services' backs, so that nothing waits for half a minute.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.support.push_service import Browser, PushService
from tests.support.server import wait_until
from torture.figure import Figure
from torture.load import METRICS, SEND, asked, happen, send, stored_id, together
from torture.scale_servers import Site
from torture.service import Seeded, in_process, seed, tell

ACCOUNTS, EVENTS, RETRIED, RINGING, BEATS, RULES = 3, 6, 6, 10, 12, 6
WITHIN_S = 45.0  # with a lease that a killed process had
MAKE = """
import app
from core import heartbeats, metric_rules
from models import Account
from process import clock
app.app.open()
account = next(one for one in Account.all() if one.email == "jobs-0@example.org")
now = clock.now_ms()
for name, number, period in (("pinged", {beats}, "366d"), ("silent", {beats}, "1m")):
    for _ in range(number):
        heartbeats.create_heartbeat(account, dict(name=name, period=period, grace="1m"), now)
for number in range({rules}):
    metric_rules.create_rule(account, "web", f"cpu-{{number}}", "> 90", None, now)
"""
END_WINDOWS = "UPDATE held SET created_at = {now} - 900000 + (random() * 800)::int WHERE digest_seq IS NULL"
RETRY = "UPDATE delivery SET next_attempt_at = {now} WHERE status = 'pending' AND attempts = 1"
REPEAT = (
    "UPDATE alarm SET next_at = {now} + (random() * 800)::int, ends_at = {now} + 10800000, repeats = 0"
    " WHERE state = 'waiting' AND account_seq = {ringer}"
)
RING = {"title": "t", "body": "ring", "acknowledge": {"everyS": 10_800, "forS": 10_800}}
MISS = (
    "UPDATE heartbeat SET state = 'late', last_ping_at = {now} - 86400000,"
    " deadline_at = {now} + (random() * 1000)::int WHERE name = 'silent'"
)


class Jobs:
    """The accounts and devices of the rounds, and what was promised to them."""

    def __init__(self, site: Site, push_service: PushService) -> None:
        self.site, self.browsers = site, [push_service.browser() for _ in range(ACCOUNTS + 1)]
        *accounts, ringer = seed(
            site.scratch / "data-0",
            [f"jobs-{number}@example.org" for number in range(ACCOUNTS + 1)],
            frequency="15m",
            subscriptions=[browser.subscription for browser in self.browsers],
            **site.environ,
        )
        in_process(MAKE.format(beats=BEATS, rules=RULES), site.scratch / "data-0", **site.environ)
        self.accounts: list[Seeded] = accounts
        self.key, self.numbers = self.accounts[0].keys[0], itertools.count()
        self.ringing = {stored_id(asked(site.any(), "POST", SEND, RING, ringer.keys[0])) for _ in range(RINGING)}
        self.ringer, self.open = ringer.seq, OPEN.format(ringer=ringer.seq)
        self.unrepeated = self.doubled = 0
        self.held: list[str] = []  # the texts of events
        self.retried: list[str] = []  # the texts of sends whose first push failed
        self.rounds = self.calm_rounds = 0
        self.late: list[str] = []
        self.calm_retried: list[str] = []

    def round(self, disturb: Callable[[], Any] | None = None) -> None:
        """Make everything due at once, kill something meanwhile if asked to, and wait until all is done."""
        number = self.rounds
        retried = [self._fail_first(account, place) for account, place in self._each(RETRIED)]
        for account, _ in self._each(EVENTS):
            text = f"event-{next(self.numbers):05}"
            answer = happen(self.site.any(), account.codes[0], text)
            self.held.extend([text] if answer.status == 200 else [])
        self._at_both(lambda server: self._values(server, 100.0 if number % 2 == 0 else 1.0))
        self._at_both(lambda server: self._ping(server, "/fail" if number % 2 == 0 else ""))
        rung, now = self.rung(), time.time_ns() // 1_000_000
        self.site.postgres.rows(
            "; ".join(one.format(now=now, ringer=self.ringer) for one in (END_WINDOWS, RETRY, REPEAT, MISS))
        )
        if disturb:
            disturb()
        try:
            wait_until(self._is_done, WITHIN_S)
        except AssertionError:
            left = [self.site.postgres.rows(statement) for statement in (self.open, PENDING)]
            self.late.append(f"round {number}: {left}")
        times = [self.rung()[id_] - rung[id_] for id_ in self.ringing]
        self.unrepeated += sum(number == 0 for number in times)
        self.doubled += 0 if disturb else sum(number > 1 for number in times)
        self.retried += retried
        self.calm_retried += [] if disturb else retried
        self.rounds, self.calm_rounds = number + 1, self.calm_rounds + (disturb is None)
        self._at_both(lambda server: self._ping(server, "", "silent"))

    def _each(self, times: int) -> list[tuple[Seeded, int]]:
        return [(account, place) for _ in range(times) for place, account in enumerate(self.accounts)]

    def _fail_first(self, account: Seeded, place: int) -> str:
        """Send something whose first push its provider refuses for now."""
        text = f"again-{next(self.numbers):05}"
        self.browsers[place].then(503)
        send(self.site.any(), account.keys[0], "t", text)
        return text

    def _at_both(self, does: Callable[[Any], None]) -> None:
        together([lambda server=server: does(server) for server in self.site.services])

    def _values(self, server: Any, value: float) -> None:
        """The same values arrive at both services."""
        values = [{"metricId": f"cpu-{number}", "metricName": "CPU", "value": value} for number in range(RULES)]
        asked(server, "POST", METRICS, {"projectId": "web", "metrics": values}, self.key)

    def _ping(self, server: Any, signal: str, name: str = "pinged") -> None:
        found = self.site.postgres.rows(f"SELECT ping_id FROM heartbeat WHERE name = '{name}' ORDER BY seq")
        for (ping_id,) in found:
            asked(server, "POST", f"/ping/{ping_id}{signal}", "text")

    def _is_done(self) -> bool:
        time.sleep(0.1)
        return self.site.postgres.rows(self.open) == [(0, 0, 0, 0)]

    # --- what came of it ------------------------------------------------------------------------------------

    def told(self, kind: str) -> dict[str, list[str]]:
        """By heartbeat or rule, the titles of what its owner was told, the oldest first."""
        said = dict[str, list[str]]()
        found = self.site.postgres.rows(f"SELECT tag, title FROM notification WHERE tag LIKE '{kind} %' ORDER BY seq")
        for tag, title in found:
            said.setdefault(tag, []).append(title)
        return said

    def rung(self) -> Counter[str]:
        """How often each notification that waits for its acknowledgement was pushed."""
        return Counter(one["tag"] for one in self.shown(self.browsers[-1:]))

    def shown(self, browsers: Sequence[Browser] = ()) -> list[dict[str, Any]]:
        """Every push that was accepted."""
        return [message["notification"] for one in browsers or self.browsers for message in list(one.messages)]


OPEN = (
    "SELECT (SELECT count(*) FROM held WHERE digest_seq IS NULL)::int, (SELECT count(*) FROM delivery d JOIN"
    " device ON device.seq = device_seq WHERE d.status = 'pending' AND kind = 'webpush')::int,"
    " (SELECT count(*) FROM heartbeat WHERE name = 'silent' AND state <> 'down')::int,"
    " (SELECT count(*) FROM alarm WHERE state = 'waiting' AND next_at < extract(epoch FROM now()) * 1000 + 3600000"
    " AND account_seq = {ringer})::int"
)
PENDING = (
    "SELECT attempts, error, next_attempt_at / 1000 - extract(epoch FROM now()) FROM delivery"
    " JOIN device ON seq = device_seq WHERE status = 'pending' AND kind = 'webpush'"
)


def compared(jobs: Jobs) -> Iterator[Figure]:
    """Whether each happened once."""
    what = f"{jobs.rounds} rounds in 4 processes, {jobs.rounds - jobs.calm_rounds} of them with a kill -9"
    tell("late", *jobs.late[:5])
    yield Figure(what, f"everything due is done within {WITHIN_S:.0f} s", f"{len(jobs.late)} late", not jobs.late)
    shown = jobs.shown()
    last = {one["tag"]: one["body"] for one in shown}.values()
    counts = Counter({text: sum(text in body for body in last) for text in jobs.held})
    missing, twice = sum(n == 0 for n in counts.values()), sum(n > 1 for n in counts.values())
    told = f"{missing} of {len(counts)} missing, {twice} twice"
    yield Figure(what, "each event in exactly one digest", told, bool(counts) and not missing and not twice)
    bodies = Counter(one["body"] for one in shown)
    missing = sum(not bodies[text] for text in jobs.retried)
    again = sum(bodies[text] > 1 for text in jobs.calm_retried)
    told = f"{missing} of {len(jobs.retried)} missing, {again} of {len(jobs.calm_retried)} without a kill came twice"
    yield Figure(what, "each retry once a lease", told, not missing and not again)
    told = f"{jobs.unrepeated} missing of {jobs.rounds * RINGING}, {jobs.doubled} twice in a round without a kill"
    yield Figure(what, "each repeat once a lease", told, not jobs.unrepeated and not jobs.doubled)
    for kind, number in (("heartbeat", 2 * BEATS), ("rule", RULES)):
        said = jobs.told(kind)
        doubled = sum(one == other for titles in said.values() for one, other in pairwise(titles))
        total, wanted = sum(map(len, said.values())), _wanted(kind, jobs.rounds)
        told = f"{doubled} doubled, {total} told of {wanted}, about {len(said)} of {number}"
        yield Figure(what, f"each change of a {kind} told once", told, not doubled and total == wanted)


def _wanted(kind: str, rounds: int) -> int:
    """How many changes there were: `pinged` and rules change each round, `silent` down and up again in each."""
    return (BEATS if kind == "heartbeat" else RULES) * rounds + (2 * BEATS * rounds if kind == "heartbeat" else 0)
