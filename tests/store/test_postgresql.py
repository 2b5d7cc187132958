"""PostgreSQL's engine: what it opens and refuses, its transactions and locks, and a server that goes away."""

import contextlib
import importlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest

import models
from store import alarms, database, deliveries, dialect, notifications, search, server_notes, sqlite
from store.database import EVERYBODY, DatabaseError, DatabaseRefused, ServerUrl, WriteFailed, run, transaction
from store.senders import LAST_REMOVED_AS
from tests.support import postgresql as servers
from tests.support.server import NO_FILE, ROOT, wait_until

_numbers = itertools.count()


@pytest.fixture
def opened(engine):
    """A database with all tables and no rows, opened."""
    url = ServerUrl(servers.own_database(), 4)
    servers.empty()
    database.open_database(url)
    return url


@pytest.fixture
def opened_anew(engine):
    """A new one, for a test after which no other could use it."""
    url = ServerUrl(servers.new_database_with_tables(f"opened_{os.getpid()}_{next(_numbers)}"), 4)
    database.open_database(url)
    return url


def put(name):
    run("INSERT INTO server_key (name, value) VALUES (?, '')", (name,))


def names():
    return [name for (name,) in run("SELECT name FROM server_key ORDER BY name")]


@pytest.mark.parametrize("most", [400, 2])
def test_a_statement_that_comes_again_with_other_types_is_prepared_anew(opened, monkeypatch, most):
    monkeypatch.setattr("store.postgresql_statements.MAX_PREPARED", most)
    with transaction(EVERYBODY):
        for _ in range(4):
            for value in (None, 2**40, 0.5, "x", True, b"\0"):
                kind = "BYTEA" if isinstance(value, bytes) else "TEXT"
                rows = run(f"SELECT CAST(? AS {kind}), CAST(? AS BIGINT)", (value, None))
                assert rows.fetchone()[1] is None
            assert run("SELECT :a + :b, :b", {"a": 1, "b": 2}).fetchall() == [(3, 2)]
            put_again = run("UPDATE server_key SET value = value WHERE name = ?", ("none",))
            assert (put_again.rowcount, put_again.fetchone()) == (0, None)


def in_thread(work):
    """What `work` returns or raises in a thread of its own, as a future."""
    return ThreadPoolExecutor(1).submit(work)


# --- opening ------------------------------------------------------------------------------------------------


