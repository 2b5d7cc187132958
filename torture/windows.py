"""The end of a window under kills and with clock steps: every digest once, none missing.

Events of alerts with `--frequency 15m` make the held notifications. Their times are then moved back in the file, so
that the window ends within seconds. The devices are stand-ins that keep every push.
"""

import math
import random
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from tests.support.push_service import Browser, PushService
from tests.support.server import Server, wait_until
from torture.figure import Figure
from torture.load import asked, counted, happen, send
from torture.service import FILE, rows, seed, write

ACCOUNTS, EVENTS, KILLS = 20, 10, 10
WINDOW_MS = 900_000
SPREAD_S = 12.0  # the windows end one after the other within this time
SLOW_S = 0.3
LEASE_S = 30
EVENT = re.compile(r"event-\d{4}")
STEPS = {"+1 h": 3_600.0, "-1 h": -3_600.0, "+40 days": 40 * 86_400.0}
WATCHED_S = 75.0
STARTER_LIMIT = 100
SHIFTED = """
import os, time
_time, _time_ns, _file = time.time, time.time_ns, os.environ["CLOCK_FILE"]


def _shift():
    with open(_file) as file:
        return float(file.read() or 0)


time.time = lambda: _time() + _shift()
time.time_ns = lambda: _time_ns() + int(_shift() * 1_000_000_000)
"""


def figures(scratch: Path) -> Iterator[Figure]:
    """Kills, then clock steps."""
    for part in (_killed, _clock_steps):
        with closing(PushService()) as push_service:
            yield from part(scratch / part.__name__, push_service)


class Held:
    """Accounts with one device each, and their held notifications."""

    def __init__(self, data_dir: Path, push_service: PushService) -> None:
        self.data_dir, self.file, self.origin = data_dir, data_dir / FILE, push_service.origin
        self.browsers = [push_service.browser() for _ in range(ACCOUNTS)]
        self.accounts = seed(
            data_dir,
            [f"owner-{number}@example.org" for number in range(ACCOUNTS)],
            frequency="15m",
            subscriptions=[browser.subscription for browser in self.browsers],
            WEBPUSH_HOSTS=push_service.origin,
        )
        self.events: dict[str, str] = {}  # the text of an event, and its id

    def server(self) -> Server:
        """A service with these accounts."""
        return Server(self.data_dir, WEBPUSH_HOSTS=self.origin, LOG_LEVEL="warning")

    def happen(self, server: Server) -> None:
        """Send 10 events for each of the 20 accounts."""
        for number in range(len(self.events), len(self.events) + ACCOUNTS * EVENTS):
            message = f"event-{number:04}"
            answer = happen(server, self.accounts[number % ACCOUNTS].codes[0], message)
            if answer.status != 200 or answer.json["status"] != "held":
                raise RuntimeError(f"it was not held: {answer}")
            self.events[message] = answer.json["notificationId"]

    def end_windows(self, in_s: float, spread_s: float) -> None:
        """Move the held notifications back in time, so that the accounts' windows end one shortly after the other."""
        first = time.time_ns() // 1_000_000 + int(in_s * 1000) - WINDOW_MS
        step = int(spread_s * 1000 / ACCOUNTS)
        statement = "UPDATE held SET created_at = {} WHERE account_seq = {} AND digest_seq IS NULL"
        moved = [statement.format(first + number * step, one.seq) for number, one in enumerate(self.accounts)]
        write(self.file, *moved)

    def is_settled(self) -> bool:
        """Whether nothing is held or due any more."""
        open_rows = "SELECT (SELECT count(*) FROM held WHERE digest_seq IS NULL)"
        return rows(self.file, f"{open_rows} + (SELECT count(*) FROM delivery WHERE status = 'pending')") == [(0,)]


def shown(browsers: list[Browser]) -> list[dict]:
    """What the screens show: the last message of each tag."""
    return [
        message
        for browser in browsers
        for message in {one["notification"]["tag"]: one["notification"] for one in browser.messages}.values()
    ]


def _each_once(what: str, held: Held, most_repeats: int) -> Iterator[Figure]:
    """Every event must be in exactly one visible message, and hardly any message may be sent twice."""
    seen = [event for message in shown(held.browsers) for event in EVENT.findall(message["body"])]
    missing, twice = set(held.events) - set(seen), len(seen) - len(set(seen))
    told = f"{len(missing)} of {len(held.events)} missing, {twice} twice, {len(shown(held.browsers))} digests"
    yield Figure(what, "each event in exactly one digest", told, not missing and not twice and bool(seen))
    raw = sum(len(browser.messages) for browser in held.browsers)
    repeats = raw - len(shown(held.browsers))
    told = f"{repeats} of {raw} pushes repeated one"
    yield Figure(what, f"at most {most_repeats} pushes repeated", told, repeats <= most_repeats)


