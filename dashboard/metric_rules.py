"""Rules on a metric: the forms on its page that add, change and delete one."""

from collections.abc import Callable
from urllib.parse import urlencode

from core import metric_rules
from core.definitions import RULE
from dashboard import page
from dashboard.metrics import asked, has_page, show_metric
from dashboard.page import Page, Problem
from process import clock
from store.metric_rules import Rule
from web.context import current, request
from wire.errors import Refused

FIELDS = ("operator", "value", "for", "silent")
EXPECTED = {"value": "Enter a number such as 90 or 0.5.", "silent": "Enter a time such as 30m, 24h or 7d."}


def create_rule() -> Page:
    """POST /app/metrics/one?project&metric&range: operator, value and for, or silent."""
    return _with_condition(
        lambda condition, lasting: metric_rules.create_rule(
            current().account, *asked(), condition, lasting, clock.now_ms()
        ),
        "Rule added",
    )


def change_rule(rule_id: str) -> Page:
    """POST /app/metrics/rules/{id}?project&metric&range: the same."""
    account_seq = current().account.seq
    rule = metric_rules.find_rule(account_seq, rule_id)
    return _with_condition(
        lambda condition, lasting: metric_rules.change_rule(account_seq, rule_id, condition, lasting, clock.now_ms()),
        "Rule saved",
        rule,
    )


def _with_condition(act: Callable[[str, str | None], Rule], done: str, changed: Rule | None = None) -> Page:
    """Create or change a rule with the condition that the form has, and go back to its metric."""
    typed = {name: request.form[name].strip() for name in FIELDS if name in request.form}
    if "silent" in typed:
        condition, wrong = f"silent {typed['silent']}", {"rule": "silent", "duration": "silent"}
    else:
        condition = f"{typed.get('operator', '')} {typed.get('value', '')}"
        wrong = {"rule": "value", "duration": "for"}
    try:
        made = act(condition, typed.get("for") or None)
    except Refused as refused:
        problem = Problem.of(refused)
        field = wrong.get(problem.field, "")
        message = EXPECTED[field] if problem.field == "rule" else problem.message
        return show_metric(typed, Problem(message, field), changed), 422
    return _back_to((made.project_id, made.metric_id), f"{done}: {metric_rules.rule_text(made)}.")


def delete_rule(rule_id: str) -> Page:
    """POST /app/metrics/rules/{id}/delete."""
    deleted = RULE.deleted(current().account.seq, rule_id)
    message = f"Rule deleted: {metric_rules.rule_text(deleted)}. Its notifications stay in the history."
    return _back_to((deleted.project_id, deleted.metric_id), message)


def _back_to(ids: tuple[str, str], message: str) -> Page:
    """Redirect to the metric's page, or to all rules if the metric has neither values nor rules left."""
    query = urlencode({"project": ids[0], "metric": ids[1], "range": request.args.get("range", "")})
    return page.back_to(f"/app/metrics/one?{query}" if has_page(ids) else "/app/watches", message)
