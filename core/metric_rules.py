"""Rules on metrics: creating and changing them, and their text. `core/firing.py` changes their states.

Must not know requests.
"""

import math
import re
from typing import Any

from core.durations import in_words, seconds_of, short
from models import Account
from store import metric_rules as stored
from store.database import transaction
from store.metric_rules import Rule
from wire.errors import Refused, existing
from wire.validation import checked_name

MAX_RULES = 100  # of an account
MIN_FOR_S, MAX_FOR_S = 1, 31 * 86_400
MIN_SILENT_S, MAX_SILENT_S = 60, 366 * 86_400
SILENT = "silent"
WORDS = {">": "above", ">=": "at least", "<": "below", "<=": "at most", "=": "equal to", "!=": "not"}
OK, FIRING = "ok", "firing"
CONDITION = re.compile(r"(>=|<=|!=|>|<|=) *([^ ].*)")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
MAX_SHOWN = 100  # characters of a refused text


def create_rule(
    account: Account, project: str, metric: str, condition_text: str, for_text: str | None, now: int
) -> Rule:
    """A new rule, such as `> 90` with `5m` or None, or `silent 24h`, on a metric, which need not have values yet.

    `Refused` (400) names the wrong field: project, metric, rule or duration.
    """
    values = {"project_id": checked_name(project, "project"), "metric_id": checked_name(metric, "metric")}
    values |= _begun(_condition(condition_text.strip(), for_text), now)
    with transaction(account.seq):
        if stored.count(account.seq) >= MAX_RULES:
            raise Refused(400, f"An account can have at most {MAX_RULES} rules. Delete one first.")
        return find_rule(account.seq, stored.add(account.seq, values, now))


def find_rule(account_seq: int, id_: str) -> Rule:
    """The account's rule with that id; `Refused` (404) when it has none."""
    return existing(stored.find(account_seq, id_))


def change_rule(
    account_seq: int, id_: str, condition_text: str, for_text: str | None, now: int, on: tuple[str, str] | None = None
) -> Rule:
    """Give the rule this condition, written as for `create_rule`, and return it; `on` is its new project and metric.

    If any of them changes, the rule is as a new one: it does not fire, and forgets when it did. `Refused` (404)
    without such a rule, (400) for a wrong condition.
    """
    values = _condition(condition_text.strip(), for_text)
    if on:
        values |= {"project_id": checked_name(on[0], "project"), "metric_id": checked_name(on[1], "metric")}
    with transaction(account_seq):
        rule = find_rule(account_seq, id_)
        if any(getattr(rule, column) != value for column, value in values.items()):
            stored.replace_condition(rule, _begun(values, now))
        return find_rule(account_seq, id_)


def firing_since(rule: Rule) -> int | None:
    """When the rule began to fire; None if it does not."""
    return rule.changed_at if rule.state == FIRING else None


def rule_text(rule: Rule) -> str:
    """The rule as its owner wrote it: `> 90 for 5m`, `silent 24h`."""
    lasting = f" for {short(rule.for_s)}" if rule.for_s and rule.operator != SILENT else ""
    return f"{condition_text(rule)}{lasting}"


def condition_text(rule: Rule) -> str:
    """The rule's condition as `create_rule` takes it: `> 90`, `silent 24h`."""
    return _written(rule.operator, rule.threshold, rule.for_s)


def as_written(text: str) -> str:
    """A condition in the words of `condition_text`; `Refused` (400) if it is none."""
    return _written(**_condition(text.strip(), None))


def _written(operator: str, threshold: float | None, for_s: int) -> str:
    if threshold is None:
        return f"{operator} {short(for_s)}"
    text = number_text(threshold)
    return f"{operator} {text if float(text) == threshold else repr(threshold)}"


def rule_words(rule: Rule, unit: str | None) -> str:
    """The rule in words: "above 90 % for 5 min", "nothing for 1 day"."""
    if rule.operator == SILENT:
        return f"nothing for {in_words(rule.for_s)}"
    lasting = f" for {in_words(rule.for_s)}" if rule.for_s else ""
    return f"{WORDS[rule.operator]} {measured_text(rule.threshold or 0.0, unit)}{lasting}"


def measured_text(value: float, unit: str | None) -> str:
    """A value with its unit, if it has one: `95 %`."""
    return f"{number_text(value)} {(unit or '').strip()}".strip()


def number_text(number: float) -> str:
    """A number in up to 15 digits, without a double's rounding error and without the `.0` of a whole number."""
    return f"{number:.15g}"


def metric_title(rule: Rule) -> str:
    """The name of the rule's metric as last sent, or its id."""
    return rule.metric_name or rule.metric_id


def _begun(values: dict[str, Any], now: int) -> dict[str, Any]:
    """The columns of a rule that begins with these: it looks at the values that are there, or waits."""
    is_silent = values["operator"] == SILENT
    first_look = now + values["for_s"] * 1000 if is_silent else now
    return {**values, "state": OK, "look_at": first_look, "fires_at": first_look if is_silent else None}


def _condition(text: str, for_text: str | None) -> dict[str, Any]:
    """The columns of the condition."""
    word, _, rest = text.partition(" ")
    if word == SILENT and rest.strip():
        if for_text is not None:
            raise Refused(400, 'A silent rule says how long itself, as in "silent 24h".', field="duration")
        for_s = seconds_of(rest, "duration", MIN_SILENT_S, MAX_SILENT_S)
        return {"operator": SILENT, "threshold": None, "for_s": for_s}
    written = CONDITION.fullmatch(text)
    if not written:
        shown = text[:MAX_SHOWN]
        examples = '"> 90", "< 10", "= 0", "!= 0" or "silent 24h"'
        raise Refused(400, f'The rule must be written like {examples}, not like "{shown}".', field="rule")
    for_s = 0 if for_text is None else seconds_of(for_text, "duration", MIN_FOR_S, MAX_FOR_S)
    return {"operator": written[1], "threshold": _number(written[2]), "for_s": for_s}


def _number(text: str) -> float:
    number = float(text) if NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        shown = text[:MAX_SHOWN]
        raise Refused(400, f'The rule must end with a number such as 90 or 0.5, not "{shown}".', field="rule")
    return number + 0.0  # no minus before a zero
