"""Fixtures: browsers at the pages. `owner` is one that is signed in, where other rooms mean a caller with a key."""

import pytest

from core import local_time
from tests.support.accounts import OTHER
from tests.support.alert_page import AlertPage
from tests.support.pages import Visitor, signed_in


@pytest.fixture
def few_time_zones(monkeypatch):
    """Six hundred on every second page make tests of everything else slow."""
    monkeypatch.setattr(local_time, "time_zone_names", lambda: ["Asia/Tokyo", "Europe/Berlin", "UTC"])


@pytest.fixture
def visitor(service):
    return Visitor(service)


@pytest.fixture
def owner(service):
    """The owner, signed in with a browser."""
    return signed_in(service)


@pytest.fixture
def stranger(service, owner):
    """Another account's owner, signed in."""
    return signed_in(service, OTHER)


@pytest.fixture
def browser(owner, push_service):
    """The owner's only device, added on the page."""
    browser = push_service.browser()
    assert owner.enable(browser).status_code == 201
    return browser


@pytest.fixture
def alert(service, owner):
    return AlertPage(service, owner)
