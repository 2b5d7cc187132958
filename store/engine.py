"""The interface of a database engine, and the errors that every engine raises.

`store/database.py` is what the rest of the code uses; the engines are beside it. Must not know the tables.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import peewee

EVERYBODY = 0  # instead of an account: for rows of no account, such as the service's own keys, and for addresses
ROOT = Path(__file__).parents[1]
MIGRATIONS = ROOT / "migrations"
SCHEMA_VERSION = max(int(step.name[:4]) for step in MIGRATIONS.glob("*.sql"))  # that of schema.sql

DatabaseError = peewee.PeeweeException  # whatever the database refuses
IntegrityError = peewee.IntegrityError  # a row that contradicts others, such as one of a deleted account
WriteFailed = peewee.OperationalError  # a write that cannot be made now: locked, disk full, read-only
Values = Sequence[object] | Mapping[str, object]

writes_fail = False  # whether the last transaction could not be made, and no change has reached the disk since


def make_way() -> None:
    """Called by a thread that may now wait for long, say for a provider or PostgreSQL; the server replaces this."""


def go_beside() -> None:
    """Called before a request queries PostgreSQL: others run beside it, if not too many; the server replaces this."""


def pass_on() -> None:
    """Called before a wait for a commit: others run meanwhile; the server replaces this."""


def let_others() -> None:
    """Called by a thread before a commit, so that others that are ready can share it; the server replaces this."""


class DatabaseRefused(SystemExit):
    """The database cannot be used as it is. Uncaught, this ends the process with one line and status 1."""


@dataclass(frozen=True)
class ServerUrl:
    """Where a PostgreSQL server is, and how many connections to keep."""

    url: str = field(repr=False)  # with the password
    connections: int

    def __str__(self) -> str:
        """The address without user, password and parameters."""
        return f"postgresql://{self.url.rpartition('//')[2].rpartition('@')[2].partition('?')[0]}"


class Thread:
    """A thread's open transaction, if there is one. The engine keeps its connection beside it."""

    def __init__(self) -> None:
        self.accounts: tuple[int, ...] = ()  # that the transaction names; empty if there is none
        self.after_commit = list[Callable[[], object]]()  # calls to make after its commit


@contextmanager
def part(run: Callable[[str], object], thread: Thread, account_seqs: tuple[int, ...]) -> Iterator[None]:
    """A part of the open transaction. If the block fails, the part alone is undone, and its after-commit calls go.

    It takes no lock that the transaction has not taken: two could wait for each other.
    """
    if not set(account_seqs) <= set(thread.accounts):
        raise RuntimeError("a part of a transaction names an account that the transaction does not name")
    run("SAVEPOINT part")
    calls_before = len(thread.after_commit)
    try:
        yield
        run("RELEASE part")
    except BaseException as error:
        del thread.after_commit[calls_before:]
        try:
            run("ROLLBACK TO part")
            run("RELEASE part")
        except BaseException:  # the whole transaction is gone: SQLite has rolled it back, or the connection is lost
            raise WriteFailed("the transaction was rolled back") from error
        raise


class Cursor(Protocol):
    """The result of a statement, as in PEP 249: `rowcount` says how many rows were changed."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Table(NamedTuple):
    """A table of the newest schema."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]  # of the columns, as SQLite calls them
    key: str  # the columns of the primary key
    never_reuses: bool  # whether a seq is never given again, not even that of a deleted row

    @property
    def rows_at_once(self) -> int:
        """How many rows to have in memory: one of most tables has up to 64 KB, a picture 2 MB."""
        return 10 if "data" in self.columns else 500


@cache
def inserting(table: str, columns: tuple[str, ...], rows: int = 1) -> str:
    """The statement that adds so many rows to a table."""
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"


class Rows(Protocol):
    """All rows of a database, for filling another one."""

    tables: list[Table]  # each after the tables that it refers to

    def of(self, table: Table) -> Iterator[tuple[Any, ...]]:
        """A table's rows, in the order of its columns."""

    def last_seq(self, table: Table) -> int:
        """The highest seq that the table has given; 0 if that is not known, or there was none."""


class Engine(Protocol):
    """A module for one kind of database. Its functions are described in store/database.py, which calls them."""

    def open_database(self, place: Any, migrations: Path, newest: int) -> int: ...
    def has_data(self, place: Any) -> bool: ...
    def run(self, statement: str, values: Values = ()) -> Cursor: ...
    def insert(self, statement: str, values: Values) -> int: ...
    def run_later(self, statement: str, values: Values) -> object: ...
    def transaction(self, *account_seqs: int, lazy: bool = False) -> AbstractContextManager[None]: ...
    def this_thread(self) -> Thread: ...
    def version(self) -> int: ...
    def give_back(self) -> None: ...
    def close(self) -> None: ...
    def copy_database(self, target: Path, changes: Sequence[str] = ()) -> None: ...
    def fill(self, rows: Rows) -> dict[str, int]: ...

    # Statements that return one value; of a server, NULL without one.
    CHECK: str
    CLOCK_MS: str
    SIZE_BYTES: str
    MOST_CONNECTIONS: str
