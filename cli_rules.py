"""The commands for rules on metrics: `flask rule …` (CONTRACT 10)."""

import click

from cli_base import Group, line, moment
from core import accounts, metric_rules
from models import Account
from process import clock
from store.metric_rules import MetricRule

rule = Group("rule", help="Manage rules on metrics: when a value is to be told.")


@rule.command("create")
@click.argument("email")
@click.argument("project")
@click.argument("metric")
@click.argument("condition", metavar="'> 90'|'silent 24h'")
@click.option("--for", "lasting", metavar="5m", help="Only if it has held at every value for that long: 1s to 31d.")
def create_rule(email: str, project: str, metric: str, condition: str, lasting: str | None) -> None:
    """Create a rule on a metric and print its id. The metric need not have values yet."""
    owner = accounts.find_account(email)
    click.echo(metric_rules.create_rule(owner, project, metric, condition, lasting, clock.now_ms()).id)


@rule.command("list")
@click.argument("email", required=False)
def list_rules(email: str | None) -> None:
    """Print one line per rule: id, project, metric, rule, state, firing since, created, EMAIL.

    Without EMAIL, the rules of all accounts.
    """
    for owner in Account.all() if email is None else [accounts.find_account(email)]:
        for one in MetricRule.of_account(owner.seq):
            times = (moment(metric_rules.firing_since(one)), moment(one.created_at))
            said = (metric_rules.rule_text(one), one.state, *times, owner.email)
            click.echo(line(one.id, one.project_id, one.metric_id, *said))


@rule.command("delete")
@click.argument("email")
@click.argument("rule_id")
def delete_rule(email: str, rule_id: str) -> None:
    """Delete a rule. Its notifications stay in the history."""
    deleted = metric_rules.delete_rule(accounts.find_account(email).seq, rule_id)
    click.echo(line(f"Deleted the rule {metric_rules.rule_text(deleted)} on {deleted.metric_id}."))
