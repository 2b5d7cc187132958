"""Hold, release, digest: SPEC 4.8, 6; CONTRACT 3 (status), 4 (quiet hours, frequency, digest), 6 (a push's tag)."""

import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import ANY

import pytest

import app as application
import models
import push
from core import jobs, retries
from process import clock
from store import database
from store.held import Held

OWNER = "owner@example.org"
OTHER = "pro@example.org"
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
QUIET = "22:00-07:00"
EVENING, NIGHT, MORNING = "2026-11-21T21:50", "2026-11-21T23:00", "2026-11-22T07:00"
MORE = re.compile(r"… and ([0-9]+) more")


def utc(text):
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def subscribe(caller, push_service):
    """A new device of the caller's account."""
    browser = push_service.browser()
    assert caller.post("/devices", {"kind": "webpush", "subscription": browser.subscription}).status_code == 201
    return browser


def account_set(service, *options, email=OWNER):
    result = service.flask("account", "set", email, *options)
    assert result.exit_code == 0, result.output


@pytest.fixture
def browser(push_service, owner):
    """The owner's only device."""
    return subscribe(owner, push_service)


@pytest.fixture
def until(moved_clock):
    """Let time pass until a moment in UTC."""
    return lambda text: moved_clock.advance((utc(text) - moved_clock.ms) / 1000)


@pytest.fixture
def night(service, owner, until):
    """The owner's quiet hours have begun an hour ago."""
    account_set(service, "--quiet-hours", QUIET)
    until(NIGHT)


@pytest.fixture
def works(service):
    """Two rounds of the worker: the second pushes what the first released, if the first did not."""

    def twice():
        service.work()
        service.work()

    return twice


def happens(hook, *messages):
    """Events, one for each message; answers with the ids of their notifications, which all have the same status."""
    answers = [hook.post({"message": message}) for message in messages]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.json["notificationId"] for answer in answers]


def held(hook, *messages):
    """Events that are held."""
    answers = [hook.post({"message": message}).json for message in messages]
    assert answers == [{"ok": True, "status": "held", "notificationId": ANY}] * len(messages)
    return [answer["notificationId"] for answer in answers]


def statuses(caller):
    """By body; the bodies in these tests are different."""
    return {one["body"]: one["status"] for one in caller.listed("?limit=100")}


def all_rows(caller):
    rows, query = [], "?limit=100"
    while True:
        page = caller.get(f"/notifications{query}").json
        rows += page["notifications"]
        if page["pagination"]["isDone"]:
            return rows
        query = f"?limit=100&cursor={page['pagination']['nextCursor']}"


def shown(browser):
    """Title and body of each message on the phone."""
    return [(one["notification"]["title"], one["notification"]["body"]) for one in browser.messages]


def digest_of(*lines):
    return f"MCP - {len(lines)} notifications", "\n".join(lines)


# Holding


def test_an_event_in_quiet_hours_is_answered_as_held(service, night):
    answer = service.alert().post({"message": "a"})
    assert (answer.status_code, answer.json) == (200, {"ok": True, "status": "held", "notificationId": ANY})


def test_a_held_event_is_in_the_history_at_once(service, owner, night, moved_clock):
    (held_id,) = held(service.alert(), "a")
    assert owner.listed() == [
        {"id": held_id, "title": "MCP - Backups", "body": "a", "status": "held", "createdAt": moved_clock.ms}
    ]


def test_nothing_held_is_pushed_while_quiet_hours_last(service, browser, night, works, moved_clock):
    held(service.alert(), "a", "b")
    for _ in range(7):
        works()
        moved_clock.advance(HOUR_S)
    assert browser.pushes == []


def test_a_held_event_is_counted_when_it_happens(service, owner, night, moved_clock):
    held(service.alert(), "a", "b")
    stats, (alert,) = owner.get("/stats").json["stats"], owner.get("/alerts").json["alerts"]
    assert (stats["totalNotificationsAllTime"], stats["notificationsThisDay"]) == (2, 2)
    assert (alert["notificationCount"], alert["lastTriggeredAt"]) == (2, moved_clock.ms)


@pytest.mark.parametrize(
    "now, status",
    [
        ("2026-11-21T21:59:59.999", "delivered"),
        ("2026-11-21T22:00:00.000", "held"),
        ("2026-11-22T00:00:00.000", "held"),
        ("2026-11-22T06:59:59.999", "held"),
        ("2026-11-22T07:00:00.000", "delivered"),
    ],
)
def test_quiet_hours_hold_from_their_start_until_their_end(service, owner, until, now, status):
    account_set(service, "--quiet-hours", QUIET)
    hook = service.alert()
    until(now)
    assert hook.post({"message": "a"}).json["status"] == status


