"""The commands for devices: `device …`."""

import click
from flask import current_app

import push
from cli.base import PRIORITY, Group, Row, line, moment, number_or_word, print_list, with_json
from core import accounts, devices
from core.week_windows import EXAMPLES
from models import Device
from process import clock
from providers import PROVIDERS
from web import shapes

device = Group("device", help="Manage the devices that get push notifications.")


@device.command("add")
@click.argument("email")
@click.argument("kind", type=click.Choice(sorted(PROVIDERS)))
@click.argument("token", metavar="[TOKEN|SUBSCRIPTION_JSON]", required=False)
@click.option("--name", help="Name to show on the Devices page.")
def add_device(email: str, kind: str, token: str | None, name: str | None) -> None:
    """Add a device and print its id.

    A device of the ntfy app takes no TOKEN: the address to subscribe to is printed instead.
    """
    if (token is None) != PROVIDERS[kind].is_fetched:
        raise click.UsageError(f"A device of the kind {kind} takes {'a' if token is None else 'no'} TOKEN.")
    owner, registration = accounts.find_account(email), PROVIDERS[kind].registration(token) if token else {}
    added = devices.add_device(owner.seq, {"kind": kind, "name": name, **registration}, clock.now_ms())
    click.echo(f"{current_app.config['SETTINGS'].public_url}/{added.topic}" if added.topic else added.id)
    if kind not in push.configured():
        click.echo(
            f"Warning: {PROVIDERS[kind].not_configured()} Until that changes, this device gets nothing.", err=True
        )


@device.command("list")
@click.argument("email")
@with_json
def list_devices(email: str, as_json: bool) -> None:
    """List the devices.

    A line is: id, kind, name, created, last delivered, last error.
    """
    rows = (
        Row(
            shapes.device(one),
            (
                one.id,
                one.kind,
                one.name,
                *map(moment, (one.created_at, one.last_delivered_at)),
                one.last_error or "-",
            ),
        )
        for one in Device.of_account(accounts.find_account(email).seq)
    )
    print_list("devices", ("id", "kind", "name", "created", "last delivered", "last error"), rows, as_json)


@device.command("set")
@click.argument("email")
@click.argument("device_id")
@click.option("--min-priority", type=PRIORITY, help="Push only this priority and higher.")
@click.option("--quiet-hours", metavar="HOURS|off", help=f"Push nothing during these hours: {EXAMPLES}.")
def set_device(email: str, device_id: str, min_priority: str | None, quiet_hours: str | None) -> None:
    """Change a device. Options that are left out keep their value."""
    if min_priority is None and quiet_hours is None:
        raise click.UsageError("Use --min-priority, --quiet-hours or both.")
    settings = {"minPriority": min_priority and number_or_word(min_priority), "quietHours": quiet_hours}
    changed = devices.change_device(accounts.find_account(email).seq, device_id, settings)
    hours = f"quiet hours {changed.quiet_hours}" if changed.quiet_hours else "no quiet hours"
    click.echo(line(f"{changed.name}: priority {changed.min_priority} and higher, {hours}."))


@device.command("remove")
@click.argument("email")
@click.argument("device_id")
def remove_device(email: str, device_id: str) -> None:
    """Remove a device."""
    devices.remove_device(accounts.find_account(email).seq, device_id, clock.now_ms())
    click.echo(f"Removed the device {line(device_id)}.")
