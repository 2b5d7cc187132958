"""The program that pipx and `uv tool` install: the same commands, with the data in the user's own folder.

A checkout keeps `data` and `.env` beside the program. Here an upgrade replaces that place, so both are in
`~/.local/share/pocketbell` (`XDG_DATA_HOME`), where the service and its commands work. Must not know any command.
"""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run the command that the arguments name, in the user's folder."""
    program = Path(__file__).resolve().parent
    sys.path.insert(0, str(program))
    from cli.__main__ import main as run

    folder = _folder()
    if (folder / ".env").is_file():
        os.environ.setdefault("POCKETBELL_ENV", str(folder / ".env"))
    run(program, folder)


def _folder() -> Path:
    """The folder, made if it is missing."""
    try:
        shared = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        folder = Path(shared) / "pocketbell"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # a user may have no home
        sys.exit(f"Error: There is no folder for Pocketbell's data: {error}. Set XDG_DATA_HOME.")
    return folder
