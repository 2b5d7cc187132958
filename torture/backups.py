"""`flask backup` under load: copies contain everything acknowledged and can be served, and writers hardly notice."""

import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from tests.support.push_service import Browser, PushService
from tests.support.server import OWNER, Server, wait_until
from torture.figure import Figure
from torture.load import Answer, Crowd, asked, happen, percentile, send, stored_id
from torture.service import FILE, Seeded, fill, integrity, rows, seed, started

BACKUPS, WRITERS, KEYS, HOOKS = 5, 4, 12, 30
CALM_S = 4.0
# Writers' pauses, by backup; with slow writers, the WAL holds the last seconds' rows.
PAUSES_S = (0.004, 0.004, 0.004, 0.15, 0.15)
STALL_S = 0.25
FIRST_ROWS = 6_000  # notifications before the first backup


class Writers:
    """Four writers, two with the REST API and two with webhooks. Keeps each answer with its time."""

    def __init__(self, server: Server, account: Seeded) -> None:
        self.server, self.account, self.numbers = server, account, count()
        self.answers: list[tuple[float, Answer]] = []
        self.pause_s = PAUSES_S[0]
        self.crowd = Crowd(*[self._send, self._happen] * (WRITERS // 2))

    def _keep(self, answer: Answer) -> None:
        self.answers.append((time.monotonic(), answer))
        time.sleep(self.pause_s)

    def _send(self) -> None:
        self._keep(send(self.server, self.account.keys[next(self.numbers) % KEYS], body="b" * 1_000))

    def _happen(self) -> None:
        answer = happen(self.server, self.account.codes[next(self.numbers) % HOOKS])
        if answer.status != 429:  # the limit is 60 a minute
            self._keep(answer)
        time.sleep(0.05)

    def ids(self, before: float) -> set[str | None]:
        """The ids that were acknowledged before a moment."""
        return {stored_id(answer) for at, answer in list(self.answers) if at < before and answer.status == 200}

    def slowest_s(self, since: float, until: float) -> float:
        """The longest latency of a request that overlapped this period."""
        return max(one.seconds for at, one in self.answers if at > since and one.began < until)


def figures(scratch: Path) -> Iterator[Figure]:
    """Four writers, a calm period, five backups, and a new service on each copy."""
    what, data_dir = f"flask backup, {BACKUPS} times under {WRITERS} writers", scratch / "data"
    with closing(PushService()) as push_service:
        yield from _backed_up(what, data_dir, push_service)


def _backed_up(what: str, data_dir: Path, push_service: PushService) -> Iterator[Figure]:
    scratch, browser = data_dir.parent, push_service.browser()
    (account,) = seed(
        data_dir, [OWNER], KEYS, HOOKS, subscriptions=[browser.subscription], WEBPUSH_HOSTS=push_service.origin
    )
    fill(data_dir / FILE, account.seq, FIRST_ROWS)
    with started(data_dir, WEBPUSH_HOSTS=push_service.origin) as server:
        send(server, account.keys[0])
        writers = Writers(server, account)
        time.sleep(1)
        began = time.monotonic()
        time.sleep(CALM_S)
        calm = (began, time.monotonic())
        taken = []
        for number, pause_s in enumerate(PAUSES_S):
            writers.pause_s = pause_s
            taken.append(_backup(server, writers, scratch / f"copy-{number}.db"))
        writers.crowd.end()
        yield from _stalls(what, writers, calm, [(begin, end) for begin, end, _ in taken])
        copies = [scratch / f"copy-{number}.db" for number in range(BACKUPS)]
        yield from _copies(what, copies, [ids for *_, ids in taken])
        server.kill()
        yield _served(what, copies, account, browser, push_service.origin)


def _backup(server: Server, writers: Writers, target: Path) -> tuple[float, float, set[str | None]]:
    """Run a backup; when it began and ended, and what had been acknowledged before."""
    time.sleep(1)
    began = time.monotonic()
    acknowledged = writers.ids(began)
    server.flask("backup", str(target))
    ended = time.monotonic()
    time.sleep(0.5)
    return began, ended, acknowledged


def _stalls(what: str, writers: Writers, calm: tuple, backups: list[tuple]) -> Iterator[Figure]:
    statuses = {one.status for _, one in writers.answers}
    yield Figure(what, "every write stored", f"{len(writers.answers)} writes, statuses {statuses}", statuses == {200})
    times = [writers.slowest_s(*span) * 1000 for span in backups]
    quiet = [one.seconds * 1000 for at, one in writers.answers if calm[0] < at < calm[1]]
    lasting = max(end - begin for begin, end in backups)
    seen = (
        f"{max(times):.0f} ms in {BACKUPS} backups ({', '.join(f'{one:.0f}' for one in times)}; each took up to"
        f" {lasting:.1f} s), {max(quiet):.0f} ms in {CALM_S:.0f} s without (median {percentile(quiet, 0.5):.0f} ms)"
    )
    yield Figure(what, "longest stall of a writer < 250 ms", seen, max(times) < STALL_S * 1000)


def _copies(what: str, copies: list[Path], acknowledged: list[set[str | None]]) -> Iterator[Figure]:
    missing = 0
    for copy, ids in zip(copies, acknowledged, strict=True):
        missing += len(ids - {row[0] for row in rows(copy, "SELECT id FROM notification")})
    seen = f"{missing} of {', '.join(str(len(ids)) for ids in acknowledged)} missing"
    yield Figure(what, "0 rows missing that were acknowledged before", seen, not missing and bool(acknowledged[0]))
    said = {integrity(copy) for copy in copies}
    yield Figure(what, "integrity ok", "; ".join(said), said == {"ok"})
    modes = {stat.S_IMODE(copy.stat().st_mode) for copy in copies}
    yield Figure(what, "mode 0600", ", ".join(f"{mode:04o}" for mode in modes), modes == {0o600})


def _served(what: str, copies: list[Path], account: Seeded, browser: Browser, origin: str) -> Figure:
    """Start a service on each copy: it must list its rows, and push to the old device with the old key."""
    reached = listed = 0
    for number, copy in enumerate(copies):
        data_dir = copy.parent / f"again-{number}"
        data_dir.mkdir(mode=0o700)
        shutil.copy(copy, data_dir / FILE)
        with started(data_dir, WEBPUSH_HOSTS=origin) as server:
            before = len(browser.messages)
            answer = send(server, account.keys[0], f"from copy {number}")
            wait_until(lambda before=before: len(browser.messages) > before)
            pushed = [one["notification"]["title"] for one in browser.messages[before:]]
            reached += answer.json["notification"]["status"] == "delivered" and f"MCP - from copy {number}" in pushed
            stats = asked(server, "GET", "/api/v1/stats", key=account.keys[1]).json["stats"]
            kept = rows(copy, "SELECT count(*) FROM notification WHERE NOT is_digest")[0][0]
            listed += stats["totalNotificationsAllTime"] == kept + 1
    keys = {one["authorization"].partition("k=")[2] for one in browser.pushes}
    seen = f"{reached} of {BACKUPS} reached the device, {listed} of {BACKUPS} count all, {len(keys)} VAPID key"
    must = "each copy serves: same device, same VAPID key"
    return Figure(what, must, seen, reached == listed == BACKUPS and len(keys) == 1)
