"""The command that prints the manual page, made from the help of all commands: `man`."""

import inspect
from collections.abc import Iterator

import click

from config import VERSION

DESCRIPTION = (
    "Runs a notification service, manages it, and sends notifications. Most commands take your e-mail address first."
    " Settings are environment variables, or lines NAME=value of a file .env; the documentation, which the service"
    " serves under /docs/readme, lists them."
)
STATUS = "0 on success, 1 after an error (one line on standard error), 2 after a usage error."


@click.command("man")
@click.pass_context
def print_man_page(ctx: click.Context) -> None:
    """Print the manual page: pocketbell man | man -l -."""
    root = ctx.find_root()
    click.echo("\n".join(_page(root.command, root.info_name or "")))


def _page(program: click.Command, name: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "Pocketbell {VERSION}"'
    yield from (".SH NAME", f"{name} \\- self-hosted notification service", ".SH SYNOPSIS")
    yield from (f".B {name}", "[OPTIONS] COMMAND [ARGUMENTS]", ".SH DESCRIPTION", _plain(DESCRIPTION), ".SH COMMANDS")
    for path, command in _commands(program, name):
        yield from _command(path, command)
    yield from (".SH EXIT STATUS", _plain(STATUS))


def _commands(group: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Each command behind the words that call it."""
    if not isinstance(group, click.Group):
        yield path, group
        return
    for name, command in sorted(group.commands.items()):
        yield from _commands(command, f"{path} {name}")


def _command(path: str, command: click.Command) -> Iterator[str]:
    ctx = click.Context(command, info_name=path)
    yield f".SS {_plain(' '.join([path, *command.collect_usage_pieces(ctx)]))}"
    yield _plain(inspect.cleandoc(command.help or ""))
    for parameter in command.params:  # without --help, which each has
        words, told = parameter.get_help_record(ctx) or ("", "")
        if told:  # the usage names the arguments
            yield from (".TP", f".B {_plain(words)}", _plain(told))


def _plain(text: str) -> str:
    """The text for roff: backslashes, hyphens and dots at the beginning of a line mean nothing of their own."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    lines = [f"\\&{line}" if line[:1] in ("'", ".") else line or ".PP" for line in escaped.splitlines()]
    return "\n".join(lines)
