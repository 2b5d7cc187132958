"""The SQLite database that one test leaves to the next one of its worker: without rows, under a new name, still open.

To open a new one takes longer than all else that a plain test does, above all that both connections read the schema
and prepare each statement anew.
"""

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from store import database, engine, sqlite

MAX_PAGES = 120  # a new file has 75
PRAGMAS = (
    "application_id", "busy_timeout", "cache_size", "defer_foreign_keys", "foreign_keys", "ignore_check_constraints",
    "journal_mode", "journal_size_limit", "locking_mode", "max_page_count", "query_only", "read_uncommitted",
    "schema_version", "synchronous", "temp_store", "user_version", "writable_schema",
)  # fmt: skip
SUFFIXES = ("", "-wal", "-shm")


@dataclass
class _Open:
    """A file that is open, with what must not have changed when another test takes it."""

    path: Path
    connections: tuple
    marks: tuple


_opened = None  # what the running test has
_left = None  # what the one before has left


def note(path):
    """The service of a test has opened this file: anew, or the one that was left, whose marks were looked at then."""
    global _opened, _left
    connections = _connections()
    is_taken = _left is not None and connections == _left.connections
    marks = _left.marks if is_taken else _marks(connections) if all(connections) else None
    _left, _opened = None, _Open(path, connections, marks) if marks else None


def leave(path):
    """The test that made this file has ended: the next one may have it, if it was only read and written."""
    global _opened, _left
    _left, _opened = _opened, None
    if _left and not (_left.path == path and _is_open(_left) and _marks(_left.connections) == _left.marks):
        _left = None


def has_left(path):
    """Whether there is a file that can become the one at `path`, where there is none."""
    return _left is not None and _is_open(_left)


def take(path, name, value):
    """Let `path` be the file that was left, with this note alone; returns whether it is."""
    try:
        is_like_new = _make_like_new(name, value)
    except sqlite3.Error:  # another process of the test before has not ended
        is_like_new = False
    if is_like_new:
        for suffix in SUFFIXES:
            _left.path.with_name(_left.path.name + suffix).rename(path.with_name(path.name + suffix))
        sqlite._file = path
        engine.writes_fail = False
    return is_like_new


def _make_like_new(name, value):
    """Leave nothing but this note; returns whether that was possible."""
    reading, writing = _left.connections
    if writing.execute("PRAGMA page_count").fetchone()[0] > MAX_PAGES:
        return False
    version = "PRAGMA data_version"  # it changes with what the other connection writes
    before = reading.execute(version).fetchone()
    _empty(writing, name, value)
    if reading.execute(version).fetchone() == before:
        return False  # a statement of the test before is not at its end, so that this connection sees no change
    if writing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        return False
    for connection in _left.connections:
        connection.set_trace_callback(None)
    return True


@contextmanager
def taken():
    """Open the service in this block with what is open already."""
    opens, database.open_database = database.open_database, lambda place: None
    try:
        yield
    finally:
        database.open_database = opens


def _connections():
    """This thread's connection for reading and the one for writing; None for one that is closed."""
    reading = sqlite.connection() if sqlite._free else sqlite._threads.own.reading
    return reading, sqlite._writer._connection


def _is_open(one):
    """Whether the same connections are open as before, with nothing under way."""
    is_same = all(ours is theirs for ours, theirs in zip(one.connections, _connections(), strict=True))
    is_used = database._engine is sqlite and sqlite._file == one.path
    is_quiet = (
        sqlite._writer.commit is None and not sqlite._writer.turn.locked() and sqlite._threads.own.writing is None
    )
    return (
        is_same and is_used and is_quiet and one.path.exists() and not any(c.in_transaction for c in one.connections)
    )


def _marks(connections):
    """What a test may have changed but must not leave."""
    marks = f"SELECT * FROM {', '.join(f'pragma_{name}' for name in PRAGMAS)}"
    return tuple(connection.execute(marks).fetchone() for connection in connections)


@cache
def _tables():
    """Those that refer to others come before them."""
    tables = database.run("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return [name for (name,) in reversed(tables)]  # in their file they come the other way round


def _empty(writing, name, value):
    """Remove all rows but one note. To switch foreign keys off would prepare each statement of the next test anew."""
    has_rows = ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in _tables())
    writing.execute("BEGIN IMMEDIATE")
    for table, has in zip(_tables(), writing.execute(f"SELECT {has_rows}").fetchone(), strict=True):
        if has:
            writing.execute(f"DELETE FROM {table}")
    writing.execute("INSERT INTO server_note (name, value) VALUES (?, ?)", (name, value))
    writing.execute("COMMIT")
