"""gunicorn's worker, adapted: no connection holds a thread for long, however slowly its client sends or reads.

gunicorn's master starts, reloads and stops it, and its parser reads the requests (`http_messages.py`). The main
thread hears signals and looks after the others once a second; the threads of `crew.py` do the rest. Must not know
routes, handlers or the database.
"""

import contextlib
import errno
import json
import math
import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.workers.base import Worker

from process import clock
from process.connections import READ_S, WRITE_S, Connection
from process.crew import Crew
from process.http_messages import Answer, Incoming, client_of, environ_of, has_head
from process.poller import Poller
from process.streams import HandOver
from process.unsent import Exchange, Unsent
from wire.errors import Refused, rest_body

MAX_CHUNKED_RATE = 2  # bytes on the wire for each byte of a body: more is an attack with tiny chunks
HEAD_BYTES = 65_536
DRAINED_AT_ONCE = 65_536
MAX_DRAINING = 2  # threads that read the rest of a refused body: more would only wait for each other
DRAINING_WAIT_S = 0.1  # for one of them to be done, which most are at once
LINGER_S = 2.0  # to go on reading what a client was still sending when it got its answer
MAX_LINGERING = 100
STOP_S = 2.0  # for a request that a client may just be sending, when the worker stops
LOOKED_EVERY_S, STOPPING_EVERY_S = 1.0, 0.1
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
TOO_MANY, RETRY_LATER = "Too many lists, pages or downloads are asked for at once.", "Retry-After: 5\r\n"
GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN)


