"""The order in which requests are answered: clients take turns, so that one with many requests does not delay others.

Must not know what a request asks for.
"""

import threading
from collections import deque
from collections.abc import Callable

from process.connections import Connection

MAX_LONG = 2  # requests at the same time
MAX_WAITING, MAX_WAITING_OF_CLIENT = 512, 256


class RoundRobin:
    """Connections that wait without a thread: clients take turns, each with its oldest."""

    def __init__(self) -> None:
        self.clients = dict[str, deque[Connection]]()  # the one whose turn is next is the first
        self.number = 0  # of connections

    def put(self, connection: Connection) -> None:
        """Let a connection wait behind the others of its client."""
        self.clients.setdefault(connection.client, deque()).append(connection)
        self.number += 1

    def take(self) -> Connection:
        """The connection whose turn it is; the next turn is another client's. There must be one."""
        client, connections = next(iter(self.clients.items()))
        self.number -= 1
        del self.clients[client]
        if len(connections) > 1:
            self.clients[client] = connections  # behind the other clients
        return connections.popleft()

    def of(self, client: str) -> int:
        """How many connections of this client wait."""
        return len(self.clients.get(client, ()))


class LongTurns:
    """Limits how many long requests are answered at the same time, because they compete with all others for the GIL.

    At most `MAX_LONG` connections have a turn, which `end` ends. `put` gets those that waited when theirs has come.
    """

    def __init__(self, put: Callable[[Connection], object]) -> None:
        self.put = put
        self.running = set[Connection]()
        self.waiting = RoundRobin()
        self.lock = threading.Lock()

    def begin(self, connection: Connection) -> bool:
        """Take a turn, or keep it; False if the connection must wait."""
        with self.lock:
            if connection in self.running or len(self.running) < MAX_LONG:  # a turn is free only if none waits
                self.running.add(connection)
                return True
            self.waiting.put(connection)
        return False

    def is_crowded(self, connection: Connection) -> bool:
        """Whether too many connections wait already, of this client or in all."""
        with self.lock:
            if connection in self.running:
                return False
            return self.waiting.of(connection.client) >= MAX_WAITING_OF_CLIENT or self.waiting.number >= MAX_WAITING

    def end(self, connection: Connection) -> None:
        """End the connection's turn, if it has one: the next gets it."""
        if connection not in self.running:
            return
        with self.lock:
            self.running.remove(connection)
            if not self.waiting.number:
                return
            following = self.waiting.take()
            self.running.add(following)
        self.put(following)
