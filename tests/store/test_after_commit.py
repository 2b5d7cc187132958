"""What is called once a transaction is on the disk."""

import threading

import pytest

from store import database, sqlite
from store.database import EVERYBODY, after_commit, transaction
from tests.support.tables import COUNT, break_the_commit, look, put


def test_a_call_runs_when_the_outermost_transaction_is_on_the_disk(opened):
    seen = []
    with transaction(EVERYBODY):
        with transaction(EVERYBODY):
            put(1)
            after_commit(lambda: seen.append(look(opened, COUNT)))
        assert seen == []
    assert seen == [[(1,)]]


def test_a_call_runs_in_its_own_thread_after_a_shared_commit(opened):
    seen, threads, first = [], [], threading.Event()

    def work(n):
        with transaction(EVERYBODY):
            put(n)
            after_commit(lambda: seen.append((n, threading.get_ident(), look(opened, COUNT))))
            first.set()
            while n == 0 and not sqlite._writer.waiting:  # the second thread commits for both
                pass

    for n in range(2):
        threads.append(threading.Thread(target=work, args=(n,)))
        threads[n].start()
        first.wait()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(n, threads[n].ident, [(2,)]) for n in range(2)]


def test_a_call_runs_at_once_outside_a_transaction(opened):
    seen = []
    after_commit(lambda: seen.append(1))
    assert seen == [1]


def test_a_call_may_write(opened):
    def more():
        with transaction(EVERYBODY):
            put(2)
            after_commit(lambda: seen.append(look(opened, COUNT)))

    seen = []
    with transaction(EVERYBODY):
        put(1)
        after_commit(more)
    assert seen == [[(2,)]]


def test_a_call_is_dropped_when_the_transaction_fails(opened):
    seen = []
    with pytest.raises(ZeroDivisionError), transaction(EVERYBODY):
        after_commit(lambda: seen.append(1))
        raise ZeroDivisionError
    with transaction(EVERYBODY):
        put(1)
    assert seen == []


def test_a_call_is_dropped_when_its_part_fails(opened):
    seen = []
    with transaction(EVERYBODY):
        after_commit(lambda: seen.append("kept"))
        with pytest.raises(ZeroDivisionError), transaction(EVERYBODY):
            after_commit(lambda: seen.append("undone"))
            raise ZeroDivisionError
    assert seen == ["kept"]


def test_a_call_is_dropped_when_the_commit_fails(opened):
    seen = []
    with pytest.raises(database.WriteFailed), transaction(EVERYBODY):
        break_the_commit()
        after_commit(lambda: seen.append(1))
    with transaction(EVERYBODY):
        put(1)
    assert seen == []
