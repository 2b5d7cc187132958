"""What a test finds in the database that another one has left (tests/support/recycling.py)."""

import pytest

from store import database, sqlite
from tests.support import recycling
from tests.support.postgresql import sqlite_only
from tests.support.service import Service
from tests.support.tables import look

pytestmark = sqlite_only


@pytest.fixture
def place(tmp_path, moved_clock):
    """The database of a service that was used, which its test leaves."""
    service = Service(tmp_path / "used")
    service.account()
    assert service.caller().send().status_code == 200
    return service.settings.database


def rows_of(path):
    """The rows of all tables that have any."""
    names = [name for (name,) in look(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: rows for name in names if (rows := look(path, f"SELECT * FROM {name}"))}


def test_it_is_the_same_file_and_has_what_a_new_one_has(place, tmp_path):
    recycling.leave(place)
    taken = Service(tmp_path / "taken")
    assert not place.exists()
    recycling.leave(place)  # it is another test's, so the next one is new
    new = Service(tmp_path / "new")
    assert rows_of(taken.settings.database) == rows_of(new.settings.database) != {}
    assert taken.settings.database.exists()


def test_its_numbers_begin_anew(place, tmp_path):
    recycling.leave(place)
    taken = Service(tmp_path / "taken")
    taken.account()
    taken.caller()
    assert look(taken.settings.database, "SELECT seq FROM account UNION ALL SELECT seq FROM api_key") == [(1,), (1,)]


def test_its_log_is_empty_and_nobody_hears_of_it(place, tmp_path):
    heard = []
    sqlite._writer.opened().set_trace_callback(heard.append)
    recycling.leave(place)
    taken = Service(tmp_path / "taken")
    assert (tmp_path / "taken/pocketbell.db-wal").stat().st_size == 0
    heard.clear()
    taken.account()
    assert heard == []


CHANGES = [
    lambda: database.run("PRAGMA query_only = OFF"),
    lambda: sqlite._writer.opened().execute("PRAGMA foreign_keys = OFF"),
    lambda: sqlite._writer.opened().execute("CREATE TABLE another (n)"),
    lambda: sqlite._writer.opened().execute("PRAGMA max_page_count = 200"),
    lambda: sqlite._writer.opened().execute("BEGIN"),
    lambda: sqlite._writer.close(),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_nobody_takes_a_database_to_which_more_was_done_than_reading_and_writing(place, tmp_path, change):
    change()
    recycling.leave(place)
    Service(tmp_path / "new")
    assert place.exists()


def test_nobody_takes_a_database_of_which_a_reader_sees_an_old_state(place, tmp_path):
    cursor = database.run("SELECT name FROM sqlite_schema")
    assert cursor.fetchone()  # and not its last row
    recycling.leave(place)
    Service(tmp_path / "new")
    assert place.exists()
