"""Connections that stay open for what is to come: all in one thread, beside those that answer requests.

A request thread checks a request, answers with `HandOver`, and is free again: gunicorn's worker (gunicorn_worker.py)
gives the connection to a `Hub`, whose thread begins with the first. Must not know what is streamed.
"""

import contextlib
import logging
import os
import selectors
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from process import clock
from process.faults import log_fault

MAX_STREAMS = 32
MAX_STREAMS_OF_OWNER = 12
MAX_STREAMS_OF_KEY = 4
KEEPALIVE_S = 45.0  # between two; also how long a client may leave what was written untaken
LOOKED_EVERY_S = 1.0
UNACKNOWLEDGED_MS = 90_000  # then the kernel gives a connection up whose other end does not answer
PAUSE_S = 0.002  # at least, between two rounds of writing; after a longer round as long as that took
STOPPED_WITHIN_S = 2.0
MESSAGES_AT_ONCE = 20  # of one connection before the others get their turn, with those that are not for it
READ_BYTES = 4_096
MAX_HEARD_BYTES = 65_536  # from a client between two signs of life: more would keep the thread from the others

log = logging.getLogger("pocketbell")


class Ended(Exception):
    """The connection is to end; `last` is written before, if the client takes it."""

    def __init__(self, last: bytes = b"") -> None:
        self.last = last


class Source(Protocol):
    """The messages of one connection. Only the hub's thread calls it."""

    @property
    def keys(self) -> Iterable[int]:
        """For whom it is: of each key only `MAX_STREAMS_OF_KEY` connections stay, the newest."""

    @property
    def owners(self) -> Iterable[int]:
        """Whose it is: each owner has at most `MAX_STREAMS_OF_OWNER` connections."""

    def next(self) -> bytes | None:
        """The next message, or None if there is none now; asked for once all before it is taken.

        Empty if the next one is not for the client: there may be more. Raises `Ended` if there will be none.
        """

    def taken(self) -> None:
        """The connection has taken the last message."""

    def keepalive(self) -> bytes:
        """The message that shows the client that the connection lives."""


class Framing:
    """How messages become bytes on the connection: as they are. What the client sends is ignored."""

    def frame(self, message: bytes) -> bytes:
        """The bytes of a message."""
        return message

    def received(self, data: bytes) -> bytes:
        """The answer to what the client sent; may raise `Ended`."""
        return b""

    def end(self) -> bytes:
        """The bytes behind the last message."""
        return b""


class Feed(Protocol):
    """Where the sources of a hub get their messages from. Only the hub's thread calls it."""

    def look(self, sources: list[Any], is_woken: bool) -> list[Any]:
        """Find new messages for these, which are all unless it is woken; returns those that are over."""

    def settle(self, sources: Iterable[Any]) -> None:
        """Write down what the connections of these have taken."""

    def close(self) -> None:
        """There is no source any more."""


class HandOver(Exception):
    """Raised instead of an answer: the worker calls `begin` with the connection, which is not its own any more."""

    def __init__(self, begin: Callable[[socket.socket], None]) -> None:
        self.begin = begin


