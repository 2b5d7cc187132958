"""`flask backup` and `flask import` on both engines."""

import itertools
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store import database, sqlite, sqlite_file, sqlite_lock
from store.engine import SCHEMA_VERSION, ServerUrl
from tests.support import postgresql
from tests.support.accounts import OWNER
from tests.support.buttons import ANSWERS, paths, press
from tests.support.commands import printed, said
from tests.support.devices import subscribe
from tests.support.moving import (
    LAST_SEQ,
    contents,
    contents_here,
    emptied_server_database,
    extreme_file,
    free_locks,
    opened,
    run_command,
    without_nul,
)
from tests.support.pages import Visitor, signed_in
from tests.support.rows import each
from tests.support.service import Caller, Service
from tests.support.tables import look, mode

_numbers = itertools.count()


@pytest.fixture
def place(tmp_path):
    """An empty database of an engine: the variables that name it. In PostgreSQL it has its tables already."""

    def make(engine):
        if engine == "sqlite":
            return {"DATABASE_URL": f"sqlite:///{tmp_path}/{next(_numbers)}/bell.db"}
        return {"DATABASE_URL": emptied_server_database()}

    return make


@pytest.fixture
def extreme(tmp_path):
    (tmp_path / "source").mkdir()
    return Path(shutil.copy(extreme_file(), tmp_path / "source" / "extreme.db"))


def opening(where):
    """What `open_database` takes."""
    url = where["DATABASE_URL"]
    return sqlite_path(where) if url.startswith("sqlite:") else ServerUrl(url, 2)


def sqlite_path(where):
    return Path(where["DATABASE_URL"].removeprefix("sqlite:///"))


IMPORTED = "Imported 3 accounts, 3 API keys, 3 alerts, 1 device, 3 notifications, 3 metric values."


# --- row by row ---------------------------------------------------------------------------------------------


def assert_it_holds(rows):
    """The open database has these rows, and gives the number of no deleted one again."""
    assert contents_here() == {table: found for table, found in rows.items() if table != "sqlite_sequence"}
    with database.transaction(database.EVERYBODY):
        (seq,) = database.run(
            "INSERT INTO notification (id, account_seq, title, body, status, created_at)"
            " VALUES ('new', 1, 't', 'b', 'delivered', 1) RETURNING seq"
        ).fetchone()
        assert seq == LAST_SEQ + 1
        (seq,) = database.run(
            "INSERT INTO metric_series (account_seq, project_id, metric_id) VALUES (1, 'p', 'new') RETURNING seq"
        ).fetchone()
        assert seq == 4


def test_all_that_a_file_holds_is_in_the_new_database_afterwards(extreme, place, tmp_path):
    """With a secret of the settings, none is made."""
    where = place("sqlite")
    assert printed(run_command(tmp_path / "data", "import", extreme, **where, SECRET_KEY="s")) == IMPORTED
    with opened(sqlite_path(where)):
        assert_it_holds(contents(extreme))
    assert not (tmp_path / "data/secret_key").exists()


def test_a_move_to_postgresql_and_back_changes_nothing(extreme, place, tmp_path):
    """The secret moves from the data directory into PostgreSQL, and from there into the next one."""
    there, back = {"DATABASE_URL": postgresql.new_database(f"new_{os.getpid()}")}, place("sqlite")
    for folder, secret in (("old", "5ecret"), ("beside", "another")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "secret_key").write_text(secret)
    copy, beside = tmp_path / "copy.db", tmp_path / "beside/pocketbell.db"
    assert printed(run_command(tmp_path / "old", "import", extreme, **there)) == IMPORTED
    printed(run_command(tmp_path / "none", "backup", copy, **there))
    assert not (tmp_path / "none").exists()
    assert printed(run_command(tmp_path / "new", "import", copy, **back)) == IMPORTED
    shutil.copy(copy, beside)
    run_command(tmp_path / "beside", "account", "list")
    found = [without_nul(contents(extreme)), *map(contents, (copy, sqlite_path(back), beside))]
    before, copied, *after = [dict(rows.pop("server_key")) for rows in found]
    assert found == found[:1] * 4 and copied == before | {"vapid": copied["vapid"], "secret": "5ecret"}
    del copied["secret"]
    assert after == [copied] * 2
    for folder in ("new", "beside"):
        file = tmp_path / folder / "secret_key"
        assert file.read_text() == "5ecret" and mode(file) == 0o600
    with opened(opening(there)):
        rows = contents_here()["server_key"]
        assert_it_holds({**found[0], "server_key": rows})


def test_tables_are_copied_after_the_ones_they_refer_to():
    names = [table.name for table in sqlite_file.tables()]
    with closing(sqlite3.connect(":memory:")) as scratch:
        scratch.executescript(sqlite_file.SCHEMA.read_text())
        for place, name in enumerate(names):
            of = {row[2] for row in scratch.execute(f"PRAGMA foreign_key_list({name})")}
            assert of <= {*names[:place]}


