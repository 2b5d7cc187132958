"""`./pocketbell`: the commands as a program of its own, without Flask's commands.

It works in the project's directory, as `make run` does, so that relative settings mean the same to both. Must not
know any single command.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent


def main(project: Path = PROJECT, folder: Path = PROJECT) -> None:
    """Run the command that the arguments name, in `folder`, then end the process. The modules are in `project`."""
    can_interrupt = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if can_interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules are imported would print a traceback
    try:
        called_from = Path.cwd()
    except OSError as error:
        sys.exit(f"Error: Cannot find the current directory: {error.strerror}.")
    os.chdir(folder)
    sys.path[0] = str(project)  # Python put the program's own directory there
    with _installed():
        from flask.cli import ScriptInfo

        from cli import pocketbell
        from cli.base import CALLED_FROM
    info = ScriptInfo(create_app=_load_app, set_debug_flag=False)
    info.data[CALLED_FROM] = called_from
    if can_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    pocketbell.main(prog_name="pocketbell", obj=info)


def _load_app() -> Any:
    """The application; `--help` does without, so that a wrong setting does not hide it."""
    with _installed():
        from app import app
    return app


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    """End with a sentence if a package is missing, as it is after an update that needs a new one."""
    try:
        yield
    except ModuleNotFoundError as error:
        sys.exit(f'Error: The package {error.name} is not in .venv. Run "make run" first.')


if __name__ == "__main__":
    main()
