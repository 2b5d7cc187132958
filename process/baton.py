"""Lets one thread of the server run at a time: the one that has the baton, which it passes on before it waits.

Threads that share the interpreter by its lock alone switch in the middle of their work, after each system call, and
have a commit each. With the baton each finishes what it does, and what is ready together is committed together. A
thread may go on without the baton, beside the one that has it. Senders take turns with their requests, so that one
with many does not delay others. Must not know how a connection is served, nor what a request asks for.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue

from process.connections import Connection

MAX_BEFORE = 24  # requests that go before a thread that lets others go first: each may need a thread of its own
MAX_BESIDE = 8  # threads without the baton that query a server: more would wait for its connections, and for the GIL
MAX_LONG = 2  # requests that take long at the same time, because they compete with all others for the GIL
MAX_WAITING, MAX_WAITING_OF_CLIENT = 512, 256  # such requests that wait for their turn
MAX_BEYOND = 16  # of a sender that may wait beyond `MAX_WAITING`, so that others cannot keep it out
LOOKED_EVERY = 12  # requests at most between two looks for new ones


class RoundRobin:
    """Connections that wait without a thread: senders take turns, each with its clients, these with their oldest."""

    def __init__(self) -> None:
        self.senders = dict[str, dict[str, deque[Connection]]]()  # in both, the one whose turn is next is the first
        self.number = 0  # of connections

    def put(self, connection: Connection) -> None:
        """Let a connection wait behind the others of its client."""
        clients = self.senders.setdefault(connection.sender, {})
        clients.setdefault(connection.client, deque()).append(connection)
        self.number += 1

    def take(self) -> Connection:
        """The connection whose turn it is; the next turn is another sender's. There must be one."""
        sender, clients = next(iter(self.senders.items()))
        client, connections = next(iter(clients.items()))
        self.number -= 1
        del self.senders[sender], clients[client]
        if len(connections) > 1:
            clients[client] = connections  # behind the sender's other clients
        if clients:
            self.senders[sender] = clients  # behind the other senders
        return connections.popleft()


