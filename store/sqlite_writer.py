"""The turn to write to an SQLite file: threads take turns with one connection, and share its commits.

store/sqlite.py makes transactions of it. Must not know the tables, a setting or the time of day.
"""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress

from process import clock
from store import engine
from store.engine import DatabaseError, WriteFailed
from store.sqlite_connection import run_on

TURN_WAIT_S = 2.0  # then a thread checks whether another process blocks the thread whose turn it is
MAX_TURN_WAITS = 15  # half a minute
STUCK_S = 0.1
MAX_OPEN_S = 0.05  # of a transaction: then it is committed, though others wait to write into it
SLOW_S = 0.01  # after a commit that took longer, others go on during the next one


class Commit:
    """The end of an open transaction, for which each of its writers waits."""

    def __init__(self) -> None:
        self.began_s = clock.monotonic_s()
        self._failure: WriteFailed | None = None
        self._open = threading.Lock()  # held until the end
        self._open.acquire()

    def end(self, failure: WriteFailed | None) -> None:
        """The transaction is on the disk, or it failed."""
        self._failure = failure
        self._open.release()

    def failure(self) -> WriteFailed | None:
        """Why it failed, if it did; waits for the end."""
        if not self._open.acquire(blocking=False):
            engine.pass_on()
            if not self._open.acquire(timeout=TURN_WAIT_S):
                engine.make_way()
                self._open.acquire()
        self._open.release()
        return self._failure


class Writer:
    """Serialises writers; those that are ready together share one commit (group commit).

    A writer that finds no BEGIN open makes one, writes, passes the turn on, and lets other threads go first. What
    they write belongs to the same transaction, behind a savepoint of each. The first to come back when nobody waits
    for the turn commits for all. Each waits for that commit before it answers: nothing is acknowledged that is not on
    the disk. A failed commit fails all of them. The first needs no savepoint: what it undoes is all there is.

    After a failure the connection is opened anew: one that was opened while the file was read-only stays read-only.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.connect = connect
        self._connection: sqlite3.Connection | None = None
        self.turn = threading.Lock()
        self.counting = threading.Lock()
        self.waiting = 0  # threads that want the turn
        self.beginning: object = None  # a new object during each BEGIN: that waits for other processes
        self.commit: Commit | None = None  # of the open transaction
        self.has_changes = False  # whether that commit will write anything
        self.is_slow = False  # whether the last commit was

    def opened(self) -> sqlite3.Connection:
        """The connection that writes, opened if it is not open."""
        if self._connection is None:
            self._connection = self.connect()
        return self._connection

    def close(self) -> None:
        """Close the connection; only in this thread's turn."""
        one, self._connection = self._connection, None
        if one:
            with suppress(sqlite3.Error):
                one.rollback()  # closing alone does not unlock the file while somebody holds a cursor
            one.close()

    def take_turn(self) -> tuple[Commit, bool]:
        """Let this thread write; returns the commit to wait for, and whether the transaction begins with this thread.

        `WriteFailed` if nothing can be written.
        """
        if not (self.turn.acquire(blocking=False) or self._queue()):
            engine.writes_fail = True
            raise WriteFailed("database is locked")
        is_first = self.commit is None
        try:
            commit = self.commit or Commit()
            if is_first:
                self._begin()
            else:
                run_on(self.opened(), "SAVEPOINT part")
            self.commit = commit
        except BaseException as error:
            engine.writes_fail = True
            self.end(WriteFailed(str(error)))
            self.close()
            self.turn.release()
            raise
        return commit, is_first

    def _queue(self) -> bool:
        """Whether this thread got its turn. While it queues, other writers leave the commit to it."""
        has_turn = False
        with self.counting:
            self.waiting += 1
        try:
            has_turn = self._wait_for_turn()
        finally:
            with self.counting:
                self.waiting -= 1
            if not has_turn:
                self.commit_if_due()  # the commit may have been left to this thread
        return has_turn

    def _wait_for_turn(self) -> bool:
        """Whether this thread got its turn; it waits for our own threads, but not long for another process.

        A thread that is in the same BEGIN at both looks, STUCK_S apart, waits for another process.
        """
        engine.pass_on()
        for _ in range(MAX_TURN_WAITS):
            if self.turn.acquire(timeout=TURN_WAIT_S):
                return True
            engine.make_way()
            beginning = self.beginning
            if self.turn.acquire(timeout=STUCK_S):
                return True
            if beginning and self.beginning is beginning:
                return False
        return False

    def _begin(self) -> None:
        self.beginning, self.has_changes = object(), False
        try:
            run_on(self.opened(), "BEGIN IMMEDIATE")
        finally:
            self.beginning = None

    def end_turn(self) -> None:
        """Commit, once the threads that are ready or wait for their turn have written into the same transaction."""
        try:
            if self.commit and clock.monotonic_s() >= self.commit.began_s + MAX_OPEN_S:
                self.end()
        finally:
            self.turn.release()
        engine.let_others()
        self.commit_if_due()

    def commit_if_due(self) -> None:
        """Commit, unless that is left to a thread that waits for its turn."""
        while self.commit and not self.waiting and self.turn.acquire(blocking=False):
            try:
                self.end()
            finally:
                self.turn.release()

    def end(self, failure: WriteFailed | None = None) -> None:
        """Commit the open transaction, or roll it back after a failure; only in this thread's turn."""
        commit, self.commit = self.commit, None
        if commit is None:
            return
        try:
            if failure is None:
                self._commit()
        except BaseException as error:
            failure = WriteFailed(str(error) or "the commit was interrupted")
            if not isinstance(error, DatabaseError):
                raise
        finally:
            if failure:
                engine.writes_fail = True
                self.close()
            elif self.has_changes:  # an empty commit succeeds even on a full disk
                engine.writes_fail = False
            commit.end(failure)

    def _commit(self) -> None:
        if self.is_slow:
            engine.pass_on()
        began_s = clock.monotonic_s()
        run_on(self.opened(), "COMMIT")
        self.is_slow = clock.monotonic_s() - began_s > SLOW_S

    def give_up(self, error: BaseException, is_first: bool) -> None:
        """After an error, undo this thread's changes, or everybody's if nothing can be written; only in its turn.

        `WriteFailed` if that cannot be done.
        """
        if isinstance(error, WriteFailed):
            self.end(error)
            return
        try:
            run_on(self.opened(), "ROLLBACK" if is_first else "ROLLBACK TO part")
        except BaseException:  # SQLite has rolled everything back
            failure = WriteFailed("the transaction was rolled back")
            self.end(failure)
            raise failure from error
        if is_first and self.commit:
            self.commit.end(None)
            self.commit = None
