"""gunicorn's worker and log, adapted: no connection holds a thread for long, and each request is one JSON line.

Must not know routes, handlers or the database.
"""

import contextlib
import errno
import json
import logging
import socket
import threading
from concurrent.futures import Future
from datetime import timedelta
from functools import lru_cache, partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.http.body import Body
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request, _ip_in_allow_list
from gunicorn.workers.gthread import TConn, ThreadWorker

from process import clock
from process.connections import READ_S, Connection, Patience, Threads
from process.logs import JsonLines, WithoutSecrets
from process.streams import HandOver
from wire.errors import Refused, rest_body

MAX_CHUNKED_RATE = 2  # bytes on the wire for each byte of a body: more is an attack with tiny chunks
HEAD_BYTES = 65_536
DRAINED_AT_ONCE = 65_536
MAX_DRAINING = 2  # threads that read the rest of a refused body: more would only wait for each other
LINGER_S = 2.0  # to go on reading what a client was still sending when it got its answer
MAX_LINGERING = 100
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class KnownPeers(Request):
    """A request that does not compare its peer with the trusted networks each time: most peers are one proxy."""

    def _peer_is_trusted_proxy(self) -> bool:
        return not isinstance(self.peer_addr, tuple) or _is_trusted(self.cfg, self.peer_addr[0])


@lru_cache(maxsize=1_000)
def _is_trusted(cfg: Any, address: str) -> bool:
    return bool(_ip_in_allow_list(address, cfg.forwarded_allow_ips, cfg.forwarded_allow_networks()))


