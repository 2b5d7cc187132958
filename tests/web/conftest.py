"""Fixtures: low limits and caps, and a service on which every operation of the API has something to answer."""

from itertools import count

import pytest

from tests.support.openapi import World
from tests.support.service import METRICS_TOKEN
from web import rate_limits


@pytest.fixture
def new_owner(service):
    """A function that makes another account, and returns its address and a caller."""
    numbers = count()

    def make(plan="starter"):
        email = service.account(f"{next(numbers)}@example.org", plan)
        return email, service.caller(email)

    return make


@pytest.fixture
def few(monkeypatch):
    """Six requests of each kind a minute stand for the real sixty, which would take long."""
    for kind in ("ALERT_EVENTS", "UNKNOWN_CODES", "UNKNOWN_TOPICS", "PINGS", "PINGS_OF_NONE", "BUTTONS"):
        quota = getattr(rate_limits, kind)
        assert quota.amount == 60, kind
        monkeypatch.setattr(quota, "amount", 6)


@pytest.fixture
def low(few, monkeypatch):
    """Eight requests are a flood."""
    monkeypatch.setattr(rate_limits.FLOOD, "amount", 8)


@pytest.fixture
def capped_at(make_service, moved_clock):
    """Two alerts of an account for which a service takes so many events a minute."""

    def make(events):
        service = make_service(INGEST_PER_MINUTE=str(2 * events))
        service.account()
        return service.alert(), service.alert(name="Second")

    return make


@pytest.fixture
def capped(capped_at):
    """An alert of a service that takes 6 events a minute, 3 of them for one account."""
    return capped_at(3)[0]


@pytest.fixture
def world(make_service, push_service, moved_clock, monkeypatch):
    settings = {"METRICS_TOKEN": METRICS_TOKEN, "WEBPUSH_HOSTS": push_service.origin, "MAX_BODY_BYTES": "8192"}
    return World(make_service(**settings), monkeypatch)
