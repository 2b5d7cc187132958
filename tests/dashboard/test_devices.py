"""The Devices page and its forms: this browser, tokens entered by hand, tests, names, the way to a phone."""

from contextlib import ExitStack
from unittest.mock import ANY

import pytest

import push
from core import push_slots
from tests.support.accounts import OTHER, OWNER
from tests.support.commands import lines_of
from tests.support.pages import (
    APNS,
    WRONG_SUBSCRIPTIONS,
    Visitor,
    device_ids,
    given_token,
    only_id,
    signed_in,
    the_device,
)
from tests.support.rows import each
from tests.support.tables import everything
from tests.support.times import DAY_S

# --- this browser -------------------------------------------------------------------------------------------


def test_a_browser_that_the_page_enabled_is_listed_and_the_script_told_its_id_a_token_and_the_key(
    service, owner, push_service
):
    answer = owner.enable(push_service.browser(), name="made up")
    expected = {"ok": True, "id": only_id(service), "token": ANY, "publicKey": push.public_vapid_key()}
    assert (answer.status_code, answer.json) == (201, expected)
    assert len(answer.json["token"]) == 43
    page = owner.page("/app/devices")
    assert "just now never" in page.section("Chrome on Linux") and page.times() == ["2026-11-21 10:00"]
    assert "made up" not in page.text  # the script's name


def test_a_browser_that_is_enabled_again_keeps_the_name_that_its_owner_gave_it(service, owner, browser):
    owner.post(f"/app/devices/{only_id(service)}", {"name": "Desk"})
    assert owner.enable(browser).status_code == 201
    page = owner.page("/app/devices")
    assert page.section("Desk") and "Chrome on Linux" not in page.text


def test_a_push_links_to_the_address_where_the_browser_subscribed(service, owner, browser):
    sent = service.caller().send().json["notification"]
    opened = browser.messages[0]["notification"]["navigate"]
    assert opened == f"http://localhost/app/notifications/{sent['id']}"
    assert owner.get(opened.removeprefix("http://localhost")).status_code == 200


def test_a_browser_that_visits_at_another_address_gets_links_to_that_address(service, owner, browser):
    moved = Visitor(service, "https://bell.example.org")
    moved.sign_in()
    moved.get("/app/devices")
    assert moved.enable(browser, only_known=True).status_code == 201
    service.caller().send()
    assert browser.messages[0]["notification"]["navigate"].startswith("https://bell.example.org/app/notifications/")


def test_a_visit_of_a_known_browser_makes_no_device(service, owner, browser, push_service):
    answer = owner.enable(browser, only_known=True)
    assert (answer.status_code, answer.json["id"]) == (201, only_id(service))
    before = everything()
    assert owner.enable(push_service.browser(), only_known=True).status_code == 404
    assert everything() == before


def test_a_visit_with_its_token_brings_the_devices_new_subscription(service, owner, push_service):
    old, new = push_service.browser(), push_service.browser()
    token, device_id = given_token(owner, old), only_id(service)
    answer = owner.enable(new, only_known=True, token=token)
    assert (answer.status_code, answer.json["id"], answer.json["token"]) == (201, device_id, None)
    service.caller().send()
    assert (len(old.pushes), len(new.messages), device_ids(service)) == (0, 1, [device_id])


def test_a_visit_with_the_token_of_another_accounts_device_leaves_that_one(service, owner, push_service, stranger):
    browser = push_service.browser()
    token = given_token(owner, browser)
    before = everything()["device"]
    assert stranger.enable(push_service.browser(), only_known=True, token=token).status_code == 404
    assert everything()["device"] == before
    answer = stranger.enable(browser, token=token)
    assert answer.status_code == 201 and answer.json["token"] not in (None, token)
    assert everything()["device"][:1] == before


@each("token", ["", "x", "A" * 43, "é", "\ufeff", "x" * 5000, None])
def test_a_browser_whose_token_fits_no_device_gets_another(owner, browser, token):
    answer = owner.enable(browser, only_known=True, token=token)
    assert answer.status_code == 201 and len(answer.json["token"]) == 43


@each("token", [1, True, [], {}])
def test_a_token_that_is_no_text_is_refused(owner, browser, token):
    before = everything()
    assert owner.enable(browser, token=token).status_code == 400
    assert everything() == before


def test_a_visit_does_not_bring_back_a_device_that_was_removed(service, owner, browser):
    owner.post(f"/app/devices/{only_id(service)}/remove")
    assert owner.enable(browser, only_known=True).status_code == 404
    assert device_ids(service) == []


def test_a_visit_does_not_make_anothers_device_ones_own(service, owner, browser, stranger):
    assert stranger.enable(browser, only_known=True).status_code == 404
    assert device_ids(service, OTHER) == []


