"""The commands for notifications: `send`, and `history …`."""

from typing import Any

import click

from cli.base import PRIORITY, Command, Group, line, of_account, piped
from core import accounts, deletion, delivery
from core.local_time import moment_ms
from models import Account
from store.senders import Owner
from wire.notification import checked_content
from wire.validation import counted

history = Group("history", help="Delete notifications from the history.")


@click.command("send", cls=Command)
@of_account
@click.argument("title")
@click.argument("body", required=False)
@click.option(
    "--priority", type=PRIORITY, help="1 (min) is not pushed, 2 (low) is silent, 5 (urgent) stays on the screen."
)
@click.option("--url", help="Address to open when the notification is tapped.")
@click.option("--tag", help="Replace the earlier notifications with this tag.")
@click.option("--image", metavar="URL", help="The https address of a picture to show.")
@click.option(
    "--acknowledge", is_flag=True, default=None, help="Repeat it every minute until acknowledged, at most 50 times."
)
@click.option("--deliver-at", metavar="TIME", help="Send it later: 2026-11-21T07:00, or Unix milliseconds.")
def send(owner: Account, body: str | None, deliver_at: str | None, **said: Any) -> None:
    """Send a notification and print its id and status. Without BODY, read the body from standard input."""
    accounts.check_enabled(owner)
    said["body"] = piped("the body") if body is None else body
    if deliver_at is not None:
        said["deliverAt"] = moment_ms(deliver_at, owner.time_zone)
    sent = delivery.deliver(Owner.of(owner), checked_content(said)).notification
    click.echo(line(sent.id, sent.status))


@history.command("delete")
@of_account
@click.option("--before", required=True, metavar="YYYY-MM-DD", help="Delete notifications from before this day.")
def delete_history(owner: Account, before: str) -> None:
    """Delete older notifications. Held and pending ones among them are never sent."""
    deleted = deletion.delete_history(owner, before)
    click.echo(f"Deleted {counted(deleted, 'notification')} from before {before}.")
