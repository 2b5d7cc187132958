"""Long backlogs: a device with 80,000 pending notifications is removed, and 500,000 retries are due.

The backlog is written directly into the file. Other accounts keep sending meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.push_service import Browser
from tests.support.server import Server, wait_until
from torture.client import asked, cpu_s, ms, percentile, worker_pid
from torture.figure import Figure
from torture.load import Crowd, Seeded, push_stand_in, rows, seed, send, write

PENDING, DUE = 80_000, 500_000
OTHERS = 4  # threads that send for another account
WATCHED_S = 20.0
BACKLOG = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number})"
    " INSERT INTO notification (id, account_seq, title, body, status, created_at)"
    " SELECT printf('%032x', i), {account}, 'MCP - t', 'b', 'pending', {now} FROM n"
)
ATTEMPTS = (
    "INSERT INTO delivery SELECT n.seq, d.seq, 'pending', 0, {now}, NULL, NULL FROM notification n"
    " JOIN device d ON d.account_seq = n.account_seq WHERE n.account_seq = {account} AND n.status = 'pending'"
)


def figures(scratch: Path) -> Iterator[Figure]:
    """Removed by its key, found dead, killed in the middle; then the cost of a due backlog."""
    with push_stand_in() as push_service:
        for name, remove in (("by its key", by_key), ("as its service says 410", as_dead)):
            yield from _removed(scratch / remove.__name__, push_service.browser(), push_service.origin, name, remove)
        yield from _killed(scratch / "killed", push_service.browser(), push_service.origin)
        yield from _due(scratch / "due", push_service.browser(), push_service.origin)


class Backlog:
    """Two accounts: the first has a device with a backlog, the second keeps sending."""

    def __init__(self, directory: Path, browser: Browser, origin: str, number: int) -> None:
        directory.mkdir()
        self.browser, self.data_dir, self.origin = browser, directory / "data", origin
        self.file = self.data_dir / "pocketbell.db"
        self.owner, self.other = seed(
            self.data_dir,
            ["owner@example.org", "other@example.org"],
            subscriptions=[browser.subscription],
            webpush_hosts=origin,
        )
        values = {"number": number, "account": self.owner.seq, "now": time.time_ns() // 1_000_000 + 3_600_000}
        write(self.file, BACKLOG.format(**values), ATTEMPTS.format(**values))

    def server(self, **environ: str) -> Server:
        """A service with these accounts."""
        return Server(self.data_dir, WEBPUSH_HOSTS=self.origin, LOG_LEVEL="warning", **environ).wait_until_ready()

    def pending(self) -> int:
        """The number of pending deliveries."""
        return int(rows(self.file, "SELECT count(*) FROM delivery WHERE status = 'pending'")[0][0])

    def wrong(self) -> int:
        """The number of pending notifications without a pending delivery, and the other way round."""
        return int(
            rows(
                self.file,
                "SELECT count(*) FROM notification n WHERE (status = 'pending') <> EXISTS"
                " (SELECT 1 FROM delivery WHERE notification_seq = n.seq AND status = 'pending')",
            )[0][0]
        )


def by_key(server: Server, backlog: Backlog) -> tuple[int, float]:
    """DELETE the device with its owner's key; the web app calls the same function."""
    key = backlog.owner.keys[0]
    write(backlog.file, "UPDATE device SET api_key_seq = (SELECT min(seq) FROM api_key)")
    (device,) = asked(server.port, "GET", "/api/v1/devices", key=key).json["devices"]
    answer = asked(server.port, "DELETE", f"/api/v1/devices/{device['id']}", key=key, timeout=60)
    return answer.status, answer.took_s


def as_dead(server: Server, backlog: Backlog) -> tuple[int, float]:
    """The push service answers a send with 410."""
    backlog.browser.then(410)
    answer = send(server, backlog.owner.keys[0], timeout=60)
    return answer.status, answer.seconds


def _removed(
    directory: Path, browser: Browser, origin: str, name: str, remove: Callable[[Server, Backlog], tuple[int, float]]
) -> Iterator[Figure]:
    backlog, took = Backlog(directory, browser, origin, PENDING), list[float]()
    server = backlog.server()
    try:
        crowd = _others(server, backlog.other, took)
        time.sleep(1)
        took.clear()
        began = time.monotonic()
        status, seconds = remove(server, backlog)
        wait_until(lambda: not backlog.pending(), 120)
        settled = time.monotonic() - began
        crowd.end()
    finally:
        server.kill()
    what = f"a device with {PENDING:,} pending is removed {name}"
    yield Figure(what, "answers within 1 s", f"{status} after {ms(seconds)}", status == 200 and seconds < 1)
    yield Figure(what, "settled within a minute", f"after {settled:.1f} s", settled < 60)
    p99 = percentile(took, 0.99)
    yield Figure(what, "others' sends p99 < 250 ms", f"{ms(p99)} of {len(took)}", p99 < 0.25)
    yield Figure(what, "every status as its attempts", f"{backlog.wrong()} are not", backlog.wrong() == 0)


def _others(server: Server, other: Seeded, took: list[float]) -> Crowd:
    def one() -> None:
        answer = send(server, other.keys[0])
        took.append(answer.seconds if answer.status in (200, 429) else 60.0)
        time.sleep(0.25)  # within the plan's limit

    return Crowd(*[one] * OTHERS)


def _killed(directory: Path, browser: Browser, origin: str) -> Iterator[Figure]:
    backlog = Backlog(directory, browser, origin, PENDING)
    server = backlog.server()
    try:
        by_key(server, backlog)
        wait_until(lambda: backlog.pending() < PENDING * 0.8, 30)
        server.kill()
        left = backlog.pending()
        server = backlog.server()
        began = time.monotonic()
        wait_until(lambda: not backlog.pending(), 120)
        settled = time.monotonic() - began
    finally:
        server.kill()
    what = f"SIGKILL while {PENDING:,} are settled, with {left:,} left"
    holds = settled < 60 and left > 0 and backlog.wrong() == 0
    yield Figure(what, "settled within a minute of the next start", f"after {settled:.1f} s", holds)


def _due(directory: Path, browser: Browser, origin: str) -> Iterator[Figure]:
    """500,000 retries are due: with a provider that is not configured, then with one that answers."""
    backlog = Backlog(directory, browser, origin, DUE)
    due = f"UPDATE delivery SET next_attempt_at = {time.time_ns() // 1_000_000 - 1_000}"
    write(backlog.file, due, "UPDATE device SET kind = 'fcm'")
    server = backlog.server()
    try:
        pid = worker_pid(server)
        time.sleep(3)
        before = cpu_s(pid)
        time.sleep(WATCHED_S)
        share = (cpu_s(pid) - before) / WATCHED_S
    finally:
        server.kill()
    what = f"{DUE:,} attempts are due"
    yield Figure(what, "< 5 % of a core while no provider takes them", f"{share:.1%}", share < 0.05)
    write(backlog.file, "UPDATE device SET kind = 'webpush'")
    server = backlog.server()
    try:
        time.sleep(2)
        before_messages = len(browser.pushes)
        time.sleep(WATCHED_S)
        rate = (len(browser.pushes) - before_messages) / WATCHED_S
    finally:
        server.kill()
    yield Figure(what, "100 attempts/s when a provider answers", f"{rate:.0f}/s", rate >= 100)
