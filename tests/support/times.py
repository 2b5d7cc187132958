"""Moments as Unix milliseconds, the lengths of hours and days, and the cost of a computation."""

import time
from contextlib import contextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
MINUTE_MS, DAY_MS = 60_000, 86_400_000
NOW = 1_795_255_200_000  # 2026-11-21 10:00 UTC, at which a moved clock stands first


def local_ms(text, zone, fold=0):
    """The moment at which a clock in this time zone shows `text`."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def utc(text):
    return local_ms(text, "UTC")


def at(moved_clock, text, zone="UTC", fold=0):
    """Set the wall clock to the moment at which a clock in this time zone shows `text`."""
    moved_clock.set_wall(local_ms(text, zone, fold))


@contextmanager
def at_little_cost(most_s=3.0):
    """Fail if the block takes more processor time than this, which a busy machine does not prolong."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < most_s
