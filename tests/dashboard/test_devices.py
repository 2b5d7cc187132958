"""The Devices page and its forms: this browser, tokens by hand, tests, names, the QR code, resyncing."""

import hashlib
import json
import threading
from contextlib import ExitStack
from io import BytesIO
from unittest.mock import ANY

import pytest
import segno

import push
from core import push_slots
from models import Device
from store import database
from tests.support import pages
from tests.support.pages import (
    DAY_S,
    EMAIL,
    OTHER,
    PASSWORD,
    Visitor,
    device_ids,
    everything,
    listed,
    make_account,
    signed_in,
)

cheap_passwords, owner, stranger, browser = pages.cheap_passwords, pages.owner, pages.stranger, pages.browser

IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 Mobile Safari/604.1"
APNS = "ab" * 32
RESYNC = "/app/devices/resync"


def the_device(owner, name="Chrome on Linux"):
    """What the page says of a device."""
    return owner.page("/app/devices").section(name)


def only_id(service, email=EMAIL):
    (device_id,) = device_ids(service, email)
    return device_id


# --- this browser -------------------------------------------------------------------------------------------


def test_a_browser_that_the_page_enabled_is_listed(owner, browser):
    text = the_device(owner)
    assert "2026-11-21 10:00" in text and "nothing delivered yet" in text


def test_a_browser_that_was_enabled_is_called_by_what_it_says_it_is(owner, push_service):
    owner.enable(push_service.browser(), agent=IPHONE)
    assert "Safari on iPhone" in owner.page("/app/devices").text


def test_what_a_script_calls_the_browser_does_not_count(owner, push_service):
    owner.enable(push_service.browser(), name="made up")
    assert "made up" not in owner.page("/app/devices").text and the_device(owner)


def test_the_script_is_told_the_devices_id_a_token_and_the_key_to_subscribe_with(service, owner, push_service):
    answer = owner.enable(push_service.browser())
    expected = {"ok": True, "id": only_id(service), "token": ANY, "publicKey": push.public_vapid_key()}
    assert (answer.status_code, answer.json) == (201, expected)
    assert len(answer.json["token"]) == 43


def test_a_browser_that_is_enabled_again_stays_one_device(service, owner, browser):
    assert owner.enable(browser).status_code == 201
    assert len(device_ids(service)) == 1


def test_a_browser_that_is_enabled_again_keeps_the_name_that_its_owner_gave_it(service, owner, browser):
    owner.post(f"/app/devices/{only_id(service)}/rename", {"name": "Desk"})
    assert owner.enable(browser).status_code == 201
    assert the_device(owner, "Desk") and "Chrome on Linux" not in owner.page("/app/devices").text


def test_a_push_leads_to_its_page_where_the_browser_subscribed(service, owner, browser):
    sent = service.caller().send().json["notification"]
    opened = browser.messages[0]["notification"]["navigate"]
    assert opened == f"http://localhost/app/notifications/{sent['id']}"
    assert owner.get(opened.removeprefix("http://localhost")).status_code == 200


def test_a_browser_that_moved_to_another_address_is_led_there(service, owner, browser):
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


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "é", "\ufeff", "x" * 5000, None])
def test_a_browser_whose_token_fits_no_device_gets_another(owner, browser, token):
    answer = owner.enable(browser, only_known=True, token=token)
    assert answer.status_code == 201 and len(answer.json["token"]) == 43


@pytest.mark.parametrize("token", [1, True, [], {}])
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


def test_only_a_true_only_known_is_one(service, owner, push_service):
    for number, value in enumerate((False, None, 0, "true", 1, [], {})):
        assert owner.enable(push_service.browser(), only_known=value).status_code == 201
        assert len(device_ids(service)) == number + 1


# --- what the page says of a device -------------------------------------------------------------------------


def test_a_device_that_an_api_key_added_names_the_key(service, owner, push_service):
    caller = service.caller(name="phone app")
    caller.post("/devices", {"kind": "webpush", "subscription": push_service.browser().subscription})
    assert "by the API key “phone app”" in owner.page("/app/devices").text


