"""Reads tables of another program's SQLite file, and writes nothing. Must not know which program that is."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from store.engine import DatabaseRefused
from store.sqlite import is_sqlite

Tables = dict[str, list[dict[str, Any]]]
Columns = Mapping[str, type]  # each with the type of its values


def read(path: Path, wanted: Mapping[str, Columns], kind: str) -> Tables:
    """The rows of these tables, with these columns; `DatabaseRefused` names what is missing or of another type.

    `kind` is what the file should be, in words. `OSError` if there is no such file.
    """
    if not is_sqlite(path):
        raise DatabaseRefused(f"{path} is not an SQLite file.")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            unlike = f"{path} is not {kind} of a version that is known"
            return {table: _rows(connection, table, columns, unlike) for table, columns in wanted.items()}
    except sqlite3.Error as error:
        raise DatabaseRefused(f"{path} cannot be read: {error}.") from None


def _rows(file: sqlite3.Connection, table: str, columns: Columns, unlike: str) -> list[dict[str, Any]]:
    has = {row["name"] for row in file.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    if missing := next((column for column in columns if column not in has), None):
        column = f"the column {missing} of " if has else ""
        raise DatabaseRefused(f"{unlike}: it lacks {column}the table {table}.")
    rows = [dict(row) for row in file.execute(f'SELECT {", ".join(columns)} FROM "{table}" ORDER BY rowid')]
    for column, kind in columns.items():
        if not all(type(row[column]) is kind for row in rows):
            raise DatabaseRefused(f"{unlike}: the column {column} of the table {table} has another kind of value.")
    return rows
