"""Metrics: the list by project, the page of a metric with its chart, table and rules, and its values as CSV."""

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Response, render_template

from core import local_time, metric_rules
from core.definitions import RULE
from core.durations import short
from core.plans import PLANS, history_begin
from dashboard import charts, page
from dashboard.charts import Point, Range
from dashboard.page import Page, Problem
from process import clock
from process.clock import DAY_MS
from store import custom_metrics
from store import metric_rules as stored_metric_rules
from store.custom_metrics import MAX_CHARTED, MAX_LISTED_SERIES, MetricValue
from store.metric_rules import Rule, firings_within
from web.context import current, request
from wire.errors import Refused

MAX_VALUES = 100_000  # of a download: the newest
VALUES_AT_ONCE = 500
SPARK_PARTS = 24
MOST_DAYS_OF_EXTENT = 7  # the least and greatest of a longer time take too long for each of a hundred metrics
MAX_FIRINGS = 100  # in the table: the newest
NEW_RULE = {"operator": ">", "for": "", "silent": "1d"}
RULE_FIELDS = ("operator", "value", "for", "silent")
EXPECTED = {"value": "Enter a number such as 90 or 0.5.", "silent": "Enter a time such as 30m, 24h or 7d."}
SAMPLE = (18.2, 18.0, 17.9, 18.4, 19.6, 20.4, 20.9, 21.3, 21.2, 21.4, 20.8, 20.9, 21.5)  # of a new account's page


class Series(NamedTuple):
    """A metric in the list: its ids, latest value, rules (firing ones first), the points of its chart, and extent."""

    project_id: str
    metric_id: str
    latest: MetricValue
    rules: list[tuple[Rule, str]]
    points: list[Point]
    extent: tuple[float, float] | None  # None: not known


def show_metrics() -> Page:
    """GET /app/metrics?range&project&metric: the list continues after the metric in the last two parameters."""
    chosen, now = _range(), clock.now_ms()
    found = custom_metrics.list_series(current().account.seq, *_asked())
    rules = defaultdict[tuple[str, str], list[Rule]](list)
    for rule in _firing_first(stored_metric_rules.of_account(current().account.seq)):
        rules[rule.project_id, rule.metric_id].append(rule)
    series = [one for ids in found[:MAX_LISTED_SERIES] if (one := _listed(ids, rules[ids], chosen, now))]
    projects = [(project, list(part)) for project, part in groupby(series, key=lambda one: one.project_id)]
    return render_template(
        "metrics.html",
        projects=projects,
        last=found[MAX_LISTED_SERIES - 1] if len(found) > MAX_LISTED_SERIES else None,
        sample=charts.points(list(enumerate(SAMPLE)), len(SAMPLE) - 1),
        ranges=_ranges(),
        chosen=chosen,
    )


