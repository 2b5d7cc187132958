"""Lets only a few threads do something at once: the others queue for a turn, up to a number and for a time.

There are several queues, each with a name. A free turn goes to them in rotation, so that a crowd in one queue does
not keep the others waiting. Must not know what the turns are for.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from wire.errors import Refused


class Turns:
    """At most `at_once` turns at a time.

    `queues` says by name how many threads may wait in each queue; of these at most `of_one` for the same `who`.
    `refuse` makes the exception that is raised when too many wait, or when no turn comes within `waits_s`.
    """

    def __init__(
        self, at_once: int, queues: Mapping[str, int], waits_s: float, refuse: Callable[[], Refused], of_one: int = 0
    ) -> None:
        self.free, self.lengths, self.waits_s, self.refuse = at_once, queues, waits_s, refuse
        self.of_one = of_one or self.most_waiting
        self.queues = {name: dict[threading.Event, str]() for name in queues}  # who each turn is for, in order
        self.lock = threading.Lock()

    @contextmanager
    def turn(self, queue: str, who: str = "") -> Iterator[None]:
        """Wait for a turn and keep it until the block ends, or be refused."""
        self._wait(queue, who)
        try:
            yield
        finally:
            self._pass_on()

    @property
    def most_waiting(self) -> int:
        """How many threads can wait at once, in all queues."""
        return sum(self.lengths.values())

    def _wait(self, name: str, who: str) -> None:
        has_turn = threading.Event()
        with self.lock:
            queue = self.queues[name]
            if self.free:  # so nobody is waiting
                self.free -= 1
                return
            if len(queue) >= self.lengths[name] or list(queue.values()).count(who) >= self.of_one:
                raise self.refuse()
            queue[has_turn] = who
        if has_turn.wait(self.waits_s):
            return
        with self.lock:
            if has_turn.is_set():  # the turn came just after the wait ended
                return
            del queue[has_turn]
        raise self.refuse()

    def _pass_on(self) -> None:
        with self.lock:
            for name, queue in self.queues.items():
                if queue:
                    has_turn = next(iter(queue))
                    del queue[has_turn]
                    has_turn.set()
                    self.queues[name] = self.queues.pop(name)  # the last queue to get the next turn
                    return
            self.free += 1