@pytest.mark.parametrize(
    "zone, now, status",
    [
        ("Asia/Kathmandu", "2026-11-21T16:14:59", "delivered"),
        ("Asia/Kathmandu", "2026-11-21T16:15:00", "held"),
        ("Asia/Kathmandu", "2026-11-22T01:14:59", "held"),
        ("Asia/Kathmandu", "2026-11-22T01:15:00", "delivered"),
        ("America/New_York", "2026-11-22T02:59:59", "delivered"),
        ("America/New_York", "2026-11-22T03:00:00", "held"),
    ],
)
def test_quiet_hours_are_in_the_accounts_time_zone(service, owner, until, zone, now, status):
    account_set(service, "--quiet-hours", QUIET, "--timezone", zone)
    hook = service.alert()
    until(now)
    assert hook.post({"message": "a"}).json["status"] == status


def test_what_is_sent_through_the_rest_api_is_never_held(service, owner, browser, night):
    held(service.alert("--frequency", "1d"), "a")
    assert owner.send("Backup", "b").json["notification"]["status"] == "delivered"
    assert shown(browser) == [("MCP - Backup", "b")]


def test_an_alert_that_ignores_quiet_hours_is_pushed_within_them(service, browser, night):
    assert service.alert("--ignore-quiet-hours").post({"message": "a"}).json["status"] == "delivered"
    assert shown(browser) == [("MCP - Backups", "a")]


def test_quiet_hours_hold_only_their_own_account(service, pro, push_service, night):
    browser = subscribe(pro, push_service)
    assert service.alert(email=OTHER).post({"message": "a"}).json["status"] == "delivered"
    assert shown(browser) == [("MCP - Backups", "a")]


def test_the_notice_that_an_alert_was_flooded_is_not_held(service, owner, browser, night, works):
    hook = service.alert("--frequency", "1d", name="Chatterbox")
    for _ in range(500):
        hook.post({"message": "a"})
    works()
    assert owner.get("/alerts").json["alerts"][0]["isActive"] is False
    ((title, body),) = shown(browser)
    assert "Chatterbox" in title + body


def test_a_held_notification_keeps_the_text_of_its_moment(service, owner, browser, night, until, works):
    hook = service.alert("--title", "before {{ message }}")
    held(hook, "a")
    hook.set("--title", "after")
    until(MORNING)
    works()
    assert shown(browser) == [("MCP - before a", "a")]


# Release when quiet hours end


def test_nothing_is_released_a_moment_before_the_end(service, owner, browser, night, until, works):
    held(service.alert(), "a", "b")
    until("2026-11-22T06:59:59.999")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])


def test_a_single_held_notification_is_pushed_as_itself(service, owner, browser, night, until, works):
    (held_id,) = held(service.alert(), "a")
    until(MORNING)
    works()
    assert browser.messages == [
        {
            "web_push": 8030,
            "notification": {
                "title": "MCP - Backups",
                "body": "a",
                "navigate": f"http://127.0.0.1:8000/app/notifications/{held_id}",
                "tag": held_id,
            },
        }
    ]
    assert statuses(owner) == {"a": "delivered"}


def test_several_held_notifications_are_one_push(service, owner, browser, night, until, works):
    held(service.alert(name="Backups"), "a", "b")
    held(service.alert(name="Doorbell"), "c")
    until(MORNING)
    works()
    assert browser.messages == [
        {
            "web_push": 8030,
            "notification": {
                "title": "MCP - 3 notifications",
                "body": "Backups: a\nBackups: b\nDoorbell: c",
                "navigate": ANY,
                "tag": ANY,
            },
        }
    ]
    assert statuses(owner) == {"a": "delivered", "b": "delivered", "c": "delivered"}


def test_a_digest_is_pushed_once(service, browser, night, until, works, moved_clock):
    held(service.alert(), "a", "b")
    until(MORNING)
    for _ in range(5):
        works()
        moved_clock.advance(HOUR_S)
    assert len(browser.pushes) == 1


def test_a_digest_has_the_oldest_first_of_whichever_alert(service, browser, night, until, works, moved_clock):
    first, second = service.alert(name="One"), service.alert(name="Two")
    for hook, message in [(second, "a"), (first, "b"), (second, "c"), (first, "d")]:
        held(hook, message)
        moved_clock.advance(1)
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("Two: a", "One: b", "Two: c", "One: d")]


def test_only_the_prefix_is_left_out_of_a_line(service, browser, night, until, works):
    hook = service.alert()
    hook.post({"title": "MCP - Disk", "message": "MCP - full"})
    hook.post({"title": "Disk", "message": "full"})
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("MCP - Disk: MCP - full", "Disk: full")]


def test_line_breaks_within_a_notification_are_spaces_in_its_line(service, browser, night, until, works):
    hook = service.alert()
    hook.post({"title": "Disk\nroot", "message": "98 %\nfull"})
    hook.post({"title": "Disk", "message": "a\r\nb\rc\u2028d\x0be\x07f"})
    until(MORNING)
    works()
    ((title, body),) = shown(browser)
    first, second = body.split("\n")
    assert (title, first) == ("MCP - 2 notifications", "Disk root: 98 % full")
    assert second.startswith("Disk: a") and second.isprintable()


def test_a_digest_is_no_row_of_the_history(service, owner, browser, night, until, works):
    ids = held(service.alert(), "a", "b", "c")
    before = owner.listed()
    until(MORNING)
    works()
    assert owner.listed() == [row | {"status": "delivered"} for row in before]
    assert [row["id"] for row in before] == ids[::-1]


