"""PostgreSQL: a pool of connections, reading, and the one way to write to it.

A thread has a connection of its own during a transaction only; what is read outside of one borrows a connection for
a single statement. Statements come in SQLite's dialect (store/dialect.py). Must not know the tables or a setting.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from store import engine
from store.engine import Cursor, DatabaseError, Rows, ServerUrl, Values, WriteFailed, check_part, part
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
from store.postgresql_statements import ANSWER_S, Result

logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it has a line for each attempt to connect

TURN_WAIT_S = 2.0  # for the other threads that write to the same account; with POOL_WAIT_S it fails within 4 s
POOL_WAIT_S = 2.0
READS = ("SELECT", "WITH")
MOST_CONNECTIONS = (
    "SELECT least(CAST(current_setting('max_connections') AS BIGINT)"
    " - CAST(current_setting('superuser_reserved_connections') AS BIGINT),"
    " nullif(datconnlimit, -1), nullif(rolconnlimit, -1))"
    " FROM pg_database CROSS JOIN pg_roles WHERE datname = current_database() AND rolname = current_user"
)


class _Thread(threading.local):
    writing: "Connection | None" = None  # while this thread is in a transaction
    accounts: tuple[int, ...] = ()  # whose locks it holds
    has_changes = False  # whether that transaction has changed anything

    def __init__(self) -> None:
        self.after_commit = list[Callable[[], object]]()  # what the open transaction leaves to be called


class _Turn:
    """The right of one thread of this process to write to an account: the others hold no connection meanwhile."""

    def __init__(self) -> None:
        self.lock, self.wanted = threading.Lock(), 0


_pool: ConnectionPool[Connection] | None = None
_thread = _Thread()
_turns = dict[int, _Turn]()  # by the account's seq
_counting = threading.Lock()
_writes_fail = threading.Event()  # set when the last transaction could not be made


# --- reading --------------------------------------------------------------------------------------------------


def run(statement: str, values: Values = ()) -> Cursor:
    """Run a statement in this thread's transaction, or else, if it only reads, on any connection."""
    if connection := _thread.writing:
        cursor = _execute(connection, statement, values)
        if _writes_fail.is_set() and cursor.rowcount > 0 and not statement.startswith(READS):
            _thread.has_changes = True
        return cursor
    if not statement.startswith(READS):
        raise WriteFailed("what is written needs a transaction")
    connection, cursor = _begun(statement, values)
    _give_back(connection)
    return cursor


def _execute(connection: Connection, statement: str, values: Values | None = None) -> Result:
    try:
        return connection.say(statement) if values is None else connection.run(statement, values)
    except psycopg.Error as error:
        raise failure(connection, error) from None


def _begun(statement: str, values: Values | None = None) -> tuple[Connection, Result]:
    """A connection of the pool, and the result of its first statement, which changes nothing.

    That statement runs again on another connection if this one turns out to be lost.
    """
    pool = _opened()
    engine.make_way()
    for _ in range(pool.max_size + 1):
        try:
            connection = pool.getconn()
        except psycopg.Error:
            raise WriteFailed("there is no connection to PostgreSQL") from None
        try:
            connection.answer_s = ANSWER_S
            return connection, connection.say(statement) if values is None else connection.run(statement, values)
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


def _opened() -> ConnectionPool[Connection]:
    if _pool is None:
        raise WriteFailed("the database is not open")
    return _pool


def _give_back(connection: Connection) -> None:
    _opened().putconn(connection)


def version() -> int:
    """A number that changes when any transaction that writes begins or ends: no table is read for it."""
    return int(run("SELECT hashtext(pg_current_snapshot()::text)").fetchone()[0])


def clock_ms() -> int:
    """The server's clock."""
    return int(run("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)").fetchone()[0])


def most_connections() -> int:
    """How many connections the server, the database and the user's role allow together."""
    return int(run(MOST_CONNECTIONS).fetchone()[0])


def fault() -> str | None:
    """None: to look after its data is the server's part."""
    run("SELECT 1")
    return None


