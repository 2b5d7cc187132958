"""The tables of metrics and their queries (SPEC 4.9; CONTRACT 5, kept). Callers pass the time.

A value's time is what its sender says: it may lie anywhere up to the year 9999.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import peewee

from models import Account, Model
from store.database import AFTER_ALL, run, transaction
from wire.json_text import as_json

MOST_SERIES = 100  # that are listed


MetricColumns = tuple[str, str, float, str | None, int, str | None]  # a `MetricValue` that costs less to make


class MetricValue(NamedTuple):
    """One value of a metric; `timestamp` in ms, `metadata` a JSON object's text."""

    metric_id: str
    metric_name: str
    value: float
    unit: str | None
    timestamp: int
    metadata: str | None


class Bucket(NamedTuple):
    """A part of a range: its number, how many values it has, their mean, least and greatest."""

    place: int
    values: int
    mean: float
    least: float
    most: float


class MetricSeries(Model):
    """A metric of a project, under whose number its values are."""

    seq = peewee.AutoField()
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    project_id = peewee.TextField()
    metric_id = peewee.TextField()

    SEQS = (
        "SELECT metric_id, seq FROM metric_series"
        " WHERE account_seq = ? AND project_id = ? AND metric_id IN (SELECT value FROM json_each(?))"
    )
    ADD = "INSERT INTO metric_series (account_seq, project_id, metric_id) SELECT ?, ?, value FROM json_each(?)"
    AFTER = (
        "SELECT project_id, metric_id FROM metric_series"
        " WHERE account_seq = ? AND (project_id, metric_id) > (?, ?) ORDER BY project_id, metric_id LIMIT ?"
    )

    @classmethod
    def seqs(cls, account_seq: int, project_id: str, metric_ids: set[str]) -> dict[str, int]:
        """The seq of each of these metrics, which are added if they are new; call inside `transaction()`."""
        found = dict(run(cls.SEQS, (account_seq, project_id, as_json(list(metric_ids)))))
        if len(found) == len(metric_ids):
            return found
        run(cls.ADD, (account_seq, project_id, as_json([id_ for id_ in metric_ids if id_ not in found])))
        return cls.seqs(account_seq, project_id, metric_ids)

    @classmethod
    def page(cls, account_seq: int, after: tuple[str, str] = ("", "")) -> list[tuple[str, str]]:
        """The project and metric ids of the account after these, in order; at most one more than `MOST_SERIES`."""
        return list(run(cls.AFTER, (account_seq, *after, MOST_SERIES + 1)))


class Place(NamedTuple):
    """Where a value is: the metric it belongs to, and its seq."""

    project_id: str
    metric_id: str
    series_seq: int
    seq: int


