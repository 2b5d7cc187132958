"""Fixtures: a service in this process on a temporary database, its clock, and a stand-in push service."""

import functools
import itertools
import json
import os
import re

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from core import accounts, people
from process import clock, redis_client
from tests.support import certificates
from tests.support.alarms import every
from tests.support.apns_service import ApnsService
from tests.support.devices import subscribe
from tests.support.fcm_service import FcmService
from tests.support.forks import Fork
from tests.support.heartbeats import Pinged
from tests.support.ntfy_app import add_phone
from tests.support.push_service import PushService
from tests.support.redis_server import RedisServer
from tests.support.server import PATIENCE_S, Server
from tests.support.service import MovedClock, Service
from tests.support.smtp_service import SmtpService
from tests.support.webhook_service import WebhookService
from wire import json_text

# Checking the RSA key takes 50 ms and happens several times in a test, always with the same key.
serialization.load_pem_private_key = functools.cache(serialization.load_pem_private_key)

# The parser in C takes a tenth of the 0.7 s, and every worker reads the OpenAPI document.
yaml.safe_load = functools.partial(yaml.load, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


Server.start = Fork  # the imports take most of the time of a start

_directory_numbers = itertools.count()


@pytest.fixture
def tmp_path(tmp_path_factory):
    """A test's own directory. Pytest's fixture looks through all directories of earlier tests for a free number."""
    test = re.search(r"::(\w{1,40})", os.environ["PYTEST_CURRENT_TEST"])[1]  # to ask for `request` takes longer
    path = tmp_path_factory.getbasetemp() / f"{next(_directory_numbers)}-{test}"
    path.mkdir()
    return path


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords():
    """Hashing a password is slow on purpose. One test alone looks at what it costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "PASSWORD_METHOD", "scrypt:128:1:1")
        patch.setattr(accounts, "NOBODYS_PASSWORD", "scrypt:128:1:1$pocketbell$" + "0" * 128)
        yield


@pytest.fixture(params=[json_text.orjson, None], ids=["fast", "standard"])
def encoder(request, monkeypatch):
    """The faster encoder of JSON, or the standard library's."""
    monkeypatch.setattr(json_text, "orjson", request.param)


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
    """The certificate authority that signs the stand-ins' certificates."""
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


@pytest.fixture
def mail_server():
    made = SmtpService()
    yield made
    made.close()


@pytest.fixture
def receiver():
    """What gets webhooks."""
    made = WebhookService()
    yield made
    made.close()


@pytest.fixture(scope="session")
def redis_server():
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis(redis_server, monkeypatch):
    """An empty Redis, for which the tests wait however busy this machine is."""
    monkeypatch.setattr(redis_client, "TIMEOUT_S", PATIENCE_S)
    redis_server.ask("FLUSHALL")
    return redis_server


@pytest.fixture
def make_service(tmp_path):
    made = []

    def make(**environ):
        made.append(Service(tmp_path / "data", **environ))
        return made[-1]

    yield make
    if len(made) == 1:
        made[0].leave_database()


@pytest.fixture
def service(make_service, push_service, moved_clock):
    return make_service(WEBPUSH_HOSTS=f"{push_service.origin},*.push.example.com")


@pytest.fixture
def passes(service, moved_clock):
    """Let so many seconds pass, and the worker release what is due and push it."""

    def work(seconds):
        every(service, moved_clock, seconds)
        service.work()

    return work


@pytest.fixture
def administrator(service):
    """Somebody else who can sign in and administer the service, so that every other account may be deleted."""
    email = service.account("admin@example.org", password_hash="scrypt:128:1:1$none$")
    people.set_administrator(accounts.find_account(email).seq, True)
    return email


@pytest.fixture
def sharing_service(service, redis):
    """A service that counts in Redis."""
    yield service.sharing(redis.url)
    service.sharing(None)


@pytest.fixture
def every_provider(make_service, push_service, apns, fcm, authority, moved_clock):
    """A service configured for all three push channels."""
    return make_service(
        WEBPUSH_HOSTS=push_service.origin,
        **apns.settings,
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
    """A caller with a key of a pro account, for tests that make many requests."""
    service.account("pro@example.org", "pro")
    return service.caller("pro@example.org")


@pytest.fixture
def browser(push_service, owner):
    """The owner's only device."""
    return subscribe(owner, push_service)


@pytest.fixture
def android(owner):
    """The owner's only device: one with the ntfy app."""
    return add_phone(owner)


@pytest.fixture
def hook(service, owner):
    """An alert of the owner without templates."""
    return service.alert()


@pytest.fixture
def beat(service, owner):
    """A heartbeat of the owner that is expected each hour, and may be ten minutes late."""
    return Pinged(service, owner, "--period", "1h")


@pytest.fixture
def small(make_service, moved_clock):
    """A caller of a service that takes bodies of at most 2,048 bytes."""
    service = make_service(MAX_BODY_BYTES="2048")
    service.account()
    return service.caller()
