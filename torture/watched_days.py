"""Days of a hundred heartbeats that ping each minute, with the clock moved; prints what was seen as JSON.

Each simulated second the clock moves, what is due pings, and the worker looks. An hour in which a heartbeat is silent
for some minutes is an outage. `main` has a list of what happens in each second, which other kinds of watches join.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

import app as application
from core import accounts, heartbeats, jobs, watching
from process import clock
from store.database import EVERYBODY, run, transaction
from store.heartbeats import Beat, Heartbeat
from web import rate_limits

BEATS, PERIOD_S, GRACE_S = 100, 60, 60
DRIFT = 20e-6  # the wall clock runs so much faster than the monotonic one, as clocks do
OUTAGE_S = 600
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
                watching.note_ping(beat, "success", None, "text")
        for beat in beats:
            rate_limits.ping(beat.seq)
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


def main(days: int) -> None:
    """Let the days pass."""
    moved = Clock()
    application.app.open()
    pings = Pings(moved)
    each_second = [pings]
    look_s, rss_mb, file_mb = 0.0, list[float](), list[float]()
    while moved.s < days * 86_400:
        moved.s += 1
        for one in each_second:
            one()
        began = time.perf_counter()
        jobs.run_due(clock.now_ms(), jobs.TIMED)
        look_s = max(look_s, time.perf_counter() - began)
        if moved.s % 3600 == 1800:
            jobs.run_due(clock.now_ms())
        if moved.s % 86_400 == 0:
            rss_mb.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6)
            file_mb.append(round(Path(os.environ["DATA_DIR"], "pocketbell.db").stat().st_size / 1e6, 1))
    off = run("SELECT max(abs(deadline_at - last_ping_at - period_s * 1000)) FROM heartbeat WHERE state = 'up'")
    told = run("SELECT count(*) FROM notification WHERE tag LIKE 'heartbeat %'").fetchone()[0]
    seen = pings.seen | {"told": told, "drift_ms": off.fetchone()[0], "look_ms": round(look_s * 1000)}
    print(json.dumps({**seen, "rss_mb": rss_mb, "file_mb": file_mb}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
