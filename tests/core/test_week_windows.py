"""Quiet hours by days of the week: how they are written, which minutes they cover, when they change."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import local_time, week_windows
from tests.support.rows import each
from tests.support.times import MINUTE_MS, local_ms
from tests.support.wall_clocks import TIMES, moment, moments
from wire.errors import Refused

WORDS = ("mo", "tu", "we", "th", "fr", "sa", "su")
OF_CONTRACT = "mo-fr 22:00-07:00; sa,su 23:00-09:00"
DAY_MINUTES, WEEK_MINUTES = 1_440, 10_080
quick = settings(max_examples=25, deadline=None)

days = st.lists(st.sampled_from(range(7)), min_size=1, max_size=7, unique=True)
window = st.tuples(days, st.integers(0, 95), st.integers(0, 95)).filter(lambda one: one[1] != one[2])
some_windows = st.lists(window, min_size=1, max_size=6)


def text_of(one):
    listed, begin, end = one
    return f"{','.join(WORDS[day] for day in listed)} {TIMES[begin * 15]}-{TIMES[end * 15]}"


def minutes_of(one):
    """The minutes of the week within a window, each as often as a day's window has it."""
    listed, begin, end = one
    length = (end - begin) % 96 * 15
    return [(day * DAY_MINUTES + begin * 15 + by) % WEEK_MINUTES for day in listed for by in range(length)]


def checked(windows):
    try:
        return week_windows.checked("; ".join(map(text_of, windows)))
    except Refused:
        return None


# --- how they are written ---


@each(
    "text, kept",
    [
        (OF_CONTRACT, OF_CONTRACT),
        ("MO-FR 22:00-07:00;Sa, su 23:00-09:00", OF_CONTRACT),
        ("fr-mo 22:00-07:00", "fr-mo 22:00-07:00"),
        ("mo-we,sa 12:00-13:00 ; 14:00-15:00", "mo-we,sa 12:00-13:00; 14:00-15:00"),
        ("mo 22:00-00:00; tu 00:00-07:00", "mo 22:00-00:00; tu 00:00-07:00"),
        ("; ".join(f"mo {hour:02}:00-{hour:02}:30" for hour in range(14)),) * 2,
    ],
)
def test_windows_are_kept_as_they_were_written_in_one_spelling(text, kept):
    assert week_windows.checked(text) == kept == week_windows.checked(kept)


WRONG = {
    "mo-fr 22:00-07:00; sa 6:00-9:00": '"sa 6:00-9:00"',
    "mo-fr 22:00-07:00; xx 06:00-09:00": '"xx 06:00-09:00"',
    "mo-fr-sa 22:00-07:00": '"mo-fr-sa 22:00-07:00"',
    "mo 22:00-07:00;": '""',
    "mo-fr": '"mo-fr"',
    "ma 22:00-07:00": '"ma 22:00-07:00"',
    "mo22:00-07:00": '"mo22:00-07:00"',
    "ſa 22:00-07:00": '"ſa 22:00-07:00"',
    "mo 22:00-22:00": "mo 22:00-22:00",
    "24:00-07:00": '"24:00-07:00"',
    "22:60-07:00": '"22:60-07:00"',
    "22:00-07:00\n": '"22:00-07:00',
    "٢٢:00-07:00": '"٢٢:00-07:00"',
    "mo 22:00-07:00; tu 06:59-08:00": '"mo 22:00-07:00" and "tu 06:59-08:00" overlap on Tuesday',
    "mo-fr 22:00-07:00; th 23:00-23:30": '"mo-fr 22:00-07:00" and "th 23:00-23:30" overlap on Thursday',
    "su 22:00-07:00; mo 06:00-06:30": '"su 22:00-07:00" and "mo 06:00-06:30" overlap on Monday',
    "fr-mo 10:00-12:00; su 11:00-13:00": "overlap on Sunday",
    "00:00-12:00; 12:00-00:00": "the whole week",
    "; ".join(f"mo {hour:02}:00-{hour:02}:30" for hour in range(15)): "at most 14 windows, not 15",
}