def copy_database(target: Path) -> None:
    """Write an SQLite file with what one snapshot holds, mode 0600; `FileExistsError` if that exists."""
    connection = _begun(SNAPSHOT)[0]
    try:
        write_file(connection, target)
    finally:
        connection.close()  # with what was set for this
        _give_back(connection)


# --- writing --------------------------------------------------------------------------------------------------


@contextmanager
def transaction(*account_seqs: int) -> Iterator[None]:
    """One transaction, which holds the locks of these accounts; inside another one, a part of it.

    What a thread that had a lock before has written is seen, since each statement has a snapshot of its own (READ
    COMMITTED). The locks are taken in ascending order, so that no two transactions wait for each other.
    """
    if _thread.writing:
        check_part(account_seqs, _thread.accounts)
        with part(run, _thread.after_commit):
            yield
        return
    _thread.after_commit.clear()
    try:
        with _turns_of(sorted({*account_seqs})):
            _thread.writing = _begin(sorted({*account_seqs}))
            _thread.accounts, _thread.has_changes = account_seqs, False
            try:
                yield
                _commit(_thread.writing)
            except BaseException:
                _roll_back(_thread.writing)
                raise
            finally:
                connection, _thread.writing, _thread.accounts = _thread.writing, None, ()
                _give_back(connection)
    except WriteFailed:
        _writes_fail.set()
        raise
    if _thread.has_changes:
        _writes_fail.clear()
    calls, _thread.after_commit = _thread.after_commit, []
    for call in calls:
        call()


@contextmanager
def _turns_of(account_seqs: list[int]) -> Iterator[None]:
    with ExitStack() as turns:
        for seq in account_seqs:
            turns.enter_context(_turn_of(seq))
        yield


@contextmanager
def _turn_of(account_seq: int) -> Iterator[None]:
    """Let only one thread of this process write to an account; `WriteFailed` if that takes too long."""
    with _counting:
        turn = _turns.setdefault(account_seq, _Turn())
        turn.wanted += 1
    has_turn = False
    try:
        has_turn = turn.lock.acquire(timeout=TURN_WAIT_S)
        if not has_turn:
            raise WriteFailed("others have written to this account for too long")
        yield
    finally:
        if has_turn:
            turn.lock.release()
        with _counting:
            turn.wanted -= 1
            if not turn.wanted:
                del _turns[account_seq]


def _begin(account_seqs: list[int]) -> Connection:
    locks = "".join(f"; SELECT pg_advisory_xact_lock({OUR_LOCKS}, {seq})" for seq in account_seqs)
    return _begun(f"BEGIN{locks}")[0]


def _commit(connection: Connection) -> None:
    if connection.pgconn.transaction_status != TransactionStatus.INTRANS:  # the server would answer with ROLLBACK
        raise WriteFailed("a statement of the transaction had failed")
    _execute(connection, "COMMIT")


def _roll_back(connection: Connection) -> None:
    """Undo everything; a connection that cannot do so is thrown away."""
    with suppress(DatabaseError):
        if connection.pgconn.transaction_status != TransactionStatus.IDLE and not connection.closed:
            _execute(connection, "ROLLBACK")


def fill(rows: Rows) -> dict[str, int]:
    """Replace everything by these rows, in the open transaction; returns how many there were of each table."""
    if not _thread.writing:
        raise RuntimeError("there is no transaction")
    return fill_tables(_thread.writing, rows)


def after_commit(call: Callable[[], object]) -> None:
    """Call this in this thread when the open transaction is stored; at once, when none is open."""
    if _thread.writing:
        _thread.after_commit.append(call)
    else:
        call()


def writes_fail() -> bool:
    """Whether the last transaction could not be made, and none has changed anything since."""
    return _writes_fail.is_set()


# --- opening --------------------------------------------------------------------------------------------------


def open_database(url: ServerUrl, migrations: Path, newest: int) -> None:
    """Open the database for all threads. An empty one gets its tables; an older one is upgraded."""
    global _pool
    _writes_fail.clear()
    with patiently_connected(url) as connection:
        try:
            prepare(connection, url, migrations, newest)
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


def close_reading() -> None:
    """Do nothing: a thread keeps no connection."""


def close() -> None:
    """Close all connections."""
    global _pool
    pool, _pool = _pool, None
    if pool:
        pool.close()
