"""The commands for devices: `device …`."""

from collections.abc import Iterator
from typing import Any

import click

import push
from cli.base import PRIORITY, Group, Row, line, link, lists, moment, of_account, options
from core import devices
from core.channels import ALWAYS, FALLBACK, MAX_AFTER_S, MIN_AFTER_S
from core.channels import role as role_of
from core.week_windows import EXAMPLES
from models import Account, Device
from process import clock
from providers import PROVIDERS
from providers.chat_forms import FORMS
from web import shapes

device = Group("device", help="Manage the devices and channels that get notifications.")


role_options = options(
    click.option("--role", type=click.Choice([ALWAYS, FALLBACK]), help="Get everything, or be a fallback."),
    click.option(
        "--after",
        "afterS",
        type=click.IntRange(MIN_AFTER_S, MAX_AFTER_S),
        metavar="SECONDS",
        help="Time until a fallback gets what no other device has.",
    ),
    click.option("--min-priority", "minPriority", type=PRIORITY, help="Push only this priority and higher."),
)


@device.command("add")
@of_account
@click.argument("kind", type=click.Choice(sorted(PROVIDERS)))
@click.argument("token", metavar="[TOKEN|SUBSCRIPTION_JSON]", required=False)
@click.option("--name", help="Name to show on the Devices page.")
@click.option("--preset", type=click.Choice(list(FORMS)), help="The service that a webhook leads to.")
@role_options
def add_device(owner: Account, kind: str, token: str | None, **options: Any) -> None:
    """Add a device and print its id.

    The ntfy app takes no TOKEN: the address to subscribe to is printed instead. A webhook's TOKEN is its address;
    for a generic webhook, a second line has the secret that signs its requests.
    """
    if (token is None) != PROVIDERS[kind].is_fetched:
        raise click.UsageError(f"A device of the kind {kind} takes {'a' if token is None else 'no'} TOKEN.")
    registration = PROVIDERS[kind].registration(token) if token else {}
    added = devices.add_device(owner.seq, {"kind": kind, **options, **registration}, clock.now_ms())
    click.echo(link(f"/{added.topic}") if added.topic else added.id)
    if added.secret:
        click.echo(added.secret)
    if kind not in push.configured():
        click.echo(
            f"Warning: {PROVIDERS[kind].not_configured()} Until that changes, this device gets nothing.", err=True
        )


@device.command("list")
@lists("devices", "id", "kind", "name", "created", "last delivered", "last error")
@of_account
def list_devices(owner: Account) -> Iterator[Row]:
    """List the devices."""
    return map(_row, Device.of_account(owner.seq))


def _row(one: Device) -> Row:
    times = (moment(one.created_at), moment(one.last_delivered_at))
    return Row(shapes.device(one), (one.id, one.kind, one.name, *times, one.last_error or "-"))


@device.command("set")
@of_account
@click.argument("device_id")
@role_options
@click.option("--quiet-hours", "quietHours", metavar="HOURS|off", help=f"Push nothing in these hours: {EXAMPLES}.")
def set_device(owner: Account, device_id: str, **settings: Any) -> None:
    """Change a device. Options that are left out keep their value."""
    changed = devices.change_device(owner.seq, device_id, settings)
    hours = f"quiet hours {changed.quiet_hours}" if changed.quiet_hours else "no quiet hours"
    after_s = changed.after_s
    when = "" if after_s is None else f", {role_of(after_s)}{f' after {after_s} s' if after_s else ''}"
    click.echo(line(f"{changed.name}: priority {changed.min_priority} and higher, {hours}{when}."))


@device.command("remove")
@of_account
@click.argument("device_id")
def remove_device(owner: Account, device_id: str) -> None:
    """Remove a device."""
    devices.remove_device(owner.seq, device_id, clock.now_ms())
    click.echo(f"Removed the device {line(device_id)}.")
