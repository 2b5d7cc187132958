"""When to send a message, in the words of ntfy's documentation: `30m`, `in 2 hours`, `tomorrow, 10am`. Pure."""

import re

from core import local_time
from process.clock import DAY_MS
from wire.notification import MAX_AHEAD_MS
from wire.ntfy import NtfyRefused

UNIX_TIME = re.compile(r"[0-9]{1,15}", re.ASCII)
UNITS_MS = {"w": 7 * DAY_MS, "d": DAY_MS, "h": 3_600_000, "m": 60_000, "s": 1_000}  # by first letter
NUMBERS = {"a": 1.0, "an": 1.0, "half a": 0.5, "half an": 0.5}
DURATION = re.compile(
    r"(?:(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?) ?|\b(?P<word>(?:half )?an?) )"
    r"(?P<unit>weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z]) ?(?:and )?",
    re.ASCII,
)
DAY = re.compile(
    r"(?:\b(?:on|next|this) )?\b(?:today|tomorrow|(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?"
    r"|thu(?:rs(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?))\b"
)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CLOCK = re.compile(
    r"(?:at )?(?:(?P<word>noon|midnight)"
    r"|(?P<half_hour>0?[1-9]|1[0-2])(?:[:.](?P<half_minute>[0-5][0-9]))? ?(?P<half>[ap])\.?m\.?"
    r"|(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9]))",
    re.ASCII,
)
CLOCK_OF = {"noon": (12, 0), "midnight": (0, 0)}
WHAT_IS_TAKEN = (
    "a Unix time in seconds, a duration such as 30m or 2 hours, or a time such as 10am or tomorrow, 8:30pm"
)


def moment(delay: str, zone: str, now: int) -> int:
    """When that is, in ms; `NtfyRefused` if it cannot be understood, is past, or is too far ahead."""
    words = " ".join(delay.lower().replace(",", " ").split())
    at = _moment(words, zone, now)
    if at is None:
        raise NtfyRefused(40004, f"delay must be {WHAT_IS_TAKEN}.")
    if at <= now:
        raise NtfyRefused(40005, "delay must lie in the future.")
    if at > now + MAX_AHEAD_MS:
        raise NtfyRefused(40006, "delay must be at most 366 days.")
    return at


def _moment(words: str, zone: str, now: int) -> int | None:
    if UNIX_TIME.fullmatch(words):
        return int(words) * 1_000
    if parts := list(DURATION.finditer(words := words.removeprefix("in "))):
        is_all = not DURATION.sub("", words)
        lengths = [(NUMBERS.get(one["word"]) or float(one["number"])) * UNITS_MS[one["unit"][0]] for one in parts]
        return now + round(sum(lengths)) if is_all else None
    return _time_of_day(words, zone, now)


def _time_of_day(words: str, zone: str, now: int) -> int | None:
    """A day, a time of day (tomorrow's if it is past), or both; a day alone is at the same time of day as now."""
    day = DAY.search(words)
    rest = " ".join(DAY.sub(" ", words, count=1).split())
    clock = CLOCK.fullmatch(rest)
    if not (clock or (day and not rest)):
        return None
    hour_minute = _hour_minute(clock) if clock else None
    weekday = day["weekday"] if day else None
    ahead = int("tomorrow" in words)
    if weekday:  # "next Friday" is never today
        ahead = (WEEKDAYS.index(weekday[:3]) - local_time.weekday(now, zone)) % 7 or 7 * ("next" in words)
    at = local_time.at_clock(now, ahead, hour_minute, zone)
    if at > now or (day and not weekday):
        return at
    return local_time.at_clock(now, ahead + (7 if weekday else 1), hour_minute, zone)


def _hour_minute(clock: re.Match[str]) -> tuple[int, int]:
    if clock["word"]:
        return CLOCK_OF[clock["word"]]
    if clock["half"]:
        return int(clock["half_hour"]) % 12 + 12 * (clock["half"] == "p"), int(clock["half_minute"] or 0)
    return int(clock["hour"]), int(clock["minute"])