def test_a_digest_counts_in_no_statistics(service, owner, browser, night, until, works):
    held(service.alert(), "a", "b", "c")
    until(MORNING)
    before = owner.get("/stats").json, owner.get("/alerts").json
    works()
    assert len(browser.messages) == 1
    assert (owner.get("/stats").json, owner.get("/alerts").json) == before


def test_a_digest_is_not_counted_when_another_time_zone_counts_again(service, owner, browser, night, until, works):
    held(service.alert(), "a", "b", "c")
    until(MORNING)
    works()
    account_set(service, "--timezone", "Asia/Kathmandu")
    stats = owner.get("/stats").json["stats"]
    assert (stats["notificationsThisDay"], stats["notificationsThisMonth"]) == (3, 3)


def test_a_digest_is_not_found_in_the_history(service, owner, browser, night, until, works):
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    assert owner.listed("?search=notifications") == owner.listed("?search=Backups:") == []


def test_each_account_has_its_own_digest(service, owner, pro, browser, push_service, night, until, works):
    account_set(service, "--quiet-hours", QUIET, email=OTHER)
    other = subscribe(pro, push_service)
    held(service.alert(), "a", "b")
    held(service.alert(email=OTHER), "c", "d")
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    assert shown(other) == [digest_of("Backups: c", "Backups: d")]


def test_one_accounts_failing_provider_does_not_keep_the_others_digest(
    service, owner, pro, browser, push_service, night, until, works
):
    account_set(service, "--quiet-hours", QUIET, email=OTHER)
    other = subscribe(pro, push_service)
    browser.then(503)
    held(service.alert(), "a", "b")
    held(service.alert(email=OTHER), "c", "d")
    until(MORNING)
    works()
    assert statuses(owner) == {"a": "pending", "b": "pending"}
    assert statuses(pro) == {"c": "delivered", "d": "delivered"}
    assert shown(other) == [digest_of("Backups: c", "Backups: d")]


def test_each_night_has_its_own_digest(service, browser, night, until, works):
    hook = service.alert()
    held(hook, "a", "b")
    until(MORNING)
    works()
    until("2026-11-22T22:00")
    held(hook, "c", "d", "e")
    until("2026-11-23T07:00")
    works()
    first, second = browser.messages
    assert shown(browser) == [
        digest_of("Backups: a", "Backups: b"),
        digest_of("Backups: c", "Backups: d", "Backups: e"),
    ]
    assert first["notification"]["tag"] != second["notification"]["tag"]


def test_after_quiet_hours_an_event_is_pushed_at_once_and_not_with_the_digest(service, browser, night, until, works):
    hook = service.alert()
    held(hook, "a", "b")
    until(MORNING)
    assert hook.post({"message": "c"}).json["status"] == "delivered"
    works()
    assert shown(browser) == [("MCP - Backups", "c"), digest_of("Backups: a", "Backups: b")]


def test_quiet_hours_that_the_clocks_bring_twice_hold_twice(service, owner, browser, until, works):
    account_set(service, "--quiet-hours", "23:00-02:30", "--timezone", "Europe/Berlin")
    hook = service.alert()
    until("2027-10-31T00:10")
    held(hook, "a", "b")
    until("2027-10-31T00:30")
    works()
    until("2027-10-31T01:10")
    held(hook, "c", "d")
    until("2027-10-31T01:29:59.999")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    until("2027-10-31T01:30")
    works()
    assert shown(browser)[1:] == [digest_of("Backups: c", "Backups: d")]


def test_quiet_hours_whose_end_the_clocks_leave_out_end_with_the_hour_before(service, browser, until, works):
    account_set(service, "--quiet-hours", "22:00-02:30", "--timezone", "Europe/Berlin")
    until("2027-03-28T00:15")
    held(service.alert(), "a", "b")
    until("2027-03-28T00:59:59.999")
    works()
    assert browser.pushes == []
    until("2027-03-28T01:00")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_a_clock_that_is_set_does_not_bring_a_digest_again(service, owner, browser, night, until, works, moved_clock):
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    for jump_s in (-8 * HOUR_S, 9 * HOUR_S, -HOUR_S, 40 * DAY_S, -80 * DAY_S):
        moved_clock.set_wall(moved_clock.ms + jump_s * 1000)
        works()
    assert len(browser.pushes) == 1


# Frequency


@pytest.mark.parametrize("frequency, seconds", [("15m", 15 * MINUTE_S), ("1h", HOUR_S), ("1d", DAY_S)])
def test_a_digest_of_a_frequency_ends_its_time_after_the_first_event(
    service, owner, browser, works, moved_clock, frequency, seconds
):
    hook = service.alert("--frequency", frequency)
    held(hook, "a")
    moved_clock.advance(seconds - 1)
    held(hook, "b")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])
    moved_clock.advance(1)
    works()
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_an_alert_is_instant_unless_told_otherwise(service, browser):
    assert service.alert().post({"message": "a"}).json["status"] == "delivered"
    assert len(browser.messages) == 1


