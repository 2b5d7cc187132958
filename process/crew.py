"""Threads that serve connections, of which as few as possible are awake.

To hand work to another thread costs two switches of context and a fight for the interpreter's lock. So a thread that
is free takes what is ready, or waits itself for the next connection that has something to say; only one does so, and
the others rest. While it works nobody waits: if it does not come back within a millisecond or two, because it
computes or waits for the disk, `watch` wakes one for each piece of work that is ready.

Of the pieces that take long only a few are done at once, so that the others need not share the interpreter with more.
Must not know connections.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any

from process import clock

TICK_S, MAX_TICK_S = 0.001, 0.05  # between two looks at whether any thread has taken work
LATE_TIMES = 4
MAX_LONG = 2  # pieces that take long, at once
MAX_LONG_WAITING, MAX_LONG_WAITING_OF_ONE = 512, 256  # for one of these to end; the second: of one client


class Crew:
    """At most `number()` threads: `find` returns work that is ready, or waits for some; `work` does a piece of it."""

    def __init__(
        self, number: Callable[[], int], find: Callable[[bool], Iterable[Any]], work: Callable[[Any], None]
    ) -> None:
        self.number, self.find, self.work = number, find, work
        self.ready, self.later = deque[Any](), deque[Any]()
        self.long = dict[Any, int]()  # the pieces that are done now and take long, with the thread of each
        self.long_waiting = dict[str, deque[Any]]()  # those that wait, by client; the next client is the first
        self.admitting = threading.Lock()
        self.waits = threading.Lock()  # held by the thread that waits for work
        self.resting = list[threading.Lock]()  # each held until its thread is woken; the last to rest is the first
        self.threads, self.starting = list[threading.Thread](), threading.Lock()
        self.taken = self.seen = 0  # pieces of work, until now and until the last look
        self.tick_s = TICK_S
        self.is_watched = True  # else whoever takes work calls for it
        self.bell = SimpleQueue[None]()
        self.is_over = False

    # --- called by the main thread, and `wake_one` by any ---

    def watch(self, most_s: float) -> None:
        """Pause for a tick, or for at most `most_s` seconds while there is no work; then see that work is taken."""
        self._pause(self.tick_s if self.is_watched else most_s)
        is_held_up, self.seen = self.taken == self.seen, self.taken
        if self.ready or not self.waits.locked():
            if is_held_up:
                for _ in range(max(1, len(self.ready))):
                    self.wake_one()
        elif is_held_up:
            self.is_watched = False
            if self.taken != self.seen:  # just now, by a thread that saw it watched
                self.is_watched = True

    def _pause(self, pause_s: float) -> None:
        """Wait for the bell, at most so long.

        A thread that computes gives the interpreter up only every 5 ms. If that made this pause late, the next one is
        longer: else every second turn would be the main thread's, which has the least to do.
        """
        until_s = clock.monotonic_s() + pause_s
        with contextlib.suppress(Empty):
            self.bell.get(timeout=pause_s)
        late_s = clock.monotonic_s() - until_s
        self.tick_s = min(max(TICK_S, LATE_TIMES * late_s), MAX_TICK_S)

    def wake_one(self) -> None:
        """Let one thread more look for work."""
        if self._wake_resting() or self.is_over:
            return
        with self.starting, contextlib.suppress(RuntimeError):  # of a system that allows no more threads
            if len(self.threads) < self.number():
                thread = threading.Thread(target=self._run)
                thread.start()
                self.threads.append(thread)

    def bring(self, one: Any) -> None:
        """Add a piece of work that no thread has found."""
        self.ready.append(one)
        self.wake_one()

    def ring(self) -> None:
        """End the pause of `watch`; a signal's handler may call it."""
        self.bell.put(None)

    def end(self) -> None:
        """Let each thread end once it has no work; whoever waits for some must be made to return."""
        self.is_over = True
        while self._wake_resting():
            pass

    # --- the threads ---

    def put(self, one: Any) -> None:
        """Add a piece of work that comes after all others that are ready."""
        self.later.append(one)

    def may_begin(self, one: Any, client: str) -> bool:
        """Called by a thread about its piece, which takes long: whether to do it now; else it comes again."""
        with self.admitting:
            if one in self.long or (len(self.long) < MAX_LONG and not self.long_waiting):
                self.long[one] = threading.get_ident()
                return True
            self.long_waiting.setdefault(client, deque()).append(one)
        return False

    def is_crowded(self, client: str) -> bool:
        """Whether enough pieces that take long wait already, of this client or in all."""
        with self.admitting:
            waiting = self.long_waiting
            of_one = len(waiting.get(client, ()))
            return of_one >= MAX_LONG_WAITING_OF_ONE or sum(map(len, waiting.values())) >= MAX_LONG_WAITING

    def step_aside(self) -> None:
        """Called by a thread that is about to wait, or to take long: another one goes on at once."""
        if (self.long and self._end_long()) or not self.waits.locked():
            self.wake_one()

    def _run(self) -> None:
        rest = threading.Lock()
        rest.acquire()
        try:
            while (one := self._next(rest)) is not None:
                try:
                    self.work(one)
                finally:
                    if self.long:
                        self._end_long(one)
        finally:  # after a fault another thread may start in its place
            with self.starting:
                self.threads.remove(threading.current_thread())

    def _next(self, rest: threading.Lock) -> Any:
        while not self.is_over:
            if self.ready:
                with contextlib.suppress(IndexError):  # another thread was faster
                    return self._taken()
            elif not self._look() and not self._move_later():
                self.resting.append(rest)
                if self.is_over:  # since this thread looked
                    self.end()
                rest.acquire()
        return None

    def _end_long(self, done: Any = None) -> bool:
        """Let others begin that take long, if this thread's piece does, or the one that is done; whether any may."""
        with self.admitting:
            for one, thread in self.long.copy().items():
                if one is done or thread == threading.get_ident():
                    del self.long[one]
            admitted = list[Any]()
            while self.long_waiting and len(self.long) < MAX_LONG:
                client, waiting = next(iter(self.long_waiting.items()))
                admitted.append(waiting.popleft())
                self.long[admitted[-1]] = 0  # until a thread takes it
                del self.long_waiting[client]
                if waiting:
                    self.long_waiting[client] = waiting  # behind the others
        self.ready.extend(admitted)
        return bool(admitted)

    def _look(self) -> bool:
        """Find what is ready, unless another thread does so; whether this one did."""
        if not self.waits.acquire(blocking=False):
            return False
        try:
            self.ready.extend(self.find(not self.later))
        finally:
            self.waits.release()
        self._move_later()
        return True

    def _taken(self) -> Any:
        one = self.ready.popleft()
        self.taken += 1
        if not self.is_watched:
            self.is_watched = True
            self.ring()
        return one

    def _move_later(self) -> bool:
        with contextlib.suppress(IndexError):
            self.ready.append(self.later.popleft())
            return True
        return False

    def _wake_resting(self) -> bool:
        with contextlib.suppress(IndexError):
            self.resting.pop().release()
            return True
        return False
