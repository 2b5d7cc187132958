"""The commands that copy a database into a file and fill one from such a file: `backup`, `import`."""

import errno
from pathlib import Path

import click
from flask import current_app

from cli.base import CallersPath, Command, FirstCommand, line
from config import Settings
from core import delivery, moving
from store import pictures
from store.database import copy_database
from wire.errors import Refused
from wire.validation import counted

SHOWN = (  # tables, and the noun for a row of each
    ("account", "account"),
    ("api_key", "API key"),
    ("alert", "alert"),
    ("device", "device"),
    ("notification", "notification"),
    ("metric", "metric value"),
)
FOUND = "found"  # the key in the context's `meta` of the result of `prepare`
SIGN_IN_AGAIN = " The secret that signs sessions did not come with it: people sign in again."


@click.command("backup", cls=Command)
@click.argument("file", type=CallersPath())
@click.option("--without-images", is_flag=True, help="Leave the pictures of notifications out.")
def backup(file: Path, without_images: bool) -> None:
    """Write a consistent copy of the live database. FILE must not exist."""
    delivery.vapid_key()  # makes the VAPID key if there is none: browsers that subscribe later depend on it
    if file.is_dir():
        raise Refused(400, f"{file.resolve()} is a directory: name the file to write.")
    if not file.parent.is_dir():
        raise Refused(400, f"There is no directory {file.parent}.")
    try:
        copy_database(file, pictures.REMOVE_ALL if without_images else ())
    except OSError as error:
        # These errors name the temporary file of the copy, which means nothing to the user: name the directory.
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
            raise Refused(400, f"Cannot write to {file.parent.resolve()}: {error.strerror}.") from None
        raise
    click.echo(line(f"Wrote {file} ({file.stat().st_size} bytes)."))


class ImportCommand(FirstCommand):
    """A command that fills the database that the settings name, which it makes if there is none."""

    def check(self, settings: Settings) -> None:
        """Refuse a file or a database that will not do, before any file or table is made."""
        context = click.get_current_context()
        context.meta[FOUND] = moving.prepare(context.params["file"], settings)


@click.command("import", cls=ImportCommand)
@click.argument("file", type=CallersPath())
def import_file(file: Path) -> None:
    """Import the backup FILE into the empty database that the settings name: all of it or nothing."""
    has_secret = click.get_current_context().meta[FOUND]
    counts, keeps_sessions = moving.import_file(file, current_app.config["SETTINGS"], has_secret)
    brought = ", ".join(counted(counts[table], word) for table, word in SHOWN)
    click.echo(line(f"Imported {brought}.") + ("" if keeps_sessions else SIGN_IN_AGAIN))
