"""A client's connection: a non-blocking socket with buffers, and limits on the time and size of a request.

A system call that may block releases the GIL, and to get it back costs more than most calls. So data is received
without waiting where that is possible, and an answer is sent in one call. Must not know HTTP.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gunicorn.http.unreader import Unreader

from process import clock

READ_S = 10.0  # to wait for a connection's first byte, and then for the whole request
WRITE_S = 10.0  # to wait for the client to take a part of an answer
READ_BYTES = 8_192
MAX_READ_BYTES = 65_536

_one_reader = threading.Lock()  # held by the thread that reads a body, except while it waits for its client


class Connection(socket.socket, Unreader):
    """A connection that blocks only in `read`, for a client that is slow to send.

    gunicorn's parser reads from it, with `read` and `unread` of its own class.
    """

    def __init__(self, accepted: socket.socket, peer: tuple[str, int] = ("-", 0)) -> None:
        socket.socket.__init__(self, accepted.family, accepted.type, accepted.proto, accepted.detach())
        Unreader.__init__(self)
        self.peer = peer
        self.sender = self.client = ""  # from where and who, once the request has waited or waits for its turn
        self.state, self.ends_s = "", 0.0  # what the connection waits for, and until when
        self.talk: Any = None  # what the worker does with it: a generator that stops wherever it has to wait
        self.environ = dict[str, Any]()  # what WSGI is told of the connection with each request
        self.unsent = bytearray()  # what was written
        self.began_s = 0.0  # when the request began
        self.until_s, self.left = 0.0, 0  # the request's deadline, and how many bytes of it may still come
        self.is_alone = False  # while its body is read `alone`
        self.setblocking(False)

    # --- reading ---

    def begin(self, now_s: float, most: int) -> None:
        """Begin to receive a request. After `READ_S` seconds or `most` bytes, `read` returns nothing more."""
        self.began_s, self.until_s, self.left = now_s, now_s + READ_S, most - len(self.rest)

    def go_on(self, most: int, seconds: float) -> None:
        """Allow the request `most` more bytes, and these seconds from now on."""
        self.left += most
        self.until_s = clock.monotonic_s() + seconds

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Read a body while no other thread copies one: several at once would keep all other threads waiting."""
        with _one_reader:
            self.is_alone = True
            try:
                yield
            finally:
                self.is_alone = False

    @property
    def rest(self) -> bytes:
        """The received bytes that were not read yet."""
        data: bytes = self.buf.getvalue()
        return data

    @property
    def is_over(self) -> bool:
        """Whether the request has used up its time or its bytes."""
        return self.left <= 0 or self.until_s <= clock.monotonic_s()

    def gather(self, is_enough: Callable[[bytes], bool]) -> bool:
        """Receive without waiting; returns whether that is enough, or nothing more will come."""
        while not is_enough(self.rest):
            if self.is_over:
                return True
            try:
                data = self.recv(READ_BYTES)
            except BlockingIOError:
                return False
            except OSError:  # the client has gone, which `read` reports
                return True
            if not data:
                return True
            self.buf.write(data)
            self.left -= len(data)
        return True

    def chunk(self, size_hint: int | None = None) -> bytes:
        """What the client sent, or nothing when the time or the bytes are used up; `Unreader` reads it with this."""
        if self.is_over:
            return b""
        if self.is_alone:
            _one_reader.release()
        try:
            self.settimeout(max(0.001, self.until_s - clock.monotonic_s()))
            data = self.recv(min(max(size_hint or 0, READ_BYTES), MAX_READ_BYTES))
        except TimeoutError:
            return b""
        finally:
            if self.is_alone:
                _one_reader.acquire()
            self.settimeout(0)
        self.left -= len(data)
        return data

    # --- writing ---

    def write(self, data: bytes) -> None:
        """Buffer data, to be sent together with what follows."""
        self.unsent += data

    def is_flushed(self) -> bool:
        """Send what the socket accepts at once; returns whether the buffer is empty. Raises `OSError`."""
        if self.unsent:
            with contextlib.suppress(BlockingIOError):
                del self.unsent[: self.send(self.unsent)]
        return not self.unsent
