"""The command that fills a database from an SQLite file (CONTRACT 1, 11). It must not know requests or SQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext

from cli_base import CallersPath, FirstCommand, line
from config import Settings
from core import moving
from process.service_lock import InUse
from store.database import DatabaseRefused

SHOWN = (  # tables, and what a row of each is called
    ("account", "account"),
    ("api_key", "API key"),
    ("alert", "alert"),
    ("device", "device"),
    ("notification", "notification"),
    ("metric", "metric value"),
)
FOUND = "found"  # the key in the context's `meta` of what `prepare` returned
SIGN_IN_AGAIN = " The secret that signs sessions did not come with it: people sign in again."


class ImportCommand(FirstCommand):
    """A command that fills the database that the settings name, which it makes if there is none."""

    def check(self, settings: Settings) -> None:
        """Refuse a file or a database that will not do, before any file or table is made."""
        context = click.get_current_context()
        with _refusals():
            context.meta[FOUND] = moving.prepare(context.params["file"], settings)


@click.command("import", cls=ImportCommand)
@click.argument("file", type=CallersPath())
@with_appcontext
def import_file(file: Path) -> None:
    """Fill an empty database, which the settings name, from the backup FILE: with all of it or nothing."""
    has_secret = click.get_current_context().meta[FOUND]
    with _refusals():
        moved = moving.import_file(file, current_app.config["SETTINGS"], has_secret)
    brought = ", ".join(f"{moved.counts[table]:,} {word}{'s' * (moved.counts[table] != 1)}" for table, word in SHOWN)
    click.echo(line(f"Imported {brought}.") + ("" if moved.keeps_sessions else SIGN_IN_AGAIN))


@contextmanager
def _refusals() -> Iterator[None]:
    """Say in one line why a file or a database is refused."""
    try:
        yield
    except (DatabaseRefused, InUse, OSError) as refusal:
        raise click.ClickException(line(str(refusal))) from None
