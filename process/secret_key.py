"""The secret that signs sessions and cursors, in a file of its own beside the database."""

import contextlib
import os
import secrets
from pathlib import Path

from process.variables import SettingError


def kept_secret(data_dir: Path) -> str:
    """The secret in `data_dir`. The first start creates its file atomically; raises `SettingError`."""
    path = data_dir / "secret_key"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            unfinished = path.with_name(f".secret_key.{secrets.token_hex(4)}")
            with unfinished.open("w") as file:
                file.write(secrets.token_hex(32))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # another process created it first: use its key
                os.link(unfinished, path)
            unfinished.unlink()
        kept = path.read_text()
    except OSError as error:
        raise SettingError(f'DATA_DIR is "{data_dir}": {path}: {error.strerror}.') from None
    if not kept:
        raise SettingError(f"{path} is empty: remove it, and a new one is made.")
    return kept
