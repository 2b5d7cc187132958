"""The database file: schema, permissions, transactions, migrations, backups (CONTRACT 1, 3 and 7; DESIGN)."""

import importlib
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import peewee
import pytest

import models
from store import alert_payloads, database
from tests.support.server import wait_until
from wire.notification import STATUSES, Content

ROOT = Path(__file__).parents[2]
OWNER = "owner@example.org"

TYPES = {
    peewee.AutoField: "INTEGER",
    peewee.IntegerField: "INTEGER",
    peewee.FloatField: "REAL",
    peewee.TextField: "TEXT",
    peewee.BlobField: "BLOB",
}


@pytest.fixture
def file(tmp_path):
    """Where a test's database is to be; the service's own is opened again by whatever test comes next."""
    yield tmp_path / "data" / "bell.db"
    database.close()


@pytest.fixture
def opened(file):
    """A new database, opened."""
    database.open_database(file)
    return file


def pragma(name):
    return database.run(f"PRAGMA {name}").fetchone()[0]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def look(path, statement):
    """What another program reads in the file."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def in_threads(number, work):
    """Run `work(n)` in so many threads at once; answers with what they raised."""
    faults, start = [], threading.Barrier(number)

    def run(n):
        start.wait()
        try:
            work(n)
        except Exception as fault:
            faults.append(fault)
        finally:
            database.database.close()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return faults


# --- one truth for the schema -------------------------------------------------------------------------------


def tables():
    """Every model with a table of its own, found through its base class."""
    for file in (ROOT / "store").glob("*.py"):
        importlib.import_module(f"store.{file.stem}")
    return sorted(models.Model.__subclasses__(), key=lambda model: model._meta.table_name)


every_table = pytest.mark.parametrize("model", tables(), ids=[model._meta.table_name for model in tables()])


def type_of(field):
    while isinstance(field, peewee.ForeignKeyField):
        field = field.rel_field
    return next(name for kind, name in TYPES.items() if isinstance(field, kind))


def test_every_table_has_a_model_and_every_model_a_table(opened):
    made = {row[0] for row in look(opened, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert made - {"sqlite_sequence"} == {model._meta.table_name for model in tables()}


@every_table
def test_a_models_columns_are_the_tables(opened, model):
    columns = [row[1] for row in look(opened, f"PRAGMA table_info({model._meta.table_name})")]
    assert sorted(field.column_name for field in model._meta.sorted_fields) == sorted(columns)


@every_table
def test_a_models_types_are_the_tables(opened, model):
    types = {row[1]: row[2] for row in look(opened, f"PRAGMA table_info({model._meta.table_name})")}
    assert {field.column_name: type_of(field) for field in model._meta.sorted_fields} == types


@every_table
def test_a_models_columns_are_null_where_the_tables_are(opened, model):
    info = look(opened, f"PRAGMA table_info({model._meta.table_name})")
    nullable = {name for _, name, _, not_null, _, key in info if not not_null and not key}
    assert {field.column_name for field in model._meta.sorted_fields if field.null} == nullable


def test_the_statuses_in_the_schema_are_those_of_a_notification(opened):
    (table,) = look(opened, "SELECT sql FROM sqlite_schema WHERE name = 'notification'")
    written = re.search(r"CHECK \(status IN \((.*?)\)\)", table[0])[1]
    assert tuple(re.findall(r"'(\w+)'", written)) == STATUSES


def test_a_notifications_content_is_in_columns_of_the_same_names(opened):
    columns = [row[1] for row in look(opened, "PRAGMA table_info(notification)")]
    assert set(Content._fields) <= set(columns)


@every_table
def test_a_models_primary_key_is_the_tables(opened, model):
    info = look(opened, f"PRAGMA table_info({model._meta.table_name})")
    key = {name for _, name, _, _, _, position in info if position}
    assert {field.column_name for field in model._meta.get_primary_keys()} == key


@every_table
def test_a_models_foreign_keys_are_the_tables(opened, model):
    made = {(row[3], row[2]) for row in look(opened, f"PRAGMA foreign_key_list({model._meta.table_name})")}
    fields = [field for field in model._meta.sorted_fields if isinstance(field, peewee.ForeignKeyField)]
    told = {(field.column_name, field.rel_model._meta.table_name) for field in fields}
    assert told <= made


def test_every_table_is_strict(opened):
    rows = look(opened, "PRAGMA table_list")
    loose = [name for _, name, kind, _, _, strict in rows if kind == "table" and not strict]
    assert [name for name in loose if not name.startswith("sqlite_")] == []


def test_every_reference_has_an_index_that_begins_with_it(opened):
    """Else deleting what is referred to walks the whole table."""
    missing = []
    for model in tables():
        table = model._meta.table_name
        indexes = [row[1] for row in look(opened, f"PRAGMA index_list({table})")]
        first = {look(opened, f"PRAGMA index_info({index})")[0][2] for index in indexes}
        first |= {row[1] for row in look(opened, f"PRAGMA table_info({table})") if row[5] == 1}  # the primary key
        referring = {row[3] for row in look(opened, f"PRAGMA foreign_key_list({table})") if row[6] == "CASCADE"}
        missing += [f"{table}.{column}" for column in referring - first]
    assert missing == []


def test_a_new_file_has_the_newest_version(opened):
    assert look(opened, "PRAGMA user_version") == [(database.SCHEMA_VERSION,)]


def test_the_schema_file_names_every_migration_there_is():
    steps = sorted(path.name[:4] for path in (ROOT / "migrations").glob("*.sql"))
    assert steps == [f"{step:04}" for step in range(2, database.SCHEMA_VERSION + 1)]


# --- permissions --------------------------------------------------------------------------------------------


def test_the_data_directory_and_all_in_it_are_their_owners_alone(service, tmp_path):
    service.account(OWNER)
    modes = {path.name: mode(path) for path in service.data_dir.iterdir()}
    assert mode(service.data_dir) == 0o700
    assert {"pocketbell.db", "pocketbell.db-wal", "pocketbell.db-shm", "secret_key"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_a_backup_is_its_owners_alone(service, tmp_path):
    assert service.flask("backup", tmp_path / "copy.db").exit_code == 0
    assert mode(tmp_path / "copy.db") == 0o600


def test_a_backup_is_its_owners_alone_whatever_the_umask(opened, tmp_path):
    before = os.umask(0)
    try:
        database.copy_database(tmp_path / "copy.db")
    finally:
        os.umask(before)
    assert mode(tmp_path / "copy.db") == 0o600


def test_a_process_with_a_wide_umask_makes_narrow_files(tmp_path):
    env = {"PATH": os.environ.get("PATH", ""), "DATA_DIR": str(tmp_path / "data")}
    command = [Path(sys.executable).with_name("flask"), "account", "create", OWNER]
    subprocess.run(command, env=env, cwd=ROOT, umask=0, check=True, capture_output=True, timeout=30)
    modes = {mode(path) for path in (tmp_path / "data").iterdir()}
    assert (mode(tmp_path / "data"), modes) == (0o700, {0o600})


# --- connections and transactions ---------------------------------------------------------------------------


SETTINGS = [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)]  # 2 is FULL


@pytest.mark.parametrize("name, value", SETTINGS)
def test_the_connection_that_opened_the_file_is_durable_and_holds_references(opened, name, value):
    assert pragma(name) == value


@pytest.mark.parametrize("name, value", SETTINGS)
def test_every_threads_connection_is_durable_and_holds_references(opened, name, value):
    seen = []
    assert in_threads(4, lambda n: seen.append(pragma(name))) == []
    assert seen == [value] * 4


def test_a_reference_to_nothing_is_refused_in_every_thread(opened):
    statement = "INSERT INTO session (token_hash, account_seq, created_at, expires_at) VALUES (?, 999, 0, 0)"

    def refer(n):
        with database.transaction():
            database.run(statement, (bytes([n]),))

    faults = in_threads(3, refer)
    assert [type(fault) for fault in faults] == [peewee.IntegrityError] * 3


def test_when_the_file_is_read_only_no_more_the_next_transaction_is_stored(opened, file):
    database.close()
    database._writing.init(f"file:{file}?mode=ro", uri=True)
    with pytest.raises(database.WriteFailed), database.transaction():
        database.run(ADD_ACCOUNT, ("lost@example.org",))
    database._writing.connect_params.clear()
    database._writing.database = str(file)
    with database.transaction():
        database.run(ADD_ACCOUNT, ("new@example.org",))
    assert look(file, "SELECT email FROM account") == [("new@example.org",)]


def test_a_transaction_is_immediate(opened):
    with database.transaction():
        other = sqlite3.connect(opened, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_a_transaction_that_fails_leaves_nothing(opened):
    with pytest.raises(ZeroDivisionError), database.transaction():
        database.run("INSERT INTO server_key VALUES ('a', 'b')")
        _ = 1 / 0
    assert look(opened, "SELECT * FROM server_key") == []


def test_a_transaction_within_a_transaction_ends_with_the_outer_one(opened):
    with pytest.raises(ZeroDivisionError), database.transaction():
        with database.transaction():
            database.run("INSERT INTO server_key VALUES ('a', 'b')")
        _ = 1 / 0
    assert look(opened, "SELECT * FROM server_key") == []


def test_a_failed_transaction_lets_the_next_thread_write(opened):
    def fail(n):
        with database.transaction():
            raise ZeroDivisionError

    def write(n):
        with database.transaction():
            database.run("INSERT INTO server_key VALUES ('a', 'b')")

    assert [type(fault) for fault in in_threads(1, fail)] == [ZeroDivisionError]
    assert in_threads(1, write) == []


def test_16_threads_that_read_and_then_write_one_counter_lose_nothing_and_are_never_locked_out(opened):
    with database.transaction():
        database.run("CREATE TABLE counter (n INTEGER NOT NULL) STRICT")
        database.run("INSERT INTO counter VALUES (0)")

    def count(n):
        for _ in range(20):
            with database.transaction():
                (before,) = database.run("SELECT n FROM counter").fetchone()
                database.run("UPDATE counter SET n = ?", (before + 1,))

    assert in_threads(16, count) == []
    assert look(opened, "SELECT n FROM counter") == [(320,)]


def test_what_was_committed_is_there_for_another_program_at_once(opened):
    with database.transaction():
        database.run("INSERT INTO server_key VALUES ('a', 'b')")
    assert look(opened, "SELECT name, value FROM server_key") == [("a", "b")]


def test_nothing_is_written_outside_a_transaction(opened):
    with pytest.raises(database.WriteFailed):
        database.run("INSERT INTO server_key VALUES ('a', 'b')")


def in_one_group(number, work):
    """Run `work(n)` in so many transactions that all wait for the first; their faults, and how many commits."""
    commits = []

    def write(n):
        with database.transaction():
            if n == 0:
                while database._writer.waiting < number - 1:
                    time.sleep(0)
            work(n)

    def one(n):
        while n and not database._writer.turn.locked():
            time.sleep(0)
        write(n)

    with database.transaction():
        database._writing.connection().set_trace_callback(lambda sql: commits.append(sql == "COMMIT"))
    commits.clear()
    faults = in_threads(number, one)
    return faults, sum(commits)


def put(n):
    database.run("INSERT INTO server_key VALUES (?, '')", (str(n),))


def test_transactions_that_wait_for_one_another_are_committed_at_once(opened):
    assert in_one_group(8, put) == ([], 1)
    assert look(opened, "SELECT count(*) FROM server_key") == [(8,)]


def test_one_of_them_that_fails_takes_nothing_of_the_others_with_it(opened):
    def work(n):
        put(n)
        if n in (0, 3):
            raise ZeroDivisionError

    faults, commits = in_one_group(5, work)
    assert ([type(fault) for fault in faults], commits) == ([ZeroDivisionError] * 2, 1)
    assert look(opened, "SELECT name FROM server_key ORDER BY name") == [("1",), ("2",), ("4",)]


def test_when_the_commit_fails_all_of_them_are_told_and_the_next_one_succeeds(opened):
    def work(n):
        put(n)
        if n == 2:
            database.run("PRAGMA defer_foreign_keys = ON")  # what is wrong is found by the commit
            session = (
                "INSERT INTO session (token_hash, account_seq, created_at, expires_at) VALUES (x'00', 999, 0, 0)"
            )
            database.run(session)

    faults, _ = in_one_group(4, work)
    assert [type(fault) for fault in faults] == [database.WriteFailed] * 4
    assert not database.answers()
    with database.transaction():
        put(9)
    assert look(opened, "SELECT name FROM server_key") == [("9",)] and database.answers()


def test_when_one_cannot_write_all_of_them_are_told(opened):
    """The disk is full, say: SQLite has undone what the others wrote, too."""

    def work(n):
        put(n)
        if n == 1:
            database.run("ROLLBACK")
            raise MemoryError

    faults, _ = in_one_group(3, work)
    kinds = {type(fault) for fault in faults}
    assert kinds == {database.WriteFailed} and len(faults) >= 2  # the one after it may begin anew
    assert len(faults) + look(opened, "SELECT count(*) FROM server_key")[0][0] == 3


def test_what_is_refused_again_and_again_does_not_put_off_the_commit_of_others(opened):
    """A refused one waits, too: else there would always be somebody to leave the commit to."""
    stored, began = threading.Event(), time.monotonic()

    def work(n):
        if n:
            while not stored.is_set() and time.monotonic() < began + 20:
                with suppress(ZeroDivisionError), database.transaction():
                    raise ZeroDivisionError
        else:
            try:
                for name in range(20):
                    with database.transaction():
                        put(name)
            finally:
                stored.set()

    assert in_threads(8, work) == []
    assert time.monotonic() - began < 20, "a second would be much"


def test_a_refusal_that_rests_on_what_is_not_stored_is_no_refusal(opened):
    def work(n):
        if n == 0:
            put(n)
            database.run("PRAGMA defer_foreign_keys = ON")
            database.run(
                "INSERT INTO session (token_hash, account_seq, created_at, expires_at) VALUES (x'00', 9, 0, 0)"
            )
        elif database.run("SELECT name FROM server_key").fetchone():
            raise ZeroDivisionError

    faults, _ = in_one_group(3, work)
    assert [type(fault) for fault in faults] == [database.WriteFailed] * 3


def test_one_that_failed_and_could_not_be_undone_is_not_stored(opened, monkeypatch):
    run = database.run

    def no_memory(statement, *values):
        if statement == "ROLLBACK TO part":
            raise MemoryError
        return run(statement, *values)

    monkeypatch.setattr(database, "run", no_memory)
    with pytest.raises(database.WriteFailed), database.transaction():
        put(1)
        raise ZeroDivisionError
    monkeypatch.undo()
    with database.transaction():
        put(2)
    assert look(opened, "SELECT name FROM server_key") == [("2",)]


def test_a_cursor_that_somebody_holds_does_not_keep_the_lock_after_a_failure(opened):
    with database.transaction():
        for name in range(3):
            put(name)
    with pytest.raises(database.WriteFailed), database.transaction():
        rows = database.run("SELECT name FROM server_key")
        rows.fetchone()
        put(9)
        raise database.WriteFailed
    other = sqlite3.connect(opened, timeout=0)
    other.execute("BEGIN IMMEDIATE")
    other.close()
    del rows


@pytest.mark.parametrize("where", ["Future", "turn"])
def test_a_fault_at_the_beginning_leaves_the_next_one_its_turn(opened, monkeypatch, where):
    class Fails:
        def __class_getitem__(cls, _):
            return cls

        def __init__(self):
            raise MemoryError

        @staticmethod
        def acquire(timeout):
            raise MemoryError

    place = database if where == "Future" else database._writer
    monkeypatch.setattr(place, where, Fails)
    with pytest.raises(MemoryError), database.transaction():
        put(1)
    monkeypatch.undo()
    with database.transaction():
        put(2)
    assert (database._writer.waiting, look(opened, "SELECT name FROM server_key")) == (0, [("2",)])


@pytest.fixture
def impatient(monkeypatch):
    """No thread waits for long before it asks why it has no turn."""
    monkeypatch.setattr(database, "TURN_WAIT_S", 0.01)
    monkeypatch.setattr(database, "STUCK_S", 0.01)


def test_a_thread_waits_for_another_of_this_process_however_long_that_takes(opened, impatient):
    """Nothing is called locked while no other process holds the file."""
    holds, asked = threading.Event(), []

    def work(n):
        if n == 0:
            with database.transaction():
                holds.set()
                wait_until(lambda: len(asked) > 3)
                put(n)
        else:
            holds.wait(10)
            with database.transaction():
                put(n)

    acquire = database._writer.turn.acquire

    class Counted:
        release = database._writer.turn.release

        def acquire(self, blocking=True, timeout=-1):
            has_turn = acquire(blocking, timeout)
            if not has_turn:
                asked.append(timeout)
            return has_turn

    database._writer.turn, kept = Counted(), database._writer.turn
    try:
        assert in_threads(2, work) == []
    finally:
        database._writer.turn = kept
    assert look(opened, "SELECT name FROM server_key ORDER BY name") == [("0",), ("1",)]


def test_no_thread_waits_for_ever_for_its_turn(opened, impatient, monkeypatch):
    monkeypatch.setattr(database, "MAX_TURN_WAITS", 2)
    holds, refused = threading.Event(), threading.Event()

    def work(n):
        if n == 0:
            with database.transaction():
                holds.set()
                refused.wait(10)
                put(n)
        else:
            holds.wait(10)
            try:
                with database.transaction():
                    put(n)
            finally:
                refused.set()

    assert [type(fault) for fault in in_threads(2, work)] == [database.WriteFailed]
    assert look(opened, "SELECT name FROM server_key") == [("0",)]


def test_threads_that_queue_behind_one_that_another_process_keeps_waiting_are_refused_too(
    file, impatient, monkeypatch
):
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 300)
    monkeypatch.setattr(database, "MAX_TURN_WAITS", 10_000)
    database.open_database(file)

    def work(n):
        with database.transaction():
            put(n)

    with sqlite3.connect(file) as other:
        other.execute("BEGIN IMMEDIATE")
        faults = in_threads(4, work)
    other.close()
    assert [type(fault) for fault in faults] == [database.WriteFailed] * 4


def test_a_commit_that_writes_nothing_does_not_say_that_writes_succeed_again(opened):
    with pytest.raises(database.WriteFailed), database.transaction():
        raise database.WriteFailed("disk full")
    with database.transaction():
        database.run("DELETE FROM account WHERE 0")
    with pytest.raises(ValueError), database.transaction():
        put(1)
        raise ValueError
    assert database.writes_fail() and not database.answers()
    database.try_writing()
    assert not database.writes_fail() and database.answers()


def test_one_that_is_interrupted_while_it_waits_leaves_no_commit_undone(opened, monkeypatch):
    writer, turn, commit_if_due = database._writer, database._writer.turn, database._writer.commit_if_due
    begun, left = threading.Event(), threading.Event()

    class Interrupts:
        release = turn.release

        def acquire(self, blocking=True, timeout=-1):
            if blocking and begun.is_set():
                assert left.wait(10)
                raise KeyboardInterrupt
            return turn.acquire(blocking, timeout)

    def leave_it_to_others():
        commit_if_due()
        left.set()

    def write():
        with database.transaction():
            begun.set()
            wait_until(lambda: writer.waiting)
            put(1)

    monkeypatch.setattr(writer, "turn", Interrupts())
    monkeypatch.setattr(writer, "commit_if_due", leave_it_to_others)
    first = threading.Thread(target=write, daemon=True)
    first.start()
    assert begun.wait(10)
    with pytest.raises(KeyboardInterrupt), database.transaction():
        put(2)
    first.join(10)
    assert not first.is_alive() and look(opened, "SELECT name FROM server_key") == [("1",)]


# --- migrations ---------------------------------------------------------------------------------------------


STEP_2 = """-- Accounts have a colour.
ALTER TABLE account ADD COLUMN colour TEXT;
UPDATE account
   SET colour = 'blue; not red'; -- a semicolon within a string