@each("text, named", list(WRONG.items()))
def test_a_wrong_window_is_refused_and_named(text, named):
    with pytest.raises(Refused) as refused:
        week_windows.checked(text)
    assert refused.value.status == 400 and named in refused.value.message


@given(some_windows)
@quick
def test_exactly_windows_that_share_no_minute_and_leave_one_are_taken(windows):
    covered = [minute for one in windows for minute in minutes_of(one)]
    is_fine = len(covered) == len(set(covered)) < WEEK_MINUTES
    assert (checked(windows) is not None) is is_fine


@given(days, st.sampled_from(TIMES), st.sampled_from(TIMES))
@quick
def test_what_a_form_writes_covers_the_days_that_were_chosen(chosen, begin, end):
    if begin != end:
        (read,) = week_windows.windows_of(week_windows.checked(week_windows.written(chosen, begin, end)))
        assert (read.days, TIMES[read.begin], TIMES[read.end]) == (tuple(sorted(chosen)), begin, end)


@each(
    "hours, words",
    [("22:00-07:00", "22:00 to 07:00"), (OF_CONTRACT, "Mon–Fri 22:00 to 07:00; Sat, Sun 23:00 to 09:00")],
)
def test_they_are_told_in_words(hours, words):
    assert week_windows.in_words(hours) == words


# --- what they cover ---


@given(some_windows)
@quick
def test_a_window_belongs_to_the_day_on_which_it_begins(windows):
    if hours := checked(windows):
        covered = {minute for one in windows for minute in minutes_of(one)}
        assert {minute for minute in range(WEEK_MINUTES) if week_windows.covers(hours, minute)} == covered
        by_day = [
            day * DAY_MINUTES + minute
            for day in range(7)
            for begin, end in week_windows.of_day(hours, day)
            for minute in range(begin, end)
        ]
        assert by_day == sorted(covered)


def is_within(windows, at, zone):
    """What the calendar and the clock on the wall say."""
    now = datetime.fromtimestamp(at / 1000, ZoneInfo(zone))
    minute = (now.weekday() * 24 + now.hour) * 60 + now.minute
    return any(minute in minutes_of(one) for one in windows)


@given(moments, some_windows, st.integers(0, MINUTE_MS - 1))
@settings(max_examples=25, deadline=None)
def test_the_clock_on_the_wall_decides_also_when_they_change_next(where, windows, ms):
    (zone, minute), hours = where, checked(windows)
    if hours is None:
        return
    now, covered = moment(minute) + ms, {minute for one in windows for minute in minutes_of(one)}
    assert local_time.is_quiet(hours, zone, now) is is_within(windows, now, zone)
    change = local_time.next_change(hours, zone, now)
    assert now < change <= now + 22 * DAY_MINUTES * MINUTE_MS and change % MINUTE_MS == 0
    clock = datetime.fromtimestamp(change / 1000, ZoneInfo(zone))
    after = (clock.weekday() * 24 + clock.hour) * 60 + clock.minute
    assert (after in covered) is not local_time.is_quiet(hours, zone, now)
    for at in range(now - now % MINUTE_MS + MINUTE_MS, change, 7 * MINUTE_MS):
        assert local_time.is_quiet(hours, zone, at) is local_time.is_quiet(hours, zone, now)


def test_the_only_minutes_that_are_left_may_be_skipped_by_daylight_saving_time():
    all_but_an_hour = week_windows.checked("mo-sa 02:00-14:00; 14:00-02:00; su 03:00-14:00")
    before = local_ms("2026-03-28T12:00", "Europe/Berlin")  # on the 29th, the clock goes from 02:00 to 03:00
    change = local_time.next_change(all_but_an_hour, "Europe/Berlin", before)
    assert change == local_ms("2026-04-05T02:00", "Europe/Berlin")
