"""A client's connection as gunicorn's worker uses it, and the threads that serve connections.

Each system call that may block lets another thread take over, which costs more than most of them: so a connection is
asked without waiting first, and an answer is written at once. Must not know HTTP.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from process import clock

READ_S = 10.0  # to wait for a connection's first byte, and then for the whole request
WRITE_S = 10.0  # to wait for the client to take an answer
KEPT_BYTES = 65_536  # of an answer that are written at once


class Connection(socket.socket):
    """A connection that never blocks, except to wait for a client that is slow to take its answer.

    What is written is kept until `flush`: gunicorn writes an answer's head and body one after the other.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self.kept = b""
        super().setblocking(False)

    def setblocking(self, flag: bool) -> None:
        """Stay as it is: gunicorn switches it twice for each request."""

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Write, later."""
        self.kept += data
        if len(self.kept) > KEPT_BYTES:
            self.flush()

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        """Write a file."""
        self.flush()
        with self._patient():
            return super().sendfile(file, offset, count)

    def flush(self) -> None:
        """Write what is kept; raises `OSError`, also when the client does not take it in time."""
        data, self.kept = self.kept, b""
        try:
            sent = self.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            with self._patient():
                super().sendall(memoryview(data)[sent:])

    @contextlib.contextmanager
    def _patient(self) -> Any:
        self.settimeout(WRITE_S)
        try:
            yield
        finally:
            self.settimeout(0)


class Patience:
    """A connection for reading one request: after `READ_S` seconds or `max_bytes` it reads as ended."""

    def __init__(self, connection: Connection, max_bytes: int) -> None:
        self.connection, self.left, self.until_s = connection, max_bytes, clock.monotonic_s() + READ_S

    @property
    def is_over(self) -> bool:
        """Whether the time or the bytes are used up."""
        return self.left <= 0 or self.until_s <= clock.monotonic_s()

    def recv(self, size: int) -> bytes:
        """What the client sent, or nothing when the time or the bytes are used up."""
        if self.is_over:
            return b""
        try:
            data = self.connection.recv(size)
        except BlockingIOError:
            data = self._waited_for(size)
        self.left -= len(data)
        return data

    def _waited_for(self, size: int) -> bytes:
        self.connection.settimeout(max(0.001, self.until_s - clock.monotonic_s()))
        try:
            return self.connection.recv(size)
        except TimeoutError:
            return b""
        finally:
            self.connection.settimeout(0)


class Threads:
    """Threads, started when there is work and none is idle; `concurrent.futures` costs three times as much."""

    def __init__(self, number: int, work: Callable[[Any], None]) -> None:
        self.number, self.work = number, work
        self.waiting, self.idle = SimpleQueue[Any](), 0  # work, and how many threads wait for more than there is
        self.counting = threading.Lock()
        self.threads = list[threading.Thread]()

    def submit(self, one: Any) -> None:
        """Let a thread work on this; called by one thread alone."""
        with self.counting:
            self.waiting.put(one)
            is_taken = self.idle > 0
            self.idle -= is_taken
        if not is_taken and len(self.threads) < self.number:
            self.threads.append(threading.Thread(target=self._run))
            self.threads[-1].start()

    def shutdown(self, wait: bool = False) -> None:
        """Let each thread end once it has no work; the process waits for them."""
        for _ in self.threads:
            self.waiting.put(None)

    def _run(self) -> None:
        while (one := self._next()) is not None:
            self.work(one)

    def _next(self) -> Any:
        with (
            self.counting
        ):  # else a thread that has just found work may be counted as idle, and more work wait for it
            try:
                return self.waiting.get_nowait()
            except Empty:
                self.idle += 1
        return self.waiting.get()
