"""PostgreSQL for the tests: one server for all of a run's processes, which lives in memory, and a database for each.

With POCKETBELL_TEST_DATABASE=postgresql the services of the tests keep everything there. Without the programs, tests
that need them are skipped, unless REQUIRE_POSTGRESQL=1.
"""

import atexit
import contextlib
import fcntl
import functools
import itertools
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from store.engine import ServerUrl
from tests.support.server import SHARED, free_port

IS_WANTED = os.environ.get("POCKETBELL_TEST_DATABASE") == "postgresql"
PLACES = ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"]
FAST = [
    "fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0",
    "autovacuum=off", "track_counts=off", "jit=off", "checkpoint_timeout=1d", "max_connections=300",
    "plan_cache_mode=force_generic_plan",  # as after a statement's fifth time: to plan each takes a tenth of a run
]  # fmt: skip
USER = "postgres"  # the server refuses to run as root
TRUNCATE_AFTER = 200  # times: what was deleted still has to be passed over
EMPTY = """
CREATE FUNCTION pg_temp.empty() RETURNS void LANGUAGE plpgsql SET session_replication_role = replica AS
$$ BEGIN {} END $$
"""


def begin_run():
    """Make the directory that a run's processes share; called in the first of them."""
    if SHARED not in os.environ:
        os.environ[SHARED] = tempfile.mkdtemp(prefix="pocketbell-postgresql-")
        atexit.register(end_run, os.getpid(), Path(os.environ[SHARED]))


def end_run(process, directory):
    """Stop the server, if one was started."""
    if os.getpid() == process:
        if (directory / "url").exists():
            _command("pg_ctl", "-D", directory / "data", "-m", "immediate", "stop")
        shutil.rmtree(directory, ignore_errors=True)


@functools.cache
def program(name):
    """The path of one of PostgreSQL's programs; None if it is not installed."""
    found = [str(path / name) for place in PLACES for path in sorted(Path("/").glob(place[1:]), reverse=True)]
    return next((path for path in found if Path(path).exists()), shutil.which(name))


def _command(name, *arguments):
    as_user = ["runuser", "-u", USER, "--"] if os.getuid() == 0 else []
    with tempfile.TemporaryFile() as output:  # a pipe would be held open by the server
        done = subprocess.run([*as_user, program(name), *map(str, arguments)], stdout=output, stderr=output, cwd="/")
        output.seek(0)
        assert done.returncode == 0, output.read().decode()


def server():
    """The address of the server, which the first process that asks starts; skips the test if there is none."""
    if not program("initdb") or (os.getuid() == 0 and not _has_user()):
        assert not os.environ.get("REQUIRE_POSTGRESQL"), "PostgreSQL is not installed"
        pytest.skip("PostgreSQL is not installed")
    directory = Path(os.environ[SHARED])
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "url").exists():
            if os.getuid() == 0:
                shutil.chown(directory, USER)
            _initialize(directory / "new")
            (directory / "url").write_text(start(directory))
    return (directory / "url").read_text()


def _initialize(data):
    _command("initdb", "-D", data, "-A", "trust", "-U", USER, "-E", "UTF8", "--no-locale", "--no-sync")


def _has_user():
    return any(one.pw_name == USER for one in pwd.getpwall())


def start(directory, settings=FAST):
    """Start a server of one's own in a directory, which becomes its user's; returns its address.

    Its settings are those that spare the tests most, or, with none, PostgreSQL's own.
    """
    if os.getuid() == 0:
        shutil.chown(directory, USER)
    port = free_port()
    new = Path(os.environ.get(SHARED, directory)) / "new"
    if new.exists():  # to copy it takes a seventh of the time
        _command("cp", "-R", new, directory / "data")
    else:
        _initialize(directory / "data")
    words = [f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", *settings]
    with (directory / "data/postgresql.conf").open("a") as settings:
        settings.write("".join(f"{name} = '{value}'\n" for name, _, value in (word.partition("=") for word in words)))
    _command("pg_ctl", "-D", directory / "data", "-l", directory / "log", "-w", "start")
    return f"postgresql://{USER}@127.0.0.1:{port}"


@functools.cache
def own_database():
    """The address of this process's database, with all tables."""
    return _made_with_tables(f"of_{os.getpid()}_{next(_numbers)}")


def variables(is_new):
    """The variables of a service that is to keep its data in this process's database; none for SQLite."""
    if is_new and any(statement.startswith("DROP TABLE") for statement in _alterations):
        _alterations.clear()
        for kept in (own_database, connection, tables_and_sequences, _emptying):
            kept.cache_clear()
    return {"DATABASE_URL": own_database(), "DATABASE_CONNECTIONS": "4"} if IS_WANTED else {}


def new_database(name, template="template1"):
    """The address of a new database with that name: a copy of another one, by default of one that is empty."""
    import psycopg

    with psycopg.connect(f"{server()}/postgres", autocommit=True) as connection:
        # To log each page, as is usual from version 15 on, takes twice as long as to copy the files.
        how = "STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} {how}")
    return f"{server()}/{name}"


