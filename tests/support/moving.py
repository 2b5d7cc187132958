"""Databases to move: a file with extreme rows in every table, and commands on any database, one after the other."""

import functools
import os
import re
import shutil
import sqlite3
from contextlib import closing, contextmanager

import config
from app import create_app
from store import database, sqlite_file, sqlite_lock
from store.engine import ServerUrl
from tests.support import postgresql
from tests.support.service import SCRATCH, empty_database

TEXTS = ["a\0b", "\ufffd", "\U0001f525\U0001f468\u200d\U0001f469\U0010ffff", "'; --\n\r\t\\N %s ?", "\ud7ff\ue000"]
REALS = [1.7976931348623157e308, -0.0, 5e-324]
INTEGERS = [2**63 - 1, -(2**63), 0]
BLOBS = [b"\0", b"\xff" * 64, b""]
ROWS = (1, 2, 3)
LAST_SEQ = 41  # of a row that was deleted
CHECKED = re.compile(r"CHECK \((\w+) (?:(?:= |IN \()'?(\w+|<|>)'?|BETWEEN (\d+))")
EMPTY = """
DO $$
DECLARE one record;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'pocketbell_schema' LOOP
        EXECUTE format('DELETE FROM %I', one.tablename);
    END LOOP;
    PERFORM setval(sequencename::regclass, 1, false) FROM pg_sequences;
END $$
"""
SPECIAL = {
    "email": lambda row: f"owner{row}@example.org",
    "short_code": lambda row: f"code00{row}",
    "cron": lambda row: None if row < 3 else "* * * * *",
    "period_s": lambda row: row if row < 3 else None,
    "until": lambda row: row if row < 3 else None,
    "for_s": lambda row: None if row < 3 else row,
    "threshold": lambda row: REALS[row - 1],
}


tables = functools.cache(sqlite_file.tables)


def _checked(created):
    """The values that a table's CHECKs ask for, by column."""
    found = CHECKED.findall(created)
    return {name: int(word) if (word := text or number).isdecimal() else word for name, text, number in found}


def _value(table, column, kind, can_be_null, row, checked):
    if column in SPECIAL and not (column in ("threshold", "for_s") and not can_be_null):
        return SPECIAL[column](row)
    if column.endswith("seq"):
        return row
    if can_be_null and row == ROWS[-1]:
        return None
    if column in checked:
        return checked[column]
    return {
        "TEXT": TEXTS[(len(column) + row) % len(TEXTS)] + str(row),
        "REAL": REALS[row - 1],
        "INTEGER": INTEGERS[row - 1],
        "BLOB": BLOBS[row - 1],
    }[kind]


@functools.cache
def extreme_file():
    """An SQLite file, to be copied, with three rows in every table: what columns of their types can hold."""
    path = shutil.copy(empty_database(), SCRATCH / "extreme.db")
    with closing(sqlite3.connect(path)) as file, file:
        for table in tables():
            nullable = {
                row[1] for row in file.execute(f"PRAGMA table_info({table.name})") if not row[3] and not row[5]
            }
            created = "SELECT sql FROM sqlite_schema WHERE name = ?"
            checked = _checked(file.execute(created, (table.name,)).fetchone()[0])
            columns = list(zip(table.columns, table.types, strict=True))
            for row in ROWS:
                values = [_value(table, name, kind, name in nullable, row, checked) for name, kind in columns]
                places = ", ".join("?" * len(values))
                file.execute(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})", values)
        file.execute("UPDATE sqlite_sequence SET seq = ?", (LAST_SEQ,))
        file.execute("DELETE FROM server_key WHERE name = 'secret'")
    return path


def contents(path):
    """All rows of all tables of a file, and the highest numbers that were given."""
    with closing(sqlite3.connect(path)) as file:
        found = {
            table.name: file.execute(
                f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {table.key}"
            ).fetchall()
            for table in tables()
        }
        found["sqlite_sequence"] = file.execute("SELECT name, seq FROM sqlite_sequence ORDER BY name").fetchall()
    return found


def without_nul(found):
    """The same rows as PostgreSQL keeps them."""
    return {
        table: [tuple(v.replace("\0", "\ufffd") if isinstance(v, str) else v for v in row) for row in rows]
        for table, rows in found.items()
    }


def contents_here():
    """All rows of all tables of the open database."""
    return {
        table.name: database.run(
            f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {table.key}"
        ).fetchall()
        for table in tables()
    }


@functools.cache
def _application():
    """One for all commands: making the routes takes longer than most of them."""
    return create_app()


def run_command(data_dir, *args, **environ):
    """Run a command as a process of its own would: afterwards nothing is open, and no lock is held."""
    settings, application = config.load({"DATA_DIR": str(data_dir), **environ}), _application()
    application.config["SETTINGS"], application.is_open = settings, False
    try:
        return application.test_cli_runner().invoke(args=[str(arg) for arg in args])
    finally:
        database.close()
        free_locks()


def free_locks():
    """Free the locks that this process holds as a service would."""
    while sqlite_lock._kept_open:
        os.close(sqlite_lock._kept_open.pop())
    if postgresql.program("initdb"):
        from store import postgresql_lock

        while postgresql_lock._kept_open:
            postgresql_lock._kept_open.pop().close()


@functools.cache
def _server_database():
    return postgresql.new_database_with_tables(f"moving_{os.getpid()}")


def emptied_server_database():
    """The address of this process's second database, with all tables. Each call empties it: a test has one."""
    with postgresql.beside(ServerUrl(_server_database(), 1)) as connection:
        connection.execute(EMPTY)
    return _server_database()


@contextmanager
def opened(place):
    """Open a database for the length of the block."""
    database.open_database(place)
    try:
        yield
    finally:
        database.close()
