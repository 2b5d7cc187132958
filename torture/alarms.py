"""Repeats and scheduled sends under kill -9, with two processes that do the jobs of one database.

The shortest interval is 30 s. So that a round takes seconds, the times of all that waits are moved in the file while
nothing runs: each round makes every repeat due once. At the end nothing is moved, and what the last kill cut off
must come when its lease has ended.
"""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.push_service import Browser
from tests.support.server import NO_FILE, ROOT, Server, wait_until
from torture.client import counted
from torture.figure import Figure
from torture.load import SEND, push_stand_in, rows, seed, stored_id, timed, write
from torture.windows import JOBS

ROUNDS, ACCOUNTS, RINGING = 20, 6, 10
LAST_KILL_S = 0.7
WHAT = f"kill -9 of a service and a second worker in {ROUNDS} rounds"
SLOW_S = 0.15  # of a push, so that kills hit them
LEASE_S = 30
RING = {"title": "t", "body": "full", "acknowledge": {"everyS": 10_800, "forS": 10_800}}
MAKE_DUE = (
    "UPDATE alarm SET next_at = {now} + abs(random() % 1200), ends_at = {now} + 10800000 WHERE state = 'waiting'",
    "UPDATE alarm SET next_at = {now} WHERE state = 'acknowledged' AND next_at IS NOT NULL",
)