def test_only_known_counts_only_if_it_is_the_boolean_true(service, owner, push_service):
    for value in (False, None, 0, "true", 1, [], {}):
        assert owner.enable(push_service.browser(), only_known=value).status_code == 201, value
    assert len(device_ids(service)) == 7


# --- what the page says of a device -------------------------------------------------------------------------


def test_a_device_that_an_api_key_added_names_the_key_and_one_that_the_owner_added_none(
    service, owner, browser, push_service
):
    assert "API key “" not in owner.page("/app/devices").text
    caller = service.caller(name="phone app")
    caller.post("/devices", {"kind": "webpush", "subscription": push_service.browser().subscription})
    assert "by the API key “phone app”" in owner.page("/app/devices").text


def test_the_last_error_of_a_device_is_shown_with_its_time_until_a_test_is_accepted(service, owner, browser):
    browser.then(403, b'{"reason": "BadJwtToken"}')
    service.caller().send()
    page = owner.page("/app/devices")
    assert "The push service answered 403 (BadJwtToken)." in page.section("Chrome on Linux")
    assert page.times() == ["2026-11-21 10:00"] * 2
    text = owner.done(f"/app/devices/{only_id(service)}/test").section("Chrome on Linux")
    assert "403" not in text and "Working" in text


def silent(owner):
    return "not opened for" in the_device(owner)


def test_a_device_is_silent_after_30_days_until_a_push_arrives_or_it_visits(service, owner, browser, moved_clock):
    moved_clock.advance(30 * DAY_S - 1)
    assert not silent(owner)
    moved_clock.advance(1)
    assert "not opened for 30 days" in the_device(owner)
    moved_clock.advance(5 * DAY_S)
    assert "not opened for 35 days" in the_device(owner)
    service.caller().send()
    assert not silent(owner)
    moved_clock.advance(30 * DAY_S)
    assert silent(owner)
    owner.enable(browser, only_known=True)
    assert not silent(owner)


# --- testing ------------------------------------------------------------------------------------------------


def test_a_test_reaches_that_device_alone_and_is_in_no_history_and_no_count(service, owner, browser, push_service):
    other = push_service.browser()
    owner.enable(other)
    _, oldest = device_ids(service)
    page = owner.done(f"/app/devices/{oldest}/test", leads_to="/app/devices")
    assert (len(browser.messages), other.messages) == (1, [])
    (said,) = page.said("status")[:1]
    assert "took the test" in said and page.said("alert") == []
    message = browser.messages[0]["notification"]
    assert (message["title"], message["navigate"]) == ("MCP - Test", "http://localhost/app/devices")
    caller = service.caller()
    assert caller.listed() == [] and caller.get("/stats").json["stats"]["totalNotificationsAllTime"] == 0


def test_a_test_that_is_refused_says_why(service, owner, browser):
    browser.then(403, b'{"reason": "BadJwtToken"}')
    page = owner.done(f"/app/devices/{only_id(service)}/test")
    (said,) = page.said("alert")
    assert "could not be sent" in said and "The push service answered 403 (BadJwtToken)." in said
    assert "403" in page.section("Chrome on Linux")


def test_a_test_is_refused_at_once_when_no_push_slot_is_free(service, owner, browser):
    with ExitStack() as pushing:
        assert all(pushing.enter_context(push_slots.slot(1)) for _ in range(8))
        page = owner.refused(f"/app/devices/{only_id(service)}/test", {}, 429)
    assert "Try again in a few seconds" in page.main and browser.pushes == []


def test_a_test_to_a_paused_provider_does_not_change_the_device(service, owner, browser, monkeypatch):
    left_alone = push.Answer(push.Outcome.TRANSIENT, "It is left alone for 30 s.", 30, was_tried=False)
    monkeypatch.setattr(push, "send", lambda pushes, _: [left_alone] * len(pushes))
    before = everything()["device"]
    (said,) = owner.done(f"/app/devices/{only_id(service)}/test").said("alert")
    assert "left alone" in said and everything()["device"] == before


def test_a_test_that_finds_a_dead_device_removes_it_and_says_so(service, owner, browser):
    browser.then(410)
    page = owner.done(f"/app/devices/{only_id(service)}/test")
    (said,) = page.said("alert")
    assert "The device was removed." in said and device_ids(service) == []


def test_a_test_of_a_kind_that_is_not_configured_says_so(service, owner):
    service.flask("device", "add", OWNER, "apns", APNS)
    (said,) = owner.done(f"/app/devices/{only_id(service)}/test").said("alert")
    assert "APNs is not configured on this server." in said


# --- renaming and removing ----------------------------------------------------------------------------------


