"""gunicorn's worker and log, so that no connection holds a thread for long and each request is one JSON line."""

import contextlib
import errno
import json
import logging
import socket
import threading
from datetime import timedelta
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.http.body import Body
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import TConn, ThreadWorker

from process import clock
from process.logs import JsonLines, WithoutSecrets
from wire.errors import Refused, rest_body

READ_S = 10.0  # for a connection's first byte, and then for all of a request
WRITE_S = 10.0  # for an answer to be taken
CHUNKED_RATE = 2  # bytes on the wire for one of a body: more is an attack with tiny chunks
HEAD_BYTES = 65_536
DRAINED_AT_ONCE = 65_536
MAX_DRAINING = 2  # threads: more of them would only wait for each other
LINGER_S = 2.0  # for what a client was still sending when its connection was closed
MOST_LINGERING = 100
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Patience:
    """A connection's socket for reading one request: after `READ_S` or `most` bytes there is no more."""

    def __init__(self, connection: socket.socket, most: int) -> None:
        self.connection, self.left, self.until_s = connection, most, clock.monotonic_s() + READ_S

    @property
    def is_over(self) -> bool:
        """Whether time or bytes are used up."""
        return self.left <= 0 or self.until_s <= clock.monotonic_s()

    def recv(self, size: int) -> bytes:
        """What has come, or nothing when time or bytes are used up."""
        if self.is_over:
            return b""
        self.connection.settimeout(self.until_s - clock.monotonic_s())
        try:
            data = self.connection.recv(size)
        except TimeoutError:
            return b""
        finally:
            self.connection.settimeout(WRITE_S)
        self.left -= len(data)
        return data


class ThreadedWorker(ThreadWorker):
    """gunicorn's threads: a new connection gets one when it has sent something, and keeps it for a bounded time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lingering = dict[socket.socket, float]()  # until when
        self.draining = threading.BoundedSemaphore(MAX_DRAINING)

    def accept(self, listener: socket.socket) -> None:
        """Take a connection; where there is no room, in the place of the one that has said nothing for longest."""
        while self.nr_conns >= self.worker_connections - 1 and self.pending_conns:
            self._drop_silent()
        try:
            super().accept(listener)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            if self.pending_conns:
                self._drop_silent()

    def enqueue_req(self, conn: TConn) -> None:
        """Hand the connection to a thread, a new one as soon as there is something to read."""
        conn.close = partial(self._close, conn.sock)
        if conn.initialized or conn.data_ready:
            super().enqueue_req(conn)
            return
        conn.timeout = clock.monotonic_s() + READ_S
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def is_parent_alive(self) -> bool:
        """Whether the master lives. Without it the worker ends; the next service may have the address at once."""
        is_alive = bool(super().is_parent_alive())
        if not is_alive:
            self.alive = False  # so that the answers to come close their connections
            for listener in self.sockets:
                listener.close()
        return is_alive

    def murder_pending(self) -> None:
        """Close what has waited for long enough."""
        super().murder_pending()
        now_s = clock.monotonic_s()
        for connection in [connection for connection, until_s in self.lingering.items() if until_s <= now_s]:
            self._end(connection)

    def _drop_silent(self) -> None:
        self.nr_conns -= 1
        self._end(self.pending_conns.popleft().sock)

    def _close(self, connection: socket.socket, graceful: bool = False) -> None:
        """Close; what a client is still sending is read meanwhile, so that it gets its answer.

        gunicorn would wait for that here, two seconds for each connection, while nobody else is served.
        """
        try:
            if not graceful or len(self.lingering) >= MOST_LINGERING:
                raise OSError
            connection.shutdown(socket.SHUT_WR)
            connection.setblocking(False)
            self.poller.register(connection, EVENT_READ, self._drain)
        except (OSError, ValueError, KeyError):
            connection.close()
            return
        self.lingering[connection] = clock.monotonic_s() + LINGER_S

    def _drain(self, connection: socket.socket) -> None:
        try:
            is_over = not connection.recv(HEAD_BYTES)
        except OSError as error:
            is_over = not isinstance(error, BlockingIOError)
        if is_over:
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        self.lingering.pop(connection, None)
        with contextlib.suppress(OSError, KeyError, ValueError):
            self.poller.unregister(connection)
        connection.close()

    def handle(self, conn: TConn) -> Any:
        """Serve one request."""
        conn.init()
        conn.parser.unreader.sock = Patience(conn.sock, self._most())
        return super().handle(conn)

    def _keepalive_after(self, conn: TConn, keepalive: bool) -> bool:
        """Whether the connection goes on: when what is left of a refused body was read, as long as patience lasts.

        A proxy that is still sending takes the end of the connection for a fault. gunicorn would read 1 KB at a time
        and copy everything it has buffered each time.
        """
        if not keepalive or not self._drained(conn.parser.mesg.body):
            return False
        return bool(conn.parser.finish_body(max_bytes=1)) and not conn.parser.unreader.sock.is_over

    def _drained(self, body: Body) -> bool:
        """Read the rest of a body; False for a long one while others are being read."""
        with contextlib.suppress(Exception):  # a broken chunk: the body itself knows that it failed
            if len(body.read(DRAINED_AT_ONCE)) < DRAINED_AT_ONCE:
                return True
            if not self.draining.acquire(blocking=False):
                return False
            try:
                while body.read(DRAINED_AT_ONCE):
                    pass
            finally:
                self.draining.release()
        return True

    def _most(self) -> int:
        return int(self.wsgi.config["MAX_CONTENT_LENGTH"]) * CHUNKED_RATE + HEAD_BYTES

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:
        """Refuse what is not HTTP in our shape and without quoting it: a key or a code may be in it."""
        if not isinstance(exc, ParseException):
            super().handle_error(req, client, addr, exc)
            return
        body = json.dumps(rest_body(Refused(400, "The request is not valid HTTP."))).encode()
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.log.request(client=addr[0], method="-", route="-", status=400, bytes=len(body), ms=0)
        with contextlib.suppress(OSError):
            client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


class JsonLogger(Logger):
    """gunicorn's own lines and one for each request, without what is secret."""

    def setup(self, cfg: Any) -> None:
        """Set the handlers up."""
        super().setup(cfg)
        logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # nobody reads them
        logging._srcfile = None  # nor where a line was logged
        for handler in self.error_log.handlers + self.access_log.handlers:
            handler.setFormatter(JsonLines())
        self.error_log.addFilter(WithoutSecrets())

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """The line of a request that was answered."""
        self.request(
            request_id=environ.get("pocketbell.request", "-"),
            client=environ.get("REMOTE_ADDR", "-"),
            method=environ.get("REQUEST_METHOD", "-"),
            route=environ.get("pocketbell.route", "-"),
            status=resp.status_code,
            bytes=resp.sent,
            ms=round(request_time / timedelta(milliseconds=1)),
        )

    def request(self, **fields: object) -> None:
        """One line about a request."""
        self.access_log.info("request", extra={"fields": fields})
