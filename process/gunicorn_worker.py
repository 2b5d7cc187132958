"""gunicorn's worker, adapted: no connection holds a thread for long, however slowly its client sends or reads.

gunicorn's master starts, reloads and stops it, and its parser reads the requests (`http_messages.py`). The thread
that has the baton (`baton.py`) waits in epoll for connections with something to do, and serves one after another. The
main thread handles signals, and once a second ends connections whose time is over. Must not know routes, handlers or
the database.
"""

import contextlib
import errno
import math
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from gunicorn.http.errors import LimitRequestHeaders, NoMoreData, ParseException
from gunicorn.workers.base import Worker

from process import clock, http_messages
from process.baton import Baton
from process.connections import MAX_READ_BYTES, READ_S, WRITE_S, Connection
from process.http_messages import MAX_HEAD, Answer, Incoming, client_of, environ_of, has_head, is_too_long
from process.poller import READ, WRITE, Poller
from process.streams import HandOver

MAX_CHUNKED_RATE = 2  # bytes on the wire for each byte of a body: more is an attack with tiny chunks
ACCEPTED_AT_ONCE = 100
BATON_S = 0.02  # of processor time between two looks: a thread that is at the same request at both loses the baton
LINGER_S = 10.0  # to go on reading what a client was still sending when it got its answer
STOP_S = 2.0  # for a request that a client may just be sending, when the worker stops
LOOKED_EVERY_S, STOPPING_EVERY_S = 1.0, 0.1
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
TOO_LARGE_HEAD = f"The request's head is too large: at most {MAX_HEAD:,} bytes, 100 headers, 8,190 bytes a header."
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
MAX_UNSENT_BYTES = 64_000_000

# What a connection waits for (`Connection.state`); it is empty while a thread or the baton has it.
SILENT = "its first request"
IDLE = "another request"
UNFINISHED = "the rest of a request"
UNSENT = "its client to take the answer"
LINGERING = "its client to close it"
ENDED_BY_STOP = (SILENT, IDLE, LINGERING)
TURN, LONG_TURN = "its client's turn", "its turn with a request that takes long"  # given by the baton

Made = TypeVar("Made")
Steps = Generator[tuple[str, float], None, Made]  # yield what a connection has to wait for, and until when


