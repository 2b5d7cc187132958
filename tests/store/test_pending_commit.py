"""Commits that a thread leaves to whoever answers its request: nothing is said to be stored before it is."""

import threading

import pytest

from store import database, pending_commit, sqlite
from store.database import EVERYBODY, after_commit, transaction
from tests.support.server import wait_until
from tests.support.tables import COUNT, in_threads, look, put

TO_NOBODY = "INSERT INTO session (token_hash, account_seq, created_at, expires_at) VALUES (x'00', 999, 0, 0)"


def leave(n):
    """Put a row, and return its commit, which is left."""
    with pending_commit.Answering():
        with transaction(EVERYBODY):
            put(n)
            pending_commit.leave()
        return pending_commit.taken()


def break_the_commit():
    """Write what the commit will find to be wrong; in the open transaction."""
    database.run("PRAGMA defer_foreign_keys = ON")
    database.run(TO_NOBODY)


@pytest.fixture
def commits(opened):
    """One for each COMMIT."""
    seen = []
    with transaction(EVERYBODY):
        sqlite._writing.connection().set_trace_callback(lambda sql: seen.extend([1] if sql == "COMMIT" else []))
    seen.clear()
    return seen


def test_what_is_left_is_stored_when_somebody_asks_whether_it_failed(opened):
    left = leave(1)
    assert look(opened, COUNT) == [(0,)]
    assert left.failure() is None and look(opened, COUNT) == [(1,)]


def test_all_that_was_left_meanwhile_is_one_commit_whoever_asks_first(opened, commits):
    left = []
    assert in_threads(5, lambda n: left.append(leave(n))) == []
    assert commits == []
    assert in_threads(5, lambda n: left[n].failure()) == []
    assert len(commits) == 1 and look(opened, COUNT) == [(5,)]


def test_who_asks_does_not_commit_what_was_left_after_it(opened, commits):
    first, second = leave(1), leave(2)
    assert first.failure() is None
    third = leave(3)
    assert second.failure() is None and len(commits) == 1
    assert third.failure() is None and len(commits) == 2


def test_who_asks_waits_for_one_that_is_writing_and_commits_for_it(opened, commits):
    left, writes, may_end = leave(1), threading.Event(), threading.Event()

    def write(n):
        with transaction(EVERYBODY):
            put(2)
            writes.set()
            assert may_end.wait(60)

    other = threading.Thread(target=in_threads, args=(1, write))
    other.start()
    assert writes.wait(60)
    asking = threading.Thread(target=in_threads, args=(1, lambda n: left.failure()))
    asking.start()
    assert commits == [] and look(opened, COUNT) == [(0,)]
    may_end.set()
    other.join(60)
    asking.join(60)
    assert len(commits) == 1 and look(opened, COUNT) == [(2,)]


def test_one_that_waits_for_its_own_commit_commits_what_others_left(opened, commits):
    left = leave(1)
    with transaction(EVERYBODY):
        put(2)
    assert len(commits) == 1 and look(opened, COUNT) == [(2,)]
    assert left.failure() is None and len(commits) == 1


def test_when_the_commit_fails_each_is_told_so_and_the_next_one_succeeds(opened):
    called, left = [], []
    for n in range(3):
        with pending_commit.Answering():
            with transaction(EVERYBODY):
                put(n)
                if n == 1:
                    break_the_commit()
                after_commit(lambda: called.append(1))
                pending_commit.leave()
            left.append(pending_commit.taken())
    assert [type(one.failure()) for one in left] == [database.WriteFailed] * 3
    assert called == [] and database.writes_fail()
    assert leave(9).failure() is None and not database.writes_fail()
    assert look(opened, "SELECT name FROM server_key") == [("9",)]


def test_what_is_to_follow_the_commit_is_called_by_who_asks_also_if_it_was_said_after_the_transaction(opened):
    seen = []
    with pending_commit.Answering():
        with transaction(EVERYBODY):
            put(1)
            after_commit(lambda: seen.append(("inside", look(opened, COUNT))))
            pending_commit.leave()
        after_commit(lambda: seen.append(("after", look(opened, COUNT))))
        left = pending_commit.taken()
    assert seen == []
    assert in_threads(1, lambda n: left.failure()) == []
    assert left.failure() is None
    assert seen == [("inside", [(1,)]), ("after", [(1,)])]


def test_a_thread_that_reads_or_writes_after_all_waits_for_what_it_left(opened):
    for n, work in enumerate((lambda: database.run(COUNT).fetchone()[0], lambda: transaction(EVERYBODY))):
        with pending_commit.Answering():
            with transaction(EVERYBODY):
                put(n)
                pending_commit.leave()
            seen = work()
            assert look(opened, COUNT) == [(n + 1,)] and pending_commit.taken() is None
        assert seen == 1 or n


def test_a_thread_that_reads_after_all_hears_that_what_it_left_has_failed(opened):
    with pending_commit.Answering():
        with transaction(EVERYBODY):
            break_the_commit()
            pending_commit.leave()
        with pytest.raises(database.WriteFailed):
            database.run(COUNT)
        assert database.run(COUNT).fetchone() == (0,)


def test_only_who_answers_a_request_leaves_a_commit_and_only_the_one_that_it_says(opened):
    with transaction(EVERYBODY):
        put(1)
        pending_commit.leave()
    assert look(opened, COUNT) == [(1,)]
    with pending_commit.Answering():
        with transaction(EVERYBODY):
            put(2)
        assert look(opened, COUNT) == [(2,)]
        with pytest.raises(ZeroDivisionError), transaction(EVERYBODY):
            pending_commit.leave()
            _ = 1 / 0
        with transaction(EVERYBODY):
            put(3)
        assert look(opened, COUNT) == [(3,)] and pending_commit.taken() is None
        with transaction(EVERYBODY):  # the request's answer is under way
            put(4)
            pending_commit.leave()
        assert look(opened, COUNT) == [(4,)]


def test_threads_that_leave_their_commits_lose_nothing(opened):
    def work(n):
        for place in range(20):
            left = leave(f"{n}-{place}")
            if (n + place) % 3:
                assert left.failure() is None
            else:
                with transaction(EVERYBODY):
                    put(f"{n}+{place}")

    assert in_threads(8, work) == []
    with transaction(EVERYBODY):
        pass
    wait_until(lambda: sqlite._writer.commit is None)
    numbers = sum(1 + (not (n + place) % 3) for n in range(8) for place in range(20))
    assert look(opened, COUNT) == [(numbers,)]