def test_a_device_that_the_owner_added_names_no_key(owner, browser):
    assert "API key “" not in owner.page("/app/devices").text


def test_the_last_error_of_a_device_is_shown_with_its_time(service, owner, browser):
    browser.then(403, b'{"reason": "BadJwtToken"}')
    service.caller().send()
    text = the_device(owner)
    assert "The push service answered 403 (BadJwtToken)." in text and "2026-11-21 10:00:" in text


def test_a_push_that_arrives_takes_the_last_error_away(service, owner, browser, moved_clock):
    caller = service.caller()
    browser.then(403)
    caller.send()
    moved_clock.advance(60)
    caller.send()
    page = owner.page("/app/devices")
    assert "403" not in page.text and "last accepted" in page.text and "2026-11-21 10:01" in page.values()


def silent(owner):
    return "silent for" in the_device(owner)


def test_a_device_is_silent_after_30_days_without_a_push_or_a_visit(owner, browser, moved_clock):
    moved_clock.advance(30 * DAY_S - 1)
    assert not silent(owner)
    moved_clock.advance(1)
    assert "silent for 30 days" in the_device(owner)
    moved_clock.advance(5 * DAY_S)
    assert "silent for 35 days" in the_device(owner)


def test_a_push_that_arrives_ends_the_silence(service, owner, browser, moved_clock):
    moved_clock.advance(30 * DAY_S)
    service.caller().send()
    assert not silent(owner)


def test_a_visit_ends_the_silence(owner, browser, moved_clock):
    moved_clock.advance(30 * DAY_S)
    owner.page("/app/")
    owner.enable(browser, only_known=True)
    assert not silent(owner)


# --- testing ------------------------------------------------------------------------------------------------


def test_a_test_reaches_that_device_alone(service, owner, browser, push_service):
    other = push_service.browser()
    owner.enable(other)
    _, oldest = device_ids(service)
    page = owner.done(f"/app/devices/{oldest}/test", leads_to="/app/devices")
    assert (len(browser.messages), other.messages) == (1, [])
    (said,) = page.said("status")[:1]
    assert "took the test" in said and page.said("alert") == []
    message = browser.messages[0]["notification"]
    assert (message["title"], message["navigate"]) == ("MCP - Test", "http://localhost/app/devices")


def test_a_test_is_in_no_history_and_in_no_count(service, owner, browser):
    owner.done(f"/app/devices/{only_id(service)}/test")
    caller = service.caller()
    assert caller.listed() == [] and caller.get("/stats").json["stats"]["totalNotificationsAllTime"] == 0


def test_a_test_that_was_accepted_takes_the_last_error_away(service, owner, browser):
    browser.then(403)
    service.caller().send()
    assert "403" in the_device(owner)
    owner.done(f"/app/devices/{only_id(service)}/test")
    text = the_device(owner)
    assert "403" not in text and "last accepted" in text


def test_a_test_that_is_refused_says_why(service, owner, browser):
    browser.then(403, b'{"reason": "BadJwtToken"}')
    page = owner.done(f"/app/devices/{only_id(service)}/test")
    (said,) = page.said("alert")
    assert "did not go out" in said and "The push service answered 403 (BadJwtToken)." in said
    assert "403" in the_device(owner) and len(device_ids(service)) == 1


def test_a_test_that_gets_no_answer_says_so(service, owner, browser):
    browser.then(0)
    (said,) = owner.done(f"/app/devices/{only_id(service)}/test").said("alert")
    assert "could not be reached" in said


def test_a_test_waits_for_no_thread(service, owner, browser):
    with ExitStack() as pushing:
        assert all(pushing.enter_context(push_slots.slot(1)) for _ in range(8))
        page = owner.refused(f"/app/devices/{only_id(service)}/test", {}, 429)
    assert "try again in a few seconds" in page.main and browser.pushes == []


