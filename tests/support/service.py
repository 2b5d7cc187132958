"""The service in this process: the application on its own database, its clock, callers with keys, and alerts."""

import atexit
import dataclasses
import functools
import json
import os
import secrets
import shutil
import tempfile
import threading
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

# Opening the application reads DATA_DIR; a test that names no directory gets this one.
os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="pocketbell-tests-")

import config
import tests.support.compiled  # noqa: F401 - before any application is made
from app import app, create_app
from core import accounts, alerts, batches, heartbeat_checks, pruning, scheduler
from models import sha256_of
from process import clock
from store import database
from store.rows import new_id
from tests.support import postgresql, recycling
from tests.support.memory import open_service
from tests.support.tables import spare_the_disk
from tests.support.times import NOW

# Building these statements with Peewee took a third of the time of a plain test.
ADD_ACCOUNT = (
    "INSERT INTO account (seq, email, plan, password_hash, time_zone, created_at, is_administrator)"
    " VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM account), ?, ?, ?, 'UTC', ?,"
    " CASE WHEN EXISTS (SELECT 1 FROM account) THEN 0 ELSE 1 END) RETURNING seq"
)
ADD_LINK = "INSERT INTO one_time_link (token_hash, account_seq, expires_at) VALUES (?, ?, ?)"
ADD_KEY = (
    "INSERT INTO api_key (id, account_seq, name, preview, key_hash, created_at)"
    " SELECT ?, seq, ?, ?, ?, ? FROM account WHERE email = ?"
)

EACH_ROUND = scheduler.RECORDS + scheduler.TIMED + scheduler.DELIVERIES
METRICS_TOKEN = "a-token-of-24-characters"
SCRATCH = Path(os.environ["DATA_DIR"])
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


class MovedClock:
    """A clock that moves only when a test moves it. Wall time and monotonic time move together by default."""

    def __init__(self) -> None:
        self.ms = NOW
        self.monotonic = 1000.0

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)
        self.monotonic += seconds

    def set_wall(self, ms: int) -> None:
        self.ms = ms


@dataclass
class Caller:
    """An HTTP client that sends an API key."""

    service: "Service"
    key: str
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, method, path, json=None, data=None, headers=None):
        sent = {"Authorization": f"Bearer {self.key}", **(headers or {})}
        return self.service.client.open(path, method=method, json=json, data=data, headers=sent)

    def get(self, path, **more):
        return self.request("GET", f"/api/v1{path}", **more)

    def post(self, path, json=None, **more):
        return self.request("POST", f"/api/v1{path}", json=json, **more)

    def patch(self, path, json=None, **more):
        return self.request("PATCH", f"/api/v1{path}", json=json, **more)

    def delete(self, path, **more):
        return self.request("DELETE", f"/api/v1{path}", **more)

    def send(self, title="Backup", body="finished", **more):
        return self.post("/notifications/send", {"title": title, "body": body}, **more)

    def alerts(self):
        return self.get("/alerts").json["alerts"]

    def listed(self, query=""):
        return self.get(f"/notifications{query}").json["notifications"]


class Hook:
    """An alert and its webhook address."""

    def __init__(self, service, email, url):
        self.service, self.email, self.url = service, email, url

    @property
    def code(self):
        return self.url.rpartition("/")[2]

    @property
    def id(self):
        """The alert's id."""
        return database.run("SELECT id FROM alert WHERE short_code = ?", (self.code,)).fetchone()[0]

    def post(self, json=None, data=None, address="203.0.113.7", headers=None):
        """POST to the address; `json` is an object, `data` raw bytes or text, `address` the sender's."""
        sender = {"REMOTE_ADDR": address}
        return self.service.client.post(
            f"/p/{self.code}", json=json, data=data, headers=headers, environ_overrides=sender
        )

    def set(self, *options):
        """`flask alert set` with these options."""
        result = self.service.flask("alert", "set", self.email, self.id, *options)
        assert result.exit_code == 0, result.output


@functools.cache
def without_compatibility():
    """The application with COMPATIBILITY=off. Making the routes takes longer than all else: other tests share one."""
    return create_app(config.load({"COMPATIBILITY": "off"}))


@functools.cache
def empty_database():
    """A database file with all tables: copying it is faster than making them."""
    path = SCRATCH / "empty.db"
    database.open_database(path)
    database.close()
    return path