class Baton:
    """The baton, the work for its holder, and the threads that wait for it.

    Work is what `look` reports, which is done first, as are long requests that have their turn, and requests, whose
    senders take turns. `look` waits for something to report, unless there are requests; `wake` ends its waiting.
    `start` starts a thread, which calls `take` again and again; it returns False if there are enough.
    """

    def __init__(
        self, look: Callable[[bool], Iterable[int]], wake: Callable[[], object], start: Callable[[], bool]
    ) -> None:
        self.look, self.wake, self.start = look, wake, start
        self.lock = threading.Lock()
        self.reported = deque[int | Connection]()
        self.requests = RoundRobin()
        self.long = set[Connection]()  # whose requests take long, and have their turn
        self.waiting = RoundRobin()  # for such a turn
        self.left = 0  # how many requests to begin before the next look
        self.holder = 0  # a thread's id; 0: the next thread that calls `take` gets the baton
        self.turns = defaultdict[int, SimpleQueue[None]](SimpleQueue)  # of each thread: it waits there for the baton
        self.behind = deque[tuple[int, int]]()  # those that let others go first, until so many requests have begun
        self.resting = list[int]()  # those without work: the last is taken first, whose memory is in the cache
        self.beside = set[int]()  # threads that query a server without the baton, and have not waited for long
        self.is_looking = False  # while its holder looks for work, and keeps the baton
        self.requests_begun = 0  # since the start
        self.is_old = True  # whether the last piece of work was begun before the last `take_away`

    def take(self) -> int | Connection:
        """Wait for the baton, and take the next piece of work with it."""
        own = threading.get_ident()
        while True:
            with self.lock:
                self.beside.discard(own)
                self.holder = self.holder or own
                if self.holder == own and not self._is_due():
                    if (piece := self._next()) is not None:
                        return piece
                    self.is_looking, turn = True, None
                else:  # `is_looking` stays: another thread may have the baton, and look for work
                    self.resting.append(own)
                    turn = self.turns[own]
                    if self.holder == own:
                        self._pass()
            if turn:
                turn.get()
            else:
                found = self.look(not self.requests.number)
                with self.lock:
                    self.reported.extend(found)
                    self.left, self.is_looking, self.is_old = LOOKED_EVERY, False, False

    def put(self, connection: Connection) -> None:
        """Have a connection served at its client's turn; any thread may call this."""
        with self.lock:
            self.requests.put(connection)
            if self.is_looking:
                self.wake()

    @property
    def work(self) -> int:
        """How many pieces of work there are that no thread does yet."""
        return len(self.reported) + self.requests.number

    def let_others(self) -> None:
        """Let the requests that are ready by now go first, at most `MAX_BEFORE`; does nothing without the baton."""
        own = threading.get_ident()
        with self.lock:
            if self.holder != own or not (self.work or self.behind):
                return
            self.behind.append((own, self.requests_begun + min(self.requests.number, MAX_BEFORE)))
            turn = self.turns[own]
            self._pass()
        turn.get()

    def pass_on(self) -> None:
        """Go on without the baton, because this thread is about to wait, or computes for long."""
        own = threading.get_ident()
        with self.lock:
            self.beside.discard(own)
            if self.holder == own:
                self._pass()

    def go_beside(self) -> None:
        """Go on without the baton, to query a server, unless enough threads do."""
        own = threading.get_ident()
        with self.lock:
            if self.holder == own and len(self.beside) < MAX_BESIDE:
                self.beside.add(own)
                self._pass()

    def begin_long(self, connection: Connection) -> bool:
        """Whether a long request has its turn now; else the connection waits for that, and is put then."""
        with self.lock:
            if len(self.long) < MAX_LONG:  # so none waits
                self.long.add(connection)
                return True
            self.waiting.put(connection)
            return False

    def is_crowded(self, connection: Connection) -> bool:
        """Whether too many connections wait already for such a turn, of this client or in all."""
        with self.lock:
            clients = self.waiting.senders.get(connection.sender, {})
            is_full = self.waiting.number >= MAX_WAITING and sum(map(len, clients.values())) >= MAX_BEYOND
            return is_full or len(clients.get(connection.client, ())) >= MAX_WAITING_OF_CLIENT

    def end_long(self, connection: Connection) -> None:
        """End the connection's turn with a long request, if it has one: the next gets it."""
        if connection not in self.long:
            return
        with self.lock:
            self.long.remove(connection)
            if not self.waiting.number:
                return
            following = self.waiting.take()
            self.long.add(following)
            self.reported.append(following)  # not behind its client's other requests: the next one waits for its end
            if self.is_looking:
                self.wake()

    def take_away(self) -> None:
        """Pass the baton on, if its holder has worked on the same piece since the last call."""
        with self.lock:
            if self.is_old and not self.is_looking:
                self._pass()
            self.is_old = True

    def _next(self) -> int | Connection | None:
        """The next piece of work, or None if it is time to look for more."""
        if self.reported:
            piece = self.reported.popleft()
        elif self.requests.number and self.left:
            piece = self.requests.take()
            self.left -= 1
            self.requests_begun += 1
        else:
            return None
        self.is_old = False
        return piece

    def _is_due(self) -> bool:
        """Whether one that let others go first has its turn."""
        if self.reported or not self.behind:
            return False
        _, due = self.behind[0]
        return due <= self.requests_begun or not self.requests.number

    def _pass(self) -> None:
        """Give the baton to a thread without work, or to one that let others go if it is due or no other is left."""
        self.holder = 0
        if not self._is_due():
            if self.resting:
                return self._give(self.resting.pop())
            if self.start():
                return None
        if self.behind:
            thread, _ = self.behind.popleft()
            return self._give(thread)
        return None

    def _give(self, thread: int) -> None:
        self.holder = thread
        self.turns[thread].put(None)