def test_a_test_of_a_provider_that_is_left_alone_changes_nothing_of_the_device(service, owner, browser, monkeypatch):
    left_alone = push.Answer(push.Outcome.TRANSIENT, "It is left alone for 30 s.", 30, was_tried=False)
    monkeypatch.setattr(push, "send", lambda pushes, _: [left_alone] * len(pushes))
    before = everything()["device"]
    (said,) = owner.done(f"/app/devices/{only_id(service)}/test").said("alert")
    assert "left alone" in said and everything()["device"] == before


def test_a_test_that_finds_a_dead_device_removes_it_and_says_so(service, owner, browser):
    browser.then(410)
    page = owner.done(f"/app/devices/{only_id(service)}/test")
    (said,) = page.said("alert")
    assert "The device is removed." in said and device_ids(service) == []


def test_a_test_of_a_kind_that_is_not_configured_says_so(service, owner):
    service.flask("device", "add", EMAIL, "apns", APNS)
    (said,) = owner.done(f"/app/devices/{only_id(service)}/test").said("alert")
    assert "APNs is not configured on this server." in said


# --- renaming and removing ----------------------------------------------------------------------------------


def test_a_device_is_renamed(service, owner, browser):
    page = owner.done(f"/app/devices/{only_id(service)}/rename", {"name": "  Küche 📱 "}, leads_to="/app/devices")
    assert page.section("Küche 📱") and "Chrome on Linux" not in page.text


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "\0", "a\0b"])
def test_a_bad_name_is_refused_with_a_sentence_and_changes_nothing(service, owner, browser, name):
    device_id, before = only_id(service), everything()
    (said,) = owner.refused(f"/app/devices/{device_id}/rename", {"name": name}).said("alert")
    assert said.endswith(".") and everything() == before


def test_a_device_is_removed_only_after_a_second_question(owner, browser):
    page = owner.page("/app/devices")
    (action,) = page.forms("/remove")
    asked = page.confirmation(action)
    assert asked.startswith("Remove…") and "Nothing is sent to it any more" in asked


def test_a_device_is_removed_by_its_button(service, owner, browser):
    (action,) = owner.page("/app/devices").forms("/remove")
    page = owner.done(action, leads_to="/app/devices")
    assert "The device is removed" in page.text and "No device yet" in page.text
    service.caller().send()
    assert browser.pushes == []


def test_the_page_says_so_when_the_last_device_died_and_sending_fails(service, owner, browser):
    caller = service.caller()
    browser.then(410)
    caller.send()
    assert caller.send().json["notification"]["status"] == "failed"
    page = owner.page("/app/devices")
    assert "The last device is gone" in page.text and "goes to the history alone" not in page.text


def test_a_contact_that_apple_refuses_is_warned_about_on_the_page(make_service, push_service, moved_clock):
    owner = signed_in(make_service(), "root@localhost")
    assert "Apple refuses Web Push from the contact mailto:root@localhost" in owner.page("/app/devices").text


# --- a token by hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, token", [("apns", APNS), ("fcm", "a-token:of_FCM")])
def test_a_token_that_was_typed_is_a_device(every_provider, apns, fcm, kind, token):
    owner = signed_in(every_provider)
    page = owner.done("/app/devices/token", {"kind": kind, "token": f" {token} ", "name": " Old phone "})
    assert "Old phone" in page.text
    assert [line[1] for line in listed(every_provider, "device", "list", EMAIL)] == [kind]
    assert "not configured" not in page.text


def test_a_token_without_a_name_is_called_by_its_service(every_provider):
    owner = signed_in(every_provider)
    assert owner.done("/app/devices/token", {"kind": "apns", "token": APNS, "name": ""}).section("APNs")


def test_the_form_for_tokens_says_what_is_not_configured(owner):
    assert owner.page("/app/devices").text.count("not configured on this server") == 2


