"""The commands for heartbeats: `heartbeat …`."""

from collections.abc import Iterable
from typing import Any

import click

from cli.base import PRIORITY, Group, Row, line, link, lists, moment, of_account, options
from core import accounts, heartbeats
from core.definitions import HEARTBEAT
from core.durations import short
from models import Account
from process import clock
from store import heartbeats as stored_heartbeats
from store.heartbeats import Beat
from web import shapes

heartbeat = Group("heartbeat", help="Manage heartbeats, which notify you of missing pings.")


with_settings = options(
    click.option("--period", metavar="1h", help="How often it must ping: 1m to 366d."),
    click.option("--cron", metavar="'0 3 * * *'", help="When it must ping, in the account's time zone."),
    click.option("--grace", metavar="10m", help="How late a ping may be: 1m to 31d. Default: 10m."),
    click.option("--priority", type=PRIORITY, help="Priority of the notification that it is down. Default: 4."),
)


@heartbeat.command("create")
@of_account
@click.argument("name")
@with_settings
def create_heartbeat(owner: Account, **settings: Any) -> None:
    """Create a heartbeat and print the address to ping. The address is a secret."""
    made = heartbeats.create_heartbeat(owner, _given(settings), clock.now_ms())
    click.echo(_address(made))


@heartbeat.command("list")
@lists("heartbeats", "id", "name", "state", "schedule", "grace", "priority", "last ping", "deadline", "address")
@of_account
def list_heartbeats(owner: Account) -> Iterable[Row]:
    """List the heartbeats."""
    return map(_row, stored_heartbeats.of_account(owner.seq))


def _row(beat: Beat) -> Row:
    times = (moment(beat.last_ping_at), moment(beat.deadline_at))
    said = (beat.state, heartbeats.schedule(beat), short(beat.grace_s), str(beat.priority))
    address = _address(beat)
    return Row({**shapes.watch(beat), "address": address}, (beat.id, beat.name, *said, *times, address))


@heartbeat.command("set")
@of_account
@click.argument("heartbeat_id")
@click.option("--name", help="New name.")
@with_settings
def set_heartbeat(owner: Account, heartbeat_id: str, **settings: Any) -> None:
    """Change a heartbeat. Options that are left out keep their value."""
    changed = heartbeats.change_heartbeat(owner.seq, heartbeat_id, _given(settings), clock.now_ms())
    words = f"{heartbeats.schedule(changed)}, grace {short(changed.grace_s)}, priority {changed.priority}"
    click.echo(line(f"{changed.name}: {words}."))


@heartbeat.command("pause")
@of_account
@click.argument("heartbeat_id")
def pause_heartbeat(owner: Account, heartbeat_id: str) -> None:
    """Pause a heartbeat: expect no pings until it is resumed."""
    paused = heartbeats.pause_heartbeat(owner.seq, heartbeat_id, clock.now_ms())
    click.echo(line(f"Paused the heartbeat {paused.name}."))


@heartbeat.command("resume")
@of_account
@click.argument("heartbeat_id")
def resume_heartbeat(owner: Account, heartbeat_id: str) -> None:
    """Resume a heartbeat: expect pings from now on."""
    resumed = heartbeats.resume_heartbeat(owner.seq, heartbeat_id, clock.now_ms())
    click.echo(line(f"Resumed the heartbeat {resumed.name}."))


@heartbeat.command("delete")
@of_account
@click.argument("heartbeat_id")
def delete_heartbeat(owner: Account, heartbeat_id: str) -> None:
    """Delete a heartbeat with its pings. Its notifications stay in the history."""
    deleted = HEARTBEAT.delete(owner.seq, heartbeat_id)
    click.echo(line(f"Deleted the heartbeat {deleted.name}."))


@heartbeat.command("key")
@of_account
@click.option("--rotate", is_flag=True, help="Replace it; the old one stops working.")
def show_ping_key(owner: Account, rotate: bool) -> None:
    """Print the account's ping key, which pings heartbeats by name: /ping/KEY/nightly-backup. It is a secret."""
    click.echo(accounts.change_ping_key(owner) if rotate or not owner.ping_key else owner.ping_key)


def _address(beat: Beat) -> str:
    return link(f"/ping/{beat.ping_id}")


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in settings.items() if value is not None}
