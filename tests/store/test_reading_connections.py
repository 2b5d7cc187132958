"""SQLite's connections for reading: threads use them in turn, and a few are kept."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import attempts
from store import database, sqlite
from store.database import run, transaction
from tests.support.postgresql import sqlite_only
from tests.support.webhooks import at_once

pytestmark = sqlite_only


@pytest.fixture(autouse=True)
def opened(tmp_path):
    database.open_database(tmp_path / "another.db")
    database.give_back()
    yield
    database.close()


def in_threads(number, work):
    """What `work` returns in each of so many threads, none of which ends before all have begun."""
    together = threading.Barrier(number)

    def one():
        returned = work()
        together.wait()
        database.give_back()
        return returned

    return at_once(number, one)


def used():
    """This thread's connection, after it has read."""
    assert run("SELECT 1").fetchone() == (1,)
    return sqlite.connection()


def test_a_connection_that_was_given_back_is_the_next_threads():
    (first,) = in_threads(1, used)
    assert in_threads(1, used) == [first] and used() is first and used() is first
    (other,) = in_threads(1, used)
    assert other is not first
    database.give_back()
    database.give_back()
    assert used() is first


def test_a_pooled_connection_sees_later_writes():
    in_threads(2, lambda: used().execute("SELECT count(*) FROM server_note").fetchone())
    with transaction(database.EVERYBODY):
        run("INSERT INTO server_note (name, value) VALUES ('told', 'news')")
    told = in_threads(2, lambda: run("SELECT value FROM server_note WHERE name = 'told'").fetchone())
    assert told == [("news",), ("news",)]


def test_the_pool_keeps_only_a_few_connections():
    connections = in_threads(sqlite.MAX_FREE + 2, used)
    assert sorted(map(is_open, connections)) == [False] * 2 + [True] * sqlite.MAX_FREE


def test_a_thread_that_writes_or_pushes_has_none():
    first = used()
    with transaction(database.EVERYBODY):
        assert in_threads(1, used) == [first] and sqlite.connection() is not first
    assert used() is first
    attempts.push_each([])
    assert in_threads(1, used) == [first]


def test_with_the_database_all_that_were_given_back_are_closed():
    connections = [*in_threads(3, used), used()]
    database.close()
    assert not any(map(is_open, connections))


def test_a_connection_that_outlives_its_database_is_closed_when_it_is_given_back(tmp_path):
    """A thread may still answer a request when another database is opened."""
    with ThreadPoolExecutor(1) as thread:
        old = thread.submit(used).result()
        database.open_database(tmp_path / "newer.db")
        database.give_back()
        thread.submit(database.give_back).result()
    assert not is_open(old)
    assert run("PRAGMA database_list").fetchone()[2] == str(tmp_path / "newer.db")


def test_a_commit_is_told_to_a_thread_that_has_another_connection_now():
    versions = set()
    for value in range(3):
        with transaction(database.EVERYBODY):
            run("INSERT INTO server_note (name, value) VALUES (?, '')", (f"note {value}",))
        sqlite._free.pop().close()  # so that the next one is new, and begins to count
        versions.add(database.version())
    assert len(versions) == 3


def is_open(connection):
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_an_answered_request_leaves_no_connection_with_its_thread(service):
    service.account()
    caller = service.caller()
    used()
    assert caller.send().status_code == 200
    assert sqlite._threads.own.reading is None and sqlite._free
