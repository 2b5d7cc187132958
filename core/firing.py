"""What values and the time do to rules on metrics, and what the owner is told of it (CONTRACT 10).

A rule is judged by the value with the newest timestamp that is not in the future: in the transaction that stores a
value, and by the worker when the time alone decides. Each change of state is one transaction with the notification
that tells of it, and happens only if the rule is still what it was. Must not know requests.
"""

import logging
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from core import delivery, durations
from core.metric_rules import FIRING, OK, SILENT, metric_title, number_text, rule_text
from process import clock
from store.custom_metrics import Metric, MetricColumns, TimedValue
from store.database import AFTER_ALL, transaction
from store.metric_rules import Changes, MetricRule, Rule, RuleFiring, Watched
from wire.errors import log_fault
from wire.notification import HIGH_PRIORITY, LOW_PRIORITY, Content

OPERATORS: dict[str, Callable[[float, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
OPPOSITES = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "=": "!=", "!=": "="}
RUN_VALUES = 100  # the newest, of which a rule that must hold for a while may begin to hold at the first
CHECKED_AT_ONCE = 500
MAX_KEPT_ACCOUNTS = 500  # whose rules are kept in memory

log = logging.getLogger("pocketbell")


# --- values -------------------------------------------------------------------------------------------------


class Calm(NamedTuple):
    """The rules on a metric, and the values that change none of them: from `least` to `most`, but not `excluded`.

    Of these, one with a timestamp from `until` on fires a rule that has held for so long then.
    """

    least: float = -math.inf
    most: float = math.inf
    excluded: tuple[float, ...] = ()
    until: int = AFTER_ALL
    judged: tuple[int, ...] = ()  # the seqs of those that any other value may change
    expecting: tuple[int, ...] = ()  # those that wait for a value in silence
    firing: tuple[int, ...] = ()  # those that any value ends


_calm: dict[int, tuple[int, dict[str, dict[str, Calm]]]] = {}  # by account: the version of its rules, and projects


def store_values(account_seq: int, project_id: str, values: Sequence[MetricColumns]) -> None:
    """Store values that have arrived, and let them change the states of the rules on their metrics."""
    with transaction(account_seq):
        Metric.add_all(account_seq, project_id, values)
        version = MetricRule.version(account_seq)
        if version is not None:
            of_project = _calm_of(account_seq, version).get(project_id)
            if of_project:
                _follow_values(of_project, values, clock.now_ms())


def _calm_of(account_seq: int, version: int) -> dict[str, dict[str, Calm]]:
    """By project, for each metric with rules of the account, what does not change them.

    It is kept: to read 100 rules would take a tenth of the time that 100 values take.
    """
    kept = _calm.get(account_seq)
    if kept and kept[0] == version:
        return kept[1]
    calm = defaultdict[str, dict[str, Calm]](dict)
    for rule in MetricRule.watched(account_seq):
        of_project = calm[rule.project_id]
        of_project[rule.metric_id] = _calmed(of_project.get(rule.metric_id, Calm()), rule)
    if len(_calm) >= MAX_KEPT_ACCOUNTS:
        _calm.clear()
    _calm[account_seq] = version, calm
    return calm


def _calmed(calm: Calm, rule: Watched) -> Calm:
    """The rule added to those of its metric."""
    if rule.operator == SILENT:
        if rule.is_firing:
            return calm._replace(firing=(*calm.firing, rule.seq))
        return calm._replace(expecting=(*calm.expecting, rule.seq))
    calm = calm._replace(judged=(*calm.judged, rule.seq))
    if rule.holds_since is not None and not rule.is_firing:
        calm = calm._replace(until=min(calm.until, rule.holds_since + rule.for_s * 1000))
    limit = rule.threshold or 0.0
    holding = OPPOSITES[rule.operator] if rule.holds_since is None else rule.operator
    least, most = {
        ">": (math.nextafter(limit, math.inf), math.inf),
        ">=": (limit, math.inf),
        "<": (-math.inf, math.nextafter(limit, -math.inf)),
        "<=": (-math.inf, limit),
        "=": (limit, limit),
        "!=": (-math.inf, math.inf),
    }[holding]
    excluded = (limit,) if holding == "!=" else ()
    return calm._replace(least=max(calm.least, least), most=min(calm.most, most), excluded=calm.excluded + excluded)


def _follow_values(calm: dict[str, Calm], values: Sequence[MetricColumns], now: int) -> None:
    """Judge the rules that these values may change; only they are read."""
    arrived, changed = dict[str, Calm](), set[int]()
    for metric_id, _, value, _, timestamp, _ in values:
        rules = calm.get(metric_id)
        if rules is None:
            continue
        arrived[metric_id] = rules
        if not rules.least <= value <= rules.most or value in rules.excluded or timestamp >= rules.until:
            changed.update(rules.judged)  # of the future, too: then `look_at` is that time
    expecting = [seq for rules in arrived.values() for seq in rules.expecting]
    if expecting:
        MetricRule.expect(expecting, now)
    changed.update(seq for rules in arrived.values() for seq in rules.firing)
    for seq in sorted(changed):
        rule = MetricRule.one(seq)
        if rule:
            _judge(rule, now, has_arrived=True)


# --- the time -----------------------------------------------------------------------------------------------


def look_at_due(now: int) -> bool:
    """Judge the rules whose time has come; returns whether more is left."""
    due = MetricRule.due(now, CHECKED_AT_ONCE)
    for account_seq, seq in due:
        try:
            with transaction(account_seq):
                rule = MetricRule.one(seq)
                if rule and rule.look_at is not None and rule.look_at <= now:  # no other process was faster
                    _judge(rule, now, has_arrived=False)
        except Exception as error:  # the others must not wait for this one
            log_fault(log, "A rule on a metric could not be judged", error)
    return len(due) == CHECKED_AT_ONCE


# --- states -------------------------------------------------------------------------------------------------


def _judge(rule: Rule, now: int, has_arrived: bool) -> None:
    """Look at a rule after a value of its metric has arrived, or because its time has come."""
    if rule.operator == SILENT:
        newest, changes = None, _judge_silence(rule, now, has_arrived)
    else:
        newest, changes = _judge_values(rule, now, has_arrived)
    if changes == rule.changes or not MetricRule.change(rule, changes, now):
        return
    if changes.state != rule.state:
        _tell(rule, changes.state, newest, now)


def _judge_silence(rule: Rule, now: int, has_arrived: bool) -> Changes:
    if has_arrived:
        fires_at = now + rule.for_s * 1000
        return Changes(OK, None, fires_at, fires_at)
    if rule.fires_at is not None and rule.fires_at <= now:
        return Changes(FIRING, None, None, None)
    return rule.changes._replace(look_at=rule.fires_at)


def _judge_values(rule: Rule, now: int, has_arrived: bool) -> tuple[TimedValue | None, Changes]:
    """The newest value and what follows from it, or from the time since.

    When a value has arrived, the time is not asked: it may be unknown still for how long the service was away.
    """
    series, wanted = (rule.project_id, rule.metric_id), RUN_VALUES if rule.for_s else 1
    values = Metric.newest(rule.account_seq, series, 0, now, wanted)
    future_at = Metric.next_at(rule.account_seq, series, now)
    if not values:  # not yet, or they were removed: nothing is known
        return None, rule.changes._replace(look_at=future_at)
    newest, since = values[-1], _holds_since(rule, values)
    if since is None:
        return newest, Changes(OK, None, None, future_at)
    for_ms = rule.for_s * 1000
    is_kept = since == rule.holds_since and rule.fires_at is not None
    fires_at = rule.fires_at if is_kept and rule.fires_at is not None else since + for_ms
    has_lasted = newest.timestamp - since >= for_ms or (not has_arrived and fires_at <= now)
    if rule.state == FIRING or has_lasted:
        return newest, Changes(FIRING, since, None, future_at)
    return newest, Changes(OK, since, fires_at, fires_at if future_at is None else min(fires_at, future_at))


def _holds_since(rule: Rule, values: list[TimedValue]) -> int | None:
    """The timestamp of the value since which it holds at every value; None if it does not at the newest."""
    compare = OPERATORS[rule.operator]
    holding = list(takewhile(lambda one: compare(one.value, rule.threshold), reversed(values)))
    if not holding:
        return None
    if rule.holds_since is None or (rule.state == OK and len(holding) < len(values)):
        return holding[-1].timestamp
    return rule.holds_since


def _tell(rule: Rule, state: str, newest: TimedValue | None, now: int) -> None:
    name, said = metric_title(rule), f"Rule: {rule_text(rule)}. Project: {rule.project_id}."
    measured = "" if newest is None else f"{number_text(newest.value)} {(newest.unit or '').strip()}".strip()
    if state == FIRING:
        RuleFiring.begin(rule.seq, now)
        content = Content(f"{name} is {measured or 'silent'}", said, priority=HIGH_PRIORITY)
    else:
        RuleFiring.end(rule.seq, now)
        lasted = durations.near(max(0, now - (rule.changed_at or now)) // 1000)
        title = f"{name} is ok: {measured}" if measured else f"{name} is sent again"
        content = Content(title, f"{said} It fired for {lasted}.", priority=LOW_PRIORITY)
    delivery.tell(rule, content._replace(tag=f"rule {rule.id}"), now)
