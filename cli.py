"""The command line: parses arguments, calls the core, prints the result (CONTRACT 1, Command line).

It must not know requests or SQL. Every command can run while the service is running. An error is one line
on stderr with exit status 1.
"""

import codecs
import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from flask import Flask, current_app
from flask.cli import with_appcontext

import push
from cli_alerts import alert
from cli_base import (
    OPEN_DATA,
    PRIORITY,
    CallersPath,
    Command,
    FirstCommand,
    Group,
    Row,
    line,
    moment,
    number_or_word,
    print_list,
    with_json,
)
from cli_heartbeats import heartbeat
from cli_moving import import_file
from cli_rules import rule
from config import VERSION
from core import accounts, deletion, delivery, devices, doctor
from core.local_time import moment_ms
from core.plans import PLANS
from models import Account, ApiKey, Device
from process import clock
from providers import PROVIDERS
from store.database import EVERYBODY, copy_database, transaction
from store.senders import Owner
from web import shapes
from wire.errors import Refused
from wire.notification import checked_content

account = Group("account", help="Manage accounts.")
key = Group("key", help="Manage API keys.")
device = Group("device", help="Manage the devices that get push notifications.")
history = Group("history", help="Delete notifications from the history.")
metric = Group("metric", help="Delete metrics.")
MAX_PIPED_BYTES = 1 << 20
UTF8 = codecs.getincrementaldecoder("utf-8")
with_plan = click.option("--plan", type=click.Choice(tuple(PLANS)), help="Sets rate limits and days of history.")
with_password = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")


def add_commands(app: Flask, open_data: Callable[[], None]) -> None:
    """Register the commands with `flask`, too; each calls `open_data` before it runs."""
    app.extensions[OPEN_DATA] = open_data
    for command in pocketbell.commands.values():
        app.cli.add_command(command)


# --- account ------------------------------------------------------------------------------------------------


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
        click.echo(current_app.config["SETTINGS"].public_url + accounts.make_link(created, clock.now_ms()))


@account.command("list")
@with_json
def list_accounts(as_json: bool) -> None:
    """List the accounts.

    A line is: email, plan, time zone, created, quiet hours.
    """
    rows = (
        Row(
            shapes.account(one),
            (one.email, one.plan, one.time_zone, moment(one.created_at), one.quiet_hours or "-"),
        )
        for one in Account.all()
    )
    print_list("accounts", ("email", "plan", "time zone", "created", "quiet hours"), rows, as_json)


@account.command("set")
@click.argument("email")
@with_plan
@click.option("--timezone", metavar="ZONE", help="An IANA name, such as Europe/Berlin.")
@click.option("--quiet-hours", metavar="HH:MM-HH:MM|off", help="Hold alerts during these hours, such as 22:00-07:00.")
@with_password
@click.option("--password-link", is_flag=True, help="Print a one-time link to set a new password and sign in.")
def set_account(
    email: str,
    plan: str | None,
    timezone: str | None,
    quiet_hours: str | None,
    password_stdin: bool,
    password_link: bool,
) -> None:
    """Change an account's plan, time zone, quiet hours or password."""
    changed = accounts.find_account(email)
    hashed = _piped_password_hash() if password_stdin else None
    days = PLANS[plan or changed.plan].history_days
    change = None if timezone is None else accounts.zone_change(changed, timezone, days, clock.now_ms())
    with transaction(changed.seq):
        if plan:
            accounts.set_plan(changed, plan)
        if change:
            accounts.set_time_zone(changed, change)
        if quiet_hours is not None:
            accounts.set_quiet_hours(changed, None if quiet_hours == "off" else quiet_hours)
        if hashed:
            accounts.set_password(changed, hashed)
    if password_link:
        click.echo(current_app.config["SETTINGS"].public_url + accounts.make_link(changed, clock.now_ms()))
        return
    now = accounts.find_account(email)
    held = f"quiet hours {now.quiet_hours}" if now.quiet_hours else "no quiet hours"
    click.echo(f"{line(now.email)}: plan {now.plan}, time zone {now.time_zone}, {held}.")


@account.command("delete")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Confirm: this cannot be undone.")
def delete_account(email: str, yes: bool) -> None:
    """Delete an account and everything it has."""
    deleted = accounts.find_account(email)
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
    password = _piped("the password")
    if "\n" in password or "\r" in password:  # no form could send it
        raise Refused(400, "The password on standard input has several lines. It must be one line.")
    return accounts.password_hash(password)


def _piped(what: str) -> str:
    """What comes on standard input, without the line end behind it."""
    if not sys.stdin:
        raise Refused(400, f"Cannot read {what}: standard input is closed.")
    if sys.stdin.isatty():
        click.echo(f"Type {what}, then press Enter and Ctrl-D.", err=True)
    try:
        data = sys.stdin.buffer.read(MAX_PIPED_BYTES)
        is_whole = len(data) < MAX_PIPED_BYTES  # otherwise it may end within a character
        return UTF8().decode(data, is_whole).removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Refused(400, f"{what.capitalize()} on standard input is not UTF-8.") from None


# --- key ----------------------------------------------------------------------------------------------------


@key.command("create")
@click.argument("email")
@click.argument("name")
def create_key(email: str, name: str) -> None:
    """Create an API key and print it. It is shown only this once."""
    _, full_key = accounts.create_key(accounts.find_account(email).seq, name, clock.now_ms(), is_distinct=True)
    click.echo(full_key)


@key.command("list")
@click.argument("email")
@with_json
def list_keys(email: str, as_json: bool) -> None:
    """List the API keys, revoked ones too.

    A line is: id, preview, name, created, last used, revoked.
    """
    rows = (
        Row(
            shapes.listed_key(one),
            (one.id, one.preview, one.name, *map(moment, (one.created_at, one.last_used_at, one.revoked_at))),
        )
        for one in ApiKey.of_account(accounts.find_account(email).seq)
    )
    print_list("keys", ("id", "preview", "name", "created", "last used", "revoked"), rows, as_json)