def test_a_digest_of_one_event_is_pushed_as_itself(service, browser, works, moved_clock):
    (held_id,) = held(service.alert("--frequency", "1h"), "a")
    moved_clock.advance(HOUR_S)
    works()
    ((title, body),) = shown(browser)
    assert (title, body, browser.messages[0]["notification"]["tag"]) == ("MCP - Backups", "a", held_id)


def test_the_next_event_begins_a_new_digest(service, owner, browser, works, moved_clock):
    hook = service.alert("--frequency", "15m")
    held(hook, "a", "b")
    moved_clock.advance(20 * MINUTE_S)
    works()
    held(hook, "c")
    moved_clock.advance(14 * MINUTE_S)
    held(hook, "d")
    works()
    assert statuses(owner) == {"a": "delivered", "b": "delivered", "c": "held", "d": "held"}
    moved_clock.advance(MINUTE_S)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b"), digest_of("Backups: c", "Backups: d")]


def test_digests_that_end_together_are_one_push(service, browser, works, moved_clock):
    held(service.alert("--frequency", "1h", name="Hourly"), "a", "b")
    moved_clock.advance(45 * MINUTE_S)
    held(service.alert("--frequency", "15m", name="Quarterly"), "c")
    moved_clock.advance(15 * MINUTE_S)
    works()
    assert shown(browser) == [digest_of("Hourly: a", "Hourly: b", "Quarterly: c")]


def test_each_alert_collects_on_its_own(service, owner, browser, works, moved_clock):
    held(service.alert("--frequency", "1h", name="Hourly"), "a", "b")
    held(service.alert("--frequency", "15m", name="Quarterly"), "c", "d")
    moved_clock.advance(15 * MINUTE_S)
    works()
    assert statuses(owner) == {"a": "held", "b": "held", "c": "delivered", "d": "delivered"}
    assert shown(browser) == [digest_of("Quarterly: c", "Quarterly: d")]


def test_an_instant_alert_does_not_wait_for_another_alerts_digest(service, owner, browser):
    held(service.alert("--frequency", "1d"), "a")
    happens(service.alert(name="Doorbell"), "b")
    assert (statuses(owner), shown(browser)) == ({"a": "held", "b": "delivered"}, [("MCP - Doorbell", "b")])


def test_a_digest_whose_time_is_over_in_quiet_hours_goes_on_until_they_end(service, owner, browser, until, works):
    account_set(service, "--quiet-hours", QUIET)
    hook = service.alert("--frequency", "15m")
    for moment, message in [(EVENING, "a"), (NIGHT, "b"), ("2026-11-22T06:59", "c")]:
        until(moment)
        held(hook, message)
        works()
    assert browser.pushes == []
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b", "Backups: c")]
    assert set(statuses(owner).values()) == {"delivered"}


def test_a_digest_that_begins_in_quiet_hours_goes_on_after_them(service, owner, browser, night, until, works):
    hook = service.alert("--frequency", "1h")
    until("2026-11-22T06:55")
    held(hook, "a")
    until(MORNING)
    works()
    held(hook, "b")
    until("2026-11-22T07:54:59.999")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])
    until("2026-11-22T07:55")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_a_digest_of_an_alert_that_ignores_quiet_hours_ends_within_them(service, browser, night, works, moved_clock):
    held(service.alert("--frequency", "15m", "--ignore-quiet-hours"), "a", "b")
    held(service.alert(name="Doorbell"), "c")
    moved_clock.advance(15 * MINUTE_S)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_the_end_of_quiet_hours_leaves_what_a_frequency_still_holds(service, owner, browser, night, until, works):
    held(service.alert("--frequency", "1d", name="Daily"), "a")
    held(service.alert(), "b", "c")
    until(MORNING)
    works()
    assert statuses(owner) == {"a": "held", "b": "delivered", "c": "delivered"}
    assert shown(browser) == [digest_of("Backups: b", "Backups: c")]


def test_a_digest_counts_elapsed_time_when_the_clocks_change(service, owner, browser, until, works):
    account_set(service, "--timezone", "Europe/Berlin")
    hook = service.alert("--frequency", "1d")
    until("2027-03-27T12:00")
    held(hook, "a")
    until("2027-03-28T11:59:59.999")
    works()
    assert statuses(owner) == {"a": "held"}
    until("2027-03-28T12:00")
    works()
    assert statuses(owner) == {"a": "delivered"}


# Settings that change meanwhile


@pytest.mark.parametrize(
    "options",
    [
        ("--quiet-hours", "off"),
        ("--quiet-hours", "01:00-07:00"),
        ("--quiet-hours", "20:00-23:00"),
        ("--timezone", "Asia/Tokyo"),
    ],
)
def test_quiet_hours_that_no_longer_hold_release_in_the_next_round(service, owner, browser, night, works, options):
    held(service.alert(), "a", "b")
    works()
    account_set(service, *options)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}


@pytest.mark.parametrize("options", [("--quiet-hours", "22:00-09:00"), ("--timezone", "America/New_York")])
def test_quiet_hours_that_were_put_off_hold_until_their_new_end(service, browser, night, until, works, options):
    until("2026-11-22T05:00")
    held(service.alert(), "a", "b")
    account_set(service, *options)
    until(MORNING)
    works()
    assert browser.pushes == []
    until("2026-11-22T12:00")
    works()
    assert len(browser.messages) == 1