class Metric(Model):
    """One value sent to the custom-metrics webhook."""

    seq = peewee.AutoField()
    series = peewee.ForeignKeyField(MetricSeries, column_name="series_seq")
    metric_name = peewee.TextField()
    value = peewee.FloatField()
    unit = peewee.TextField(null=True)
    timestamp = peewee.IntegerField()
    metadata = peewee.TextField(null=True)

    @classmethod
    def add_all(cls, account_seq: int, project_id: str, values: Sequence[MetricColumns]) -> None:
        """Add all of them or none; the values in one statement: at the end of each, another thread may run."""
        with transaction():
            seqs = MetricSeries.seqs(account_seq, project_id, {value[0] for value in values})
            columns = [
                column
                for metric_id, name, value, unit, timestamp, metadata in values
                for column in (seqs[metric_id], name, value, unit, timestamp, metadata)
            ]
            run(_insert(len(values)), columns)

    OF_SERIES = (
        "FROM metric WHERE series_seq = (SELECT seq FROM metric_series"
        " WHERE account_seq = :account AND project_id = :project AND metric_id = :metric)"
    )
    LATEST = (
        f"SELECT :metric, metric_name, value, unit, timestamp, metadata {OF_SERIES}"
        " AND timestamp BETWEEN :since AND :until ORDER BY timestamp DESC, seq DESC LIMIT 1"
    )
    BUCKETS = (
        "SELECT (timestamp - :since) / :width AS place, count(*), avg(value), avg(value / 1024) * 1024, min(value),"
        f" max(value) {OF_SERIES}"
        " AND timestamp BETWEEN :since AND :until GROUP BY place ORDER BY place"
    )
    SAMPLES = (  # the last value of each part: as many look-ups as parts, however many values there are
        f"SELECT place.value, (SELECT value {OF_SERIES} AND timestamp >= :since + place.value * :width"
        " AND timestamp < :since + (place.value + 1) * :width ORDER BY timestamp DESC LIMIT 1) AS last"
        " FROM json_each(:places) place WHERE last IS NOT NULL"
    )
    NEWEST = (
        f"SELECT timestamp, value, unit {OF_SERIES} AND timestamp BETWEEN :since AND :until"
        " ORDER BY timestamp DESC, seq DESC LIMIT :limit"
    )

    OF_ACCOUNT = "FROM metric_series s CROSS JOIN metric m ON m.series_seq = s.seq WHERE s.account_seq = :account"
    COUNT = f"SELECT count(*) {OF_ACCOUNT} AND m.timestamp >= :since"
    OLDEST = (
        f"SELECT m.timestamp, m.seq {OF_ACCOUNT} AND m.timestamp >= :since"
        " ORDER BY m.timestamp, m.seq LIMIT 1 OFFSET :place"
    )
    OLDER = (
        f"SELECT s.project_id, s.metric_id, s.seq, m.seq {OF_ACCOUNT}"
        " AND (s.project_id, s.metric_id) >= (:project, :metric)"
        " AND m.timestamp <= :before AND (m.timestamp < :before OR m.seq < :seq)"
        " ORDER BY s.project_id, s.metric_id LIMIT :limit"
    )
    OF_PROJECT = (
        f"SELECT s.project_id, s.metric_id, s.seq, m.seq {OF_ACCOUNT}"
        " AND s.project_id = coalesce(:project, s.project_id) AND s.metric_id = coalesce(:metric, s.metric_id)"
        " LIMIT :limit"
    )
    REMOVE = "DELETE FROM metric WHERE seq IN (SELECT value FROM json_each(?))"
    REMOVE_EMPTY = (
        "DELETE FROM metric_series WHERE seq IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM metric WHERE series_seq = metric_series.seq)"
    )

    @classmethod
    def latest(cls, account_seq: int, series: tuple[str, str], since: int, now: int) -> MetricValue | None:
        """The value with the latest time from `since` up to now; if all are in the future, the last of these."""
        row = run(cls.LATEST, _of(account_seq, series, since=since, until=now)).fetchone()
        row = row or run(cls.LATEST, _of(account_seq, series, since=now, until=AFTER_ALL)).fetchone()
        return MetricValue(*row) if row else None

    @classmethod
    def buckets(cls, account_seq: int, series: tuple[str, str], since: int, until: int, width: int) -> list[Bucket]:
        """The values from `since` to `until` in parts of `width` ms; parts without any are left out."""
        rows = run(cls.BUCKETS, _of(account_seq, series, since=since, until=until, width=width))
        return [_bucket(*row) for row in rows]

    @classmethod
    def samples(
        cls, account_seq: int, series: tuple[str, str], since: int, width: int, parts: int
    ) -> list[tuple[int, float]]:
        """The last value of each of so many parts of `width` ms that has any, with the part's number."""
        places = as_json(list(range(parts)))
        return list(run(cls.SAMPLES, _of(account_seq, series, since=since, width=width, places=places)))

    @classmethod
    def newest(
        cls, account_seq: int, series: tuple[str, str], since: int, until: int, limit: int
    ) -> list[tuple[int, float, str | None]]:
        """Time, value and unit of the newest values from `since` to `until`, at most `limit`, oldest first."""
        rows = run(cls.NEWEST, _of(account_seq, series, since=since, until=until, limit=limit)).fetchall()
        return rows[::-1]

    # --- removing ---

    @classmethod
    def count(cls, account_seq: int, since: int) -> int:
        """How many values the account has with a time from `since` on."""
        return int(run(cls.COUNT, {"account": account_seq, "since": since}).fetchone()[0])

    @classmethod
    def oldest(cls, account_seq: int, since: int, place: int) -> tuple[int, int]:
        """Time and seq of the value at that place (0 is the first) among the account's since `since`, by age."""
        row = run(cls.OLDEST, {"account": account_seq, "since": since, "place": place}).fetchone()
        return row[0], row[1]

    @classmethod
    def older(cls, account_seq: int, before: tuple[int, int], begin: tuple[str, str], limit: int) -> list[Place]:
        """The account's values older than `before` (time, seq), metric by metric, from the metric `begin` on."""
        values = _of(account_seq, begin, before=before[0], seq=before[1], limit=limit)
        return [Place(*row) for row in run(cls.OLDER, values)]

    @classmethod
    def of_project(cls, account_seq: int, project_id: str | None, metric_id: str | None, limit: int) -> list[Place]:
        """Some values of a metric, of a whole project (no `metric_id`), or of the account (nor `project_id`)."""
        values = {"account": account_seq, "project": project_id, "metric": metric_id, "limit": limit}
        return [Place(*row) for row in run(cls.OF_PROJECT, values)]

    @classmethod
    def remove(cls, places: Sequence[Place]) -> None:
        """Remove these values, and the metrics that have no value left; call inside `transaction()`."""
        run(cls.REMOVE, (as_json([place.seq for place in places]),))
        run(cls.REMOVE_EMPTY, (as_json(list({place.series_seq for place in places})),))


@cache
def _insert(number: int) -> str:
    """The statement that adds so many."""
    rows = ", ".join(["(?, ?, ?, ?, ?, ?)"] * number)
    return f"INSERT INTO metric (series_seq, metric_name, value, unit, timestamp, metadata) VALUES {rows}"


def _of(account_seq: int, series: tuple[str, str], **more: int | str) -> dict[str, int | str]:
    return {"account": account_seq, "project": series[0], "metric": series[1], **more}


def _bucket(place: int, values: int, mean: float | None, small_mean: float, least: float, most: float) -> Bucket:
    """With the mean of smaller values if the sum of the values themselves was beyond all numbers."""
    is_number = mean is not None and math.isfinite(mean)
    near = mean if mean is not None and is_number else small_mean
    return Bucket(place, values, min(max(near, least), most), least, most)  # that sum may be beyond them, too
