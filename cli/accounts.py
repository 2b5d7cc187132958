"""The commands for accounts: `account …`."""

import sys
from collections.abc import Iterator

import click

from cli.base import FirstCommand, Group, Row, line, link, lists, moment, of_account, piped
from core import accounts, deletion, people, week_windows
from core.plans import PLANS
from models import Account
from process import clock
from store.database import EVERYBODY, transaction
from web import shapes
from wire.errors import Refused

account = Group("account", help="Manage accounts.")
with_plan = click.option("--plan", type=click.Choice(tuple(PLANS)), help="Sets rate limits and days of history.")
with_password = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")


@account.command("create", cls=FirstCommand)
@click.argument("email")
@with_plan
@with_password
def create_account(email: str, plan: str | None, password_stdin: bool) -> None:
    """Create an account. Without a password, print a one-time link that sets one."""
    hashed = _new_password_hash(password_stdin)
    with transaction(EVERYBODY):
        created = accounts.create_account(email, plan or "starter", "UTC", clock.now_ms(), hashed)
    if hashed:
        click.echo(f"Created the account {line(created.email)} with the plan {created.plan}.")
    else:
        click.echo(link(accounts.make_link(created, clock.now_ms())))


@account.command("invite")
@click.argument("email")
@with_plan
@click.option("--admin", is_flag=True, help="Make the account an administrator.")
@click.option("--mail", is_flag=True, help="Mail the link, too.")
def invite(email: str, plan: str | None, admin: bool, mail: bool) -> None:
    """Invite somebody: print a one-time link, valid for 7 days, to set a password and sign in.

    Inviting the same address again voids the earlier link.
    """
    _, path = people.invite(email, plan or "starter", admin, clock.now_ms(), by_mail=mail)
    click.echo(link(path))


@account.command("disable")
@of_account
def disable_account(disabled: Account) -> None:
    """End an account's sessions, keys, streams and addresses at once. Nothing is deleted."""
    people.disable(disabled.seq, clock.now_ms())
    click.echo(f"{line(disabled.email)} is disabled.")


@account.command("enable")
@of_account
def enable_account(enabled: Account) -> None:
    """Enable a disabled account. Its browsers have to sign in again."""
    people.enable(enabled.seq, clock.now_ms())
    click.echo(f"{line(enabled.email)} is enabled.")


@account.command("list")
@lists("accounts", "email", "plan", "time zone", "created", "quiet hours", "role", "state")
def list_accounts() -> Iterator[Row]:
    """List the accounts."""
    return map(_row, Account.all())


def _row(one: Account) -> Row:
    hours, role = one.quiet_hours or "-", "administrator" if one.is_administrator else "-"
    state = people.state(one)
    shape = {**shapes.account(one), "isAdministrator": bool(one.is_administrator), "state": state}
    return Row(shape, (one.email, one.plan, one.time_zone, moment(one.created_at), hours, role, state))


@account.command("set")
@of_account
@with_plan
@click.option("--timezone", metavar="ZONE", help="An IANA name, such as Europe/Berlin.")
@click.option("--quiet-hours", metavar="HOURS|off", help=f"Hold alerts during these hours: {week_windows.EXAMPLES}.")
@with_password
@click.option("--password-link", is_flag=True, help="Print a one-time link to set a new password and sign in.")
@click.option("--admin/--no-admin", default=None, help="Make it an administrator, or an ordinary account.")
def set_account(
    changed: Account,
    plan: str | None,
    timezone: str | None,
    quiet_hours: str | None,
    password_stdin: bool,
    password_link: bool,
    admin: bool | None,
) -> None:
    """Change an account's plan, time zone, quiet hours, password or role."""
    hashed = _piped_password_hash() if password_stdin else None
    change_zone = None if timezone is None else accounts.zone_change(changed, timezone, clock.now_ms())
    with transaction(EVERYBODY, changed.seq):
        if admin is not None:
            people.set_administrator(changed.seq, admin)
        if plan:
            accounts.change(changed, plan=plan)
        if change_zone:
            change_zone()
        if quiet_hours is not None:
            accounts.set_quiet_hours(changed, None if quiet_hours == "off" else quiet_hours)
        if hashed:
            accounts.set_password(changed, hashed)
    if password_link:
        click.echo(link(accounts.make_link(changed, clock.now_ms())))
        return
    now = accounts.find_account(changed.email)
    held = f"quiet hours {now.quiet_hours}" if now.quiet_hours else "no quiet hours"
    role = ", administrator" if now.is_administrator else ""
    click.echo(f"{line(now.email)}: plan {now.plan}, time zone {now.time_zone}, {held}{role}.")


@account.command("delete")
@of_account
@click.option("--yes", is_flag=True, help="Confirm: this cannot be undone.")
def delete_account(deleted: Account, yes: bool) -> None:
    """Delete an account and everything it has."""
    if not yes:
        raise click.UsageError(f"Nothing was deleted. To delete {deleted.email} and everything it has, add --yes.")
    deletion.delete_account(deleted)
    click.echo(f"Deleted the account {line(deleted.email)}.")


def _new_password_hash(password_stdin: bool) -> str | None:
    if password_stdin:
        return _piped_password_hash()
    if sys.stdin and sys.stdin.isatty():
        return accounts.password_hash(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    return None


def _piped_password_hash() -> str:
    password = piped("the password")
    if "\n" in password or "\r" in password:  # no form could send it
        raise Refused(400, "The password on standard input has several lines. It must be one line.")
    return accounts.password_hash(password)
