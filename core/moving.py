"""Filling an empty database from an SQLite file: a backup, or the database of a service that was stopped.

Must not know the command line.
"""

from pathlib import Path

from config import Settings
from core import server_secret
from models import Account, Device
from store import database, sqlite_file, sqlite_lock
from store.database import EVERYBODY, ServerUrl, transaction
from wire.errors import Refused


def prepare(file: Path, settings: Settings) -> bool:
    """Refuse a file that cannot be imported, and a database that a service uses; then lock both.

    Call before the database is opened. Returns whether the data directory has a secret already, which then counts as
    the moving service's. Raises `DatabaseRefused` and `OSError`.
    """
    place = settings.database
    if isinstance(place, Path) and file.resolve() == place.resolve():
        raise database.DatabaseRefused(f"The file {file} is the database that is to be filled: name another file.")
    sqlite_file.checked(file)
    if file.with_name(f"{file.name}.lock").exists():  # it is a service's own, not a copy
        _claim(file)
    _claim(place)
    return server_secret.secret_file(settings.data_dir).exists()


def _claim(place: Path | ServerUrl) -> None:
    """Take the lock of a service."""
    if isinstance(place, Path):
        sqlite_lock.take(place, "pocketbell import", tell=lambda _: None, looks=1)
    else:
        from store import postgresql_lock  # whose packages SQLite does not need

        postgresql_lock.claim(place)


def import_file(file: Path, settings: Settings, has_secret: bool) -> tuple[dict[str, int], bool]:
    """Fill the open database, which must have no account, from a file: with all of it or nothing.

    `prepare` has found the file good and returned `has_secret`. Returns the rows by table (devices without removed
    ones), and whether sessions stay valid.
    """
    with sqlite_file.OldFile(file) as rows, transaction(EVERYBODY):
        if Account.exists():
            raise Refused(409, f"The database {settings.database} has an account already: import fills an empty one.")
        counts = database.fill(rows) | {"device": Device.count_all()}
        keeps_sessions = bool(settings.secret_key) or server_secret.brought(settings.data_dir, has_secret)
    if not settings.secret_key:
        server_secret.server_secret(settings.data_dir)  # moves an imported secret into the file
    return counts, keeps_sessions
