"""Two services of two workers each, on PostgreSQL and Redis, under load while each of these fails in turn.

It lasts ten minutes, or TORTURE_SCALE_S seconds. PostgreSQL and Redis are started from the system's packages
(`apt install postgresql redis-server`).
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.support.push_service import PushService
from tests.support.server import wait_until
from torture import scale_jobs
from torture.figure import Figure
from torture.load import BATCH, Crowd, counted, percentile
from torture.phone import Phone
from torture.scale_load import LEARNED_WITHIN_S, Fault, Load, Probe, quota
from torture.scale_servers import missing, site
from torture.service import PASSWORD, Seeded, seed, tell

LASTS_S = 600.0
AWAY_S, CALM_S = 9.0, 10.0
KEYS = 8  # of each account, so that the load does not reach their limits
STARTER, STARTERS_LIMIT = "starter@example.org", 100
MAX_AWAY_S, MAX_REDIS_S = 4.0, 0.3
MAX_LATE_S = 20.0  # until a stream's last messages have come, however busy the machine is
BUSY_S = 0.5  # what a request may take here, where clients, services and servers share the cores
WHAT = "two services of two workers"
DATABASE = ("PostgreSQL halted", "PostgreSQL stopped", "PostgreSQL read-only")
FAILOVER, FAILOVER_S = "PostgreSQL failing over", 1.0
REDIS = ("Redis stopped", "Redis halted", "Redis emptied")


def figures(scratch: Path) -> Iterator[Figure]:
    """Load all the time; beside it, faults and rounds in turn; then everything is looked up."""
    if lacks := missing():
        yield Figure(WHAT, "PostgreSQL and Redis are installed", f"missing: {lacks}", None)
        return
    lasts_s = float(os.environ.get("TORTURE_SCALE_S", LASTS_S))
    with closing(PushService()) as push_service, site(scratch, WEBPUSH_HOSTS=push_service.origin) as made:
        made.start()
        accounts = seed(
            scratch / "data-0",
            [f"owner-{n}@example.org" for n in range(5)],
            keys=KEYS,
            hooks=4,
            password=PASSWORD,
            **made.environ,
        )
        made.services[0].flask("account", "create", STARTER, "--plan", "starter")
        run = _Run(Load(made, accounts), scale_jobs.Jobs(made, push_service), lasts_s)
        run.run(accounts[4])
        yield from run.compared()


class _Run:
    """The course of it: what happens when."""

    def __init__(self, load: Load, jobs: scale_jobs.Jobs, lasts_s: float) -> None:
        self.load, self.jobs, self.site, self.lasts_s = load, jobs, load.site, lasts_s
        self.quotas: list[tuple[Counter[int], bool]] = []
        self.recovered: list[tuple[str, float]] = []

    def run(self, of_phone: Seeded) -> None:
        """All of it."""
        load = self.load
        key = of_phone.keys[0]
        self.phone = Phone(lambda: self.site.services[0], key)
        works = (load.send, load.send, load.happen, load.measure, load.read, load.look, load.send_at_both)
        crowd = Crowd(*works, load.poll, load.revoke, load.rotate, load.wait, lambda: load.send_to_phone(key))
        began, turn = time.monotonic(), 0
        steps = self._steps()
        while time.monotonic() - began < self.lasts_s or turn < len(steps):
            name, does = steps[turn % len(steps)]
            turn += 1
            tell(f"{time.monotonic() - began:5.0f} s", name)
            does()
        self._fail_over()
        time.sleep(CALM_S)
        crowd.end()
        with suppress(AssertionError):
            wait_until(lambda: not load.to_phone.keys() - self.phone.came.keys(), MAX_LATE_S)
        self.phone.is_over = True

    def _steps(self) -> list[tuple[str, Callable[[], Any]]]:
        postgres, redis = self.site.postgres, self.site.redis

        def halted(does: Callable[[int], Any]) -> tuple[Any, ...]:
            return lambda: does(signal.SIGSTOP), AWAY_S, lambda: does(signal.SIGCONT)

        faults: dict[str, tuple[Any, ...]] = {
            "PostgreSQL stopped": (postgres.stop, AWAY_S, postgres.start),
            "Redis halted": halted(redis.process.send_signal),
            "a worker killed": (self.site.kill_worker,),
            "Redis stopped": (redis.stop, AWAY_S, redis.start),
            "PostgreSQL halted": halted(postgres.signal),
            "Redis emptied": (lambda: redis.ask("FLUSHALL"),),
            "PostgreSQL read-only": (
                lambda: postgres.set_read_only("on"),
                AWAY_S,
                lambda: postgres.set_read_only("off"),
            ),
            "a master killed": (self.site.kill_master,),
        }
        steps: list[tuple[str, Callable[[], Any]]] = [("jobs", self.jobs.round), ("quota", self._count)]
        for name, does in faults.items():
            steps.append((name, lambda name=name, does=does: self._fault(name, *does)))
            steps.append(("jobs", self.jobs.round))
            if name.startswith("Redis"):
                steps.append(("quota", self._count))
        steps.append(("jobs with a kill", lambda: self.jobs.round(self._kill_soon)))
        return steps

    def _kill_soon(self) -> None:
        time.sleep(random.uniform(0.0, 1.0))
        self.load.during("a worker killed", self.site.kill_worker)

    def _fault(self, name: str, *does: Any) -> None:
        self.load.during(name, *does)
        self.recovered.append((name, self.site.wait_until_well()))
        time.sleep(CALM_S)

    def _fail_over(self) -> None:
        """The server dies, and one that has all of its data takes its place."""
        standby = self.site.postgres.with_standby()
        self._fault(FAILOVER, self.site.postgres.stop, FAILOVER_S, standby.promote)
        self.site.postgres = standby

    def _count(self) -> None:
        before = self.site.log().count("Redis can")
        statuses, left = quota(self.site, STARTER)
        if self.site.log().count("Redis can") == before:  # else the machine was too busy for Redis
            self.quotas.append((statuses, left == list(range(STARTERS_LIMIT))))

    # --- what came of it ------------------------------------------------------------------------------------

    def compared(self) -> Iterator[Figure]:
        """Every figure."""
        load, stored = self.load, self.site.postgres.rows
        yield from self._kept()
        exact = sum(counts[200] == STARTERS_LIMIT and is_each_once for counts, is_each_once in self.quotas)
        told = f"{exact} of {len(self.quotas)} times; {counted(n[200] for n, _ in self.quotas)}"
        must = f"{STARTERS_LIMIT} of 300 requests, each Remaining once"
        yield Figure(WHAT, must, told, exact == len(self.quotas) > 0)
        yield from scale_jobs.compared(self.jobs)
        rows = stored("SELECT title, count(*) FROM notification WHERE title LIKE '%once %' GROUP BY title")
        twice = sum(number > 1 for _, number in rows)
        two = sum(len(ids) > 1 for ids in load.idempotent.values())
        lost = sum(not ids for ids in load.idempotent.values())
        told = f"{twice} stored twice, {two} answered with two ids, {lost} unanswered, of {len(load.idempotent)}"
        must = "one notification for an Idempotency-Key at both"
        yield Figure(WHAT, must, told, not twice and not two and not lost)
        told = f"{len(load.alive)} of {load.ended} answered"
        must = "a revoked key is refused by the other service at once"
        yield Figure(WHAT, must, told, not load.alive and load.ended > 0)
        alive = load.old_codes.count(200)
        told = f"{alive} of {len(load.old_codes)} answered"
        must = "a rotated code is refused by the other service at once"
        yield Figure(WHAT, must, told, not alive and bool(load.old_codes))
        yield from self._learned()
        yield from self._away()
        lines = self.site.log().splitlines()
        faults = [line for line in lines if "Traceback" in line or "background job failed" in line]
        odd = [line for line in faults if not _is_expected(line)]
        tell("in the log", *[line[:2000] for line in odd[:3]])
        yield Figure(WHAT, "no fault in the log but what was away", f"{len(odd)} of {len(faults)}", not odd)

    def _kept(self) -> Iterator[Figure]:
        load, stored = self.load, self.site.postgres.rows
        sent = [id_ for ids in load.ids.values() for id_ in ids]
        kept = {row[0] for row in stored("SELECT id FROM notification")}
        lost = set(sent) - kept
        yield Figure(WHAT, "each acknowledged notification is there", f"{len(lost)} of {len(sent)} lost", not lost)
        load.poll()
        unseen = set(load.ids[load.accounts[0].email]) - load.polled
        told = f"{len(unseen)} of {len(load.ids[load.accounts[0].email])} skipped"
        yield Figure(WHAT, "a poller from the top misses none", told, not unseen)
        counts = dict(
            stored("SELECT project_id, count(*) FROM metric m JOIN metric_series s ON s.seq = series_seq GROUP BY 1")
        )
        lost = {one for one in load.batches if counts.get(one) != BATCH}
        halves = [one for one, number in counts.items() if one.startswith("project-") and number % BATCH]
        told = f"{len(lost)} of {len(load.batches)} not whole, {len(halves)} halves"
        yield Figure(WHAT, "each acknowledged batch is there, whole", told, not lost and not halves)
        wrong = stored(
            "SELECT account_seq FROM notification_day a WHERE day = '' AND notification_count <> (SELECT count(*)"
            " FROM notification n WHERE n.account_seq = a.account_seq AND is_digest = 0)"
        )
        yield Figure(WHAT, "counters equal rows", f"{len(wrong)} accounts are off", not wrong)

    def _learned(self) -> Iterator[Figure]:
        load, phone = self.load, self.phone
        streamed = [("stream", at, phone.came[text] - at) for text, at in load.to_phone.items() if text in phone.came]
        for what, seen in (("wait", load.learned), ("stream", streamed)):
            took = [s for _, at, s in seen if load.is_calm(at, at + max(s, 0.0), before_s=20)]
            told = f"{len(took)} seen: median {percentile(took, 0.5):.2f} s, worst {max(took, default=0):.2f} s"
            must = f"a {what} learns within {LEARNED_WITHIN_S:.0f} s what another service stored"
            yield Figure(WHAT, must, told, bool(took) and max(took) < LEARNED_WITHIN_S + BUSY_S)
        lost = load.to_phone.keys() - phone.came.keys()
        for text in lost:
            of_it = f"FROM notification LEFT JOIN delivery ON notification_seq = seq WHERE body = '{text}'"
            found = self.site.postgres.rows(f"SELECT seq, created_at, delivery.* {of_it}")
            tell(text, found, [one for one in load.faults if one.began < load.to_phone[text]][-1:])
        yield Figure(WHAT, "a stream loses none", f"{len(lost)} of {len(load.to_phone)} lost", not lost)

    def _away(self) -> Iterator[Figure]:
        calm = [one for one in self.load.probes if self.load.is_calm(one.answer.began, _end(one))]
        odd = [one for one in calm if one.answer.status not in (200, 429)]
        usual = max((one.answer.seconds for one in calm), default=0)
        tell("odd answers", *odd[:5])
        told = f"{len(odd)} of {len(calm)} others; worst {usual:.2f} s"
        yield Figure(WHAT, "every answer a success or a 429 while nothing is away", told, not odd and bool(calm))
        for name in (*DATABASE, FAILOVER, *REDIS):
            faults = [one for one in self.load.faults if one.name == name]
            seen = [one for one in self.load.probes if any(_is_during(one, fault) for fault in faults)]
            of_kind = _of_database if name in DATABASE else _of_failover if name == FAILOVER else _of_redis
            yield from of_kind(name, seen)
        tell("well again", *[one for one in self.recovered if one[1] > 10])
        worst = max(self.recovered, key=lambda one: one[1])
        told = f"at most {worst[1]:.1f} s ({worst[0]})"
        yield Figure(WHAT, "well within 10 s after each fault, without a restart", told, worst[1] < 10)


def _end(probe: Probe) -> float:
    return probe.answer.began + probe.answer.seconds


def _is_during(probe: Probe, fault: Fault) -> bool:
    """Whether it was away for the request: all the time of it that matters, or with some it may have been."""
    if fault.name in DATABASE:
        return _end(probe) > fault.away + 0.5 and probe.answer.began < fault.back - MAX_AWAY_S
    return fault.began <= probe.answer.began <= fault.ended + 1


def _of_database(name: str, seen: list[Probe]) -> Iterator[Figure]:
    """A server that was set read-only still answers what reads."""
    is_read = name == "PostgreSQL read-only"
    kinds: list[tuple[str, tuple[int, ...], Callable[[str], bool]]] = [
        ("requests: a clean 5xx", (500, 503), lambda what: what != "healthz" and not (is_read and what == "read")),
        ("/healthz: 503", (503,), lambda what: what == "healthz"),
    ]
    kinds += [("reads: 200", (200,), lambda what: what == "read")] if is_read else []
    for must, good, belongs in kinds:
        probes = [one for one in seen if belongs(one.what)]
        yield _answered(name, must, probes, [one for one in probes if not _is_clean(one, good)])


def _of_failover(name: str, seen: list[Probe]) -> Iterator[Figure]:
    """It is over so soon that most requests succeed."""
    wrong = [one for one in seen if not _is_clean(one, (200, 500, 503))]
    yield _answered(name, "requests: a success or a clean 5xx", seen, wrong)


def _answered(name: str, must: str, probes: list[Probe], wrong: list[Probe]) -> Figure:
    worst = max((one.answer.seconds for one in probes), default=0.0)
    tell(name, *wrong[:3])
    told = f"{counted(one.answer.status for one in probes)}; worst {worst:.2f} s"
    holds = bool(probes) and not wrong and worst < MAX_AWAY_S + BUSY_S
    return Figure(name, f"{must} within {MAX_AWAY_S:.0f} s", told, holds)


def _is_clean(probe: Probe, good: tuple[int, ...]) -> bool:
    """Whether it was answered so, in JSON; too many requests at once are refused whatever else happens."""
    return probe.answer.status in (*good, 429) and isinstance(probe.answer.json, dict)


def _of_redis(name: str, seen: list[Probe]) -> Iterator[Figure]:
    wrong = [one for one in seen if one.answer.status not in (200, 429)]
    times = [one.answer.seconds for one in seen]
    worst_s = max(times, default=0.0)
    told = f"{len(wrong)} of {len(seen)} fail; p99 {percentile(times, 0.99):.2f} s, worst {worst_s:.2f} s"
    tell(name, *wrong[:3])
    holds = bool(seen) and not wrong and worst_s < MAX_REDIS_S + BUSY_S
    yield Figure(name, f"no request fails, none waits more than {MAX_REDIS_S} s", told, holds)


def _is_expected(line: str) -> bool:
    return any(words in line for words in ("PostgreSQL", "OperationalError", "57P", "25006", "connection"))
