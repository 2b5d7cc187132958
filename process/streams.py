"""Connections that stay open for what is to come: all in one thread, beside those that answer requests.

A request thread checks a request, answers with `HandOver`, and is free again: gunicorn's worker (gunicorn_worker.py)
gives the connection to a `Hub`, whose thread begins with the first and runs asyncio's loop, with a task for each
connection. Must not know what is streamed.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from process import clock
from process.faults import log_fault

MAX_STREAMS = 32
MAX_STREAMS_OF_OWNER = 12
MAX_STREAMS_OF_KEY = 4
KEEPALIVE_S = 45.0  # between two; also how long a client may leave a piece untaken
LOOKED_EVERY_S = 1.0
UNACKNOWLEDGED_MS = 90_000  # then the kernel gives a connection up whose other end does not answer
STOPPED_WITHIN_S = 2.0
MESSAGES_AT_ONCE = 20  # of one connection, with those that are not for it; then the others have their turn
PAUSE_S = 0.002  # all streams pause when one has written so many: threads that answer need the interpreter too
PIECE_BYTES = 4_096  # read, or written, at once
MAX_HEARD_BYTES = 65_536  # from a client between two signs of life: more would keep the thread from the others

log = logging.getLogger("pocketbell")


class Ended(Exception):
    """The connection is to end, with what the framing has for it if the last message is whole."""


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
    """What the client gets beside messages: nothing, and what it sends is ignored."""

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
    """A connection, and its messages on their way to the client."""

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
        self.before = head  # what is written before the next message: the head, answers, signs of life
        self.is_whole = True  # whether what was begun last is written to its end
        self.stirred = asyncio.Event()  # there may be something to write
        self.begun_s = clock.monotonic_s()
        self.sent = self.messages = self.heard = 0
        connection.setblocking(False)
        with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)

    async def serve(self, pause: Callable[[float], object], note: Callable[[], object], turn: asyncio.Lock) -> None:
        """Write messages and answer the client until one side ends.

        Whoever has more messages than `MESSAGES_AT_ONCE` calls `pause` at its `turn`. `note` is called after messages
        were taken.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tell(pause, note, turn))
                tasks.create_task(self._listen())
                tasks.create_task(self._show_life())
        except* Ended:
            if self.is_whole:
                with contextlib.suppress(OSError):
                    await self._write(self.framing.end())
        except* OSError:
            pass
        except* Exception as faults:
            log_fault("A stream failed", faults.exceptions[0])

    async def _tell(self, pause: Callable[[float], object], note: Callable[[], object], turn: asyncio.Lock) -> None:
        while True:
            self.stirred.clear()
            for _ in range(MESSAGES_AT_ONCE):
                if not await self._write_message():
                    break
            else:  # there are more, but others have their turn
                self.stirred.set()
                async with turn:
                    pause(PAUSE_S)
                    await asyncio.sleep(0)
            note()
            await self.stirred.wait()

    async def _write_message(self) -> bool:
        """Write the next message if it is for the client, and what goes before it; whether there was one."""
        before, self.before = self.before, b""
        await self._write(before)
        message = self.source.next()
        if message:
            await self._write(message)
            self.messages += 1
            self.source.taken()
        return message is not None

    async def _listen(self) -> None:
        """Answer what the client says, until it ends, says too much, or takes no answers."""
        while data := await asyncio.get_running_loop().sock_recv(self.connection, PIECE_BYTES):
            self.heard += len(data)
            if self.heard > MAX_HEARD_BYTES or len(self.before) > PIECE_BYTES:
                break
            if answer := self.framing.received(data):
                self._say(answer)
            await asyncio.sleep(0)  # else who has sent much would have the thread until all is read
        raise ConnectionAbortedError

    async def _show_life(self) -> None:
        while True:
            await asyncio.sleep(KEEPALIVE_S)
            self.heard = 0
            self._say(self.source.keepalive())

    def _say(self, data: bytes) -> None:
        """Let data be written before the next message, as only one task may write."""
        self.before += data
        self.stirred.set()

    async def _write(self, data: bytes) -> None:
        """Write data; raises `OSError`, also if the client does not take a piece of it in time."""
        self.is_whole = False
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            async with asyncio.timeout(KEEPALIVE_S):
                await asyncio.get_running_loop().sock_sendall(self.connection, piece)
            self.sent += len(piece)
        self.is_whole = True

    def end(self) -> None:
        """Close the connection, and log the one line of this stream."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()
        ms = round((clock.monotonic_s() - self.begun_s) * 1000)
        log.info("stream", extra={"fields": self.fields | {"bytes": self.sent, "messages": self.messages, "ms": ms}})


class Hub:
    """All open streams, and the thread that serves them."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.lock = threading.Lock()
        self.streams = list[Stream]()
        self.ended = list[Source]()  # those of streams that have just ended
        self.woken = deque[int]()  # the owners that there are new messages for
        self.stirred = asyncio.Event()  # there is something to do
        self.turn = asyncio.Lock()  # of those that have much: one in each round of the loop, so that rounds are short
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None
        self.loop: asyncio.AbstractEventLoop  # the thread's, made with it: a fork must not share it
        self.tasks = dict[Stream, asyncio.Task[None]]()  # the thread's, for each stream, the oldest first

    # --- called by other threads ---

    def has_room(self, source: Source) -> bool:
        """Whether there is room for another stream."""
        present = [stream.source for stream in self.streams.copy()]
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
                return stream.end()
            if self.thread is None:
                self.loop = asyncio.new_event_loop()
                run = self.loop.run_until_complete
                thread = threading.Thread(target=lambda: run(self._run()), name="streams", daemon=True)
                thread.start()  # fails if the system allows no more threads
                self.thread = thread
            self.streams.append(stream)
            self.loop.call_soon_threadsafe(self._begin, stream)
        for owner in stream.source.owners:
            self.wake(owner)
        return None

    def wake(self, owner: int) -> None:
        """Look at once for new messages for the streams of this owner. Without streams this costs nothing."""
        if self.streams:
            self.woken.append(owner)
            self.loop.call_soon_threadsafe(self.stirred.set)

    def stop(self) -> None:
        """End all streams soon; a signal's handler may call it, so it takes no lock."""
        self.stopping.set()
        if self.thread:
            self.loop.call_soon_threadsafe(self.stirred.set)

    def finish(self) -> None:
        """End all streams, and wait until that is done."""
        self.stop()
        if self.thread:
            self.thread.join(STOPPED_WITHIN_S)

    # --- the thread ---

    async def _run(self) -> None:
        looked_s = clock.monotonic_s()
        while not self.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOKED_EVERY_S if self.streams else None):
                    await self.stirred.wait()
            self.stirred.clear()
            woken = {self.woken.popleft() for _ in range(len(self.woken))}
            self._look([one for one in self.tasks if not woken.isdisjoint(one.source.owners)], is_woken=True)
            if clock.monotonic_s() - looked_s >= LOOKED_EVERY_S:
                looked_s = clock.monotonic_s()
                self._look([*self.tasks], is_woken=False)
            self._settle()
        with self.lock:  # a thread that held it has opened its stream; the next one finds no room
            await asyncio.sleep(0)  # so that what was opened has begun
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        self._settle()

    def _begin(self, stream: Stream) -> None:
        """Serve a stream until it ends; of each of its keys the oldest makes room."""
        serving = stream.serve(self.stopping.wait, self.stirred.set, self.turn)
        task = self.tasks[stream] = self.loop.create_task(serving)
        task.add_done_callback(lambda _: self._end(stream))
        for key in stream.source.keys:
            for oldest in [one for one in self.tasks if key in one.source.keys][:-MAX_STREAMS_OF_KEY]:
                self.tasks[oldest].cancel()

    def _end(self, stream: Stream) -> None:
        stream.end()
        self.streams.remove(stream)
        del self.tasks[stream]
        self.ended.append(stream.source)
        self.stirred.set()

    def _look(self, streams: list[Stream], is_woken: bool) -> None:
        """Find new messages for these streams, and end those whose source is over."""
        over = list[Source]()
        try:
            over += self.feed.look([one.source for one in streams], is_woken) if streams else ()
        except Exception as error:  # the database may answer again a second later
            log_fault("What is new for the streams could not be read", error)
        for stream in streams:
            if stream.source in over:
                self.tasks[stream].cancel()
            stream.stirred.set()

    def _settle(self) -> None:
        """Write down what all streams have taken, also those that have just ended, once no client waits for it."""
        ended, self.ended = self.ended, []
        try:
            self.feed.settle([*ended, *(stream.source for stream in self.tasks)])
        except Exception as error:  # they stay as they are, and are written again when the client comes back
            log_fault("The receipts of a stream could not be written", error)
        if not self.tasks:
            self.feed.close()