def _killed(directory: Path, push_service: PushService) -> Iterator[Figure]:
    """SIGKILL ten times while the windows of 20 accounts end; pushes are slow, so that it hits them."""
    what, chance = f"SIGKILL {KILLS} times around the end of {ACCOUNTS} windows", random.Random(10)
    held = Held(directory / "data", push_service)
    server = held.server().wait_until_ready()
    try:
        held.happen(server)
        for browser in held.browsers:
            browser.then(201, after_s=SLOW_S).then(201, after_s=SLOW_S)
        held.end_windows(1.0, SPREAD_S)
        during = 0
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.2, 1.2))
            server.kill()
            during += not held.is_settled()
            server = held.server().wait_until_ready()
        wait_until(held.is_settled, LEASE_S + SPREAD_S + 20)
    finally:
        server.kill()
    yield Figure(what, "the kills struck before all was done", f"{during} of {KILLS} did", during == KILLS)
    yield from _each_once(what, held, KILLS)
    told = counted(row[0] for row in rows(held.file, "SELECT status FROM notification WHERE is_digest"))
    yield Figure(what, "every digest delivered", told, told == f"delivered: {ACCOUNTS}")


class Stepped:
    """A service whose wall clock is set while its monotonic clock goes on, with one account of plan starter."""

    def __init__(self, directory: Path, push_service: PushService) -> None:
        self.directory, self.clock_file = directory, directory / "clock"
        (directory / "lib").mkdir(parents=True)
        (directory / "lib" / "sitecustomize.py").write_text(SHIFTED)
        self.browser = push_service.browser()
        (self.account,) = seed(
            directory / "data",
            ["owner@example.org"],
            keys=2,
            frequency="15m",
            subscriptions=[self.browser.subscription],
            WEBPUSH_HOSTS=push_service.origin,
        )
        self.file = directory / "data" / FILE
        write(self.file, "UPDATE account SET plan = 'starter'")
        self.set(0)
        environ = {"PYTHONPATH": str(directory / "lib"), "CLOCK_FILE": str(self.clock_file)}
        self.server = Server(directory / "data", WEBPUSH_HOSTS=push_service.origin, **environ).wait_until_ready()

    def set(self, offset_s: float) -> None:
        """Set the service's clock to this offset from the real one, at once."""
        unfinished = self.clock_file.with_suffix(".new")
        unfinished.write_text(str(offset_s))
        unfinished.replace(self.clock_file)

    def hold(self, *events: str) -> None:
        """Hold events until the end of a quarter of an hour."""
        for event in events:
            happen(self.server, self.account.codes[0], event)

    def ask(self, key: str) -> int:
        """The status of a request with this key."""
        return asked(self.server, "GET", "/api/v1/stats", key=key).status

    @property
    def titles(self) -> list[str]:
        """The titles of everything that reached the device."""
        return [one["notification"]["title"] for one in self.browser.messages]


def _after_s(happens: Callable[[], bool], since: float) -> float:
    """After how long it happened, checked twice a second; without end if it did not happen in time."""
    while time.monotonic() < since + WATCHED_S:
        if happens():
            return time.monotonic() - since
        time.sleep(0.5)
    return math.inf


def _clock_steps(directory: Path, push_service: PushService) -> Iterator[Figure]:
    """Each step on its own service, all at the same time."""
    directory.mkdir()
    with ThreadPoolExecutor(len(STEPS)) as threads:
        jobs = [
            threads.submit(_step, name, seconds, directory / str(number), push_service)
            for number, (name, seconds) in enumerate(STEPS.items())
        ]
        for job in jobs:
            yield from job.result()


def _step(name: str, seconds: float, directory: Path, push_service: PushService) -> list[Figure]:
    """A digest before the step, one open across it, a retry and a used-up key; set the clock, then set it back."""
    stepped = Stepped(directory, push_service)
    try:
        stepped.hold("event-0000", "event-0001", "event-0002")
        write(stepped.file, f"UPDATE held SET created_at = created_at - {WINDOW_MS}")
        wait_until(lambda: len(stepped.browser.messages) == 1, 30)
        stepped.hold("event-0003", "event-0004")
        stepped.browser.then(503)
        pending = send(stepped.server, stepped.account.keys[0], "again").json["notification"]["status"]
        key, first = stepped.account.keys[1], time.monotonic()
        used = [stepped.ask(key) for _ in range(STARTER_LIMIT + 1)]
        if pending != "pending" or used[-1] != 429:
            raise RuntimeError(f"it is not as it should be before the step: {pending}, {counted(used)}")
        stepped.set(seconds)
        with ThreadPoolExecutor() as threads:
            unlocked = threads.submit(_after_s, lambda: stepped.ask(key) == 200, first)
            retried = threads.submit(_after_s, lambda: "MCP - again" in stepped.titles, time.monotonic())
        stepped.set(0)
        time.sleep(5)
        return list(_stepped(f"clock set by {name} and back", stepped, unlocked.result(), retried.result()))
    finally:
        stepped.server.kill()


def _stepped(what: str, stepped: Stepped, unlocked_s: float, retried_s: float) -> Iterator[Figure]:
    what = f"{what} (time.time of the service's process)"
    seen = [event for one in shown([stepped.browser]) for event in EVENT.findall(one["body"])]
    repeats = len(stepped.browser.messages) - len(shown([stepped.browser]))
    told = f"events shown {counted(seen)}; {repeats} pushes repeated"
    closed = {f"event-000{number}" for number in range(3)} <= set(seen)
    yield Figure(what, "no second digest", told, closed and len(seen) == len(set(seen)) and not repeats)
    must = "a used-up key works again within 60 s"
    yield Figure(what, must, f"after {unlocked_s:.1f} s", unlocked_s <= 61.0)
    told = f"{retried_s:.1f} s after the step"
    yield Figure(what, "a retry due in 30 s resumes", told, retried_s < math.inf)
