"""What the parts share: a service with accounts, keys and alerts, timed requests, writers in threads."""

import http.client
import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.support.push_service import PushService
from tests.support.server import NO_FILE, ROOT, Server, bearer
from torture.client import counted

SEND = "/api/v1/notifications/send"
METRICS = "/api/webhooks/custom"
ERROR = {"ok": bool, "error": str, "code": str, "statusCode": int}
PASSWORD = "correct horse battery staple"
TOKEN = re.compile(r'name="csrf" value="([^"]+)"')
BATCH = 20  # metrics per request
SEED = """
import json, os, sys
from core import accounts
from core import alerts
from process import clock
import config
from store import database
from core import devices
asked = json.load(sys.stdin)
database.open_database(config.load(os.environ).database)
made = []
for number, email in enumerate(asked["emails"]):
    with database.transaction(database.EVERYBODY):
        account = accounts.create_account(email, "scale", "UTC", clock.now_ms())
    if asked["password"]:
        accounts.set_password(account, accounts.password_hash(asked["password"]))
    if asked["quiet_hours"]:
        accounts.set_quiet_hours(account, asked["quiet_hours"])
    keys = [accounts.create_key(account.seq, f"key {n}", clock.now_ms())[1] for n in range(asked["keys"])]
    rows = [alerts.create_alert(account.seq, {"name": f"Alert {n}", "frequency": asked["frequency"]}, clock.now_ms())
            for n in range(asked["hooks"])]
    for subscription in asked["subscriptions"][number : number + 1]:
        devices.add_device(account.seq, {"kind": "webpush", "subscription": subscription}, clock.now_ms())
    made.append({"seq": account.seq, "email": email, "keys": keys, "codes": [row.short_code for row in rows],
                 "alerts": [row.id for row in rows]})
print(json.dumps(made))
"""


class Seeded(NamedTuple):
    """An account with its full keys, and its alerts' short codes and ids."""

    seq: int
    email: str
    keys: list[str]
    codes: list[str]
    alerts: list[str]


def seed(data_dir: Path, emails: Iterable[str], keys: int = 1, hooks: int = 1, **more: Any) -> list[Seeded]:
    """Create accounts of plan scale with keys, alerts and, for each of `subscriptions`, a device, in one process.

    `more` may contain `password`, `quiet_hours`, `frequency`, `subscriptions`, `webpush_hosts` and `environ`.
    """
    asked = {"emails": list(emails), "keys": keys, "hooks": hooks, "password": None, "quiet_hours": None}
    asked |= {"frequency": "instant", "subscriptions": [], **more}
    environ = {
        **NO_FILE,
        "DATA_DIR": str(data_dir),
        **asked.pop("environ", {}),
    }
    script = SEED
    if hosts := asked.pop("webpush_hosts", None):
        environ["WEBPUSH_HOSTS"] = hosts
        script = f"import app\napp.app.open()\n{SEED}"  # opening tells push which hosts are allowed
    data_dir.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(asked), env=environ, cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [Seeded(**one) for one in json.loads(done.stdout)]