class ThreadedWorker(ThreadWorker):
    """gunicorn's threaded worker, in which a connection gets a thread only once it has sent something.

    It keeps the thread for a bounded time, however slowly the client sends or reads.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lingering = dict[socket.socket, float]()  # until when each is read
        self.draining = threading.BoundedSemaphore(MAX_DRAINING)
        self.notified_s = 0.0

    def init_process(self) -> None:
        """Begin to serve. What gunicorn looks up of its settings for each request becomes plain attributes."""
        self.cfg.__dict__.update({name: setting.get() for name, setting in self.cfg.settings.items()})
        super().init_process()

    def get_thread_pool(self) -> Threads:
        """The threads that serve connections."""
        return Threads(self.cfg.threads, self._serve)

    def notify(self) -> None:
        """Tell the master that the worker lives, once a second and not at each turn of its loop."""
        now_s = clock.monotonic_s()
        if now_s >= self.notified_s + 1:
            self.notified_s = now_s
            super().notify()

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection; without room for it, drop the one that has been silent for longest."""
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
        """Hand the connection to a thread; a new connection only when there is something to read."""
        if conn.initialized or conn.data_ready:
            self.tpool.submit(conn)
            return
        conn.sock = Connection(conn.sock)
        conn.close = partial(self._close, conn.sock)
        conn.timeout = clock.monotonic_s() + READ_S
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def is_parent_alive(self) -> bool:
        """Whether the master lives. If not, the worker stops listening at once, so that a new service can start."""
        is_alive = bool(super().is_parent_alive())
        if not is_alive:
            self.alive = False  # the remaining answers close their connections
            self._stop_streams()
            for listener in self.sockets:
                listener.close()
        return is_alive

    def murder_pending(self) -> None:
        """Close the connections whose time is over."""
        super().murder_pending()
        now_s = clock.monotonic_s()
        for connection in [connection for connection, until_s in self.lingering.items() if until_s <= now_s]:
            self._end(connection)

    def _drop_silent(self) -> None:
        self.nr_conns -= 1
        self._end(self.pending_conns.popleft().sock)

    def _close(self, connection: socket.socket, graceful: bool = False) -> None:
        """Close the connection for writing, and read on for a while, or the client might never see its answer.

        TCP resets a connection that is closed with unread data. gunicorn would read on right here, up to two seconds
        for each connection, while nobody else is served; ours is read by the poller.
        """
        try:
            if not graceful or len(self.lingering) >= MAX_LINGERING:
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

    def _serve(self, conn: TConn) -> None:
        """Serve one request, and let the poller wait for the next; the main thread has the less usual ends."""
        done = Future[bool]()
        try:
            is_kept = bool(self.handle(conn))
            if is_kept and self.alive and not conn.parser.unreader.buf.tell():
                self._await_next(conn)
                return
            done.set_result(is_kept)
        except BaseException as error:
            done.set_exception(error)
        self.method_queue.defer(self.finish_request, conn, done)

    def _await_next(self, conn: TConn) -> None:
        conn.set_timeout()
        self.keepalived_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_client_socket_readable, conn))

    def _cap_keepalive(self, deadline: float) -> None:
        """As in gunicorn, but threads add connections meanwhile: a loop over the deque itself would fail."""
        for conn in list(self.keepalived_conns):
            conn.timeout = min(conn.timeout, deadline)

    def handle(self, conn: TConn) -> Any:
        """Serve one request; whether the connection may serve another one."""
        conn.init()
        conn.parser.mesg_class = KnownPeers
        conn.parser.unreader.sock = Patience(conn.sock, self._max_bytes())
        try:
            return super().handle(conn)
        finally:
            with contextlib.suppress(OSError):
                conn.sock.flush()

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Answer one request, or give its connection away: it counts no longer among the worker's own."""
        try:
            goes_on = bool(super().handle_request(req, conn))
            conn.sock.flush()
            return goes_on
        except HandOver as given:
            given.begin(conn.sock)
            conn.close = _leave_open
            return False

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop, and let the streams end at once: they would last for ever."""
        super().handle_exit(sig, frame)
        self._stop_streams()

    def _stop_streams(self) -> None:
        if self.wsgi:  # not before it is loaded
            self.wsgi.streams.stop()

    def _keepalive_after(self, conn: TConn, keepalive: bool) -> bool:
        """Whether the connection may serve another request: once the rest of a refused body has been read.

        A proxy that is still sending would take an early end of the connection for a fault of ours. gunicorn's own
        way reads 1 KB at a time and copies its whole buffer each time.
        """
        if not keepalive or not self._drained(conn.parser.mesg.body):
            return False
        return bool(conn.parser.finish_body(max_bytes=1)) and not conn.parser.unreader.sock.is_over

    def _drained(self, body: Body) -> bool:
        """Read the rest of a body; returns False for a long one if enough others are being read."""
        with contextlib.suppress(Exception):  # of a broken chunk, which `finish_body` will notice
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

    def _max_bytes(self) -> int:
        return int(self.wsgi.config["MAX_CONTENT_LENGTH"]) * MAX_CHUNKED_RATE + HEAD_BYTES

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:
        """Refuse what is not HTTP, in our error shape and without quoting it: it may contain a key or a code."""
        if not isinstance(exc, ParseException):
            super().handle_error(req, client, addr, exc)
            return
        body = json.dumps(rest_body(Refused(400, "The request is not valid HTTP."))).encode()
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.log.request(client=addr[0], method="-", route="-", status=400, bytes=len(body), ms=0)
        with contextlib.suppress(OSError):
            client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


def _leave_open(graceful: bool = False) -> None:
    """Close nothing: the connection is another's now."""


class JsonLogger(Logger):
    """Logs gunicorn's own lines, and one for each request, without secrets."""

    def setup(self, cfg: Any) -> None:
        """Set up the handlers."""
        super().setup(cfg)
        logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # our lines name none of these
        logging._srcfile = None  # nor the line of code, which takes logging longest to find
        for handler in self.error_log.handlers + self.access_log.handlers:
            handler.setFormatter(JsonLines())
        self.error_log.addFilter(WithoutSecrets())

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """Log a request that was answered."""
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
        """Log one line about a request."""
        self.access_log.info("request", extra={"fields": fields})