def test_what_a_frequency_collects_is_held_by_quiet_hours_set_meanwhile(service, owner, until, works, moved_clock):
    until(NIGHT)
    held(service.alert("--frequency", "15m"), "a")
    account_set(service, "--quiet-hours", QUIET)
    moved_clock.advance(15 * MINUTE_S)
    works()
    assert statuses(owner) == {"a": "held"}


def test_an_alert_that_begins_to_ignore_quiet_hours_is_released_alone(service, owner, browser, night, works):
    hook = service.alert()
    held(hook, "a", "b")
    held(service.alert(name="Doorbell"), "c")
    hook.set("--ignore-quiet-hours")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    assert statuses(owner) == {"a": "delivered", "b": "delivered", "c": "held"}


def test_an_alert_that_follows_quiet_hours_again_is_held_again(service, night):
    hook = service.alert("--ignore-quiet-hours")
    hook.set("--follow-quiet-hours")
    held(hook, "a")


def test_an_alert_that_becomes_instant_releases_in_the_next_round(service, owner, browser, works):
    hook = service.alert("--frequency", "1d")
    held(hook, "a", "b")
    hook.set("--frequency", "instant")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_an_alert_that_becomes_instant_in_quiet_hours_stays_held_by_them(service, owner, browser, night, works):
    hook = service.alert("--frequency", "1d")
    held(hook, "a", "b")
    hook.set("--frequency", "instant")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])


@pytest.mark.parametrize("before", ["15m", "1d"])
def test_another_frequency_counts_from_the_first_event_held(service, owner, works, moved_clock, before):
    hook = service.alert("--frequency", before)
    held(hook, "a")
    moved_clock.advance(10 * MINUTE_S)
    hook.set("--frequency", "1h")
    moved_clock.advance(50 * MINUTE_S - 1)
    works()
    assert statuses(owner) == {"a": "held"}
    moved_clock.advance(1)
    works()
    assert statuses(owner) == {"a": "delivered"}


def test_a_new_webhook_address_changes_nothing_about_what_is_held(service, owner, browser, night, until, works):
    hook = service.alert()
    held(hook, "a", "b")
    assert service.flask("alert", "rotate", OWNER, hook.id).exit_code == 0
    works()
    assert statuses(owner) == {"a": "held", "b": "held"}
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


@pytest.mark.parametrize("options", [(), ("--frequency", "1d"), ("--frequency", "1h", "--ignore-quiet-hours")])
def test_what_a_deleted_alert_held_comes_with_the_end_of_quiet_hours(
    service, owner, browser, night, until, works, options
):
    hook = service.alert(*options)
    held(hook, "a", "b")
    assert service.flask("alert", "delete", OWNER, hook.id).exit_code == 0
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_what_a_deleted_alert_collected_comes_with_the_next_round(service, owner, browser, works):
    hook = service.alert("--frequency", "1d")
    held(hook, "a", "b")
    assert service.flask("alert", "delete", OWNER, hook.id).exit_code == 0
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


@pytest.mark.parametrize("email", [OWNER, OTHER])
def test_an_alert_made_after_one_was_deleted_does_not_hold_what_that_one_held(
    service, owner, pro, browser, works, email
):
    hook = service.alert("--frequency", "1d")
    held(hook, "a", "b")
    assert service.flask("alert", "delete", OWNER, hook.id).exit_code == 0
    held(service.alert("--frequency", "1d", email=email), "c")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_what_a_paused_alert_held_comes_when_quiet_hours_end(service, owner, browser, night, until, works):
    hook = service.alert()
    held(hook, "a", "b")
    hook.set("--inactive")
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_what_a_paused_alert_collected_comes_when_its_time_is_over(service, owner, browser, works, moved_clock):
    hook = service.alert("--frequency", "1h")
    held(hook, "a", "b")
    hook.set("--inactive")
    moved_clock.advance(HOUR_S)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


# What fits


def check_digest(browser, events):
    """The only message is a digest of so many events, and its lines account for all of them."""
    ((title, body),) = shown(browser)
    lines = body.split("\n")
    more = MORE.fullmatch(lines[-1])
    assert title == f"MCP - {events} notifications"
    assert (len(lines) - 1 + int(more[1]) if more else len(lines)) == events
    return lines


@pytest.mark.parametrize("text", ["x", "é", "漢", "😀", '"', "\\", "👩‍👩‍👧"])
def test_a_digest_of_long_texts_shortens_each_so_that_all_fit(service, owner, browser, night, until, works, text):
    happens(service.alert(name="Disk"), *(f"{number}{text * 3_000}" for number in range(1, 6)))
    until(MORNING)
    works()
    lines = check_digest(browser, 5)
    assert len(lines) == 5
    assert all(line.startswith(f"Disk: {number}") and line.endswith("…") for number, line in enumerate(lines, 1))
    assert {one["status"] for one in owner.listed()} == {"delivered"}


