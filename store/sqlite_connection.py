"""Connections to an SQLite file: how they are opened, and the exceptions that they raise.

Must not know the tables, a setting or the clock.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import peewee

from store.engine import DatabaseError, Values

BUSY_TIMEOUT_MS = 1_500  # how long to wait for another process's lock: with the writer's turn, 4 s at most
PRAGMAS = ("synchronous = FULL", "foreign_keys = ON", "temp_store = MEMORY", "journal_size_limit = 16000000")

sqlite3.register_adapter(list, json.dumps)  # which json_each reads


def connect(path: Path, cache_kb: int, is_read_only: bool) -> sqlite3.Connection:
    """Open a connection, which every thread may use, in autocommit mode."""
    with known_errors():
        one = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in (f"busy_timeout = {BUSY_TIMEOUT_MS}", f"cache_size = -{cache_kb}", *PRAGMAS):
            one.execute(f"PRAGMA {pragma}")
        if is_read_only:
            one.execute("PRAGMA query_only = ON")
    return one


def run_on(one: sqlite3.Connection, statement: str, values: Values = ()) -> sqlite3.Cursor:
    """Run one statement on this connection."""
    try:
        return one.execute(statement, values)
    except sqlite3.Error as error:
        raise _known(error) from error


@contextmanager
def known_errors() -> Iterator[None]:
    """Raise SQLite's errors in this block as Peewee's, which the rest of the code knows."""
    try:
        yield
    except sqlite3.Error as error:
        raise _known(error) from error


def _known(error: sqlite3.Error) -> DatabaseError:
    """Peewee's exception of the same name; `WriteFailed` is one of them."""
    kind = getattr(peewee, type(error).__name__, DatabaseError)
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:  # the statement is wrong
        kind = peewee.ProgrammingError
    known: DatabaseError = kind(str(error))
    return known
