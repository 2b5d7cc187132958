"""Databases of earlier versions become like new ones, and lose no row."""

import functools
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from store import database
from tests.support.rows import each
from tests.support.schemas import ROWS, SCHEMAS, as_of_now, rows_of
from tests.support.server import ROOT
from tests.support.tables import ADD_ACCOUNT, look, mode, version

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


@pytest.fixture
def steps(tmp_path):
    """A directory with the migrations to schemas 2 and 3."""
    directory = tmp_path / "steps"
    directory.mkdir()
    (directory / "0002_colour.sql").write_text(STEP_2)
    (directory / "0003_shelf.sql").write_text(STEP_3)
    return directory


@pytest.fixture
def older(file):
    """A database of schema 1 with one account, closed."""
    database.open_database(file, newest=1)
    with database.transaction(database.EVERYBODY):
        database.run(ADD_ACCOUNT, ("old@example.org",))
    database.close()
    return file


def copies(path):
    """The files beside the database that are not SQLite's own."""
    own = {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    return [other for other in path.parent.iterdir() if other.name not in own]


def test_an_older_database_is_brought_to_the_newest_schema_step_by_step(older, steps):
    database.open_database(older, migrations=steps, newest=3)
    assert version(older) == 3
    assert look(older, "SELECT email, colour FROM account") == [("old@example.org", "blue; not red")]
    with database.transaction(database.EVERYBODY):
        database.run(ADD_ACCOUNT, ("new@example.org",))
    assert look(older, "SELECT n FROM shelf") == [(1,), (2,)]  # the second by a step's trigger


def test_before_an_upgrade_the_file_is_copied_beside_itself(older, steps):
    database.open_database(older, migrations=steps, newest=3)
    (copy,) = copies(older)
    assert (version(copy), mode(copy)) == (1, 0o600)
    assert look(copy, "SELECT email FROM account") == [("old@example.org",)]
    assert look(copy, "SELECT name FROM pragma_table_info('account') WHERE name = 'colour'") == []


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


def test_a_statement_without_its_semicolon_is_run(older, steps):
    (steps / "0002_colour.sql").write_text(f"{STEP_2}CREATE TABLE shelf (n INTEGER)")
    database.open_database(older, migrations=steps, newest=2)
    assert look(older, "SELECT n FROM shelf") == []


OPEN = """
import pathlib, sys
from store import database, sqlite
database.open_database(*map(pathlib.Path, sys.argv[1:3]), newest=3)
"""


def open_elsewhere(path, steps):
    """Start another process that opens the database, and so upgrades it."""
    command = [sys.executable, "-c", OPEN, str(path), str(steps)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_processes_that_start_at_the_same_time_upgrade_it_once_and_all_go_on(older, steps):
    processes = [open_elsewhere(older, steps) for _ in range(3)]
    results = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert results == [(b"", 0)] * 3
    assert version(older) == 3 and look(older, "SELECT n FROM shelf") == [(1,)]
    assert [version(copy) for copy in copies(older)] == [1]


def test_processes_that_start_at_the_same_time_make_one_new_database(file, steps):
    processes = [open_elsewhere(file, steps) for _ in range(3)]
    results = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert results == [(b"", 0)] * 3
    assert version(file) == 3


def test_another_process_that_opens_it_while_it_is_copied_waits_for_the_upgrade(older, steps, monkeypatch):
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


ONE_OF = re.compile(r"status IN \(([^)]*)\)")  # how the first schemas said it


def shape(file):
    """The indexes and tables of a database; of a table all that it says, in any order: new columns come last."""
    made = file.execute("SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    said = {(name, kind): " ".join(re.sub(r"--.*", "", sql).split()) for name, kind, sql in made}
    return {one: sorted(parts_of_table(sql)) if one[1] == "table" else sql for one, sql in said.items()}


def parts_of_table(sql):
    """A table's name, columns and constraints, and what comes after them."""
    said = ONE_OF.sub(lambda found: " OR ".join(f"status = {one}" for one in found[1].split(", ")), sql)
    flat = said.replace('"', "").replace("(", ",", 1).replace(") STRICT", ", STRICT")
    return [part.strip() for part in re.split(r",(?![^()]*\))", flat)]


WITH_OTHER_ROWS = [schema for schema in SCHEMAS if int(schema.stem) in {first for first, _, _ in ROWS}]
each_schema = each("schema", WITH_OTHER_ROWS)


def make_old(file, schema):
    """Make a database as an earlier version made and used it."""
    number = int(schema.stem)
    file.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(file)) as old:
        old.executescript(f"BEGIN; {schema.read_text()} {rows_of(number)} COMMIT; PRAGMA user_version = {number};")


def statements_for_rows(connection):
    """A statement for each table that reads its columns by their names."""
    columns = connection.execute(
        "SELECT t.name, group_concat(c.name, ', ') FROM sqlite_schema t, pragma_table_info(t.name) c"
        " WHERE t.type = 'table' AND t.name NOT IN ('sqlite_sequence', 'rule_arrival') GROUP BY t.name"
    )  # SQLite's own, and one that is no more
    return [f"SELECT {names} FROM {table}" for table, names in columns]


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    """The file of a database of an earlier version after its upgrade, and its rows before. All tests read it."""

    @functools.cache
    def upgrade(schema):
        file = tmp_path_factory.mktemp("upgraded") / "bell.db"
        make_old(file, schema)
        with closing(sqlite3.connect(file)) as old:
            before = {read: old.execute(read).fetchall() for read in statements_for_rows(old)}
        database.open_database(file)
        database.close()
        return file, before

    return upgrade


def test_every_earlier_schema_is_kept_for_the_tests():
    assert [schema.stem for schema in SCHEMAS] == [f"{number:04}" for number in range(1, database.SCHEMA_VERSION)]


@each("schema, next_one", list(pairwise([*SCHEMAS, ROOT / "schema.sql"])))
def test_a_database_of_an_earlier_version_becomes_like_one_of_the_next(tmp_path, schema, next_one):
    """And so, step by step, like a new one."""
    file, number = tmp_path / schema.stem, int(schema.stem)
    make_old(file, schema)
    database.open_database(file, newest=number + 1)
    database.close()
    with closing(sqlite3.connect(file)) as now, closing(sqlite3.connect(":memory:")) as wanted:
        wanted.executescript(next_one.read_text())
        assert shape(now) == shape(wanted)
    assert version(file) == number + 1


@each_schema
def test_a_database_of_an_earlier_version_keeps_every_row(upgraded, schema):
    file, before = upgraded(schema)
    with closing(sqlite3.connect(file)) as now:
        assert {read: now.execute(as_of_now(read)).fetchall() for read in before} == before
        assert now.execute("PRAGMA foreign_key_check").fetchall() == []


LATER_COLUMNS = [  # what a column says of a row that is older than the column
    ("SELECT switched_on_at FROM alert", [(6,)]),  # since it was made
    ("SELECT paused_at FROM alert", [(None,)]),
    ("SELECT keeps_payload, preset FROM alert", [(1, None)]),
    ("SELECT known_device_seq FROM account ORDER BY seq", [(2,), (0,)]),  # no device to warn of
    ("SELECT last_seen_at, expires_at, name FROM session", [(11, 99, "")]),  # seen when it began
    ("SELECT DISTINCT theme, hides_first_steps FROM account", [("system", 0)]),
]


def test_the_uptime_of_a_heartbeat_of_an_earlier_version_counts_from_its_last_ping(file):
    make_old(file, SCHEMAS[20])  # the last without its changes
    database.open_database(file)
    assert look(file, "SELECT heartbeat_seq, state, changed_at FROM heartbeat_change") == [(1, "up", 8)]


@each_schema
def test_new_columns_of_earlier_rows_are_filled(upgraded, schema):
    file, _ = upgraded(schema)
    assert [(said, look(file, said)) for said, _ in LATER_COLUMNS] == LATER_COLUMNS


@each("schema", [schema for schema in WITH_OTHER_ROWS if schema in SCHEMAS[:19]])
def test_the_texts_and_values_of_an_earlier_version_count_as_stored(upgraded, schema):
    file, _ = upgraded(schema)
    texts = len("MCP - a" + "b" + "MCP - c" + "d" + "p" + "m" + "M" + "%" + "{}")
    counted = "SELECT account_seq, stored_bytes FROM notification_day WHERE stored_bytes > 0"
    assert look(file, counted) == [(1, texts + 16)]


def test_a_value_that_arrived_in_an_earlier_version_restarted_the_silent_rules_of_its_metric(file):
    make_old(file, SCHEMAS[19])
    with closing(sqlite3.connect(file)) as old:
        old.executescript(
            "INSERT INTO metric_rule (seq, id, account_seq, project_id, metric_id, operator, for_s, state, fires_at,"
            " created_at) VALUES (1, 'a', 1, 'p', 'm', 'silent', 60, 'ok', 60005, 5),"
            " (11, 'b', 1, 'p', 'n', 'silent', 60, 'ok', 60005, 5);"
            "INSERT INTO rule_arrival VALUES (1, '[1, 11]', 7), (1, '[11]', 9);"
        )
    database.open_database(file)
    assert look(file, "SELECT fires_at FROM metric_rule ORDER BY seq") == [(60_007,), (60_009,)]
