"""Wall-clock time in an account's time zone: quiet hours, digests, calendar days. Pure; no other module knows zones.

Whether a notification is held is decided again each time and never computed ahead: so changes of settings, of the
clock and of daylight saving time need no special case.
"""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones, reset_tzpath

from cronsim import CronSim, CronSimError

from core import week_windows
from process.clock import DAY_MS, MINUTE_MS
from wire.errors import Refused

reset_tzpath(())  # the zones of the package tzdata alone: the machine's may be years old

MAX_MS = 253_402_128_000_000  # 9999-12-30: a day before the end of the calendar, since zones are up to 14 h ahead
QUARTER_MS = 15 * MINUTE_MS
MAX_LOOK_MS = 22 * DAY_MS  # ahead: daylight saving time may skip the only minutes of a week that are not quiet
COLLECTED_MS = {"instant": 0, "15m": QUARTER_MS, "1h": 3_600_000, "1d": DAY_MS}  # by frequency
AT_TIMES = re.compile(r"At ((?:\d\d:\d\d(?:, and | and |, )?)+) (.+)")
EVERY_MINUTES, ONE_WEEKDAY = re.compile(r"\*/([2-9]|[1-5][0-9]) \* \* \* \*"), re.compile(r"^on (\w+day)$")
ORDINALS = {"21th": "21st", "22th": "22nd", "23th": "23rd", "31th": "31st"}  # as cronsim and as English has them
MAX_CRON_WORDS = 80  # characters
CRON_FIELDS, MAX_CRON_CHARACTERS = 5, 100
MAX_RUNS, LOOKED_AHEAD = 1_000, timedelta(days=2 * 366)  # that are looked at
DIRECTIVE = re.compile("%(.)")  # of strftime
DAY = re.compile(r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}")
SECONDS_BELOW = 100_000_000_000  # a greater number is milliseconds
NO_TIME = ValueError, OverflowError, OSError  # raised for a moment that is none
MIDNIGHT = time()


def _local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(min(at, MAX_MS) / 1000, ZoneInfo(zone))


def _minute_of_week(at: int, zone: str) -> int:
    """The minute of the week that a clock in `zone` shows at `at` (ms), counted from Monday, 00:00."""
    local = _local(at, zone)
    return (local.weekday() * 24 + local.hour) * 60 + local.minute


def is_quiet(hours: str | None, zone: str, now: int) -> bool:
    """Whether the clock in `zone` is within these quiet hours (core/week_windows.py) at `now` (ms)."""
    return hours is not None and week_windows.covers(hours, _minute_of_week(now, zone))