class Bell:
    """Accounts with a device each, what was promised to them, and what their devices got."""

    def __init__(self, data_dir: Path, origin: str, browsers: list[Browser]) -> None:
        self.data_dir, self.file, self.origin, self.browsers = data_dir, data_dir / "pocketbell.db", origin, browsers
        self.accounts = seed(
            data_dir,
            [f"owner-{number}@example.org" for number in range(len(browsers))],
            subscriptions=[browser.subscription for browser in browsers],
            webpush_hosts=origin,
        )
        self.ringing: dict[str, str] = {}  # the id of each that waits, and its account's key
        self.acknowledged: dict[
            str, int
        ] = {}  # the id of each, and how often it had been pushed when it was answered
        self.scheduled: list[str] = []
        self.other: list[int] = []  # statuses that are neither a success nor none
        self.doubled: list[str] = []  # repeats that came twice in one round

    def start(self) -> tuple[Server, subprocess.Popen]:
        """A service, and a second process that does the same jobs: a second service would wait for the first."""
        server = Server(self.data_dir, WEBPUSH_HOSTS=self.origin, LOG_LEVEL="warning")
        environ = {
            **NO_FILE,
            "DATA_DIR": str(self.data_dir),
            "WEBPUSH_HOSTS": self.origin,
        }
        command, pipe = [sys.executable, "-c", JOBS], subprocess.PIPE
        jobs = subprocess.Popen(command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        jobs.stdout.readline()
        jobs.stdin.write(b"go\n")
        jobs.stdin.flush()
        return server.wait_until_ready(), jobs

    def pushed(self, body: str) -> Counter[str]:
        """How often each notification was pushed with this text."""
        shown = [message["notification"] for browser in self.browsers for message in list(browser.messages)]
        return Counter(one["tag"] for one in shown if one["body"] == body)

    def ring(self, server: Server) -> None:
        """Let every account have as many waiting as the rounds need."""
        for account in self.accounts:
            key = account.keys[0]
            for _ in range(RINGING - sum(its == key for its in self.ringing.values())):
                answer = timed(server, "POST", SEND, RING, key)
                self.note(answer.status)
                if id_ := stored_id(answer):
                    self.ringing[id_] = key

    def acknowledge(self, server: Server, id_: str) -> None:
        """Acknowledge one; without an answer it may wait or not, and is not looked at any more."""
        key = self.ringing.pop(id_)
        answer = timed(server, "POST", f"/api/v1/notifications/{id_}/acknowledge", None, key)
        self.note(answer.status)
        if answer.status == 200:
            self.acknowledged[id_] = self.pushed("full")[id_]

    def schedule(self, server: Server, key: str, in_ms: int) -> None:
        """Send something for later."""
        body = {"title": "t", "body": "later", "deliverAt": time.time_ns() // 1_000_000 + in_ms}
        answer = timed(server, "POST", SEND, body, key)
        self.note(answer.status)
        if id_ := stored_id(answer):
            self.scheduled.append(id_)

    def note(self, status: int) -> None:
        """Keep what is neither a success nor no answer."""
        if status not in (0, 200):
            self.other.append(status)

    def is_settled(self) -> bool:
        """Whether nothing is due, claimed, scheduled or pending any more."""
        return rows(
            self.file,
            "SELECT (SELECT count(*) FROM alarm WHERE next_at < ? AND state <> 'expired')"
            " + (SELECT count(*) FROM notification WHERE status IN ('held', 'pending'))",
            (time.time_ns() // 1_000_000 + 3_600_000,),
        ) == [(0,)]


def figures(scratch: Path) -> Iterator[Figure]:
    """20 rounds, each killed at a random moment; then the last leases end."""
    with push_stand_in() as push_service:
        browsers = [push_service.browser() for _ in range(ACCOUNTS)]
        bell, chance = Bell(scratch / "data", push_service.origin, browsers), random.Random(8)
        server, jobs = bell.start()
        cut, until_kill = 0, [chance.uniform(0.3, 2.5) for _ in range(ROUNDS - 1)] + [LAST_KILL_S]
        try:
            for lasting_s in until_kill:
                bell.ring(server)
                due = bell.pushed("full")
                cut += _round(bell, server, jobs, chance, lasting_s)
                killed, began = bell.pushed("full"), time.monotonic()
                server, jobs = bell.start()
            wait_until(bell.is_settled, LEASE_S + 20)
            took_s, end = time.monotonic() - began, bell.pushed("full")
        finally:
            jobs.kill()
            server.kill()
        yield from _compared(bell, cut)
        silent, last = [id_ for id_ in bell.ringing if end[id_] == due[id_]], end - killed
        told = f"{len(silent)} of {len(bell.ringing)} missing, {sum(last.values())} came within {took_s:.0f} s"
        holds = not silent and set(last.values()) == {1} and took_s < LEASE_S + 10
        yield Figure(WHAT, "what was due at the last kill comes once after it, moved by nobody", told, holds)


def _round(bell: Bell, server: Server, jobs: subprocess.Popen, chance: random.Random, lasting_s: float) -> int:
    """Make all due, acknowledge and schedule meanwhile, and kill both processes; how many pushes that cut off."""
    before, again = bell.pushed("full"), set(bell.ringing)
    for browser in bell.browsers:
        browser.answers.clear()
        for _ in range(4 * RINGING):
            browser.then(201, after_s=SLOW_S)
    now = time.time_ns() // 1_000_000
    write(bell.file, *(statement.format(now=now) for statement in MAKE_DUE))
    asking = threading.Thread(target=_ask, args=(bell, server, random.Random(chance.random())))
    asking.start()
    time.sleep(lasting_s)
    server.kill()
    jobs.kill()
    asking.join(30)
    time.sleep(2 * SLOW_S)  # the stand-in notes what had reached it
    now = time.time_ns() // 1_000_000
    leased = rows(bell.file, "SELECT count(*) FROM alarm WHERE next_at BETWEEN ? AND ?", (now + 10_000, now + 30_000))
    bell.doubled += [id_ for id_, times in (bell.pushed("full") - before).items() if times > 1 and id_ in again]
    return int(leased[0][0])


def _ask(bell: Bell, server: Server, chance: random.Random) -> None:
    """Acknowledge some and send some for later, until the service is killed."""
    for id_ in chance.sample(sorted(bell.ringing), 3):
        time.sleep(chance.uniform(0.0, 0.5))
        bell.schedule(server, chance.choice(bell.accounts).keys[0], chance.randrange(200, 1_500))
        bell.acknowledge(server, id_)


def _compared(bell: Bell, cut: int) -> Iterator[Figure]:
    told = f"{cut} repeats and {len(bell.acknowledged)} acknowledgements"
    yield Figure(WHAT, "repeats cut off by the kills, and acknowledged ones", told, cut >= ROUNDS // 2)
    yield Figure(WHAT, "every answer a success or none", f"others {counted(bell.other)}", not bell.other)
    told = f"{len(bell.doubled)} of {sum(bell.pushed('full').values())} pushes"
    yield Figure(WHAT, "no repeat twice within a lease", told, not bell.doubled)
    counts = dict(
        rows(bell.file, "SELECT n.id, a.repeats FROM alarm a JOIN notification n ON n.seq = notification_seq")
    )
    lost = [id_ for id_ in bell.ringing if counts[id_] > bell.pushed("full")[id_]]
    silent = rows(bell.file, "SELECT count(*) FROM alarm WHERE state = 'waiting' AND next_at IS NULL")[0][0]
    told = f"{silent} without a next one, {len(lost)} counted and not pushed, of {len(counts)}"
    yield Figure(WHAT, "no repeat lost", told, not lost and not silent)
    yield from _ended(bell)


def _ended(bell: Bell) -> Iterator[Figure]:
    pushed, said = bell.pushed("full"), bell.pushed("Acknowledged.")
    more = Counter(pushed[id_] - times for id_, times in bell.acknowledged.items())
    told = f"{more[0]} none, {more[1]} one that was under way, {len(bell.acknowledged) - more[0] - more[1]} more"
    yield Figure(WHAT, "acknowledged ones are not pushed again", told, set(more) <= {0, 1})
    states = dict(
        rows(bell.file, "SELECT n.id, a.state FROM alarm a JOIN notification n ON n.seq = notification_seq")
    )
    wrong = [id_ for id_ in bell.acknowledged if states[id_] != "acknowledged"]
    untold = [id_ for id_ in bell.acknowledged if not said[id_]]
    told = f"{len(wrong)} forgotten, {len(untold)} not told to the device, of {len(bell.acknowledged)}"
    yield Figure(WHAT, "every acknowledgement kept and told to the devices", told, not wrong and not untold)
    later = bell.pushed("later")
    statuses = dict(rows(bell.file, "SELECT id, status FROM notification WHERE deliver_at IS NOT NULL"))
    missing = [id_ for id_ in bell.scheduled if statuses.get(id_) != "delivered" or not later[id_]]
    twice = sum(times > 1 for times in later.values())
    told = f"{len(missing)} of {len(bell.scheduled)} missing, {twice} pushed again after a kill"
    yield Figure(
        WHAT, f"scheduled ones delivered, at most {ROUNDS} pushed twice", told, not missing and twice <= ROUNDS
    )
