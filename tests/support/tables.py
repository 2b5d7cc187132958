"""The database's contents, read and changed behind the service's back."""

import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

from store import database, sqlite, sqlite_file
from tests.support import postgresql


def query(service, statement):
    """The rows of a SELECT on the service's database."""
    if not isinstance(service.settings.database, Path):
        return postgresql.query(statement)
    return look(service.settings.database, statement)


def everything():
    """All rows of all tables."""
    if postgresql.IS_WANTED:
        return {table: database.run(f"SELECT * FROM {table}").fetchall() for table in postgresql.tables()}
    tables = database.run("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    return {table: database.run(f"SELECT * FROM {table}").fetchall() for (table,) in tables}


def copy_first_row(service, count, every_ms):
    """Add `count` copies of the oldest notification, each `every_ms` later than the one before."""
    (columns,) = (table.columns for table in sqlite_file.tables() if table.name == "notification")
    same = ", ".join(name for name in columns if name not in ("seq", "id", "created_at"))
    copy = (
        f"INSERT INTO notification (id, created_at, {same})"
        f" SELECT ?, created_at + ?, {same} FROM notification ORDER BY seq LIMIT 1"
    )
    with database.transaction(database.EVERYBODY):
        for number in range(1, count + 1):
            database.run(copy, (f"{number:032x}", number * every_ms))


def alter(service, statement):
    """Run a statement behind the service's back, whatever refers to the rows that it changes."""
    if not isinstance(service.settings.database, Path):
        postgresql.alter(statement)
        return
    with closing(sqlite3.connect(service.settings.database)) as file, file:
        file.execute("PRAGMA foreign_keys = OFF")
        file.execute(statement)


def look(path, statement):
    """What another program reads in the file."""
    with closing(sqlite3.connect(path)) as file:
        return file.execute(statement).fetchall()


def spare_the_disk():
    """Wait for no write to be on the disk: no test loses power."""
    if not database.is_shared():
        sqlite._writer.opened().execute("PRAGMA synchronous = OFF")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


NO_SUCH_TABLE = "does not exist" if postgresql.IS_WANTED else "no such table"
FULL = "BEGIN SELECT RAISE(ABORT, 'disk full'); END"  # of a trigger


COUNT = "SELECT count(*) FROM server_key"  # the rows of `put`
ADD_ACCOUNT = "INSERT INTO account (email, plan, time_zone, created_at) VALUES (?, 'starter', 'UTC', 0)"


def version(path):
    return look(path, "PRAGMA user_version")[0][0]


def put(n):
    """Insert a row, inside a transaction."""
    database.run("INSERT INTO server_key VALUES (?, '')", (str(n),))


def break_the_commit():
    """Write what only the commit finds to be wrong."""
    database.run("PRAGMA defer_foreign_keys = ON")
    database.run("INSERT INTO session (token_hash, account_seq, created_at, expires_at) VALUES (x'00', 999, 0, 0)")


def in_threads(number, work):
    """Run `work(n)` in `number` threads at once, and return what they raised."""
    faults, start = [], threading.Barrier(number)

    def run(n):
        start.wait()
        try:
            work(n)
        except Exception as fault:
            faults.append(fault)
        finally:
            database.give_back()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return faults