def next_change(hours: str, zone: str, now: int) -> int:
    """When the quiet hours begin next or, during them, end; in ms.

    Looks at each quarter of an hour, in which no zone's clock is set, and at the edges within it: so changes to
    daylight saving time are met as they will come.
    """
    before = is_quiet(hours, zone, now)
    for quarter in range(now - now % QUARTER_MS, now + MAX_LOOK_MS, QUARTER_MS):
        minute = _minute_of_week(quarter, zone)
        within = (edge for edge in week_windows.edges(hours) if minute < edge < minute + QUARTER_MS // MINUTE_MS)
        for at_minute in (minute, *within):
            at = quarter + (at_minute - minute) * MINUTE_MS
            if at > now and week_windows.covers(hours, at_minute) != before:
                return at
    return now + MAX_LOOK_MS


def next_window(hours: str, zone: str, now: int) -> tuple[int, int]:
    """When the current quiet hours began (as `now`) and end or, outside them, when the next ones begin and end."""
    begin = now if is_quiet(hours, zone, now) else next_change(hours, zone, now)
    return begin, next_change(hours, zone, begin)


def collected_at(frequency: str, first_held_at: int, now: int) -> int:
    """When a digest that began with an event at `first_held_at` closes, or `now` if it is closed already; in ms."""
    is_open = abs(now - first_held_at) < COLLECTED_MS[frequency]  # the clock may have been set back
    return first_held_at + COLLECTED_MS[frequency] if is_open else now


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones an account can have."""
    return frozenset(available_timezones() - {"localtime", "Factory"})


def time_zone_names() -> list[str]:
    """The names of all time zones, in order."""
    return sorted(time_zones())


def checked_zone(name: str) -> str:
    """`name` if it is a time zone; raises `Refused` (400) otherwise."""
    if name not in time_zones():
        sentence = f'"{name[:100]}" is not a time zone. Use a name such as Europe/Berlin or UTC.'
        raise Refused(400, sentence, field="time_zone")
    return name


def local_day(now: int, zone: str) -> str:
    """The calendar day, YYYY-MM-DD, at `now` (ms) in `zone`."""
    return _day_of_quarter(now // QUARTER_MS, zone)


@lru_cache(maxsize=1_000)
def _day_of_quarter(quarter: int, zone: str) -> str:
    """The day of a quarter of an hour: days begin with one, since every zone's offset has whole ones today."""
    return _local(quarter * QUARTER_MS, zone).date().isoformat()


def local_time(at: int, zone: str) -> str:
    """`at` (ms) as people read it in `zone`."""
    return laid_out(at, "%Y-%m-%d %H:%M", zone)


def laid_out(at: int, layout: str, zone: str) -> str:
    """`at` (ms) in `zone`, formatted by strftime."""
    return _local(at, zone).strftime(layout)


def utc_time(at: int) -> str:
    """`at` (ms) in ISO 8601, UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def near_time(at: int, zone: str, now: int) -> str:
    """`at` (ms) in the fewest words that are clear at `now`: "today 22:00", "tomorrow 07:00", "Mon 23 Nov 07:00"."""
    return f"{near_day(at, zone, now)} {_local(at, zone):%H:%M}"


def near_day(at: int, zone: str, now: int) -> str:
    """The day of `at` (ms) in the fewest words that are clear at `now`: "today", "Mon 23 Nov", "23 Nov 2025"."""
    day, today = _local(at, zone).date(), _local(now, zone).date()
    near = {0: "today", 1: "tomorrow", -1: "yesterday"}
    return near.get((day - today).days) or day.strftime("%a %d %b" if day.year == today.year else "%d %b %Y")


def last_days(count: int, zone: str, now: int) -> list[str]:
    """The last `count` calendar days (YYYY-MM-DD) in `zone`, ending with the day of `now`."""
    today = _local(now, zone).date()
    return [(today - timedelta(days=back)).isoformat() for back in reversed(range(count))]


def day_bounds(day: str, zone: str, field: str = "day") -> tuple[int, int]:
    """When a calendar day (YYYY-MM-DD) begins and ends in `zone`, in ms; `Refused` (400) at `field` if it is none."""
    try:
        begin = date.fromisoformat(day if DAY.fullmatch(day) else "")
    except ValueError:
        sentence = "The day must be of a year from 1000 to 2999 and written like 2026-11-21."
        raise Refused(400, sentence, field=field) from None
    return _clock_at(begin, MIDNIGHT, zone), _clock_at(begin + timedelta(days=1), MIDNIGHT, zone)


def _clock_at(day: date, clock: time, zone: str) -> int:
    """When a clock in `zone` shows this time on this day; in ms."""
    return int(datetime.combine(day, clock, ZoneInfo(zone)).timestamp() * 1000)


def formatted(moment: float | str, layout: str, zone: str) -> str:
    """`moment` (Unix seconds or milliseconds, or ISO 8601) in `zone`, formatted by strftime.

    An ISO 8601 time without an offset counts as local. One of `NO_TIME` if it is no time.
    """
    local = _moment(moment, zone)  # of which strftime's own %s would take the machine's time zone
    return local.strftime(DIRECTIVE.sub(lambda one: str(int(local.timestamp())) if one[1] == "s" else one[0], layout))


def _moment(moment: float | str, zone: str) -> datetime:
    if isinstance(moment, str):
        local = datetime.fromisoformat(moment)
        return local.astimezone(ZoneInfo(zone)) if local.tzinfo else local.replace(tzinfo=ZoneInfo(zone))
    seconds = moment if abs(moment) < SECONDS_BELOW else moment / 1000
    return datetime.fromtimestamp(seconds, ZoneInfo(zone))


def moment_ms(text: str, zone: str) -> int:
    """A moment that was typed, as `formatted` takes it, in ms; `Refused` (400) if it is no time."""
    try:
        return round(_moment(int(text) if text.isdecimal() else text, zone).timestamp() * 1000)
    except NO_TIME:
        sentence = f'"{text[:100]}" is no time: write it like 2026-11-21T07:00, or in Unix milliseconds.'
        raise Refused(400, sentence) from None


def weekday(at: int, zone: str) -> int:
    """The day of the week of `at` (ms) in `zone`: 0 is Monday."""
    return _local(at, zone).weekday()


def at_clock(now: int, days: int, hour_minute: tuple[int, int] | None, zone: str) -> int:
    """The time `days` calendar days after `now` in `zone`, at that time of day (None: the same as now); in ms.

    If it comes twice that day, it is the first time that is not past.
    """
    local = _local(now, zone)
    day, clock = local.date() + timedelta(days=days), time(*hour_minute) if hour_minute else local.time()
    once, again = (_clock_at(day, clock.replace(fold=fold), zone) for fold in (0, 1))
    return once if once > now else again


def count_by_day(counts: Iterable[tuple[int, int]], zone: str) -> Counter[str]:
    """Sum counts of quarter hours (start in ms, count) by calendar day: every zone's offset is a multiple of them."""
    days = Counter[str]()
    for start, count in counts:
        days[local_day(start, zone)] += count
    return days


# --- cron ---------------------------------------------------------------------------------------------------


def next_run(cron: str, zone: str, after: int) -> int:
    """When a cron expression, as Debian's cron reads it, runs next in `zone` after a time; in ms.

    A fixed hour that daylight saving time leaves out runs right after the change; an hour that comes twice runs once.
    """
    runs = (int(run.timestamp() * 1000) for run in CronSim(cron, _local(after, zone)))
    return next(at for at in runs if at > after)  # the first may be past in an hour that comes twice


def check_gaps(cron: str, for_s: int, zone: str, now: int) -> None:
    """`Refused` (400) if a cron expression runs again before so many seconds have passed, and says when in `zone`.

    By the clock on the wall: a change to daylight saving time may still join two windows.
    """
    begin = _local(now, zone).replace(tzinfo=UTC)
    runs = takewhile(lambda run: run < begin + LOOKED_AHEAD, islice(CronSim(cron, begin), MAX_RUNS))
    for run, following in pairwise(runs):
        if following < (end := run + timedelta(seconds=for_s)):
            again, ends = (f"{at:%a %d %b %H:%M}" for at in (following, end))
            sentence = f'"{cron}" comes again on {again}, before it ends on {ends}.'
            raise Refused(400, sentence, field="cron")


def cron_words(cron: str) -> str:
    """A cron expression in words, such as "every day at 03:00"; the expression itself if they would be many."""
    minutes = EVERY_MINUTES.fullmatch(cron)
    if minutes and 60 % int(minutes[1]) == 0:
        return f"every {minutes[1]} min"
    words = CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC)).explain().replace("day of month", "day of the month")
    for wrong, right in ORDINALS.items():
        words = words.replace(wrong, right)
    if at_times := AT_TIMES.fullmatch(words):
        days = ONE_WEEKDAY.sub(r"\1s", at_times[2])
        words = f"{days} at {at_times[1]}"
    else:
        words = words[0].lower() + words[1:]
    return words if len(words) <= MAX_CRON_WORDS else cron


def checked_cron(cron: str, now: int) -> str:
    """`cron` with single spaces, if it is an expression of five fields that runs at all; `Refused` (400) if not."""
    fields = cron.split()
    text = " ".join(fields)
    try:
        if len(fields) != CRON_FIELDS or len(text) > MAX_CRON_CHARACTERS or not text.isascii():
            raise ValueError
        next_run(text, "UTC", now)
    except (CronSimError, ValueError, AssertionError, StopIteration, OverflowError):
        advice = "Write five fields, such as 0 3 * * * for 03:00 daily."
        sentence = f'"{cron[:100]}" is not a cron expression, or never runs. {advice}'
        raise Refused(400, sentence, field="cron") from None
    return text
