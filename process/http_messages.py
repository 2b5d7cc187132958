"""HTTP as the worker speaks it: gunicorn's strict parser reads a request, and `Answer` is what WSGI writes.

Must not know routes, threads or who waits for whom.
"""

import json
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import quote

from gunicorn import SERVER, util
from gunicorn.http.body import LengthReader
from gunicorn.http.message import Request
from gunicorn.http.wsgi import base_environ

from process import clock
from process.connections import Connection
from wire.errors import Refused, rest_body

MAX_HEAD = 16_384  # bytes
SHORT_BYTES = 65_536  # of a body that is received without a thread, and kept in memory
MAX_JOINED_BYTES = 65_536  # the parts of an answer are joined until they have more
CREDENTIALS = ("AUTHORIZATION", "X-GOTIFY-KEY", "COOKIE")
CHUNKED = "Transfer-Encoding: chunked\r\n"
ASCII = bytes(range(128))


class Incoming(Request):
    """A request that gunicorn's parser reads, with its body at once if that has come or is short."""

    body: Any
    is_whole = False  # whether nothing of the body is still to be received
    next_chunk = 0  # where the size of one of its chunks begins, in what has come of the body

    def parse_request_line(self, line: bytes) -> None:
        """The line may have bytes that a client should have encoded: curl and wget send a text as it is."""
        super().parse_request_line(line if line.isascii() else quote(line, ASCII).encode())

    def set_body_reader(self) -> None:
        """Find the body, which is read already if it came with the head."""
        super().set_body_reader()
        reader = self.body.reader
        self.length = reader.length if isinstance(reader, LengthReader) else math.inf
        self._take_body()

    def has_come(self) -> bool:
        """Whether enough has come to ask the application; for the rest of a longer body, a thread waits.

        What a GET or HEAD announces is mostly neither sent nor read, unless it comes in chunks.
        """
        if self.length == math.inf:
            return bool(self.unreader.gather(self._has_last_chunk))
        if self.is_whole or self.length > SHORT_BYTES or self.method in ("GET", "HEAD"):
            return True
        if not self.unreader.gather(lambda rest: len(rest) >= self.length):
            return False
        self._take_body()
        return True

    def _has_last_chunk(self, data: bytes) -> bool:
        """Whether a body in chunks is whole, or the parser can say what is wrong with it, or it is long."""
        while len(data) < SHORT_BYTES:
            end = data.find(b"\r\n", self.next_chunk)
            if end < 0:
                return False
            try:
                size = int(data[self.next_chunk : end].partition(b";")[0], 16)
            except ValueError:
                return True
            if size <= 0:
                return size < 0 or data.find(b"\r\n\r\n", end) >= 0  # after its last chunk it may have fields
            self.next_chunk = end + size + 4  # with the ends of both lines
        return True

    def _take_body(self) -> None:
        if self.length <= len(self.unreader.rest):
            self.body, self.is_whole = BytesIO(self.unreader.read(self.length)), True
            self.unreader.until_s = math.inf  # the time to send it is not used up, however long the answer takes

    @property
    def is_read(self) -> bool:
        """Whether nothing of the body is still to be read."""
        reader = None if self.is_whole else self.body.reader
        return not (reader.length if isinstance(reader, LengthReader) else reader and reader.parser)

    @property
    def expects_continue(self) -> bool:
        """Whether its client may wait for status 100 before the body; the parser refuses other expectations."""
        return bool(self.version > (1, 0)) and any(name == "EXPECT" for name, _ in self.headers)

    def environ(self) -> dict[str, Any]:
        """What WSGI tells the application."""
        environ: dict[str, Any] = self.unreader.environ | {
            "wsgi.input": self.body,
            "wsgi.url_scheme": self.scheme,
            "gunicorn.socket": self.unreader,
            "REQUEST_METHOD": self.method,
            "RAW_URI": self.uri,
            "PATH_INFO": util.unquote_to_wsgi_str(self.path) if "%" in self.path else self.path,
            "QUERY_STRING": self.query,
            "SERVER_PROTOCOL": "HTTP/{}.{}".format(*self.version),
        }
        for name, value in self.headers:
            key = name.replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = f"HTTP_{key}"
            environ[key] = f"{environ[key]},{value}" if key in environ else value
        return environ


def client_of(request: Incoming) -> str:
    """Who asks, never empty: the credential in the head, or the part of the path that may be one (`/ping/KEY`)."""
    found = next((value for name, value in request.headers if name in CREDENTIALS and value), "")
    return str(found) or "/".join(request.path.split("/")[:3]) or "/"