@key.command("revoke")
@click.argument("email")
@click.argument("key_id")
def revoke_key(email: str, key_id: str) -> None:
    """Revoke a key. This cannot be undone."""
    accounts.revoke_key(accounts.find_account(email).seq, key_id, clock.now_ms())
    click.echo(f"Revoked the key {line(key_id)}.")


# --- device -------------------------------------------------------------------------------------------------


@device.command("add")
@click.argument("email")
@click.argument("kind", type=click.Choice(sorted(PROVIDERS)))
@click.argument("token", metavar="[TOKEN|SUBSCRIPTION_JSON]", required=False)
@click.option("--name", help="Name to show on the Devices page.")
def add_device(email: str, kind: str, token: str | None, name: str | None) -> None:
    """Add a device and print its id.

    Of one that fetches, which takes no TOKEN, print the address to subscribe to.
    """
    if (token is None) != PROVIDERS[kind].is_fetched:
        raise click.UsageError(f"A device of the kind {kind} takes {'a' if token is None else 'no'} TOKEN.")
    owner, registration = accounts.find_account(email), PROVIDERS[kind].registration(token) if token else {}
    added = devices.add_device(owner.seq, {"kind": kind, "name": name, **registration}, clock.now_ms())
    click.echo(f"{current_app.config['SETTINGS'].public_url}/{added.topic}" if added.topic else added.id)
    if kind not in push.configured():
        click.echo(f"Warning: {push.not_configured(kind)} Until that changes, this device gets nothing.", err=True)


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
@click.option("--min-priority", type=PRIORITY, required=True, help="Push only this priority and higher.")
def set_device(email: str, device_id: str, min_priority: str) -> None:
    """Change a device."""
    owner = accounts.find_account(email)
    changed = devices.set_min_priority(owner.seq, device_id, number_or_word(min_priority))
    click.echo(line(f"{changed.name}: priority {changed.min_priority} and higher."))


@device.command("remove")
@click.argument("email")
@click.argument("device_id")
def remove_device(email: str, device_id: str) -> None:
    """Remove a device."""
    devices.remove_device(accounts.find_account(email).seq, device_id, clock.now_ms())
    click.echo(f"Removed the device {line(device_id)}.")


# --- send ---------------------------------------------------------------------------------------------------


@click.command("send", cls=Command)
@click.argument("email")
@click.argument("title")
@click.argument("body", required=False)
@click.option(
    "--priority", type=PRIORITY, help="1 (min) is not pushed, 2 (low) is silent, 5 (urgent) stays on the screen."
)
@click.option("--url", help="Address to open when the notification is tapped.")
@click.option("--tag", help="Replace the earlier notifications with this tag.")
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
    said: dict[str, Any] = {
        "title": title,
        "body": _piped("the body") if body is None else body,
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


# --- history and metrics ------------------------------------------------------------------------------------


@history.command("delete")
@click.argument("email")
@click.option("--before", required=True, metavar="YYYY-MM-DD", help="Delete notifications from before this day.")
def delete_history(email: str, before: str) -> None:
    """Delete older notifications. Those that are held or pending are never sent."""
    deleted = deletion.delete_history(accounts.find_account(email), before)
    click.echo(f"Deleted {_counted(deleted, 'notification')} from before {before}.")


@metric.command("delete")
@click.argument("email")
@click.argument("project")
@click.argument("metric_id", metavar="[METRIC]", required=False)
def delete_metric(email: str, project: str, metric_id: str | None) -> None:
    """Delete a metric with all its values.

    Without METRIC, delete the whole project.
    """
    deleted = deletion.delete_metrics(accounts.find_account(email), project, metric_id)
    click.echo(line(f"Deleted {_counted(deleted, 'value')} of {project if metric_id is None else metric_id}."))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# --- backup -------------------------------------------------------------------------------------------------


@click.command("backup", cls=Command)
@click.argument("file", type=CallersPath())
def backup(file: Path) -> None:
    """Write a consistent copy of the live database.

    FILE must not exist.
    """
    delivery.vapid_key()  # makes the VAPID key if there is none: browsers that subscribe later depend on it
    if file.is_dir():
        raise Refused(400, f"{file.resolve()} is a directory: name the file to write.")
    if not file.parent.is_dir():
        raise Refused(400, f"There is no directory {file.parent}.")
    try:
        copy_database(file)
    except OSError as error:
        # These errors name the temporary file of the copy, which means nothing to the user: name the directory.
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
            raise Refused(400, f"Cannot write to {file.parent.resolve()}: {error.strerror}.") from None
        raise
    click.echo(line(f"Wrote {file} ({file.stat().st_size} bytes)."))


# --- doctor -------------------------------------------------------------------------------------------------


@click.command("doctor", cls=Command)
@with_appcontext
def examine() -> None:
    """Check this installation and say what to fix. Exits with status 1 if anything is bad."""
    findings = list(doctor.examine(current_app.config["SETTINGS"]))
    for check, level, words in findings:
        click.echo(f"{level:<5}{check:<16}{line(words)}")
    if any(one.level == "bad" for one in findings):
        raise SystemExit(1)


# --- all of them --------------------------------------------------------------------------------------------


pocketbell = Group("pocketbell", help="Manage Pocketbell and send. All but import works while the service runs.")
click.version_option(VERSION, message="Pocketbell %(version)s")(pocketbell)
for _command in (account, key, alert, heartbeat, rule, device, history, metric, send, backup, import_file, examine):
    pocketbell.add_command(_command)
