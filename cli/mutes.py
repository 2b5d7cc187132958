"""The commands for mutes: `mute`, `unmute`, `mutes`."""

from typing import Any

import click

from cli.base import Command, Row, line, lists, moment, of_account
from core import holding, mutes
from core.durations import seconds_of
from core.local_time import moment_ms
from models import Account
from process import clock
from store.mutes import ALL, HISTORY, ListedMute
from web import shapes
from wire.validation import counted

WHAT = "all|alert:NAME|key:NAME|heartbeat:NAME|rule:METRIC"


@click.command("mute", cls=Command)
@of_account
@click.argument("what", metavar=WHAT)
@click.argument("duration", required=False)
@click.option("--until", metavar="TIME", help="Instead of DURATION: 2026-11-21T07:00, or Unix milliseconds.")
@click.option("--cron", metavar="'0 2 * * sun'", help="Mute for DURATION at these times, in the account's time zone.")
@click.option("--history", is_flag=True, help="Only record notifications in the history: no digest at the end.")
@click.option("--urgent-too", "urgent", is_flag=True, help="Mute urgent notifications, too.")
def mute(
    owner: Account, what: str, duration: str | None, until: str | None, cron: str | None, history: bool, urgent: bool
) -> None:
    """Mute everything, an alert, a key, a heartbeat or a rule for a DURATION such as 1h. NAME may be an id."""
    if cron is not None and (duration is None or until is not None):
        raise click.UsageError("Use --cron with a DURATION, such as 1h.")
    if (duration is None) == (until is None):
        raise click.UsageError("Use either a DURATION, such as 1h, or --until.")
    kind, id_ = mutes.named(owner, what)
    fields: dict[str, Any] = {"what": kind, "id": id_, "cron": cron, "urgentPasses": not urgent}
    if duration is not None:
        fields["forS"] = seconds_of(duration, "duration", mutes.MIN_FOR_S, mutes.MAX_FOR_S)
    if until is not None:
        fields["until"] = moment_ms(until, owner.time_zone)
    if history:
        fields["mode"] = HISTORY
    now = clock.now_ms()
    made = mutes.create_mute(owner, fields, now)
    click.echo(line(f"Muted {mutes.subject_words(made)} {mutes.time_words(made.mute, now)}."))


@click.command("unmute", cls=Command)
@of_account
@click.argument("what", metavar=WHAT)
def unmute(owner: Account, what: str) -> None:
    """End the mutes of everything, an alert, a key, a heartbeat or a rule, recurring ones too. NAME may be an id."""
    now = clock.now_ms()
    kind, id_ = mutes.named(owner, what, mutes.of_account(owner.seq, now))
    ended = mutes.end_all(owner.seq, kind, id_, now)
    if not ended:
        raise click.ClickException(line(f"{'Everything' if kind == ALL else what} is not muted."))
    click.echo(line(f"Ended {counted(ended, 'mute')} of {'everything' if kind == ALL else what}."))


@click.command("mutes", cls=Command)
@lists("mutes", "id", "what", "name", "mode", "urgent", "until", "cron")
@of_account
def list_mutes(owner: Account) -> list[Row]:
    """List the mutes."""
    now = clock.now_ms()
    return [_row(one, now) for one in mutes.of_account(owner.seq, now)]


def _row(one: ListedMute, now: int) -> Row:
    urgent, (_, end) = "passes" if one.mute.urgent_passes else "muted", holding.window(one.mute, now)
    said = (one.mute.what, one.name or "-", one.mute.mode, urgent, moment(end), one.mute.cron or "-")
    return Row(shapes.mute(one, now), (one.mute.id, *said))
