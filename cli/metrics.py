"""The commands for metrics and for the rules on them: `metric …`, `rule …`."""

from collections.abc import Iterator

import click

from cli.base import Group, Row, line, lists, moment, of_account
from core import accounts, deletion, metric_rules
from core.definitions import RULE
from models import Account
from process import clock
from store import metric_rules as stored_metric_rules
from store.metric_rules import Rule
from web import shapes
from wire.validation import counted

metric = Group("metric", help="Delete metrics.")
rule = Group("rule", help="Manage rules that notify you about a metric's values.")


@metric.command("delete")
@of_account
@click.argument("project")
@click.argument("metric_id", metavar="[METRIC]", required=False)
def delete_metric(owner: Account, project: str, metric_id: str | None) -> None:
    """Delete a metric with all its values. Without METRIC, delete the whole project."""
    deleted = deletion.delete_metrics(owner, project, metric_id)
    click.echo(line(f"Deleted {counted(deleted, 'value')} of {project if metric_id is None else metric_id}."))


@rule.command("create")
@of_account
@click.argument("project")
@click.argument("metric")
@click.argument("condition", metavar="'> 90'|'silent 24h'")
@click.option("--for", "lasting", metavar="5m", help="Only after it has been true for this long: 1s to 31d.")
def create_rule(owner: Account, project: str, metric: str, condition: str, lasting: str | None) -> None:
    """Create a rule on a metric and print its id. The metric need not have values yet."""
    click.echo(metric_rules.create_rule(owner, project, metric, condition, lasting, clock.now_ms()).id)


@rule.command("list")
@lists("rules", "id", "project", "metric", "rule", "state", "firing since", "created", "email")
@click.argument("email", required=False)
def list_rules(email: str | None) -> Iterator[Row]:
    """List the rules of an account, or of all."""
    owners = Account.all() if email is None else [accounts.find_account(email)]
    return (_row(one, owner.email) for owner in owners for one in stored_metric_rules.of_account(owner.seq))


def _row(one: Rule, email: str) -> Row:
    times = (moment(metric_rules.firing_since(one)), moment(one.created_at))
    said = (one.project_id, one.metric_id, metric_rules.rule_text(one), one.state)
    return Row({**shapes.rule(one), "email": email}, (one.id, *said, *times, email))


@rule.command("delete")
@of_account
@click.argument("rule_id")
def delete_rule(owner: Account, rule_id: str) -> None:
    """Delete a rule. Its notifications stay in the history."""
    deleted = RULE.delete(owner.seq, rule_id)
    click.echo(line(f"Deleted the rule {metric_rules.rule_text(deleted)} on {deleted.metric_id}."))