def test_without_postgresql_and_redis_nothing_of_their_drivers_is_imported(tmp_path):
    code = (
        "import sys; from app import app; app.open(); app.test_client().get('/healthz');"
        "print([name for name in sys.modules if name.startswith(('psycopg', 'redis'))])"
    )
    environ = {**NO_FILE, "DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run([sys.executable, "-c", code], env=environ, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_the_parts_that_depend_on_a_package_version_have_that_version():
    """With another Peewee, see whether it still imports psycopg by itself; if not, simplify store/__init__.py.

    With another psycopg, run this file: store/postgresql_statements.py uses what its documentation does not describe.
    """
    assert {name: version(name) for name in ("peewee", "psycopg")} == {"peewee": "4.5.3", "psycopg": "3.3.9"}


def test_an_empty_database_gets_the_tables_and_columns_of_sqlite_and_keeps_its_rows(url, tmp_path):
    database.open_database(url)
    with transaction(EVERYBODY):
        put("kept")
    database.open_database(url)
    assert names() == ["kept"] and database.has_data(url)
    sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
    columns = {tuple(row) for row in run(sql)} - {("pocketbell_schema", "version")}
    database.open_database(tmp_path / "bell.db")
    tables = [name for (name,) in run("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    ours = {(table, row[1]) for table in tables for row in run(f"PRAGMA table_info({table})")}
    assert {(table, column) for table, column in ours if not table.startswith("sqlite_")} == columns


def test_several_that_start_on_an_empty_database_make_its_tables_once(url, engine):
    def start():
        with engine.patiently_connected(url) as connection:
            engine.prepare(connection, url, database.MIGRATIONS, database.SCHEMA_VERSION)

    for started in [in_thread(start) for _ in range(3)]:
        started.result()


def test_an_older_schema_is_upgraded_by_the_steps_that_it_lacks(opened_anew, tmp_path):
    newest = database.SCHEMA_VERSION
    (tmp_path / f"{newest + 1:04}_more.sql").write_text("-- it's more\nCREATE TABLE more (n INTEGER, t TEXT) STRICT;")
    (tmp_path / f"{newest + 2:04}_most.sql").write_text("ALTER TABLE more ADD COLUMN m REAL NOT NULL DEFAULT 1;")
    database.open_database(opened_anew, tmp_path, newest + 2)
    with transaction(EVERYBODY):
        run("INSERT INTO more (n, t) VALUES (?, ?)", (2**62, "a%b"))
    assert run("SELECT n, t, m FROM more").fetchall() == [(2**62, "a%b", 1.0)]
    with pytest.raises(DatabaseRefused, match=f"has schema {newest + 2}, made by a newer Pocketbell"):
        database.open_database(opened_anew)


def test_a_database_with_tables_of_another_program_is_refused(url):
    with servers.beside(url) as other:
        other.execute("CREATE TABLE recipe (name TEXT)")
    with pytest.raises(DatabaseRefused, match="has tables of another program"):
        database.open_database(url)
    assert not database.has_data(url)


def test_a_commit_waits_for_the_disk_and_takes_all_of_unicode_whatever_the_database_says(url):
    with servers.beside(url) as other:
        alter = f"ALTER DATABASE {url.url.rpartition('/')[2]} SET"
        for said, holds in (("off", "on"), ("remote_apply", "remote_apply")):
            other.execute(f"{alter} synchronous_commit = {said}; {alter} client_encoding = 'LATIN1'")
            database.open_database(url)
            found = run("SELECT current_setting('synchronous_commit'), CAST(? AS TEXT)", ("Ω",)).fetchone()
            assert found == (holds, "Ω")
            database.close()


ADDRESSES = [
    ("postgresql://somebody:hunter2pw@127.0.0.1:1/bell", "Connection refused."),  # without the advice of the driver
    ("postgresql://hunter2pw%zz@h/x", ""),
    ("postgresql://a:hunter2pw@h/x?y=1", ""),
]


@pytest.mark.parametrize("address, end", ADDRESSES)
def test_a_server_that_cannot_be_reached_is_refused_in_one_line_without_the_password(
    engine, monkeypatch, address, end
):
    monkeypatch.setattr("store.postgresql_connection.START_TRIES", 1)
    for reach in (database.open_database, database.has_data):
        with pytest.raises(DatabaseRefused) as refused:
            reach(ServerUrl(address, 1))
        line = str(refused.value)
        assert "hunter2pw" not in line and len(line.splitlines()) == 1 and line.endswith(end)
    assert "hunter2pw" not in repr(ServerUrl(address, 1))


# --- statements ---------------------------------------------------------------------------------------------


def test_a_write_outside_a_transaction_is_refused(opened):
    with pytest.raises(WriteFailed, match="needs a transaction"):
        put("lost")
    assert names() == []


def test_a_server_that_is_set_read_only_refuses_writes_answers_reads_and_keeps_the_connection(url):
    database.open_database(ServerUrl(url.url, 1))
    process = run("SELECT pg_backend_pid()").fetchone()
    for is_set, may_write in (("on", False), ("off", True)):  # as a reload of the server's settings does
        run("SELECT set_config('default_transaction_read_only', ?, false)", (is_set,))
        refused = contextlib.nullcontext() if may_write else pytest.raises(WriteFailed, match="25006")
        with refused, transaction(EVERYBODY):
            put("kept")
        assert names() == (["kept"] if may_write else []) and database.writes_fail() is not may_write
    assert run("SELECT pg_backend_pid()").fetchone() == process


def statements():
    """Every constant statement of the store: those of its modules and of their classes."""
    modules = [importlib.import_module(f"store.{path.stem}") for path in (ROOT / "store").glob("*.py")]
    for module in [models, *modules]:
        places = [module, *(one for one in vars(module).values() if isinstance(one, type))]
        values = [getattr(one, "__self__", one) for place in places for one in vars(place).values()]  # of a method
        texts = {text for one in values if isinstance(text := getattr(one, "statement", one), str)}
        yield from (text for text in texts if re.match(r"(SELECT|INSERT|UPDATE|DELETE|WITH) .*[A-Z]+", text))


PARTS = {deliveries.WAITING, LAST_REMOVED_AS, sqlite.SIZE_BYTES}  # of statements, and what is SQLite's alone


def test_every_constant_statement_is_understood(opened):
    found, faults = {one for one in statements() if "{}" not in one} - PARTS, []
    with servers.beside(opened) as other:
        for text in found:
            values = "(bigint, bigint, bigint, bigint)" if text == alarms.acknowledge.statement else ""
            try:
                other.execute(f"PREPARE one {values} AS {dialect.numbered(text)[0].decode()}")
                other.execute("DEALLOCATE one")
            except Exception as fault:
                faults.append(f"{fault}\n{text}")
    assert len(found) > 100 and faults == []


def plan(statement, values):
    """How the server runs a statement that has come often, with those values."""
    text, names = dialect.numbered(statement)
    run(f"PREPARE often AS {text.decode()}")
    told = run(f"EXPLAIN (ANALYZE) EXECUTE often ({', '.join(str(values.get(name, 'NULL')) for name in names)})")
    lines = "\n".join(line for (line,) in told.fetchall())
    run("DEALLOCATE often")
    return lines


@pytest.mark.parametrize("is_analyzed", [False, True], ids=["new table", "analyzed"])
def test_a_page_of_an_account_or_alert_passes_over_no_row_of_others_and_sorts_none(opened_anew, is_analyzed):
    values = {"account": 1, "alert_seq": 1, "since": 0, "begin": 0, "after": 0}
    values |= {"before": 2**62, "until": 2**62, "limit": 51, "rows": 51}
    seq = "CASE WHEN n % 100 = 0 THEN 1 ELSE 2 + n % 20 END"  # of the account, and of the alert: the first has few
    with transaction(EVERYBODY):
        run(
            "INSERT INTO account (seq, email, plan, time_zone, created_at)"
            " SELECT n, CAST(n AS TEXT), 'pro', 'UTC', 1 FROM generate_series(1, 21) n"
        )
        run(
            "INSERT INTO notification (id, account_seq, alert_seq, title, body, status, created_at)"
            f" SELECT n, {seq}, {seq}, '', '', 'failed', n FROM generate_series(1, 9000) n"
        )
        if is_analyzed:
            run("ANALYZE")
        run("SET LOCAL plan_cache_mode = force_generic_plan")
        searched = (search.candidates(where) for where in (search.ACCOUNTS, search.ALERTS, search.FEW))
        for statement in (notifications.PAGE, *searched):
            told = plan(statement, values)
            assert "Index Scan Backward using notification_" in told, told
            assert "Rows Removed" not in told and "Sort" not in told, told


def test_an_errors_text_does_not_quote_values(opened):
    with transaction(EVERYBODY):
        put("hunter2pw")
    with pytest.raises(database.peewee.IntegrityError) as caught, transaction(EVERYBODY):
        put("hunter2pw")
    assert str(caught.value).startswith("23505: duplicate key") and "hunter2pw" not in str(caught.value)


def test_a_nul_becomes_a_replacement_character(opened):
    with transaction(EVERYBODY):
        put("a\0b")
    assert names() == ["a\ufffdb"] and run("SELECT ?", ("\0",)).fetchone() == ("\ufffd",)


def test_sums_flags_and_large_numbers_are_integers(opened):
    row = run("SELECT sum(CAST(? AS BIGINT)), 1 = ?, CAST(? AS BIGINT)", (2**40, True, 2**63 - 1)).fetchone()
    assert row == (2**40, 1, 2**63 - 1) and [type(value) for value in row] == [int] * 3


def test_a_read_outside_a_transaction_holds_no_connection(url):
    database.open_database(ServerUrl(url.url, 1))
    for _ in run("SELECT 1 UNION SELECT 2"):
        assert in_thread(lambda: run("SELECT 3").fetchone()).result() == (3,)


# --- transactions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
def test_a_transaction_whose_fault_was_passed_over_is_not_stored_and_says_so(opened, lazy):
    with pytest.raises(WriteFailed), transaction(EVERYBODY, lazy=lazy):
        for work in (lambda: run("SELECT 1 / 0"), lambda: put("a")):
            with contextlib.suppress(DatabaseError):
                work()
        put_later("b")
        put_later("c")
    assert names() == [] and database.writes_fail() and not database.answers()
    server_notes.try_writing()
    assert database.answers()


def test_after_commit_calls_run_when_others_see_the_commit(opened):
    seen = []
    with transaction(EVERYBODY):
        put("a")
        database.after_commit(lambda: seen.append(names()))
        with contextlib.suppress(ZeroDivisionError), transaction(EVERYBODY):
            database.after_commit(lambda: seen.append("undone"))
            raise ZeroDivisionError
        assert seen == []
    assert seen == [["a"]]


def test_writers_of_one_account_take_turns_and_see_each_others_rows(opened, engine, monkeypatch):
    def taken_at_once(seq):
        turn = threading.Lock()
        turn.acquire()
        return turn

    monkeypatch.setattr(engine, "_taken_turn", taken_at_once)  # as in two processes

    def second():
        with transaction(1, 2):
            return names()

    with transaction(2):
        found = in_thread(second)
        wait_until(
            lambda: run("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone()[0]
        )
        put("a")
    assert found.result() == ["a"]


def test_two_accounts_are_written_to_at_once(opened):
    def other():
        with transaction(2):
            put("b")
        return names()

    with transaction(1):
        put("a")
        assert in_thread(other).result() == ["b"]
    assert names() == ["a", "b"]


def test_a_writer_that_waits_too_long_for_an_account_fails_and_holds_nothing(opened, engine, monkeypatch):
    def other():
        with transaction(1):
            pass

    monkeypatch.setattr(engine, "TURN_WAIT_S", 0.01)
    with transaction(1), pytest.raises(WriteFailed):
        in_thread(other).result()
    assert not any(turn.locked() for turn in engine._turns.values())


def test_the_version_changes_with_each_commit_and_not_without(opened):
    wait_until(lambda: database.version() == database.version())  # commits to other workers' databases count, too
    before = database.version()
    with transaction(EVERYBODY):
        put("a")
    assert database.version() != before


# --- a server that goes away --------------------------------------------------------------------------------


def test_connections_that_the_server_ended_are_replaced_without_a_failure(opened_anew):
    for work in (names, server_notes.try_writing):
        for read in [in_thread(names) for _ in range(4)]:
            read.result()
        servers.end_connections(opened_anew)
        work()
    assert database.answers()


def test_a_thread_that_waits_for_an_answer_a_turn_or_a_connection_makes_way(opened, monkeypatch):
    made_way = threading.Event()
    monkeypatch.setattr("store.engine.make_way", made_way.set)
    run("SELECT pg_sleep(0.2)")
    assert made_way.is_set()
    monkeypatch.setattr("store.engine.pass_on", made_way.set)  # a long request keeps its turn
    database.open_database(ServerUrl(opened.url, 1))

    def write():
        with transaction(EVERYBODY):
            put("b")

    for waits in (write, names):
        with transaction(EVERYBODY):
            put(waits.__name__)
            made_way.clear()
            waiting = in_thread(waits)
            assert made_way.wait(10)
        waiting.result()


def test_a_server_that_stopped_to_answer_is_not_waited_for(url, engine, monkeypatch):
    database.open_database(ServerUrl(url.url, 1))
    (process,) = run("SELECT pg_backend_pid()").fetchone()
    os.kill(process, signal.SIGSTOP)
    try:
        wait_until(lambda: "T (stopped)" in Path(f"/proc/{process}/status").read_text())
        monkeypatch.setattr(engine, "ANSWER_S", 0.05)  # not before: a busy server may take longer
        with pytest.raises(WriteFailed, match="lost"):
            names()
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.fixture
def own_server(engine):
    """A server that the test may stop."""
    directory = Path(tempfile.mkdtemp(prefix="pocketbell-own-"))
    yield directory, ServerUrl(f"{servers.start(directory)}/postgres", 2)
    database.close()
    with contextlib.suppress(AssertionError):  # it may be stopped
        servers._command("pg_ctl", "-D", directory / "data", "-m", "immediate", "stop")
    shutil.rmtree(directory)


def test_while_the_server_is_away_everything_fails_at_once_and_when_it_is_back_all_is_well(
    own_server, engine, monkeypatch
):
    monkeypatch.setattr(engine, "POOL_WAIT_S", 0.3)
    directory, url = own_server
    database.open_database(url)
    server_notes.try_writing()
    servers._command("pg_ctl", "-D", directory / "data", "-m", "fast", "-w", "stop")
    for work in (names, server_notes.try_writing):
        with pytest.raises(WriteFailed):
            work()
    assert not database.answers()
    servers._command("pg_ctl", "-D", directory / "data", "-l", directory / "log", "-w", "start")

    def writes_again():
        with contextlib.suppress(WriteFailed):
            server_notes.try_writing()
        return database.answers()

    wait_until(writes_again)


def put_later(name, value=""):
    database.run_later("INSERT INTO server_key (name, value) VALUES (?, ?)", (name, value))


@pytest.fixture
def trips(opened, engine, monkeypatch):
    """How often this thread asked the server: one item each time."""
    seen, wait, own = [], engine.Connection.wait, threading.get_ident()
    counted = lambda *words: (threading.get_ident() == own and seen.append(1), wait(*words))[1]  # noqa: E731
    monkeypatch.setattr(engine.Connection, "wait", counted)
    return seen


def test_statements_run_later_go_out_with_the_next_one_or_the_commit(opened, trips):
    for _ in range(3):
        trips.clear()
        with transaction(EVERYBODY, lazy=True):
            put_later("a")
            assert names() == ["a"]
            put_later("b")
            put_later("c")
            run("DELETE FROM server_key")
            put_later("d")
        assert len(trips) == 3 and names() == ["d"]
        with transaction(EVERYBODY):
            run("DELETE FROM server_key")
    trips.clear()
    with pytest.raises(ZeroDivisionError), transaction(EVERYBODY, lazy=True):
        put_later(1 / 0)
    with transaction(EVERYBODY, lazy=True):
        assert trips == []


@pytest.mark.parametrize("lazy", [False, True])
def test_a_transaction_that_only_writes_is_stored_also_if_it_is_larger_than_the_systems_buffers(opened, lazy):
    with transaction(EVERYBODY, lazy=lazy):
        for name in range(20):
            put_later(str(name), "x" * 1_000_000)
    assert run("SELECT sum(length(value)) FROM server_key").fetchone() == (20_000_000,)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_failed_later_statement_undoes_the_transaction_and_raises(opened, lazy, is_last):
    called = []
    with pytest.raises(database.peewee.IntegrityError, match="23505"), transaction(EVERYBODY, lazy=lazy):
        database.after_commit(lambda: called.append(1))
        put_later("a")
        put_later("a")
        put_later("b")
        if not is_last:
            names()
    assert names() == [] and called == []
    server_notes.try_writing()


@pytest.mark.parametrize("asks_first", [True, False])
def test_a_value_that_cannot_be_sent_takes_nothing_else_with_it_unnoticed(opened, asks_first):
    with contextlib.suppress(WriteFailed), transaction(EVERYBODY, lazy=True):
        if asks_first:
            names()
        put_later("a")
        with pytest.raises(UnicodeEncodeError):
            put("\ud800")
        put_later("b")
    assert names() == (["a", "b"] if asks_first else [])


def test_a_parts_later_statements_fail_or_go_with_the_part(opened):
    with transaction(EVERYBODY, lazy=True):
        put_later("a")
        with pytest.raises(DatabaseError), transaction(EVERYBODY):
            put_later("a")
        with pytest.raises(ZeroDivisionError), transaction(EVERYBODY):
            put_later("b")
            1 / 0  # noqa: B018
        with transaction(EVERYBODY):
            put_later("c")
    assert names() == ["a", "c"]


def test_a_transaction_begun_on_a_connection_that_is_lost_begins_on_another(opened_anew):
    for work in (names, lambda: None):
        run("SELECT 1")
        servers.end_connections(opened_anew)
        with transaction(EVERYBODY, lazy=True):
            run("DELETE FROM server_key")
            put_later("a")
            work()
        assert names() == ["a"]


@pytest.mark.parametrize("work", [lambda: put("b"), lambda: put_later("b"), lambda: None])
def test_a_transaction_whose_connection_is_lost_fails_and_the_next_succeeds(opened_anew, work):
    with pytest.raises(WriteFailed), transaction(EVERYBODY, lazy=True):
        put("a")
        servers.end_connections(opened_anew)
        work()
    assert names() == [] and not database.answers()
    with transaction(EVERYBODY):
        put("c")
    assert names() == ["c"] and database.answers()
