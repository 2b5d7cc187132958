"""Fixtures: a service in this process on a temporary database, its clock, and a stand-in push service."""

import functools
import gc
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from cryptography.hazmat.primitives import serialization

from core import accounts
from process import clock, redis_client
from tests.support import certificates, postgresql
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

MEMORY, MIN_ROOM = Path("/dev/shm"), 4e9  # a run takes 1 GB


def keep_in_memory():
    """Let the files of the tests be in memory, if there is room for them, so that no write waits for a disk."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MIN_ROOM
    if "TMPDIR" not in os.environ and has_room and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:  # tests run programs
        os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None


keep_in_memory()
gc.disable()  # until all tests are collected: none of them is garbage, and it would look through them again and again
postgresql.begin_run()

# Checking the RSA key takes 50 ms and happens several times in a test, always with the same key.
serialization.load_pem_private_key = functools.cache(serialization.load_pem_private_key)

Server.start = Fork  # the imports take most of the time of a start

_directory_numbers = itertools.count()


@pytest.hookimpl(trylast=True)  # after pytest's own, which adds it
def pytest_configure(config):
    """Let a worker print no dots: nobody sees them."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.unregister(name="terminalreporter")


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Let each worker begin at another place, so that one reads what another one has compiled.

    In a fresh clone to compile all tests takes a worker 4 s of the processor.
    """
    outcome = yield
    if isinstance(collector, pytest.Directory) and (found := outcome.get_result().result):
        place = len(found) * worker_number(collector.config) // number_of_workers(collector.config)
        outcome.get_result().result = [*found[place:], *found[:place]]


def pytest_runtest_protocol(item, nextitem):
    """Let a worker report of a test that passes its call alone, a fifth of the messages that others send."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            if report.passed:
                report.keywords = {}  # the larger part of the message
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def number_of_workers(config):
    return getattr(config, "workerinput", {}).get("workercount", 1)


def worker_number(config):
    """0 for the first worker, and where there are none."""
    return int(getattr(config, "workerinput", {}).get("workerid", "gw0").removeprefix("gw"))


def let_no_sources_be_read():
    """Let Hypothesis try no constants of ours: to find them in our sources takes each worker half a second.

    Where a word of ours matters, the test's own strategy has it. To be called before Hypothesis' hook for collected
    tests, which reads the sources.
    """
    if drawing := sys.modules.get("hypothesis.internal.conjecture.providers"):
        drawing._get_local_constants = functools.cache(drawing.Constants)


def pytest_collection_modifyitems(config, items):
    """Let every worker begin with its share of the browser's tests, and the first one with those of processes.

    They take longest, and wait meanwhile. Of this list each worker gets a piece of equal size; one that has done it
    takes from the end of another's.
    """
    let_no_sources_be_read()
    items.sort(key=lambda item: item.path)  # as every worker must have them
    rooms = {"process": [], "browser": []}
    others = []
    for item in items:
        rooms.get(item.path.parent.name, others).append(item)
    workers = number_of_workers(config)
    items[:], rest = [], iter(others)
    total = sum(map(len, (*rooms.values(), others)))
    for worker in range(workers):
        first = rooms["browser"][worker::workers] + (rooms["process"] if worker == 0 else [])
        size = (total - len(items)) // (workers - worker)
        items += [*first, *itertools.islice(rest, max(0, size - len(first)))]
    items += rest


def pytest_collection_finish():
    """Spare the garbage collector the thousands of collected tests from now on."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


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
def sharing_service(service, redis):
    """A service that counts in Redis."""
    yield service.sharing(redis.url)
    service.sharing(None)


@pytest.fixture
def every_provider(make_service, push_service, apns, fcm, authority, moved_clock):
    """A service configured for all three push channels."""
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
