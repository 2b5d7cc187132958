"""Connections to PostgreSQL: how they are opened, their errors, and the creation of the tables.

Must not know the pool (store/postgresql.py), the tables or a setting.
"""

import json
import logging
import threading
from pathlib import Path
from typing import Any, cast

import peewee
import psycopg
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper, IntLoader
from psycopg.types.string import StrDumperUnknown

from store.dialect import translated
from store.engine import ROOT, DatabaseError, DatabaseRefused, ServerUrl, WriteFailed
from store.postgresql_statements import Connection as Connection
from store.sqlite import statements
from wire.strict_json import without_nul

MIN_VERSION = 14
START_TRIES = 60  # at the start; each takes half a second while nothing listens
TRY_EVERY_S = 0.5
UPGRADE_S = 3_600.0
# The server soon ends a connection whose other end is gone, as after a power cut, and frees its locks.
KEPT_ALIVE = "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2;"
OF_CONNECTION = (
    f"{KEPT_ALIVE} SET lock_timeout = '2s'; SET statement_timeout = '3s';"
    " SET idle_in_transaction_session_timeout = '10s';"
    " SET default_transaction_isolation = 'read committed';"
    # All is read by indexes, mostly in memory: with the usual cost of a page, it would sort all of an account's rows.
    " SET random_page_cost = 1.1;"
    # A commit is on the disk, whatever the database or the role says; a stricter setting stays.
    " SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
PARAMETERS = {  # of a connection, unless the URL says something else
    "application_name": "pocketbell",
    "client_encoding": "UTF8",  # whatever the database, the role or PGCLIENTENCODING says
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 4_000,
}
OUR_LOCKS = 0x506B626C  # the first number of our advisory locks; the second is an account's seq, or:
UPGRADE = -1
SERVICE = -2  # one service at a time
# Errors that may go away, by the beginning of sqlstate: read-only, privileges, resources, locks, the server's end.
NOT_NOW = ("25006", "42501", "53", "55", "57", "58")

log = logging.getLogger("pocketbell.database")


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(without_nul(obj))


class _ListDumper(StrDumperUnknown):
    def dump(self, obj: Any) -> Any:
        return super().dump(json.dumps(obj))


class _FlagLoader(Loader):
    """Flags are 0 and 1 in the tables."""

    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


def failure(connection: Connection, error: psycopg.Error) -> DatabaseError:
    """The error as the rest of the code knows it: psycopg's own text would quote the refused row.

    A connection that may be to blame is closed: it leads to a standby, is lost, or without an answer. A server that
    was set read-only keeps its connections, which can still read.
    """
    state = error.sqlstate or ""
    says = f"{state}: {error.diag.message_primary}" if state else type(error).__name__
    is_operational = isinstance(error, psycopg.OperationalError)
    if is_operational and not state:
        says = "the connection to PostgreSQL was lost"
    leads_astray = state == "25006" and not _was_set_read_only(connection)
    is_lost = state.startswith("57P") or (not state and is_operational)
    if not connection.broken and (leads_astray or is_lost):
        connection.close()
    if is_operational or state.startswith(NOT_NOW):
        return WriteFailed(says)
    kinds = (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError)
    kind = next((kind for kind in kinds if isinstance(error, kind)), psycopg.InternalError)
    return cast(DatabaseError, getattr(peewee, kind.__name__)(says))


def _was_set_read_only(connection: Connection) -> bool:
    told = connection.info.parameter_status
    return told("default_transaction_read_only") == "on" and told("in_hot_standby") != "on"


def parameters(url: ServerUrl) -> dict[str, Any]:
    """The parameters of a connection that the URL does not set."""
    said = conninfo_to_dict(url.url)
    return {"autocommit": True} | {name: value for name, value in PARAMETERS.items() if name not in said}


def configure(connection: Connection) -> None:
    """Set the limits of a new connection, and how values are sent and read."""
    connection.execute(OF_CONNECTION)
    for kind, dumper in ((str, _TextDumper), (list, _ListDumper), (int, Int8Dumper), (bool, Int8Dumper)):
        connection.adapters.register_dumper(kind, dumper)
    for name, loader in (("bool", _FlagLoader), ("numeric", IntLoader)):  # the sum of integers is numeric
        connection.adapters.register_loader(name, loader)


def connected(url: ServerUrl) -> Connection:
    """A new connection."""
    connection = Connection.connect(url.url, **parameters(url))
    connection.execute(KEPT_ALIVE)
    return connection


def patiently_connected(url: ServerUrl) -> Connection:
    """A connection; a server that does not answer may be just starting."""
    for tries_left in reversed(range(START_TRIES)):
        try:
            connection = connected(url)
            _refuse_sharing(connection, url)
            return connection
        except psycopg.OperationalError as error:
            reason = _reason(error)
            if tries_left == START_TRIES - 1:
                log.warning("%s cannot be reached yet (%s): trying for 30 s.", url, reason)
        except psycopg.Error as error:
            raise refused(url, _reason(error)) from None
        threading.Event().wait(TRY_EVERY_S)
    raise refused(url, reason)


def _refuse_sharing(connection: Connection, url: ServerUrl) -> None:
    """Refuse a pooler that gives each transaction another connection: settings and locks belong to a connection.

    A pooler makes up the process id of a connection. In its session mode no two connections are one of the server's.
    """
    own = _server_process(connection)
    if own == connection.info.backend_pid:
        return
    with connected(url) as other:
        if _server_process(other) == own:
            connection.close()
            raise refused(url, "a pooler in transaction mode is before it, where session mode is needed")


def _server_process(connection: Connection) -> int:
    found = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(found[0]) if found else 0


def _reason(error: psycopg.Error) -> str:
    """Why a connection failed; a URL that is not understood is not quoted, since it holds a password."""
    if not isinstance(error, psycopg.OperationalError):
        return "DATABASE_URL is not understood"
    lines = str(error).splitlines()
    return " ".join(" ".join(line for line in lines if not line.startswith("\t")).split())  # tabs: advice of libpq


def refused(url: ServerUrl, why: str) -> DatabaseRefused:
    """The sentence with which a database is refused."""
    return DatabaseRefused(f"The database {url} cannot be used: {why}.")


def prepare(connection: Connection, url: ServerUrl, migrations: Path, newest: int) -> int:
    """Make or upgrade the tables; refuse a foreign or newer database. Returns the schema that it had, 0 if empty."""
    if connection.info.server_version < MIN_VERSION * 10_000:
        raise refused(url, f"Pocketbell needs PostgreSQL {MIN_VERSION} or later")
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise refused(url, "its encoding is not UTF8")
    if schema_version(connection) == newest:
        return newest
    connection.answer_s = UPGRADE_S
    connection.execute(f"BEGIN; SELECT pg_advisory_xact_lock({OUR_LOCKS}, {UPGRADE})")
    version = schema_version(connection)
    if version > newest:
        raise refused(url, f"it has schema {version}, made by a newer Pocketbell; this one knows up to {newest}")
    tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").fetchone()
    if not version and tables != (0,):
        raise refused(url, "it has tables of another program")
    for script in [ROOT / "schema.sql"] if not version else _steps(migrations, version, newest):
        for statement in statements(script.read_text()):
            connection.execute(translated(statement))
    if not version:
        connection.execute("CREATE TABLE pocketbell_schema (version BIGINT NOT NULL)")
        connection.execute("INSERT INTO pocketbell_schema VALUES (0)")
    connection.execute("UPDATE pocketbell_schema SET version = %s", (newest,))
    connection.execute("COMMIT")
    return version


def _steps(migrations: Path, version: int, newest: int) -> list[Path]:
    return [next(migrations.glob(f"{step:04}_*.sql")) for step in range(version + 1, newest + 1)]


def schema_version(connection: Connection) -> int:
    """The number of the schema; 0 if the database does not have our tables."""
    if connection.execute("SELECT to_regclass('pocketbell_schema')").fetchone() == (None,):
        return 0
    found = connection.execute("SELECT version FROM pocketbell_schema").fetchone()
    return int(found[0]) if found else 0


def has_data(url: ServerUrl) -> bool:
    """Whether the database has our tables."""
    try:
        with connected(url) as connection:
            return schema_version(connection) > 0
    except psycopg.Error as error:
        raise refused(url, _reason(error)) from None
