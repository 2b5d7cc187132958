"""kill -9 of the whole service under mixed load, many times on one data directory. KILLS is the number of rounds.

Every second kill is the phone's too: its app loses the stream and what it had not read.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path

from tests.support.schemas import as_of_now
from tests.support.server import OWNER, Server, wait_until
from torture.figure import Figure
from torture.load import BATCH, SEND, Crowd, asked, counted, happen, measure, new_key, send, stored_id
from torture.phone import Phone
from torture.service import ADDRESS, FILE, PASSWORD, SignedIn, in_process, integrity, rows, seed

ROUNDS = int(os.environ.get("KILLS", "50"))
HOOKS, BEATS = 24, 40
ASKED_AGAIN = 15  # revoked codes and keys of a round to check over HTTP
SETTLED_WITHIN_S = 60.0
WHAT = f"kill -9 in {ROUNDS} rounds of mixed load"
MAKE_BEATS = f"""
import app
from core import heartbeats
from models import Account
from process import clock
app.app.open()
account = Account.find("{OWNER}")
for _ in range({BEATS}):
    heartbeats.create_heartbeat(account, dict(name="b", period="366d", grace="1m"), clock.now_ms())
"""


class Promises:
    """Everything that the service has acknowledged, over all rounds."""

    def __init__(self) -> None:
        self.ids: list[str] = []  # notifications
        self.batches: list[str] = []  # projects whose batch was stored
        self.made: list[str] = []  # ids of keys
        self.revoked: list[tuple[str, str]] = []  # id, key
        self.dead_codes: list[str] = []
        self.to_phone: list[str] = []  # texts
        self.acknowledged: list[str] = []  # ids of notifications
        self.beats: dict[str, bool] = {}  # by ping id: whether its last ping was a failure; none if that is unknown
        self.other: list[int] = []  # statuses that are neither a success nor a rate limit
        self.numbers = count()

    def note(self, status: int, kept: list, promise: object) -> bool:
        """Remember the promise of a successful answer."""
        is_kept = status in (200, 201, 303)
        if is_kept:
            kept.append(promise)
        elif status not in (0, 429):
            self.other.append(status)
        return is_kept

    @property
    def kinds(self) -> dict[str, int]:
        """The number of each kind."""
        all_kinds = {"notifications": self.ids, "batches": self.batches, "keys revoked": self.revoked}
        all_kinds |= {"codes rotated": self.dead_codes, "acknowledged": self.acknowledged}
        all_kinds |= {"to a phone": self.to_phone}
        return {name: len(kept) for name, kept in all_kinds.items()}


class Load:
    """The service's lives under load."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir, self.file = data_dir, data_dir / FILE
        self.account, self.listening = seed(
            data_dir, [OWNER, "phone@example.org"], keys=3, hooks=HOOKS, password=PASSWORD
        )
        in_process(MAKE_BEATS, data_dir)
        self.key, self.ringing_key, self.promises = *self.account.keys[:2], Promises()
        self.pings = [row[0] for row in rows(self.file, "SELECT ping_id FROM heartbeat ORDER BY seq")]
        self.chance = random.Random(20)
        self.server = Server(data_dir).wait_until_ready()
        self.owner = SignedIn(self.server, OWNER)
        self.phone = Phone(lambda: self.server, self.listening.keys[0])

    def round(self, is_phones: bool) -> None:
        """Send load, kill -9 in the middle, and start again."""
        works = (self._send, self._send, self._happen, self._happen, self._measure, self._revoke, self._rotate)
        crowd = Crowd(*works, self._send_to_phone, self._acknowledge, self._ping)
        time.sleep(self.chance.uniform(0.1, 0.8))
        if is_phones:
            self.phone.die()
        self.server.kill()
        crowd.stop()
        self.server = Server(self.data_dir).wait_until_ready()

    def _send(self) -> None:
        answer = send(self.server, self.key, "t" * 40, "b" * 400)
        self.promises.note(answer.status, self.promises.ids, stored_id(answer))

    def _happen(self) -> None:
        answer = happen(self.server, random.choice(self.account.codes[1:]))
        self.promises.note(answer.status, self.promises.ids, stored_id(answer))

    def _measure(self) -> None:
        project = f"project-{next(self.promises.numbers)}"
        self.promises.note(measure(self.server, self.key, project).status, self.promises.batches, project)

    def _revoke(self) -> None:
        if not (key := new_key(self.server, self.key, "short-lived")):
            return time.sleep(0.05)
        self.promises.made.append(key["id"])
        ended = asked(self.server, "DELETE", f"/api/v1/api-keys/{key['id']}", key=self.key)
        self.promises.note(ended.status, self.promises.revoked, (key["id"], key["fullKey"]))
        return time.sleep(0.05)  # a program makes 100 keys an hour

    def _rotate(self) -> None:
        path = f"/app/alerts/{self.account.alerts[0]}"
        before = ADDRESS.search(self.owner.page(self.server, path))[1]
        self.promises.note(self.owner.post(self.server, f"{path}/rotate"), self.promises.dead_codes, before)

    def _send_to_phone(self) -> None:
        text = f"to the phone {next(self.promises.numbers)}"
        answer = send(self.server, self.listening.keys[0], "t", text)
        self.promises.note(answer.status, self.promises.to_phone, text)

    def _acknowledge(self) -> None:
        body = {"title": "ring", "body": "b", "acknowledge": {"everyS": 60, "forS": 60}}
        if id_ := stored_id(asked(self.server, "POST", SEND, body, self.ringing_key)):
            answer = asked(self.server, "POST", f"/api/v1/notifications/{id_}/acknowledge", None, self.ringing_key)
            self.promises.note(answer.status, self.promises.acknowledged, id_)

    def _ping(self) -> None:
        """A failure or a success of each heartbeat in turn."""
        ping_id, fails = self.pings[next(self.promises.numbers) % BEATS], self.chance.random() < 0.5
        self.promises.beats.pop(ping_id, None)
        status = asked(self.server, "POST", f"/ping/{ping_id}{'/fail' if fails else ''}", "text").status
        if self.promises.note(status, [], None):
            self.promises.beats[ping_id] = fails


