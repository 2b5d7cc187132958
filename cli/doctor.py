"""The command that examines the installation: `doctor`."""

import click
from flask import current_app

from cli.base import Command, line
from core import doctor


@click.command("doctor", cls=Command)
def examine() -> None:
    """Check this installation and say what to fix. Exits with status 1 if anything is bad."""
    findings = list(doctor.examine(current_app.config["SETTINGS"]))
    for check, level, words in findings:
        click.echo(f"{level:<5}{check:<16}{line(words)}")
    if any(one.level == "bad" for one in findings):
        raise SystemExit(1)
