"""One service at a time on a PostgreSQL database, where nothing else makes several count as one: an advisory lock.

The server frees it however the service ends. The worker inherits the connection when it is forked, since it may
outlive its master. Must not know the tables or a setting.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg

from store.engine import DatabaseRefused, ServerUrl
from store.postgresql_connection import OUR_LOCKS, SERVICE, Connection, connected, patiently_connected

LOOKS = 600  # before it gives up
LOOKS_AT_LEAVING = 30  # the server needs a moment to end a closed connection
LOOKS_EVERY_S = 0.1
KEPT_EVERY_S = 5.0
MISSES = 4  # in a row before the lock is lost: for ten seconds, a broken connection of our own may still hold it
TAKE = f"SELECT pg_try_advisory_lock({OUR_LOCKS}, {SERVICE})"
TAKE_ALONE = (  # if nothing else of Pocketbell is connected
    f"{TAKE} AND NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND application_name = current_setting('application_name'))"
)

log = logging.getLogger("pocketbell.database")
_kept_open = list[Connection]()  # whose end would free the lock


def _pause() -> None:
    threading.Event().wait(LOOKS_EVERY_S)


def take(url: ServerUrl, tell: Callable[[str], object]) -> None:
    """Take the lock for this process and its forks, or wait until the service that has it ends.

    `tell` is called with a sentence when there is one; raises `DatabaseRefused` after a minute.
    """
    waits = f"Another Pocketbell is using the database {url}: waiting for it to stop."
    _wait_for_lock(url, TAKE, LOOKS, lambda: tell(waits))


def claim(url: ServerUrl) -> None:
    """Take the lock; `DatabaseRefused` if anything of Pocketbell stays connected to the database.

    Services that count together with Redis take no lock, but are connected. What has just ended may still seem so.
    """
    _wait_for_lock(url, TAKE_ALONE, LOOKS_AT_LEAVING)


def _wait_for_lock(url: ServerUrl, statement: str, looks: int, tell: Callable[[], object] = lambda: None) -> None:
    """Keep the connection that takes the lock; tells after the first look that fails, and gives up after the last."""
    connection = patiently_connected(url)
    for look in range(looks):
        if connection.closed:  # the server was started anew
            connection = patiently_connected(url)
        if _takes(connection, statement):
            _kept_open.append(connection)
            return
        if not look:
            tell()
        _pause()
    connection.close()
    raise DatabaseRefused(f"Another Pocketbell is using the database {url}: stop it first.")


def _takes(connection: Connection, statement: str = TAKE) -> bool:
    """Whether this connection has the lock now; it is closed if it turns out to be lost."""
    try:
        row = connection.execute(statement).fetchone()
    except psycopg.OperationalError:
        connection.close()
        return False
    return bool(row and row[0])


def keep(url: ServerUrl, lost: Callable[[], object]) -> None:
    """Take the lock again, in a thread of its own, when its connection was lost; `lost` if that fails for long."""
    threading.Thread(target=_keep, args=(url, lost), name="service lock", daemon=True).start()


def _keep(url: ServerUrl, lost: Callable[[], object]) -> None:
    misses = 0
    while misses < MISSES:
        misses = 0 if is_held(url) else misses + 1
        threading.Event().wait(KEPT_EVERY_S)
    log.critical("Another Pocketbell has taken the database %s while its server was away: this one stops.", url)
    lost()


def is_held(url: ServerUrl) -> bool:
    """Whether this service has the lock, as far as anybody knows; takes it again after its connection was lost."""
    with suppress(psycopg.Error):
        _kept_open[0].execute("SELECT 1")
        return True
    with suppress(psycopg.Error):  # the server is away: it is looked at again
        connection = connected(url)
        if _takes(connection):
            _kept_open[0] = connection
        else:
            return connection.closed
    return True
