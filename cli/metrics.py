"""The commands for metrics and for the rules on them: `metric …`, `rule …`."""

import click

from cli.base import Group, Row, counted, line, moment, print_list, with_json
from core import accounts, deletion, metric_rules
from models import Account
from process import clock
from store import metric_rules as stored_metric_rules
from store.metric_rules import Rule
from web import shapes

metric = Group("metric", help="Delete metrics.")
rule = Group("rule", help="Manage rules that notify you about a metric's values.")


@metric.command("delete")
@click.argument("email")
@click.argument("project")
@click.argument("metric_id", metavar="[METRIC]", required=False)
def delete_metric(email: str, project: str, metric_id: str | None) -> None:
    """Delete a metric with all its values.

    Without METRIC, delete the whole project.
    """
    deleted = deletion.delete_metrics(accounts.find_account(email), project, metric_id)
    click.echo(line(f"Deleted {counted(deleted, 'value')} of {project if metric_id is None else metric_id}."))


@rule.command("create")
@click.argument("email")
@click.argument("project")
@click.argument("metric")
@click.argument("condition", metavar="'> 90'|'silent 24h'")
@click.option("--for", "lasting", metavar="5m", help="Only after it has been true for this long: 1s to 31d.")
def create_rule(email: str, project: str, metric: str, condition: str, lasting: str | None) -> None:
    """Create a rule on a metric and print its id.

    The metric need not have values yet.
    """
    owner = accounts.find_account(email)
    click.echo(metric_rules.create_rule(owner, project, metric, condition, lasting, clock.now_ms()).id)


@rule.command("list")
@click.argument("email", required=False)
@with_json
def list_rules(email: str | None, as_json: bool) -> None:
    """List the rules of an account, or of all.

    A line is: id, project, metric, rule, state, firing since, created, email.
    """
    headings = ("id", "project", "metric", "rule", "state", "firing since", "created", "email")
    owners = Account.all() if email is None else [accounts.find_account(email)]
    rows = (_row(one, owner.email) for owner in owners for one in stored_metric_rules.of_account(owner.seq))
    print_list("rules", headings, rows, as_json)


def _row(one: Rule, email: str) -> Row:
    times = (moment(metric_rules.firing_since(one)), moment(one.created_at))
    said = (one.project_id, one.metric_id, metric_rules.rule_text(one), one.state)
    return Row({**shapes.rule(one), "email": email}, (one.id, *said, *times, email))


@rule.command("delete")
@click.argument("email")
@click.argument("rule_id")
def delete_rule(email: str, rule_id: str) -> None:
    """Delete a rule. Its notifications stay in the history."""
    deleted = metric_rules.delete_rule(accounts.find_account(email).seq, rule_id)
    click.echo(line(f"Deleted the rule {metric_rules.rule_text(deleted)} on {deleted.metric_id}."))
