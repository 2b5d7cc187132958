"""The secret that signs sessions and cursors, and from which the tokens of buttons are derived."""

import secrets
from pathlib import Path

from process.secret_key import keep_secret, kept_secret
from store.database import is_shared
from store.server_notes import ServerKey

NAME = "secret"


def server_secret(data_dir: Path) -> str:
    """The secret, made when it is first needed: in the database if it is shared by processes, else in a file.

    A backup of a shared database contains the secret, which moves into the file beside it. Raises `SettingError` if
    that file cannot be used.
    """
    found = ServerKey.find(NAME)
    if is_shared():
        return found or ServerKey.put_first(NAME, secrets.token_hex(32))
    if found:
        keep_secret(data_dir, found)
        ServerKey.forget(NAME)
    return kept_secret(data_dir)


def brought(data_dir: Path, has_file: bool) -> bool:
    """Whether the imported database keeps its secret: its own, or else the one in the moving service's file."""
    if ServerKey.find(NAME):
        return True
    if has_file and is_shared():
        ServerKey.put_first(NAME, kept_secret(data_dir))
    return has_file