class Seen:
    """What was wrong after the restarts."""

    def __init__(self) -> None:
        self.alive_keys = self.alive_codes = self.asked_keys = self.asked_codes = 0
        self.damaged: list[str] = []

    def look(self, server: Server, promises: Promises) -> None:
        """Check over HTTP what was revoked or rotated last, and with SQLite the integrity of the file."""
        for _, key in promises.revoked[-ASKED_AGAIN:]:
            self.alive_keys += asked(server, "GET", "/api/v1/stats", key=key).status != 401
            self.asked_keys += 1
        for code in promises.dead_codes[-ASKED_AGAIN:]:
            self.alive_codes += happen(server, code).status != 404
            self.asked_codes += 1
        said = integrity(server.data_dir / FILE)
        if said != "ok":
            self.damaged.append(said)


def figures(scratch: Path) -> Iterator[Figure]:
    """Rounds of load and kill -9 at a random moment; then look for everything acknowledged."""
    load, seen = Load(scratch / "data"), Seen()
    try:
        for number in range(ROUNDS):
            load.round(is_phones=number % 2 == 1)
            seen.look(load.server, load.promises)
        yield from _compared(load, seen)
    finally:
        load.phone.is_over = True
        load.server.kill()


def _compared(load: Load, seen: Seen) -> Iterator[Figure]:
    promises, file = load.promises, load.file
    lost = set(promises.ids) - set(load.server.listed_ids(load.key))
    told = ", ".join(f"{number} {kind}" for kind, number in promises.kinds.items())
    must, fewest = "every kind of load acknowledged in every second round", min(promises.kinds.values())
    yield Figure(WHAT, must, told, fewest >= ROUNDS // 2)
    yield Figure(WHAT, "0 acknowledged notifications lost", f"{len(lost)} of {len(promises.ids)} lost", not lost)
    told = f"others {counted(promises.other)}"
    yield Figure(WHAT, "every answer a success, a 429 or none", told, not promises.other)
    yield from _batches(file, promises)
    yield from _ended(file, promises, seen)
    yield _counters(file)
    yield from _phone(load)
    yield from _changes(file, promises)
    said, damaged = integrity(file), len(seen.damaged)
    told = f"ok after {ROUNDS - damaged} of {ROUNDS}, {said} at the end"
    yield Figure(WHAT, "integrity_check ok after every restart", told, said == "ok" and not damaged)


def _batches(file: Path, promises: Promises) -> Iterator[Figure]:
    counts = dict(rows(file, as_of_now("SELECT project_id, count(*) FROM metric GROUP BY project_id")))
    missing = [project for project in promises.batches if counts.get(project) != BATCH]
    halves = [project for project, number in counts.items() if number != BATCH]
    told = f"{len(missing)} of {len(promises.batches)} not whole"
    yield Figure(WHAT, "0 acknowledged batches of metrics lost", told, not missing)
    yield Figure(WHAT, "0 half batches", f"{len(halves)} of {len(counts)} with other than {BATCH} rows", not halves)


def _ended(file: Path, promises: Promises, seen: Seen) -> Iterator[Figure]:
    keys = {row[0] for row in rows(file, "SELECT id FROM api_key")}
    lost = set(promises.made) - keys
    yield Figure(WHAT, "0 acknowledged keys lost", f"{len(lost)} of {len(promises.made)} lost", not lost)
    live = {row[0] for row in rows(file, "SELECT id FROM api_key WHERE revoked_at IS NULL")}
    alive = sum(key_id in live for key_id, _ in promises.revoked)
    told = f"{alive} of {len(promises.revoked)} in the file, {seen.alive_keys} of {seen.asked_keys} asked"
    yield Figure(WHAT, "0 revoked keys alive", told, alive + seen.alive_keys == 0)
    codes = {row[0] for row in rows(file, "SELECT short_code FROM alert")}
    alive = len(codes & set(promises.dead_codes))
    told = f"{alive} of {len(promises.dead_codes)} in the file, {seen.alive_codes} of {seen.asked_codes} asked"
    yield Figure(WHAT, "0 old codes alive after a rotation", told, alive + seen.alive_codes == 0)


def _counters(file: Path) -> Figure:
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
    told = f"off by {off} over {len(accounts)} accounts, their days and {len(alerts)} alerts"
    return Figure(WHAT, "counters equal rows", told, off == 0)


def _phone(load: Load) -> Iterator[Figure]:
    """What the app showed, once nothing is on its way to it."""
    pending = "SELECT count(*) FROM delivery WHERE status = 'pending'"
    wait_until(lambda: rows(load.file, pending) == [(0,)], SETTLED_WITHIN_S)
    sent, phone = set(load.promises.to_phone), load.phone
    lost, shown = sent - phone.came.keys(), Counter(phone.shown)
    told = f"{len(lost)} of {len(sent)} lost, {phone.connections} connections"
    yield Figure(WHAT, "the phone's app lost nothing acknowledged", told, not lost)
    twice = sum(number > 1 for number in shown.values())
    told = f"{twice} of {len(shown)}; {len(load.phone.listener.doubled)} came again with an id that it drops"
    yield Figure(WHAT, "it shows nothing twice", told, not twice)
    stored = {row[0] for row in rows(load.file, "SELECT body FROM notification")}
    strange = shown.keys() - stored
    yield Figure(WHAT, "it shows nothing that is not in the history", f"{len(strange)} of {len(shown)}", not strange)


def _changes(file: Path, promises: Promises) -> Iterator[Figure]:
    """Acknowledgements, and what was told of the heartbeats."""
    acknowledged = (
        "SELECT n.id FROM alarm a JOIN notification n ON n.seq = notification_seq WHERE a.state = 'acknowledged'"
    )
    forgotten = set(promises.acknowledged) - {row[0] for row in rows(file, acknowledged)}
    told = f"{len(forgotten)} of {len(promises.acknowledged)} forgotten"
    yield Figure(WHAT, "every acknowledgement kept", told, not forgotten)
    said = dict[str, list[str]]()
    for tag, title in rows(file, "SELECT tag, title FROM notification WHERE tag LIKE 'heartbeat %' ORDER BY seq"):
        said.setdefault(tag.split()[1], []).append(title.split()[-1])
    beats = rows(file, "SELECT id, ping_id, state FROM heartbeat")
    doubled = sum(one == other for titles in said.values() for one, other in pairwise(titles))
    other = [id_ for id_, _, state in beats if (said.get(id_, ["up"])[-1] == "down") != (state == "down")]
    wrong = [
        ping_id for _, ping_id, state in beats if promises.beats.get(ping_id, state == "down") != (state == "down")
    ]
    total, holds = sum(map(len, said.values())), bool(said) and not (doubled or other or wrong)
    told = f"{total} told, {doubled} doubled, {len(other)} not as it is, {len(wrong)} forgotten"
    yield Figure(WHAT, "each heartbeat's acknowledged change told once", told, holds)
