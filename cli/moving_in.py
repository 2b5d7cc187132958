"""The commands for moving in from other programs: `import-ntfy`, `import-gotify`, `import-healthchecks`."""

from pathlib import Path

import click

from cli.base import PIPE, CallersPath, Command, line, link, of_account, piped
from core import moving_in
from core.moving_in import Made, Plan
from models import Account
from process import clock
from store.sqlite_file import read_tables
from wire.strict_json import parse_json

with_database = click.argument("file", type=CallersPath())
with_dry_run = click.option("--dry-run", is_flag=True, help="Print what would be made, and make nothing.")


@click.command("import-ntfy", cls=Command)
@of_account
@with_database
@with_dry_run
def import_ntfy(account: Account, file: Path, dry_run: bool) -> None:
    """Make API keys for the users and tokens of ntfy. FILE is its auth-file, such as /var/lib/ntfy/user.db.

    Prints a line for each key, with the key, and one for each thing that is not imported. Imports all or nothing.
    """
    tables = read_tables(file, moving_in.OF_NTFY, "an auth-file of ntfy")
    _make(account, moving_in.from_ntfy(tables, clock.now_ms()), dry_run)


@click.command("import-gotify", cls=Command)
@of_account
@with_database
@with_dry_run
def import_gotify(account: Account, file: Path, dry_run: bool) -> None:
    """Make API keys for the applications of Gotify. FILE is its SQLite database, such as data/gotify.db.

    Prints a line for each key, with the key, and one for each thing that is not imported. Imports all or nothing.
    """
    tables = read_tables(file, moving_in.OF_GOTIFY, "a database of Gotify")
    _make(account, moving_in.from_gotify(tables), dry_run)


@click.command("import-healthchecks", cls=Command)
@of_account
@click.argument("file", type=CallersPath(allow_dash=True))
@with_dry_run
def import_healthchecks(account: Account, file: Path, dry_run: bool) -> None:
    """Make heartbeats from Healthchecks' checks, with their UUIDs. FILE is its API's answer, or - for standard input.

    curl -H "X-Api-Key: KEY" https://HOST/api/v3/checks/ prints it. Prints a line for each heartbeat, and one for each
    thing that is not imported. Imports all or nothing.
    """
    text = piped("the answer", most=-1).encode() if file == PIPE else file.read_bytes()
    plan = moving_in.from_healthchecks(parse_json(text), clock.now_ms(), account.time_zone)
    _make(account, plan, dry_run)


def _make(account: Account, plan: Plan, dry_run: bool) -> None:
    for one in moving_in.make(account, plan, clock.now_ms(), dry_run):
        click.echo(line(one.kind, one.name, "(not made)" if dry_run and one.text else _shown(one), one.remark))
    for sentence in plan.left:
        click.echo(line("left", sentence))


def _shown(made: Made) -> str:
    return link(made.text) if made.text.startswith("/") else made.text or "-"