@pytest.mark.parametrize("kind, name", [("apns", "APNs"), ("fcm", "FCM")])
def test_a_token_of_a_kind_that_is_not_configured_is_refused_with_a_sentence(service, owner, kind, name):
    (said,) = owner.refused("/app/devices/token", {"kind": kind, "token": APNS}).said("alert")
    assert said.startswith(f"{name} is not configured on this server") and device_ids(service) == []


def test_a_device_of_a_kind_that_is_not_configured_says_so_before_anything_is_sent(service, owner):
    service.caller().post("/devices", {"kind": "fcm", "token": "t", "name": "Old phone"})
    assert "not configured" in owner.page("/app/devices").section("Old phone")


@pytest.mark.parametrize(
    "form, named",
    [
        ({"kind": "apns", "token": "no"}, "hexadecimal"),
        ({"kind": "apns", "token": ""}, "hexadecimal"),
        ({"kind": "fcm", "token": "two words"}, "visible ASCII"),
        ({"kind": "fcm", "token": "x" * 4097}, "visible ASCII"),
        ({"kind": "fcm", "token": "t", "name": "x" * 101}, "100"),
        ({"kind": "fcm", "token": "t", "name": "\0"}, "Name"),
        ({"kind": "webpush", "token": "t"}, "APNs or FCM"),
        ({"kind": "", "token": "t"}, "APNs or FCM"),
        ({}, "APNs or FCM"),
    ],
)
def test_a_token_that_cannot_be_one_is_refused_with_a_sentence(every_provider, form, named):
    (said,) = signed_in(every_provider).refused("/app/devices/token", form).said("alert")
    assert named in said and said.endswith(".") and device_ids(every_provider) == []


def test_a_refused_token_keeps_the_name_and_the_kind_and_not_the_token(every_provider):
    owner = signed_in(every_provider)
    page = owner.refused("/app/devices/token", {"kind": "fcm", "token": "two words", "name": "Old phone"})
    assert page.chosen("kind") == "fcm" and "Old phone" in page.values()
    assert "two words" not in page.values() and "two words" not in page.text


def test_the_21st_device_is_refused_with_a_sentence(every_provider):
    owner = signed_in(every_provider)
    for number in range(20):
        assert owner.post("/app/devices/token", {"kind": "fcm", "token": f"t{number}"}).status_code == 303
    (said,) = owner.refused("/app/devices/token", {"kind": "fcm", "token": "more"}).said("alert")
    assert "20 devices" in said and len(device_ids(every_provider)) == 20


# --- each account's own -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["test", "rename", "remove"])
def test_another_accounts_device_id_is_as_good_as_unknown(service, owner, browser, stranger, form):
    device_id, before = only_id(service), everything()
    foreign, unknown = (
        stranger.post(f"/app/devices/{tried}/{form}", {"name": "mine"}) for tried in (device_id, "0" * 32)
    )
    assert (foreign.status_code, foreign.text) == (404, unknown.text)
    assert everything() == before and browser.pushes == []


@pytest.mark.parametrize("form", ["test", "rename", "remove"])
def test_a_device_that_was_removed_is_as_good_as_unknown(service, owner, browser, form):
    device_id = only_id(service)
    owner.post(f"/app/devices/{device_id}/remove")
    assert owner.post(f"/app/devices/{device_id}/{form}", {"name": "x"}).status_code == 404
    assert browser.pushes == []


def test_another_accounts_devices_are_not_listed(owner, browser, stranger):
    assert "Chrome on Linux" not in stranger.page("/app/devices").text


def test_a_browser_that_two_accounts_enabled_belongs_to_each_on_its_own(service, owner, browser, stranger):
    stranger.enable(browser)
    stranger.post(f"/app/devices/{only_id(service, OTHER)}/remove")
    assert len(device_ids(service)) == 1


# --- the QR code --------------------------------------------------------------------------------------------


def code_of(text):
    picture = BytesIO()
    code = segno.make(text, micro=False)
    code.save(picture, kind="svg", scale=4, border=3, dark="#000", light="#fff", xmldecl=False)
    return picture.getvalue()