def test_a_device_is_renamed_and_a_refused_form_keeps_what_was_typed(service, owner, browser):
    page = owner.done(f"/app/devices/{only_id(service)}", {"name": "  Küche 📱 "}, leads_to="/app/devices")
    assert page.section("Küche 📱") and "Chrome on Linux" not in page.text
    typed = {"name": "Desk", "minPriority": "high", "quietHours": "x"}
    page = owner.refused(f"/app/devices/{only_id(service)}", typed)
    assert (page.value("name"), page.chosen("minPriority"), page.value("quietHours")) == tuple(typed.values())


def test_a_device_is_removed_after_a_second_question(service, owner, browser):
    page, caller = owner.page("/app/devices"), service.caller()
    (action,) = page.forms("/remove")
    asked = page.confirmation(action)
    assert asked.startswith("Remove Chrome on Linux…") and "It gets no more notifications" in asked
    page = owner.done(action, leads_to="/app/devices")
    assert "Device removed" in page.text and "No device yet" in page.text
    caller.send()
    for form in ("/test", "", "/remove"):  # it is like an unknown one
        assert owner.post(action.removesuffix("/remove") + form, {"name": "x"}).status_code == 404, form
    assert browser.pushes == []


def test_the_page_says_so_when_the_last_device_died_and_sending_fails(service, owner, browser):
    caller = service.caller()
    browser.then(410)
    caller.send()
    assert caller.send().json["notification"]["status"] == "failed"
    page = owner.page("/app/devices")
    assert "last device no longer exists" in page.text and "only saved to History" not in page.text


def test_a_contact_that_apple_refuses_is_warned_about_on_the_page(make_service, push_service, moved_clock):
    owner = signed_in(make_service(), "root@localhost")
    assert (
        "Notifications will not reach Apple devices until BASE_URL is your public https address."
        in owner.page("/app/devices").text
    )


# --- a token by hand ----------------------------------------------------------------------------------------


@pytest.fixture
def of_natives(every_provider):
    """The owner of a service with all providers, signed in."""
    return signed_in(every_provider)


def test_tokens_that_were_typed_are_devices_with_a_name_or_their_services(every_provider, of_natives):
    assert "Add device" in of_natives.page("/app/devices").texts_of("button")
    of_natives.post("/app/devices/new", {"kind": "apns", "token": f" {APNS} ", "name": ""})
    page = of_natives.done("/app/devices/new", {"kind": "fcm", "token": " a-token:of_FCM ", "name": " Old phone "})
    assert page.section("APNs") and page.section("Old phone") and "not configured" not in page.text
    assert [line[1] for line in lines_of(every_provider, "device", "list", OWNER)] == ["fcm", "apns"]
    page = of_natives.refused("/app/devices/new", {"kind": "fcm", "token": "two words", "name": "Tablet"})
    assert page.chosen("kind") == "fcm" and "Tablet" in page.values()
    assert "two words" not in page.values() and "two words" not in page.text


def test_without_a_provider_of_native_apps_there_is_no_form_for_tokens(owner):
    assert "Add device" not in owner.page("/app/devices").texts_of("button")


@each("kind, name", [("apns", "APNs"), ("fcm", "FCM")])
def test_a_token_of_a_kind_that_is_not_configured_is_refused_with_a_sentence(service, owner, kind, name):
    (said,) = owner.refused("/app/devices/new", {"kind": kind, "token": APNS}).said("alert")
    assert said.startswith(f"{name} is not configured on this server") and device_ids(service) == []


def test_a_device_of_a_kind_that_is_not_configured_says_so_before_anything_is_sent(service, owner):
    service.caller().post("/devices", {"kind": "fcm", "token": "t", "name": "Old phone"})
    assert "not configured" in owner.page("/app/devices").section("Old phone")


# --- the way to a phone -------------------------------------------------------------------------------------


def test_a_phone_is_added_by_signing_it_in(make_service, moved_clock):
    page = signed_in(make_service(BASE_URL="https://bell.example.org")).page("/app/devices")
    assert "Add a phone" in page.texts_of("button") and page.forms("/devices/phone")


@each("host", ["localhost", "127.0.0.1", "192.168.1.20"])
def test_without_https_the_page_says_how_to_get_it(service, host):
    owner = signed_in(service, f"ana@{host}", f"http://{host}:8000")
    page = owner.page("/app/devices")
    assert page.texts_of("a", href="/app/devices/phone") == ["Add a phone"] and page.forms("/devices/phone") == []
    said = owner.page("/app/devices/phone").main
    assert "tailscale serve --bg 8000" in said and "cloudflared tunnel --url http://localhost:8000" in said


# --- subscriptions that cannot be one -----------------------------------------------------------------------


def test_a_subscription_that_cannot_be_one_is_refused_with_a_sentence_for_the_script(service, owner):
    for body in WRONG_SUBSCRIPTIONS:
        answer = owner.post("/app/devices", body, content_type="application/json")
        assert answer.status_code == 400, body
        assert set(answer.json) == {"ok", "error", "code", "statusCode"} and answer.json["error"].endswith(".")
    assert device_ids(service) == []
