"""The parts of every command: a database that exists, errors in one line, standard input, lists.

Must not know requests, SQL or any single command.
"""

import contextlib
import errno
import functools
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import click
from flask import current_app
from flask.cli import ScriptInfo

from config import Settings
from core import accounts
from settings.variables import printable
from store.database import DatabaseError, DatabaseRefused, has_data, patiently
from store.sqlite_lock import note_of_service
from wire.errors import SENTENCES, Refused
from wire.notification import PRIORITIES

PRIORITY = click.Choice[int | str]((*PRIORITIES.values(), *PRIORITIES))
OPEN_DATA = "open_data"  # the key in `app.extensions` of the function that opens the database
CALLED_FROM = "called_from"  # the key in `ScriptInfo.data` of the directory in which `./pocketbell` was called
MAX_PIPED_CHARACTERS = 1 << 20
PIPE = Path("-")  # standard input, in the place of a file
INTERRUPTED = 130  # the status that shells give a program that Ctrl-C ended


class OneLineErrors:
    """Turns the errors of a command into one line each, without a traceback."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the arguments, or print the help."""
        with _one_line_errors():
            return super().make_context(*args, **kwargs)  # type: ignore[misc, no-any-return]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and flush its output, so that a failed write is reported too."""
        with _one_line_errors():
            result = super().invoke(ctx)  # type: ignore[misc]
            if sys.stdout:  # None if the shell closed it
                sys.stdout.flush()
            return result


class Command(OneLineErrors, click.Command):
    """A command that needs an existing database."""

    def invoke(self, ctx: click.Context) -> Any:
        """Open the database, then run the command with the application as Flask's `current_app`."""
        app = ctx.ensure_object(ScriptInfo).load_app()
        settings = app.config["SETTINGS"]
        with _one_line_errors():
            self.check(settings)
        if isinstance(settings.database, Path) and (said := note_of_service(settings.database)):
            app.config["SETTINGS"] = settings.at(said)
        with app.app_context(), patiently():
            app.extensions[OPEN_DATA]()
            return super().invoke(ctx)

    def check(self, settings: Settings) -> None:
        """Refuse to run without a database: making one here would hide a mistyped DATA_DIR."""
        if not has_data(settings.database):
            kept = settings.database
            place = line(str(kept.parent.resolve() if isinstance(kept, Path) else kept))
            raise click.ClickException(
                f"There is no Pocketbell data in {place}. Set DATA_DIR or DATABASE_URL to what the service uses,"
                " or start there with: ./pocketbell account create."
            )


class FirstCommand(Command):
    """A command that creates the database if there is none."""

    def check(self, settings: Settings) -> None:
        """Accept a missing database."""


class Group(OneLineErrors, click.Group):
    """A group of commands that report errors in one line."""

    command_class = Command


class CallersPath(click.Path):
    """A file as the caller named it: `./pocketbell` works in the project's directory, wherever it was called."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, in the directory of the call unless it is absolute."""
        info = ctx.find_object(ScriptInfo) if ctx else None
        called_from: Path = info.data.get(CALLED_FROM, Path()) if info else Path()
        path = os.fsdecode(super().convert(value, param, ctx))
        return PIPE if self.allow_dash and path == "-" else called_from / path


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of a pipe has gone: click exits without a message
    except UnicodeError:
        raise click.ClickException("An argument is not valid text.") from None
    except (Refused, DatabaseError, DatabaseRefused, OSError) as error:
        _give_up_output(error)
        raise click.ClickException(line(_said(_cause(error)))) from None
    except click.ClickException as error:
        printable = "\n".join(map(line, error.message.splitlines()))
        error.message = printable  # type: ignore[misc]  # it may quote an argument
        raise
    except (KeyboardInterrupt, click.Abort) as error:
        if isinstance(error, click.Abort) and not isinstance(error.__context__, KeyboardInterrupt):
            raise  # the input of a prompt has ended
        click.echo(err=True)  # behind the ^C that the terminal shows
        raise click.exceptions.Exit(INTERRUPTED) from None


def _cause(error: BaseException) -> BaseException:
    """The first error: if the rollback failed too, `error` is the rollback's. A refusal is never a consequence."""
    before = error.__cause__ or error.__context__
    if isinstance(error, (Refused, SystemExit)) or not isinstance(before, (DatabaseError, OSError)):
        return error
    return _cause(before)


def _said(error: BaseException) -> str:
    """The error's sentence, without the number that Python puts before a system's error."""
    if isinstance(error, Refused) and error.message == SENTENCES[404]:
        return "Not found: no such id."  # a command has no address
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.strerror}: {os.fsdecode(error.filename)}" if error.filename else error.strerror


def _give_up_output(error: BaseException) -> None:
    """Point stdout at /dev/null if the disk is full, so that the interpreter's flush at exit cannot fail again."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def options(*each: Callable[..., Any]) -> Callable[..., Any]:
    """These options of click's as one, in this order."""
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(each), command)


