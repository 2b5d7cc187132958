"""The secret that signs sessions, cursors and buttons, where the service keeps everything else."""

import secrets
from pathlib import Path

from config import Settings
from process.secret_key import kept_secret
from store.server_notes import ServerKey


def session_secret(settings: Settings) -> str:
    """`SECRET_KEY`, or else what the first start made: in a file beside SQLite's, or in PostgreSQL, which is open."""
    if settings.secret_key:
        return settings.secret_key
    if isinstance(settings.database, Path):
        return kept_secret(settings.data_dir)
    return ServerKey.find("secret_key") or ServerKey.put_first("secret_key", secrets.token_hex(32))
