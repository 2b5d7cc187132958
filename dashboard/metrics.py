"""Metrics: the list by project, the page of one with its chart, table and rules, and its values as CSV."""

import threading
from itertools import groupby
from typing import NamedTuple

from flask import Response, render_template, request

from core import local_time, metric_rules
from core.plans import history_begin
from dashboard import page
from dashboard.page import Page, Problem
from process import clock
from process.clock import DAY_MS
from store.custom_metrics import MAX_LISTED_SERIES, Metric, MetricSeries, MetricValue
from store.metric_rules import Firing, MetricRule, Rule, RuleFiring
from web import guards
from web.context import current
from wire.errors import Refused

MAX_VALUES = 100_000  # of one download: the newest
SPARK_PARTS = 24
CHART_WIDTH, CHART_HEIGHT = 600, 160  # as in macros.html
LEAST_MARK = 4  # of the chart's width: a firing of a second is seen, too
MAX_FIRINGS = 100  # in the table: the newest
NEW_RULE = {"operator": ">", "for": "", "silent": "1d"}

Point = tuple[float, float]
_download = threading.Lock()


class Range(NamedTuple):
    """A time range that ends now. `span` is its length and `width` that of one bucket of the chart, both in ms."""

    name: str
    span: int
    width: int


RANGES = {
    "24 h": Range("24 h", DAY_MS, DAY_MS // 48),
    "7 d": Range("7 d", 7 * DAY_MS, DAY_MS // 8),
    "30 d": Range("30 d", 30 * DAY_MS, DAY_MS // 2),
}


class Series(NamedTuple):
    """A metric in the list: its ids, its latest value, and the points of its chart."""

    project_id: str
    metric_id: str
    latest: MetricValue
    points: list[Point]


def show_metrics() -> Page:
    """GET /app/metrics?range&project&metric: the list continues after the metric in the last two parameters."""
    chosen, now = _range(), clock.now_ms()
    found = MetricSeries.page(current().account.seq, asked())
    series = [one for ids in found[:MAX_LISTED_SERIES] if (one := _listed(ids, chosen, now))]
    projects = [(project, list(part)) for project, part in groupby(series, key=lambda one: one.project_id)]
    return render_template(
        "metrics.html",
        projects=projects,
        last=found[MAX_LISTED_SERIES - 1] if len(found) > MAX_LISTED_SERIES else None,
        ranges=RANGES,
        chosen=chosen,
        address=guards.origin(),
    )


def _listed(ids: tuple[str, str], chosen: Range, now: int) -> Series | None:
    latest, width = _latest(ids, now), chosen.span // SPARK_PARTS
    if latest is None:
        return None
    samples = Metric.samples(current().account.seq, ids, now - chosen.span + 1, width, SPARK_PARTS)
    return Series(*ids, latest, _points(samples, SPARK_PARTS))


def _latest(ids: tuple[str, str], now: int) -> MetricValue | None:
    """The newest value within the history that the plan keeps."""
    return Metric.latest(current().account.seq, ids, history_begin(current().account.plan, now), now)


def show_metric() -> Page:
    """GET /app/metrics/one?project&metric&range."""
    return metric_page(NEW_RULE)


def has_page(ids: tuple[str, str]) -> bool:
    """Whether the metric has a page: it has values, or rules, which stay when the values are gone."""
    return _latest(ids, clock.now_ms()) is not None or bool(_rules(ids))


def metric_page(typed: dict[str, str], problem: Problem | None = None) -> str:
    """The page of the metric in the address, with what was `typed` for a new rule; `Refused` (404) if it has none."""
    ids, chosen, now = asked(), _range(), clock.now_ms()
    latest, since, rules = _latest(ids, now), now - chosen.span, _rules(ids)
    if latest is None and not rules:
        raise Refused(404, "There is no such metric.")
    buckets = Metric.buckets(current().account.seq, ids, since, now, chosen.width)
    means = [(bucket.place, bucket.mean) for bucket in buckets]
    texts = {rule.seq: metric_rules.rule_text(rule) for rule in rules}
    firings = RuleFiring.within(list(texts), since, now)
    return render_template(
        "metric.html",
        project_id=ids[0],
        metric_id=ids[1],
        latest=latest,
        points=_points(means, chosen.span // chosen.width),
        buckets=[(since + bucket.place * chosen.width, bucket) for bucket in buckets],
        least=min((bucket.least for bucket in buckets), default=0.0),
        most=max((bucket.most for bucket in buckets), default=0.0),
        rules=[(rule, texts[rule.seq]) for rule in rules],
        firings=[(texts[seq], firing) for seq, firing in firings],
        most_firings=MAX_FIRINGS,
        marks=_marks([firing for _, firing in firings], since, chosen.span),
        ranges=RANGES,
        chosen=chosen,
        since=since,
        most_values=MAX_VALUES,
        typed={"value": repr(latest.value).removesuffix(".0") if latest else "", **typed},  # exact, for = and ≠
        problem=problem,
    )


def _rules(ids: tuple[str, str]) -> list[Rule]:
    """The metric's rules, those that are firing first."""
    return sorted(
        MetricRule.of_metric(current().account.seq, *ids), key=lambda rule: rule.state != metric_rules.FIRING
    )


def download_metric() -> Response:
    """GET /app/metrics/one.csv?project&metric&range: one download at a time, since each needs up to 30 MB."""
    with page.alone(_download):
        return _csv()


def _csv() -> Response:
    ids, chosen, now = asked(), _range(), clock.now_ms()
    if _latest(ids, now) is None:
        raise Refused(404, "There is no such metric.")
    newest = Metric.newest(current().account.seq, ids, now - chosen.span, now, MAX_VALUES)
    return page.csv_file(
        "metric.csv",
        ("time", "value", "unit"),
        ((local_time.utc_time(at), value, unit or "") for at, value, unit in newest),
    )


def _range() -> Range:
    return RANGES.get(request.args.get("range", ""), RANGES["24 h"])


def asked() -> tuple[str, str]:
    """The ids (project, metric) in the address."""
    return request.args.get("project", ""), request.args.get("metric", "")


def _points(values: list[tuple[int, float]], parts: int) -> list[Point]:
    """Scale (bucket, value) pairs to points of a chart."""
    halves = [value / 2 for _, value in values]  # high - low of two doubles can overflow; of their halves it cannot
    low, high = min(halves, default=0.0), max(halves, default=0.0)
    heights = [(half - low) / (high - low) if high > low else 0.5 for half in halves]
    return [
        (round(place * CHART_WIDTH / parts, 1), round(4 + (1 - height) * (CHART_HEIGHT - 8), 1))
        for (place, _), height in zip(values, heights, strict=True)
    ]


def _marks(firings: list[Firing], since: int, span: int) -> list[Point]:
    """Begin and end, in the chart's width, of each part of it in which a rule fired; parts that touch are one."""
    marks = list[Point]()
    for began_at, ended_at in firings:  # the oldest first
        begin, end = (
            round(min(max(0, at - since), span) * CHART_WIDTH / span, 1)
            for at in (began_at, since + span if ended_at is None else ended_at)
        )
        begin = min(begin, CHART_WIDTH - LEAST_MARK)
        end = max(end, begin + LEAST_MARK)
        if marks and begin <= marks[-1][1]:
            begin, end = marks[-1][0], max(end, marks.pop()[1])
        marks.append((begin, end))
    return marks
