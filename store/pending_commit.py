"""A commit that nobody waits for yet: the server holds back the answer of the request that made it, not its thread.

Only a request's last transaction can be left so, and only by a thread that answers one. An engine that cannot do it
waits as ever. Must not know requests.
"""

import threading
from collections.abc import Callable

from store.engine import WriteFailed


class PendingCommit:
    """The commit of a transaction that has ended. `wait` returns its failure when it has ended."""

    def __init__(self, wait: Callable[[], WriteFailed | None], calls: list[Callable[[], object]]) -> None:
        self._wait, self.calls = wait, calls

    def failure(self) -> WriteFailed | None:
        """Wait for the end; why it failed, or None once it is on the disk and what was to follow was called."""
        failure = self._wait()
        if failure is None:
            calls, self.calls = self.calls, []
            for call in calls:
                call()
        return failure


class ThreadsCommit:
    """What one thread may leave, and has left."""

    def __init__(self) -> None:
        self.may_leave = False  # while it answers a request
        self.is_last = False  # whether nothing but the answer follows the open transaction
        self.left: PendingCommit | None = None

    def settle(self) -> None:
        """Wait for what was left after all; `WriteFailed` if it failed."""
        left, self.left = self.left, None
        failure = left.failure() if left else None
        if failure:
            raise WriteFailed(str(failure)) from failure


class _Threads(threading.local):
    def __init__(self) -> None:
        self.own = ThreadsCommit()


_threads = _Threads()


def of_thread() -> ThreadsCommit:
    """What this thread may leave, and has left."""
    return _threads.own


class Answering:
    """While the block lasts, this thread answers a request, and `taken` returns what it leaves."""

    def __enter__(self) -> None:
        _threads.own.may_leave = True

    def __exit__(self, *_: object) -> None:
        _threads.own.may_leave = False


def taken() -> PendingCommit | None:
    """The commit that this thread has left, if any; from now on it leaves none."""
    own = _threads.own
    left, own.left = own.left, None
    own.may_leave = own.is_last = False
    return left


def leave() -> None:
    """Call inside a transaction after which the request stores nothing and tells nobody but its sender.

    What the thread reads or writes all the same waits for the commit.
    """
    own = _threads.own
    own.is_last = own.may_leave
