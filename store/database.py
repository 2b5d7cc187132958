"""The database, as the rest of the code uses it: opening and copying it, running statements, and writing.

What each of these does depends on the engine: store/sqlite.py or store/postgresql.py. Must not know the tables, a
setting or the clock.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import peewee as peewee

from store import engine, sqlite
from store.engine import EVERYBODY as EVERYBODY
from store.engine import MIGRATIONS, SCHEMA_VERSION, Cursor, Engine, Values
from store.engine import DatabaseError as DatabaseError
from store.engine import DatabaseRefused as DatabaseRefused
from store.engine import Rows as Rows
from store.engine import ServerUrl as ServerUrl
from store.engine import WriteFailed as WriteFailed

AFTER_ALL = 2**63 - 1  # the greatest integer: beyond every seq and every time
THESE = "(SELECT value FROM json_each(?))"  # the numbers in a list, which goes to the database as JSON
MAX_TRIES = 20  # of a command; each waits for the service's lock for BUSY_TIMEOUT_MS, so that all take 30 s

_engine: Engine = sqlite
_is_patient = False


def run(statement: str, values: Values = ()) -> Cursor:
    """Run one statement: inside a transaction as a part of it, or else to read.

    A list may be one of the values, and `THESE` in the statement stands for what is in it.
    """
    return _engine.run(statement, values)


def insert(statement: str, values: Values) -> int:
    """Insert one row into a table that numbers its rows; returns its `seq`. SQLite takes long over `RETURNING`."""
    return _engine.insert(statement, values)


def run_later(statement: str, values: Values) -> None:
    """Run a statement whose result nobody needs, inside a transaction; a server gets it with the next statement.

    What it raises is then raised by that one, or at the end of the transaction.
    """
    _engine.run_later(statement, values)


def transaction(*account_seqs: int, lazy: bool = False) -> AbstractContextManager[None]:
    """One transaction, which is on the disk when the block has ended; `WriteFailed` when it cannot be made.

    It names the accounts whose rows it writes, or `EVERYBODY`: of those that name the same one, the next begins when
    the one before has ended. SQLite has one writer whatever they name. Inside another transaction, it is a part of
    that one that can fail by itself, and names no account that the other one does not.

    If it is `lazy`, a server gets its beginning with its first statement, which spares a trip: the next one that
    names the account waits from then on. Until then, another process may write what has a later time.
    """
    if _is_patient:
        return _patient(partial(_engine.transaction, *account_seqs, lazy=lazy))
    return _engine.transaction(*account_seqs, lazy=lazy)


class _Undone(Exception):
    """Ends a transaction that must leave nothing."""


@contextmanager
def trial(account_seq: int, dry_run: bool) -> Iterator[None]:
    """A transaction that is undone at its end with `dry_run`: it only shows what would happen."""
    with suppress(_Undone), transaction(account_seq):
        yield
        if dry_run:
            raise _Undone


def is_writing(account_seq: int) -> bool:
    """Whether a transaction is open that names the account."""
    return account_seq in _engine.this_thread().accounts


@contextmanager
def patiently() -> Iterator[None]:
    """While the block lasts, a transaction that cannot begin is tried again: a busy service may hold the file."""
    global _is_patient
    _is_patient = True
    try:
        yield
    finally:
        _is_patient = False


@contextmanager
def _patient(begin: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    with ExitStack() as stack:
        for left in reversed(range(MAX_TRIES)):
            try:
                stack.enter_context(begin())
                break
            except WriteFailed:
                if not left:
                    raise
        yield


def after_commit(call: Callable[[], object]) -> None:
    """Call this in this thread when the open transaction is on the disk; at once, when none is open.

    It is not called if the transaction, or the part of it that is open now, fails. It must not raise an exception.
    """
    thread = _engine.this_thread()
    if thread.accounts:
        thread.after_commit.append(call)
    else:
        call()


class Statements(peewee.SqliteDatabase):
    """Builds the SQL of the models. The open engine runs it like every other statement."""

    def execute_sql(self, sql: str, params: Any = None) -> Cursor:
        """Run a statement that Peewee has made."""
        return run(sql, params or ())


database = Statements(None, returning_clause=True)


def open_database(place: Path | ServerUrl, migrations: Path = MIGRATIONS, newest: int = SCHEMA_VERSION) -> int:
    """Open the file or the server's database for all threads. An empty one gets its tables; an older one is upgraded.

    Returns the schema that it had, 0 if it was empty; `DatabaseRefused` if it cannot be used.
    """
    global _engine
    close()
    engine.writes_fail = False
    _engine = _engine_of(place)
    return _engine.open_database(place, migrations, newest)


def _engine_of(place: Path | ServerUrl) -> Engine:
    if isinstance(place, Path):
        return sqlite
    from store import postgresql  # 17 MB that SQLite does not need

    return postgresql


def has_data(place: Path | ServerUrl) -> bool:
    """Whether there is a database at this place with anything in it."""
    return _engine_of(place).has_data(place)


def is_shared() -> bool:
    """Whether other processes may serve the same database: never a file, whose lock one service takes."""
    return _engine is not sqlite


def version() -> int:
    """A number that changes with each commit of another connection, this process's or another's."""
    return _engine.version()


def give_back() -> None:
    """Let other threads have this thread's connection: it reads nothing more for now, or waits for somebody else.

    Call this when no result is left to be read. The thread gets another one with its next statement.
    """
    _engine.give_back()


def close() -> None:
    """Close this thread's connection and all shared ones."""
    _engine.close()


def copy_database(target: Path, changes: Sequence[str] = ()) -> None:
    """Write a consistent copy of the live database to `target`, mode 0600; `FileExistsError` if that exists.

    `changes` are statements that are run in the copy before it is there.
    """
    _engine.copy_database(target, changes)


def fill(rows: Rows) -> dict[str, int]:
    """Replace everything in the database by these rows; returns how many there were of each table.

    Call inside `transaction()` of `EVERYBODY`. `DatabaseRefused` if they contradict each other.
    """
    try:
        return _engine.fill(rows)
    except peewee.IntegrityError as error:
        raise DatabaseRefused(f"The rows of this file cannot be stored: {error}.") from None


def writes_fail() -> bool:
    """Whether the last transaction could not be made, and none has reached the disk since."""
    return engine.writes_fail


def clock_ms() -> int | None:
    """The time of the database server's clock; None without a server."""
    return _number(_engine.CLOCK_MS)


def size_bytes() -> int:
    """How much of a disk the database takes."""
    return _number(_engine.SIZE_BYTES) or 0


def most_connections() -> int | None:
    """How many connections of all programs the database server takes; None if there is no server."""
    return _number(_engine.MOST_CONNECTIONS)


def fault() -> str | None:
    """The first fault that the engine's own check finds; None if it finds none."""
    (found,) = run(_engine.CHECK).fetchone()
    return None if found == "ok" else found


def _number(statement: str) -> int | None:
    number: int | None = run(statement).fetchone()[0]
    return number


def answers() -> bool:
    """Whether the database can be read now and the last write succeeded."""
    try:
        run("SELECT seq FROM account LIMIT 1").fetchall()
    except DatabaseError:
        return False
    return not writes_fail()
