"""kill -9 of the whole service under mixed load, many times on one data directory."""

import http.client
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.schemas import as_of_now
from tests.support.server import OWNER, Server
from torture.client import counted
from torture.figure import Figure
from torture.load import (
    BATCH,
    PASSWORD,
    Seeded,
    SignedIn,
    happen,
    integrity,
    measure,
    rows,
    seed,
    send,
    stored_id,
    timed,
)

ROUNDS = 50
HOOKS = 24
ASKED_AGAIN = 15  # revoked codes and keys of a round to check over HTTP
ADDRESS = re.compile(r"/p/([0-9A-Za-z]{7})\b")


class Promises:
    """Everything that the service has acknowledged, over all rounds."""

    def __init__(self) -> None:
        self.ids: list[str] = []  # notifications
        self.batches: list[str] = []  # projects whose batch was stored
        self.made: list[str] = []  # ids of keys
        self.revoked: list[tuple[str, str]] = []  # id, key
        self.dead_codes: list[str] = []
        self.other: list[int] = []  # statuses that are neither a success nor a rate limit
        self.numbers = iter(range(10**9))

    def note(self, answer: object, kept: list, promise: object) -> None:
        """Remember the promise of a successful answer."""
        if answer.status in (200, 201, 303):
            kept.append(promise)
        elif answer.status not in (0, 429):
            self.other.append(answer.status)

    @property
    def told(self) -> str:
        """The number of each kind."""
        return (
            f"{len(self.ids)} notifications, {len(self.batches)} batches, {len(self.made)} keys made,"
            f" {len(self.revoked)} revoked, {len(self.dead_codes)} codes rotated away"
        )


class Round:
    """One life of the service under load, and its end."""

    def __init__(self, server: Server, account: Seeded, owner: SignedIn, promises: Promises) -> None:
        self.server, self.account, self.owner, self.promises = server, account, owner, promises
        self.key = account.keys[0]
        self.killed = threading.Event()

    def run(self, lasting_s: float) -> None:
        """Send load, and kill -9 in the middle."""
        works = (self._send, self._send, self._happen, self._happen, self._measure, self._revoke, self._rotate)
        threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        time.sleep(lasting_s)
        self.server.kill()
        self.killed.set()
        for thread in threads:
            thread.join(20)

    def _repeat(self, work: Callable[[], None]) -> None:
        try:
            while not self.killed.is_set():
                work()
        except (OSError, http.client.HTTPException):
            return  # killed during this request

    def _send(self) -> None:
        answer = send(self.server, self.key, "t" * 40, "b" * 400)
        self.promises.note(answer, self.promises.ids, stored_id(answer))

    def _happen(self) -> None:
        answer = happen(self.server, random.choice(self.account.codes[1:]))
        self.promises.note(answer, self.promises.ids, stored_id(answer))

    def _measure(self) -> None:
        project = f"project-{next(self.promises.numbers)}"
        self.promises.note(measure(self.server, self.key, project), self.promises.batches, project)

    def _revoke(self) -> None:
        made = timed(self.server, "POST", "/api/v1/api-keys/generate", {"name": "short-lived"}, self.key)
        if made.status != 201:
            return self.promises.note(made, [], None)
        key = made.json["apiKey"]
        self.promises.made.append(key["id"])
        ended = timed(self.server, "DELETE", f"/api/v1/api-keys/{key['id']}", key=self.key)
        return self.promises.note(ended, self.promises.revoked, (key["id"], key["fullKey"]))

    def _rotate(self) -> None:
        path = f"/app/alerts/{self.account.alerts[0]}"
        before = ADDRESS.search(self.owner.page(self.server, path))[1]
        if self.owner.post(self.server, f"{path}/rotate") == 303:
            self.promises.dead_codes.append(before)


class Seen:
    """What was wrong after the restarts."""

    def __init__(self) -> None:
        self.alive_keys = self.alive_codes = self.asked_keys = self.asked_codes = 0
        self.damaged: list[str] = []

    def look(self, server: Server, promises: Promises) -> None:
        """Check over HTTP what was revoked or rotated last, and with SQLite the integrity of the file."""
        for _, key in promises.revoked[-ASKED_AGAIN:]:
            self.alive_keys += timed(server, "GET", "/api/v1/stats", key=key).status != 401
            self.asked_keys += 1
        for code in promises.dead_codes[-ASKED_AGAIN:]:
            self.alive_codes += happen(server, code).status != 404
            self.asked_codes += 1
        said = integrity(server.data_dir / "pocketbell.db")
        if said != "ok":
            self.damaged.append(said)


