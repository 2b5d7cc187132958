"""The commands for devices: `device …`."""

from collections.abc import Callable
from typing import Any

import click
from flask import current_app

import push
from cli.base import PRIORITY, Group, Row, line, moment, number_or_word, print_list, with_json, with_options
from core import accounts, devices
from core.channels import ALWAYS, FALLBACK, MAX_AFTER_S, MIN_AFTER_S
from core.channels import role as role_of
from core.week_windows import EXAMPLES
from models import Device
from process import clock
from providers import PROVIDERS
from providers.chat_forms import FORMS
from web import shapes

device = Group("device", help="Manage the devices and channels that get notifications.")


def role_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a channel's role, and the least priority that a device gets."""
    return with_options(
        command,
        click.option("--role", type=click.Choice([ALWAYS, FALLBACK]), help="Whether a channel gets everything."),
        click.option(
            "--after",
            type=click.IntRange(MIN_AFTER_S, MAX_AFTER_S),
            metavar="SECONDS",
            help="When a fallback gets what nothing else has.",
        ),
        click.option("--min-priority", type=PRIORITY, help="Push only this priority and higher."),
    )


def _role(role: str | None, after: int | None, min_priority: str | None) -> dict[str, Any]:
    return {"role": role, "afterS": after, "minPriority": min_priority and number_or_word(min_priority)}


@device.command("add")
@click.argument("email")
@click.argument("kind", type=click.Choice(sorted(PROVIDERS)))
@click.argument("token", metavar="[TOKEN|SUBSCRIPTION_JSON]", required=False)
@click.option("--name", help="Name to show on the Devices page.")
@click.option("--preset", type=click.Choice(list(FORMS)), help="The service that a webhook leads to.")
@role_options
def add_device(email: str, kind: str, token: str | None, name: str | None, preset: str | None, **role: Any) -> None:
    """Add a device and print its id.

    A device of the ntfy app takes no TOKEN: the address to subscribe to is printed instead. That of a webhook is an
    address; a second line has the secret that signs the requests of a generic one.
    """
    if (token is None) != PROVIDERS[kind].is_fetched:
        raise click.UsageError(f"A device of the kind {kind} takes {'a' if token is None else 'no'} TOKEN.")
    owner, registration = accounts.find_account(email), PROVIDERS[kind].registration(token) if token else {}
    said = {"kind": kind, "name": name, "preset": preset, **_role(**role), **registration}
    added = devices.add_device(owner.seq, said, clock.now_ms())
    click.echo(f"{current_app.config['SETTINGS'].public_url}/{added.topic}" if added.topic else added.id)
    if added.secret:
        click.echo(added.secret)
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
@role_options
@click.option("--quiet-hours", metavar="HOURS|off", help=f"Push nothing during these hours: {EXAMPLES}.")
def set_device(email: str, device_id: str, quiet_hours: str | None, **role: Any) -> None:
    """Change a device. Options that are left out keep their value."""
    settings = {**_role(**role), "quietHours": quiet_hours}
    if not any(value is not None for value in settings.values()):
        raise click.UsageError("Use --role, --after, --min-priority or --quiet-hours.")
    changed = devices.change_device(accounts.find_account(email).seq, device_id, settings)
    hours = f"quiet hours {changed.quiet_hours}" if changed.quiet_hours else "no quiet hours"
    after_s = changed.after_s
    when = "" if after_s is None else f", {role_of(after_s)}{f' after {after_s} s' if after_s else ''}"
    click.echo(line(f"{changed.name}: priority {changed.min_priority} and higher, {hours}{when}."))


@device.command("remove")
@click.argument("email")
@click.argument("device_id")
def remove_device(email: str, device_id: str) -> None:
    """Remove a device."""
    devices.remove_device(accounts.find_account(email).seq, device_id, clock.now_ms())
    click.echo(f"Removed the device {line(device_id)}.")
