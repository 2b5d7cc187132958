"""A service in a process of its own: its accounts, its database file, its pages, its process and its log."""

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.support.processes import children
from tests.support.server import NO_FILE, ROOT, Server, wait_until
from torture.figure import Figure

PASSWORD = "correct horse battery staple"
FILE = "pocketbell.db"
TOKEN = re.compile(r'name="csrf" value="([^"]+)"')
ADDRESS = re.compile(r"/p/([0-9A-Za-z]{7})\b")
LOGGED_FAULT = re.compile(
    r"Traceback \(most recent| failed: |\[ERROR\]|\[CRITICAL\]| ERROR |\"level\": \"(?:error|critical)"
)
SEED = """
import json, sys
import app
from core import accounts, alerts, devices
from process import clock
from store import database
app.app.open()
asked = json.load(sys.stdin)
made = []
for number, email in enumerate(asked["emails"]):
    with database.transaction(database.EVERYBODY):
        account = accounts.create_account(email, "scale", "UTC", clock.now_ms())
    if asked["password"]:
        accounts.set_password(account, accounts.password_hash(asked["password"]))
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


def in_process(script: str, data_dir: Path, stdin: Any = None, **environ: str) -> str:
    """Run Python with the product's modules on that data directory; returns what it printed."""
    known = {**NO_FILE, "DATA_DIR": str(data_dir), **environ}
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(stdin), env=known, cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def seed(
    data_dir: Path,
    emails: Iterable[str],
    keys: int = 1,
    hooks: int = 1,
    password: str = "",
    frequency: str = "instant",
    subscriptions: Iterable[Any] = (),
    **environ: str,
) -> list[Seeded]:
    """Create accounts of plan scale with keys, alerts and, for each of `subscriptions`, a device, in one process."""
    wanted = {"emails": [*emails], "keys": keys, "hooks": hooks, "password": password, "frequency": frequency}
    wanted["subscriptions"] = [*subscriptions]
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return [Seeded(**one) for one in json.loads(in_process(SEED, data_dir, wanted, **environ))]


@contextmanager
def started(data_dir: Path, **options: Any) -> Iterator[Server]:
    """Start the service on its own directory, and wait until it is ready; it is killed at the end."""
    data_dir.parent.mkdir(exist_ok=True)
    server = Server(data_dir, **options)
    try:
        yield server.wait_until_ready()
    finally:
        if server.process.poll() is None:
            server.kill()


class SignedIn:
    """A signed-in browser: its cookie and the token of its forms."""

    def __init__(self, server: Server, email: str) -> None:
        self.cookie = ""
        self.token = self._token(server, "/app/login")
        if self.post(server, "/app/login", email=email, password=PASSWORD) != 303:
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


# --- the database file --------------------------------------------------------------------------------------


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
    write(
        file,
        "INSERT INTO notification (id, account_seq, title, body, status, created_at)"
        f" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number})"
        f" SELECT printf('%012x%04x%016x', {now}, {account_seq}, i), {account_seq}, 'MCP - t',"
        f" '{'b' * 1_000}', 'delivered', {now} FROM n",
        "INSERT INTO notification_day (account_seq, day, notification_count)"
        f" VALUES ({account_seq}, '', {number}) ON CONFLICT (account_seq, day)"
        " DO UPDATE SET notification_count = excluded.notification_count",
    )


def integrity(file: Path) -> str:
    """SQLite's integrity check of the whole file and its references: `ok` if it is sound."""
    said = [row[0] for row in rows(file, "PRAGMA integrity_check")]
    return "; ".join(said + [f"reference of {row[0]}" for row in rows(file, "PRAGMA foreign_key_check")])


# --- the process --------------------------------------------------------------------------------------------


def worker_pid(server: Server) -> int:
    """The process id of the worker."""
    return int(wait_until(lambda: children(server.process.pid))[0])


def forget_peak(pid: int) -> None:
    """Reset the peak VmHWM."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def logged_faults(server: Server) -> Figure:
    """A row about errors in the log."""
    found = [match.start() for match in LOGGED_FAULT.finditer(server.log)]
    for place in found[:3]:
        tell("in the log", server.log[max(0, place - 200) : place + 1500])
    return Figure("errors in the log", "0", str(len(found)), not found)


def tell(what: str, *details: object) -> None:
    """Print findings in full, beside the table."""
    for detail in details:
        print(f"    {what}:", detail, file=sys.stderr, flush=True)
