"""One service at a time on a database file: a lock file beside it, held as long as a process of the service lives.

The operating system frees it however the service ends. The worker inherits it when it is forked, since it may outlive
its master. Of the command line, only an import takes it; the others read the address of the service there. Must not
know the tables or a setting.
"""

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

from store.engine import DatabaseRefused

LOOKS = 300  # before it gives up, a fifth of a second apart
LOOKS_EVERY_S = 0.2
MAX_HOLDER_BYTES = 1000  # of what the lock file says of its holder

_kept_open = list[int]()  # the lock file: to close it would free the lock


def _pause() -> None:
    threading.Event().wait(LOOKS_EVERY_S)


def take(database: Path, address: str, tell: Callable[[str], object], looks: int = LOOKS, note: str = "") -> None:
    """Take the lock for this process and its forks, or wait until the service that has it ends.

    `tell` is called at once with a sentence about who has it; `address` is what this service tells others of itself,
    `note` a line for `note_of_service()`. Raises `DatabaseRefused` after so many `looks`, and `OSError`.
    """
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, told = _lock_file(database), ""
    for look in range(looks):
        if look:
            _pause()
        holder = _holder(path, f"process {os.getpid()}, {address}\n{note}")
        if not holder:
            return
        if holder != told:
            tell(f"Another Pocketbell ({holder}) is using the database {database}: waiting for it to stop.")
            told = holder
    raise DatabaseRefused(f"Another Pocketbell ({told}) is using the database {database}: stop it first.")


def note_of_service(database: Path) -> str:
    """The note of the service that has the lock; empty if there is none or it is just starting."""
    try:
        file = os.open(_lock_file(database), os.O_RDONLY)
    except OSError:
        return ""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(file).partition("\n")[2]
    finally:
        os.close(file)
    return ""


def _lock_file(database: Path) -> Path:
    return database.resolve().with_name(f"{database.name}.lock")


def _read(file: int) -> str:
    return os.pread(file, MAX_HOLDER_BYTES, 0).decode(errors="replace")


def _holder(path: Path, own: str) -> str | None:
    """Who has the lock; None if it is ours now."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            return _read(file).partition("\n")[0] or "just starting"
        finally:
            os.close(file)
    os.ftruncate(file, 0)
    os.pwrite(file, own.encode(), 0)
    _kept_open.append(file)
    return None
