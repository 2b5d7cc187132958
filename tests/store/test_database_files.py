"""The database's file: who may read it, which are refused, copies and backups."""

import json
import os
import re
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from store import database, sqlite
from tests.support.accounts import OWNER
from tests.support.forks import Fork
from tests.support.postgresql import sqlite_only
from tests.support.server import NO_FILE, PATIENCE_S, ROOT
from tests.support.tables import look, mode, version

pytestmark = sqlite_only

# --- permissions --------------------------------------------------------------------------------------------


def test_the_data_directory_and_all_in_it_are_their_owners_alone(service, tmp_path):
    service.account(OWNER)
    modes = {path.name: mode(path) for path in service.data_dir.iterdir()}
    assert mode(service.data_dir) == 0o700
    assert {"pocketbell.db", "pocketbell.db-wal", "pocketbell.db-shm", "secret_key"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_a_backup_is_its_owners_alone_whatever_the_umask(opened, tmp_path):
    before = os.umask(0)
    try:
        database.copy_database(tmp_path / "copy.db")
    finally:
        os.umask(before)
    assert mode(tmp_path / "copy.db") == 0o600


def test_a_process_with_a_wide_umask_makes_narrow_files(tmp_path):
    env = {**NO_FILE, "DATA_DIR": str(tmp_path / "data")}
    output = tmp_path / "output"
    created = Fork(["flask", "account", "create", OWNER], env, output, output, before=partial(os.umask, 0))
    assert created.wait(PATIENCE_S) == 0, output.read_text()
    modes = {mode(path) for path in (tmp_path / "data").iterdir()}
    assert (mode(tmp_path / "data"), modes) == (0o700, {0o600})


# --- files that are refused ---------------------------------------------------------------------------------


def test_an_sqlite_that_is_too_old_is_named(file, monkeypatch):
    monkeypatch.setattr(sqlite.sqlite3, "sqlite_version_info", (3, 36, 9))
    with pytest.raises(database.DatabaseRefused, match=r"has SQLite [\d.]+: Pocketbell needs 3\.37 or later"):
        database.open_database(file)
    assert not file.exists()


def test_no_query_has_an_operator_that_the_oldest_sqlite_lacks():
    """SQLite 3.38 brought `->>`, which the dialect of PostgreSQL has as well."""
    files = [ROOT / "schema.sql", *(ROOT / "store").glob("*.py"), *(ROOT / "migrations").glob("*.sql")]
    files.remove(ROOT / "store/dialect.py")
    assert [file.name for file in files if "->>" in file.read_text(encoding="utf-8")] == []


def refusal(path):
    """The sentence with which the file is refused."""
    with pytest.raises(database.DatabaseRefused) as refused:
        database.open_database(path)
    (line,) = str(refused.value).splitlines()
    return line


@pytest.mark.parametrize("content", [b"This is no database. " * 100, b"x", os.urandom(8192), b"SQLite format 4\0"])
def test_a_file_that_is_no_database_is_refused_with_a_sentence_and_left_alone(file, content):
    file.parent.mkdir()
    file.write_bytes(content)
    assert str(file) in refusal(file)
    assert file.read_bytes() == content


def test_a_place_that_cannot_hold_the_file_is_refused_with_a_sentence(file, tmp_path):
    file.mkdir(parents=True)
    (tmp_path / "file").write_text("")
    for place in (file, tmp_path / "file" / "bell.db"):
        assert str(place) in refusal(place)


NEWER = database.SCHEMA_VERSION + 1
OTHERS = [*((schema, "another program's") for schema in (0, NEWER - 1)), (NEWER, f"schema {NEWER}, made by a newer")]


@pytest.mark.parametrize("schema, why", OTHERS)
def test_a_database_of_another_program_or_a_newer_version_is_left_alone_and_others_can_be_opened(file, schema, why):
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as other:
        other.executescript(f"CREATE TABLE recipe (name TEXT); PRAGMA user_version = {schema}")
    said = refusal(file)
    assert str(file) in said and why in said
    assert look(file, "SELECT name FROM sqlite_schema") == [("recipe",)]
    database.open_database(file.with_name("other.db"))
    assert version(file.with_name("other.db")) == database.SCHEMA_VERSION


# --- copies and backups -------------------------------------------------------------------------------------


def test_a_backup_holds_all_that_was_acknowledged_before_it_began_and_its_counters_agree(service, tmp_path):
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

    with ThreadPoolExecutor(4) as threads:
        writers = [threads.submit(write, n) for n in range(4)]
        assert enough.wait(30)
        before = list(acknowledged)
        files = [tmp_path / f"{n}.db" for n in range(5)]
        results = [service.flask("backup", file) for file in files]
        stop.set()
    assert [writer.result() for writer in writers] == [None] * 4
    assert [result.exit_code for result in results] == [0] * 5, results[0].output
    copied = {row[0] for row in look(files[0], "SELECT id FROM notification")}
    assert set(before) <= copied
    assert look(files[0], "PRAGMA integrity_check") == [("ok",)]
    assert look(files[0], "PRAGMA foreign_key_check") == []
    number = "coalesce((SELECT notification_count FROM notification_day WHERE day = ''), 0)"
    counted = f"SELECT (SELECT count(*) FROM notification) - {number}"
    assert [look(file, counted) for file in files] == [[(0,)]] * 5


def public_key_of_a_push(service, push_service):
    """The public key (`k=`) with which the service signs its pushes."""
    browser = push_service.browser()
    assert service.flask("device", "add", OWNER, "webpush", json.dumps(browser.subscription)).exit_code == 0
    service.caller(OWNER, "pusher").send()
    return re.search(r"k=([\w-]+)", browser.pushes[0]["authorization"])[1]


def started_on(make_service, push_service, path):
    return make_service(WEBPUSH_HOSTS=push_service.origin, DATABASE_URL=f"sqlite:///{path}")


def test_the_web_push_key_is_made_at_the_first_start_and_so_in_every_backup(
    service, push_service, make_service, tmp_path
):
    service.account(OWNER)
    assert service.flask("backup", tmp_path / "copy.db").exit_code == 0
    key = public_key_of_a_push(service, push_service)
    restored = started_on(make_service, push_service, tmp_path / "copy.db")
    assert public_key_of_a_push(restored, push_service) == key


def test_a_copy_in_the_making_is_never_seen_under_its_name(opened, tmp_path):
    with database.transaction(database.EVERYBODY):
        database.run("CREATE TABLE big (text TEXT)")
        for _ in range(200):
            database.run("INSERT INTO big VALUES (?)", ("x" * 20_000,))
    target = tmp_path / "copy.db"
    with ThreadPoolExecutor(1) as thread:
        copying, sizes = thread.submit(database.copy_database, target), set()
        while not copying.done():
            sizes |= {file.stat().st_size for file in tmp_path.glob(target.name)}
    assert copying.result() is None and sizes <= {target.stat().st_size}
    assert look(target, "SELECT count(*) FROM big") == [(200,)]
