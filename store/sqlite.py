"""SQLite: opening, migrating and copying the database's file, and its transactions.

A thread borrows a connection for reading from a pool. One connection writes, and the threads take turns with it. Must
not know the tables, a setting or the clock.
"""

import fcntl
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

from store.engine import (
    EVERYBODY,
    ROOT,
    DatabaseError,
    DatabaseRefused,
    Rows,
    Table,
    Thread,
    Values,
    WriteFailed,
    inserting,
    part,
)
from store.sqlite_connection import connect, known_errors, run_on
from store.sqlite_writer import Writer

READING_CACHE_KB = 256
MAX_FREE = 8  # connections for reading that no thread uses; some ten are used at once
WRITING_CACHE_KB = 2_000
MIN_SQLITE = (3, 37)  # the first with STRICT tables
FILE_HEADER = b"SQLite format 3\0"
APPLICATION_ID = 0x506B626C  # marks the file as ours in its header
CHECK = "PRAGMA quick_check(1)"
CLOCK_MS = MOST_CONNECTIONS = "SELECT NULL"  # the database is in this process
SIZE_BYTES = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"  # once all has reached the file


class _Thread(Thread):
    """The state of one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.reading: sqlite3.Connection | None = None  # until it gives that back
        self.pool: list[sqlite3.Connection] | None = None  # where that came from
        self.taken = 0  # how many it has had
        self.writing: sqlite3.Connection | None = None  # while it is in a transaction


class _Threads(threading.local):
    def __init__(self) -> None:
        self.own = _Thread()  # an attribute of a `threading.local` takes five times as long as one of that


def _opened() -> Path:
    if _file is None:
        raise WriteFailed("the database is not open")
    return _file


_file: Path | None = None
_writer = Writer(lambda: connect(_opened(), WRITING_CACHE_KB, is_read_only=False))
_threads = _Threads()
_free = list[sqlite3.Connection]()  # for reading, which no thread uses: the last that was given back is taken first


def connection() -> sqlite3.Connection:
    """The connection of this thread: the writing one during a transaction."""
    thread = _threads.own
    return thread.writing or thread.reading or _take(thread)


def _take(thread: _Thread) -> sqlite3.Connection:
    """Let the thread read on a connection of the pool, or on a new one."""
    pool = _free
    try:
        one = pool.pop()
    except IndexError:
        one = connect(_opened(), READING_CACHE_KB, is_read_only=True)
    thread.reading, thread.pool, thread.taken = one, pool, thread.taken + 1
    return one


def run(statement: str, values: Values = ()) -> sqlite3.Cursor:
    """Run one statement on this thread's connection."""
    return run_on(connection(), statement, values)


run_later = run  # there is no server


def insert(statement: str, values: Values) -> int:
    """Insert one row; returns its seq."""
    return int(run(statement, values).lastrowid or 0)


def open_database(path: Path, migrations: Path, newest: int) -> int:
    """As in store/database.py. An older file is copied before it is upgraded."""
    global _file
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        raise DatabaseRefused(f"This Python has SQLite {sqlite3.sqlite_version}: Pocketbell needs 3.37 or later.")
    _check_place(path)
    _file = path
    try:
        with _alone_in(path.parent):  # if two processes turned a new file to WAL at once, one would find it locked
            run_on(_writer.opened(), "PRAGMA journal_mode = WAL")
            before = _make(path, newest)
            if before:
                _upgrade(path, before, migrations, newest)
    except (DatabaseError, OSError) as error:
        why = f"{error}; is its disk full?" if str(error) == "disk I/O error" else f"{error}."
        raise DatabaseRefused(f"The database {path} cannot be used: {why}") from None
    return before


def version() -> int:
    """A number that changes with each commit of another connection, this process's or another's.

    SQLite counts for each connection, so it changes with the thread's connection, too.
    """
    counted = int(run("PRAGMA data_version").fetchone()[0])
    return _threads.own.taken << 32 | counted


def give_back() -> None:
    """Return this thread's connection for reading to the pool; close it if that is full or was closed meanwhile."""
    thread = _threads.own
    if thread.reading is None:
        return
    if thread.pool is _free and len(_free) < MAX_FREE:
        _free.append(thread.reading)
    else:
        thread.reading.close()
    thread.reading = None


def has_data(path: Path) -> bool:
    """Whether there is a file at `path` with anything in it."""
    return path.exists() and path.stat().st_size > 0


def is_sqlite(path: Path) -> bool:
    """Whether this file begins as SQLite's do."""
    with path.open("rb") as file:
        return file.read(len(FILE_HEADER)) == FILE_HEADER


def close() -> None:
    """Close this thread's connection, the pool, and the writing connection.

    A connection that another thread uses is closed when that thread gives it back.
    """
    global _free
    with _writer.turn:
        _writer.end()
        _writer.close()
    give_back()
    with suppress(IndexError):  # a thread has taken the last one
        while _free:
            _free.pop().close()
    _free = []


