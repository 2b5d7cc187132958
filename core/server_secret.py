"""The secret that signs sessions and cursors, and from which the tokens of buttons and pictures are derived.

It is in the database if processes share that, else in a file of its own. Every function raises `SettingError` if the
file cannot be used.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from settings.variables import SettingError
from store import server_notes
from store.database import is_shared

NAME = "secret"


def secret_file(data_dir: Path) -> Path:
    """The path of the file."""
    return data_dir / "secret_key"


def server_secret(data_dir: Path) -> str:
    """The secret, made when it is first needed; one in a shared database's backup moves into the file."""
    found = server_notes.find_key(NAME)
    if is_shared():
        return found or server_notes.put_first_key(NAME, secrets.token_hex(32))
    if found:
        with _refusing(data_dir):
            _written(data_dir, found).replace(secret_file(data_dir))
        server_notes.forget_key(NAME)
    return _kept(data_dir)


def brought(data_dir: Path, has_file: bool) -> bool:
    """Whether the imported database keeps its secret: its own, or else the one in the moving service's file."""
    if server_notes.find_key(NAME):
        return True
    if has_file and is_shared():
        server_notes.put_first_key(NAME, _kept(data_dir))
    return has_file


def _kept(data_dir: Path) -> str:
    """The secret in the file, which the first start creates atomically."""
    path = secret_file(data_dir)
    with _refusing(data_dir):
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            unfinished = _written(data_dir, secrets.token_hex(32))
            with contextlib.suppress(FileExistsError):  # another process created it first: use its key
                os.link(unfinished, path)
            unfinished.unlink()
        kept = path.read_text()
    if not kept:
        raise SettingError(f"{path} is empty: remove it, and a new one is made.")
    return kept


def _written(data_dir: Path, secret: str) -> Path:
    """A file beside the secret's with this secret, which is on the disk."""
    unfinished = data_dir / f".secret_key.{secrets.token_hex(4)}"
    with unfinished.open("w") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    return unfinished


@contextlib.contextmanager
def _refusing(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SettingError(f'DATA_DIR is "{data_dir}": {secret_file(data_dir)}: {error.strerror}.') from None
