"""The tables of custom metrics and their queries.

The time of a value is what its sender says: it may be anywhere up to the year 9999.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from store import notification_days
from store.database import AFTER_ALL, THESE, run
from store.engine import inserting
from store.rows import Query, bytes_of, columns, size

MAX_LISTED_SERIES = 100
MAX_CHARTED = 600_000  # values of a chart: the newest. A value each minute for a year; they take a third of a second
NUMBERS_BYTES = 16  # of a value and its time


MetricColumns = tuple[str, str, float, str | None, int, str | None]  # a `MetricValue`: a plain tuple is made faster


class MetricValue(NamedTuple):
    """One value of a metric; `timestamp` in ms, `metadata` a JSON object's text."""

    metric_id: str
    metric_name: str
    value: float
    unit: str | None
    timestamp: int
    metadata: str | None


COLUMNS = ("series_seq", *MetricValue._fields[1:])  # a row has its series instead of the metric's id


class Bucket(NamedTuple):
    """A part of a range of time: its number, how many values it has, their mean, least, greatest, and times."""

    place: int
    values: int
    mean: float
    least: float
    most: float
    first_at: int
    last_at: int


SERIES_SEQS = (
    "SELECT metric_id, seq FROM metric_series"
    " WHERE account_seq = ? AND project_id = ? AND metric_id IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
)
ADD_SERIES = "INSERT INTO metric_series (account_seq, project_id, metric_id) SELECT ?, ?, value FROM json_each(?)"
# The account's ids (project, metric) after these two, in order: `MAX_LISTED_SERIES`, and one more if there is another
# page.
list_series = Query(
    tuple[str, str],
    "SELECT project_id, metric_id FROM metric_series WHERE account_seq = ? AND (project_id, metric_id) > (?, ?)"
    f" ORDER BY project_id, metric_id LIMIT {MAX_LISTED_SERIES + 1}",
).all


def series_seqs(account_seq: int, project_id: str, metric_ids: set[str]) -> dict[str, int]:
    """The seq of each of these metrics; adds new ones."""
    found = dict(run(SERIES_SEQS, (account_seq, project_id, list(metric_ids))))
    if len(found) == len(metric_ids):
        return found
    new = [id_ for id_ in metric_ids if id_ not in found]
    run(ADD_SERIES, (account_seq, project_id, new))
    notification_days.add_bytes(account_seq, bytes_of([project_id * len(new), *new]))
    return series_seqs(account_seq, project_id, metric_ids)


class Place(NamedTuple):
    """Where a value is: its metric, the metric's seq and its own."""

    project_id: str
    metric_id: str
    series_seq: int
    seq: int


class TimedValue(NamedTuple):
    """A value with its time."""

    timestamp: int
    value: float
    unit: str | None


def add_all(account_seq: int, project_id: str, values: Sequence[MetricColumns]) -> None:
    """Add all of them by one statement: after each, another thread may run, which makes many slow."""
    by_id = series_seqs(account_seq, project_id, {value[0] for value in values})
    row: list[Any] = [column for value in values for column in (by_id[value[0]], *value[1:])]
    run(inserting("metric", COLUMNS, len(values)), row)
    texts = len("".join(row[1::6]).encode()) + bytes_of(row[3::6]) + bytes_of(row[5::6])
    notification_days.add_bytes(account_seq, texts + NUMBERS_BYTES * len(values))


