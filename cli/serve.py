"""The command that runs the service: `serve`, as `make run` does where there is no make."""

import os
import sys
from pathlib import Path

import click

import config

PROGRAM = Path(config.__file__).parent


@click.command("serve")
def serve() -> None:
    """Run the service until Ctrl-C or SIGTERM. A first start prints the link that creates your account."""
    config.load()
    path = os.pathsep.join(filter(None, [str(PROGRAM), os.environ.get("PYTHONPATH")]))
    environ = {"PRINT_SETUP_LINK": "1", **os.environ, "PYTHONPATH": path}
    words = ["-m", "gunicorn", "--config", str(PROGRAM / "gunicorn.conf.py"), "--no-control-socket", "app:app"]
    os.execve(sys.executable, [sys.executable, *words], environ)  # noqa: S606 - our own program, without a shell