def of_account(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command the account that EMAIL names, as its first argument."""

    @click.argument("email")
    @functools.wraps(command)
    def run(email: str, **others: Any) -> Any:
        return command(accounts.find_account(email), **others)

    return run


def link(path: str) -> str:
    """The path as an address of the service."""
    return str(current_app.config["SETTINGS"].public_url) + path


def piped(what: str, most: int = MAX_PIPED_CHARACTERS) -> str:
    """The text on standard input, without the line end behind it; `Refused` (400) if it is none.

    Its first `most` characters; -1: all of it.
    """
    if not isinstance(sys.stdin, TextIOWrapper):
        raise Refused(400, f"Cannot read {what}: standard input is closed.")
    if sys.stdin.isatty():
        click.echo(f"Type {what}, then press Enter and Ctrl-D.", err=True)
    try:
        sys.stdin.reconfigure(encoding="utf-8", errors="strict", newline="")
        return sys.stdin.read(most).removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Refused(400, f"{what.capitalize()} on standard input is not UTF-8.") from None


# --- printing -----------------------------------------------------------------------------------------------


def moment(at: int | None) -> str:
    """Milliseconds as ISO 8601 in UTC, or a dash."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at is not None else "-"


def line(*columns: str) -> str:
    """The columns joined by tabs, with each unprintable character replaced by a space so that it stays one line."""
    return "\t".join(map(printable, columns))


# --- lists --------------------------------------------------------------------------------------------------


WHOLE = ("id", "email", "preview", "address")  # columns that are worth nothing if they are shortened
FIRST = ("id", "email", "name", "address")  # columns that get room before the others
MIN_SHORTENED = 11  # characters, so that a time keeps its day: 2026-11-21…
GAP = 2

with_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document; times are Unix milliseconds."
)


class Row(NamedTuple):
    """A row of a list: its shape in the REST API, and its columns as text."""

    shape: dict[str, Any]
    columns: tuple[str, ...]


def lists(nouns: str, *headings: str) -> Callable[[Callable[..., Iterable[Row]]], Callable[..., None]]:
    """Make a command of a function that returns rows: it prints them, and its help names the columns."""

    def decorate(rows: Callable[..., Iterable[Row]]) -> Callable[..., None]:
        @with_json
        @functools.wraps(rows)
        def command(*, as_json: bool, **arguments: Any) -> None:
            print_list(nouns, headings, rows(**arguments), as_json)

        command.__doc__ = f"{rows.__doc__}\n\nA line is: {', '.join(headings)}."
        return command

    return decorate


def print_list(nouns: str, headings: Sequence[str], rows: Iterable[Row], as_json: bool) -> None:
    """Print the rows: with `as_json` a JSON array, on a terminal a table, else a line each with tabs."""
    listed = list(rows)
    if as_json:
        click.echo(json.dumps([row.shape for row in listed], indent=2))  # in ASCII, with escapes
    elif width := _terminal_width():
        _print_table(nouns, headings, [row.columns for row in listed], width)
    else:
        for row in listed:
            click.echo(line(*row.columns))


def _terminal_width() -> int | None:
    """The columns of the terminal that stdout is, or None."""
    return shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else None


def _print_table(nouns: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]], width: int) -> None:
    if not rows:
        click.echo(f"There are no {nouns}.")
        return
    lines = [[heading.upper() for heading in headings], *([line(cell) for cell in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    fitted = _fitted(widths, headings, width)
    for cells in lines:
        click.echo((" " * GAP).join(_padded(cells[place], room) for place, room in fitted.items()).rstrip())
    left_out = [heading.upper() for place, heading in enumerate(headings) if place not in fitted]
    if left_out:
        click.echo(
            f"This terminal has no room for {', '.join(left_out)}; a pipe (| cat) and --json have all.", err=True
        )


def _fitted(widths: Sequence[int], headings: Sequence[str], width: int) -> dict[int, int]:
    """The places of the columns that fit into `width`, and how wide each is. The first one is always there."""
    fitted, room = dict[int, int](), width + GAP
    for place in sorted(range(len(headings)), key=lambda place: headings[place] not in FIRST):
        heading, own = headings[place], widths[place]
        least = own if heading in WHOLE else min(own, max(len(heading), MIN_SHORTENED))
        if place == 0 or least + GAP <= room:
            fitted[place] = least
            room -= least + GAP
    while room > 0 and (short := [place for place in fitted if fitted[place] < widths[place]]):
        fitted[min(short, key=fitted.__getitem__)] += 1
        room -= 1
    return dict(sorted(fitted.items()))


def _width(text: str) -> int:
    """How many columns a terminal takes for it."""
    return sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in text if not unicodedata.combining(one))


def _padded(text: str, width: int) -> str:
    """The text in exactly `width` columns, shortened with `…` if it is longer."""
    if _width(text) > width:
        kept = ""
        while _width(kept + text[len(kept)]) < width:
            kept += text[len(kept)]
        text = f"{kept}…"
    return text + " " * (width - _width(text))
