"""The pure rules of holding: quiet hours (each moment's local wall clock decides) and frequency."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import digests, holding, local_time
from store.held_notifications import ALERT, HeldGroup
from tests.support.rows import each
from tests.support.times import MINUTE_MS, utc
from tests.support.wall_clocks import (
    EDGES,
    MINUTES_A_DAY,
    TIMES,
    YEAR_MINUTES,
    minute_of_year,
    moment,
    moments,
    wall_clock,
)
from wire.errors import Refused

minutes = st.integers(0, MINUTES_A_DAY - 1)
windows = st.tuples(minutes, minutes).filter(lambda pair: pair[0] != pair[1])


def walked(start, end):
    """The minutes of the day from start until end."""
    passed = set()
    while start != end:
        passed.add(start)
        start = (start + 1) % MINUTES_A_DAY
    return passed


def written(start, end):
    return f"{TIMES[start]}-{TIMES[end]}"


def disagreements(zone, start, end, minutes_of_year):
    window, passed, clock = written(start, end), walked(start, end), wall_clock(zone)
    return [
        (zone, window, minute)
        for minute in minutes_of_year
        if local_time.is_quiet(window, zone, moment(minute)) != (clock[minute] in passed)
    ]


# Whether it is quiet


@each(
    "time, is_quiet",
    [("21:59:59.999", False), ("22:00:00.000", True), ("06:59:59.999", True), ("07:00:00.000", False)],
)
def test_the_start_belongs_to_quiet_hours_and_the_end_does_not(time, is_quiet):
    assert local_time.is_quiet("22:00-07:00", "UTC", utc(f"2026-06-01T{time}")) is is_quiet


@each("zone, edge", EDGES)
def test_the_minutes_around_a_change_of_the_clocks_go_by_the_clock_on_the_wall(zone, edge):
    """Each window begins and ends a multiple of 15 minutes from the change: the minutes beside those can differ."""
    at = minute_of_year(edge)
    before, after = wall_clock(zone)[at - 1] + 1, wall_clock(zone)[at]
    around = [(before - 15) % MINUTES_A_DAY, before % MINUTES_A_DAY, (before + 15) % MINUTES_A_DAY]
    around += [(after - 15) % MINUTES_A_DAY, after, (after + 15) % MINUTES_A_DAY, 22 * 60, 7 * 60]
    steps = [at + minutes for minutes in range(-180, 180) if minutes % 15 in (14, 0)]
    for start in around:
        for end in around:
            if start != end:
                assert disagreements(zone, start, end, steps) == []


# What will happen: against a clock that is followed minute by minute

frequencies = st.sampled_from(sorted(local_time.COLLECTED_MS))
thorough = settings(max_examples=25, deadline=None)


def change_after(zone, start, end, minute):
    """The next minute at which the wall clock enters or leaves the window."""
    passed, clock = walked(start, end), wall_clock(zone)
    is_within = clock[minute] in passed
    return next(later for later in range(minute + 1, YEAR_MINUTES) if (clock[later] in passed) != is_within)


@given(moments, windows, st.integers(0, MINUTE_MS - 1))
@thorough
def test_the_next_window_is_under_way_or_begins_with_the_next_change(where, window, ms):
    (zone, minute), now = where, moment(where[1]) + ms
    first = change_after(zone, *window, minute)
    if wall_clock(zone)[minute] in walked(*window):
        expected = now, moment(first)
    else:
        expected = moment(first), moment(change_after(zone, *window, first))
    assert local_time.next_window(written(*window), zone, now) == expected


held_alerts = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.integers(3, 5), frequencies, st.integers(0, 3_000)),
    min_size=1,
    max_size=4,
)


@given(moments, windows, held_alerts)
@thorough
def test_the_time_of_release_is_when_nothing_holds_the_alert_any_more(where, window, alerts):
    """Checked minute by minute: each time comes once, in order."""
    (zone, minute), told_by = where, {True: None, False: written(*window)}
    held = [
        HeldGroup(
            1, ALERT, n, priority, 1, moment(minute - passed), zone, told_by[ignores], urgent_passes, frequency, 0
        )
        for n, (ignores, urgent_passes, priority, frequency, passed) in enumerate(alerts)
    ]
    expected = set()
    for one in held:
        holds = (one, one.priority, (), one.first_held_at)
        until = next(at for at in range(minute, YEAR_MINUTES) if not holding.is_held(*holds, moment(at)))
        expected.add(moment(until))
    assert digests.releases(held, moment(minute)) == sorted(expected)


@given(moments)
@thorough
def test_a_day_is_exactly_the_minutes_that_the_calendar_on_the_wall_gives_it(where):
    zone, minute = where
    day = local_time.local_day(moment(minute), zone)
    begin, end = local_time.day_bounds(day, zone)
    assert begin <= moment(minute) < end
    around = range(begin - 3 * 60 * MINUTE_MS, end + 3 * 60 * MINUTE_MS, MINUTE_MS)
    assert [at for at in around if local_time.local_day(at, zone) == day] == list(range(begin, end, MINUTE_MS))


@given(moments, st.integers(1, 40))
@thorough
def test_the_last_days_are_those_that_the_calendar_on_the_wall_had(where, count):
    zone, minute = where
    seen = dict.fromkeys(
        local_time.local_day(moment(minute - back), zone) for back in range(0, (count + 1) * MINUTES_A_DAY, 60)
    )
    assert local_time.last_days(count, zone, moment(minute)) == sorted(seen)[-count:]


@given(moments, st.integers(-3 * MINUTES_A_DAY, 3 * MINUTES_A_DAY))
@thorough
def test_a_time_is_told_by_its_day_and_the_clock_on_the_wall(where, by):
    zone, minute = where
    told = local_time.near_time(moment(minute + by), zone, moment(minute))
    *day, time = told.split(" ")
    assert time == TIMES[wall_clock(zone)[minute + by]]
    days = local_time.last_days(5, zone, moment(minute + by))
    near = {"today": 0, "tomorrow": 1, "yesterday": -1}
    today = datetime.fromisoformat(local_time.local_day(moment(minute), zone))
    ahead = (datetime.fromisoformat(days[-1]) - today).days
    assert near.get(" ".join(day), ahead) == ahead and (len(day) == 1) == (abs(ahead) <= 1)


@each(
    "at, now, told",
    [
        ("2026-11-23T07:00", "2026-11-21T10:00", "Mon 23 Nov 07:00"),
        ("2025-11-21T07:00", "2026-11-21T10:00", "21 Nov 2025 07:00"),
        ("2026-01-01T00:00", "2025-12-31T23:59", "tomorrow 00:00"),
        ("2026-01-02T00:00", "2025-12-31T23:59", "02 Jan 2026 00:00"),
        ("2026-11-20T23:59", "2026-11-21T00:00", "yesterday 23:59"),
        ("2026-11-21T00:00", "2026-11-21T23:59", "today 00:00"),
    ],
)
def test_a_time_is_told_in_the_fewest_words(at, now, told):
    assert local_time.near_time(utc(at), "UTC", utc(now)) == told


@each("day", ["", "x", "2026-02-30", "2026-13-01", "21.11.2026", "2026-11-21T00:00", "0001-01-01", "9999-12-31"])
def test_an_invalid_day_is_refused(day):
    with pytest.raises(Refused) as refused:
        local_time.day_bounds(day, "UTC")
    assert refused.value.status == 400


def test_time_zones_are_as_new_as_the_service_however_old_those_of_the_machine_are():
    assert local_time.local_time(utc("2026-12-01T12:00"), "America/Vancouver") == "2026-12-01 05:00"  # new in 2026


def test_a_cron_expression_is_refused_when_the_clock_is_at_the_end_of_the_calendar():
    with pytest.raises(Refused) as refused:
        local_time.checked_cron("0 0 29 2 *", local_time.MAX_MS)
    assert refused.value.status == 400


@each(
    "cron, words",
    [
        ("0 3 * * *", "every day at 03:00"),
        ("0 3,15 * * *", "every day at 03:00 and 15:00"),
        ("30 2 * * 1", "Mondays at 02:30"),
        ("30 4 * * 6,0", "on Saturday and Sunday at 04:30"),
        ("0 1 1,21 * *", "on the first and the 21st day of the month at 01:00"),
        ("0 0 L * *", "on the last day of every month at 00:00"),
        ("10 0 */2 * *", "on every second day of the month at 00:10"),
        ("*/15 * * * *", "every 15 min"),
        ("*/7 * * * *", "every seventh minute of every hour"),
        ("* * * * *", "every minute"),
        (f"{','.join(map(str, range(36)))} * * * *", f"{','.join(map(str, range(36)))} * * * *"),
    ],
)
def test_a_cron_expression_is_told_in_words_unless_they_are_many(cron, words):
    assert local_time.cron_words(cron) == words
