"""The connections to PostgreSQL that one test leaves to the next one of its worker, whose database is empty.

To open them anew takes the server longer than all else that a plain test does: each is a process of its own, which
reads the catalogue and plans each statement anew.
"""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from store import database, engine, postgresql
from store.engine import ServerUrl
from tests.support import postgresql as servers

OF_CONNECTION = (
    "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "default_transaction_isolation",
    "default_transaction_read_only", "session_replication_role", "synchronous_commit", "search_path", "timezone",
)  # fmt: skip
SETTINGS = ", ".join(f"current_setting('{name}')" for name in OF_CONNECTION)
STATE = f"SELECT {SETTINGS}, (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)"


@dataclass
class _Open:
    """Connections that are open, with what must not have changed when another test takes them."""

    place: ServerUrl
    pool: Any
    alterations: int
    state: Any


_opened: _Open | None = None  # what the running test has
_left: _Open | None = None  # what the one before has left
_asked = postgresql.has_data


def has_data(url):
    """Every command asks for the tables first, on a new connection: it does so only where no service is open."""
    return (_opened is not None and _opened.place == url) or _asked(url)


postgresql.has_data = has_data


def note(place):
    """The service of a test has opened this database: anew, or with the connections that were left."""
    global _opened, _left
    _left, pool = None, postgresql._pool
    _opened = _Open(place, pool, servers.alterations(), database.run(STATE).fetchone())


def leave(place):
    """The test that opened this database has ended: the next one may have it, if it was only read and written."""
    global _opened, _left
    _left, _opened = _opened, None
    if _left and not (_left.place == place and _is_quiet(_left) and _states(_left.pool) == {_left.state}):
        _left = None


def has_left(place):
    """Whether there are connections for this place, and nobody has them."""
    return _left is not None and _left.place == place and _is_quiet(_left)


def take(place, name, value):
    """Let the database that was left have this note alone; returns True."""
    servers.empty(name, value)
    engine.writes_fail = False
    return True


def _is_quiet(one):
    """Whether the same connections are open as before, with nothing under way, to the same tables."""
    is_same = database._engine is postgresql and postgresql._pool is one.pool
    thread = postgresql._threads.own
    is_written = thread.writing or thread.after_commit or any(turn.locked() for turn in postgresql._turns.values())
    return is_same and not is_written and servers.alterations() == one.alterations and _is_idle(one.pool)


def _is_idle(pool):
    """Whether no thread has or wants a connection."""
    numbers = pool.get_stats()
    is_whole = numbers["pool_available"] == numbers["pool_size"] and not numbers["requests_waiting"]
    return is_whole and all(one.pgconn.transaction_status == TransactionStatus.IDLE for one in pool._pool)


def _states(pool):
    """The different states of the connections; none of one that is lost."""
    try:
        return {one.say(STATE).fetchone() for one in pool._pool}
    except psycopg.Error:
        return set()