class ThreadedWorker(Worker):
    """A worker whose threads serve whichever connection has sent something.

    A connection keeps a thread for a bounded time, however slowly its client sends or reads.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connections = set[Connection]()  # all but those that only linger
        self.silent = dict[int, Connection]()  # by descriptor, the oldest first: those that have not sent anything,
        self.kept = dict[int, Connection]()  # those that may send another request,
        self.unfinished = dict[int, Connection]()  # those that have sent a part of one,
        self.lingering = dict[int, Connection]()  # and those whose last words are read; whoever takes one out has it
        self.unsent = Unsent()
        self.draining = threading.BoundedSemaphore(MAX_DRAINING)
        self.listeners = dict[int, socket.socket]()
        self.is_accepting, self.accepting = False, threading.Lock()
        self.looked_s = 0.0
        self.ends_s = math.inf  # when connections that only wait end, because the worker stops
        self.wsgi: Any = None  # until it is loaded

    def init_process(self) -> None:
        """Begin to serve. What gunicorn looks up of its settings for each request becomes plain attributes."""
        self.cfg.__dict__.update({name: setting.get() for name, setting in self.cfg.settings.items()})
        self.poller = Poller()
        self.crew = Crew(self._most_threads, self._arrived, self._serve)
        super().init_process()

    # --- the main thread ---

    def _most_threads(self) -> int:
        """One for each connection and two more: else the late looks of a busy machine would start ever more."""
        return min(int(self.cfg.threads), len(self.connections) + 2)

    def run(self) -> None:
        """Serve until told to stop, then until all requests are answered."""
        self.max_bytes = int(self.wsgi.config["MAX_CONTENT_LENGTH"]) * MAX_CHUNKED_RATE + HEAD_BYTES
        self.listeners = {listener.fileno(): listener for listener in self.sockets}
        for listener in self.sockets:
            listener.setblocking(False)
        self._accept_again()
        self.crew.wake_one()
        try:
            while self.alive:
                self._look_after(LOOKED_EVERY_S)
            self._stop()
        finally:
            self.crew.end()
            self.poller.watch(self.PIPE[0])
            os.write(self.PIPE[1], b"\0")

    def _look_after(self, every_s: float) -> None:
        """See that requests are taken, and every so often to the master and to connections whose time is over."""
        self.crew.watch(every_s)
        now_s = clock.monotonic_s()
        if now_s < self.looked_s + every_s:
            return
        self.looked_s = now_s
        self.notify()
        if self.alive and self.ppid != os.getppid():
            self.log.info("Parent changed, shutting down: %s", self)
            self._end_serving()
        for fd, connection in self.unfinished.copy().items():
            if connection.until_s <= now_s and (late := self.unfinished.pop(fd, None)):
                self.crew.bring(late)  # to be told that the time is over
        for waiting in (self.silent, self.kept, self.lingering):
            for fd, connection in waiting.copy().items():
                is_over = min(connection.until_s, self.ends_s) <= now_s
                if is_over and waiting.get(fd) is connection:  # else its number is another's by now
                    self._end(waiting.pop(fd, None))
        self._end_unsent(now_s)
        self._accept_again()

    def _end_serving(self) -> None:
        """Begin to stop: from now on answers close their connections."""
        self.alive = False
        self.ends_s = clock.monotonic_s() + STOP_S
        if self.wsgi:
            self.wsgi.streams.stop()  # at once: they would last for ever

    def _stop(self) -> None:
        """Take no more connections, and end once all have ended, or when the time is over."""
        self._pause_accepting()
        for listener in self.sockets:  # so that a new service can start
            listener.close()
        until_s = clock.monotonic_s() + self.cfg.graceful_timeout
        while self.connections and clock.monotonic_s() < until_s:
            self._look_after(STOPPING_EVERY_S)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop at a signal."""
        if self.alive:
            self._end_serving()
            self.crew.ring()

    # --- connections that wait ---

    def _arrived(self, waits: bool) -> list[Connection | Exchange]:
        """The connections that have sent something or take more; waits for one if it should."""
        ready, listeners = list[Connection | Exchange](), []
        for fd in self.poller.ready(waits):
            if connection := self._waiting(fd) or self.unsent.take(fd):
                ready.append(connection)
            elif connection := self.lingering.get(fd):
                self._drain(fd, connection)
            elif listener := self.listeners.get(fd):
                listeners.append(listener)
        for listener in listeners:  # last: a new connection may get the number of one that has just been closed
            try:
                self._accept(listener)
            except Exception as error:  # those that are ready must still be served
                if self.alive:  # else the main thread has closed the listener
                    self.log.error("A connection could not be accepted", exc_info=error)
        return ready

    def _waiting(self, fd: int) -> Connection | None:
        return self.kept.pop(fd, None) or self.silent.pop(fd, None) or self.unfinished.pop(fd, None)

    def _accept(self, listener: socket.socket) -> None:
        """Accept a connection; without room for it, drop the one that has been silent for longest."""
        while len(self.connections) >= self.cfg.worker_connections - 1 and self._drop_silent():
            pass
        try:
            accepted, peer = listener.accept()
        except OSError as error:
            if error.errno in NO_ROOM and not self._drop_silent():
                self._pause_accepting()
            return
        connection = Connection(accepted, peer)
        connection.environ = environ_of(self.cfg, peer, listener.getsockname())
        connection.until_s = clock.monotonic_s() + READ_S
        self.connections.add(connection)
        self.silent[connection.fileno()] = connection
        self.poller.await_first(connection.fileno())
        if len(self.connections) >= self.cfg.worker_connections:
            self._pause_accepting()

    def _pause_accepting(self) -> None:
        with self.accepting:
            self.is_accepting = False
            for fd in self.listeners:
                self.poller.forget(fd)

    def _accept_again(self) -> None:
        """Accept connections, unless there are too many or the worker stops."""
        if self.is_accepting:
            return
        with self.accepting:
            if self.alive and not self.is_accepting and len(self.connections) < self.cfg.worker_connections:
                self.is_accepting = True
                for fd in self.listeners:
                    self.poller.watch(fd)

    def _drop_silent(self) -> bool:
        """End the connection that has been silent for longest; whether there was one."""
        silent = self.silent or self.unfinished
        with contextlib.suppress(StopIteration, RuntimeError):  # another thread changes them
            self._end(silent.pop(next(iter(silent)), None))
            return True
        return False

    def _drain(self, fd: int, connection: Connection) -> None:
        """Read what a client was still sending when it got its last answer."""
        try:
            with contextlib.suppress(BlockingIOError):
                if not connection.recv(HEAD_BYTES):
                    raise EOFError
            self.poller.await_next(fd)
        except (OSError, EOFError):  # the main thread may have ended it meanwhile
            self._end(self.lingering.pop(fd, None))

    def _end(self, connection: Connection | None) -> None:
        if connection:
            self.connections.discard(connection)
            connection.close()
            self._accept_again()

    def _close(self, connection: Connection) -> None:
        """Close the connection for writing, and read on for a while, or the client might never see its answer.

        TCP resets a connection that is closed with unread data.
        """
        self.connections.discard(connection)
        fd = connection.fileno()
        try:
            if len(self.lingering) >= MAX_LINGERING:
                raise OSError
            connection.shutdown(socket.SHUT_WR)
            connection.until_s = clock.monotonic_s() + LINGER_S
            self.lingering[fd] = connection
            self.poller.await_next(fd)
        except OSError:
            self.lingering.pop(fd, None)
            connection.close()
        self._accept_again()

    def make_way(self) -> None:
        """Called by a thread that is about to wait: another one goes on, if any client may be sending.

        A new client is noticed a millisecond later: a thread woken in vain for each send costs more.
        """
        if self.kept or self.silent or self.unfinished or self.crew.ready or self.crew.long:
            self.crew.step_aside()

    # --- one request ---

    def _serve(self, one: Connection | Exchange) -> None:
        """Answer a connection's request, or write more of an answer that was not taken at once."""
        if isinstance(one, Exchange):
            self._go_on(one.connection, partial(self._write, one))
            return
        if not one.began_s:
            one.begin(clock.monotonic_s(), self.max_bytes)
        self._go_on(one, partial(self._answer, one))

    def _go_on(self, connection: Connection, step: Callable[[], bool | None]) -> None:
        """Go on with a connection's request, and once it is answered let the connection wait for the next."""
        try:
            try:
                is_kept = step()
            except HandOver as given:
                self.connections.discard(connection)
                given.begin(connection)
                return
        except BaseException as error:
            is_kept = False
            if not (isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.errno in GONE)):
                self.log.error("Error handling request", exc_info=error)
        if is_kept is None:
            return
        if not (is_kept and self.alive):
            self._close(connection)
        elif connection.rest:
            self.crew.put(connection)
        else:
            self._keep(connection)

    def _keep(self, connection: Connection) -> None:
        """Wait for the connection's next request."""
        connection.until_s = clock.monotonic_s() + self.cfg.keepalive
        self._await(connection, self.kept)

    def _await(self, connection: Connection, waiting: dict[int, Connection]) -> None:
        fd = connection.fileno()
        waiting[fd] = connection
        try:
            self.poller.await_next(fd)
        except OSError:  # the main thread has ended it, because the worker stops
            self._end(waiting.pop(fd, None))

    def _answer(self, connection: Connection) -> bool | None:
        """Read a request and answer it; whether the connection may serve another one, None if that is still open."""
        try:
            request = self._received(connection)
        except (StopIteration, NoMoreData):  # the client has left
            return False
        except ParseException:
            return self._refuse(connection, 400, "The request is not valid HTTP.")
        if request is None:
            self._await(connection, self.unfinished)
            return None
        if self.wsgi.takes_long(request.method, request.path) and connection not in self.crew.long:
            connection.client = client_of(request)
            if self.crew.is_crowded(connection.client):
                return self._refuse(connection, 503, TOO_MANY, RETRY_LATER)
            if not self.crew.may_begin(connection, connection.client):
                return None
        began_s = connection.end_receiving()
        if not request.is_whole:
            self.crew.step_aside()
        has_room = len(self.kept) < self.cfg.worker_connections - self.cfg.threads
        answer = Answer(connection, request, self._goes_on() and has_room and not request.should_close())
        try:
            environ = request.environ()
            exchange = Exchange(answer, environ, self.wsgi(environ, answer.start), began_s)
        except Exception as error:
            return self._fail(answer, error)
        return self._write(exchange)

    def _received(self, connection: Connection) -> Incoming | None:
        """The request, unless more of it must come before a thread is worth while."""
        if connection.request is None:
            if not connection.gather(has_head):
                return None
            connection.request = Incoming(self.cfg, connection, connection.peer)
            if connection.request._expected_100_continue:
                connection.write(CONTINUE)
                connection.is_flushed()
        request: Incoming = connection.request
        return request if request.has_come() else None

    def _goes_on(self) -> bool:
        """Whether this is not the worker's last request: gunicorn may have been told to end it after so many."""
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:
            self.log.info("Autorestarting worker after current request.")
            self._end_serving()
            self.crew.ring()
        return bool(self.alive and self.cfg.keepalive)

    def _write(self, exchange: Exchange) -> bool | None:
        """Write what the client takes of the answer at once; as `_answer`. The rest waits without a thread."""
        answer, connection = exchange.answer, exchange.connection
        try:
            is_flushed = connection.is_flushed()
            if is_flushed and not exchange.is_closed:
                if exchange.parts and not self.crew.may_begin(exchange, connection.client):
                    return None
                if exchange.write():
                    self._log(exchange)
                is_flushed = connection.is_flushed()
        except Exception as error:
            self._log(exchange)
            return self._fail(answer, error)
        if not is_flushed:
            self._await_room(exchange)
        elif not exchange.is_closed:
            self.crew.put(exchange)
        else:
            return answer.is_kept and answer.is_whole and self._is_drained(answer.request)
        return None

    def _log(self, exchange: Exchange) -> None:
        """Log the request, whose body is written or given up."""
        if not exchange.is_closed:
            answer, took_s = exchange.answer, clock.monotonic_s() - exchange.began_s
            self.log.access(exchange.environ, answer.status, answer.sent, took_s)
            exchange.close()

    def _await_room(self, exchange: Exchange) -> None:
        """Wait until the client takes more; too much that waits ends those that have taken nothing for longest."""
        now_s = clock.monotonic_s()
        exchange.connection.until_s = now_s + WRITE_S
        fd = exchange.connection.fileno()
        self.unsent.exchanges[fd] = exchange
        with contextlib.suppress(OSError):  # another thread has ended it, to make room
            self.poller.await_room(fd)
        self._end_unsent(now_s)

    def _end_unsent(self, now_s: float) -> None:
        for exchange in self.unsent.over(now_s):
            self._log(exchange)
            self._end(exchange.connection)

    def _fail(self, answer: Answer, error: Exception) -> bool:
        """Answer that there is a fault of ours, unless it is none or the answer has begun."""
        if answer.is_begun or isinstance(error, HandOver):
            raise error
        self.log.error("Error handling request", exc_info=error)
        return self._refuse(answer.connection, 500, "The request could not be answered.")

    def _is_drained(self, request: Incoming) -> bool:
        """Read the rest of a refused body; returns False if it is broken, or while enough others are being read.

        A proxy that is still sending would take an early end of the connection for a fault of ours.
        """
        if request.is_whole:
            return True
        if not self.draining.acquire(timeout=DRAINING_WAIT_S):
            return False
        try:
            with contextlib.suppress(Exception):  # of a broken chunk, which `failed` tells
                while request.body.read(DRAINED_AT_ONCE):
                    pass
        finally:
            self.draining.release()
        return not (request.body.failed or request.unreader.is_over)

    def _refuse(self, connection: Connection, status: int, sentence: str, fields: str = "") -> bool:
        """Answer in our error shape what is no HTTP, without quoting it: it may contain a key or a code."""
        body = json.dumps(rest_body(Refused(status, sentence))).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n{fields}"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.log.request(client=connection.peer[0], method="-", route="-", status=status, bytes=len(body), ms=0)
        connection.write(head.encode() + body)
        connection.is_flushed()  # who does not take this either has taken nothing for long
        return False
