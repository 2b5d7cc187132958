"""Quiet hours as their owner writes them: windows of the week, such as `mo-fr 22:00-07:00; sa,su 23:00-09:00`.

A window without days is each day's. It belongs to the day on which it begins, and may end on the next one. Pure; must
not know dates and zones: a minute of the week counts from Monday, 00:00, by the clock on the wall.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from wire.errors import Refused
from wire.validation import checked_string

DAYS = {"mo": "Monday", "tu": "Tuesday", "we": "Wednesday", "th": "Thursday", "fr": "Friday", "sa": "Saturday"}
DAYS |= {"su": "Sunday"}
NUMBERS = {word: number for number, word in enumerate(DAYS)}
MINUTES_A_DAY, MINUTES_A_WEEK = 1_440, 7 * 1_440
MAX_WINDOWS = 14
OFF = "off"  # quiet hours that are switched off
MAX_SHOWN = 100  # characters of a text that is refused
TIME = r"([01][0-9]|2[0-3]):([0-5][0-9])"
DAY = f"(?:{'|'.join(DAYS)})"
WINDOW = re.compile(rf"(?:({DAY}(?:-{DAY})?(?:, ?{DAY}(?:-{DAY})?)*) )?{TIME}-{TIME}", re.ASCII | re.IGNORECASE)
BETWEEN = re.compile(" ?; ?")
EXAMPLES = "22:00-07:00 or mo-fr 22:00-07:00; sa,su 23:00-09:00"


class Window(NamedTuple):
    """A window as it was written: its days (0 is Monday), and the minutes of the day at which it begins and ends."""

    text: str
    days: tuple[int, ...]
    begin: int
    end: int

    def spans(self) -> Iterator[tuple[int, int]]:
        """The minutes of the week at which it begins and ends: after Sunday, the second is beyond the week."""
        length = (self.end - self.begin) % MINUTES_A_DAY
        for day in self.days:
            begin = day * MINUTES_A_DAY + self.begin
            yield begin, begin + length


def checked(text: str) -> str:
    """Quiet hours with their words in one spelling; `Refused` (400) names the window that is wrong."""
    texts = BETWEEN.split(text)
    if len(texts) > MAX_WINDOWS:
        raise Refused(400, f"Quiet hours have at most {MAX_WINDOWS} windows, not {len(texts):,}.")
    windows = [_window(one) for one in texts]
    _check_overlaps(windows)
    if _edges(windows) == (0, MINUTES_A_WEEK):
        raise Refused(400, "Quiet hours must leave some time: these are the whole week.")
    return "; ".join(window.text for window in windows)


def checked_setting(value: Any, field: str) -> str:
    """`off`, or quiet hours as `checked` returns them; `Refused` (400) names the field."""
    text = checked_string(value, field)
    try:
        return OFF if text == OFF else checked(text)
    except Refused as refused:
        raise Refused(400, f"{field}: {refused.message}", field=field) from None


def _window(text: str) -> Window:
    match = WINDOW.fullmatch(text)
    if not match:
        raise Refused(400, f'Write quiet hours like {EXAMPLES}, not "{text[:MAX_SHOWN]}".')
    days, *numbers = match.groups()
    hour, minute, to_hour, to_minute = map(int, numbers)
    written = text.lower().replace(", ", ",")
    window = Window(written, _days(days), hour * 60 + minute, to_hour * 60 + to_minute)
    if window.begin == window.end:
        raise Refused(400, f"Quiet hours must not begin and end at the same time: {written}.")
    return window


def _days(words: str | None) -> tuple[int, ...]:
    """The days that a list of days and of ranges names; a range may pass Sunday."""
    if words is None:
        return tuple(range(7))
    found = set[int]()
    for part in words.lower().replace(" ", "").split(","):
        first, _, last = part.partition("-")
        begin = NUMBERS[first]
        found |= {(begin + later) % 7 for later in range((NUMBERS[last or first] - begin) % 7 + 1)}
    return tuple(sorted(found))


def _check_overlaps(windows: list[Window]) -> None:
    """Refuse (400) windows of which one begins before another has ended."""
    spans = sorted((begin, end, window.text) for window in windows for begin, end in window.spans())
    first_begin, first_end, first_text = spans[0]
    following = (first_begin + MINUTES_A_WEEK, first_end + MINUTES_A_WEEK, first_text)
    for (_, end, text), (begin, _, other) in pairwise([*spans, following]):
        if begin < end:
            day = list(DAYS.values())[begin // MINUTES_A_DAY % 7]
            raise Refused(400, f'The quiet hours "{text}" and "{other}" overlap on {day}.')


@lru_cache(maxsize=1_000)
def windows_of(hours: str) -> tuple[Window, ...]:
    """The windows of quiet hours as `checked` returns them."""
    return tuple(map(_window, BETWEEN.split(hours)))


@lru_cache(maxsize=1_000)
def edges(hours: str) -> tuple[int, ...]:
    """The minutes of the week at which these quiet hours begin and end, in turn, all of them within the week."""
    return _edges(windows_of(hours))


def _edges(windows: Iterable[Window]) -> tuple[int, ...]:
    parts = list[list[int]]()
    for begin, end in sorted(part for window in windows for span in window.spans() for part in _within(*span)):
        if parts and begin <= parts[-1][1]:
            parts[-1][1] = max(end, parts[-1][1])
        else:
            parts.append([begin, end])
    return tuple(edge for part in parts for edge in part)


def _within(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """A span in parts that are within the week."""
    yield begin, min(end, MINUTES_A_WEEK)
    if end > MINUTES_A_WEEK:
        yield 0, end - MINUTES_A_WEEK


def covers(hours: str, minute: int) -> bool:
    """Whether this minute of the week is within these quiet hours."""
    return bisect_right(edges(hours), minute) % 2 == 1


# --- words --------------------------------------------------------------------------------------------------


def written(days: Collection[int], begin: str, end: str) -> str:
    """A window on these days from one time (HH:MM) to another, as `checked` takes it."""
    runs = list[list[str]]()
    for day, word in enumerate(DAYS):
        if day in days and runs and day and day - 1 in days:
            runs[-1].append(word)
        elif day in days:
            runs.append([word])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(run) for run in runs]
    named = "" if len(days) == len(DAYS) else f"{','.join(parts)} "
    return f"{named}{begin}-{end}"


def in_words(hours: str) -> str:
    """Quiet hours as a sentence has them: "22:00 to 07:00", "Mon–Fri 22:00 to 07:00; Sat, Sun 23:00 to 09:00"."""
    return "; ".join(_in_words(window) for window in windows_of(hours))


def _in_words(window: Window) -> str:
    days, _, times = window.text.rpartition(" ")
    named = re.sub(DAY, lambda day: DAYS[day[0]][:3], days).replace("-", "–").replace(",", ", ")
    return f"{named} {times.replace('-', ' to ')}".strip()


def of_day(hours: str, day: int) -> list[tuple[int, int]]:
    """The parts of a day (0 is Monday) that are quiet: the minutes of the day at which each begins and ends."""
    since = day * MINUTES_A_DAY
    edges_of_day = [min(max(edge - since, 0), MINUTES_A_DAY) for edge in edges(hours)]
    return [(begin, end) for begin, end in zip(edges_of_day[::2], edges_of_day[1::2], strict=True) if begin < end]