class Stream:
    """A connection and what is still to be written to it."""

    def __init__(
        self,
        connection: socket.socket,
        head: bytes,
        source: Source,
        fields: dict[str, object],
        framing: Framing | None = None,
    ) -> None:
        self.connection, self.source, self.fields = connection, source, fields
        self.framing = framing or Framing()
        self.out = bytearray(head)
        self.message_ends = 0  # how many bytes of `out` the last message still has, and what is before it
        self.begun_s = self.moved_s = clock.monotonic_s()
        self.keepalive_s = self.begun_s + KEEPALIVE_S
        self.sent = self.messages = self.heard = 0
        self.is_unfinished = False  # there is more, but the others have their turn
        connection.setblocking(False)
        with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)

    def fileno(self) -> int:
        """For the selector."""
        return self.connection.fileno()

    def serve(self, now_s: float) -> None:
        """Write a sign of life if it is time, and messages until the client takes no more; raises `OSError`."""
        self._keep_alive(now_s)
        self.is_unfinished = False
        for _ in range(MESSAGES_AT_ONCE):
            self._send(now_s)
            if self.out or not self._add_message():
                return
        self.is_unfinished = True

    def _add_message(self) -> bool:
        try:
            message = self.source.next()
        except Ended:
            raise Ended(self.framing.end()) from None
        if message:
            self.out += self.framing.frame(message)
            self.message_ends = len(self.out)
        return message is not None

    def _send(self, now_s: float) -> None:
        while self.out:
            try:
                taken = self.connection.send(self.out)
            except BlockingIOError:
                return
            del self.out[:taken]
            self.sent, self.moved_s = self.sent + taken, now_s
            if self.message_ends:
                self.message_ends = max(0, self.message_ends - taken)
                if not self.message_ends:
                    self.messages += 1
                    self.source.taken()

    def _keep_alive(self, now_s: float) -> None:
        """Write a sign of life if it is time; raises `Ended` if the client has taken nothing for as long."""
        if now_s >= self.keepalive_s:
            if self.out and now_s - self.moved_s >= KEEPALIVE_S:
                raise Ended
            self.keepalive_s, self.heard = now_s + KEEPALIVE_S, 0
            if not self.out:
                self.out += self.framing.frame(self.source.keepalive())

    def read(self) -> None:
        """Read what the client sent; raises `Ended` at its end, and `OSError`."""
        try:
            data = self.connection.recv(READ_BYTES)
        except BlockingIOError:
            return
        self.heard += len(data)
        if not data or self.heard > MAX_HEARD_BYTES:
            raise Ended
        self.out += self.framing.received(data)
        if len(self.out) > READ_BYTES + self.message_ends:  # it asks for answers and takes none
            raise Ended

    def end(self, last: bytes) -> None:
        """Close the connection, and log the one line of this stream."""
        with contextlib.suppress(OSError):
            if last and not self.out:
                self.connection.send(last)
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()
        ms = round((clock.monotonic_s() - self.begun_s) * 1000)
        log.info("stream", extra={"fields": self.fields | {"bytes": self.sent, "messages": self.messages, "ms": ms}})