def test_the_qr_code_holds_the_public_address_of_the_devices_page(make_service, moved_clock):
    owner = signed_in(make_service(BASE_URL="https://bell.example.org"))
    answer = owner.get("/app/devices/qr.svg")
    assert (answer.status_code, answer.mimetype) == (200, "image/svg+xml")
    assert answer.data == code_of("https://bell.example.org/app/devices")
    assert answer.data != code_of("https://bell.example.org/app/device")


def test_without_a_public_address_the_qr_code_holds_the_pages_own(service):
    owner = signed_in(service, base_url="http://192.168.1.20:8000")
    assert owner.get("/app/devices/qr.svg").data == code_of("http://192.168.1.20:8000/app/devices")


def test_the_qr_code_is_on_the_page_with_its_address_in_letters(make_service, moved_clock):
    page = signed_in(make_service(BASE_URL="https://bell.example.org")).page("/app/devices")
    assert "/app/devices/qr.svg" in [image.get("src") for image in page.all("img")]
    assert "https://bell.example.org/app/devices" in page.texts_of("code")


@pytest.mark.parametrize(
    "address", ["http://localhost", "http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000"]
)
def test_an_address_that_leads_to_the_very_machine_is_offered_to_no_phone(service, address):
    page = signed_in(service, base_url=address).page("/app/devices")
    assert "/app/devices/qr.svg" not in [image.get("src") for image in page.all("img")]
    assert "https" in page.section("Add a phone")


def test_only_the_owner_gets_the_qr_code(service):
    make_account(service)
    assert Visitor(service).get("/app/devices/qr.svg").status_code == 303


# --- subscriptions that cannot be one -----------------------------------------------------------------------

