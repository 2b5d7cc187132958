"""The secret that signs sessions and cursors, and from which the tokens of buttons are derived."""

import secrets
from pathlib import Path

from process.secret_key import kept_secret
from store.database import is_shared
from store.server_notes import ServerKey

NAME = "secret"


def server_secret(data_dir: Path) -> str:
    """The secret, made when it is first needed: in the database if processes elsewhere serve it too, else in a file.

    Raises `SettingError` if the file cannot be used.
    """
    if is_shared():
        return ServerKey.find(NAME) or ServerKey.put_first(NAME, secrets.token_hex(32))
    return kept_secret(data_dir)
