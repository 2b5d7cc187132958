"""SQLite files beside the live database: a backup of PostgreSQL writes one, an import reads ours or another's.

Must not know the tables, which schema.sql names, a setting, or which other program that is.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from store.engine import ROOT, SCHEMA_VERSION, DatabaseRefused, Table
from store.sqlite import APPLICATION_ID, is_sqlite, placed
from store.sqlite_connection import known_errors

CACHE_KB = 16_000
SCHEMA = ROOT / "schema.sql"

Tables = dict[str, list[dict[str, Any]]]
Columns = Mapping[str, type]  # each with the type of its values


def tables() -> list[Table]:
    """The tables of the newest schema, each after the tables that it refers to."""
    with closing(sqlite3.connect(":memory:")) as scratch:
        scratch.executescript(SCHEMA.read_text())
        named = scratch.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY rowid"
        )
        return [_table(scratch, name, "AUTOINCREMENT" in sql) for name, sql in named.fetchall()]


def _table(scratch: sqlite3.Connection, name: str, never_reuses: bool) -> Table:
    columns = scratch.execute("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
    key = sorted((place, column) for column, _, place in columns if place)
    return Table(
        name,
        tuple(column for column, _, _ in columns),
        tuple(kind for _, kind, _ in columns),
        ", ".join(column for _, column in key),
        never_reuses,
    )


# --- writing ------------------------------------------------------------------------------------------------


@contextmanager
def new_file(target: Path, changes: Sequence[str]) -> Iterator[sqlite3.Connection]:
    """Write a database that becomes `target`, mode 0600, when it is whole and the statements `changes` were run.

    `FileExistsError` if `target` exists.
    """
    with (
        placed(target, changes) as path,
        known_errors(),
        closing(sqlite3.connect(path, isolation_level=None)) as file,
    ):
        for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{CACHE_KB}"):  # nobody sees it yet
            file.execute(f"PRAGMA {pragma}")
        file.executescript(f"{SCHEMA.read_text()}; PRAGMA user_version = {SCHEMA_VERSION}; BEGIN")
        yield file
        file.execute("COMMIT")


# --- reading ------------------------------------------------------------------------------------------------


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


class OldFile:
    """A file's rows as they were when it was opened; every fault ends in `DatabaseRefused`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.tables = tables()

    def __enter__(self) -> "OldFile":
        with _refusing(self._path):
            self._connection = _opened(self._path)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("BEGIN")
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def check(self) -> None:
        """Refuse a file that is not Pocketbell's, has another schema, or is damaged."""
        if self._first("PRAGMA application_id") != (APPLICATION_ID,):
            raise refused(self._path, "it is another program's")
        (version,) = self._first("PRAGMA user_version")
        if version > SCHEMA_VERSION:
            why = f"it has schema {version}, made by a newer Pocketbell; this one knows up to {SCHEMA_VERSION}"
            raise refused(self._path, why)
        if version < SCHEMA_VERSION:
            how = "upgrade a copy of it with: DATABASE_URL=sqlite:////PATH/COPY ./pocketbell account list"
            raise refused(self._path, f"it has schema {version} and this Pocketbell {SCHEMA_VERSION}; {how}")
        (fault,) = self._first("PRAGMA quick_check(1)")
        if fault != "ok":
            raise refused(self._path, f"it is damaged ({fault})")

    def _first(self, question: str, *values: object) -> Any:
        with _refusing(self._path):
            return self._connection.execute(question, values).fetchone()

    def of(self, table: Table) -> Iterator[tuple[Any, ...]]:
        """A table's rows, in the order of its columns."""
        with _refusing(self._path):
            yield from self._connection.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}")

    def last_seq(self, table: Table) -> int:
        """The highest seq that the table has given; 0 if that is not known, or there was none."""
        found = table.never_reuses and self._first("SELECT seq FROM sqlite_sequence WHERE name = ?", table.name)
        return int(found[0]) if found else 0


def checked(path: Path) -> None:
    """Refuse a file that is not a whole SQLite database of this schema: `DatabaseRefused`."""
    try:
        if not is_sqlite(path):
            raise refused(path, "it is not an SQLite file")
    except OSError as error:
        raise refused(path, str(error.strerror)) from None
    with OldFile(path) as old:
        old.check()


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into a refusal; those of the other database pass."""
    try:
        yield
    except sqlite3.Error as error:
        raise refused(path, " ".join(str(error).split())) from None


def refused(path: Path, why: str) -> DatabaseRefused:
    """The sentence with which a file is refused."""
    return DatabaseRefused(f"The file {path} cannot be imported: {why}.")


# --- another program's ----------------------------------------------------------------------------------------


def read_tables(path: Path, wanted: Mapping[str, Columns], kind: str) -> Tables:
    """The rows of these tables, with these columns; `DatabaseRefused` names what is missing or of another type.

    `kind` is what the file should be, in words. `OSError` if there is no such file.
    """
    if not is_sqlite(path):
        raise DatabaseRefused(f"{path} is not an SQLite file.")
    try:
        with closing(_opened(path)) as connection:
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