def _made_with_tables(name):
    from store import database

    url = new_database(name)
    database.open_database(ServerUrl(url, 1))
    database.close()
    return url


@functools.cache
def _with_tables():
    """The name of a database with all tables, which nobody uses: a copy takes a quarter of the time of a new one."""
    name = f"tables_of_{os.getpid()}"
    _made_with_tables(name)
    return name


def new_database_with_tables(name):
    """The address of a new database with that name, in which there are all tables."""
    return new_database(name, template=_with_tables())


@contextlib.contextmanager
def beside(url):
    """A connection of another program to any database."""
    import psycopg

    with psycopg.connect(url.url, autocommit=True) as connection:
        yield connection


def end_connections(url):
    """End all connections to a database, and wait until the server has done so."""
    with beside(url) as other:
        ours = "datname = current_database() AND pid <> pg_backend_pid()"
        other.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {ours}")


@functools.cache
def connection():
    """A connection to this process's database, beside those of the service."""
    from store.postgresql_connection import configure, connected

    one = connected(ServerUrl(own_database(), 1))
    configure(one)
    one.execute("SET default_transaction_read_only = off; SET statement_timeout = 0")
    return one


@functools.cache
def tables_and_sequences():
    rows = connection().execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    sequences = connection().execute("SELECT sequencename FROM pg_sequences").fetchall()
    return [row[0] for row in rows if row[0] != "pocketbell_schema"], [row[0] for row in sequences]


def tables():
    return sorted(tables_and_sequences()[0])


_numbers, _alterations = itertools.count(), []
sqlite_only = pytest.mark.skipif(IS_WANTED, reason="it is about SQLite")
# A constraint's error, which SQLite's RAISE(ABORT) is as well: a full disk itself is answered with 503.
FULL = """
CREATE OR REPLACE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = 'check_violation'; END $$;
"""


@functools.cache
def _emptying():
    """Counts from 1. The connection has a function that deletes all rows, whose plans it keeps."""
    tables, sequences = tables_and_sequences()
    deletes = [f"DELETE FROM {table};" for table in tables]
    starts = [f"PERFORM setval('{one}', 1, false);" for one in sequences]
    connection().execute(EMPTY.format("".join(deletes + starts)))
    return itertools.count(1)


def empty(*note):
    """Empty this process's database, except for a note with this name and value, if they are given."""
    if next(_emptying()) % TRUNCATE_AFTER == 0:
        connection().say(f"TRUNCATE {', '.join(tables())}")
    if _alterations:
        connection().say("DROP FUNCTION IF EXISTS disk_full() CASCADE")
    connection().execute("SELECT pg_temp.empty()")
    if note:
        connection().execute("INSERT INTO server_note (name, value) VALUES (%s, %s)", note)


def alterations():
    """How often a test has changed this process's database in another way than the service does."""
    return len(_alterations)


def alter(statement):
    """Change tables or rows, whatever refers to them; the next service gets a new database if a table is gone."""
    if trigger := re.fullmatch(r"CREATE TRIGGER full (BEFORE \w+ ON \w+)( WHEN (.*))? BEGIN .* END", statement):
        when = f"WHEN ({trigger[3]})" if trigger[3] else ""
        statement = f'{FULL} CREATE TRIGGER "full" {trigger[1]} FOR EACH ROW {when} EXECUTE FUNCTION disk_full()'
    elif statement == "DROP TRIGGER full":
        statement = "DROP FUNCTION IF EXISTS disk_full() CASCADE"
    elif statement.startswith("DROP TABLE"):
        statement = f"{statement} CASCADE"
    _alterations.append(statement)
    # Not by `execute`: after a DROP, psycopg lets the server forget the statements that `run` has prepared.
    connection().say(f"SET session_replication_role = replica; {statement}; RESET session_replication_role")


def query(statement, values=()):
    """Run a statement behind the service's back."""
    return connection().run(statement, values).fetchall()
