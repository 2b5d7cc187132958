"""The commands for alerts: `alert …`."""

from collections.abc import Iterator
from typing import Any

import click

from cli.base import Group, Row, line, link, lists, moment, of_account, options
from core import alerts
from core.definitions import ALERT
from core.local_time import COLLECTED_MS
from core.presets import TEMPLATES
from core.template_lint import unfilled
from models import Account, Alert
from process import clock
from web import shapes

alert = Group("alert", help="Manage alerts and their webhook addresses.")
IN_QUIET_HOURS = {
    "follow": "follows quiet hours",
    "urgent": "urgent passes quiet hours",
    "ignore": "ignores quiet hours",
}
URGENT_PASSES = "Push urgent notifications during quiet hours, too."
REPEAT_URGENT = "Repeat urgent notifications until acknowledged."
MUTE_BUTTON = "Add a button to its notifications that mutes it for an hour."


with_settings = options(
    click.option("--title", "title_template", help="Title template with {{ variables }}; empty for the default."),
    click.option("--body", "body_template", help="Body template with {{ variables }}; empty for the default."),
    click.option("--priority", "priority_template", help="Template for 1 to 5, or a word from min to urgent."),
    click.option("--url", "url_template", help="Template for the address that a tap opens."),
    click.option("--tag", "tag_template", help="Template for the tag: the newest replaces earlier ones."),
    click.option("--image", "image_template", help="Template for the https address of a picture to show."),
    click.option(
        "--resolved-when", metavar="'PATH = VALUE'", help="Such events silently replace those with their tag."
    ),
    click.option("--repeat-urgent/--no-repeat-urgent", "repeats_urgent", default=None, help=REPEAT_URGENT),
    click.option("--mute-button/--no-mute-button", "has_mute_button", default=None, help=MUTE_BUTTON),
    click.option("--icon", help="Icon name, such as bell or server; an unknown name lists them all."),
    click.option("--color", metavar="#RRGGBB", help="Color of its icon, such as #3B82F6."),
    click.option("--frequency", type=click.Choice(tuple(COLLECTED_MS)), help="Instant or one digest per period."),
    click.option("--follow-quiet-hours", is_flag=True, help="Hold everything but min during quiet hours."),
    click.option("--urgent-passes-quiet-hours", "urgent_quiet_hours", is_flag=True, help=URGENT_PASSES),
    click.option("--ignore-quiet-hours", is_flag=True, help="Push everything during quiet hours, too."),
)


@alert.command("create")
@of_account
@click.argument("name")
@with_settings
def create_alert(owner: Account, **settings: Any) -> None:
    """Create an alert and print its webhook address. The address is a secret."""
    click.echo(_address(alerts.create_alert(owner.seq, _given(settings), clock.now_ms())))
    _warn_of_templates(settings)


@alert.command("list")
@lists("alerts", "id", "name", "state", "frequency", "quiet hours", "count", "last triggered", "address")
@of_account
def list_alerts(owner: Account) -> Iterator[Row]:
    """List the alerts."""
    return map(_row, Alert.of_account(owner.seq))


def _row(one: Alert) -> Row:
    follows, address = alerts.quiet_hours_word(one), _address(one)
    count, last = str(one.notification_count), moment(one.last_triggered_at)
    shape = {**shapes.alert(one), "frequency": one.frequency, "quietHours": follows, "address": address}
    said = (_state(one), one.frequency, IN_QUIET_HOURS[follows], count, last)
    return Row(shape, (one.id, one.name, *said, address))


@alert.command("show")
@of_account
@click.argument("alert_id")
def show_alert(owner: Account, alert_id: str) -> None:
    """Print the settings of an alert. A line is: name, value. A dash is nothing."""
    one = alerts.find_alert(owner.seq, alert_id)
    settings = {
        "name": one.name,
        "state": _state(one),
        **{name: getattr(one, f"{name}_template") for name in TEMPLATES},
        "resolved-when": one.resolved_when,
        "repeat-urgent": "yes" if one.repeats_urgent else "no",
        "mute-button": "yes" if one.has_mute_button else "no",
        "frequency": one.frequency,
        "quiet-hours": IN_QUIET_HOURS[alerts.quiet_hours_word(one)],
        "icon": one.icon,
        "color": one.color,
        "address": _address(one),
    }
    for name, value in settings.items():
        click.echo(line(name, value or "-"))


@alert.command("set")
@of_account
@click.argument("alert_id")
@click.option("--name", help="New name.")
@with_settings
@click.option("--active/--inactive", "is_active", default=None, help="Switch the alert on or off.")
def set_alert(owner: Account, alert_id: str, **settings: Any) -> None:
    """Change an alert. Options that are left out keep their value."""
    changed = alerts.change_alert(owner.seq, alert_id, _given(settings), clock.now_ms())
    click.echo(line(f"{changed.name}: {_state(changed)}, frequency {changed.frequency}."))
    _warn_of_templates(settings)


@alert.command("rotate")
@of_account
@click.argument("alert_id")
def rotate_alert(owner: Account, alert_id: str) -> None:
    """Give an alert a new webhook address and print it. The old address stops working."""
    click.echo(_address(alerts.rotate_code(owner.seq, alert_id)))


@alert.command("delete")
@of_account
@click.argument("alert_id")
def delete_alert(owner: Account, alert_id: str) -> None:
    """Delete an alert. Its notifications stay in the history."""
    deleted = ALERT.delete(owner.seq, alert_id)
    click.echo(line(f"Deleted the alert {deleted.name}."))


def _warn_of_templates(settings: dict[str, Any]) -> None:
    """Warn on stderr of each place in the templates that no event can ever fill."""
    for field in TEMPLATES:
        what = "will appear as written" if field in ("title", "body") else "is never filled"
        for text, why in unfilled(settings[f"{field}_template"] or ""):
            click.echo(line(f"Warning: in the {field}, “{text}” {what}: {why}"), err=True)


def _address(one: Alert) -> str:
    return link(f"/p/{one.short_code}")


def _state(one: Alert) -> str:
    return "active" if one.is_active else "inactive"


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The columns of the options that were given; `click.UsageError` for two that exclude each other."""
    words = [word for word in alerts.QUIET_HOURS if settings[f"{word}_quiet_hours"]]
    if len(words) > 1:
        raise click.UsageError("Take one of --follow-quiet-hours, --urgent-passes-quiet-hours, --ignore-quiet-hours.")
    flags = {f"{word}_quiet_hours" for word in alerts.QUIET_HOURS}
    given = {name: value for name, value in settings.items() if value is not None and name not in flags}
    return given | (alerts.QUIET_HOURS[words[0]] if words else {})