"""
STEP_3 = """CREATE TABLE shelf (n INTEGER NOT NULL) STRICT;
INSERT INTO shelf SELECT seq FROM account;
CREATE TRIGGER shelf_up AFTER INSERT ON account BEGIN
    INSERT INTO shelf VALUES (new.seq);
END;
"""
BROKEN_STEP_3 = "CREATE TABLE shelf (n INTEGER) STRICT;\nINSERT INTO no_such_table VALUES (1);\n"
ADD_ACCOUNT = (
    "INSERT INTO account (email, plan, time_zone, notification_count, created_at) VALUES (?, 'starter', 'UTC', 0, 0)"
)


@pytest.fixture
def steps(tmp_path):
    """A directory with the steps to the schemas 2 and 3."""
    directory = tmp_path / "steps"
    directory.mkdir()
    (directory / "0002_colour.sql").write_text(STEP_2)
    (directory / "0003_shelf.sql").write_text(STEP_3)
    return directory


@pytest.fixture
def older(file):
    """A database of schema 1 with one account, closed."""
    database.open_database(file, newest=1)
    with database.transaction():
        database.run(ADD_ACCOUNT, ("old@example.org",))
    database.close()
    return file


def copies(path):
    """What lies beside the database that is neither it nor SQLite's own."""
    own = {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    return [other for other in path.parent.iterdir() if other.name not in own]


def version(path):
    return look(path, "PRAGMA user_version")[0][0]


def test_an_older_database_is_brought_to_the_newest_schema_step_by_step(older, steps):
    database.open_database(older, migrations=steps, newest=3)
    assert version(older) == 3
    assert look(older, "SELECT email, colour FROM account") == [("old@example.org", "blue; not red")]
    assert look(older, "SELECT n FROM shelf") == [(1,)]


def test_a_step_may_make_a_trigger(older, steps):
    database.open_database(older, migrations=steps, newest=3)
    columns = "email, plan, time_zone, notification_count, created_at"
    with database.transaction():
        database.run(f"INSERT INTO account ({columns}) VALUES ('new@example.org', 'pro', 'UTC', 0, 0)")
    assert look(older, "SELECT n FROM shelf") == [(1,), (2,)]


def test_before_an_upgrade_the_file_is_copied_beside_itself(older, steps):
    database.open_database(older, migrations=steps, newest=3)
    (copy,) = copies(older)
    assert (version(copy), mode(copy)) == (1, 0o600)
    assert look(copy, "SELECT email FROM account") == [("old@example.org",)]
    assert look(copy, "SELECT name FROM pragma_table_info('account') WHERE name = 'colour'") == []


def test_an_upgrade_by_one_step_begins_where_the_file_is(older, steps):
    database.open_database(older, migrations=steps, newest=2)
    database.open_database(older, migrations=steps, newest=3)
    assert version(older) == 3
    assert sorted(version(copy) for copy in copies(older)) == [1, 2]


def test_opening_it_a_second_time_changes_nothing(older, steps):
    database.open_database(older, migrations=steps, newest=3)
    before = look(older, "SELECT sql FROM sqlite_schema"), [copy.stat().st_mtime_ns for copy in copies(older)]
    database.open_database(older, migrations=steps, newest=3)
    assert (look(older, "SELECT sql FROM sqlite_schema"), [c.stat().st_mtime_ns for c in copies(older)]) == before
    assert look(older, "SELECT email, colour FROM account") == [("old@example.org", "blue; not red")]


def test_a_new_or_current_database_is_not_copied(file):
    database.open_database(file)
    database.open_database(file)
    assert copies(file) == []


def test_a_step_that_fails_leaves_the_database_at_the_version_before_it(older, steps):
    (steps / "0003_shelf.sql").write_text(BROKEN_STEP_3)
    with pytest.raises(database.DatabaseRefused, match="no_such_table") as refused:
        database.open_database(older, migrations=steps, newest=3)
    assert len(str(refused.value).splitlines()) == 1
    assert version(older) == 2
    assert look(older, "SELECT name FROM sqlite_schema WHERE name = 'shelf'") == []


def test_after_a_failed_first_step_the_older_version_works_on(older, steps):
    (steps / "0002_colour.sql").write_text("ALTER TABLE account ADD COLUMN colour TEXT;\nNonsense;\n")
    with pytest.raises(database.DatabaseRefused):
        database.open_database(older, migrations=steps, newest=3)
    database.open_database(older, newest=1)
    with database.transaction():
        database.run(ADD_ACCOUNT, ("new@example.org",))
    assert look(older, "SELECT email FROM account ORDER BY seq") == [("old@example.org",), ("new@example.org",)]


def test_a_statement_without_its_semicolon_is_run_or_refused_and_never_passed_over(older, steps):
    (steps / "0002_colour.sql").write_text("ALTER TABLE account ADD COLUMN colour TEXT;\nCREATE TABLE shelf (n)")
    try:
        database.open_database(older, migrations=steps, newest=2)
    except database.DatabaseRefused:
        assert version(older) == 1
    else:
        assert look(older, "SELECT name FROM sqlite_schema WHERE name = 'shelf'") == [("shelf",)]


OPEN = """
import pathlib, sys
from store import database
database.open_database(*map(pathlib.Path, sys.argv[1:3]), newest=3)
"""


def open_elsewhere(path, steps):
    """Another process that opens, and so upgrades, the database."""
    command = [sys.executable, "-c", OPEN, str(path), str(steps)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_processes_that_start_at_the_same_time_upgrade_it_once_and_all_go_on(older, steps):
    processes = [open_elsewhere(older, steps) for _ in range(3)]
    results = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert results == [(b"", 0)] * 3
    assert version(older) == 3 and look(older, "SELECT n FROM shelf") == [(1,)]


def test_processes_that_start_at_the_same_time_make_one_new_database(file, steps):
    processes = [open_elsewhere(file, steps) for _ in range(3)]
    results = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert results == [(b"", 0)] * 3
    assert version(file) == 3


def test_the_copy_holds_the_older_schema_even_if_another_process_upgrades_at_the_same_moment(
    older, steps, monkeypatch
):
    alone_in, entered = database._alone_in, []

    def alone_late(directory):
        entered.append(directory)
        if len(entered) == 2:  # the version was read
            assert open_elsewhere(older, steps).communicate(timeout=60) == (b"", b"")
        return alone_in(directory)

    monkeypatch.setattr(database, "_alone_in", alone_late)
    database.open_database(older, migrations=steps, newest=3)
    assert [version(copy) for copy in copies(older)] == [1]


def test_another_process_that_upgrades_it_while_it_is_copied_waits_for_the_copy(older, steps, monkeypatch):
    replace, processes = Path.replace, []

    def replace_late(source, target):
        processes.append(open_elsewhere(older, steps))
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", replace_late)
    database.open_database(older, migrations=steps, newest=3)
    assert [process.communicate(timeout=60) for process in processes] == [(b"", b"")]
    assert version(older) == 3
    assert [version(copy) for copy in copies(older)] == [1]


def test_a_copy_that_was_killed_is_gone_after_the_next(older, steps):
    leftover = older.parent / f".{older.name}.schema-1.k1lled"
    leftover.mkdir()
    (leftover / "copy").write_bytes(b"a part")
    database.open_database(older, migrations=steps, newest=3)
    assert [version(copy) for copy in copies(older)] == [1]


SCHEMAS = sorted((Path(__file__).parent / "schemas").glob("*.sql"))
OLD_ROWS = """
INSERT INTO account (seq, email, plan, time_zone, quiet_hours, notification_count, created_at)
 VALUES (1, 'old@example.org', 'pro', 'Europe/Berlin', '22:00-07:00', 2, 5);
INSERT INTO account (seq, email, plan, time_zone, notification_count, created_at)
 VALUES (2, 'empty@example.org', 'starter', 'UTC', 0, 5);
INSERT INTO session (token_hash, account_seq, created_at, expires_at) VALUES (x'02', 1, 11, 99);
INSERT INTO api_key VALUES (1, 'key', 1, 'nas', 'sk_test_01234567', x'00', 6, NULL, NULL);
INSERT INTO notification (seq, id, account_seq, api_key_seq, alert_seq, title, body, status, created_at)
 VALUES (1, 'first', 1, 1, NULL, 'MCP - a', 'b', 'delivered', 7),
 (2, 'second', 1, NULL, 1, 'MCP - c', 'd', 'pending', 8);
INSERT INTO device (seq, id, account_seq, kind, token, name, api_key_seq, created_at)
 VALUES (1, 'device', 1, 'fcm', 'token', 'Phone', 1, 6), (2, 'newer', 1, 'fcm', 'other', 'Tablet', 1, 10);
INSERT INTO delivery VALUES (2, 1, 'pending', 3, 9, 8, 'Not now.');
INSERT INTO idempotency_key VALUES (1, 'once', x'01', 1, 'delivered', 7);
"""
OLD_METRIC = "INSERT INTO metric VALUES (1, 1, 'p', 'm', 'M', 1.5, '%', 7, '{}');"
OLD_ALERT = "1, 'alert', 1, 'AbCdEf1', 'Disk', 'bell', '#3B82F6', '{{ a }}', NULL, '1h', 1, 1, 2, 7, 6"
ROWS_OF_SCHEMA = {  # where schemas differ in what a row must have
    1: f"INSERT INTO alert VALUES ({OLD_ALERT});",
    2: f"INSERT INTO alert VALUES ({OLD_ALERT}, 6);",
    3: f"INSERT INTO alert VALUES ({OLD_ALERT}, 6, NULL); UPDATE account SET known_device_seq = 2 WHERE seq = 1;"
    " UPDATE session SET last_seen_at = 11;",
    4: f"INSERT INTO alert VALUES ({OLD_ALERT}, 6, NULL, NULL, 1); UPDATE account SET known_device_seq = 2"
    " WHERE seq = 1; UPDATE session SET last_seen_at = 11;",
}
ROWS_OF_SCHEMA[5] = ROWS_OF_SCHEMA[6] = ROWS_OF_SCHEMA[4]
ROWS_OF_SCHEMA = {number: rows + OLD_METRIC for number, rows in ROWS_OF_SCHEMA.items()}
ROWS_OF_SCHEMA[6] = (
    f"{ROWS_OF_SCHEMA[6].removesuffix(OLD_METRIC)} INSERT INTO metric_series VALUES (1, 1, 'p', 'm');"
    " INSERT INTO metric VALUES (1, 1, 'M', 1.5, '%', 7, '{}');"
)
ROWS_OF_SCHEMA[7] = ROWS_OF_SCHEMA[6]


def as_of_now(statement):
    """A statement that reads a table as schema 5 had it, for the newest."""
    of_series = "metric.*, account_seq, project_id, metric_id FROM metric JOIN metric_series s ON s.seq = series_seq"
    return re.sub(r"FROM metric\b", f"FROM (SELECT {of_series})", statement)


def shape(path):
    """The tables and indexes of a database, however they came to be."""
    tables = [row[0] for row in look(path, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    pragmas = ("table_info", "index_list", "foreign_key_list")
    indexes = look(path, "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
    told = {
        (table, pragma): sorted(look(path, f"PRAGMA {pragma}({table})")) for table in tables for pragma in pragmas
    }
    for (_, pragma), rows in told.items():
        if pragma == "index_list":
            rows[:] = sorted(row[1:] for row in rows)  # the order of their making aside
    return told, [(name, " ".join(sql.split())) for name, sql in indexes]


@pytest.fixture(params=SCHEMAS, ids=[schema.stem for schema in SCHEMAS])
def old_version(request, file):
    """A database that an earlier version made and used."""
    file.parent.mkdir()
    connection, number = sqlite3.connect(file), int(request.param.stem)
    connection.executescript(
        request.param.read_text() + OLD_ROWS + ROWS_OF_SCHEMA[number] + f"PRAGMA user_version = {number};"
    )
    connection.close()
    return file


def test_every_earlier_schema_is_kept_for_the_tests():
    assert [schema.stem for schema in SCHEMAS] == [f"{number:04}" for number in range(1, database.SCHEMA_VERSION)]


def test_a_database_of_an_earlier_version_becomes_like_a_new_one(old_version, tmp_path):
    database.open_database(old_version)
    migrated = shape(old_version)
    database.open_database(tmp_path / "new.db")
    assert migrated == shape(tmp_path / "new.db")
    assert version(old_version) == database.SCHEMA_VERSION


def test_a_database_of_an_earlier_version_keeps_every_row(old_version):
    names = [row[0] for row in look(old_version, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    before = {}
    for name in names:
        if name == "sqlite_sequence":  # SQLite's own
            continue
        columns = ", ".join(row[1] for row in look(old_version, f"PRAGMA table_info({name})"))
        before[f"SELECT {columns} FROM {name}"] = look(old_version, f"SELECT {columns} FROM {name}")
    database.open_database(old_version)
    now = {statement: look(old_version, as_of_now(statement)) for statement in before}
    assert now == before
    assert look(old_version, "PRAGMA foreign_key_check") == look(old_version, "SELECT 1 WHERE 0")


def test_an_alert_of_an_earlier_version_counts_as_switched_on_when_it_was_made(old_version):
    database.open_database(old_version)
    assert look(old_version, "SELECT switched_on_at FROM alert") == [(6,)]


def test_devices_of_an_earlier_version_are_none_to_warn_of(old_version):
    database.open_database(old_version)
    assert look(old_version, "SELECT known_device_seq FROM account ORDER BY seq") == [(2,), (0,)]


def test_a_session_of_an_earlier_version_goes_on_and_was_seen_last_when_it_began(old_version):
    database.open_database(old_version)
    assert look(old_version, "SELECT last_seen_at, expires_at, name FROM session") == [(11, 99, "")]


def test_an_account_of_an_earlier_version_looks_like_the_system_and_is_shown_the_first_steps(old_version):
    database.open_database(old_version)
    assert look(old_version, "SELECT DISTINCT theme, hides_first_steps FROM account") == [("system", 0)]


def test_an_alert_that_was_inactive_in_an_earlier_version_is_none_that_was_paused(old_version):
    database.open_database(old_version)
    assert look(old_version, "SELECT paused_at FROM alert") == [(None,)]


def test_an_alert_of_an_earlier_version_keeps_what_comes_last_from_now_on(old_version):
    database.open_database(old_version)
    assert look(old_version, "SELECT keeps_payload, preset FROM alert") == [(1, None)]
    assert look(old_version, "SELECT count(*) FROM alert_payload") == [(0,)]
    with database.transaction():
        alert_payloads.AlertPayload.put(1, "{}", 9)
        models.Alert.get_by_id(1).delete_instance()
    assert look(old_version, "SELECT count(*) FROM alert_payload") == [(0,)]


def test_the_seq_of_a_deleted_alert_is_never_given_again(old_version):
    """Else its notifications would become another alert's."""
    database.open_database(old_version)
    with database.transaction():
        models.Alert.get_by_id(1).delete_instance()
        made = models.Alert.create(
            id="new", account=1, short_code="1234567", name="New", icon="bell", color="#3B82F6", frequency="instant",
            ignores_quiet_hours=0, is_active=1, notification_count=0, created_at=9, switched_on_at=9,
        )  # fmt: skip
    assert made.seq == 2


# --- files that are refused ---------------------------------------------------------------------------------


def test_an_sqlite_that_is_too_old_is_named(file, monkeypatch):
    monkeypatch.setattr(database.sqlite3, "sqlite_version_info", (3, 36, 9))
    with pytest.raises(database.DatabaseRefused, match=r"has SQLite [\d.]+: Pocketbell needs 3\.37 or later"):
        database.open_database(file)
    assert not file.exists()


def refusal(path):
    """The one sentence with which the file is refused."""
    with pytest.raises(database.DatabaseRefused) as refused:
        database.open_database(path)
    (line,) = str(refused.value).splitlines()
    return line


def other_database(path, *statements):
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_a_newer_schema_is_refused_with_a_sentence_and_left_alone(file):
    other_database(file, "CREATE TABLE future (n)", f"PRAGMA user_version = {database.SCHEMA_VERSION + 1}")
    line = refusal(file)
    assert str(file) in line and str(database.SCHEMA_VERSION + 1) in line and "newer" in line
    assert look(file, "SELECT name FROM sqlite_schema") == [("future",)]


@pytest.mark.parametrize("content", [b"This is no database. " * 100, b"x", os.urandom(8192), b"SQLite format 4\0"])
def test_a_file_that_is_no_database_is_refused_with_a_sentence_and_left_alone(file, content):
    file.parent.mkdir()
    file.write_bytes(content)
    assert str(file) in refusal(file)
    assert file.read_bytes() == content


def test_a_directory_in_the_place_of_the_file_is_refused_with_a_sentence(file):
    file.mkdir(parents=True)
    assert str(file) in refusal(file)


def test_a_directory_that_cannot_be_made_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refusal(tmp_path / "file" / "bell.db")


def test_a_database_of_another_program_is_refused_rather_than_mixed_with_ours(file):
    other_database(file, "CREATE TABLE recipe (name TEXT)", "INSERT INTO recipe VALUES ('soup')")
    assert str(file) in refusal(file)
    assert look(file, "SELECT name FROM sqlite_schema") == [("recipe",)]


def test_a_database_of_another_program_that_counts_its_versions_too_is_refused(file):
    other_database(file, "CREATE TABLE recipe (name TEXT)", f"PRAGMA user_version = {database.SCHEMA_VERSION}")
    assert str(file) in refusal(file)
    assert look(file, "SELECT name FROM sqlite_schema") == [("recipe",)]


def test_after_a_refusal_another_file_can_be_opened(file):
    other_database(file, f"PRAGMA user_version = {database.SCHEMA_VERSION + 1}")
    refusal(file)
    database.open_database(file.with_name("other.db"))
    assert version(file.with_name("other.db")) == database.SCHEMA_VERSION


# --- copies and backups -------------------------------------------------------------------------------------


def test_a_backup_holds_all_that_was_acknowledged_before_it_began(service, tmp_path):
    service.account(OWNER, "scale")
    callers = [service.caller(OWNER, f"writer {n}") for n in range(4)]
    acknowledged, stop, enough = [], threading.Event(), threading.Event()

    def write(n):
        client = service.app.test_client()
        headers = {"Authorization": f"Bearer {callers[n].key}"}
        while not stop.is_set() and len(acknowledged) < 2000:
            message = {"title": "t", "body": "b"}
            answer = client.post("/api/v1/notifications/send", json=message, headers=headers)
            assert answer.status_code == 200
            acknowledged.append(answer.json["notification"]["id"])
            if len(acknowledged) > 60:
                enough.set()

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    assert enough.wait(30)
    before = list(acknowledged)
    result = service.flask("backup", tmp_path / "copy.db")
    stop.set()
    for writer in writers:
        writer.join(30)
    assert result.exit_code == 0, result.output
    copied = {row[0] for row in look(tmp_path / "copy.db", "SELECT id FROM notification")}
    assert set(before) <= copied
    assert look(tmp_path / "copy.db", "PRAGMA integrity_check") == [("ok",)]
    assert look(tmp_path / "copy.db", "PRAGMA foreign_key_check") == []


def test_the_counters_of_a_backup_agree_with_its_rows(service, tmp_path):
    service.account(OWNER, "pro")
    caller = service.caller(OWNER)
    stop = threading.Event()

    def write():
        client = service.app.test_client()
        while not stop.is_set():
            headers = {"Authorization": f"Bearer {caller.key}"}
            client.post("/api/v1/notifications/send", json={"title": "t", "body": "b"}, headers=headers)

    writer = threading.Thread(target=write)
    writer.start()
    for n in range(5):
        assert service.flask("backup", tmp_path / f"{n}.db").exit_code == 0
    stop.set()
    writer.join(30)
    counted = "SELECT (SELECT count(*) FROM notification) - notification_count FROM account"
    assert [look(tmp_path / f"{n}.db", counted) for n in range(5)] == [[(0,)]] * 5


def public_key_of_a_push(service, push_service):
    """The `k=` of what the service signs its pushes with."""
    browser = push_service.browser()
    assert service.flask("device", "add", OWNER, "webpush", json.dumps(browser.subscription)).exit_code == 0
    service.caller(OWNER, "pusher").send()
    return re.search(r"k=([\w-]+)", browser.pushes[0]["authorization"])[1]


def started_on(make_service, push_service, path):
    return make_service(WEBPUSH_HOSTS=push_service.origin, DATABASE_URL=f"sqlite:///{path}")


def test_a_service_started_on_a_backup_has_the_same_web_push_key(service, push_service, make_service, tmp_path):
    service.account(OWNER)
    key = public_key_of_a_push(service, push_service)
    assert service.flask("backup", tmp_path / "copy.db").exit_code == 0
    restored = started_on(make_service, push_service, tmp_path / "copy.db")
    assert public_key_of_a_push(restored, push_service) == key


def test_the_web_push_key_is_made_at_the_first_start_and_so_in_every_backup(
    service, push_service, make_service, tmp_path
):
    service.account(OWNER)
    assert service.flask("backup", tmp_path / "copy.db").exit_code == 0
    key = public_key_of_a_push(service, push_service)
    restored = started_on(make_service, push_service, tmp_path / "copy.db")
    assert public_key_of_a_push(restored, push_service) == key


def test_a_service_started_on_a_backup_takes_the_same_keys_and_shows_the_same_history(
    service, push_service, make_service, tmp_path
):
    service.account(OWNER)
    caller = service.caller(OWNER)
    caller.send("Disk", "full")
    shown = caller.listed()
    assert service.flask("backup", tmp_path / "copy.db").exit_code == 0
    caller.service = started_on(make_service, push_service, tmp_path / "copy.db")
    assert caller.listed() == shown


def test_a_copy_in_the_making_is_never_seen_under_its_name(opened, tmp_path):
    with database.transaction():
        database.run("CREATE TABLE big (text TEXT)")
        for _ in range(200):
            database.run("INSERT INTO big VALUES (?)", ("x" * 20_000,))
    target, seen, done = tmp_path / "copy.db", set(), threading.Event()

    def watch():
        while not done.is_set():
            if target.exists():
                seen.add(target.stat().st_size)
            time.sleep(0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    database.copy_database(target)
    done.set()
    watcher.join(30)
    assert seen <= {target.stat().st_size}
    assert look(target, "SELECT count(*) FROM big") == [(200,)]
