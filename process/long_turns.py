"""Limits how many long requests are answered at the same time, because they compete with all others for the GIL.

The others wait without a thread. Clients take turns, so that one with many requests does not delay the rest.
"""

import threading
from collections import deque

from process.connections import Connection

MAX_LONG = 2
MAX_WAITING, MAX_WAITING_OF_CLIENT = 512, 256


class LongTurns:
    """The connections with long requests: at most `MAX_LONG` have a turn, which `end` ends."""

    def __init__(self) -> None:
        self.running = set[Connection]()
        self.waiting = dict[str, deque[Connection]]()  # by client; the next client is the first
        self.lock = threading.Lock()

    def begin(self, connection: Connection) -> bool:
        """Take a turn, or keep it; False if the connection must wait, until a later `end` returns it."""
        with self.lock:
            if connection in self.running or (len(self.running) < MAX_LONG and not self.waiting):
                self.running.add(connection)
                return True
            self.waiting.setdefault(connection.client, deque()).append(connection)
        return False

    def is_crowded(self, connection: Connection) -> bool:
        """Whether too many connections wait already, of this client or in all."""
        with self.lock:
            if connection in self.running:
                return False
            of_client = len(self.waiting.get(connection.client, ()))
            return of_client >= MAX_WAITING_OF_CLIENT or sum(map(len, self.waiting.values())) >= MAX_WAITING

    def end(self, connection: Connection) -> list[Connection]:
        """End the connection's turn, if it has one; returns those whose turn has come."""
        if not self.running:
            return []
        with self.lock:
            self.running.discard(connection)
            admitted = list[Connection]()
            while self.waiting and len(self.running) < MAX_LONG:
                client, connections = next(iter(self.waiting.items()))
                admitted.append(connections.popleft())
                self.running.add(admitted[-1])
                del self.waiting[client]
                if connections:
                    self.waiting[client] = connections  # behind the other clients
        return admitted
