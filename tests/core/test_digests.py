"""Releasing what was held: as itself or as one digest, what fits into it, what becomes of it."""

import re

from core import digests
from tests.support.accounts import account_set, seq_of
from tests.support.devices import subscribe
from tests.support.holding import MORNING, digest_of, happens, held, shown, statuses
from tests.support.rows import each
from tests.support.times import DAY_S, HOUR_S

MORE = re.compile(r"… and ([0-9]+) more")


# Release when quiet hours end


def test_a_single_held_notification_is_pushed_as_itself(service, owner, browser, night, morning):
    (held_id,) = held(service.alert(), "a")
    morning()
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


def test_a_digest_lists_notifications_of_all_alerts_oldest_first(service, browser, night, moved_clock, morning):
    first, second = service.alert(name="One"), service.alert(name="Two")
    for hook, message in [(second, "a"), (first, "b"), (second, "c"), (first, "d")]:
        held(hook, message)
        moved_clock.advance(1)
    morning()
    assert shown(browser) == [digest_of("Two: a", "One: b", "Two: c", "One: d")]


def test_only_the_prefix_is_left_out_of_a_line(service, browser, night, morning):
    hook = service.alert()
    hook.post({"title": "MCP - Disk", "message": "MCP - full"})
    hook.post({"title": "Disk", "message": "full"})
    morning()
    assert shown(browser) == [digest_of("MCP - Disk: MCP - full", "Disk: full")]


def test_line_breaks_within_a_notification_are_spaces_in_its_line(service, browser, night, morning):
    hook = service.alert()
    hook.post({"title": "Disk\nroot", "message": "98 %\nfull"})
    hook.post({"title": "Disk", "message": "a\r\nb\rc\u2028d\x0be\x07f"})
    morning()
    ((title, body),) = shown(browser)
    first, second = body.split("\n")
    assert (title, first) == ("MCP - 2 notifications", "Disk root: 98 % full")
    assert second.startswith("Disk: a") and second.isprintable()


def test_a_digest_is_not_in_the_history_or_in_any_counter(service, owner, browser, night, until, works):
    ids = held(service.alert(), "a", "b", "c")
    until(MORNING)
    before, counts = owner.listed(), (owner.get("/stats").json, owner.get("/alerts").json)
    works()
    assert owner.listed() == [row | {"status": "delivered"} for row in before]
    assert [row["id"] for row in before] == ids[::-1] and owner.listed("?search=notifications") == []
    assert (owner.get("/stats").json, owner.get("/alerts").json) == counts
    account_set("--timezone", "Asia/Kathmandu")  # counts the history again
    assert owner.get("/stats").json["stats"]["notificationsThisMonth"] == 3


def test_after_quiet_hours_an_event_is_pushed_at_once_and_not_with_the_digest(service, browser, night, until, works):
    hook = service.alert()
    held(hook, "a", "b")
    until(MORNING)
    assert hook.post({"message": "c"}).json["status"] == "delivered"
    works()
    assert shown(browser) == [("MCP - Backups", "c"), digest_of("Backups: a", "Backups: b")]


# What fits


def release(service, browser):
    """Deliver now what is held; what was shown before is forgotten."""
    browser.messages.clear()
    digests.release_now(seq_of())
    service.work()


def check_digest(browser, events):
    """The only message must be a digest whose lines account for this many events."""
    ((title, body),) = shown(browser)
    lines = body.split("\n")
    more = MORE.fullmatch(lines[-1])
    assert title == f"MCP - {events} notifications"
    assert (len(lines) - 1 + int(more[1]) if more else len(lines)) == events
    return lines


@each("text", ["x", "é", "漢", "😀", '"', "\\", "👩‍👩‍👧"])
def test_a_digest_of_long_texts_shortens_each_so_that_all_fit(service, owner, browser, night, text):
    happens(service.alert(name="Disk"), *(f"{number}{text * 3_000}" for number in range(1, 6)))
    release(service, browser)
    lines = check_digest(browser, 5)
    assert len(lines) == 5
    assert all(line.startswith(f"Disk: {number}") and line.endswith("…") for number, line in enumerate(lines, 1))
    assert {one["status"] for one in owner.listed()} == {"delivered"}


