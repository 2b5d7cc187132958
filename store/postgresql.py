"""PostgreSQL: a pool of connections, reading, and the one way to write to it.

A thread has a connection of its own during a transaction only; what is read outside of one borrows a connection for
a single statement. What needs no answer goes out with the next statement, since a trip to the server takes longer
than what it does there. Statements come in SQLite's dialect (store/dialect.py).

Must not know the tables or a setting.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from store import engine
from store.engine import Cursor, Rows, ServerUrl, Thread, Values, WriteFailed, part
from store.postgresql_connection import (
    OUR_LOCKS,
    Connection,
    configure,
    failure,
    parameters,
    patiently_connected,
    prepare,
    refused,
)
from store.postgresql_connection import has_data as has_data
from store.postgresql_copy import SNAPSHOT, write_file
from store.postgresql_copy import fill as fill_tables
from store.postgresql_statements import ANSWER_S, INTERVAL_S, Result

logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it has a line for each attempt to connect

TURN_WAIT_S = 2.0  # for the other threads that write to the same account; with POOL_WAIT_S it fails within 4 s
POOL_WAIT_S = 2.0
READS = ("SELECT", "WITH")
BEGIN: tuple[str, Values] = ("BEGIN", ())
LOCK = f"SELECT pg_advisory_xact_lock({OUR_LOCKS}, CAST(? AS INTEGER))"
COMMIT: tuple[str, Values] = ("COMMIT", ())
HAD_FAILED = "a statement of the transaction had failed"
CHECK = "SELECT 'ok'"  # to look after its data is the server's part
CLOCK_MS = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
SIZE_BYTES = "SELECT pg_database_size(current_database())"
MOST_CONNECTIONS = (  # that the server, the database and the user's role allow together
    "SELECT least(CAST(current_setting('max_connections') AS BIGINT)"
    " - CAST(current_setting('superuser_reserved_connections') AS BIGINT),"
    " nullif(datconnlimit, -1), nullif(rolconnlimit, -1))"
    " FROM pg_database CROSS JOIN pg_roles WHERE datname = current_database() AND rolname = current_user"
)


class _Thread(Thread):
    """The state of one thread, which holds the locks of its accounts."""

    def __init__(self) -> None:
        super().__init__()
        self.writing: Connection | None = None  # the transaction's, once something of it was sent
        self.unsent = list[tuple[str, Values]]()  # sent with the transaction's next statement
        self.has_changes = False  # whether that transaction has changed anything


class _Threads(threading.local):
    def __init__(self) -> None:
        self.own = _Thread()


_pool: ConnectionPool[Connection] | None = None
_threads = _Threads()
_turns = dict[int, threading.Lock]()  # by account; threads that wait for it hold no connection


# --- reading --------------------------------------------------------------------------------------------------


def run(statement: str, values: Values = ()) -> Cursor:
    """Run a statement in this thread's transaction, or else, if it only reads, on any connection."""
    thread = _threads.own
    if thread.accounts:
        cursor = _run_in_transaction(thread, statement, values)
        if engine.writes_fail and cursor.rowcount > 0 and not statement.startswith(READS):
            thread.has_changes = True
        return cursor
    if not statement.startswith(READS):
        raise WriteFailed("what is written needs a transaction")
    connection, cursor = _begun(statement, values)
    _give_back(connection)
    return cursor


def run_later(statement: str, values: Values) -> None:
    """Run a statement in this thread's transaction, together with the next one or the commit."""
    thread = _threads.own
    if not thread.accounts or engine.writes_fail:  # then `run` looks whether it changes anything
        run(statement, values)
    else:
        thread.unsent.append((statement, values))


def insert(statement: str, values: Values) -> int:
    """Insert one row; returns its seq."""
    return int(run(f"{statement} RETURNING seq", values).fetchone()[0])


def _run_in_transaction(thread: _Thread, statement: str, values: Values) -> Result:
    if connection := thread.writing:
        try:
            result = connection.run(statement, values, thread.unsent)
        except psycopg.Error as error:
            raise failure(connection, error) from None
        thread.unsent = []  # not before: a value that cannot be sent would take them with it
        return result
    unsent, thread.unsent = thread.unsent, []
    if BEGIN not in unsent[:1]:
        raise WriteFailed(HAD_FAILED)  # as it began
    thread.writing, result = _begun(statement, values, unsent)
    return result


def _begun(statement: str, values: Values, before: Sequence[tuple[str, Values]] = ()) -> tuple[Connection, Result]:
    """A connection of the pool, and the result of the first statements on it, which commit nothing.

    That runs again on another connection if this one turns out to be lost.
    """
    pool = _opened()
    for _ in range(pool.max_size + 1):
        try:
            connection = _taken(pool)
        except psycopg.Error:
            raise WriteFailed("there is no connection to PostgreSQL") from None
        try:
            connection.answer_s = ANSWER_S
            return connection, connection.run(statement, values, before)
        except psycopg.Error as error:
            is_lost, why = connection.broken, failure(connection, error)
            _give_back(connection)
            if not is_lost:
                raise why from None
        except BaseException:
            connection.close()
            _give_back(connection)
            raise
    raise why


def _taken(pool: ConnectionPool[Connection]) -> Connection:
    with suppress(PoolTimeout):
        return pool.getconn(INTERVAL_S)
    engine.make_way()
    return pool.getconn(POOL_WAIT_S - INTERVAL_S)


def _opened() -> ConnectionPool[Connection]:
    if _pool is None:
        raise WriteFailed("the database is not open")
    return _pool