OF_SERIES = (
    "FROM metric WHERE series_seq = (SELECT seq FROM metric_series"
    " WHERE account_seq = :account AND project_id = :project AND metric_id = :metric)"
)
LATEST = Query(
    MetricValue,
    f"SELECT {columns(MetricValue, 'metric', metric_id=':metric')} {OF_SERIES}"
    " AND timestamp BETWEEN :since AND :until ORDER BY timestamp DESC, seq DESC LIMIT 1",
)
# The sum of a mean, or its square, may be beyond a double: the mean of huge values is that of smaller ones, times
# 2^560. Rounding may bring it beyond the greatest double, and out of the range of the values.
HUGE = (
    "max(min(avg(CASE WHEN abs(value) < 1e140 THEN 0 ELSE value / 3.7739624248215414e168 END),"
    " 4.763410262543689e139), -4.763410262543689e139) * 3.7739624248215414e168"
)
MEAN = f"avg(CASE WHEN abs(value) < 1e140 THEN value ELSE 0 END) + {HUGE}"
OF_BUCKET = {
    "place": "(timestamp - :since) / :width AS place",
    "values": "count(*)",
    "mean": f"min(max({MEAN}, min(value)), max(value))",
    "least": "min(value)",
    "most": "max(value)",
    "first_at": "min(timestamp)",
    "last_at": "max(timestamp)",
}
BUCKETS = Query(
    Bucket,
    f"SELECT {columns(Bucket, 'newest', **OF_BUCKET)} FROM (SELECT timestamp, value {OF_SERIES}"
    " AND timestamp BETWEEN :since AND :until ORDER BY timestamp DESC LIMIT :limit) newest"
    " GROUP BY place ORDER BY place",
)
SAMPLES = (  # the last value of each part: as many look-ups as parts, however many values there are
    f"SELECT * FROM (SELECT place.value, (SELECT value {OF_SERIES} AND timestamp >= :since + place.value * :width"
    " AND timestamp < :since + (place.value + 1) * :width ORDER BY timestamp DESC LIMIT 1) AS last"
    " FROM (SELECT value FROM json_each(:places)) place) part WHERE last IS NOT NULL"
)
EXTENT = f"SELECT min(value), max(value) {OF_SERIES} AND timestamp BETWEEN :since AND :until"
NEWEST = Query(
    TimedValue,
    f"SELECT {columns(TimedValue, 'metric')} {OF_SERIES} AND timestamp BETWEEN :since AND :until"
    " ORDER BY timestamp DESC, seq DESC LIMIT :limit",
)
BEFORE_NEWEST = (
    f"SELECT timestamp, seq {OF_SERIES} AND timestamp BETWEEN :since AND :until"
    " ORDER BY timestamp DESC, seq DESC LIMIT 1 OFFSET :newest"
)
AFTER = (
    f"SELECT {columns(TimedValue, 'metric')}, seq {OF_SERIES} AND timestamp BETWEEN :since AND :until"
    " AND (timestamp > :since OR seq > :seq) ORDER BY timestamp, seq LIMIT :limit"
)
NEXT = Query(int, f"SELECT min(timestamp) {OF_SERIES} AND timestamp > :now")

OF_ACCOUNT = "FROM metric_series s CROSS JOIN metric m WHERE m.series_seq = s.seq AND s.account_seq = :account"
# How many values of the `account` have a time from `since` on.
count = Query(int, f"SELECT count(*) {OF_ACCOUNT} AND m.timestamp >= :since").one
# Time and seq of the value at that `place` (0 is the first) among the account's `since` a time, by age.
oldest = Query(
    tuple[int, int],
    f"SELECT m.timestamp, m.seq {OF_ACCOUNT} AND m.timestamp >= :since"
    " ORDER BY m.timestamp, m.seq LIMIT 1 OFFSET :place",
).one
PLACE = columns(Place, "s", series_seq="s.seq", seq="m.seq")
OLDER = Query(
    Place,
    f"SELECT {PLACE} {OF_ACCOUNT}"
    " AND (s.project_id, s.metric_id) >= (:project, :metric)"
    " AND m.timestamp <= :before AND (m.timestamp < :before OR m.seq < :seq)"
    " ORDER BY s.project_id, s.metric_id LIMIT :limit",
)
# Some values of a `metric`, of a whole `project` (no `metric`), or of the `account` (nor `project`).
of_project = Query(
    Place,
    f"SELECT {PLACE} {OF_ACCOUNT}"
    " AND s.project_id = coalesce(:project, s.project_id) AND s.metric_id = coalesce(:metric, s.metric_id)"
    " LIMIT :limit",
).all
SIZE = f"{NUMBERS_BYTES} + {size('metric_name', 'unit', 'metadata')}"
REMOVE = f"DELETE FROM metric WHERE seq IN {THESE} RETURNING {SIZE}"
REMOVE_EMPTY = (
    f"DELETE FROM metric_series WHERE seq IN {THESE}"
    " AND NOT EXISTS (SELECT 1 FROM metric WHERE series_seq = metric_series.seq)"
    f" RETURNING {size('project_id', 'metric_id')}"
)


