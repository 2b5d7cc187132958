"""The ntfy app on a phone: it listens to a stream, and comes back with the id of the last message that it has."""

import socket
import struct
import threading
import time
from collections.abc import Callable

from tests.support.ntfy_app import Listener, add_topic
from tests.support.server import Server

GIVES_UP_S = 15  # without a line for so long, it connects again
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing throws away what was not read


class Phone(threading.Thread):
    """Listens until the end of the measurement, at the service that `server` says, however often that ends."""

    def __init__(self, server: Callable[[], Server], key: str) -> None:
        super().__init__(daemon=True)
        self.server, self.is_over, self.connections = server, False, 0
        self.came: dict[str, float] = {}  # by text: when it came first
        self.shown: list[str] = []  # the texts of all messages but those with an id that the app has
        self.listener = Listener(server(), add_topic(server(), key)["topic"])
        self.start()

    def run(self) -> None:
        """Listen, and come back whenever the stream ends."""
        while not self.is_over:
            try:
                self.listener.connection.settimeout(GIVES_UP_S)
                self._read()
            except (OSError, ValueError):
                pass  # one of the ends was killed
            self._come_back()

    def _read(self) -> None:
        known = len(self.listener.kept)
        while message := self.listener.message():
            self.came.setdefault(message["message"], time.monotonic())
            self.shown += [message["message"]] * (len(self.listener.kept) - known)
            known = len(self.listener.kept)

    def _come_back(self) -> None:
        while not self.is_over:
            try:
                self.listener.server = self.server()
                self.listener.connect(self.listener.last_id or "all")
                if self.listener.status == 200:
                    self.connections += 1
                    return
            except (OSError, ValueError, IndexError):
                pass
            time.sleep(0.05)

    def die(self) -> None:
        """Lose the connection as a killed app does: what it had not read is gone."""
        self.listener.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.listener.connection.shutdown(socket.SHUT_RDWR)
