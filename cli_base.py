"""What every command has: a database that exists, errors in one line, the form in which it prints (CONTRACT 1).

Must not know requests, SQL or any single command.
"""

import contextlib
import errno
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from flask.cli import AppGroup, ScriptInfo

from config import Settings
from store.database import DatabaseError, has_data
from wire.errors import Refused
from wire.notification import PRIORITIES

PRIORITY = click.Choice((*map(str, PRIORITIES.values()), *PRIORITIES))
OPEN_DATA = "open_data"  # the key in `app.extensions` of the function that opens the database


class OneLineErrors:
    """Turns the errors of a command into one line each, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and flush its output, so that a failed write is reported too."""
        try:
            result = super().invoke(ctx)  # type: ignore[misc]
            if sys.stdout:  # None if the shell closed it
                sys.stdout.flush()
        except BrokenPipeError:
            raise  # the reader of a pipe has gone: click exits without a message
        except UnicodeError:
            raise click.ClickException("An argument is not valid text.") from None
        except (Refused, DatabaseError, OSError) as error:
            _give_up_output(error)
            raise click.ClickException(line(str(_cause(error)))) from None
        return result


class Command(OneLineErrors, click.Command):
    """A command that needs an existing database."""

    def invoke(self, ctx: click.Context) -> Any:
        """Open the database, then run the command."""
        app = ctx.ensure_object(ScriptInfo).load_app()
        self.check(app.config["SETTINGS"])
        app.extensions[OPEN_DATA]()
        return super().invoke(ctx)

    def check(self, settings: Settings) -> None:
        """Refuse to run without a database: making one here would hide a mistyped DATA_DIR."""
        if not has_data(settings.database):
            kept = settings.database
            place = line(str(kept.parent.resolve() if isinstance(kept, Path) else kept))
            raise click.ClickException(
                f"There is no Pocketbell data in {place}. Set DATA_DIR or DATABASE_URL to what the service uses,"
                " or start there with: flask account create."
            )


class FirstCommand(Command):
    """A command that creates the database if there is none."""

    def check(self, settings: Settings) -> None:
        """Accept a missing database."""


class Group(OneLineErrors, AppGroup):
    """A group of commands that report errors in one line."""

    command_class = Command


def _cause(error: BaseException) -> BaseException:
    """The error that came first: if the rollback failed too, `error` is the rollback's.

    A `Refused` is said as it is: whoever raised it knew what came before.
    """
    before = error.__cause__ or error.__context__
    if isinstance(error, Refused) or not isinstance(before, (DatabaseError, OSError)):
        return error
    return _cause(before)


def _give_up_output(error: Exception) -> None:
    """Point stdout at /dev/null if the disk is full, so that the interpreter's flush at exit cannot fail again."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def number_or_word(priority: str) -> int | str:
    """A priority as an option gives it."""
    return int(priority) if priority.isdecimal() else priority


# --- printing -----------------------------------------------------------------------------------------------


def moment(at: int | None) -> str:
    """Milliseconds as ISO 8601 in UTC, or a dash."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at is not None else "-"


def line(*columns: str) -> str:
    """The columns joined by tabs, with each unprintable character replaced by a space so that it stays one line."""
    return "\t".join("".join(c if c.isprintable() else " " for c in column) for column in columns)
