"""The states of rules on metrics: changes by values and by time, and the notifications about them.

A rule is judged by the value with the newest timestamp that is not in the future: in the transaction that stores a
value, and by a background thread when the time alone decides. Each change of state is one transaction with its
notification, and happens only if the rule is unchanged since it was read. Must not know requests.
"""

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from core import durations, maintenance, storage
from core.backoff import Backoff
from core.metric_rules import FIRING, OK, SILENT, measured_text, metric_title, rule_text
from process import clock
from process.faults import log_fault
from store import copies, custom_metrics, metric_rules, notification_days
from store.custom_metrics import MetricColumns, TimedValue
from store.database import DatabaseError, transaction
from store.metric_rules import Changes, Rule, Watched
from wire.notification import HIGH_PRIORITY, LOW_PRIORITY, Content

OPERATORS: dict[str, Callable[[float, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
RUN_VALUES = 100  # the newest, of which a rule that must hold for a while may begin to hold at the first
UNJUDGED = "A rule on a metric could not be judged"
backoff = Backoff(UNJUDGED)


# --- values -------------------------------------------------------------------------------------------------


def store_values(
    account_seq: int, project_id: str, values: Sequence[MetricColumns], has_followers: bool = True
) -> None:
    """Store values, and judge the rules on their metrics; `has_followers` if somebody may follow one of these."""
    storage.check(account_seq, notification_days.stored_bytes(account_seq))
    with transaction(*(copies.accounts_of(account_seq) if has_followers else [account_seq])):
        custom_metrics.add_all(account_seq, project_id, values)
        if rules := metric_rules.watched(account_seq, project_id):
            _follow_values(account_seq, rules, values, clock.now_ms())


def _follow_values(account_seq: int, rules: list[Watched], values: Sequence[MetricColumns], now: int) -> None:
    """Judge the rules that these values may change, and restart the wait of silent rules."""
    of_metric = defaultdict[str, list[MetricColumns]](list)
    for value in values:
        of_metric[value[0]].append(value)
    arrived = [rule for rule in rules if rule.metric_id in of_metric]
    expecting = [rule.seq for rule in arrived if rule.operator == SILENT and not rule.is_firing]
    if expecting:
        metric_rules.expect(now, expecting)
    for rule in arrived:
        if rule.seq not in expecting and any(_may_change(rule, value) for value in of_metric[rule.metric_id]):
            _judge_on_arrival(account_seq, rule.seq, now)


def _may_change(rule: Watched, value: MetricColumns) -> bool:
    """Whether a value of its metric may change the rule, as few do: judging it takes several queries."""
    if rule.operator == SILENT:
        return True
    _, _, number, _, timestamp, _ = value
    if OPERATORS[rule.operator](number, rule.threshold) != (rule.holds_since is not None):
        return True
    if rule.holds_since is None or rule.is_firing:
        return False
    return not rule.holds_since <= timestamp < rule.holds_since + rule.for_s * 1000


def _judge_on_arrival(account_seq: int, seq: int, now: int) -> None:
    """Judge a rule. A fault refuses no values: a background thread tries again."""
    try:
        with transaction(account_seq):
            if rule := metric_rules.one(seq):
                _judge(rule, now, has_arrived=True)
    except DatabaseError:  # the values cannot be stored either
        raise
    except Exception as error:
        log_fault(UNJUDGED, error)
        metric_rules.set_look_at(now, seq)


# --- the time -----------------------------------------------------------------------------------------------


def look_at_due(now: int) -> bool:
    """Judge the rules whose time has come; returns whether more is left."""
    return backoff.each(now, metric_rules.due, _judge_due)


def _judge_due(seq: int, now: int) -> None:
    rule = metric_rules.one(seq)
    if rule and rule.look_at is not None and rule.look_at <= now:  # no other process was faster
        _judge(rule, now, has_arrived=False)


# --- states -------------------------------------------------------------------------------------------------


def _judge(rule: Rule, now: int, has_arrived: bool) -> None:
    """Judge a rule after a value of its metric has arrived, or because its time has come."""
    if rule.operator == SILENT:
        newest, changes = None, _judge_silence(rule, now, has_arrived)
    else:
        newest, changes = _judge_values(rule, now, has_arrived)
    if changes == rule.changes or not metric_rules.change(rule, changes, now):
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
    """The newest value, and the changes by it or by the time since.

    When a value has arrived, only values count: the length of a downtime may still be unknown.
    """
    series, wanted = (rule.project_id, rule.metric_id), RUN_VALUES if rule.for_s else 1
    values = custom_metrics.newest(rule.account_seq, series, 0, now, wanted)
    future_at = custom_metrics.next_at(rule.account_seq, series, now)
    if not values:  # none has come, or they were removed
        return None, rule.changes._replace(look_at=future_at)
    newest, since = values[-1], _holds_since(rule, values)
    if since is None:
        return newest, Changes(OK, None, None, future_at)
    for_ms = rule.for_s * 1000
    fires_at = since + for_ms
    if rule.fires_at is not None and rule.holds_since is not None and since <= rule.holds_since:
        fires_at = rule.fires_at + since - rule.holds_since  # with the downtime that was added
    has_lasted = newest.timestamp - since >= for_ms or (not has_arrived and fires_at <= now)
    if rule.state == FIRING or has_lasted:
        return newest, Changes(FIRING, since, None, future_at)
    return newest, Changes(OK, since, fires_at, fires_at if future_at is None else min(fires_at, future_at))


def _holds_since(rule: Rule, values: list[TimedValue]) -> int | None:
    """The timestamp of the first value of the current run at which it holds; None if it does not hold now."""
    compare = OPERATORS[rule.operator]
    holding = list(takewhile(lambda one: compare(one.value, rule.threshold), reversed(values)))
    if not holding:
        return None
    first = holding[-1].timestamp
    if rule.holds_since is None or (rule.state == OK and (len(holding) < len(values) or first < rule.holds_since)):
        return first
    return rule.holds_since


def _tell(rule: Rule, state: str, newest: TimedValue | None, now: int) -> None:
    name, said = metric_title(rule), f"Rule: {rule_text(rule)}. Project: {rule.project_id}."
    measured = "" if newest is None else measured_text(newest.value, newest.unit)
    if state == FIRING:
        metric_rules.begin_firing(rule.seq, now)
        content = Content(f"{name} is {measured or 'silent'}", said, priority=HIGH_PRIORITY)
    else:
        metric_rules.end_firing(now, rule.seq)
        lasted = durations.short(max(0, now - (rule.changed_at or now)) // 1000, 2)
        title = f"{name} is ok: {measured}" if measured else f"{name} is sent again"
        content = Content(title, f"{said} It fired for {lasted}.", priority=LOW_PRIORITY)
    maintenance.tell(rule, state == FIRING, content)
