"""HTTP as the worker speaks it, with gunicorn's strict parser and its `Response`.

Must not know routes, threads or who waits for whom.
"""

import math
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from gunicorn.http.body import LengthReader
from gunicorn.http.message import Request
from gunicorn.http.wsgi import Response, create

from process.connections import MAX_KEPT_BYTES, Connection

SHORT_BYTES = 16_384  # a shorter head or body is received without a thread, and kept in memory meanwhile


class Incoming(Request):
    """A request that gunicorn's parser reads; a short body is received before the application is asked."""

    body: Any
    is_whole = False  # whether nothing of the body is still to be received
    next_chunk = 0  # where the size of one of its chunks begins, in what has come of the body

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


def client_of(request: Incoming) -> str:
    """Who asks: the credential in the request's head, or the address, which may be one."""
    credentials = (value for name, value in request.headers if name in ("AUTHORIZATION", "COOKIE"))
    return str(next(credentials, request.path))


def has_head(data: bytes) -> bool:
    """Whether a request's head is whole, or the parser can say what is wrong with it, or it is long."""
    return b"\r\n\r\n" in data or len(data) >= SHORT_BYTES or data.count(b"\n") > data.count(b"\r\n")


class Answer(Response):
    """An answer, whose head and body the connection keeps until the client takes them."""

    status_code = 0  # until it has begun

    def __init__(self, request: Incoming, connection: Connection, cfg: Any) -> None:
        super().__init__(request, connection, cfg)
        self.connection, self.began_s = connection, 0.0
        self.environ: dict[str, Any] = {}
        self.body: Iterable[bytes] = ()
        self.parts: Iterator[bytes] | None = None  # of the body, once one was asked for
        self.is_done = False  # the body is written, or given up

    def should_close(self) -> bool:
        """Whether the connection serves no other request: also if its time is over."""
        return self.connection.is_over or bool(super().should_close())

    @property
    def is_whole(self) -> bool:
        """Whether all that was announced was written."""
        return self._omits_body or self.response_length in (None, self.sent)

    def write_parts(self) -> bool:
        """Write as much of the body as may be kept, one part if its length is unknown; whether that was the last."""
        if self.parts is None:
            self.parts = iter(self.body)
        for part in self.parts:
            self.write(part)
            is_much = len(self.connection.kept) > MAX_KEPT_BYTES and not self.is_whole
            if self.response_length is None or is_much:
                return False
        self.close()
        return True

    def release(self) -> None:
        """Free what the body holds."""
        body, self.body, self.parts, self.is_done = self.body, (), None, True
        if hasattr(body, "close"):
            body.close()


def answer_to(request: Incoming, connection: Connection, cfg: Any) -> Answer:
    """A new answer, with the environment of this request for the application."""
    answer: Answer
    answer, answer.environ = create(request, connection, connection.peer, connection.server, cfg, Answer)
    answer.environ["wsgi.multithread"] = True
    return answer
