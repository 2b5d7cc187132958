"""Fixtures: a service in this process on a temporary database, its clock, and a stand-in push service."""

import atexit
import functools
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="pocketbell-tests-")  # for what is opened before a test says where

import config
from app import app, open_service
from core import accounts, jobs, pruning, retries
from process import clock
from store import database
from tests.support import certificates
from tests.support.apns_service import ApnsService
from tests.support.fcm_service import FcmService
from tests.support.push_service import PushService

pytest_plugins = ["tests.support.browser"]

SCRATCH = Path(os.environ["DATA_DIR"])
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)

# Checking an RSA key takes 50 ms, several times a test, and it is always the same one.
serialization.load_pem_private_key = functools.cache(serialization.load_pem_private_key)


class MovedClock:
    """Stands still until a test moves it. Wall time and monotonic time move together unless told otherwise."""

    def __init__(self) -> None:
        self.ms = 1_795_255_200_000  # 2026-11-21 10:00 UTC
        self.monotonic = 1000.0

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)
        self.monotonic += seconds

    def set_wall(self, ms: int) -> None:
        self.ms = ms


@pytest.fixture
def moved_clock(monkeypatch):
    moved = MovedClock()
    monkeypatch.setattr(clock, "now_ms", lambda: moved.ms)
    monkeypatch.setattr(clock, "monotonic_s", lambda: moved.monotonic)
    return moved


@pytest.fixture(scope="session")
def push_server():
    server = PushService()
    yield server
    server.close()


@pytest.fixture
def push_service(push_server):
    push_server.forget()
    return push_server


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """What the stand-ins' certificates are signed by."""
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def apns_server(authority):
    server = ApnsService(authority, clock=lambda: clock.now_ms() / 1000)
    yield server
    server.close()


@pytest.fixture
def apns(apns_server):
    apns_server.forget()
    return apns_server


@pytest.fixture(scope="session")
def fcm_server(authority):
    server = FcmService(authority)
    yield server
    server.close()


@pytest.fixture
def fcm(fcm_server):
    fcm_server.forget()
    return fcm_server


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

    def delete(self, path, **more):
        return self.request("DELETE", f"/api/v1{path}", **more)

    def send(self, title="Backup", body="finished", **more):
        return self.post("/notifications/send", {"title": title, "body": body}, **more)

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
        """Of the alert, as `flask alert list` has it."""
        lines = self.service.flask("alert", "list", self.email).output.splitlines()
        return next(line for line in lines if self.code in line).split("\t")[0]

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
def empty_database():
    """A file with all tables: to copy it takes less time than to make them."""
    path = SCRATCH / "empty.db"
    database.open_database(path)
    database.close()
    return path


class Service:
    """The application on a database of its own, with its command line."""

    def __init__(self, data_dir, **environ):
        self.data_dir = data_dir
        self.settings = config.load({"DATA_DIR": str(data_dir), **environ})
        if not self.settings.database.exists():
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(empty_database(), self.settings.database)
            (data_dir / "secret_key").write_text("0" * 64)  # to make one waits for the disk
        self.app = app  # one for all tests: making the routes takes longer than all else
        open_service(app, self.settings)
        database._writing.execute_sql("PRAGMA synchronous = OFF")  # no test loses power
        pruning.prune(clock.now_ms())  # the first round of the worker: it looks at the clock
        self.client = self.app.test_client()

    def flask(self, *args, stdin=None):
        """Run a command; answers with click's result (output, exit_code)."""
        return self.app.test_cli_runner().invoke(args=[str(arg) for arg in args], input=stdin)

    def account(self, email="owner@example.org", plan="starter"):
        """A new account, made like the command line makes it, in a tenth of the time."""
        with database.transaction():
            accounts.make_link(accounts.create_account(email, plan, "UTC", clock.now_ms()), clock.now_ms())
        return email

    def caller(self, email="owner@example.org", name="test"):
        _, full_key = accounts.create_key(accounts.find_account(email).seq, name, clock.now_ms())
        return Caller(self, full_key)

    def alert(self, *options, email="owner@example.org", name="Backups"):
        """A new alert of the account, made with the options of `flask alert create`."""
        result = self.flask("alert", "create", email, name, *options)
        assert result.exit_code == 0, result.output
        return Hook(self, email, result.stdout.strip())  # stderr may warn of a template

    def work(self):
        """One round of the background worker."""
        jobs.run_due(clock.now_ms())
        retries.finish()


@pytest.fixture
def make_service(tmp_path):
    def make(**environ):
        return Service(tmp_path / "data", **environ)

    return make


@pytest.fixture
def service(make_service, push_service, moved_clock):
    return make_service(WEBPUSH_HOSTS=f"{push_service.origin},*.push.example.com")


@pytest.fixture
def every_provider(make_service, push_service, apns, fcm, authority, moved_clock):
    """A service that is configured for all three."""
    return make_service(
        WEBPUSH_HOSTS=push_service.origin,
        APNS_URL=apns.url,
        APNS_KEY=apns.key_pem,
        APNS_KEY_ID=apns.key_id,
        APNS_TEAM_ID=apns.team_id,
        APNS_TOPIC=apns.topic,
        FCM_URL=fcm.origin,
        FCM_SERVICE_ACCOUNT=json.dumps(fcm.service_account()),
        SSL_CERT_FILE=authority.ca_file,
    )


@pytest.fixture
def owner(service):
    """A caller with a key of a starter account."""
    service.account()
    return service.caller()


@pytest.fixture
def pro(service):
    """A caller with a key of a pro account: for tests with many requests."""
    service.account("pro@example.org", "pro")
    return service.caller("pro@example.org")