def test_a_short_line_is_not_shortened_for_a_long_one(service, browser, night, until, works):
    happens(service.alert(name="Disk"), "x" * 10_000, "short", "y" * 10_000)
    until(MORNING)
    works()
    assert check_digest(browser, 3)[1] == "Disk: short"


@pytest.mark.parametrize("length", [250, 300, 350, 500, 1_000, 2_000])
def test_a_line_that_was_shortened_ends_with_an_ellipsis(service, browser, night, until, works, length):
    happens(service.alert(name="Disk"), "x" * length, "y")
    until(MORNING)
    works()
    line = check_digest(browser, 2)[0]
    assert line == "Disk: " + "x" * length or re.fullmatch("Disk: x{100,}…", line)


def test_a_long_title_is_shortened_too(service, browser, night, until, works):
    hook = service.alert()
    for number in range(3):
        hook.post({"title": f"{number}" + "t" * 2_000, "message": "b" * 10_000})
    until(MORNING)
    works()
    lines = check_digest(browser, 3)
    assert [line[0] for line in lines] == ["0", "1", "2"]


@pytest.mark.parametrize("text", ["x", "x" * 300, "漢😀" * 300])
def test_a_digest_of_hundreds_ends_with_how_many_more(service, owner, browser, night, until, works, text):
    hooks = [service.alert(name=f"Alert {number}") for number in range(6)]
    for hook in hooks:
        happens(hook, *(f"{number} {text}" for number in range(60)))
    until(MORNING)
    works()
    lines = check_digest(browser, 360)
    assert lines[0].startswith("Alert 0: 0 ") and MORE.fullmatch(lines[-1]) and len(lines) > 5
    assert {row["status"] for row in all_rows(owner)} == {"delivered"}


# What becomes of a digest


def test_a_digest_that_is_refused_in_passing_is_retried_after_30_seconds_with_the_same_tag(
    service, owner, browser, night, until, works, moved_clock
):
    browser.then(503)
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    assert statuses(owner) == {"a": "pending", "b": "pending"}
    moved_clock.advance(29)
    works()
    assert len(browser.pushes) == 1
    moved_clock.advance(1)
    works()
    first, second = (one["topic"] for one in browser.pushes)
    assert first == second == browser.messages[0]["notification"]["tag"]
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}


def test_a_digest_waits_as_long_as_the_provider_asks(service, owner, browser, night, until, works, moved_clock):
    browser.then(429, Retry_After="100")
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    moved_clock.advance(99)
    works()
    assert (len(browser.pushes), statuses(owner)) == (1, {"a": "pending", "b": "pending"})
    moved_clock.advance(1)
    works()
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}


@pytest.mark.parametrize("status", [400, 404, 410])
def test_a_digest_that_every_device_refuses_for_good_fails_as_a_whole(
    service, owner, browser, night, until, works, status
):
    browser.then(status)
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    assert (statuses(owner), len(browser.pushes)) == ({"a": "failed", "b": "failed"}, 1)


@pytest.mark.parametrize(
    "first, second, status",
    [(201, 201, "delivered"), (201, 410, "delivered"), (201, 503, "delivered"), (410, 503, "pending")],
)
def test_a_digest_fares_with_several_devices_like_any_notification(
    service, owner, browser, push_service, night, until, works, moved_clock, first, second, status
):
    other = subscribe(owner, push_service)
    browser.then(first)
    other.then(second)
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    assert statuses(owner) == {"a": status, "b": status}
    moved_clock.advance(30)
    works()
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}
    assert (len(browser.pushes), len(other.pushes)) == (1, 2 if second == 503 else 1)


def test_an_event_that_happens_while_a_digest_is_pending_does_not_join_it(
    service, owner, browser, night, until, works, moved_clock
):
    browser.then(503)
    hook = service.alert()
    held(hook, "a", "b")
    until(MORNING)
    works()
    happens(hook, "c")
    moved_clock.advance(30)
    works()
    assert shown(browser) == [("MCP - Backups", "c"), digest_of("Backups: a", "Backups: b")]


def test_two_pending_digests_stay_apart(service, owner, browser, works, moved_clock):
    browser.then(503).then(503)
    first, second = (service.alert("--frequency", "15m", name=name) for name in ("One", "Two"))
    held(first, "a", "b")
    moved_clock.advance(15)
    held(second, "c", "d")
    for seconds in (15 * MINUTE_S - 15, 15, 15, 15):
        moved_clock.advance(seconds)
        works()
    assert shown(browser) == [digest_of("One: a", "One: b"), digest_of("Two: c", "Two: d")]
    topics = [one["topic"] for one in browser.pushes]
    assert topics[:2] == topics[2:] and len(set(topics)) == 2
    assert set(statuses(owner).values()) == {"delivered"}


def test_a_pending_digest_is_not_held_by_the_next_quiet_hours(service, owner, browser, night, until, works):
    browser.then(503)
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    account_set(service, "--quiet-hours", "07:00-08:00")
    until("2026-11-22T07:00:30")
    works()
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}