class ThreadedWorker(Worker):
    """A worker whose threads serve whichever connection has sent something, or takes more of its answer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connections = set[Connection]()  # all that are open
        self.waiting = dict[int, Connection]()  # by descriptor, the oldest first; popping one transfers ownership
        self.listeners = dict[int, socket.socket]()
        self.is_full = False  # whether listeners are left alone, for lack of room
        self.threads = 0  # how many there are
        self.own = threading.local()  # `connection`: the one that this thread serves
        self.is_over = False
        self.ends_s = math.inf  # when connections without a request end, because the worker stops
        self.wsgi: Any = None  # until it is loaded
        self.sender_of: Callable[[str, str], str] = lambda peer, forwarded_for: peer  # behind a proxy: its client

    def init_process(self) -> None:
        """Begin to serve. What gunicorn looks up of its settings for each request becomes plain attributes."""
        self.cfg.__dict__.update({name: setting.get() for name, setting in self.cfg.settings.items()})
        self.poller, self.wakes = Poller(), os.pipe()
        self.poller.watch(self.wakes[0])
        self.baton = Baton(self.poller.look, self._wake, self._start_thread)
        super().init_process()

    # --- the main thread ---

    def run(self) -> None:
        """Serve until told to stop, then until all requests are answered."""
        self.max_bytes = int(self.wsgi.config["MAX_CONTENT_LENGTH"]) * MAX_CHUNKED_RATE + MAX_READ_BYTES
        self.listeners = {listener.fileno(): listener.sock for listener in self.sockets}
        for listener in self.sockets:
            listener.setblocking(False)
            self.poller.watch(listener.fileno())
        signal.signal(signal.SIGPROF, lambda *_: None)  # it ends the pause of this thread, as every signal does
        signal.setitimer(signal.ITIMER_PROF, BATON_S, BATON_S)
        self.baton.take_away()  # for the first thread
        try:
            while self.alive:
                self._look_after(LOOKED_EVERY_S)
            self._stop()
        finally:
            self.is_over = True
            signal.setitimer(signal.ITIMER_PROF, 0)  # Python removes its handler before the process ends
            self._wake()  # the thread that waits for work, which wakes the next

    def _look_after(self, pause_s: float) -> None:
        """Pause; then tell the master that this worker is alive, and end connections whose time is over."""
        if select.select([self.PIPE[0]], [], [], pause_s)[0]:
            os.read(self.PIPE[0], 4_096)
        self.baton.take_away()
        self.notify()
        if self.alive and self.ppid != os.getppid():
            self.log.info("Parent changed, shutting down: %s", self)
            self._end_serving()
        now_s = clock.monotonic_s()
        for connection in self.waiting.copy().values():
            stop_s = self.ends_s if connection.state in ENDED_BY_STOP else math.inf
            if min(connection.ends_s, stop_s) > now_s or not self._takes(connection):
                continue
            if connection.state == UNFINISHED:  # a thread finds that the time is over
                self.baton.put(connection)
            else:
                self._end(connection)
        self._accept_again()

    def _end_serving(self) -> None:
        """Begin to stop: from now on answers close their connections."""
        self.alive = False
        self.ends_s = clock.monotonic_s() + STOP_S
        if self.wsgi:
            self.wsgi.streams.stop()  # at once: they would last for ever

    def _stop(self) -> None:
        """Take no more connections, and end once all have ended, or when the time is over."""
        for listener in self.sockets:  # so that a new service can start
            self._accept(listener.sock, self.cfg.worker_connections)  # the system would reset those that have come
            listener.close()
        until_s = clock.monotonic_s() + self.cfg.graceful_timeout
        while self.connections and not self.is_over and clock.monotonic_s() < until_s:
            self._look_after(STOPPING_EVERY_S)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop at SIGTERM."""
        if self.alive:
            self._end_serving()

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Stop without waiting for clients. Ctrl-C calls this twice: an exception could interrupt the clean-up."""
        self.is_over = True
        self.handle_exit(sig, frame)

    # --- threads ---

    def _wake(self) -> None:
        """End the waiting of the thread that waits for work."""
        os.write(self.wakes[1], b"\0")

    def _start_thread(self) -> bool:
        """Start a thread, unless there are enough; the baton calls this, one thread at a time."""
        if self.is_over or self.threads >= self.cfg.threads:
            return False
        try:
            threading.Thread(target=self._run).start()
        except RuntimeError:  # the system allows no more threads
            return False
        self.threads += 1
        return True

    def _run(self) -> None:
        try:
            while not self.is_over:
                piece = self.baton.take()
                self._work(piece)
        finally:  # after a fault another thread may start in its place
            with self.baton.lock:
                self.threads -= 1
            if self.is_over:
                self.poller.watch(self.wakes[0])
            self.baton.pass_on()

    def _work(self, piece: int | Connection) -> None:
        """Serve a connection whose turn it is, or that has this descriptor and waits still."""
        if connection := piece if isinstance(piece, Connection) else self.waiting.pop(piece, None):
            self._serve(connection)
        elif not self.is_over:
            self._look_at(piece)

    def _look_at(self, fd: int) -> None:
        if fd == self.wakes[0]:
            os.read(fd, 4_096)
            self.poller.watch(fd)
        elif listener := self.listeners.get(fd):
            try:
                self._accept(listener, ACCEPTED_AT_ONCE)
            finally:
                if self.alive and not self.is_full:
                    self.poller.watch(fd)

    # --- connections that wait ---

    def _await(self, connection: Connection, state: str, ends_s: float) -> None:
        """Let the connection wait without a thread, until the poller reports it or its time is over."""
        connection.state, connection.ends_s = state, ends_s
        fd = connection.fileno()
        self.waiting[fd] = connection
        try:
            self.poller.watch(fd, WRITE if state == UNSENT else READ)
        except OSError:  # another thread has ended it meanwhile
            if self._takes(connection):
                self._end(connection)

    def _takes(self, connection: Connection) -> bool:
        """Take a waiting connection; False if another thread has it, and its descriptor may be a newer one's."""
        fd = connection.fileno()
        return self.waiting.get(fd) is connection and self.waiting.pop(fd, None) is connection

    def _accept(self, listener: socket.socket, most: int) -> None:
        """Accept at most `most` connections that have come, as far as there is room; a silent one may end for it."""
        room: int = self.cfg.worker_connections - len(self.connections)
        if room <= 0 and not self._make_room():
            self.is_full = True
            return
        for _ in range(min(max(room, 1), most)):
            try:
                accepted, peer = listener.accept()
                server = listener.getsockname()
            except OSError as error:  # none has come, or the main thread has closed the listener
                self.is_full |= error.errno in NO_ROOM and not self._make_room()
                return
            connection = Connection(accepted, peer)
            connection.environ = environ_of(self.cfg, peer, server)
            connection.talk = self._talk(connection)
            self.connections.add(connection)
            self._await(connection, SILENT, clock.monotonic_s() + READ_S)

    def _accept_again(self) -> None:
        """Accept connections, if only room was missing and there is some."""
        if self.is_full and self.alive and len(self.connections) < self.cfg.worker_connections:
            self.is_full = False
            for fd in self.listeners:
                self.poller.watch(fd)

    def _make_room(self) -> bool:
        """End the oldest connection that lingers, else is silent, else sent half a request; whether there was one."""
        for state in (LINGERING, SILENT, UNFINISHED):
            for connection in self.waiting.copy().values():
                if connection.state == state and self._takes(connection):
                    self._end(connection)
                    return True
        return False

    def _end(self, connection: Connection) -> None:
        with contextlib.suppress(RuntimeError):  # a fault at its answer's end, which is logged, makes it linger
            connection.talk.close()
        connection.close()
        self._leave(connection)

    def _leave(self, connection: Connection) -> None:
        """Forget a connection that ends or is handed over; its turn and its place go to others."""
        self.connections.discard(connection)
        self.baton.end_long(connection)
        self._accept_again()

    def make_way(self) -> None:
        """Let others run, because this thread is about to wait: another thread, and another long request."""
        self.baton.pass_on()
        if connection := getattr(self.own, "connection", None):
            self.baton.end_long(connection)

    # --- one connection ---

    def _serve(self, connection: Connection) -> None:
        """Go on with a connection that is this thread's, until it waits again or ends."""
        self.own.connection, connection.state = connection, ""
        try:
            state, ends_s = next(connection.talk)
            while state == LONG_TURN:
                if not self.baton.begin_long(connection):
                    return None
                state, ends_s = next(connection.talk)
        except StopIteration:
            return self._end(connection)
        except HandOver as given:
            self._leave(connection)
            return given.begin(connection)
        self.baton.end_long(connection)
        if state == TURN:
            return self.baton.put(connection)
        is_unsent = state == UNSENT and bool(connection.unsent)
        self._await(connection, state, ends_s)
        if is_unsent:
            self._bound_unsent()
        return None

    def _talk(self, connection: Connection) -> Steps[None]:
        """Answer a client's requests until the connection ends."""
        try:
            # Also while the worker stops: a client that was told `keep-alive` may be sending its next request.
            while (yield from self._answered(connection)):
                if connection.rest:
                    yield TURN, math.inf
                else:
                    connection.client = ""
                    yield IDLE, clock.monotonic_s() + self.cfg.keepalive
        except (GeneratorExit, HandOver):
            raise
        except BaseException as error:
            if not isinstance(error, (TimeoutError, ConnectionError)):
                self.log.error("Error handling request", exc_info=error)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            ends_s = clock.monotonic_s() + LINGER_S
            yield LINGERING, ends_s
            while connection.recv(MAX_READ_BYTES):  # TCP would reset a connection with unread data, and its answer
                yield LINGERING, ends_s

    def _received(self, connection: Connection) -> Steps[Incoming | None]:
        """The request, once enough of it has come to be answered; None if the client has left, or was refused."""
        connection.begin(clock.monotonic_s(), self.max_bytes)
        try:
            while not connection.gather(has_head):
                yield UNFINISHED, connection.until_s
            if is_too_long(connection.rest):
                raise LimitRequestHeaders(TOO_LARGE_HEAD)
            request = Incoming(self.cfg, connection, connection.peer)
            if request.expects_continue:
                connection.write(CONTINUE)
                connection.is_flushed()
            while not request.has_come():
                yield UNFINISHED, connection.until_s
            return request
        except (StopIteration, NoMoreData):
            pass
        except LimitRequestHeaders:
            self._refuse(connection, 400, TOO_LARGE_HEAD)
        except ParseException:
            self._refuse(connection, 400, "The request is not valid HTTP.")
        return None

    def _answered(self, connection: Connection) -> Steps[bool]:
        """Let the application answer a request when it is the client's turn; returns whether another may follow."""
        request = yield from self._received(connection)
        if request is None:
            return False
        takes_long, has_waited = self.wsgi.takes_long(request.method, request.path), bool(connection.client)
        if takes_long or (self.baton.work and not has_waited):
            connection.client = client_of(request)
            connection.sender = self.sender_of(connection.peer[0], http_messages.forwarded_for(request))
        if self.baton.work and not has_waited and (not takes_long or self.baton.is_crowded(connection)):
            yield TURN, math.inf
        is_crowded = takes_long and self.baton.is_crowded(connection)  # then the application refuses
        if takes_long and not is_crowded:
            yield LONG_TURN, math.inf
            self.baton.pass_on()
        if not request.is_whole:
            self.make_way()
        has_room = len(self.connections) < self.cfg.worker_connections - self.cfg.threads
        may_keep_alive = self.alive and self.cfg.keepalive > 0 and has_room and not request.should_close()
        answer = Answer(connection, request, may_keep_alive)
        try:
            answer.environ = request.environ()
            answer.environ["pocketbell.is_crowded"] = is_crowded
            answer.body = self.wsgi(answer.environ, answer.start)
            yield from self._written(answer)
        except Exception as error:
            if answer.is_begun or isinstance(error, HandOver):
                raise
            self.log.error("Error handling request", exc_info=error)
            self._refuse(connection, 500, "The request could not be answered.")
            return False
        return answer.is_keep_alive and answer.is_whole

    def _written(self, answer: Answer) -> Steps[None]:
        """Write what the client takes of the answer at once, and the rest when it takes more."""
        connection = answer.connection
        try:
            for _ in answer.write_parts():
                connection.is_flushed()
                yield UNSENT, clock.monotonic_s() + WRITE_S
                while not connection.is_flushed():
                    yield UNSENT, clock.monotonic_s() + WRITE_S
                yield LONG_TURN, math.inf
                self.baton.pass_on()
        finally:
            self.log.access(answer.environ, answer.status, answer.sent, clock.monotonic_s() - connection.began_s)
            answer.close()
        while not connection.is_flushed():
            yield UNSENT, clock.monotonic_s() + WRITE_S

    def _bound_unsent(self) -> None:
        """Drop answers that wait to be taken, the oldest first, while all together are too large."""
        unsent = [one for one in self.waiting.copy().values() if one.state == UNSENT]
        surplus = sum(len(one.unsent) for one in unsent) - MAX_UNSENT_BYTES
        for connection in unsent:
            if surplus > 0 and self._takes(connection):
                surplus -= len(connection.unsent)
                self._end(connection)

    def _refuse(self, connection: Connection, status: int, sentence: str) -> None:
        """Answer invalid HTTP with an error, before the connection ends."""
        head, body = http_messages.refusal(status, sentence)
        self.log.request(client=connection.peer[0], method="-", route="-", status=status, bytes=len(body), ms=0)
        connection.write(head + body)
        connection.is_flushed()  # who does not take this either has taken nothing for long