def latest(account_seq: int, series: tuple[str, str], since: int, now: int) -> MetricValue | None:
    """The latest value from `since` up to now; if all are in the future, the last of these."""
    found = LATEST.first(**_of(account_seq, series, since=since, until=now))
    return found or LATEST.first(**_of(account_seq, series, since=now, until=AFTER_ALL))


def buckets(
    account_seq: int, series: tuple[str, str], since: int, until: int, width: int, limit: int
) -> list[Bucket]:
    """The newest values from `since` to `until`, at most `limit`, in the parts of `width` ms that have any."""
    return BUCKETS.all(**_of(account_seq, series, since=since, until=until, width=width, limit=limit))


def samples(account_seq: int, series: tuple[str, str], since: int, width: int, parts: int) -> list[tuple[int, float]]:
    """The last value in each of `parts` parts of `width` ms that is not empty, with the number of the part."""
    return run(SAMPLES, _of(account_seq, series, since=since, width=width, places=list(range(parts)))).fetchall()


def extent(account_seq: int, series: tuple[str, str], since: int, until: int) -> tuple[float, float] | None:
    """The least and the greatest value between these times; None if there is none."""
    least, most = run(EXTENT, _of(account_seq, series, since=since, until=until)).fetchone()
    return None if least is None else (least, most)


def newest(account_seq: int, series: tuple[str, str], since: int, until: int, limit: int) -> list[TimedValue]:
    """The newest values from `since` to `until`, at most `limit`, oldest first."""
    return NEWEST.all(**_of(account_seq, series, since=since, until=until, limit=limit))[::-1]


def in_pieces(
    account_seq: int, series: tuple[str, str], since: int, until: int, newest: int, size: int
) -> Iterator[list[TimedValue]]:
    """The newest values from `since` to `until`, oldest first, read so many at a time."""
    place = _of(account_seq, series, since=since, until=until, newest=newest, seq=0, limit=size)
    place["since"], place["seq"] = run(BEFORE_NEWEST, place).fetchone() or (since, 0)
    while rows := run(AFTER, place).fetchall():
        yield [TimedValue(*row[:-1]) for row in rows]
        place["since"], place["seq"] = rows[-1][0], rows[-1][-1]


def next_at(account_seq: int, series: tuple[str, str], now: int) -> int | None:
    """The first time after now of a value."""
    return NEXT.first(**_of(account_seq, series, now=now))


# --- removing ---


def older(account_seq: int, before: tuple[int, int], begin: tuple[str, str], limit: int) -> list[Place]:
    """The account's values older than `before` (time, seq), metric by metric, from the metric `begin` on."""
    return OLDER.all(**_of(account_seq, begin, before=before[0], seq=before[1], limit=limit))


def remove(account_seq: int, places: Sequence[Place]) -> None:
    """Remove these values of the account, and its metrics without a value."""
    freed = run(REMOVE, ([place.seq for place in places],)).fetchall()
    freed += run(REMOVE_EMPTY, (list({place.series_seq for place in places}),)).fetchall()
    notification_days.add_bytes(account_seq, -sum(row[0] for row in freed))


def _of(account_seq: int, series: tuple[str, str], **more: object) -> dict[str, Any]:
    return {"account": account_seq, "project": series[0], "metric": series[1], **more}