class Service:
    """The application on its own database, with its command line."""

    def __init__(self, data_dir, **environ):
        self.data_dir = data_dir
        # What a process on the same database needs, beside DATA_DIR.
        self.where = postgresql.variables(not (data_dir / "postgresql").exists())
        self.settings = config.load({"DATA_DIR": str(data_dir), **self.where, **environ})
        self.app = app if self.settings.compatibility else without_compatibility()
        self._is_file = isinstance(self.settings.database, Path)
        self._recycling = recycling if self._is_file else import_module("tests.support.recycling_postgresql")
        self._mark = self.settings.database if self._is_file else data_dir / "postgresql"
        if self._take_database():
            with recycling.taken():
                open_service(self.app, self.settings)
            pruning._looked = clock.now_ms(), clock.monotonic_s()
        else:
            is_new = self._make_database()
            open_service(self.app, self.settings)
            spare_the_disk()
            # The first round of the worker looks at the clock, and finds nothing to remove in a new database.
            (pruning.believes_clock if is_new else pruning.prune)(clock.now_ms())
        self._recycling.note(self.settings.database)
        self.client = self.app.test_client(use_cookies=False)  # keeping them took a quarter of a request
        self._removals = scheduler.Lane(scheduler.REMOVALS, threading.Event())

    def sharing(self, redis_url, **settings):
        """The same service, but with this Redis or none, as if several processes could use its database."""
        self.settings = dataclasses.replace(self.settings, redis_url=redis_url, **settings)
        open_service(self.app, self.settings)
        return self

    def leave_database(self):
        """Leave the database to the next test: this one has ended."""
        self._recycling.leave(self.settings.database)

    def _take_database(self):
        """Take the database that the test before has left, with what a worker's first round writes, if it can."""
        if self._mark.exists() or not self._recycling.has_left(self.settings.database):
            return False
        self._make_directory()
        note = pruning.NOTE, json.dumps([clock.now_ms(), None])
        return self._recycling.take(self.settings.database, *note)

    def _make_directory(self):
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.data_dir / "secret_key").write_text("0" * 64)  # to make one waits for the disk
        if not self._is_file:
            self._mark.touch()

    def _make_database(self):
        """Give the service an empty database, unless its directory was used before; returns whether it did."""
        if self._mark.exists():
            return False
        self._make_directory()
        if self._is_file:
            shutil.copyfile(empty_database(), self.settings.database)
        else:
            postgresql.empty()
        return True

    def flask(self, *args, stdin=None):
        """Run a command and return click's result (output, exit_code)."""
        return self.app.test_cli_runner().invoke(args=[str(arg) for arg in args], input=stdin)

    def account(self, email="owner@example.org", plan="starter", password_hash=None):
        """Make an account as the command line does, in a tenth of the time; with a link unless it has a password."""
        now = clock.now_ms()
        with database.transaction(database.EVERYBODY):
            (seq,) = database.run(ADD_ACCOUNT, (email, plan, password_hash, now)).fetchone()
            if password_hash is None:
                database.run(ADD_LINK, (secrets.token_bytes(32), seq, now + accounts.LINK_LIFE_MS))
        return email

    def caller(self, email="owner@example.org", name="test"):
        now, full_key = clock.now_ms(), accounts.KEY_PREFIX + secrets.token_hex(24)
        with database.transaction(database.EVERYBODY):
            added = (new_id(now), name, full_key[:16], sha256_of(full_key), now, email)
            assert database.run(ADD_KEY, added).rowcount == 1
        return Caller(self, full_key)

    def alert(self, *options, email="owner@example.org", name="Backups"):
        """Make an alert with the options of `flask alert create`; without any it takes a third of the time."""
        if not options:
            made = alerts.create_alert(accounts.find_account(email).seq, {"name": name}, clock.now_ms())
            return Hook(self, email, f"{self.settings.public_url}/p/{made.short_code}")
        result = self.flask("alert", "create", email, name, *options)
        assert result.exit_code == 0, result.output
        return Hook(self, email, result.stdout.strip())  # stderr may warn of a template

    def work(self):
        """One round of the background worker, which has run all along; it removes what is old as often as it does."""
        if heartbeat_checks._looked:
            wall, monotonic_s = heartbeat_checks._looked
            ran_s = clock.monotonic_s() - monotonic_s
            heartbeat_checks._looked = wall + round(ran_s * 1000), monotonic_s + ran_s
        scheduler.run_due(clock.now_ms(), EACH_ROUND)
        self._removals._round()
        for kind in batches.ALL:
            kind.finish()


def last(caller):
    """The title, without its prefix, and the body of the newest notification."""
    newest = caller.listed("?limit=1")[0]
    assert newest["title"].startswith("MCP - ")
    return newest["title"].removeprefix("MCP - "), newest["body"]