def test_a_backup_of_postgresql_is_one_snapshot_with_the_schema_of_every_other(extreme, place, tmp_path, monkeypatch):
    """What is stored while the first tables are copied is in no later one, nor what an import would have added."""
    from store import postgresql_copy

    where, rows, added, copy = place("postgresql"), postgresql_copy._rows, [], tmp_path / "copy.db"
    run_command(tmp_path / "data", "account", "create", OWNER, **where)
    assert "has an account already" in said(run_command(tmp_path / "data", "import", extreme, **where))

    def interrupted(connection, table):
        yield from rows(connection, table)
        if table.name == "account":
            with database.transaction(database.EVERYBODY):
                database.run("INSERT INTO notification_day (account_seq, day, notification_count) VALUES (1, 'd', 1)")
            added.append(True)

    monkeypatch.setattr(postgresql_copy, "_rows", interrupted)
    printed(run_command(tmp_path / "data", "backup", copy, **where))
    assert added and look(copy, "SELECT count(*) FROM notification_day") == [(0,)]
    assert look(copy, "SELECT email FROM account") == [(OWNER,)]
    with opened(tmp_path / "new.db"):
        pass
    for question in (
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
        "PRAGMA user_version",
        "PRAGMA application_id",
    ):
        assert look(copy, question) == look(tmp_path / "new.db", question)
    assert look(copy, "PRAGMA integrity_check") == [("ok",)] and mode(copy) == 0o600
    assert "exists" in said(run_command(tmp_path / "data", "backup", copy, **where))


# --- what is refused ----------------------------------------------------------------------------------------


def foreign(path):
    look_at = sqlite3.connect(path)
    look_at.execute("PRAGMA application_id = 7")
    look_at.close()


def with_version(version):
    def change(path):
        with closing(sqlite3.connect(path)) as file:
            file.execute(f"PRAGMA user_version = {version}")

    return change


def damaged(path):
    size = path.stat().st_size
    with path.open("r+b") as file:
        for at in range(8192, size, 4096):
            file.seek(at)
            file.write(b"\xff" * 4096)


def not_utf_8(path):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE notification SET body = CAST(x'ff' AS TEXT)")


def without_parent(path):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM metric_series WHERE seq = 2")


def without_table(path):
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE ping")


FAULTS = {
    "missing": (lambda path: path.unlink(), "No such file"),
    "directory": (lambda path: (path.unlink(), path.mkdir()), "directory"),
    "empty": (lambda path: path.write_bytes(b""), "not an SQLite file"),
    "text": (lambda path: path.write_text("Dear diary, " * 1000), "not an SQLite file"),
    "cut": (lambda path: os.truncate(path, 5000), "malformed"),
    "foreign": (foreign, "another program's"),
    "newer": (with_version(SCHEMA_VERSION + 1), "newer Pocketbell"),
    "older": (with_version(SCHEMA_VERSION - 1), "upgrade a copy"),
    "damaged": (damaged, "cannot be imported"),
}
FAULTS_OF_ROWS = {
    "not UTF-8": (not_utf_8, "UTF-8"),
    "a row without the one it refers to": (without_parent, "foreign key"),
    "without a table": (without_table, "no such table"),
}


@each("fault", FAULTS)
def test_a_file_that_will_not_do_is_refused_in_one_line_before_anything_is_made(extreme, tmp_path, place, fault):
    (break_, words), where = FAULTS[fault], place("sqlite")
    break_(bad := Path(shutil.copy(extreme, tmp_path / f"{fault}.db")))
    line = said(run_command(tmp_path / "data", "import", bad, **where))
    assert words in line and str(bad) in line
    assert not sqlite_path(where).exists() and not (tmp_path / "data").exists()


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_a_file_whose_rows_will_not_do_leaves_the_database_empty(extreme, tmp_path, place, engine):
    """So that the next import fills it: with a secret of the settings, the data directory's is not stored."""
    where, data_dir = place(engine), tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "secret_key").write_text("old")
    for fault, (break_, words) in FAULTS_OF_ROWS.items():
        bad = shutil.copy(extreme, tmp_path / "bad.db")
        break_(bad)
        assert words.lower() in said(run_command(data_dir, "import", bad, **where)).lower(), fault
    assert printed(run_command(data_dir, "import", extreme, **where, SECRET_KEY="s")) == IMPORTED
    with opened(opening(where)):
        assert "secret" not in dict(contents_here()["server_key"])
    assert (data_dir / "secret_key").read_text() == "old"


def test_rows_that_differ_only_in_a_nul_are_refused_by_postgresql_which_stays_empty(extreme, tmp_path, place):
    good = shutil.copy(extreme, tmp_path / "good.db")
    with closing(sqlite3.connect(extreme)) as file, file:
        for metric in ("cpu\0", "cpu\ufffd"):
            added = "INSERT INTO metric_series (account_seq, project_id, metric_id) VALUES (1, 'p', ?)"
            file.execute(added, (metric,))
    there, here = place("postgresql"), place("sqlite")
    line = said(run_command(tmp_path / "data", "import", extreme, **there))
    assert line == (
        "Error: Two rows of the table metric_series would be the same in PostgreSQL, whose texts have no NUL:"
        " nothing was imported."
    )
    assert "people sign in again" in printed(run_command(tmp_path / "data", "import", good, **there))
    assert "people sign in again" in printed(run_command(tmp_path / "here", "import", extreme, **here))


