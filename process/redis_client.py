"""Redis, where the processes of a service keep what they share: scripts, answered within a quarter of a second.

A thread of its own opens the connections, so no request waits for a name, a handshake or a password. When Redis
fails, the same thread tries again each second, and nobody else waits for it meanwhile. redis-py is imported when a
client is made. Must not know what the scripts do. No error of Redis is shown whole: it may quote what was sent.
"""

import hashlib
import logging
import struct
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from socket import SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET
from ssl import SSLSocket
from typing import Any, NamedTuple

import certifi

from process import clock

TIMEOUT_S = 0.25  # of a request, all together
IN_TIME = 0.9  # of TIMEOUT_S: with this share left the usual limit stays, since to set another takes two calls more
TRIED_EVERY_S = 1.0
LOOKED_AT_AFTER_S = 1.0  # Redis, or a proxy before it, may have closed a connection that was idle for so long
MAX_CONNECTIONS = 32
PROBE_LIFE_MS = 60_000

log = logging.getLogger("pocketbell")


class Script(NamedTuple):
    """A Lua script, and the name that Redis gives it."""

    text: str
    sha1: str


def script(text: str) -> Script:
    """The script with this text."""
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


PROBE = script("return redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])")  # writes: a replica or a full Redis refuses


class RedisClient:
    """The connections to one Redis. `name` keeps the keys of one database apart from others' on the same Redis."""

    def __init__(self, url: str, name: str, verifies: bool = True, ca_file: str | None = None) -> None:
        from redis.backoff import NoBackoff
        from redis.connection import Connection, SSLConnection, parse_url
        from redis.exceptions import NoScriptError
        from redis.retry import Retry

        options = parse_url(url)  # type: ignore[no-untyped-call]
        kind = options.pop("connection_class", Connection)
        self._kind = _bounded(kind)
        if kind is SSLConnection:
            options |= {"ssl_cert_reqs": "required" if verifies else "none"}
            options |= {"ssl_ca_certs": ca_file or certifi.where()} if verifies else {}
        # redis-py 8.1 tries three times and waits 5 s each time unless told otherwise.
        self._options = options | {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
        self._options |= {"retry": Retry(NoBackoff(), 0), "protocol": 2, "driver_info": None}
        self._no_script = NoScriptError
        self._prefix = f"{{pocketbell:{name}}}:"  # the braces keep all keys on one node of a cluster
        self._idle: deque[tuple[Any, float]] = deque()
        self._lock = threading.Lock()
        self._freed, self._wanted = threading.Condition(self._lock), threading.Condition(self._lock)
        self._open = self._waiting = 0
        self._opener: threading.Thread | None = None
        self._is_closed = False
        self.is_away = False

    def key(self, *parts: str | int) -> str:
        """The key of something shared."""
        return self._prefix + ":".join(map(str, parts))

    def run(self, script: Script, keys: Iterable[str], values: Iterable[str | int]) -> Any:
        """What the script returns, as bytes or lists of bytes; None if Redis does not answer in time, or is away."""
        if self.is_away:
            return None
        until_s = clock.monotonic_s() + TIMEOUT_S
        connection = self._take(until_s)
        if connection is None:
            return None
        try:
            answer = self._ask(connection, script, list(keys), values, until_s)
        except Exception as error:
            self._drop(connection)
            self._fail(error)
            return None
        self._give(connection)
        return answer

    def fault(self) -> str | None:
        """What keeps this process from using Redis now, in few words; None if nothing does. May take a second."""
        try:
            self._drop(self._connect())
        except Exception as error:
            return _reason(error)
        return None

    def close(self) -> None:
        """End the thread and all connections; the client answers None from now on."""
        with self._lock:
            self._is_closed = self.is_away = True
            self._wanted.notify_all()
            self._freed.notify_all()
        self._drop_idle()

    # --- connections ----------------------------------------------------------------------------------------

    def _ask(self, connection: Any, script: Script, keys: list[str], values: Iterable[Any], until_s: float) -> Any:
        """Run the script on the connection; once more with its text, if Redis does not have it yet, or no longer."""
        parts = [str(part) for part in (len(keys), *keys, *values)]
        try:
            return self._exchange(connection, ["EVALSHA", script.sha1, *parts], until_s)
        except self._no_script:
            return self._exchange(connection, ["EVAL", script.text, *parts], until_s)

    def _exchange(self, connection: Any, command: list[str], until_s: float) -> Any:
        socket = connection.socket
        begin = socket.ask(_packed(command), until_s)
        head, _, text = begin.partition(b"\r\n")
        if head[:1] == b"$" and head[1:].isdigit() and len(text) == int(head[1:]) + 2:
            return text[:-2]  # one text, which is all that most scripts answer
        socket.unread, socket.until_s = begin, until_s
        try:
            return connection.read_response(disable_decoding=True)
        finally:
            socket.until_s = None
            with suppress(OSError):  # it is closed
                socket.limit_calls()

    def _take(self, until_s: float) -> Any:
        """A connection that is free; None if none becomes free in time."""
        while True:
            try:
                connection, since_s = self._idle.pop()
            except IndexError:
                if not self._wait(until_s - clock.monotonic_s()):
                    return None
                continue
            if clock.monotonic_s() - since_s < LOOKED_AT_AFTER_S or self._is_quiet(connection):
                return connection
            self._drop(connection)

    def _wait(self, for_s: float) -> bool:
        """Wait until a connection is free, and have one opened; whether there is one."""
        with self._lock:
            self._start_opener()
            self._waiting += 1
            self._wanted.notify()
            try:
                if self._freed.wait_for(lambda: self._idle or self.is_away, for_s):
                    return not self.is_away
            finally:
                self._waiting -= 1
            is_unreachable = not self._open
        if is_unreachable:
            self._fail(TimeoutError())
        return False

    def _is_quiet(self, connection: Any) -> bool:
        try:
            if connection.can_read():
                return False
            connection.socket.limit_calls()
        except Exception:
            return False  # it is closed
        return True

    def _give(self, connection: Any) -> None:
        if self.is_away:
            self._drop(connection)
            return
        self._idle.append((connection, clock.monotonic_s()))
        if self._waiting:
            with self._lock:
                self._freed.notify()

    def _drop(self, connection: Any) -> None:
        with self._lock:
            self._open -= 1
        connection.disconnect()

    def _drop_idle(self) -> None:
        while self._idle:
            self._drop(self._idle.pop()[0])

    def _fail(self, error: Exception) -> None:
        """Leave Redis alone until the thread has reached it again."""
        with self._lock:
            is_news, self.is_away = not self.is_away, True
            self._start_opener()
            self._freed.notify_all()
            self._wanted.notify()
        if is_news:
            log.warning(f"Redis cannot be used: {_reason(error)}. This process counts by itself until it can.")
        self._drop_idle()

    # --- the thread that opens them -------------------------------------------------------------------------

    def _start_opener(self) -> None:
        if self._opener is None:
            self._opener = threading.Thread(target=self._open_connections, daemon=True)
            self._opener.start()

    def _open_connections(self) -> None:
        pause = threading.Event()
        while self._is_needed():
            if self.is_away:
                pause.wait(TRIED_EVERY_S)
            try:
                connection = self._connect()
            except Exception as error:
                self._fail(error)
                continue
            self._use(connection)

    def _is_needed(self) -> bool:
        """Wait until another connection is wanted; False at the end."""
        with self._lock:
            self._wanted.wait_for(lambda: self._is_closed or self.is_away or self._lacks_one())
            return not self._is_closed

    def _lacks_one(self) -> bool:
        return self._waiting > len(self._idle) and self._open < MAX_CONNECTIONS

    def _connect(self) -> Any:
        """A new connection to a Redis that takes what is written."""
        connection = self._kind(**self._options)
        try:
            connection.connect()
            connection.socket.limit_calls()
            until_s = clock.monotonic_s() + TIMEOUT_S
            self._ask(connection, PROBE, [self.key("probe")], [PROBE_LIFE_MS], until_s)
        except BaseException:
            connection.disconnect()
            raise
        with self._lock:
            self._open += 1
        return connection

    def _use(self, connection: Any) -> None:
        with self._lock:
            if self._is_closed:
                is_back = False
            else:
                is_back, self.is_away = self.is_away, False
        if is_back:
            log.warning("Redis can be used again.")
        self._give(connection)


class _Socket:
    """A socket whose reads all end at one deadline: redis-py begins its timeout anew with each read."""

    def __init__(self, socket: Any) -> None:
        self._socket, self.until_s, self.unread = socket, None, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def limit_calls(self) -> None:
        """Let each call fail after the time limit; the system does that, since Python asks it before each call.

        Python's TLS would begin again.
        """
        self._socket.settimeout(TIMEOUT_S if isinstance(self._socket, SSLSocket) else None)
        limit = struct.pack("ll", *divmod(int(TIMEOUT_S * 1e6), 1_000_000))
        try:
            for which in (SO_RCVTIMEO, SO_SNDTIMEO):
                self._socket.setsockopt(SOL_SOCKET, which, limit)
        except OSError:  # a 32-bit system whose times have 64 bits
            self._socket.settimeout(TIMEOUT_S)

    def ask(self, command: bytes, until_s: float) -> bytes:
        """Send a command and return the beginning of the answer, mostly all of it; `TimeoutError` if none comes."""
        left_s = until_s - clock.monotonic_s()
        is_late = left_s < TIMEOUT_S * IN_TIME  # it has waited for a connection, or for an answer before this one
        if is_late:
            self._socket.settimeout(max(0.001, left_s))
        try:
            self._socket.sendall(command)
            return bytes(self._socket.recv(65_536))
        except BlockingIOError:
            raise TimeoutError from None
        finally:
            if is_late:
                self.limit_calls()

    def recv(self, size: int) -> bytes:
        if self.unread:
            unread, self.unread = self.unread, b""
            return unread
        if self.until_s is not None:
            self._socket.settimeout(max(0.001, self.until_s - clock.monotonic_s()))
        return bytes(self._socket.recv(size))


def _bounded(kind: Any) -> Any:
    """The kind of connection, with such a socket."""

    class Bounded(kind):  # type: ignore[misc]
        def _connect(self) -> _Socket:
            self.socket = _Socket(super()._connect())
            return self.socket

    return Bounded


def _packed(parts: list[str]) -> bytes:
    """A command as Redis reads it: redis-py takes three times as long for that."""
    encoded = [part.encode() for part in parts]
    return b"*%d\r\n%b" % (len(parts), b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in encoded]))


def _reason(error: BaseException) -> str:
    """The reason in few words, without what was sent: Redis may quote it, and the client the address."""
    kind = type(error).__name__
    if "Timeout" in kind:
        return f"no answer within {TIMEOUT_S} s"
    cause = error.__context__ if isinstance(error.__context__, OSError) else error
    if isinstance(cause, OSError):
        return str(getattr(cause, "verify_message", None) or cause.strerror or kind)
    code = str(error).partition(" ")[0]
    return f"{kind} {code}" if code.isalpha() and code.isupper() else kind
