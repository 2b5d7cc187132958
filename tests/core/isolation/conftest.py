"""Fixtures: two accounts, devices of every kind, and stand-ins of which each test has its own."""

import pytest

import push
from core import retries
from tests.support.apns_service import ApnsService
from tests.support.isolation import Gate, account


@pytest.fixture
def apns(authority, moved_clock):
    """A stand-in of this test's own, so that no connection is left from another test."""
    server = ApnsService(authority, clock=lambda: moved_clock.ms / 1000)
    yield server
    server.close()


@pytest.fixture
def service(every_provider):
    """A service configured for all three channels, not for Web Push alone; `owner` and `pro` are accounts of it."""
    retries.batches.due.clear()
    return every_provider


@pytest.fixture
def device(push_service, apns, fcm):
    """Adds a device of a kind to a caller's account, and returns its stand-in."""
    push_service.server.socket.listen(128)  # a batch comes over as many connections at once

    def add(caller, kind="webpush"):
        phone = {"webpush": push_service.browser, "apns": apns.phone, "fcm": fcm.phone}[kind]()
        named = {"subscription": phone.subscription} if kind == "webpush" else {"token": phone.token}
        assert caller.post("/devices", {"kind": kind, **named}).status_code == 201
        return phone

    return add


@pytest.fixture
def gate(monkeypatch):
    gate = Gate(push.send)
    monkeypatch.setattr(push, "send", gate)
    yield gate
    gate.open()
    retries.batches.finish()


@pytest.fixture
def ann(service):
    return account(service, "ann")


@pytest.fixture
def bob(service):
    return account(service, "bob")
