"""A device's quiet hours: nothing is pushed to it in them, nor afterwards what came in them."""

import pytest

from core import delivery
from models import Account
from tests.support.accounts import OWNER, account_set
from tests.support.alarms import bodies, detail, ring, rung, send_at
from tests.support.devices import subscribe
from tests.support.holding import shown
from tests.support.mutes import mute
from tests.support.ntfy_app import add_phone
from tests.support.times import HOUR_S, MINUTE_S

NOW_QUIET, SOON_QUIET = "09:00-11:00", "10:30-12:00"  # the clock of these tests stands at 10:00


def quieten(owner, hours, place=0):
    """Give the account's device at this place, the newest first, these quiet hours."""
    device = owner.get("/devices").json["devices"][place]
    assert owner.patch(f"/devices/{device['id']}", {"quietHours": hours}).status_code == 200
    return device["id"]


@pytest.fixture
def sleeper(owner, browser):
    """The owner's browser, which is in its quiet hours."""
    browser.device_id = quieten(owner, NOW_QUIET)
    return browser


def said(caller, id_):
    """The status of a notification, and those of its deliveries, in the order of its devices."""
    found = detail(caller, id_)
    return found["status"], [one["status"] for one in found["deliveries"]]


def test_nothing_is_pushed_to_a_device_in_its_quiet_hours_nor_afterwards(owner, sleeper, passes):
    of = {"title": "t", "body": "b"}
    sent = [
        owner.post("/notifications/send", of | {"priority": number}).json["notification"] for number in (2, 3, 4, 5)
    ]
    for seconds in (0, 2 * HOUR_S):
        passes(seconds)
        assert {one["status"] for one in sent} == {"delivered"} and sleeper.pushes == []
        assert [said(owner, one["id"]) for one in sent] == [("delivered", ["quiet"])] * 4
    owner.send(body="later")
    assert bodies(sleeper) == ["later"]


def test_it_fails_only_if_a_device_that_was_asked_failed(owner, push_service, sleeper):
    other = subscribe(owner, push_service)
    other.then(400)
    assert said(owner, owner.send().json["notification"]["id"]) == ("failed", ["quiet", "failed"])


def test_events_digests_and_scheduled_sends_are_not_pushed_to_it_either(service, owner, sleeper, passes, moved_clock):
    assert service.alert().post({"message": "a"}).json["status"] == "delivered"
    account_set("--quiet-hours", "10:00-10:30")
    hook = service.alert()
    held = [hook.post({"message": message}).json["notificationId"] for message in "bc"]
    later = send_at(owner, moved_clock.ms + 60_000)
    passes(HOUR_S / 2)
    assert sleeper.pushes == []
    assert {said(owner, id_) == ("delivered", ["quiet"]) for id_ in [*held, later]} == {True}


def test_the_hours_are_in_the_accounts_zone_and_may_differ_by_day(owner, browser):
    account_set("--timezone", "Asia/Tokyo")  # it is Saturday, 19:00 there
    for hours, pushed in (("sa 19:00-20:00", 0), ("su 19:00-20:00", 1), ("10:00-11:00", 2), ("off", 3)):
        quieten(owner, hours)
        owner.send()
        assert len(browser.pushes) == pushed, hours


def test_a_retry_that_falls_into_quiet_hours_is_not_made(owner, browser, passes):
    browser.then(503)
    id_ = owner.send().json["notification"]["id"]
    quieten(owner, NOW_QUIET)
    passes(30)
    assert said(owner, id_) == ("delivered", ["quiet"])
    passes(2 * HOUR_S)
    assert len(browser.pushes) == 1


def test_of_what_repeats_it_gets_what_began_before_but_not_within_its_quiet_hours(
    owner, push_service, browser, passes
):
    other = subscribe(owner, push_service)
    quieten(owner, SOON_QUIET, place=1)
    began_before = ring(owner, every_s=1_800, for_s=10_800)
    passes(HOUR_S / 2)
    within = ring(owner, every_s=1_800, for_s=10_800, body="within")
    assert (bodies(browser), bodies(other)) == (["full"], ["full", "full", "within"])
    passes(HOUR_S * 1.5)
    assert bodies(browser) == ["full", "full"] and len(bodies(other)) >= 5
    assert said(owner, within)[1] == ["quiet", "delivered"] and rung(owner, began_before)[0] == "waiting"


def test_a_repeat_brings_nothing_that_came_in_quiet_hours_that_were_switched_off_since(
    owner, push_service, sleeper, passes
):
    other = subscribe(owner, push_service)
    id_ = ring(owner, every_s=60)
    quieten(owner, "off")
    passes(MINUTE_S)
    assert (bodies(sleeper), len(other.pushes), said(owner, id_)[1]) == ([], 2, ["quiet", "delivered"])


def test_a_repeat_of_what_came_in_a_digest_in_its_quiet_hours_does_not_reach_it_either(owner, sleeper, passes):
    mute(owner, for_s=2 * MINUTE_S, urgentPasses=False)
    id_ = ring(owner, every_s=60)
    owner.send()
    passes(2 * MINUTE_S)
    quieten(owner, "off")
    passes(MINUTE_S)
    assert (sleeper.pushes, rung(owner, id_)) == ([], ("waiting", 0))


def test_a_repeat_without_a_device_to_go_to_waits_for_the_next(owner, browser, passes):
    quieten(owner, SOON_QUIET)
    id_ = ring(owner, every_s=2_400, for_s=10_800)
    passes(2_400)
    assert (rung(owner, id_), len(browser.pushes)) == (("waiting", 0), 1)
    passes(2_400)
    passes(2_400)
    assert (rung(owner, id_), len(browser.pushes)) == (("waiting", 1), 2)


def test_the_ntfy_app_does_not_fetch_what_came_in_its_quiet_hours(owner, passes):
    android = add_phone(owner, quietHours=NOW_QUIET)
    id_ = owner.send().json["notification"]["id"]
    assert said(owner, id_) == ("delivered", ["quiet"])
    assert (android.messages(), android.messages("since=all")) == ([], [])
    passes(2 * HOUR_S)
    assert android.messages("since=all") == []
    owner.send(body="later")
    assert [one["message"] for one in android.messages("since=all")] == ["later"]


def test_a_test_reaches_it_as_its_owner_asks_for_it_now(service, owner, sleeper):
    delivery.try_device(Account.find(OWNER), sleeper.device_id)
    assert shown(sleeper) == [("MCP - Test", delivery.TEST_BODY)]
