"""Service workers announce new subscriptions: which announcements are believed, and what becomes of the old one."""

import hashlib
import json
import threading
from contextlib import contextmanager

import pytest

from models import Device
from store import database
from tests.support.accounts import OTHER, OWNER, PASSWORD
from tests.support.forms import RESYNC
from tests.support.pages import APNS, WRONG_SUBSCRIPTIONS, device_ids, given_token, only_id, the_device
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.server import wait_until
from tests.support.tables import everything


def resync(service, token, browser, **headers):
    """Send what a service worker sends: no cookie, and no token of a form."""
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


def test_a_resync_keeps_the_name_and_the_place_where_the_browser_subscribed_and_takes_the_last_error_away(
    service, owner, push_service
):
    old, new = push_service.browser(), push_service.browser()
    token = given_token(owner, old)
    owner.post(f"/app/devices/{only_id(service)}", {"name": "Desk"})
    old.then(403)
    service.caller().send()
    assert "403" in the_device(owner, "Desk")
    resync(service, token, new, Host="evil.example")
    assert "403" not in the_device(owner, "Desk")
    service.caller().send()
    assert new.messages[0]["notification"]["navigate"].startswith("http://localhost/app/")


def test_a_resync_needs_no_session_and_works_for_whoever_is_signed_out(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    owner.post("/app/logout")
    assert resync(service, token, push_service.browser()).status_code == 200


def test_a_device_token_can_be_used_repeatedly(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    assert [resync(service, token, push_service.browser()).status_code for _ in range(3)] == [200] * 3
    assert len(device_ids(service)) == 1


def test_a_new_token_voids_the_one_before(service, owner, push_service):
    browser = push_service.browser()
    first, second = given_token(owner, browser), given_token(owner, browser)
    assert first != second
    assert [resync(service, token, browser).status_code for token in (first, second)] == [401, 200]


def test_the_token_of_a_removed_device_is_void(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    owner.post(f"/app/devices/{only_id(service)}/remove")
    before = everything()
    assert resync(service, token, push_service.browser()).status_code == 401
    assert everything() == before


@each("token", [None, "", "A" * 43, "sk_test_" + "0" * 48, "é" * 43])
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
    for email in (OWNER, OTHER):
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


def test_a_resync_with_what_is_no_subscription_is_refused_and_changes_nothing(service, owner, push_service):
    token = given_token(owner, push_service.browser())
    before = everything()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    for body in WRONG_SUBSCRIPTIONS:
        answer = service.client.post(RESYNC, data=body, headers=headers)
        assert answer.status_code == (413 if len(body) > 16_384 else 400) and answer.json["ok"] is False, body[:99]
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


@sqlite_only
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
    service.flask("device", "add", OWNER, "apns", APNS)
    text = owner.get("/app/devices").text
    assert token not in text and APNS not in text and push_service.origin not in text


@contextmanager
def answered_late(browser, status, caller):
    """Send; the push service has the push in the block, and answers after it."""
    browser.then(status, after=(ended := threading.Event()))
    sending = threading.Thread(target=caller.send)
    sending.start()
    wait_until(lambda: browser.pushes)
    try:
        yield
    finally:
        ended.set()
        sending.join()


@pytest.mark.parametrize("status", [410, 403, 500])
def test_a_late_answer_for_the_old_subscription_does_not_affect_the_new_one(service, owner, push_service, status):
    old, new = push_service.browser(), push_service.browser()
    token, caller = given_token(owner, old), service.caller()
    with answered_late(old, status, caller):
        assert resync(service, token, new).status_code == 200
    assert len(device_ids(service)) == 1
    assert "answered" not in owner.page("/app/devices").text


def test_a_push_to_a_dead_old_subscription_is_made_again_to_the_new_one(service, owner, push_service):
    old, new = push_service.browser(), push_service.browser()
    token, caller = given_token(owner, old), service.caller()
    with answered_late(old, 410, caller):
        resync(service, token, new)
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


def test_a_name_with_direction_marks_does_not_reverse_the_text_around_it(service, owner):
    service.flask("device", "add", OWNER, "apns", "ab" * 32, "--name", "\u202eenohP")
    with database.transaction(database.EVERYBODY):
        Device.update(last_error="It failed.").execute()
    assert "<bdi>\u202eenohP</bdi>" in owner.get("/app/devices").text
    assert "<bdi>\u202eenohP</bdi> gets nothing" in owner.get("/app/").text
