"""The secret that signs sessions and cursors, and from which the tokens of buttons are derived."""

import secrets
from pathlib import Path

from process.secret_key import keep_secret, kept_secret
from store.database import is_shared
from store.server_notes import ServerKey

NAME = "secret"


def server_secret(data_dir: Path) -> str:
    """The secret, made when it is first needed: in the database if processes elsewhere serve it too, else in a file.

    A file that a backup of a shared database wrote has the secret in it, which moves into the file beside it.
    Raises `SettingError` if that file cannot be used.
    """
    found = ServerKey.find(NAME)
    if is_shared():
        return found or ServerKey.put_first(NAME, secrets.token_hex(32))
    if found:
        keep_secret(data_dir, found)
        ServerKey.forget(NAME)
    return kept_secret(data_dir)


def brought(data_dir: Path, has_file: bool) -> bool:
    """Whether the database that was just filled is served with the same secret as before.

    That is the one that came with it, or else the one in the file of the service that moves, if there is one.
    """
    if ServerKey.find(NAME):
        return True
    if has_file and is_shared():
        ServerKey.put_first(NAME, kept_secret(data_dir))
    return has_file
