"""Days of a hundred heartbeats that ping each minute, and of a hundred rules; prints what was seen as JSON.

Each simulated second the clock moves, what is due pings or sends, and the worker looks. An hour in which a heartbeat
is silent for some minutes, or a metric is silent or too high, is an outage.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

import app as application
from core import accounts, firing, heartbeat_checks, heartbeats, metric_rules, scheduler
from process import clock
from store.database import EVERYBODY, run, transaction
from store.heartbeats import Beat, Heartbeat
from store.metric_rules import MetricRule, Rule
from web import rate_limits

BEATS, PERIOD_S, GRACE_S = 100, 60, 60
DRIFT = 20e-6  # the wall clock runs so much faster than the monotonic one, as clocks do
OUTAGE_S = 600
RULES, FIRES_AFTER_S, BATCH_EVERY_S = 100, 60, 36
STARTED_MS = 1_795_255_200_000


class Clock:
    """The clock that the product reads."""

    def __init__(self) -> None:
        self.s = 0
        clock.now_ms = lambda: STARTED_MS + int(self.s * 1000 * (1 + DRIFT))
        clock.monotonic_s = lambda: 1_000.0 + self.s


class Pings:
    """The heartbeats that ping: ten of them every six seconds, but for one that is silent in each hour."""

    def __init__(self, moved: Clock) -> None:
        self.moved, self.chance = moved, random.Random(10)
        self.silent, self.silent_until_s = "", 0
        self.seen = {"pings": 0, "outages": 0, "latest_ms": 0, "early": 0}
        with transaction(EVERYBODY):
            account = accounts.create_account("owner@example.org", "scale", "Europe/Berlin", clock.now_ms())
        settings = {"name": "b", "period": f"{PERIOD_S}s", "grace": f"{GRACE_S}s"}
        made = [heartbeats.create_heartbeat(account, settings, clock.now_ms()) for _ in range(BEATS)]
        self.due = {second: [beat.ping_id for beat in made[second::10]] for second in range(10)}
        self.all = [beat.ping_id for beat in made]

    def __call__(self) -> None:
        """One second."""
        second = self.moved.s % 3600
        if second == OUTAGE_S:
            self.silent, self.silent_until_s = self.chance.choice(self.all), self.moved.s + OUTAGE_S
            self.seen["outages"] += 1
        due = self.due.get(self.moved.s % PERIOD_S // 6, []) if self.moved.s % 6 == 0 else []
        pinging = [one for one in due if one != self.silent]
        if pinging:
            self._ping(pinging)
        if self.silent and self.moved.s >= self.silent_until_s:
            self.silent = ""
        if self.silent:
            self._look_at(Heartbeat.pinged(self.silent))

    def _ping(self, pinging: list[str]) -> None:
        beats = list(map(Heartbeat.pinged, pinging))
        with transaction(beats[0].account_seq):
            for beat in beats:
                heartbeat_checks.note_ping(beat, "success", None, "text")
        for beat in beats:
            rate_limits.count(rate_limits.PINGS, beat.seq)
        self.seen["pings"] += len(pinging)

    def _look_at(self, beat: Beat) -> None:
        """Compare the state of the silent one, before the worker looks again, with what it should have been."""
        if beat.last_ping_at is None:
            return
        overdue_ms = clock.now_ms() - beat.last_ping_at - PERIOD_S * 1000
        if beat.state == "up":
            self.seen["latest_ms"] = max(self.seen["latest_ms"], overdue_ms)
        elif beat.state == "late":
            self.seen["latest_ms"] = max(self.seen["latest_ms"], overdue_ms - GRACE_S * 1000)
        least_ms = {"up": -PERIOD_S * 1000, "late": 0, "down": GRACE_S * 1000}[beat.state]
        self.seen["early"] += overdue_ms < least_ms


class Values:
    """Batches with a value of each metric, as often as the plan `starter` lets; in each hour a metric is not well."""

    def __init__(self, moved: Clock) -> None:
        self.moved, self.chance = moved, random.Random(11)
        self.ill, self.ill_until_s, self.since_ms = -1, 0, 0
        self.seen = {"values": 0, "rule_outages": 0, "rule_latest_ms": 0, "rule_early": 0}
        self.account = accounts.find_account("owner@example.org")
        for number in range(RULES):
            rule = ("silent 1m", None) if number % 2 else ("> 90", "1m")
            metric_rules.create_rule(self.account, "p", f"m{number}", *rule, clock.now_ms())
        self.rules = [rule.seq for rule in reversed(MetricRule.of_account(self.account.seq))]

    def __call__(self) -> None:
        """One second."""
        if self.moved.s % 3600 == OUTAGE_S * 2:
            self.ill, self.ill_until_s = self.chance.randrange(RULES), self.moved.s + OUTAGE_S
            self.since_ms = self.sent_ms if self.ill % 2 else 0
            self.seen["rule_outages"] += 1
        if self.ill >= 0 and self.moved.s >= self.ill_until_s:
            self.ill = -1
        if self.moved.s % BATCH_EVERY_S == 0:
            self._send()
        if self.ill >= 0 and self.since_ms:
            self._look_at(MetricRule.one(self.rules[self.ill]))

    def _send(self) -> None:
        now = self.sent_ms = clock.now_ms()
        well = [number for number in range(RULES) if number != self.ill or not number % 2]
        high = {self.ill: 95.0}
        values = [(f"m{number}", "M", high.get(number, 50.0), None, now, None) for number in well]
        firing.store_values(self.account.seq, "p", values)
        self.seen["values"] += len(values)
        if self.ill >= 0 and not self.since_ms:
            self.since_ms = now

    def _look_at(self, rule: Rule) -> None:
        """Compare the rule on what is not well, before the worker looks again, with what it should be."""
        overdue_ms = clock.now_ms() - self.since_ms - FIRES_AFTER_S * 1000
        if rule.state == "ok":
            self.seen["rule_latest_ms"] = max(self.seen["rule_latest_ms"], overdue_ms)
        else:
            self.seen["rule_early"] += overdue_ms < 0


def main(days: int) -> None:
    """Let the days pass."""
    moved = Clock()
    application.app.open()
    pings = Pings(moved)
    values = Values(moved)
    each_second = [pings, values]
    look_s, rss_mb, file_mb = 0.0, list[float](), list[float]()
    while moved.s < days * 86_400:
        moved.s += 1
        for one in each_second:
            one()
        began = time.perf_counter()
        scheduler.run_due(clock.now_ms(), scheduler.TIMED)
        look_s = max(look_s, time.perf_counter() - began)
        if moved.s % 3600 == 1800:
            scheduler.run_due(clock.now_ms())
        if moved.s % 86_400 == 0:
            rss_mb.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6)
            file_mb.append(round(Path(os.environ["DATA_DIR"], "pocketbell.db").stat().st_size / 1e6, 1))
    off = run("SELECT max(abs(deadline_at - last_ping_at - period_s * 1000)) FROM heartbeat WHERE state = 'up'")
    told = run("SELECT count(*) FROM notification WHERE tag LIKE 'heartbeat %'").fetchone()[0]
    told_of_rules = run("SELECT count(*) FROM notification WHERE tag LIKE 'rule %'").fetchone()[0]
    seen = pings.seen | values.seen | {"told_of_rules": told_of_rules}
    seen |= {"told": told, "drift_ms": off.fetchone()[0], "look_ms": round(look_s * 1000)}
    print(json.dumps({**seen, "rss_mb": rss_mb, "file_mb": file_mb}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
