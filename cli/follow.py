"""The commands for followers: `follow …`."""

import click

from cli.base import Group, Row, line, moment, print_list, with_json
from core import accounts, followers, subjects
from process import clock
from store.followers import Followed
from web import shapes

WHAT = "alert:NAME|key:NAME|heartbeat:NAME|rule:METRIC"

follow = Group("follow", help="Share what you are notified of, and follow what others share.")


@follow.command("invite")
@click.argument("email")
@click.argument("what", metavar=WHAT)
@click.argument("address")
def invite(email: str, what: str, address: str) -> None:
    """Invite ADDRESS to get what an alert, a key, a heartbeat or a rule sends. NAME may be an id."""
    owner = accounts.find_account(email)
    one, is_new = followers.invite(owner.seq, *subjects.named(owner.seq, what), address, clock.now_ms())
    said = "Invited" if is_new else "Invited before:"
    click.echo(line(f"{said} {one.email}. That account's Home shows it for 30 days."))


@follow.command("followers")
@click.argument("email")
@click.argument("what", metavar=WHAT)
@with_json
def list_followers(email: str, what: str, as_json: bool) -> None:
    """List the followers and who is invited.

    A line is: id, e-mail, state.
    """
    owner = accounts.find_account(email)
    found = followers.of_subject(owner.seq, *subjects.named(owner.seq, what), clock.now_ms())
    shown = map(shapes.follower, found)
    rows = (Row(one, (one["id"], one["email"], one["state"])) for one in shown)
    print_list("followers", ("id", "email", "state"), rows, as_json)


@follow.command("remove")
@click.argument("email")
@click.argument("what", metavar=WHAT)
@click.argument("follower_id", metavar="ID")
def remove(email: str, what: str, follower_id: str) -> None:
    """Remove a follower, or withdraw an invitation."""
    owner = accounts.find_account(email)
    one = followers.remove(owner.seq, *subjects.named(owner.seq, what), follower_id, clock.now_ms())
    click.echo(line(f"Removed {one.email}."))


@follow.command("list")
@click.argument("email")
@with_json
def list_followed(email: str, as_json: bool) -> None:
    """List what the account follows, and what it is invited to.

    A line is: id, owner, what, name, state, invited.
    """
    found = followers.followed(accounts.find_account(email), clock.now_ms())
    print_list("following", ("id", "owner", "what", "name", "state", "invited"), map(_row, found), as_json)


def _row(one: Followed) -> Row:
    said = shapes.followed(one)
    return Row(said, (*(said[name] for name in ("id", "owner", "what", "name", "state")), moment(one.created_at)))


@follow.command("accept")
@click.argument("email")
@click.argument("followed_id", metavar="ID")
def accept(email: str, followed_id: str) -> None:
    """Accept an invitation."""
    one = followers.accept(accounts.find_account(email), followed_id, clock.now_ms())
    click.echo(line(f"{email} now follows the {one.what} {one.name} of {one.owner}."))


@follow.command("decline")
@click.argument("email")
@click.argument("followed_id", metavar="ID")
def decline(email: str, followed_id: str) -> None:
    """Decline an invitation."""
    one = followers.leave(accounts.find_account(email), followed_id, clock.now_ms())
    click.echo(line(f"Declined the {one.what} {one.name} of {one.owner}."))


@follow.command("leave")
@click.argument("email")
@click.argument("followed_id", metavar="ID")
def leave(email: str, followed_id: str) -> None:
    """Stop following. What still repeats or is held is deleted; the rest stays in the history."""
    one = followers.leave(accounts.find_account(email), followed_id, clock.now_ms())
    click.echo(line(f"Left the {one.what} {one.name} of {one.owner}."))