def test_the_24_hours_of_retries_count_from_the_release(service, owner, browser, works, moved_clock):
    for _ in range(60):
        browser.then(503)
    held(service.alert("--frequency", "1d"), "a", "b")
    moved_clock.advance(DAY_S)
    works()
    for _ in range(22):
        moved_clock.advance(HOUR_S)
        works()
    assert statuses(owner) == {"a": "pending", "b": "pending"}
    for _ in range(3):
        moved_clock.advance(HOUR_S)
        works()
    assert statuses(owner) == {"a": "failed", "b": "failed"}
    moved_clock.advance(DAY_S)
    pushes = len(browser.pushes)
    works()
    assert len(browser.pushes) == pushes


def test_a_single_one_released_after_a_day_is_still_retried(service, owner, browser, works, moved_clock):
    browser.then(503)
    held(service.alert("--frequency", "1d"), "a")
    moved_clock.advance(DAY_S)
    works()
    assert statuses(owner) == {"a": "pending"}
    moved_clock.advance(30)
    works()
    assert statuses(owner) == {"a": "delivered"}


@pytest.mark.parametrize("messages", [("a",), ("a", "b")])
def test_without_a_device_a_release_leaves_them_delivered(service, owner, night, until, works, messages):
    held(service.alert(), *messages)
    until(MORNING)
    works()
    assert statuses(owner) == dict.fromkeys(messages, "delivered")


@pytest.mark.parametrize("messages", [("a",), ("a", "b")])
def test_after_the_last_device_died_a_release_leaves_them_failed(
    service, owner, browser, night, until, works, messages
):
    held(service.alert(), *messages)
    browser.then(410)
    owner.send()
    until(MORNING)
    works()
    assert {status for body, status in statuses(owner).items() if body in messages} == {"failed"}


def test_after_the_owner_removed_the_last_device_a_release_leaves_them_delivered(
    service, owner, browser, night, until, works
):
    held(service.alert(), "a", "b")
    (device,) = owner.get("/devices").json["devices"]
    owner.delete(f"/devices/{device['id']}")
    until(MORNING)
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "delivered", "b": "delivered"}, [])


def test_a_device_added_meanwhile_gets_the_digest(service, owner, push_service, night, until, works):
    held(service.alert(), "a", "b")
    browser = subscribe(owner, push_service)
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_removing_the_last_device_ends_a_pending_digest(service, owner, browser, night, until, works, moved_clock):
    browser.then(503)
    held(service.alert(), "a", "b")
    until(MORNING)
    works()
    (device,) = owner.get("/devices").json["devices"]
    owner.delete(f"/devices/{device['id']}")
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}
    moved_clock.advance(HOUR_S)
    works()
    assert len(browser.pushes) == 1


# Crashes, restarts, two workers at once


def restarted(owner, make_service, push_service):
    """The service in a new process, as far as it can be seen."""
    owner.service = make_service(WEBPUSH_HOSTS=push_service.origin)
    return owner.service


def crash(*_, **__):
    raise KeyboardInterrupt


def take_and_crash(*args, sent=push.send, **more):
    sent(*args, **more)
    raise KeyboardInterrupt


def work_until_crash(service, monkeypatch, fault):
    with monkeypatch.context() as patched:
        patched.setattr(push, "send", fault)
        for _ in range(2):
            with suppress(KeyboardInterrupt):
                service.work()


def test_what_is_held_survives_a_restart(service, owner, browser, make_service, push_service, night, until):
    held(service.alert(), "a", "b")
    again = restarted(owner, make_service, push_service)
    again.work()
    assert statuses(owner) == {"a": "held", "b": "held"}
    until(MORNING)
    again.work()
    again.work()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


@pytest.mark.parametrize("messages", [("a",), ("a", "b", "c")])
def test_a_crash_between_release_and_push_loses_nothing(
    service, owner, browser, make_service, push_service, night, until, moved_clock, monkeypatch, messages
):
    held(service.alert(), *messages)
    until(MORNING)
    work_until_crash(service, monkeypatch, crash)
    assert browser.pushes == []
    again = restarted(owner, make_service, push_service)
    for _ in range(5):
        moved_clock.advance(30)
        again.work()
    expected = digest_of(*(f"Backups: {one}" for one in messages)) if len(messages) > 1 else ("MCP - Backups", "a")
    assert shown(browser) == [expected]
    assert statuses(owner) == dict.fromkeys(messages, "delivered")


@pytest.mark.parametrize("messages", [("a",), ("a", "b", "c")])
def test_a_crash_after_the_push_repeats_it_under_the_same_tag(
    service, owner, browser, make_service, push_service, night, until, moved_clock, monkeypatch, messages
):
    held(service.alert(), *messages)
    until(MORNING)
    work_until_crash(service, monkeypatch, take_and_crash)
    assert len(browser.messages) == 1
    again = restarted(owner, make_service, push_service)
    moved_clock.advance(30)
    again.work()
    again.work()
    first, second = browser.messages
    assert first == second
    assert statuses(owner) == dict.fromkeys(messages, "delivered")