def test_a_database_with_an_account_is_refused_and_left_alone(extreme, tmp_path, place):
    where = place("sqlite")
    run_command(tmp_path / "data", "account", "create", OWNER, **where)
    assert "has an account already" in said(run_command(tmp_path / "data", "import", extreme, **where))
    assert look(sqlite_path(where), "SELECT email FROM account") == [(OWNER,)]


def test_a_full_disk_is_said_in_one_line_and_leaves_the_database_empty(extreme, tmp_path, place, monkeypatch):
    open_database, where = sqlite.open_database, place("sqlite")
    with closing(sqlite3.connect(extreme)) as file, file:
        file.execute("UPDATE notification SET body = ?", ("x" * 1_000_000,))

    def with_little_room(*arguments):
        open_database(*arguments)
        sqlite._writer.opened().execute("PRAGMA max_page_count = 200")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "open_database", with_little_room)
        line = said(run_command(tmp_path / "data", "import", extreme, **where))
    assert line == "Error: database or disk is full"
    printed(run_command(tmp_path / "data", "import", extreme, **where))


def test_the_database_itself_is_refused(extreme, tmp_path):
    where = {"DATABASE_URL": f"sqlite:///{extreme}"}
    assert "that is to be filled" in said(run_command(tmp_path / "data", "import", extreme, **where))


def test_a_database_that_a_service_uses_is_refused(extreme, tmp_path, place):
    where = place("sqlite")
    sqlite_lock.take(sqlite_path(where), "http://here", tell=pytest.fail)
    held = sqlite_lock._kept_open.pop()
    line = said(run_command(tmp_path / "data", "import", extreme, **where))
    os.close(held)
    assert "Another Pocketbell" in line and "stop it first" in line
    printed(run_command(tmp_path / "data", "import", extreme, **where))


def test_a_file_that_a_service_uses_is_refused(extreme, tmp_path, place):
    sqlite_lock.take(extreme, "http://here", tell=pytest.fail)
    held = sqlite_lock._kept_open.pop()
    line = said(run_command(tmp_path / "data", "import", extreme, **place("sqlite")))
    os.close(held)
    assert "Another Pocketbell" in line and str(extreme) in line


@each("has_lock", [True, False])
def test_a_server_database_that_a_service_uses_is_refused(extreme, tmp_path, place, monkeypatch, has_lock):
    """One that counts with Redis is connected, but has no lock."""
    from store import postgresql_connection, postgresql_lock

    where = place("postgresql")
    if has_lock:
        postgresql_lock.take(opening(where), tell=pytest.fail)
        held = postgresql_lock._kept_open.pop()
    else:
        held = postgresql_connection.connected(opening(where))
    with monkeypatch.context() as patch:
        patch.setattr(postgresql_lock, "LOOKS_AT_LEAVING", 1)
        line = said(run_command(tmp_path / "data", "import", extreme, **where))
    held.close()
    assert "Another Pocketbell is using" in line and "stop it first" in line
    printed(run_command(tmp_path / "data", "import", extreme, **where))


def test_sessions_cursors_buttons_and_subscriptions_live_on_after_each_move(
    place, tmp_path, push_service, moved_clock
):
    """From SQLite to PostgreSQL, and back to SQLite in another directory."""
    hosts = {"WEBPUSH_HOSTS": push_service.origin}
    here, there, back = place("sqlite"), place("postgresql"), place("sqlite")
    sqlite_path(here).parent.mkdir()
    service = Service(tmp_path / "here", **here, **hosts)
    visitor = signed_in(service)
    owner = service.caller()
    browser = subscribe(owner, push_service)
    owner.send()
    owner.post("/notifications/send", {"title": "t", "body": "b", "actions": ANSWERS, "acknowledge": True})
    pressed = paths(browser)
    cursor = owner.get("/notifications?limit=1").json["pagination"]["nextCursor"]

    def lives_on(moved, label):
        caller = Caller(moved, owner.key)
        assert Visitor(moved).with_cookie(visitor.cookie).is_signed_in
        assert caller.get(f"/notifications?limit=1&cursor={cursor}").status_code == 200
        assert press(moved, pressed[label]).status_code == 200
        before = browser.vapid_key
        assert caller.send().json["notification"]["status"] == "delivered" and browser.vapid_key == before

    database.close()
    printed(run_command(tmp_path / "here", "import", sqlite_path(here), **there))
    (tmp_path / "there").mkdir()
    (tmp_path / "there/postgresql").touch()  # it was used before
    lives_on(Service(tmp_path / "there", **there, **hosts), "Yes")
    printed(run_command(tmp_path / "there", "backup", tmp_path / "copy.db", **there))
    printed(run_command(tmp_path / "back", "import", tmp_path / "copy.db", **back))
    lives_on(Service(tmp_path / "back", **back, **hosts), "Acknowledge")
    assert look(sqlite_path(back), "SELECT count(*) FROM notification") == [(4,)]


@pytest.fixture(autouse=True)
def no_locks():
    yield
    database.close()
    free_locks()