class SignedIn:
    """A signed-in browser: its cookie and the token of its forms."""

    def __init__(self, server: Server, email: str) -> None:
        self.cookie = ""
        self.token = self._token(server, "/app/login")
        form = {"email": email, "password": PASSWORD}
        if self.post(server, "/app/login", **form) != 303:
            raise RuntimeError("signing in failed")
        self.token = self._token(server, "/app/alerts/new")

    def post(self, server: Server, path: str, **form: str) -> int:
        """The status of a submitted form."""
        headers = {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded"}
        answer = server.request("POST", path, urlencode({"csrf": self.token, **form}), headers)
        self._keep(answer)
        return int(answer.status)

    def page(self, server: Server, path: str) -> str:
        """The HTML of a page."""
        answer = server.request("GET", path, headers={"Cookie": self.cookie})
        self._keep(answer)
        return str(answer.text)

    def _token(self, server: Server, path: str) -> str:
        return TOKEN.search(self.page(server, path))[1]

    def _keep(self, answer: Any) -> None:
        for line in answer.headers.get_all("Set-Cookie", []):
            for name, morsel in SimpleCookie(line).items():
                self.cookie = f"{name}={morsel.value}"


class Timed(NamedTuple):
    """The result of a request and its duration; status 0 if there was no answer."""

    status: int
    text: str
    began: float
    seconds: float

    @property
    def json(self) -> Any:
        """The body, or None if it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @property
    def is_error_in_shape(self) -> bool:
        """Whether it is a 5xx with a REST error body of the same status."""
        body = self.json
        fits = isinstance(body, dict) and all(isinstance(body.get(name), kind) for name, kind in ERROR.items())
        return self.status >= 500 and fits and body["statusCode"] == self.status and body["ok"] is False


def timed(server: Server, method: str, path: str, body: Any = None, key: str | None = None, **more: Any) -> Timed:
    """Send one request on a new connection, with `body` as JSON. No answer counts as status 0."""
    data = body if body is None or isinstance(body, str) else json.dumps(body)
    headers = bearer(key) | more.pop("headers", {})
    began = time.monotonic()
    try:
        answer = server.request(method, path, data, headers, **more)
        status, text = answer.status, answer.text
    except (OSError, http.client.HTTPException, ValueError) as error:
        status, text = 0, type(error).__name__
    return Timed(status, text, began, time.monotonic() - began)


def send(server: Server, key: str, title: str = "t", body: str = "b", **more: Any) -> Timed:
    """Send a notification through the REST API."""
    return timed(server, "POST", SEND, {"title": title, "body": body}, key, **more)


def happen(server: Server, code: str, message: str = "m", **more: Any) -> Timed:
    """Send an event to an alert's address."""
    return timed(server, "POST", f"/p/{code}", {"message": message}, **more)


def measure(server: Server, key: str, project: str, **more: Any) -> Timed:
    """Store a batch of metrics in a new project."""
    metrics = [{"metricId": f"m{n}", "metricName": "M", "value": n} for n in range(BATCH)]
    return timed(server, "POST", METRICS, {"projectId": project, "metrics": metrics}, key, **more)


def stored_id(answer: Timed) -> str | None:
    """The notification's id in a 200 of a send or a webhook, or None."""
    body = answer.json if answer.status == 200 else None
    if not isinstance(body, dict):
        return None
    return body.get("notificationId") or body.get("notification", {}).get("id")


def rows(file: Path, statement: str, values: Iterable[Any] = ()) -> list[Any]:
    """Query the database file from outside the service."""
    with closing(sqlite3.connect(file, timeout=10)) as connection:
        return connection.execute(statement, tuple(values)).fetchall()


def write(file: Path, *statements: str) -> None:
    """Change the database file from outside the service."""
    with closing(sqlite3.connect(file, timeout=10)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def fill(file: Path, account_seq: int, number: int) -> None:
    """Add that many notifications of 1,000 characters, so that there is something to copy or search."""
    now = time.time_ns() // 1_000_000
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(
            "INSERT INTO notification (id, account_seq, title, body, status, created_at)"
            " VALUES (?, ?, 'MCP - t', ?, 'delivered', ?)",
            [(f"{now:012x}{account_seq:04x}{n:016x}", account_seq, "b" * 1_000, now) for n in range(number)],
        )
        connection.execute(
            "INSERT INTO notification_day (account_seq, day, notification_count) VALUES (?, '', ?)"
            " ON CONFLICT (account_seq, day) DO UPDATE SET notification_count = excluded.notification_count",
            (account_seq, number),
        )


def integrity(file: Path) -> str:
    """SQLite's integrity check of the whole file and its references: `ok` if it is sound."""
    said = [row[0] for row in rows(file, "PRAGMA integrity_check")]
    return "; ".join(said + [f"reference of {row[0]}" for row in rows(file, "PRAGMA foreign_key_check")])


@contextmanager
def push_stand_in() -> Iterator[PushService]:
    """A stand-in Web Push service that ignores clients that are killed while they wait for it."""
    service = PushService()
    service.server.handle_error = lambda *_: None
    try:
        yield service
    finally:
        service.close()


class Crowd:
    """Threads that repeat their work until they are told to stop; keeps the first error of each."""

    def __init__(self, *works: Callable[[], object]) -> None:
        self.ending = threading.Event()
        self.faults: list[BaseException] = []
        self.threads = [threading.Thread(target=self._repeat, args=(work,), daemon=True) for work in works]
        for thread in self.threads:
            thread.start()

    def _repeat(self, work: Callable[[], object]) -> None:
        try:
            while not self.ending.is_set():
                work()
        except Exception as fault:
            self.faults.append(fault)

    def end(self) -> None:
        """Let each thread finish; raise an error that one of them had."""
        self.ending.set()
        for thread in self.threads:
            thread.join(60)
        if self.faults:
            raise self.faults[0]


class HealthWatch:
    """Requests /healthz every 100 ms from its own thread, as long as the block lasts."""

    def __init__(self, server: Server) -> None:
        self.server, self.seen = server, list[Timed]()

    def __enter__(self) -> "HealthWatch":
        self.crowd = Crowd(self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        self.crowd.end()

    def _ask(self) -> None:
        self.seen.append(timed(self.server, "GET", "/healthz"))
        time.sleep(max(0.0, 0.1 - self.seen[-1].seconds))

    @property
    def told(self) -> str:
        """The number of requests, the median and maximum latency, and the statuses."""
        times = sorted(one.seconds * 1000 for one in self.seen)
        return (
            f"healthz asked {len(times)} times: median {times[len(times) // 2]:.0f} ms, worst {times[-1]:.0f} ms,"
            f" statuses {counted(one.status for one in self.seen)}"
        )

    @property
    def worst_s(self) -> float:
        """The longest latency."""
        return max(one.seconds for one in self.seen)
