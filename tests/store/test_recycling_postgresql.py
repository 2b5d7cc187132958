"""The connections that another test has left (tests/support/recycling_postgresql.py), and what is in the database."""

import pytest

from store import database
from store.database import EVERYBODY, transaction
from tests.support import postgresql as servers
from tests.support.service import Service
from tests.support.tables import alter, everything

if not servers.IS_WANTED:
    pytest.skip("it is about PostgreSQL", allow_module_level=True)


@pytest.fixture
def used(tmp_path, moved_clock):
    """A service that was used, and leaves its connections at its test's end."""
    service = Service(tmp_path / "used")
    service.account()
    assert service.caller().send().status_code == 200
    return service


def pool():
    from store import postgresql

    return postgresql._pool


def without_secret(rows):
    """The rows without the secret, which is another one in each new database."""
    return {**rows, "server_key": [name for name, _ in rows["server_key"]]}


def test_the_connections_are_the_same_and_the_database_is_like_a_new_one(used, tmp_path):
    left = pool()
    used.leave_database()
    Service(tmp_path / "taken")
    assert pool() is left
    taken = without_secret(everything())
    Service(tmp_path / "new")  # the one before is in use
    assert pool() is not left
    assert taken == without_secret(everything()) and any(taken.values())


def test_its_numbers_begin_anew(used, tmp_path):
    used.leave_database()
    taken = Service(tmp_path / "taken")
    taken.account()
    taken.caller()
    assert servers.query("SELECT seq FROM account UNION ALL SELECT seq FROM api_key") == [(1,), (1,)]


def test_a_directory_that_was_used_before_keeps_its_rows(used):
    before = everything()
    used.leave_database()
    Service(used.data_dir)
    assert everything() == before


def test_a_write_that_failed_is_forgotten(used, tmp_path):
    with pytest.raises(database.WriteFailed), transaction(EVERYBODY):
        raise database.WriteFailed("no")
    assert database.writes_fail()
    used.leave_database()
    Service(tmp_path / "taken", SECRET_KEY="x" * 32)  # so that opening it writes nothing
    assert not database.writes_fail()


def on_each(statement):
    """Run a statement on all connections of the pool."""
    for connection in pool()._pool:
        connection.say(statement)


CHANGES = {
    "a setting": lambda used: on_each("SET statement_timeout = '1s'"),
    "a table": lambda used: on_each("CREATE TABLE IF NOT EXISTS another (n BIGINT)"),
    "behind its back": lambda used: alter(used, "ALTER TABLE account ALTER COLUMN email SET STATISTICS 10"),
    "a transaction": lambda used: on_each("BEGIN"),
    "a thread's connection": lambda used: pool().getconn(),
    "lost": lambda used: servers.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pocketbell'"
        " AND datname = current_database() AND pid <> pg_backend_pid()"
    ),
    "closed": lambda used: database.close(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_nobody_takes_connections_with_which_more_was_done_than_reading_and_writing(used, tmp_path, change):
    left = pool()
    change(used)
    used.leave_database()
    try:
        Service(tmp_path / "new")
        assert pool() is not left
    finally:
        servers.query("DROP TABLE IF EXISTS another")