def _give_back(connection: Connection) -> None:
    _opened().putconn(connection)


def version() -> int:
    """A number that changes when any transaction that writes begins or ends: no table is read for it."""
    return int(run("SELECT hashtext(pg_current_snapshot()::text)").fetchone()[0])


def copy_database(target: Path, changes: Sequence[str] = ()) -> None:
    """Write a snapshot to an SQLite file, mode 0600; `FileExistsError` if that exists."""
    connection, _ = _begun(SNAPSHOT, ())
    try:
        write_file(connection, target, changes)
    finally:
        connection.close()  # its settings were for this alone
        _give_back(connection)


# --- writing --------------------------------------------------------------------------------------------------


def transaction(*account_seqs: int, lazy: bool = False) -> AbstractContextManager[None]:
    """One transaction, which holds the locks of these accounts; inside another one, a part of it.

    What a thread that had a lock before has written is seen, since each statement has a snapshot of its own (READ
    COMMITTED). The locks are taken in ascending order, so that no two transactions wait for each other.
    """
    thread = _threads.own
    if thread.accounts:
        return part(_run_of_part, thread, account_seqs)
    return _whole(thread, account_seqs, lazy)


def _run_of_part(statement: str) -> Cursor:
    if statement.startswith("ROLLBACK"):
        _threads.own.unsent.clear()  # they were of the part: its beginning was sent before them
    return run(statement)


@contextmanager
def _whole(thread: _Thread, account_seqs: tuple[int, ...], lazy: bool) -> Iterator[None]:
    seqs, thread.after_commit = tuple(sorted({*account_seqs})), []
    try:
        with ExitStack() as ends:
            for seq in seqs:
                ends.callback(_taken_turn(seq).release)
            ends.push(partial(_end, thread))
            if lazy:
                thread.unsent = _beginning(seqs)
            else:
                *before, last = _beginning(seqs)
                thread.writing, _ = _begun(*last, before)
            thread.accounts, thread.has_changes = seqs, False
            yield
            _commit(thread)
    except WriteFailed:
        engine.writes_fail = True
        raise
    if thread.has_changes:
        engine.writes_fail = False
    for call in thread.after_commit:
        call()


def _end(thread: _Thread, error: type[BaseException] | None, *_: object) -> None:
    """Undo everything if there is an error, and hold no connection any more."""
    connection = thread.writing
    thread.writing, thread.accounts, thread.unsent = None, (), []
    if connection:
        try:
            if error is not None:
                _roll_back(connection)
        finally:
            _give_back(connection)


def _taken_turn(account_seq: int) -> threading.Lock:
    """The account's turn, which this thread has now; `WriteFailed` if that takes too long."""
    turn = _turns.setdefault(account_seq, threading.Lock())
    if not turn.acquire(blocking=False):
        engine.pass_on()
        if not turn.acquire(timeout=TURN_WAIT_S):
            raise WriteFailed(
                f"no turn to write to this account in {TURN_WAIT_S:.0f} s: PostgreSQL may be away or slow"
            )
    return turn


def _beginning(account_seqs: Sequence[int]) -> list[tuple[str, Values]]:
    return [BEGIN, *((LOCK, (seq,)) for seq in account_seqs)]


def _commit(thread: _Thread) -> None:
    if thread.writing is None:
        if thread.unsent == _beginning(thread.accounts):
            return  # it did nothing
        last = thread.unsent.pop() if thread.unsent else COMMIT
        _run_in_transaction(thread, *last)  # first, since that may be repeated
    connection = cast(Connection, thread.writing)
    if connection.pgconn.transaction_status != TransactionStatus.INTRANS:  # the server would answer with ROLLBACK
        raise WriteFailed(HAD_FAILED)
    _run_in_transaction(thread, *COMMIT)


def _roll_back(connection: Connection) -> None:
    """Undo everything; a connection that cannot do so is thrown away."""
    try:
        if connection.pgconn.transaction_status != TransactionStatus.IDLE and not connection.closed:
            connection.say("ROLLBACK")
    except psycopg.Error as error:
        failure(connection, error)  # closes it if it is lost


def fill(rows: Rows) -> dict[str, int]:
    """Replace everything by these rows, in the open transaction; returns how many there were of each table."""
    if not _threads.own.writing:
        raise RuntimeError("there is no transaction, or it was not begun at once")
    return fill_tables(_threads.own.writing, rows)


def this_thread() -> Thread:
    """The state of this thread."""
    return _threads.own


# --- opening --------------------------------------------------------------------------------------------------


def open_database(url: ServerUrl, migrations: Path, newest: int) -> int:
    """As in store/database.py; the pool connects when the tables are there."""
    global _pool
    with patiently_connected(url) as connection:
        try:
            before = prepare(connection, url, migrations, newest)
        except psycopg.Error as error:
            raise refused(url, str(failure(connection, error))) from None
    _pool = ConnectionPool(
        url.url,
        connection_class=Connection,
        kwargs=parameters(url),
        configure=configure,
        min_size=1,
        max_size=url.connections,
        timeout=POOL_WAIT_S,
        reconnect_timeout=POOL_WAIT_S,  # then the next that wants a connection begins again
        num_workers=2,
        name="postgresql",
        open=True,
    )
    return before


def give_back() -> None:
    """Do nothing: a thread keeps no connection."""


def close() -> None:
    """Close all connections."""
    global _pool
    pool, _pool = _pool, None
    if pool:
        pool.close()