WRONG_SUBSCRIPTIONS = [
    b"",
    b"not JSON",
    b"[]",
    b"null",
    b"{}",
    b'{"subscription": null}',
    b'{"subscription": {"endpoint": "http://169.254.169.254/", "keys": {"p256dh": "x", "auth": "x"}}}',
    b'{"subscription": {"endpoint": "\\ud800"}}',
    b'{"subscription": {"endpoint": 1, "keys": []}}',
    b"\xff",
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", WRONG_SUBSCRIPTIONS)
def test_a_subscription_that_cannot_be_one_is_refused_with_a_sentence_for_the_script(service, owner, body):
    answer = owner.post("/app/devices", body, content_type="application/json")
    assert answer.status_code == 400
    assert set(answer.json) == {"ok", "error", "code", "statusCode"} and answer.json["error"].endswith(".")
    assert device_ids(service) == []


# --- a new subscription from the service worker -------------------------------------------------------------


def given_token(owner, browser):
    """Enable a browser as the page's script does; answers with the token for its service worker."""
    answer = owner.enable(browser)
    assert answer.status_code == 201, answer.text
    return answer.json["token"]


def resync(service, token, browser, **headers):
    """What the service worker does: without a cookie or a token of a form."""
    sent = json.dumps({"subscription": browser.subscription})
    authorization = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return service.app.test_client().post(RESYNC, data=sent, headers={**authorization, **headers})


def test_a_resync_gives_the_device_its_new_subscription(service, owner, push_service):
    old, new = push_service.browser(), push_service.browser()
    token = given_token(owner, old)
    device_id = only_id(service)
    answer = resync(service, token, new)
    assert (answer.status_code, answer.json) == (200, {"ok": True, "id": device_id})
    service.caller().send()
    assert (len(old.pushes), len(new.messages)) == (0, 1)
    assert device_ids(service) == [device_id]


def test_a_resync_keeps_the_name_and_the_place_where_the_browser_subscribed(service, owner, push_service):
    new = push_service.browser()
    token = given_token(owner, push_service.browser())
    owner.post(f"/app/devices/{only_id(service)}/rename", {"name": "Desk"})
    resync(service, token, new, Host="evil.example")
    service.caller().send()
    assert the_device(owner, "Desk")
    assert new.messages[0]["notification"]["navigate"].startswith("http://localhost/app/")


def test_a_resync_needs_no_session_and_works_for_whoever_is_signed_out(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    owner.post("/app/logout")
    assert resync(service, token, push_service.browser()).status_code == 200


def test_a_resync_takes_the_last_error_away(service, owner, push_service):
    old = push_service.browser()
    token = given_token(owner, old)
    old.then(403)
    service.caller().send()
    resync(service, token, push_service.browser())
    assert "403" not in the_device(owner)


def test_the_token_is_good_again_and_again(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    assert [resync(service, token, push_service.browser()).status_code for _ in range(3)] == [200] * 3
    assert len(device_ids(service)) == 1


def test_a_new_token_voids_the_one_before(service, owner, push_service):
    browser = push_service.browser()
    first, second = given_token(owner, browser), given_token(owner, browser)
    assert first != second
    assert [resync(service, token, browser).status_code for token in (first, second)] == [401, 200]


def test_a_browser_that_has_its_token_keeps_it(service, owner, push_service):
    browser = push_service.browser()
    token = given_token(owner, browser)
    assert owner.enable(browser, only_known=True, token=token).json["token"] is None
    assert resync(service, token, browser).status_code == 200


def test_the_token_of_a_removed_device_is_void(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    owner.post(f"/app/devices/{only_id(service)}/remove")
    before = everything()
    assert resync(service, token, push_service.browser()).status_code == 401
    assert everything() == before


def test_the_token_of_a_dead_device_is_void(service, owner, push_service):
    browser = push_service.browser()
    token = given_token(owner, browser)
    browser.then(410)
    service.caller().send()
    assert resync(service, token, push_service.browser()).status_code == 401


@pytest.mark.parametrize("token", [None, "", "x", "A" * 43, "A" * 42, "A" * 44, "sk_test_" + "0" * 48, "é" * 43])
def test_a_wrong_token_is_answered_401_and_changes_nothing(service, owner, browser, push_service, token):
    before = everything()
    answer = resync(service, token, push_service.browser())
    assert answer.status_code == 401 and everything() == before


def test_neither_a_session_nor_an_api_key_is_a_devices_token(service, owner, browser, push_service):
    sent = json.dumps({"subscription": push_service.browser().subscription})
    assert owner.post(RESYNC, sent).status_code == 401
    assert resync(service, service.caller().key, push_service.browser()).status_code == 401


def test_a_token_changes_its_own_device_alone(service, owner, push_service, stranger):
    first, second = push_service.browser(), push_service.browser()
    token, new = given_token(owner, first), push_service.browser()
    owner.enable(second)
    stranger.enable(first)
    resync(service, token, new)
    for email in (EMAIL, OTHER):
        service.caller(email).send()
    assert (len(new.messages), len(second.messages), len(first.messages)) == (1, 1, 1)


def test_a_resync_to_the_subscription_of_another_device_is_refused_and_changes_nothing(service, owner, push_service):
    first, second = push_service.browser(), push_service.browser()
    token = given_token(owner, first)
    owner.enable(second)
    before = everything()
    assert resync(service, token, second).status_code == 409
    assert everything() == before


def test_a_visit_with_the_subscription_of_another_device_leaves_one_device(service, owner, push_service):
    """The owner is there: what the browser says of itself holds."""
    first, second = push_service.browser(), push_service.browser()
    token = given_token(owner, first)
    owner.enable(second)
    assert owner.enable(second, only_known=True, token=token).status_code == 201
    assert len(device_ids(service)) == 1
    service.caller().send()
    assert (len(second.messages), first.messages) == (1, [])


def test_a_resync_with_its_own_subscription_changes_nothing(service, owner, push_service):
    browser = push_service.browser()
    token = given_token(owner, browser)
    before = everything()["device"]
    assert resync(service, token, browser).status_code == 200
    assert everything()["device"] == before


@pytest.mark.parametrize("body", WRONG_SUBSCRIPTIONS)
def test_a_resync_with_what_is_no_subscription_is_refused_and_changes_nothing(service, owner, push_service, body):
    token = given_token(owner, push_service.browser())
    before = everything()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = service.app.test_client().post(RESYNC, data=body, headers=headers)
    assert answer.status_code == (413 if len(body) > 16_384 else 400) and answer.json["ok"] is False
    assert everything() == before


def test_a_pending_notification_goes_to_the_new_subscription(service, owner, push_service, moved_clock):
    old, new = push_service.browser(), push_service.browser()
    token = given_token(owner, old)
    old.then(503)
    assert service.caller().send().json["notification"]["status"] == "pending"
    resync(service, token, new)
    moved_clock.advance(31)
    service.work()
    assert (len(old.pushes), len(new.messages)) == (1, 1)


def test_the_token_is_kept_by_its_hash_alone(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    assert Device.get().resync_token_hash == hashlib.sha256(token.encode()).digest()
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    held = b"".join(path.read_bytes() for path in service.data_dir.iterdir() if path.is_file())
    assert token.encode() not in held


def test_the_token_is_in_no_log_and_no_error(service, owner, push_service, caplog):
    caplog.set_level("DEBUG")
    token = given_token(owner, push_service.browser())
    answers = [resync(service, token, push_service.browser())]
    owner.post(f"/app/devices/{only_id(service)}/remove")
    answers.append(resync(service, token, push_service.browser()))
    assert token not in caplog.text and not any(token in answer.text for answer in answers)


def test_the_page_never_shows_a_devices_token(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    service.flask("device", "add", EMAIL, "apns", APNS)
    text = owner.get("/app/devices").text
    assert token not in text and APNS not in text and push_service.origin not in text


@pytest.mark.parametrize("status", [410, 404, 403, 500])
def test_an_answer_about_the_old_subscription_does_no_harm_to_the_new_one(service, owner, push_service, status):
    old, new = push_service.browser(), push_service.browser()
    token, caller = given_token(owner, old), service.caller()
    old.then(status, after_s=0.4)
    sending = threading.Thread(target=caller.send)
    sending.start()
    while not old.pushes:  # the service has it and has not answered yet
        threading.Event().wait(0.01)
    assert resync(service, token, new).status_code == 200
    sending.join()
    assert len(device_ids(service)) == 1
    assert "answered" not in owner.page("/app/devices").text


def test_what_was_on_its_way_to_a_dead_old_subscription_goes_to_the_new_one(service, owner, push_service):
    old, new = push_service.browser(), push_service.browser()
    token, caller = given_token(owner, old), service.caller()
    old.then(410, after_s=0.4)
    sending = threading.Thread(target=caller.send)
    sending.start()
    while not old.pushes:
        threading.Event().wait(0.01)
    resync(service, token, new)
    sending.join()
    assert [one["status"] for one in caller.listed()] == ["pending"]
    service.work()
    assert [one["status"] for one in caller.listed()] == ["delivered"]
    assert len(new.messages) == 1


@pytest.mark.parametrize("rule", ["/app/settings/sign-out-everywhere", "/app/settings/password"])
def test_the_tokens_of_all_browsers_are_void_when_all_are_signed_out(service, owner, push_service, rule):
    token = given_token(owner, push_service.browser())
    owner.get("/app/settings")
    owner.post(rule, {"current": PASSWORD, "new": "another good password"})
    assert resync(service, token, push_service.browser()).status_code == 401


def test_a_name_that_turns_the_direction_of_text_is_kept_apart_from_what_stands_around_it(service, owner):
    service.flask("device", "add", EMAIL, "apns", "ab" * 32, "--name", "\u202eenohP")
    with database.transaction():
        Device.update(last_error="It failed.").execute()
    assert "<bdi>\u202eenohP</bdi>" in owner.get("/app/devices").text
    assert "for \u2068\u202eenohP\u2069: It failed." in owner.get("/app/").text
