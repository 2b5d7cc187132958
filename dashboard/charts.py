"""Charts of metrics: ranges and their parts, breaks of the line, and the data for the browser's drawing."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median_low
from typing import Any, NamedTuple

from core import local_time
from process.clock import DAY_MS, HOUR_MS, MINUTE_MS
from store.custom_metrics import Bucket
from store.metric_rules import Firing

WIDTH, HEIGHT = 600, 160  # of the picture that the server makes, as in macros.html
LEAST_FIRING = 150  # a firing is drawn at least this part of the range wide, so that a short one is visible

Point = tuple[float, float]


class Range(NamedTuple):
    """A time range that ends now: its length in days, and that of its parts in ms, which divides a day."""

    name: str
    days: int
    width: int

    @property
    def span(self) -> int:
        """Its length in ms."""
        return self.days * DAY_MS

    def begin(self, zone: str, now: int) -> int:
        """When its first part begins: parts begin with the local day, so that they stay the same as time passes."""
        midnight, _ = local_time.day_bounds(local_time.local_day(now, zone), zone)
        return midnight + (now - midnight) // self.width * self.width - self.span


RANGES = (  # of about 300 parts each
    Range("24 h", 1, 5 * MINUTE_MS),
    Range("7 d", 7, 30 * MINUTE_MS),
    Range("30 d", 30, 2 * HOUR_MS),
    Range("90 d", 90, 6 * HOUR_MS),
    Range("1 y", 365, DAY_MS),
)


def mean(buckets: Sequence[Bucket]) -> float:
    """Of all values, without a sum that could be beyond a double."""
    count = sum(one.values for one in buckets)
    found = sum(one.mean * (one.values / count) for one in buckets)
    least, most = min((one.least for one in buckets), default=0.0), max((one.most for one in buckets), default=0.0)
    return min(max(found, least), most)


def runs(buckets: Sequence[Bucket]) -> list[list[Bucket]]:
    """The parts that have values, split where a line breaks: where values are missing.

    They are missing where the distance is much greater than usual: with a value an hour, most parts of a day are
    empty, and that is no gap.
    """
    steps = [after.place - before.place for before, after in pairwise(buckets)]
    most = max(2, 1.75 * median_low(steps)) if steps else 0
    found = [list(buckets[:1])] if buckets else []
    for step, bucket in zip(steps, buckets[1:], strict=True):
        if step > most:
            found.append([])
        found[-1].append(bucket)
    return found


def points(values: Sequence[tuple[int, float]], parts: int) -> list[Point]:
    """Scale (part, value) pairs to points of the server's picture."""
    halves = [value / 2 for _, value in values]  # high - low of two doubles can overflow; of their halves it cannot
    low, high = min(halves, default=0.0), max(halves, default=0.0)
    heights = [(half - low) / (high - low) if high > low else 0.5 for half in halves]
    return [
        (round(place * WIDTH / parts, 1), round(4 + (1 - height) * (HEIGHT - 8), 1))
        for (place, _), height in zip(values, heights, strict=True)
    ]


def split(lined: list[Point], found: list[list[Bucket]]) -> list[list[Point]]:
    """The points of all parts, split as the parts are."""
    rest = iter(lined)
    return [[next(rest) for _ in run] for run in found]


def is_drawable(buckets: Sequence[Bucket]) -> bool:
    """Whether there are values, and the browser's scale can go from the least to the greatest in steps.

    If not, the picture and the table remain: of values such as 1e308, or of two that differ in the 7th digit.
    """
    if not buckets:
        return False
    least, most = min(one.least for one in buckets), max(one.most for one in buckets)
    largest = max(abs(least), abs(most))
    is_usual = largest == 0 or 1e-9 < largest < 1e15
    return is_usual and (least == most or most - least > largest * 1e-6)


def drawing(found: list[list[Bucket]], since: int) -> dict[str, list[Any]]:
    """The columns of the chart in order of time: ms since the begin, how many values, greatest, least and mean.

    A part is drawn in the middle of its values' times. Between two runs is a row of None.
    """
    rows: list[tuple[Any, ...]] = []
    for run in found:
        if rows:
            rows.append((rows[-1][0] + 1, None, None, None, None))
        for one in run:
            rows.append(((one.first_at + one.last_at) // 2 - since, one.values, one.most, one.least, one.mean))
    names = ("times", "counts", "most", "least", "means")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def tints(firings: Sequence[Firing], since: int, until: int) -> list[tuple[int, int]]:
    """Begin and end of each part of the time in which a rule fired; parts that touch are one."""
    found, least = list[tuple[int, int]](), (until - since) // LEAST_FIRING
    for began_at, ended_at in firings:  # the oldest first
        begin = min(max(since, began_at), until - least)
        end = max(until if ended_at is None else min(ended_at, until), begin + least)
        if found and begin <= found[-1][1]:
            begin, end = found[-1][0], max(end, found.pop()[1])
        found.append((begin, end))
    return found
