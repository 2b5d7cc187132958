"""The secret that signs sessions and cursors, in a file of its own beside the database."""

import contextlib
import os
import secrets
from pathlib import Path

from process.variables import SettingError


def secret_file(data_dir: Path) -> Path:
    """The path of the file."""
    return data_dir / "secret_key"


def kept_secret(data_dir: Path) -> str:
    """The secret in `data_dir`. The first start creates its file atomically; raises `SettingError`."""
    path = secret_file(data_dir)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            unfinished = _written(path, secrets.token_hex(32))
            with contextlib.suppress(FileExistsError):  # another process created it first: use its key
                os.link(unfinished, path)
            unfinished.unlink()
        kept = path.read_text()
    except OSError as error:
        raise _cannot_be_used(data_dir, error) from None
    if not kept:
        raise SettingError(f"{path} is empty: remove it, and a new one is made.")
    return kept


def keep_secret(data_dir: Path, secret: str) -> None:
    """Make this the secret in `data_dir`; raises `SettingError`."""
    try:
        _written(secret_file(data_dir), secret).replace(secret_file(data_dir))
    except OSError as error:
        raise _cannot_be_used(data_dir, error) from None


def _written(path: Path, secret: str) -> Path:
    """A file beside `path` with this secret, which is on the disk."""
    unfinished = path.with_name(f".secret_key.{secrets.token_hex(4)}")
    with unfinished.open("w") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    return unfinished


def _cannot_be_used(data_dir: Path, error: OSError) -> SettingError:
    return SettingError(f'DATA_DIR is "{data_dir}": {secret_file(data_dir)}: {error.strerror}.')
