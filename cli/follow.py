"""The commands for followers: `follow …`."""

from collections.abc import Iterator

import click

from cli.base import Group, Row, line, lists, moment, of_account
from core import followers, subjects
from models import Account
from process import clock
from store.followers import Followed
from web import shapes

WHAT = "alert:NAME|key:NAME|heartbeat:NAME|rule:METRIC"

follow = Group("follow", help="Share your notifications, and follow those of others.")


@follow.command("invite")
@of_account
@click.argument("what", metavar=WHAT)
@click.argument("address")
def invite(owner: Account, what: str, address: str) -> None:
    """Invite ADDRESS to get what an alert, a key, a heartbeat or a rule sends. NAME may be an id."""
    one, is_new = followers.invite(owner.seq, *subjects.named(owner.seq, what), address, clock.now_ms())
    said = "Invited" if is_new else "Invited before:"
    click.echo(line(f"{said} {one.email}. That account's Home shows it for 30 days."))


@follow.command("followers")
@lists("followers", "id", "email", "state")
@of_account
@click.argument("what", metavar=WHAT)
def list_followers(owner: Account, what: str) -> Iterator[Row]:
    """List the followers and who is invited."""
    found = followers.of_subject(owner.seq, *subjects.named(owner.seq, what), clock.now_ms())
    return (Row(one, (one["id"], one["email"], one["state"])) for one in map(shapes.follower, found))


@follow.command("remove")
@of_account
@click.argument("what", metavar=WHAT)
@click.argument("follower_id", metavar="ID")
def remove(owner: Account, what: str, follower_id: str) -> None:
    """Remove a follower, or withdraw an invitation."""
    one = followers.remove(owner.seq, *subjects.named(owner.seq, what), follower_id, clock.now_ms())
    click.echo(line(f"Removed {one.email}."))


@follow.command("list")
@lists("following", "id", "owner", "what", "name", "state", "invited")
@of_account
def list_followed(owner: Account) -> Iterator[Row]:
    """List what the account follows, and what it is invited to."""
    return map(_row, followers.followed(owner, clock.now_ms()))


def _row(one: Followed) -> Row:
    said = shapes.followed(one)
    return Row(said, (*(said[name] for name in ("id", "owner", "what", "name", "state")), moment(one.created_at)))


@follow.command("accept")
@of_account
@click.argument("followed_id", metavar="ID")
def accept(owner: Account, followed_id: str) -> None:
    """Accept an invitation."""
    one = followers.accept(owner, followed_id, clock.now_ms())
    click.echo(line(f"{owner.email} now follows the {one.what} {one.name} of {one.owner}."))


@follow.command("leave")
@of_account
@click.argument("followed_id", metavar="ID")
def leave(owner: Account, followed_id: str) -> None:
    """Stop following, or decline an invitation. Repeating and held notifications are deleted, the rest stays."""
    one = followers.leave(owner, followed_id, clock.now_ms())
    click.echo(line(f"{'Left' if one.is_following else 'Declined'} the {one.what} {one.name} of {one.owner}."))


follow.add_command(leave, "decline")
