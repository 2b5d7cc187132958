"""Transactions: durable, immediate, committed in groups, never locked out for long; what is called after a commit."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import peewee
import pytest

from store import database, engine, server_notes, sqlite, sqlite_writer
from tests.support.server import wait_until
from tests.support.tables import ADD_ACCOUNT, COUNT, break_the_commit, in_threads, look, put


def pragma(name):
    return database.run(f"PRAGMA {name}").fetchone()[0]


SETTINGS = [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("busy_timeout", 1_500)]  # 2 is FULL


@pytest.mark.parametrize("name, value", SETTINGS)
def test_every_threads_connection_is_durable_and_holds_references(opened, name, value):
    seen = []
    assert in_threads(4, lambda n: seen.append(pragma(name))) == []
    assert [*seen, pragma(name)] == [value] * 5


def test_a_wrong_statement_is_no_failed_write(opened):
    """Requests answer it with 500, a failed write with 503."""
    with pytest.raises(peewee.ProgrammingError, match="no such table"):
        database.run("SELECT 1 FROM absent")
    with pytest.raises(peewee.ProgrammingError), database.transaction(database.EVERYBODY):
        database.run("DELETE FROM absent")
    assert not database.writes_fail()


def test_when_the_file_is_read_only_no_more_the_next_transaction_is_stored(opened, file, monkeypatch):
    database.close()
    with monkeypatch.context() as patch:
        patch.setattr(sqlite._writer, "connect", lambda: sqlite3.connect(f"file:{file}?mode=ro", uri=True))
        with pytest.raises(database.WriteFailed), database.transaction(database.EVERYBODY):
            database.run(ADD_ACCOUNT, ("lost@example.org",))
    with database.transaction(database.EVERYBODY):
        database.run(ADD_ACCOUNT, ("new@example.org",))
    assert look(file, "SELECT email FROM account") == [("new@example.org",)]


def test_a_transaction_is_immediate(opened):
    with database.transaction(database.EVERYBODY):
        other = sqlite3.connect(opened, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_a_transaction_within_a_transaction_ends_with_the_outer_one(opened):
    with pytest.raises(ZeroDivisionError), database.transaction(database.EVERYBODY):
        with database.transaction(database.EVERYBODY):
            database.run("INSERT INTO server_key VALUES ('a', 'b')")
        _ = 1 / 0
    assert look(opened, "SELECT * FROM server_key") == []


def test_nothing_is_written_outside_a_transaction(opened):
    with pytest.raises(database.WriteFailed):
        database.run("INSERT INTO server_key VALUES ('a', 'b')")


def in_one_group(number, work):
    """Run `work(n)` in `number` transactions behind a first one; return their faults and the number of commits."""
    commits = []

    def one(n):
        while n and not sqlite._writer.turn.locked():
            time.sleep(0)
        with database.transaction(database.EVERYBODY):
            while n == 0 and sqlite._writer.waiting < number - 1:
                time.sleep(0)
            work(n)

    with database.transaction(database.EVERYBODY):
        sqlite._writer.opened().set_trace_callback(lambda sql: commits.append(sql == "COMMIT"))
    commits.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_writer, "MAX_OPEN_S", 60.0)  # a busy machine may take long
        faults = in_threads(number, one)
    return faults, sum(commits)


def test_a_transaction_lets_others_that_are_ready_share_its_commit(opened, monkeypatch):
    """Each of these begins only when the one before it has written and lets others go first."""
    commits, all_have_written = [], threading.Barrier(4)
    gates = [threading.Event() for _ in range(5)]
    gates[0].set()
    later = iter(gates[1:])

    def let_others():
        next(later).set()
        all_have_written.wait(10)

    monkeypatch.setattr(engine, "let_others", let_others)
    sqlite._writer.opened().set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)

    def write(n):
        assert gates[n].wait(10)
        with database.transaction(database.EVERYBODY):
            put(n)

    assert in_threads(4, write) == []
    assert (look(opened, COUNT), commits) == ([(4,)], ["COMMIT"])


def test_others_go_on_during_a_commit_if_the_one_before_was_slow(opened, monkeypatch, moved_clock):
    made_way, slow = [], [True, False, False]

    def runs(connection, statement, values=()):
        if statement == "COMMIT":
            commits.append(len(made_way))
            moved_clock.advance(2 * sqlite_writer.SLOW_S if slow[len(commits) - 1] else 0)
        return run_on(connection, statement, values)

    commits, run_on = [], sqlite_writer.run_on
    monkeypatch.setattr(sqlite_writer, "run_on", runs)
    monkeypatch.setattr(engine, "pass_on", lambda: made_way.append(True))
    sqlite._writer.is_slow = False
    for n in range(3):
        with database.transaction(database.EVERYBODY):
            put(n)
    assert commits == [0, 1, 1]


def test_others_go_on_while_a_thread_waits_to_write_and_a_long_request_keeps_its_turn(opened, monkeypatch):
    made_way, commit = threading.Event(), sqlite_writer.Commit()
    monkeypatch.setattr(engine, "pass_on", made_way.set)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: (made_way.wait(10), commit.end(None)))
        assert commit.failure() is None and made_way.is_set()
        made_way.clear()
        with sqlite._writer.turn:
            writing = thread.submit(server_notes.try_writing)
            assert made_way.wait(10)
        writing.result()


def test_a_commit_is_left_to_those_that_wait_to_write_only_for_a_moment(opened, moved_clock):
    def write():
        with database.transaction(database.EVERYBODY):
            put(1)
            moved_clock.advance(sqlite_writer.MAX_OPEN_S)

    sqlite._writer.waiting = 1  # as if another thread waited, and after it the next
    try:
        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(10)
        assert look(opened, COUNT) == [(1,)]
    finally:
        sqlite._writer.waiting = 0
        sqlite._writer.commit_if_due()


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
            break_the_commit()

    faults, _ = in_one_group(4, work)
    assert [type(fault) for fault in faults] == [database.WriteFailed] * 4
    assert not database.answers()
    with database.transaction(database.EVERYBODY):
        put(9)
    assert look(opened, "SELECT name FROM server_key") == [("9",)] and database.answers()


def test_when_one_cannot_join_the_others_all_of_them_are_told(opened, monkeypatch):
    def fails(connection, statement, values=()):
        if statement.startswith("SAVEPOINT"):
            raise MemoryError
        return run_on(connection, statement, values)

    run_on = sqlite_writer.run_on
    monkeypatch.setattr(sqlite_writer, "run_on", fails)
    faults, _ = in_one_group(2, put)
    assert {type(fault) for fault in faults} == {database.WriteFailed, MemoryError}
    with database.transaction(database.EVERYBODY):
        put(2)
    assert look(opened, "SELECT name FROM server_key") == [("2",)]


def test_a_refusal_from_uncommitted_rows_fails_with_their_commit(opened):
    def work(n):
        if n == 0:
            put(n)
            break_the_commit()
        elif database.run("SELECT name FROM server_key").fetchone():
            raise ZeroDivisionError

    faults, _ = in_one_group(3, work)
    assert [type(fault) for fault in faults] == [database.WriteFailed] * 3


def test_a_write_whose_rollback_failed_is_not_stored(opened, monkeypatch):
    run = sqlite_writer.run_on

    def no_memory(connection, statement):
        if statement == "ROLLBACK":
            raise MemoryError
        return run(connection, statement)

    monkeypatch.setattr(sqlite_writer, "run_on", no_memory)
    with pytest.raises(database.WriteFailed), database.transaction(database.EVERYBODY):
        put(1)
        raise ZeroDivisionError
    monkeypatch.undo()
    with database.transaction(database.EVERYBODY):
        put(2)
    assert look(opened, "SELECT name FROM server_key") == [("2",)]


def test_a_cursor_that_somebody_holds_does_not_keep_the_lock_after_a_failure(opened):
    with database.transaction(database.EVERYBODY):
        for name in range(3):
            put(name)
    with pytest.raises(database.WriteFailed), database.transaction(database.EVERYBODY):
        rows = database.run("SELECT name FROM server_key")
        rows.fetchone()
        put(9)
        raise database.WriteFailed
    other = sqlite3.connect(opened, timeout=0)
    other.execute("BEGIN IMMEDIATE")
    other.close()
    del rows


@pytest.mark.parametrize("where", ["Commit", "turn"])
def test_a_fault_at_the_beginning_leaves_the_next_one_its_turn(opened, monkeypatch, where):
    class Fails:
        def __init__(self):
            raise MemoryError

        @staticmethod
        def acquire(blocking=True, timeout=-1):
            raise MemoryError

    place = sqlite_writer if where == "Commit" else sqlite._writer
    monkeypatch.setattr(place, where, Fails)
    with pytest.raises(MemoryError), database.transaction(database.EVERYBODY):
        put(1)
    monkeypatch.undo()
    with database.transaction(database.EVERYBODY):
        put(2)
    assert (sqlite._writer.waiting, look(opened, "SELECT name FROM server_key")) == (0, [("2",)])


@pytest.fixture
def impatient(monkeypatch):
    """Let threads ask soon why they have no turn."""
    monkeypatch.setattr(sqlite_writer, "TURN_WAIT_S", 0.01)
    monkeypatch.setattr(sqlite_writer, "STUCK_S", 0.01)


def test_a_thread_waits_for_another_of_this_process_however_long_that_takes(opened, impatient, monkeypatch):
    """A file counts as locked only while another process holds it."""
    holds, waits = threading.Event(), []
    monkeypatch.setattr(engine, "make_way", lambda: waits.append(1))

    def work(n):
        assert n == 0 or holds.wait(10)
        with database.transaction(database.EVERYBODY):
            holds.set()
            wait_until(lambda: len(waits) > 3)
            put(n)

    assert in_threads(2, work) == []
    assert look(opened, "SELECT name FROM server_key ORDER BY name") == [("0",), ("1",)]


def test_no_thread_waits_for_ever_for_its_turn(opened, impatient, monkeypatch):
    monkeypatch.setattr(sqlite_writer, "MAX_TURN_WAITS", 2)
    monkeypatch.setattr(engine, "make_way", iter([None] * 2).__next__)  # it waits no third time
    with sqlite._writer.turn, pytest.raises(database.WriteFailed):
        server_notes.try_writing()
    server_notes.try_writing()


def test_threads_queued_behind_a_blocked_writer_are_refused_too(file, impatient, monkeypatch):
    monkeypatch.setattr("store.sqlite_connection.BUSY_TIMEOUT_MS", 300)
    monkeypatch.setattr(sqlite_writer, "MAX_TURN_WAITS", 10_000)
    database.open_database(file)

    def work(n):
        with database.transaction(database.EVERYBODY):
            put(n)

    with sqlite3.connect(file) as other:
        other.execute("BEGIN IMMEDIATE")
        faults = in_threads(4, work)
    other.close()
    assert [type(fault) for fault in faults] == [database.WriteFailed] * 4


def test_a_commit_that_writes_nothing_does_not_say_that_writes_succeed_again(opened):
    with pytest.raises(database.WriteFailed), database.transaction(database.EVERYBODY):
        raise database.WriteFailed("disk full")
    with database.transaction(database.EVERYBODY):
        database.run("DELETE FROM account WHERE 0")
    with pytest.raises(ValueError), database.transaction(database.EVERYBODY):
        put(1)
        raise ValueError
    assert database.writes_fail() and not database.answers()
    server_notes.try_writing()
    assert not database.writes_fail() and database.answers()


def test_a_waiting_writer_that_is_interrupted_leaves_no_commit_open(opened, monkeypatch):
    writer, commit_if_due = sqlite._writer, sqlite._writer.commit_if_due
    begun, left = threading.Event(), threading.Event()

    def wait_in_vain():
        assert left.wait(10)
        raise KeyboardInterrupt

    def leave_it_to_others():
        commit_if_due()
        left.set()

    def write():
        with database.transaction(database.EVERYBODY):
            begun.set()
            wait_until(lambda: writer.waiting)
            put(1)

    monkeypatch.setattr(writer, "_wait_for_turn", wait_in_vain)
    monkeypatch.setattr(writer, "commit_if_due", leave_it_to_others)
    first = threading.Thread(target=write, daemon=True)
    first.start()
    assert begun.wait(10)
    with pytest.raises(KeyboardInterrupt), database.transaction(database.EVERYBODY):
        put(2)
    first.join(10)
    assert not first.is_alive() and look(opened, "SELECT name FROM server_key") == [("1",)]


def test_a_part_of_a_transaction_names_no_account_that_it_does_not_name(opened):
    for named, part in ((1,), (1,)), ((database.EVERYBODY, 1, 2), (2, database.EVERYBODY)), ((1,), ()):
        with database.transaction(*named), database.transaction(*part):
            pass
    for named, part in ((1,), (2,)), ((1,), (database.EVERYBODY,)), ((database.EVERYBODY,), (1,)):
        with pytest.raises(RuntimeError), database.transaction(*named), database.transaction(*part):
            pass
    with database.transaction(3):  # nothing is left of the one before
        pass


# --- what is called after a commit ----------------------------------------------------------------------------


def test_a_call_runs_when_the_outermost_transaction_is_on_the_disk_and_may_write(opened):
    seen = []

    def more():
        with database.transaction(database.EVERYBODY):
            put(2)
            database.after_commit(lambda: seen.append(look(opened, COUNT)))
        seen.append("written")

    with database.transaction(database.EVERYBODY):
        with database.transaction(database.EVERYBODY):
            put(1)
            database.after_commit(lambda: seen.append(look(opened, COUNT)))
            database.after_commit(more)
        assert seen == []
    assert seen == [[(1,)], [(2,)], "written"]
    database.after_commit(lambda: seen.append("at once"))
    assert seen[3:] == ["at once"]


def test_a_call_runs_in_its_own_thread_after_a_shared_commit(opened):
    seen = []

    def work(n):
        own = threading.get_ident()
        put(n)
        database.after_commit(lambda: seen.append((threading.get_ident() == own, look(opened, COUNT))))

    assert in_one_group(2, work) == ([], 1)
    assert seen == [(True, [(2,)])] * 2


@pytest.mark.parametrize("fails", [lambda: 1 / 0, break_the_commit], ids=["transaction", "commit"])
def test_a_call_is_dropped_when_the_transaction_its_part_or_the_commit_fails(opened, fails):
    seen = []
    with pytest.raises((ZeroDivisionError, database.WriteFailed)), database.transaction(database.EVERYBODY):
        database.after_commit(lambda: seen.append("undone"))
        fails()
    with database.transaction(database.EVERYBODY):
        database.after_commit(lambda: seen.append("kept"))
        with pytest.raises(ZeroDivisionError), database.transaction(database.EVERYBODY):
            database.after_commit(lambda: seen.append("undone"))
            raise ZeroDivisionError
    assert seen == ["kept"]
