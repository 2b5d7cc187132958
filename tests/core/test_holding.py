"""What quiet hours and frequencies hold, and settings that change while something is held."""

import pytest

from tests.support.accounts import OWNER, PRO, account_set
from tests.support.holding import QUIET, digest_of, held, shown, statuses
from tests.support.rows import each
from tests.support.times import DAY_S, HOUR_S, MINUTE_S


def forget(owner, browser):
    """Leave nothing to the next row."""
    for one in owner.listed():
        owner.delete(f"/notifications/{one['id']}")
    browser.pushes.clear()
    browser.messages.clear()


# Holding


def test_a_held_notification_keeps_its_text_when_the_template_changes(service, owner, browser, night, morning):
    hook = service.alert("--title", "before {{ message }}")
    held(hook, "a")
    hook.set("--title", "after")
    morning()
    assert shown(browser) == [("MCP - before a", "a")]


# Frequency


@each("frequency, seconds", [("15m", 15 * MINUTE_S), ("1h", HOUR_S), ("1d", DAY_S)])
def test_a_digest_of_a_frequency_ends_its_time_after_the_first_event(
    service, owner, browser, works, moved_clock, frequency, seconds, passes
):
    hook = service.alert("--frequency", frequency)
    held(hook, "a")
    moved_clock.advance(seconds - 1)
    held(hook, "b")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])
    passes(1)
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    forget(owner, browser)


def test_the_next_event_begins_a_new_digest(service, owner, browser, works, moved_clock, passes):
    hook = service.alert("--frequency", "15m")
    held(hook, "a", "b")
    passes(20 * MINUTE_S)
    held(hook, "c")
    moved_clock.advance(14 * MINUTE_S)
    held(hook, "d")
    works()
    assert statuses(owner) == {"a": "delivered", "b": "delivered", "c": "held", "d": "held"}
    passes(MINUTE_S)
    assert shown(browser) == [digest_of("Backups: a", "Backups: b"), digest_of("Backups: c", "Backups: d")]


# Settings that change meanwhile


@each(
    "options",
    [
        ("--quiet-hours", "off"),
        ("--quiet-hours", "01:00-07:00"),
        ("--quiet-hours", "20:00-23:00"),
        ("--timezone", "Asia/Tokyo"),
    ],
)
def test_quiet_hours_that_no_longer_hold_release_in_the_next_round(service, owner, browser, night, works, options):
    account_set("--quiet-hours", QUIET)
    held(service.alert(), "a", "b")
    works()
    account_set(*options)
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    assert statuses(owner) == {"a": "delivered", "b": "delivered"}
    forget(owner, browser)


@pytest.mark.parametrize("options", [("--quiet-hours", "22:00-09:00"), ("--timezone", "America/New_York")])
def test_quiet_hours_that_were_put_off_hold_until_their_new_end(
    service, browser, night, until, options, morning, works_at
):
    until("2026-11-22T05:00")
    held(service.alert(), "a", "b")
    account_set(*options)
    morning()
    assert browser.pushes == []
    works_at("2026-11-22T12:00")
    assert len(browser.messages) == 1


def test_an_alert_that_begins_to_ignore_quiet_hours_is_released_alone(service, owner, browser, night, works):
    hook = service.alert()
    held(hook, "a", "b")
    held(service.alert(name="Doorbell"), "c")
    hook.set("--ignore-quiet-hours")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    assert statuses(owner) == {"a": "delivered", "b": "delivered", "c": "held"}


def test_an_alert_that_becomes_instant_in_quiet_hours_stays_held_by_them(service, owner, browser, night, works):
    hook = service.alert("--frequency", "1d")
    held(hook, "a", "b")
    hook.set("--frequency", "instant")
    works()
    assert (statuses(owner), browser.pushes) == ({"a": "held", "b": "held"}, [])


def test_what_replaces_a_collected_event_comes_when_that_one_would_have(service, owner, browser, passes):
    hook = service.alert("--frequency", "15m", "--tag", "disk")
    for number in range(4):
        held(hook, f"{number}")
        passes(5 * MINUTE_S)
    assert shown(browser) == [("MCP - Backups", "2")] and statuses(owner)["3"] == "held"


@each("before", ["15m", "1d"])
def test_another_frequency_counts_from_the_first_event_held(service, owner, moved_clock, before, passes):
    hook = service.alert("--frequency", before)
    held(hook, "a")
    moved_clock.advance(10 * MINUTE_S)
    hook.set("--frequency", "1h")
    passes(50 * MINUTE_S - 1)
    assert statuses(owner) == {"a": "held"}
    passes(1)
    assert statuses(owner) == {"a": "delivered"}
    owner.delete(f"/notifications/{owner.listed()[0]['id']}")


def test_events_held_by_a_rotated_paused_or_deleted_alert_are_released_when_quiet_hours_end(
    service, owner, browser, night, works, morning
):
    lines = []
    for command, options, created_with in (
        ("rotate", (), ()),
        ("set", ("--inactive",), ()),
        ("delete", (), ()),
        ("delete", (), ("--frequency", "1d")),
        ("delete", (), ("--frequency", "1h", "--ignore-quiet-hours")),
    ):
        hook = service.alert(*created_with)
        held(hook, f"{len(lines)}")
        lines.append(f"Backups: {len(lines)}")
        assert service.flask("alert", command, OWNER, hook.id, *options).exit_code == 0
    works()
    assert ({*statuses(owner).values()}, browser.pushes) == ({"held"}, [])
    morning()
    assert shown(browser) == [digest_of(*lines)]


@each("email", [OWNER, PRO])
def test_an_alert_made_after_one_was_deleted_does_not_hold_what_that_one_held(
    service, owner, pro, browser, works, email
):
    hook = service.alert("--frequency", "1d")
    held(hook, "a", "b")
    assert service.flask("alert", "delete", OWNER, hook.id).exit_code == 0
    held(service.alert("--frequency", "1d", email=email), "c")
    works()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]
    forget(owner, browser)
