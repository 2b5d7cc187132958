"""Fixtures: browsers on the dashboard. Here `owner` is signed in; in other rooms it is a caller with a key."""

import pytest

import push
from core import local_time
from tests.support.accounts import OTHER, account_set
from tests.support.alert_page import AlertPage
from tests.support.forms import Forms
from tests.support.pages import Visitor, event, signed_in

time_zone_names = local_time.time_zone_names


@pytest.fixture(autouse=True)
def few_time_zones(monkeypatch):
    """Offer three time zones: six hundred on a page make a test slow."""
    monkeypatch.setattr(local_time, "time_zone_names", lambda: ["Asia/Tokyo", "Europe/Berlin", "UTC"])


@pytest.fixture
def all_time_zones(few_time_zones, monkeypatch):
    """Offer all time zones after all."""
    monkeypatch.setattr(local_time, "time_zone_names", time_zone_names)


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


@pytest.fixture
def forms(service, owner, push_service, monkeypatch):
    monkeypatch.setattr(push, "configured", lambda: set(push.PROVIDERS))
    return Forms(service, owner, push_service)


@pytest.fixture
def caller(service, owner):
    account_set("--plan", "pro")
    return service.caller(name="backup script")


@pytest.fixture
def held(service, owner, browser, moved_clock):
    """Makes events that quiet hours hold until 12:00, and returns their ids."""
    account_set("--quiet-hours", "09:00-12:00")
    hook = service.alert()
    return lambda *titles: [event(hook, title=title) for title in titles]
