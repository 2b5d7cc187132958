"""Lets one thread of the server run at a time: the one that has the baton, which it passes on before it waits.

Threads that share the interpreter by its lock alone switch in the middle of their work, after each system call, and
have a commit each. With the baton each finishes what it does, and what is ready together is committed together. A
thread may go on without the baton, beside the one that has it. Must not know what the threads do.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable

Waiting = tuple[int, threading.Lock]  # a thread's id, and what it waits for until it has the baton


class Baton:
    """The baton, the work that is ready for its holder, and the threads that wait for it.

    `wait` waits for work; each piece is a number. `start` starts a thread, which calls `take` again and
    again; it returns False if there are enough.
    """

    def __init__(self, wait: Callable[[], Iterable[int]], start: Callable[[], bool]) -> None:
        self.wait, self.start = wait, start
        self.lock = threading.Lock()
        self.ready = deque[int]()
        self.holder = 0  # a thread's id; 0: the next thread that calls `take` gets the baton
        self.behind = deque[Waiting]()  # those that let others go first, in their order
        self.resting = list[Waiting]()  # those without work: the last is taken first, whose memory is in the cache
        self.is_idle = False  # while its holder waits for work
        self.begun = self.begun_before = 0  # pieces of work; also at the last call of `take_away`

    def take(self) -> int:
        """Wait for the baton, and take the next piece of work with it."""
        own = threading.get_ident()
        while True:
            with self.lock:
                self.holder = self.holder or own
                if self.holder == own and self.ready:
                    self.begun += 1
                    return self.ready.popleft()
                if is_idle := self.holder == own and not self.behind:
                    self.is_idle = True
                else:  # `is_idle` stays: another thread may have the baton, and wait for work
                    turn = self._queue(self.resting)
                    if self.holder == own:
                        self._pass()
            if is_idle:
                found = self.wait()
                with self.lock:
                    self.ready.extend(found)
                    self.is_idle, self.begun = False, self.begun + 1
            else:
                turn.acquire()

    def let_others(self) -> None:
        """Let all that is ready by now go first; does nothing without the baton."""
        own = threading.get_ident()
        with self.lock:
            if self.holder != own or not (self.ready or self.behind):
                return
            turn = self._queue(self.behind)
            self._pass()
        turn.acquire()

    def pass_on(self) -> None:
        """Go on without the baton."""
        with self.lock:
            if self.holder == threading.get_ident():
                self._pass()

    def take_away(self) -> None:
        """Pass the baton on, if its holder has worked on the same piece since the last call."""
        with self.lock:
            if self.begun == self.begun_before and not self.is_idle:
                self._pass()
            self.begun_before = self.begun

    def _queue(self, queue: deque[Waiting] | list[Waiting]) -> threading.Lock:
        turn = threading.Lock()
        turn.acquire()
        queue.append((threading.get_ident(), turn))
        return turn

    def _pass(self) -> None:
        """Give the baton to a thread without work, if there is work or nobody else; or to one that let others go."""
        self.holder = 0
        if self.ready or not self.behind:
            if self.resting:
                return self._give(self.resting.pop())
            if self.start():
                return None
        if self.behind:
            return self._give(self.behind.popleft())
        return None

    def _give(self, waiting: Waiting) -> None:
        self.holder, turn = waiting
        turn.release()
