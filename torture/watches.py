"""Heartbeats under kill -9, and ten simulated days of a hundred of them.

In each round some heartbeats ping and fail, some go down at their deadlines, and some were pinged right before an
hour in which the service was away. So that a round takes seconds, the times of the last two and the note that the
service was alive are moved in the file while nothing runs.
"""

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.server import ROOT, Server
from torture.client import counted
from torture.figure import Figure
from torture.load import rows, seed, timed, write

ROUNDS, DAYS = 20, 10
PINGED, SILENT, AWAY = 60, 25, 15  # heartbeats that ping and fail, go down by themselves, or cry wolf if they do
THREADS = 4
WHAT = f"kill -9 in {ROUNDS} rounds of {PINGED + SILENT + AWAY} heartbeats"
SIMULATED = f"{DAYS} simulated days of 100 heartbeats that ping each minute"
MAX_GROWTH_MB = 8.0
HOUR_MS = 3_600_000
GO_AWAY = (
    "UPDATE server_note SET value = {now} - 3600000 WHERE name = 'watched'",
    "UPDATE heartbeat SET state = 'late', last_ping_at = {now} - 86400000,"
    " deadline_at = {now} - 3600000 + abs(random() % 2500) WHERE name = 'silent' AND state IN ('up', 'late')",
    "UPDATE heartbeat SET state = 'up', last_ping_at = {now} - 3610000, deadline_at = {now} - 3550000"
    " WHERE name = 'away'",
)
MAKE = """
import os, sys
import config
from core import heartbeats
from models import Account
from process import clock
from store import database
database.open_database(config.load(os.environ).database)
(account,) = Account.all()
for name, number, period in (("pinged", {pinged}, "366d"), ("silent", {silent}, "1m"), ("away", {away}, "1m")):
    for _ in range(number):
        settings = dict(name=name, period=period, grace="1m")
        heartbeats.create_heartbeat(account, settings, clock.now_ms())
"""


class Beat(NamedTuple):
    """A heartbeat as the file has it."""

    id: str
    ping_id: str
    name: str
    state: str