class Hub:
    """All open streams, and the thread that serves them."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.lock = threading.RLock()
        self.arriving = deque[Stream]()
        self.streams = list[Stream]()  # the oldest first; only the thread changes it
        self.ended = list[Stream]()  # since the last round
        self.thread: threading.Thread | None = None
        self.selector: selectors.BaseSelector  # the thread's
        self.woken = deque[int]()  # the owners that there are new messages for
        self.stopping = threading.Event()
        self.worked_s = 0.0  # how long the last round took
        self.wakes: tuple[int, int] | None = None  # a pipe, made with the thread: a fork must not share it

    # --- called by other threads ---

    def has_room(self, source: Source) -> bool:
        """Whether there is room for another stream."""
        with self.lock:
            present = [stream.source for stream in (*self.streams, *self.arriving)]
        of_keys = Counter(key for one in present for key in one.keys)
        of_owners = Counter(owner for one in present for owner in one.owners)
        is_full = len(present) >= MAX_STREAMS
        is_full |= any(of_owners[owner] >= MAX_STREAMS_OF_OWNER for owner in source.owners)
        makes_room = any(of_keys[key] >= MAX_STREAMS_OF_KEY for key in source.keys)  # the key's oldest will end
        return not self.stopping.is_set() and (makes_room or not is_full)

    def open(self, stream: Stream) -> None:
        """Serve a stream from now on, or end it if others have taken the room since its request was checked."""
        with self.lock:
            if not self.has_room(stream.source):
                return stream.end(b"")
            self.arriving.append(stream)
            if self.thread is None:
                self.wakes = os.pipe()
                os.set_blocking(self.wakes[1], False)
                self.thread = threading.Thread(target=self._run, args=(self.wakes[0],), name="streams", daemon=True)
                self.thread.start()
        for owner in stream.source.owners:
            self.wake(owner)
        return None

    def wake(self, owner: int) -> None:
        """Look at once for new messages for the streams of this owner. Without streams this costs nothing."""
        if self.streams or self.arriving:
            self.woken.append(owner)
            self._wake_thread()

    def _wake_thread(self) -> None:
        if self.wakes:
            with contextlib.suppress(BlockingIOError):  # it wakes up already
                os.write(self.wakes[1], b"\0")

    def stop(self) -> None:
        """End all streams soon; a signal's handler may call it, so it takes no lock."""
        self.stopping.set()
        self._wake_thread()

    def finish(self) -> None:
        """End all streams, and wait until that is done."""
        self.stop()
        if thread := self.thread:
            thread.join(STOPPED_WITHIN_S)

    # --- the thread ---

    def _run(self, wakes: int) -> None:
        with selectors.DefaultSelector() as self.selector:
            self.selector.register(wakes, selectors.EVENT_READ)
            looked_s = clock.monotonic_s()
            while not self.stopping.is_set():
                readable = self._wait(wakes)
                self._admit()
                for stream in readable:
                    self._do(stream, stream.read)
                began_s = clock.monotonic_s()
                self._look_for_woken()
                if began_s - looked_s >= LOOKED_EVERY_S:
                    looked_s = began_s
                    self._look(self.streams, is_woken=False)
                self._write()
                self.worked_s = clock.monotonic_s() - began_s
                if not self.streams:
                    self.feed.close()
            for stream in [*self.streams, *self.arriving]:
                self._end(stream)
            self._settle()
            self.feed.close()

    def _wait(self, wakes: int) -> list[Stream]:
        """Wait until there is something to do; returns the streams whose clients sent something."""
        is_unfinished = any(stream.is_unfinished for stream in self.streams)
        if is_unfinished:  # the threads that answer requests need the interpreter too
            self.stopping.wait(max(PAUSE_S, self.worked_s))
        pause_s = LOOKED_EVERY_S if self.streams or self.arriving else None
        events = self.selector.select(0 if is_unfinished else pause_s)
        ready = [key.fileobj for key, mask in events if mask & selectors.EVENT_READ]
        if wakes in ready:
            os.read(wakes, 4_096)
        return [one for one in ready if isinstance(one, Stream)]

    def _admit(self) -> None:
        """Take up new streams; of each key the oldest make room."""
        while self.arriving:
            with self.lock:
                stream = self.arriving.popleft()
                self.streams.append(stream)
            self.selector.register(stream, selectors.EVENT_READ)
            for key in stream.source.keys:
                same = [one for one in self.streams if key in one.source.keys]
                for oldest in same[:-MAX_STREAMS_OF_KEY]:
                    self._end(oldest)

    def _look_for_woken(self) -> None:
        woken = set[int]()
        while self.woken:
            woken.add(self.woken.popleft())
        if found := [stream for stream in self.streams if not woken.isdisjoint(stream.source.owners)]:
            self._look(found, is_woken=True)

    def _look(self, looked_at: list[Stream], is_woken: bool) -> None:
        try:
            over = self.feed.look([stream.source for stream in looked_at], is_woken)
        except Exception as error:  # the database may answer again a second later
            log_fault("What is new for the streams could not be read", error)
            return
        for stream in [one for one in looked_at if one.source in over]:
            self._end(stream)

    def _write(self) -> None:
        now_s = clock.monotonic_s()
        for stream in list(self.streams):
            self._do(stream, partial(stream.serve, now_s))
            if stream in self.streams:
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if stream.out else 0)
                if self.selector.get_key(stream).events != wanted:
                    self.selector.modify(stream, wanted)
        self._settle()

    def _do(self, stream: Stream, work: Callable[[], object]) -> None:
        """Do something with a stream, unless it has ended; it ends if that fails."""
        if stream not in self.streams:
            return
        try:
            work()
        except Ended as ended:
            self._end(stream, ended.last)
        except OSError:
            self._end(stream)
        except Exception as error:
            log_fault("A stream failed", error)
            self._end(stream)

    def _end(self, stream: Stream, last: bytes = b"") -> None:
        with self.lock:
            if stream in self.streams:
                self.streams.remove(stream)
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(stream)
        stream.end(last)
        self.ended.append(stream)

    def _settle(self) -> None:
        """Write down what all streams have taken, also those that have just ended, once no client waits for it."""
        ended, self.ended = self.ended, []
        try:
            self.feed.settle([stream.source for stream in [*ended, *self.streams]])
        except Exception as error:  # they stay as they are, and are written again when the client comes back
            log_fault("The receipts of a stream could not be written", error)
