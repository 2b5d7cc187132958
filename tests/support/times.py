"""Moments as Unix milliseconds, what hours and days have of them, and what a computation costs."""

import time
from contextlib import contextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
MINUTE_MS, DAY_MS = 60_000, 86_400_000


def local_ms(text, zone, fold=0):
    """The moment at which the clocks of a time zone show this."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def utc(text):
    return local_ms(text, "UTC")


def at(moved_clock, text, zone="UTC", fold=0):
    """Set the wall clock to what the clocks of a time zone show."""
    moved_clock.set_wall(local_ms(text, zone, fold))


@contextmanager
def at_little_cost(most_s=3.0):
    """Fails when the block takes more processor time; however busy the machine is, that stays the same."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < most_s
