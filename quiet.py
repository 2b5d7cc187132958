"""Wall-clock time: calendar days in an account's time zone. Pure; no other module knows zones."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from errors import Refused


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones an account can have."""
    return frozenset(available_timezones() - {"localtime", "Factory"})


def checked_zone(name: str) -> str:
    """`name` if it is a time zone; raises `Refused` (400) otherwise."""
    if name not in time_zones():
        raise Refused(400, f'"{name[:100]}" is not a time zone: take a name such as Europe/Berlin or UTC.')
    return name


def local_day(now: int, zone: str) -> str:
    """The calendar day, YYYY-MM-DD, at `now` (ms) in `zone`."""
    return datetime.fromtimestamp(now / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d")


def local_time(at: int, zone: str) -> str:
    """`at` (ms) as people read it in `zone`."""
    return datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


def day_start(now: int, zone: str) -> int:
    """When the calendar day of `now` (ms) began in `zone`, in ms."""
    local = datetime.fromtimestamp(now / 1000, ZoneInfo(zone))
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return int(midnight.astimezone(UTC).timestamp() * 1000)


def count_by_day(counts: Iterable[tuple[int, int]], zone: str) -> dict[str, int]:
    """Sum (start in ms, count) of quarters of an hour by calendar day: every zone's offset is a multiple of them."""
    days: dict[str, int] = {}
    for start, count in counts:
        day = local_day(start, zone)
        days[day] = days.get(day, 0) + count
    return days
