"""Ring: a notification that the owner writes in the web app."""

import pytest

from tests.support.accounts import account_set
from tests.support.pages import Page, device_ids
from tests.support.times import HOUR_S, utc

WRITTEN = {"title": "Dinner", "text": "in ten minutes", "priority": "normal", "link": "", "later": ""}


@pytest.fixture
def ring(service, owner):
    """Send what is written, to all devices unless others are named, and return the page that answers."""

    def send(status=303, devices=None, **written):
        ids = device_ids(service) if devices is None else devices
        answer = owner.post("/app/ring", WRITTEN | written | {"device": ids})
        assert answer.status_code == status, answer.text
        return answer if status == 303 else Page(answer.text)

    return send


def test_a_notification_from_the_form_goes_to_all_devices_and_links_its_page(service, owner, browser, ring):
    answer = ring(priority="high", link="https://a.b/menu")
    page = owner.page(answer.location)
    assert "Dinner" in page.text and "in ten minutes" in page.text
    (message,) = browser.messages
    assert message["notification"]["title"].endswith("Dinner")
    assert message["notification"]["navigate"]
    (listed,) = service.caller().listed()
    assert (listed["title"], listed["body"], listed["status"]) == ("MCP - Dinner", "in ten minutes", "delivered")
    assert "Pocketbell" in owner.page("/app/notifications").main


def test_only_the_chosen_devices_get_a_notification_from_the_form(service, owner, browser, push_service, ring):
    other = push_service.browser()
    owner.enable(other)
    first, second = device_ids(service)
    ring(devices=[second])
    assert len(browser.messages) + len(other.messages) == 1
    ring(devices=[first])
    assert (len(browser.messages), len(other.messages)) == (1, 1)


def test_the_time_of_a_scheduled_notification_is_in_the_accounts_zone(service, owner, browser, ring, passes):
    account_set("--timezone", "Asia/Tokyo")
    page = owner.page(ring(later="2026-11-22T08:00").location)
    assert "It will ring tomorrow 08:00." in page.text and browser.messages == []
    (listed,) = service.caller().listed()
    assert listed["deliverAt"] == utc("2026-11-21T23:00")
    passes(24 * HOUR_S)
    assert len(browser.messages) == 1


def test_without_a_device_a_notification_from_the_form_is_only_stored(service, owner, ring):
    assert "only saved to History" in owner.page("/app/ring").main
    ring()
    assert len(service.caller().listed()) == 1


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_scheduled_notification_goes_to_the_chosen_devices_alone(
    service, owner, browser, push_service, ring, is_removed, passes
):
    other = push_service.browser()
    owner.enable(other)
    newest, _ = device_ids(service)
    ring(later="2026-11-22T09:00")
    ring(later="2026-11-22T08:00", devices=[newest])
    if is_removed:
        owner.done(f"/app/devices/{newest}/remove")
    passes(22 * HOUR_S)
    assert sorted((len(browser.messages), len(other.messages))) == [0, 0 if is_removed else 1]
    assert [one["status"] for one in service.caller().listed()] == ["delivered", "held"]
    passes(2 * HOUR_S)
    assert sorted((len(browser.messages), len(other.messages))) == ([0, 1] if is_removed else [1, 2])


def test_the_form_keeps_its_input_after_an_error(owner, browser, ring):
    page = ring(422, title="", text="<b>", later="2027-01-01T00:00", priority="low", devices=[])
    assert page.texts_of("textarea") == ["<b>"]
    assert [one["value"] for one in page.all("input") if one.get("type") == "datetime-local"] == ["2027-01-01T00:00"]
    assert [one["value"] for one in page.all("option") if "selected" in one] == ["low"]
    assert not [one for one in page.all("input") if one.get("type") == "checkbox" and "checked" in one]


def test_a_device_of_another_account_is_refused(service, stranger, owner, browser, push_service, ring):
    theirs = push_service.browser()
    stranger.enable(theirs)
    ring(devices=device_ids(service))
    assert theirs.messages == []


def test_home_and_history_link_to_the_form_and_the_keys_page_has_its_own_test(owner, browser):
    owner.done("/app/test")
    for path in ("/app/", "/app/notifications"):
        assert "/app/ring" in [link.get("href") for link in owner.page(path).all("a")]
    page = owner.done("/app/keys", {"name": "x"})
    assert "/app/ring?test" in [link.get("href") for link in page.all("a")]
    assert owner.page("/app/ring?test").texts_of("textarea") == ["from my own server"]
