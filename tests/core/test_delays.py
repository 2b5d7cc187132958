"""The moment that ntfy's words for a delay mean, in an account's zone, also on days when the clocks change."""

import pytest

from core import delays
from tests.support.rows import each
from tests.support.times import utc
from wire.ntfy import NtfyRefused

NOW = "2021-12-10T14:00"  # a Friday, 9 o'clock in New York: the moment of the examples in ntfy's documentation
NEW_YORK = "America/New_York"

DOCUMENTED = {
    "30m": "2021-12-10T14:30", "2 hours": "2021-12-10T16:00", "1 day": "2021-12-11T14:00",
    "10am": "2021-12-10T15:00", "8am": "2021-12-11T13:00", "1639152000": "2021-12-10T16:00",
    "30min": "2021-12-10T14:30", "tomorrow, 10am": "2021-12-11T15:00", "tomorrow, 3pm": "2021-12-11T20:00",
    "Tuesday, 7am": "2021-12-14T12:00", "8:30pm": "2021-12-11T01:30", "in 30 minutes": "2021-12-10T14:30",
}  # fmt: skip
ALIKE = {  # 09:00 of today is past
    "1.5h": "2021-12-10T15:30", "1h30m": "2021-12-10T15:30", "1 hour and 30 minutes": "2021-12-10T15:30",
    "In an hour": "2021-12-10T15:00", "in half an hour": "2021-12-10T14:30", "2w": "2021-12-24T14:00",
    "10 a.m.": "2021-12-10T15:00", "12am": "2021-12-11T05:00", "12:05 pm": "2021-12-10T17:05",
    "at 21:15": "2021-12-11T02:15", "09:00": "2021-12-11T14:00", "noon tomorrow": "2021-12-11T17:00",
    "tomorrow at midnight": "2021-12-11T05:00", "tomorrow": "2021-12-11T14:00",
    "today 5pm": "2021-12-10T22:00", "7am on Sat": "2021-12-11T12:00", "Friday 8am": "2021-12-17T13:00",
    "friday 10 AM": "2021-12-10T15:00", "Friday": "2021-12-17T14:00", "next Monday": "2021-12-13T14:00",
    "next Friday 10am": "2021-12-17T15:00",
}  # fmt: skip


@each("words, at", [*DOCUMENTED.items(), *ALIKE.items()])
def test_a_delay_is_a_unix_time_a_duration_a_time_of_day_or_a_day(words, at):
    assert delays.moment(words, NEW_YORK, utc(NOW)) == utc(at)


@each(
    "words, now, at",
    [
        ("2:30am", "2026-03-28T20:00", "2026-03-29T01:30"),  # left out that night: an hour later by the clock
        ("tomorrow, 10am", "2026-03-28T10:00", "2026-03-29T08:00"),
        ("2:30am", "2026-10-24T20:00", "2026-10-25T00:30"),  # twice that night: the first
        ("2:45am", "2026-10-25T01:30", "2026-10-25T01:45"),  # half an hour of the second one is past
        ("tomorrow", "2026-10-24T10:00", "2026-10-25T11:00"),  # the same time of day
        ("1 day", "2026-10-24T10:00", "2026-10-25T10:00"),  # 24 hours
    ],
)
def test_a_time_of_day_is_that_of_the_clock_in_the_zone(words, now, at):
    assert delays.moment(words, "Europe/Berlin", utc(now)) == utc(at)


@each(
    "words, code",
    [
        *(
            (words, 40004)
            for words in ("soon", "1x", "30m later", "25:00", "13pm", "monkey", "tomorrow 10", "in", "")
        ),
        *(
            (words, 40004)
            for words in ("10am 11am", "yesterday", "-5m", "1.2.3h", "٣m", "tomorrow today", "m" * 100_000)
        ),
        *((words, 40005) for words in ("0s", "30", "today 8am", "today", "0.0001s")),
        *((words, 40006) for words in ("367 days", "53 weeks", "9" * 15, f"{'9' * 15} weeks")),
    ],
)
def test_another_delay_is_refused_with_ntfys_code(words, code):
    with pytest.raises(NtfyRefused) as refused:
        delays.moment(words, NEW_YORK, utc(NOW))
    assert refused.value.code == code
