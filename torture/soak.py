"""Mixed requests at a steady rate for minutes: memory, open files, the WAL, errors and latencies.

`SOAK_S=600` gives the full figure. The load is open: a slow answer does not delay the next request.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

from tests.support.server import Server
from torture.figure import Figure
from torture.load import (
    MAX_P99_S,
    Answer,
    Crowd,
    asked,
    counted,
    happen,
    latency,
    measure,
    ms,
    percentile,
    send,
    together,
)
from torture.service import FILE, PASSWORD, Seeded, SignedIn, fill, seed, started, worker_pid

RATE, THREADS, BURST = 100, 24, 128
WARMING = 1 / 5  # part of the time in which caches fill
ACCOUNTS, KEYS, HOOKS = 4, 4, 12  # so many that no limit per key, alert or account is reached
FIRST_ROWS = 3_000  # in each account
MEMORY_MB_MIN, MORE_FILES, WAL_BYTES = 1.0, 5, 16_000_000
PAGES = ("/app/", "/app/notifications", "/app/alerts", "/app/metrics", "/app/devices", "/app/keys")
WORDS = ("disk", "50%", "ß", "nothing like that")
SEARCHES = [f"/api/v1/notifications?search={quote(words)}" for words in WORDS]

Work = Callable[[int], Answer]


class Load:
    """The mixture: of 20 requests 6 sends, 5 events, 2 lists, 1 search, 2 statistics, 2 metrics, 2 pages."""

    def __init__(self, server: Server, accounts: list[Seeded], owner: SignedIn) -> None:
        self.server, self.accounts, self.owner = server, accounts, owner
        kinds: list[tuple[str, int, Work]] = [
            ("send", 6, lambda n: send(server, self._key(n), "Disk 50% full", "b" * (n % 900 + 1))),
            ("event", 5, lambda n: happen(server, self._code(n), f"disk {n}")),
            ("list", 2, lambda n: self._get(n, "/api/v1/notifications")),
            ("search", 1, lambda n: self._get(n, SEARCHES[n % len(SEARCHES)])),
            ("stats", 2, lambda n: self._get(n, "/api/v1/stats")),
            ("metrics", 2, lambda n: measure(server, self._key(n), f"p{n % 5}")),
            ("page", 2, self._page),
        ]
        self.turns = {name: itertools.count() for name, *_ in kinds}
        self.mixture = [(name, work) for name, share, work in kinds for _ in range(share)]
        self.mixture = [self.mixture[place * 7 % len(self.mixture)] for place in range(len(self.mixture))]

    def __call__(self, number: int) -> tuple[str, Answer]:
        """The request with that number; each kind uses all keys, codes or pages in turn."""
        name, work = self.mixture[number % len(self.mixture)]
        return name, work(next(self.turns[name]))

    def _account(self, number: int) -> Seeded:
        return self.accounts[number % ACCOUNTS]

    def _key(self, number: int) -> str:
        return self._account(number).keys[number // ACCOUNTS % KEYS]

    def _code(self, number: int) -> str:
        return self._account(number).codes[number // ACCOUNTS % HOOKS]

    def _get(self, number: int, path: str) -> Answer:
        return asked(self.server, "GET", path, key=self._key(number))

    def _page(self, number: int) -> Answer:
        headers = {"Cookie": self.owner.cookie}
        return asked(self.server, "GET", PAGES[number % len(PAGES)], headers=headers)


class Samples:
    """The worker, looked at every second: memory in MB, open files, and the size of the WAL."""

    def __init__(self, server: Server) -> None:
        self.pid, self.wal, self.began = worker_pid(server), server.data_dir / f"{FILE}-wal", time.monotonic()
        self.memory, self.files, self.wal_sizes = list[tuple[float, float]](), list[int](), list[int]()

    def take(self) -> None:
        """Take one, and wait."""
        resident = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.memory.append((time.monotonic() - self.began, resident / 1e6))
        self.files.append(len(list(Path(f"/proc/{self.pid}/fd").iterdir())))
        self.wal_sizes.append(self.wal.stat().st_size)
        time.sleep(1)


def slope(points: list[tuple[float, float]]) -> float:
    """The slope of the least-squares line, per minute."""
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return 60 * above / sum((x - mean_x) ** 2 for x, _ in points)


def figures(scratch: Path) -> Iterator[Figure]:
    """100 requests a second for SOAK_S seconds."""
    lasting = int(os.environ.get("SOAK_S", "300"))
    data_dir = scratch / "data"
    emails = [f"owner-{number}@example.org" for number in range(ACCOUNTS)]
    accounts = seed(data_dir, emails, KEYS, HOOKS, password=PASSWORD)
    for account in accounts:
        fill(data_dir / FILE, account.seq, FIRST_ROWS)
    with started(data_dir) as server:
        load = Load(server, accounts, SignedIn(server, emails[0]))
        _burst(server, accounts[0])
        samples = Samples(server)
        crowd = Crowd(samples.take)
        answers, late = _open_loop(load, lasting)
        crowd.end()
        yield from _told(f"{RATE} mixed requests/s for {lasting} s", samples, answers, late)


def _burst(server: Server, account: Seeded) -> None:
    """Many searches of the whole history at once, so that gunicorn starts all threads and they fill their caches."""
    keys = [account.keys[number % KEYS] for number in range(BURST)]
    together([lambda key=key: asked(server, "GET", SEARCHES[-1], key=key) for key in keys])


def _open_loop(load: Load, lasting: int) -> tuple[list[tuple[str, float, Answer]], float]:
    """Each answer with its kind and the time since it was due; and how late the latest request began."""
    answers = list[tuple[str, float, Answer]]()

    def work(number: int, at: float) -> None:
        name, answer = load(number)
        answers.append((name, time.monotonic() - at, answer))

    began, late = time.monotonic(), 0.0
    with ThreadPoolExecutor(THREADS) as threads:
        for number in range(lasting * RATE):
            at = began + number / RATE
            time.sleep(max(0.0, at - time.monotonic()))
            late = max(late, time.monotonic() - at)
            threads.submit(work, number, at)
    return answers, late


def _told(what: str, samples: Samples, answers: list[tuple[str, float, Answer]], late: float) -> Iterator[Figure]:
    wrong = [f"{name} {one.status}" for name, _, one in answers if one.status != 200]
    yield Figure(what, "0 errors", f"{len(answers)} answers, {len(wrong)} errors: {counted(wrong)}", not wrong)
    times = [seconds for _, seconds, _ in answers]
    kinds = sorted({name for name, *_ in answers})
    p99s = [percentile([s for name, s, _ in answers if name == kind], 0.99) for kind in kinds]
    by_kind = ", ".join(f"{kind} {ms(p99_s)}" for kind, p99_s in zip(kinds, p99s, strict=True))
    seen = f"{latency(times)}; p99 by kind: {by_kind}; the latest began {ms(late)} late"
    yield Figure(what, f"p99 < {ms(MAX_P99_S)}", seen, percentile(times, 0.99) < MAX_P99_S)
    warming = int(samples.memory[-1][0] * WARMING)
    warm = [point for point in samples.memory if point[0] > warming]
    grown = slope(warm)
    course = "each minute and last: " + ", ".join(f"{memory:.1f}" for _, memory in [*warm[::60], warm[-1]])
    later = slope(warm[len(warm) // 2 :])
    seen = f"{grown:+.2f} MB/min after {warming} s, {later:+.2f} in the second half; MB {course}"
    yield Figure(what, f"memory grows < {MEMORY_MB_MIN:.0f} MB/min", seen, grown < MEMORY_MB_MIN)
    first, last = (percentile(part, 0.5) for part in (samples.files[warming : 2 * warming], samples.files[-warming:]))
    seen = f"median {first} then, {last} at the end, most {max(samples.files)}"
    yield Figure(what, f"open files at most +{MORE_FILES}", seen, last - first <= MORE_FILES)
    seen = f"largest {max(samples.wal_sizes) / 1e6:.1f} MB in {len(samples.wal_sizes)} looks"
    yield Figure(what, "WAL < 16 MB at every second", seen, max(samples.wal_sizes) < WAL_BYTES)
