"""All rows of a PostgreSQL database: copied to an SQLite file, or filled in from one.

Must not know the tables or a setting.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from store.engine import SCHEMA_VERSION, DatabaseRefused, Rows, Table, inserting
from store.postgresql_connection import UPGRADE_S, Connection, failure, schema_version
from store.sqlite import keep_last_seq
from store.sqlite_file import new_file, tables
from wire.strict_json import without_nul

TYPES = {"INTEGER": "int8", "TEXT": "text", "REAL": "float8", "BLOB": "bytea"}
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
PATIENTLY = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"


def write_file(connection: Connection, target: Path, changes: Sequence[str]) -> None:
    """Write this connection's snapshot to an SQLite file; `FileExistsError` if that exists."""
    with new_file(target, changes) as file:
        connection.answer_s = UPGRADE_S
        _run(connection, PATIENTLY)
        if schema_version(connection) != SCHEMA_VERSION:
            raise DatabaseRefused("The database was upgraded by a newer Pocketbell: make the backup with that one.")
        for table in tables():
            file.executemany(inserting(table.name, table.columns), _rows(connection, table))
            if table.never_reuses:
                sequence = _run(connection, f"SELECT pg_get_serial_sequence('{table.name}', 'seq')").fetchone()[0]
                last, was_given = _run(connection, f"SELECT last_value, is_called FROM {sequence}").fetchone()
                keep_last_seq(file, table, last if was_given else 0)


def _rows(connection: Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    try:
        with connection.cursor("rows", binary=True) as cursor:
            cursor.itersize = table.rows_at_once
            yield from cursor.execute(f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {table.key}")
    except psycopg.Error as error:
        raise failure(connection, error) from None


def fill(connection: Connection, rows: Rows) -> dict[str, int]:
    """Replace everything by these rows, in the open transaction; returns how many there were of each table.

    Nobody else can read the tables until it ends: no service starts meanwhile with the keys that were there before.
    """
    connection.answer_s = UPGRADE_S
    _run(connection, PATIENTLY)
    _run(connection, f"TRUNCATE {', '.join(table.name for table in rows.tables)} RESTART IDENTITY")
    return {table.name: _fill(connection, table, rows) for table in rows.tables}


def _fill(connection: Connection, table: Table, rows: Rows) -> int:
    count = _copy(connection, table, rows.of(table))
    if table.key == "seq":  # a row without a number gets the next one
        highest = f"greatest({rows.last_seq(table)}, (SELECT max(seq) FROM {table.name}))"
        _run(
            connection,
            f"SELECT setval(pg_get_serial_sequence('{table.name}', 'seq'), highest)"
            f" FROM (SELECT {highest} AS highest) given WHERE highest > 0",
        )
    return count


def _copy(connection: Connection, table: Table, rows: Iterator[tuple[Any, ...]]) -> int:
    """Add these rows; returns how many there were."""
    count, into = 0, f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN (FORMAT BINARY)"
    try:
        with connection.cursor() as cursor, cursor.copy(into) as copy:
            copy.set_types([TYPES[kind] for kind in table.types])
            for row in rows:
                copy.write_row([without_nul(value) if isinstance(value, str) else value for value in row])
                count += 1
    except psycopg.errors.UniqueViolation:  # SQLite has the same constraints
        raise DatabaseRefused(
            f"Two rows of the table {table.name} would be the same in PostgreSQL, whose texts have no NUL:"
            " nothing was imported."
        ) from None
    except psycopg.Error as error:
        raise failure(connection, error) from None
    return count


def _run(connection: Connection, statement: str) -> Any:
    try:
        return connection.execute(statement)
    except psycopg.Error as error:
        raise failure(connection, error) from None