def test_a_release_that_cannot_be_written_releases_nothing_and_comes_later(
    service, owner, browser, night, until, works
):
    def run(statement):
        with closing(sqlite3.connect(service.settings.database)) as database, database:
            database.execute(statement)

    held(service.alert(), "a", "b")
    until(MORNING)
    run("CREATE TRIGGER full BEFORE UPDATE ON held BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])
    run("DROP TRIGGER full")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def in_digests(browsers):
    """The events in all messages, in the order of their names."""
    bodies = [body for browser in browsers for _, body in shown(browser)]
    return sorted(line.partition(": ")[2] for body in bodies for line in body.split("\n"))


def test_every_event_is_pushed_exactly_once_whenever_it_happens(service, owner, browser, works, moved_clock):
    account_set(service, "--quiet-hours", "12:00-13:00")
    hooks = [
        service.alert("--frequency", frequency, *more)
        for frequency in ("instant", "15m", "1h")
        for more in ((), ("--ignore-quiet-hours",))
    ]
    happened = []
    for minute in range(0, 300, 7):
        message = f"event {minute:03}"
        happens(hooks[minute % len(hooks)], message)
        happened.append(message)
        works()
        moved_clock.advance(7 * MINUTE_S)
    moved_clock.advance(HOUR_S)
    works()
    assert len(browser.messages) < len(happened)
    assert sorted(re.findall(r"event \d\d\d", " ".join(body for _, body in shown(browser)))) == happened
    assert set(statuses(owner).values()) == {"delivered"}


def test_workers_in_several_threads_release_each_event_once(service, owner, pro, browser, push_service, night, until):
    account_set(service, "--quiet-hours", QUIET, email=OTHER)
    other = subscribe(pro, push_service)
    held(service.alert(), *(f"{number:02}" for number in range(20)))
    held(service.alert(email=OTHER), *(f"{number:02}" for number in range(20, 40)))
    until(MORNING)
    start = threading.Barrier(6)

    def work():
        start.wait()
        for _ in range(3):
            jobs.run_due(clock.now_ms())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    retries.finish()
    assert (len(browser.pushes), len(other.pushes)) == (1, 1)
    assert in_digests([browser, other]) == [f"{number:02}" for number in range(40)]


WORKER = """
import os, sys
from process import clock
clock.now_ms = lambda: int(sys.argv[1])
import config
from core import jobs, retries
from app import create_app
create_app(config.load(os.environ)).open()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    jobs.run_due(clock.now_ms())
retries.finish()
"""


def test_two_services_on_one_database_release_each_event_once(
    service, owner, browser, push_service, night, until, moved_clock
):
    hooks = [service.alert("--frequency", "15m", name=f"Alert {number}") for number in range(4)]
    for hook in hooks:
        held(hook, *(f"{hooks.index(hook)}{number}" for number in range(10)))
    until(MORNING)
    environ = {"DATA_DIR": str(service.data_dir), "WEBPUSH_HOSTS": push_service.origin}
    with ExitStack() as running:
        workers = [
            running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WORKER, str(moved_clock.ms)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environ,
                    cwd=Path(application.__file__).parent,
                )
            )
            for _ in range(2)
        ]
        assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 2
        for worker in workers:
            print("go", file=worker.stdin, flush=True)
        assert [worker.wait(20) for worker in workers] == [0, 0]
    assert len(browser.pushes) == 1
    assert in_digests([browser]) == [f"{alert}{number}" for alert in range(4) for number in range(10)]
    assert set(statuses(owner).values()) == {"delivered"}


def test_what_cannot_be_released_for_one_account_does_not_hold_up_the_others(
    service, owner, browser, night, until, works
):
    service.account("other@example.org")
    service.flask("account", "set", "other@example.org", "--quiet-hours", "22:00-07:00")
    held(service.alert(email="other@example.org"), "x")
    held(service.alert(), "a")
    with database.transaction():
        models.Account.update(time_zone="Atlantis/Lost").where(models.Account.email == "other@example.org").execute()
    until(MORNING)
    works()
    assert statuses(owner) == {"a": "delivered"}


def test_a_clock_that_is_set_back_a_little_ends_no_digest(service, owner, works, moved_clock):
    hook = service.alert("--frequency", "1d")
    hook.post({"message": "a"})
    moved_clock.set_wall(moved_clock.ms - 1_500)
    works()
    assert statuses(owner) == {"a": "held"}


def test_a_clock_that_is_set_back_for_good_does_not_hold_a_digest_for_ever(service, owner, works, moved_clock):
    hook = service.alert("--frequency", "1h")
    hook.post({"message": "a"})
    moved_clock.set_wall(moved_clock.ms - 86_400_000)
    works()
    assert statuses(owner) == {"a": "delivered"}


def test_releasing_many_writes_narrow_rows_alone(service, browser):
    """Rows with their texts take long to write again, and others wait."""
    for statement in (Held.OLDEST, Held.PUT_IN_DIGEST):
        values = (1, "[1]", 1)[: statement.count("?")]
        plan = " ".join(row[3] for row in database.run(f"EXPLAIN QUERY PLAN {statement}", values))
        assert " notification " not in plan and "SCAN held" not in plan