def forwarded_for(request: Incoming) -> str:
    """For whom proxies sent the request, as they say; empty if none does."""
    return ",".join(value for name, value in request.headers if name == "X-FORWARDED-FOR")


def has_head(data: bytes) -> bool:
    """Whether a request's head is whole, or the parser can say what is wrong with it, or it is too long."""
    return b"\r\n\r\n" in data or is_too_long(data) or data.count(b"\n") > data.count(b"\r\n")


def is_too_long(data: bytes) -> bool:
    """Whether the head with which this begins is longer than `MAX_HEAD`: the parser would wait for its end."""
    return len(data) >= MAX_HEAD and b"\r\n\r\n" not in data[:MAX_HEAD]


def environ_of(cfg: Any, peer: tuple[Any, ...], server: tuple[Any, ...]) -> dict[str, Any]:
    """What WSGI tells of every request of a connection: who the peer is, and at which of our addresses."""
    return {
        **base_environ(cfg),
        "wsgi.multithread": True,
        "SCRIPT_NAME": "",
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": peer[0],
        "REMOTE_PORT": str(peer[1]),
    }


def refusal(status: int, sentence: str) -> tuple[bytes, bytes]:
    """Head and body of an answer to invalid HTTP, which is not quoted: it may contain a key or a code."""
    body = json.dumps(rest_body(Refused(status, sentence))).encode()
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode(), body


class Answer:
    """One answer as WSGI gives it: its head with `start`, and the parts of its body, written one after the other."""

    def __init__(self, connection: Connection, request: Incoming, may_keep_alive: bool) -> None:
        self.connection, self.request, self.may_keep_alive = connection, request, may_keep_alive
        self.environ: dict[str, Any] = {}
        self.body: Iterable[bytes] = ()
        self.status, self.sent = 0, 0  # the code, and how many bytes of the body
        self.head = b""  # still to be written
        self.is_begun = False
        self.is_keep_alive = False  # as its head says
        self.is_chunked = False
        self.left: float = 0  # how many bytes of the body may still be written; infinity if no length was announced

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        """WSGI's start_response; raises `ValueError` for a header that would end its line."""
        if self.is_begun:
            raise exc_info[1] if exc_info else AssertionError("the answer has begun")
        self.status, self.left, request = int(status[:3]), math.inf, self.request
        is_empty = self.status < 200 or self.status == 204
        fields, lines = "", 0
        for name, value in headers:
            if name.lower() == "content-length":
                if is_empty:  # RFC 9110, 8.6
                    continue
                self.left = int(value)
            fields += f"{name}: {value}\r\n"
            lines += 1
        if fields.count("\n") != lines or fields.count("\r") != lines:
            raise ValueError("a header of the answer has more than one line")
        if is_empty or self.status == 304 or request.method == "HEAD":
            self.left = 0
        self.is_chunked = self.left == math.inf and request.version > (1, 0)
        can_tell = self.is_chunked or self.left < math.inf
        # With a part of the body unread the connection will be closed, and a proxy must not use it again.
        self.is_keep_alive = self.may_keep_alive and can_tell and request.is_read and not self.connection.is_over
        major, minor = request.version
        self.head = (
            f"HTTP/{major}.{minor} {status}\r\nServer: {SERVER}\r\nDate: {_date(clock.now_ms() // 1_000)}\r\n"
            f"Connection: {'keep-alive' if self.is_keep_alive else 'close'}\r\n"
            f"{CHUNKED if self.is_chunked else ''}{fields}\r\n"
        ).encode("latin-1")
        return self.write

    @property
    def is_whole(self) -> bool:
        """Whether all that was announced was written."""
        return self.left in (0, math.inf)

    def write(self, data: bytes) -> None:
        """Write a part of the body, as far as there may be one."""
        if len(data) > self.left:
            data = data[: int(self.left)]
        if not data:
            return
        self.sent += len(data)
        self.left -= len(data)
        self._write(b"%X\r\n%b\r\n" % (len(data), data) if self.is_chunked else data)

    def write_parts(self) -> Iterator[None]:
        """Write the body; stops after each part if its length is unknown, else after some."""
        for part in self.body:
            self.write(part)
            if self.left == math.inf or (self.left and len(self.connection.unsent) > MAX_JOINED_BYTES):
                yield
        self._write(b"0\r\n\r\n" if self.is_chunked else b"")  # with the head, if there is no body

    def close(self) -> None:
        """Free what the body holds."""
        body, self.body = self.body, ()
        if hasattr(body, "close"):
            body.close()

    def _write(self, data: bytes) -> None:
        self.connection.write(self.head + data)
        self.is_begun, self.head = True, b""


@lru_cache(maxsize=1)
def _date(unix_s: int) -> str:
    return str(util.http_date(unix_s))