def _listed(ids: tuple[str, str], rules: list[Rule], chosen: Range, now: int) -> Series | None:
    account_seq, latest, since = current().account.seq, _latest(ids, now), now - chosen.span + 1
    if latest is None:
        return None
    samples = custom_metrics.samples(account_seq, ids, since, chosen.span // SPARK_PARTS, SPARK_PARTS)
    extent = custom_metrics.extent(account_seq, ids, since, now) if chosen.days <= MOST_DAYS_OF_EXTENT else None
    texts = [(rule, metric_rules.rule_words(rule, latest.unit)) for rule in rules]
    return Series(*ids, latest, texts, charts.points(samples, SPARK_PARTS), extent)


def _latest(ids: tuple[str, str], now: int) -> MetricValue | None:
    """The newest value within the history that the plan keeps."""
    return custom_metrics.latest(current().account.seq, ids, history_begin(current().account.plan, now), now)


def _change(ids: tuple[str, str], latest: MetricValue | None, now: int) -> float | None:
    """By how much the value differs from the one a day ago; None if one of them is missing, or they are too large."""
    a_day_ago = now - DAY_MS
    before = custom_metrics.latest(current().account.seq, ids, a_day_ago - DAY_MS, a_day_ago)
    if not before or not latest or latest.timestamp <= a_day_ago:
        return None
    change = latest.value - before.value
    return change if math.isfinite(change) else None


def show_metric(problem: Problem | None = None, changed: Rule | None = None) -> str:
    """GET /app/metrics/one?project&metric&range&rule, with the form of a new rule or of the `rule`."""
    ids, chosen, now = (changed.project_id, changed.metric_id) if changed else _asked(), _range(), clock.now_ms()
    latest, rules = _latest(ids, now), _rules(ids)
    changed = changed or next((rule for rule in rules if rule.id == request.args.get("rule")), None)
    if latest is None and not rules:
        raise Refused(404, "There is no such metric.")
    return render_template(
        "metric.html",
        project_id=ids[0],
        metric_id=ids[1],
        latest=latest,
        change=_change(ids, latest, now),
        **_course(ids, rules, chosen, now, latest.unit if latest else ""),
        most_firings=MAX_FIRINGS,
        most_charted=MAX_CHARTED,
        most_values=MAX_VALUES,
        plan=PLANS[current().account.plan],
        ranges=_ranges(),
        chosen=chosen,
        changed=changed,
        typed={**_texts(changed, latest), **request.form.to_dict()},
        problem=problem,
    )


def _texts(rule: Rule | None, latest: MetricValue | None) -> dict[str, str]:
    """The form of a rule as its owner would write it, or that of a new one."""
    if rule is None:
        return {**NEW_RULE, "value": _exact(latest.value) if latest else ""}
    lasting = short(rule.for_s) if rule.for_s else ""
    if rule.threshold is None:
        return {"silent": lasting}
    return {"operator": rule.operator, "value": _exact(rule.threshold), "for": lasting}


def _exact(number: float) -> str:
    """All digits, for = and ≠."""
    return repr(number).removesuffix(".0")


def _course(ids: tuple[str, str], rules: list[Rule], chosen: Range, now: int, unit: str | None) -> dict[str, Any]:
    """The page's values of the range: the table, the picture, the browser's drawing, the firings of rules."""
    account = current().account
    since = chosen.begin(account.time_zone, now)
    buckets = custom_metrics.buckets(account.seq, ids, since, now, chosen.width, MAX_CHARTED)
    found, texts = charts.runs(buckets), {rule.seq: metric_rules.rule_words(rule, unit) for rule in rules}
    means = charts.points([(one.place, one.mean) for one in buckets], chosen.span // chosen.width)
    firings = firings_within(list(texts), since, now)
    around = {
        "since": since,
        "until": now,
        "width": chosen.width,
        "zone": account.time_zone,
        "rules": [(one.threshold, texts[one.seq]) for one in rules if one.threshold is not None],
        "firings": charts.tints([one for _, one in firings], since, now),
    }
    return {
        "drawing": {**charts.drawing(found, since), **around} if charts.is_drawable(buckets) else None,
        "lines": charts.split(means, found),
        "buckets": [(since + bucket.place * chosen.width, bucket) for bucket in buckets],
        "least": min((bucket.least for bucket in buckets), default=0.0),
        "most": max((bucket.most for bucket in buckets), default=0.0),
        "mean": charts.mean(buckets),
        "is_cut": sum(bucket.values for bucket in buckets) == MAX_CHARTED,
        "rules": [(rule, texts[rule.seq]) for rule in rules],
        "firings": [(texts[seq], firing) for seq, firing in firings],
    }


def _rules(ids: tuple[str, str]) -> list[Rule]:
    """The metric's rules, firing ones first."""
    return _firing_first(stored_metric_rules.of_metric(current().account.seq, *ids))


def _firing_first(rules: list[Rule]) -> list[Rule]:
    return sorted(rules, key=lambda rule: rule.state != metric_rules.FIRING)


def download_metric() -> Response:
    """GET /app/metrics/one.csv?project&metric&range."""
    ids, chosen, now = _asked(), _range(), clock.now_ms()
    if _latest(ids, now) is None:
        raise Refused(404, "There is no such metric.")
    pieces = custom_metrics.in_pieces(current().account.seq, ids, now - chosen.span, now, MAX_VALUES, VALUES_AT_ONCE)
    return page.csv_file(
        "metric.csv",
        ("time", "value", "unit"),
        ([(local_time.utc_time(at), value, unit or "") for at, value, unit in piece] for piece in pieces),
    )


def _ranges() -> dict[str, Range]:
    """The ranges within the plan's history, by name."""
    kept_days = PLANS[current().account.plan].history_days
    return {one.name: one for one in charts.RANGES if one.days <= kept_days}


def _range() -> Range:
    found = _ranges()
    return found.get(request.args.get("range", ""), found["24 h"])


def _asked() -> tuple[str, str]:
    """The ids (project, metric) in the address."""
    return request.args.get("project", ""), request.args.get("metric", "")


# --- the forms of a rule ------------------------------------------------------------------------------------


def create_rule() -> Page:
    """POST /app/metrics/one?project&metric&range: operator, value and for, or silent."""
    return _with_condition(partial(metric_rules.create_rule, current().account, *_asked()), "Rule added")


def change_rule(rule_id: str) -> Page:
    """POST /app/metrics/rules/{id}?project&metric&range: the same."""
    account_seq = current().account.seq
    rule = metric_rules.find_rule(account_seq, rule_id)
    return _with_condition(partial(metric_rules.change_rule, account_seq, rule_id), "Rule saved", rule)


def _with_condition(act: Callable[..., Rule], done: str, changed: Rule | None = None) -> Page:
    """Create or change a rule with the condition that the form has, and go back to its metric."""
    typed = {name: request.form[name].strip() for name in RULE_FIELDS if name in request.form}
    if "silent" in typed:
        condition, wrong = f"silent {typed['silent']}", {"rule": "silent", "duration": "silent"}
    else:
        condition = f"{typed.get('operator', '')} {typed.get('value', '')}"
        wrong = {"rule": "value", "duration": "for"}
    try:
        made = act(condition, typed.get("for") or None, clock.now_ms())
    except Refused as refused:
        problem = Problem.of(refused)
        field = wrong.get(problem.field, "")
        message = EXPECTED[field] if problem.field == "rule" else problem.message
        return show_metric(Problem(message, field), changed), 422
    return _back_to((made.project_id, made.metric_id), f"{done}: {metric_rules.rule_text(made)}.")


def delete_rule(rule_id: str) -> Page:
    """POST /app/metrics/rules/{id}/delete."""
    deleted = RULE.delete(current().account.seq, rule_id)
    message = f"Rule deleted: {metric_rules.rule_text(deleted)}. Its notifications stay in the history."
    return _back_to((deleted.project_id, deleted.metric_id), message)


def _back_to(ids: tuple[str, str], message: str) -> Page:
    """Redirect to the metric's page, or to all rules if the metric has neither values nor rules left."""
    query = urlencode({"project": ids[0], "metric": ids[1], "range": request.args.get("range", "")})
    has_page = _latest(ids, clock.now_ms()) is not None or _rules(ids)
    return page.back_to(f"/app/metrics/one?{query}" if has_page else "/app/watches", message)
