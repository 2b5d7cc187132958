"""The commands for notifications: `send`, and `history …`."""

from typing import Any

import click
from flask.cli import with_appcontext

from cli.base import PRIORITY, Command, Group, counted, line, number_or_word, piped
from core import accounts, deletion, delivery
from core.local_time import moment_ms
from store.senders import Owner
from wire.notification import checked_content

history = Group("history", help="Delete notifications from the history.")


@click.command("send", cls=Command)
@click.argument("email")
@click.argument("title")
@click.argument("body", required=False)
@click.option(
    "--priority", type=PRIORITY, help="1 (min) is not pushed, 2 (low) is silent, 5 (urgent) stays on the screen."
)
@click.option("--url", help="Address to open when the notification is tapped.")
@click.option("--tag", help="Replace the earlier notifications with this tag.")
@click.option("--image", metavar="URL", help="The https address of a picture to show.")
@click.option("--acknowledge", is_flag=True, help="Repeat it every minute for an hour, until acknowledged.")
@click.option("--deliver-at", metavar="TIME", help="Send it later: 2026-11-21T07:00, or Unix milliseconds.")
@with_appcontext
def send(
    email: str,
    title: str,
    body: str | None,
    priority: str | None,
    acknowledge: bool,
    deliver_at: str | None,
    **more: str | None,
) -> None:
    """Send a notification and print its id and status. Without BODY, read the body from standard input."""
    owner = accounts.find_account(email)
    accounts.check_enabled(owner)
    said: dict[str, Any] = {
        "title": title,
        "body": piped("the body") if body is None else body,
        **more,
    }
    if priority:
        said["priority"] = number_or_word(priority)
    if acknowledge:
        said["acknowledge"] = True
    if deliver_at is not None:
        said["deliverAt"] = moment_ms(deliver_at, owner.time_zone)
    sent = delivery.deliver(Owner.of(owner), checked_content(said)).notification
    click.echo(line(sent.id, sent.status))


@history.command("delete")
@click.argument("email")
@click.option("--before", required=True, metavar="YYYY-MM-DD", help="Delete notifications from before this day.")
def delete_history(email: str, before: str) -> None:
    """Delete older notifications. Held and pending ones among them are never sent."""
    deleted = deletion.delete_history(accounts.find_account(email), before)
    click.echo(f"Deleted {counted(deleted, 'notification')} from before {before}.")