class Watched:
    """The heartbeats, and what was found wrong with them after each round."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir, self.file = data_dir, data_dir / "pocketbell.db"
        self.statuses, self.wrong = Counter[int](), list[str]()
        self.changes = self.unanswered = 0

    def beats(self) -> dict[str, Beat]:
        """All of them, by id."""
        found = rows(self.file, "SELECT id, ping_id, name, state FROM heartbeat ORDER BY seq")
        return {row[0]: Beat(*row) for row in found}

    def told(self) -> dict[str, list[str]]:
        """By heartbeat, `down` and `up` as its owner was told, the oldest first."""
        found = rows(self.file, "SELECT tag, title FROM notification WHERE tag LIKE 'heartbeat %' ORDER BY seq")
        said = dict[str, list[str]]()
        for tag, title in found:
            said.setdefault(tag.split()[1], []).append(title.split()[-1])
        return said

    def ping(self, server: Server, beat: Beat, signal: str) -> int:
        """Ping once; 0 without an answer."""
        status = timed(server, "POST", f"/ping/{beat.ping_id}{signal}", "text").status
        self.statuses[status] += 1
        return status

    def check(
        self, before: dict[str, Beat], told: dict[str, list[str]], sent: dict[str, list[tuple[str, int]]]
    ) -> None:
        """Compare what was acknowledged in a round with the file."""
        now, said = self.beats(), self.told()
        for id_, pings in sent.items():
            state, changes = before[id_].state, 0
            for signal, status in pings:
                if status == 0 and (now[id_].state == "down") != (signal == "/fail"):
                    self.unanswered += 1  # it was not taken
                elif status in (0, 200):
                    changes += (state == "down") != (signal == "/fail")
                    state = "down" if signal == "/fail" else "up"
            self.changes += changes
            heard = len(said.get(id_, [])) - len(told.get(id_, []))
            if (heard, now[id_].state) != (changes, state):
                self.wrong.append(f"{changes} changes to {state}, {heard} told, and it is {now[id_].state}")


def figures(scratch: Path) -> Iterator[Figure]:
    """20 rounds, each killed at a random moment; then the simulated days."""
    watched, chance = Watched(scratch / "data"), random.Random(19)
    seed(watched.data_dir, ["owner@example.org"])
    environ = {"DATA_DIR": str(watched.data_dir)}
    make = MAKE.format(pinged=PINGED, silent=SILENT, away=AWAY)
    subprocess.run([sys.executable, "-c", make], env=environ, cwd=ROOT, check=True)
    for number in range(ROUNDS):
        _round(watched, chance, is_first=number == 0)
    yield from _compared(watched)
    yield from _days(scratch)


def _round(watched: Watched, chance: random.Random, is_first: bool) -> None:
    """Start the service after an hour, ping and fail, and kill it; nothing is moved before the first ping."""
    if not is_first:
        now = time.time_ns() // 1_000_000
        write(watched.file, *(statement.format(now=now) for statement in GO_AWAY))
    before, told, sent = watched.beats(), watched.told(), dict[str, list[tuple[str, int]]]()
    server, killed = Server(watched.data_dir, LOG_LEVEL="warning").wait_until_ready(), threading.Event()
    pinged = [beat for beat in before.values() if beat.name == "pinged"]
    others = [beat for beat in before.values() if beat.name == "away" or beat.state in ("new", "down")]
    threads = [
        threading.Thread(target=_ping, args=(watched, server, pinged[n::THREADS], sent, killed, chance.random()))
        for n in range(THREADS)
    ]
    threads.append(threading.Thread(target=_ping_once, args=(watched, server, set(others) - set(pinged))))
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(0.5, 2.5) + is_first)
    killed.set()
    server.kill()
    for thread in threads:
        thread.join(30)
    watched.check(before, told, sent)


def _ping(
    watched: Watched,
    server: Server,
    beats: list[Beat],
    sent: dict[str, list[tuple[str, int]]],
    killed: threading.Event,
    start: float,
) -> None:
    """Ping these again and again, each in turn, every third time with a failure, until the service is killed."""
    chance = random.Random(start)
    while True:
        for beat in beats:
            signal = chance.choice(("/fail", "", "/0"))
            status = watched.ping(server, beat, signal)
            sent.setdefault(beat.id, []).append((signal, status))
            if status == 0:
                return
            time.sleep(0.002)


def _ping_once(watched: Watched, server: Server, beats: set[Beat]) -> None:
    for beat in beats:
        watched.ping(server, beat, "")


def _compared(watched: Watched) -> Iterator[Figure]:
    told, beats = watched.told(), watched.beats()
    count = {name: Counter[str]() for name in ("pinged", "silent", "away")}
    doubled = lost = 0
    for id_, beat in beats.items():
        said = told.get(id_, [])
        count[beat.name].update(said)
        doubled += sum(one == other for one, other in pairwise(said))
        lost += (said[-1:] == ["down"]) != (beat.state == "down") or said[:1] == ["up"]
    seen = f"{watched.changes} by pings, {sum(count['silent'].values())} of those that went down at their deadlines"
    enough = watched.changes >= ROUNDS * 20 and count["silent"]["down"] >= ROUNDS * 3
    yield Figure(WHAT, "changes of state", seen, enough)
    others = [status for status in watched.statuses if status not in (0, 200, 429)]
    yield Figure(WHAT, "every answer a success, a 429 or none", counted(watched.statuses.elements()), not others)
    for one in watched.wrong[:5]:
        print(one, file=sys.stderr)
    seen = f"{len(watched.wrong)} not so; {watched.unanswered} pings without an answer had not been taken"
    yield Figure(WHAT, "each acknowledged change told exactly once, after each kill", seen, not watched.wrong)
    seen = f"{doubled} doubled, {lost} lost of {sum(map(len, told.values()))}"
    yield Figure(WHAT, "down and up told in turn, the last as it is now", seen, not doubled and not lost)
    wolves = count["away"].total()
    yield Figure(WHAT, "an hour away makes nothing down", f"{wolves} of {AWAY * (ROUNDS - 1)}", not wolves)


def _days(scratch: Path) -> Iterator[Figure]:
    done = subprocess.run(
        [sys.executable, "-m", "torture.watched_days", str(DAYS)],
        env={"DATA_DIR": str(scratch / "days"), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    seen = json.loads(done.stdout)
    told = f"{seen['told']} told of {2 * seen['outages']}, {seen['pings']:,} pings"
    yield Figure(SIMULATED, "each outage told once, and its end", told, seen["told"] == 2 * seen["outages"])
    latest = f"{seen['latest_ms']} ms after it, {seen['early']} too early; the longest look took {seen['look_ms']} ms"
    holds = seen["latest_ms"] + seen["look_ms"] <= 2_000 and not seen["early"]
    yield Figure(SIMULATED, "no deadline followed before it, or later than 2 s", latest, holds)
    drift = f"{seen['drift_ms']} ms between the last pings and deadlines, and the periods"
    yield Figure(SIMULATED, "no drift", drift, seen["drift_ms"] == 0)
    first, last = seen["rss_mb"][0], seen["rss_mb"][-1]
    files = f"the file {seen['file_mb'][0]} and {seen['file_mb'][-1]} MB"
    grown = f"{first:.1f} MB after a day, {last:.1f} at the end; {files}"
    yield Figure(SIMULATED, f"memory grows by less than {MAX_GROWTH_MB:.0f} MB", grown, last - first < MAX_GROWTH_MB)