@each("length", [250, 350, 2_000])
def test_a_line_that_was_shortened_ends_with_an_ellipsis_and_a_short_one_is_not_shortened(
    service, owner, browser, night, length
):
    happens(service.alert(name="Disk"), "x" * length, "short", "y" * length)
    release(service, browser)
    line, short, _ = check_digest(browser, 3)
    assert short == "Disk: short"
    assert line == "Disk: " + "x" * length or re.fullmatch("Disk: x{100,}…", line)


@each("text", ["x", "漢😀" * 300])
def test_a_digest_of_hundreds_ends_with_how_many_more(service, owner, browser, night, text):
    for hook in [service.alert(name=f"Alert {number}") for number in range(3)]:
        happens(hook, *(f"{number} {text}" for number in range(50)))
    release(service, browser)
    lines = check_digest(browser, 150)
    assert lines[0].startswith("Alert 0: 0 ") and MORE.fullmatch(lines[-1]) and len(lines) > 5
    assert {one["status"] for one in owner.listed("?limit=100")} == {"delivered"}


# What becomes of a digest


@each(
    "first, second, status",
    [(201, 201, "delivered"), (201, 410, "delivered"), (201, 503, "delivered"), (410, 503, "pending")],
)
def test_a_digest_has_the_delivery_status_of_any_notification_on_several_devices(
    service, owner, push_service, night, first, second, status, passes
):
    browser, other = subscribe(owner, push_service).then(first), subscribe(owner, push_service).then(second)
    held(service.alert(), "a", "b")
    digests.release_now(seq_of())
    service.work()
    assert [one["status"] for one in owner.listed("?limit=2")] == [status] * 2
    passes(30)
    assert [one["status"] for one in owner.listed("?limit=2")] == ["delivered"] * 2
    assert (len(browser.pushes), len(other.pushes)) == (1, 2 if second == 503 else 1)
    for one in owner.get("/devices").json["devices"]:
        owner.delete(f"/devices/{one['id']}")


def test_an_event_that_happens_while_a_digest_is_pending_does_not_join_it(
    service, owner, browser, night, morning, passes
):
    browser.then(503)
    hook = service.alert()
    held(hook, "a", "b")
    morning()
    happens(hook, "c")
    passes(30)
    assert shown(browser) == [("MCP - Backups", "c"), digest_of("Backups: a", "Backups: b")]


def test_a_pending_digest_is_not_held_by_the_next_quiet_hours(service, owner, browser, night, morning, works_at):
    browser.then(503)
    held(service.alert(), "a", "b")
    morning()
    account_set("--quiet-hours", "07:00-08:00")
    works_at("2026-11-22T07:00:30")
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}


def test_the_24_hours_of_retries_count_from_the_release(service, owner, browser, works, moved_clock, passes):
    for _ in range(5):
        browser.then(503)
    held(service.alert("--frequency", "1d"), "a", "b")
    passes(DAY_S)
    passes(22 * HOUR_S)
    assert statuses(owner) == {"a": "pending", "b": "pending"}
    passes(HOUR_S)
    passes(2 * HOUR_S)
    assert statuses(owner) == {"a": "failed", "b": "failed"}
    moved_clock.advance(DAY_S)
    pushes = len(browser.pushes)
    works()
    assert len(browser.pushes) == pushes


@each("messages", [("a",), ("b", "c")])
def test_without_a_device_a_release_leaves_them_delivered(service, owner, night, messages):
    held(service.alert(), *messages)
    assert digests.release_now(seq_of()) == len(messages)
    assert {*statuses(owner).values()} == {"delivered"}


def test_a_device_added_meanwhile_gets_the_digest(service, owner, push_service, night, morning):
    held(service.alert(), "a", "b")
    browser = subscribe(owner, push_service)
    morning()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
