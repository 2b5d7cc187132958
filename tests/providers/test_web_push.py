"""Web Push: requests, answers, and what becomes of a notification."""

import json

import push
from models import Device
from providers.base import Outcome
from store.database import EVERYBODY, WriteFailed, transaction
from tests.support.devices import subscribe
from tests.support.outcomes import newest, pass_time
from tests.support.rows import each


def test_a_subscribed_device_gets_the_notification_in_the_declarative_form(owner, browser):
    sent = owner.send("Disk", "root at 98 %").json["notification"]
    assert sent["status"] == "delivered"
    assert browser.messages == [
        {
            "web_push": 8030,
            "notification": {
                "title": "MCP - Disk",
                "body": "root at 98 %",
                "navigate": f"http://127.0.0.1:8000/app/notifications/{sent['id']}",
                "tag": sent["id"],
            },
        }
    ]
    assert newest(owner) == "delivered"


def test_one_signed_header_per_origin_is_kept_and_renewed_before_its_end(phones, moved_clock):
    browser = phones.browser
    moved_clock.advance(1800)  # between the moments at which it is renewed
    for _ in range(24):
        assert phones.pushed_to("webpush").outcome is Outcome.DELIVERED
        assert 3600 <= browser.claims[-1]["exp"] - moved_clock.ms // 1000 <= 12 * 3600
        moved_clock.advance(3600)
    signed = [one["authorization"] for one in browser.pushes]
    assert len(set(signed[:11])) <= 2 < len(set(signed)) <= 4


def test_the_contact_is_the_owners_mail_address_or_the_public_address(owner, browser, service):
    owner.send()
    assert browser.claims[0]["sub"] == "mailto:owner@example.org"


def test_the_contact_is_the_public_address_once_it_is_https(make_service, push_service, moved_clock):
    service = make_service(WEBPUSH_HOSTS=push_service.origin, BASE_URL="https://bell.example.org:8443")
    service.account()
    browser = push_service.browser()
    service.flask("device", "add", "owner@example.org", "webpush", json.dumps(browser.subscription))
    sent = service.caller().send().json["notification"]
    assert sent["status"] == "delivered"
    assert browser.claims[0]["sub"] == "https://bell.example.org:8443"
    opened = f"https://bell.example.org:8443/app/notifications/{sent['id']}"
    assert browser.messages[0]["notification"]["navigate"] == opened


@each(
    "base_url, email, refused",
    [
        ("https://localhost", "a@example.org", True),
        ("https://bell.local:8443", "a@example.org", True),
        ("http://bell.example.org", "root@localhost", True),
        ("", "root@nas.local", True),
        ("https://bell.example.org", "root@localhost", False),
        ("http://localhost:8000", "a@example.org", False),
        ("", "a@example.org", False),
    ],
)
def test_a_contact_that_apple_refuses_is_warned_about(make_service, base_url, email, refused):
    make_service(BASE_URL=base_url)
    assert ("webpush" in push.warnings(email)) == refused


def test_a_title_that_fits_is_not_shortened_for_a_long_body(owner, browser):
    owner.send("t" * 1000, "b" * 10_000)
    assert browser.messages[0]["notification"]["title"] == "MCP - " + "t" * 1000


def test_retries_double_from_30_seconds_to_an_hour_and_end_after_24_hours(owner, browser, service, moved_clock):
    waits = [30, 60, 120, 240, 480, 960, 1920, *[3600] * 22]  # another hour were more than 24
    for _ in (0, *waits):
        browser.then(503)
    assert owner.send().json["notification"]["status"] == "pending"
    for tries, wait in enumerate(waits, 1):
        assert newest(owner) == "pending"
        for seconds, seen in ((wait - 1, tries), (1, tries + 1)):
            pass_time(service, moved_clock, seconds)
            assert len(browser.pushes) == seen
    assert newest(owner) == "failed"


def test_a_dead_device_ends_its_pending_deliveries(owner, browser, service, moved_clock):
    browser.then(503).then(410)
    owner.send("first")
    assert owner.send("second").json["notification"]["status"] == "failed"
    assert [one["status"] for one in owner.listed()] == ["failed", "failed"]


def test_an_outcome_that_cannot_be_written_is_answered_as_pending_and_pushed_again_when_its_lease_ends(
    owner, browser, hook, service, moved_clock, monkeypatch
):
    def locked(*_):
        raise WriteFailed("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(Device, "note_outcome", locked)
        answer, event = owner.send(headers={"Idempotency-Key": "once"}), hook.post({"message": "full"})
    assert (answer.status_code, answer.json["notification"]["status"]) == (200, "pending")
    assert (event.status_code, event.json["status"]) == (200, "pending")
    moved_clock.advance(30)
    service.work()
    assert [one["status"] for one in owner.listed()] == ["delivered"] * 2
    ids = [answer.json["notification"]["id"], event.json["notificationId"]]
    assert sorted(one["notification"]["tag"] for one in browser.messages) == sorted(ids * 2)


def test_a_key_does_not_change_a_device_that_it_did_not_add(owner, browser, service):
    (before,) = owner.get("/devices").json["devices"]
    again = {"kind": "webpush", "subscription": browser.subscription, "name": "other"}
    assert service.caller(name="second").post("/devices", again).json["device"] == before
    assert owner.post("/devices", again).json["device"] == {**before, "name": "other"}


def test_a_push_that_cannot_be_built_does_not_take_the_others_with_it(owner, browser, push_service):
    other = subscribe(owner, push_service)
    with transaction(EVERYBODY):
        Device.update(p256dh="damaged").where(Device.token == browser.endpoint).execute()
    assert owner.send().json["notification"]["status"] == "delivered"
    assert len(other.messages) == 1
    (error,) = (one["lastError"] for one in owner.get("/devices").json["devices"] if one["lastError"])
    assert error == "This push could not be built."