def figures(scratch: Path) -> Iterator[Figure]:
    """50 rounds of load and kill -9 at a random moment; then look for everything acknowledged."""
    data_dir, promises, seen = scratch / "data", Promises(), Seen()
    (account,) = seed(data_dir, [OWNER], hooks=HOOKS, password=PASSWORD)
    server = Server(data_dir).wait_until_ready()
    owner = SignedIn(server, OWNER)
    chance = random.Random(20)
    for _ in range(ROUNDS):
        Round(server, account, owner, promises).run(chance.uniform(0.05, 0.5))
        server = Server(data_dir).wait_until_ready()
        seen.look(server, promises)
    try:
        yield from _compared(server, account, promises, seen)
    finally:
        server.kill()


def _compared(server: Server, account: Seeded, promises: Promises, seen: Seen) -> Iterator[Figure]:
    what, file = f"kill -9 in {ROUNDS} rounds of mixed load", server.data_dir / "pocketbell.db"
    lost = set(promises.ids) - set(server.listed_ids(account.keys[0]))
    enough = min(len(promises.ids), len(promises.batches), len(promises.revoked), len(promises.dead_codes)) >= ROUNDS
    yield Figure(what, "every kind of load acknowledged once a round or more", promises.told, enough)
    yield Figure(what, "0 acknowledged notifications lost", f"{len(lost)} of {len(promises.ids)} lost", not lost)
    yield Figure(
        what, "every answer a success, a 429 or none", f"others {counted(promises.other)}", not promises.other
    )
    yield from _batches(what, file, promises)
    yield from _ended(what, file, promises, seen)
    yield _counters(what, file)
    said = integrity(file)
    yield Figure(
        what,
        "integrity_check ok after every restart",
        f"ok after {ROUNDS - len(seen.damaged)} of {ROUNDS}, {said} at the end",
        said == "ok" and not seen.damaged,
    )


def _batches(what: str, file: Path, promises: Promises) -> Iterator[Figure]:
    counts = dict(rows(file, as_of_now("SELECT project_id, count(*) FROM metric GROUP BY project_id")))
    missing = [project for project in promises.batches if counts.get(project) != BATCH]
    halves = [project for project, count in counts.items() if count != BATCH]
    told = f"{len(missing)} of {len(promises.batches)} not whole"
    yield Figure(what, "0 acknowledged batches of metrics lost", told, not missing)
    yield Figure(what, "0 half batches", f"{len(halves)} of {len(counts)} with other than {BATCH} rows", not halves)


def _ended(what: str, file: Path, promises: Promises, seen: Seen) -> Iterator[Figure]:
    keys = {row[0] for row in rows(file, "SELECT id FROM api_key")}
    lost = set(promises.made) - keys
    yield Figure(what, "0 acknowledged keys lost", f"{len(lost)} of {len(promises.made)} lost", not lost)
    live = {row[0] for row in rows(file, "SELECT id FROM api_key WHERE revoked_at IS NULL")}
    alive = sum(key_id in live for key_id, _ in promises.revoked)
    told = f"{alive} of {len(promises.revoked)} in the file, {seen.alive_keys} of {seen.asked_keys} asked"
    yield Figure(what, "0 revoked keys alive", told, alive + seen.alive_keys == 0)
    codes = {row[0] for row in rows(file, "SELECT short_code FROM alert")}
    alive = len(codes & set(promises.dead_codes))
    told = f"{alive} of {len(promises.dead_codes)} in the file, {seen.alive_codes} of {seen.asked_codes} asked"
    yield Figure(what, "0 old codes alive after a rotation", told, alive + seen.alive_codes == 0)


def _counters(what: str, file: Path) -> Figure:
    accounts = rows(
        file,
        "SELECT a.notification_count - (SELECT count(*) FROM notification n WHERE n.account_seq = a.account_seq"
        " AND NOT n.is_digest), a.notification_count - (SELECT coalesce(sum(d.notification_count), 0)"
        " FROM notification_day d WHERE d.account_seq = a.account_seq AND d.day <> '')"
        " FROM notification_day a WHERE a.day = ''",
    )
    alerts = rows(
        file,
        "SELECT a.notification_count - (SELECT count(*) FROM notification n WHERE n.alert_seq = a.seq) FROM alert a",
    )
    off = sum(abs(number) for row in accounts + alerts for number in row)
    told = f"off by {off} over {len(accounts)} account, its days and {len(alerts)} alerts"
    return Figure(what, "counters equal rows", told, off == 0)
