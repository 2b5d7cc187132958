"""The commands that run the service and that examine its installation: `serve`, `doctor`."""

import os
import sys
from pathlib import Path

import click
from flask import current_app

import config
from cli.base import Command, line
from core import doctor

PROGRAM = Path(config.__file__).parent


@click.command("serve")
def serve() -> None:
    """Run the service until Ctrl-C or SIGTERM. A first start prints the link that creates your account."""
    config.load()
    path = os.pathsep.join(filter(None, [str(PROGRAM), os.environ.get("PYTHONPATH")]))
    environ = {"PRINT_SETUP_LINK": "1", **os.environ, "PYTHONPATH": path}
    words = ["-m", "gunicorn", "--config", str(PROGRAM / "gunicorn.conf.py"), "--no-control-socket", "app:app"]
    os.execve(sys.executable, [sys.executable, *words], environ)  # noqa: S606 - our own program, without a shell


@click.command("doctor", cls=Command)
def examine() -> None:
    """Check this installation and say what to fix. Exits with status 1 if anything is bad."""
    findings = list(doctor.examine(current_app.config["SETTINGS"]))
    for check, level, words in findings:
        click.echo(f"{level:<5}{check:<16}{line(words)}")
    if any(one.level == "bad" for one in findings):
        raise SystemExit(1)
