"""The commands for moving in from other programs: `import-ntfy`, `import-gotify`, `import-healthchecks`."""

from collections.abc import Callable, Mapping
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext

from cli.base import PIPE, CallersPath, Command, line, piped, with_options
from core import accounts, moving_in
from core.moving_in import Made, Plan
from models import Account
from process import clock
from store.engine import DatabaseRefused
from store.sqlite_foreign import Columns, Tables, read
from wire.strict_json import parse_json

with_file = click.argument("file", type=CallersPath())
with_dry_run = click.option("--dry-run", is_flag=True, help="Print what would be made, and make nothing.")


def _options(command: Callable[..., None]) -> Callable[..., None]:
    return with_options(command, click.argument("email"), with_file, with_dry_run)


@click.command("import-ntfy", cls=Command)
@_options
@with_appcontext
def import_ntfy(email: str, file: Path, dry_run: bool) -> None:
    """Make API keys for the users and tokens of ntfy. FILE is its auth-file, such as /var/lib/ntfy/user.db.

    Prints a line for each key, with the key, and one for each thing that cannot come along. Makes all or nothing.
    """
    account, now = accounts.find_account(email), clock.now_ms()
    tables = _tables(file, moving_in.OF_NTFY, "an auth-file of ntfy")
    _make(account, moving_in.from_ntfy(tables, now), now, dry_run)


@click.command("import-gotify", cls=Command)
@_options
@with_appcontext
def import_gotify(email: str, file: Path, dry_run: bool) -> None:
    """Make API keys for the applications of Gotify. FILE is its SQLite database, such as data/gotify.db.

    Prints a line for each key, with the key, and one for each thing that cannot come along. Makes all or nothing.
    """
    account, now = accounts.find_account(email), clock.now_ms()
    tables = _tables(file, moving_in.OF_GOTIFY, "a database of Gotify")
    _make(account, moving_in.from_gotify(tables), now, dry_run)


@click.command("import-healthchecks", cls=Command)
@click.argument("email")
@click.argument("file", type=CallersPath(allow_dash=True))
@with_dry_run
@with_appcontext
def import_healthchecks(email: str, file: Path, dry_run: bool) -> None:
    """Make heartbeats of the checks of Healthchecks, with their UUIDs. FILE has the answer of its API, or is -.

    curl -H "X-Api-Key: KEY" https://HOST/api/v3/checks/ prints it. Prints a line for each heartbeat, and one for each
    thing that cannot come along. Makes all or nothing.
    """
    account, now = accounts.find_account(email), clock.now_ms()
    text = piped("the answer", most=-1).encode() if file == PIPE else file.read_bytes()
    _make(account, moving_in.from_healthchecks(parse_json(text), now, account.time_zone), now, dry_run)


def _tables(file: Path, wanted: Mapping[str, Columns], kind: str) -> Tables:
    try:
        return read(file, wanted, kind)
    except DatabaseRefused as refused:
        raise click.ClickException(line(str(refused))) from None


def _make(account: Account, plan: Plan, now: int, dry_run: bool) -> None:
    for one in moving_in.make(account, plan, now, dry_run):
        click.echo(line(one.kind, one.name, "(not made)" if dry_run and one.text else _shown(one), one.remark))
    for sentence in plan.left:
        click.echo(line("left", sentence))


def _shown(made: Made) -> str:
    is_address = made.text.startswith("/")
    return (current_app.config["SETTINGS"].public_url if is_address else "") + (made.text or "-")
