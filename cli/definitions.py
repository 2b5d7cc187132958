"""The commands for a file of definitions: `apply` and `export`."""

from pathlib import Path

import click

from cli.base import PIPE, CallersPath, Command, line, of_account, piped
from core import definition_files
from models import Account
from process import clock
from wire.errors import Refused


@click.command("apply", cls=Command)
@of_account
@click.argument("file", type=CallersPath(allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Print the changes, and make none.")
@click.option("--prune", is_flag=True, help="Remove the alerts, heartbeats and rules that FILE does not name.")
def apply_file(owner: Account, file: Path, dry_run: bool, prune: bool) -> None:
    """Apply the alerts, heartbeats, rules and account settings in FILE (TOML).

    Prints a line for each change. Makes all changes or none. FILE may be -, for standard input.
    """
    wanted = definition_files.File(_text(file))
    changes = definition_files.apply(owner, wanted, clock.now_ms(), prune, dry_run)
    for change in changes or ["Nothing changes."]:
        click.echo(line(change))


@click.command("export", cls=Command)
@of_account
def export_file(owner: Account) -> None:
    """Print alerts, heartbeats, rules and the account's settings as a file for apply."""
    click.echo(definition_files.text_of(owner), nl=False)


def _text(file: Path) -> str:
    if file == PIPE:
        return piped("the file", most=-1)
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "The file is not UTF-8.") from None