def _check_place(path: Path) -> None:
    """Refuse a file that is not SQLite's: SQLite takes a very short one for empty, and would overwrite it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_right = not path.exists() or is_sqlite(path) or not has_data(path)
    except OSError as error:
        raise DatabaseRefused(f"DATA_DIR or DATABASE_URL cannot be used: {path}: {error.strerror}.") from None
    if not is_right:
        raise DatabaseRefused(f"The database {path} cannot be used: it is not an SQLite file.")


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep other processes of ours that open a database in this directory waiting until the block ends."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _make(path: Path, newest: int) -> int:
    """Make the tables in an empty file; refuse a foreign or newer one. Returns the schema that it had, 0 if empty."""
    version = int(run("PRAGMA user_version").fetchone()[0])
    if version > newest:
        raise DatabaseRefused(
            f"The database {path} has schema {version}, made by a newer Pocketbell; this one knows up to {newest}."
        )
    tables = run("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and run("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise DatabaseRefused(f"The database {path} cannot be used: it is another program's.")
    if version == 0:
        _run_step(ROOT / "schema.sql", newest)
    return version


def copy_before(path: Path, version: int) -> Path:
    """The copy that is made before a file with this schema is upgraded."""
    return path.with_name(f"{path.name}.schema-{version}")


def _upgrade(path: Path, version: int, migrations: Path, newest: int) -> None:
    """Copy an older file, then upgrade it step by step."""
    if version < newest:
        copy = copy_before(path, version)
        for leftover in path.parent.glob(f".{copy.name}.*"):  # by a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        copy_database(copy, replace=True)
    for step in range(version + 1, newest + 1):
        _run_step(next(migrations.glob(f"{step:04}_*.sql")), step)


def _run_step(script: Path, after: int) -> None:
    """Run a script and set the new version in one transaction."""
    with transaction(EVERYBODY):
        for statement in statements(script.read_text()):
            run(statement)
        run(f"PRAGMA user_version = {after}")


def statements(script: str) -> Iterator[str]:
    """The statements of a script."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():  # its semicolon was forgotten
        yield statement


def copy_database(target: Path, changes: Sequence[str] = (), replace: bool = False) -> None:
    """As in store/database.py; with `replace` it may take the place of what is there."""
    with placed(target, changes, replace) as unfinished:
        run("PRAGMA query_only = OFF")  # VACUUM INTO counts as a write
        try:
            run("VACUUM INTO ?", (str(unfinished),))
        finally:
            run("PRAGMA query_only = ON")


@contextmanager
def placed(target: Path, changes: Sequence[str], replace: bool = False) -> Iterator[Path]:
    """Where to write a database that becomes `target`, mode 0600, when the block has ended and it is on the disk.

    The statements `changes` are run in it first. `FileExistsError` if `target` exists.
    """
    if target.exists() and not replace:
        raise FileExistsError(f"{target} exists already")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as ours:  # for us alone
        unfinished = Path(ours) / "copy"
        yield unfinished
        if changes:
            with known_errors(), closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
                for statement in (*changes, "VACUUM"):
                    copy.execute(statement)
        unfinished.chmod(0o600)
        with unfinished.open("rb") as copy:
            os.fsync(copy.fileno())
        unfinished.replace(target)


# --- writing ------------------------------------------------------------------------------------------------


def transaction(*account_seqs: int, lazy: bool = False) -> AbstractContextManager[None]:
    """One transaction, which is on the disk when the block has ended; `WriteFailed` when it cannot be made.

    The threads of this process queue here and not in SQLite's busy handler, which is unfair.
    """
    thread = _threads.own
    if thread.writing:
        return part(run, thread, account_seqs)
    return _whole(thread, account_seqs)


@contextmanager
def _whole(thread: _Thread, account_seqs: tuple[int, ...]) -> Iterator[None]:
    thread.after_commit = []
    give_back()  # its turn may be long in coming
    commit, is_first = _writer.take_turn()
    connection = thread.writing = _writer.opened()
    thread.accounts, changes = account_seqs, connection.total_changes
    try:
        yield
        if connection.total_changes > changes:
            _writer.has_changes = True
    except BaseException as error:
        _writer.give_up(error, is_first)
        raise
    finally:
        thread.writing, thread.accounts = None, ()
        _writer.end_turn()
        if fault := commit.failure():  # also after an error: the thread may have read uncommitted rows
            raise WriteFailed(str(fault)) from fault
    for call in thread.after_commit:
        call()


def this_thread() -> Thread:
    """The state of this thread."""
    return _threads.own


def fill(rows: Rows) -> dict[str, int]:
    """Replace everything by these rows, in the open transaction; returns how many there were of each table."""
    counts = dict[str, int]()
    for table in reversed(rows.tables):
        run(f"DELETE FROM {table.name}")
    for table in rows.tables:
        with known_errors():
            counts[table.name] = (
                connection().executemany(inserting(table.name, table.columns), rows.of(table)).rowcount
            )
        if table.never_reuses:
            keep_last_seq(connection(), table, rows.last_seq(table))
    return counts


def keep_last_seq(file: sqlite3.Connection, table: Table, seq: int) -> None:
    """Set the highest seq that a table has given, which may be that of a deleted row."""
    file.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table.name,))
    if seq:
        file.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table.name, seq))
