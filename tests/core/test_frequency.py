"""Alerts that collect their events for a digest."""

import pytest

from tests.support.accounts import account_set
from tests.support.holding import EVENING, NIGHT, QUIET, digest_of, held, shown, statuses
from tests.support.times import DAY_S, HOUR_S, MINUTE_S

# Frequency


@pytest.mark.parametrize("frequency, seconds", [("15m", 15 * MINUTE_S), ("1h", HOUR_S), ("1d", DAY_S)])
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


def test_a_digest_whose_time_is_over_in_quiet_hours_goes_on_until_they_end(
    service, owner, browser, until, works, morning
):
    account_set(service, "--quiet-hours", QUIET)
    hook = service.alert("--frequency", "15m")
    for moment, message in [(EVENING, "a"), (NIGHT, "b"), ("2026-11-22T06:59", "c")]:
        until(moment)
        held(hook, message)
        works()
    assert browser.pushes == []
    morning()
    assert shown(browser) == [digest_of("Backups: a", "Backups: b", "Backups: c")]
    assert set(statuses(owner).values()) == {"delivered"}


def test_a_digest_of_an_alert_that_ignores_quiet_hours_ends_within_them(service, browser, night, passes):
    held(service.alert("--frequency", "15m", "--ignore-quiet-hours"), "a", "b")
    held(service.alert(name="Doorbell"), "c")
    passes(15 * MINUTE_S)
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_the_end_of_quiet_hours_leaves_what_a_frequency_still_holds(service, owner, browser, night, morning):
    held(service.alert("--frequency", "1d", name="Daily"), "a")
    held(service.alert(), "b", "c")
    morning()
    assert statuses(owner) == {"a": "held", "b": "delivered", "c": "delivered"}
    assert shown(browser) == [digest_of("Backups: b", "Backups: c")]
