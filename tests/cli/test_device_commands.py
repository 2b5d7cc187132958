"""`flask device`: add, list, remove."""

import json

import pytest

import push
from tests.support.accounts import OWNER
from tests.support.commands import printed
from tests.support.ntfy_app import TOPIC, Phone
from tests.support.rows import each


def stand_in_device(flask, push_service):
    """The owner's only device, added by command."""
    browser = push_service.browser()
    return browser, printed(flask("device", "add", OWNER, "webpush", json.dumps(browser.subscription)))


def test_device_remove_prints_one_line_and_nothing_is_pushed_any_more(service, owned, push_service):
    browser, device_id = stand_in_device(owned, push_service)
    printed(owned("device", "remove", OWNER, device_id))
    service.caller(OWNER).send()
    assert (browser.pushes, owned("device", "list", OWNER).stdout) == ([], "")


@pytest.mark.parametrize("kind, name", [("apns", "APNs"), ("fcm", "FCM")])
def test_a_device_of_a_kind_that_is_not_configured_is_added_with_a_warning(owned, kind, name):
    added = owned("device", "add", OWNER, kind, "0a" * 32)
    assert (added.exit_code, added.stdout.splitlines()) == (
        0,
        [printed(owned("device", "list", OWNER)).split("\t")[0]],
    )
    warning = f"Warning: {name} is not configured on this server. Until that changes, this device gets nothing."
    assert added.stderr.splitlines() == [warning]


def test_a_device_of_the_ntfy_app_is_added_with_a_warning_where_its_addresses_are_switched_off(make_service):
    service = make_service(COMPATIBILITY="off")
    service.account(OWNER)
    added = service.flask("device", "add", OWNER, "ntfy")
    off = "The ntfy app's addresses are switched off on this server (COMPATIBILITY)."
    assert added.stderr.splitlines() == [f"Warning: {off} Until that changes, this device gets nothing."]


@pytest.fixture
def every_kind(monkeypatch):
    """Pretend that APNs and FCM are configured."""
    monkeypatch.setattr(push, "configured", lambda: set(push.PROVIDERS))


@pytest.mark.parametrize("kind, token", [("apns", "0a" * 32), ("apns", "AF" * 100), ("fcm", "dQw4:APA91bF-x_y")])
def test_a_device_of_each_kind_can_be_added_with_a_name(owned, every_kind, kind, token):
    device_id = printed(owned("device", "add", OWNER, kind, token, "--name", "Phone"))
    assert printed(owned("device", "list", OWNER)).split("\t")[:3] == [device_id, kind, "Phone"]


def test_a_device_of_the_ntfy_app_is_answered_with_the_address_to_subscribe_to_alone(service, owned):
    address = printed(owned("device", "add", OWNER, "ntfy", "--name", "Pixel"))
    base, _, topic = address.rpartition("/")
    assert (base, bool(TOPIC.fullmatch(topic))) == (service.settings.public_url, True)
    service.caller(OWNER).send("t", "one")
    assert Phone(service, {"id": "", "topic": topic}).bodies() == ["one"]
    assert "Pixel" in owned("device", "list", OWNER).output and topic not in owned("device", "list", OWNER).output


@each("kind, more", [("ntfy", ["token"]), ("apns", [])])
def test_a_token_is_given_for_the_devices_that_have_one_alone(owned, kind, more):
    refused = owned("device", "add", OWNER, kind, *more)
    assert refused.exit_code == 2 and f"A device of the kind {kind} takes" in refused.stderr
