"""Sockets that send nothing, half a header or half a body: how long one holds a thread, and what others notice.

The proxies run with the files of deploy/, on other ports and with a certificate made here.
"""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.proxies import CLIENT, PROXIES, Proxy, program
from tests.support.server import OWNER, Server, wait_until
from torture.figure import Figure
from torture.load import asked, ms, send
from torture.service import seed, started

HELD_S = 25.0
OF_EACH = 50
DRIP_S = 2.0
GOAL_S, GOAL_OF_PROXY_S = 10.0, 1.0
PATIENCE_S = 45.0
WHAT = f"/healthz and a send with {3 * OF_EACH} slow sockets for {HELD_S:.0f} s"


class Slow(NamedTuple):
    """A way to be slow: what is sent at first, and then byte by byte."""

    name: str
    begin: bytes
    byte: bytes


def ways(key: str) -> list[Slow]:
    """All ways, each with and without a byte now and then."""
    header = b"POST /api/v1/notifications/send HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
    sized = f"Authorization: Bearer {key}\r\nContent-Length: 1000000\r\n\r\n".encode()
    chunked = f"Authorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\nfff0\r\n".encode()
    event = b"POST /p/0000000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{"
    return [
        Slow("silent", b"", b""),
        Slow("half a header", header, b""),
        Slow("half a header, dripping", header, b"x"),
        Slow("half a long header", header + b"x\r\nX-Slow: ".join(3 * [b"x" * 8_000]), b"x"),
        Slow("half a body", header + b"y\r\n" + sized + b'{"title": "', b""),
        Slow("half a body, dripping", header + b"y\r\n" + sized + b'{"title": "', b"x"),
        Slow("half a chunk, dripping", header + b"y\r\n" + chunked + b'{"title": "', b"x"),
        Slow("half a body for an unknown code, dripping", event, b" "),
    ]


def figures(scratch: Path) -> Iterator[Figure]:
    """One slow socket on one thread, then 150 of them directly and through the proxies."""
    yield from threads_kept(scratch)
    (account,) = seed(scratch / "data", [OWNER])
    with started(scratch / "data", BASE_URL="https://localhost") as server:
        key = account.keys[0]
        must = f"each answered within {GOAL_S:.0f} s: only those with a key and half of a long body keep a thread"
        yield crowd("directly", must, GOAL_S, server, key)
        for kind in PROXIES:
            must = f"each answered with 200 within {GOAL_OF_PROXY_S:.0f} s"
            if program(kind):
                with behind(kind, scratch / kind, server.port) as proxy:
                    yield crowd(f"through {kind}", must, GOAL_OF_PROXY_S, proxy, key)
            else:
                yield Figure(f"{WHAT}, through {kind}", must, f"{kind} is not there", None)


# --- one socket, one thread ---------------------------------------------------------------------------------


def threads_kept(scratch: Path) -> Iterator[Figure]:
    """With THREADS=1: how long a fresh request waits behind one slow socket."""
    directories = [scratch / f"one{place}" / "data" for place in range(len(ways("")))]
    keys = [seed(directory, [OWNER])[0].keys[0] for directory in directories]
    every = [ways(key)[place] for place, key in enumerate(keys)]
    with ExitStack() as stack:
        servers = [stack.enter_context(started(directory, THREADS="1")) for directory in directories]
        with ThreadPoolExecutor(len(servers)) as threads:
            waits = list(threads.map(waited, servers, every))
    for way, wait_s in zip(every, waits, strict=True):
        seen = f"more than {PATIENCE_S:.0f} s" if wait_s >= PATIENCE_S else ms(wait_s)
        yield Figure(f"a thread is kept by one socket: {way.name}", "at most 10 s", seen, wait_s <= GOAL_S)


def waited(server: Server, way: Slow) -> float:
    """How long a fresh request waits behind one such socket."""
    asked(server, "GET", "/healthz")
    with SlowSockets(server, [way]):
        time.sleep(0.5)
        return asked(server, "GET", "/healthz", timeout=PATIENCE_S).seconds


class SlowSockets:
    """Slow sockets. By themselves, they are not opened again after they were closed."""

    def __init__(self, target: Server | Proxy, slow: list[Slow], is_stubborn: bool = False) -> None:
        self.port, self.context, self.address = target.port, None, "127.0.0.1"
        if isinstance(target, Proxy):
            self.context, self.address = target.context(), CLIENT  # as those that ask it meanwhile
        self.slow, self.is_stubborn = slow, is_stubborn
        self.sockets: list[socket.socket | None] = [None] * len(slow)
        self.opened, self.ending = 0, threading.Event()
        self.thread = threading.Thread(target=self._hold)

    def __enter__(self) -> "SlowSockets":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()

    def _hold(self) -> None:
        """Open them all and drip until told to stop."""
        for place in range(len(self.slow)):
            self._open(place)
        while not self.ending.wait(DRIP_S):
            for place, way in enumerate(self.slow):
                self._drip(place, way)
        for one in self.sockets:
            if one:
                one.close()

    def _open(self, place: int) -> None:
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", self.port), 5, (self.address, 0))
            self.sockets[place] = one
            self.opened += 1
            if self.context and self.slow[place].begin:
                self.sockets[place] = one = self.context.wrap_socket(one, server_hostname="localhost")
            one.sendall(self.slow[place].begin)

    def _drip(self, place: int, way: Slow) -> None:
        one = self.sockets[place]
        if one is None or self._is_closed(one):
            if self.is_stubborn:
                self._open(place)
            return
        with suppress(OSError):
            one.sendall(way.byte)

    def _is_closed(self, one: socket.socket) -> bool:
        one.setblocking(False)
        try:
            return one.recv(4096) == b""
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True
        finally:
            one.settimeout(5)


# --- many of them -------------------------------------------------------------------------------------------


def crowd(where: str, must: str, goal_s: float, target: Server | Proxy, key: str) -> Figure:
    """150 slow sockets, reopened when they are closed, and fresh requests meanwhile."""
    every = ways(key)
    mixed = [every[0]] * OF_EACH + (every[1:3] * OF_EACH)[:OF_EACH] + (every[3:6] * OF_EACH)[:OF_EACH]
    before, times = fresh(target, key), list[float]()
    with SlowSockets(target, mixed, is_stubborn=True) as slow:
        ends = time.monotonic() + HELD_S
        while time.monotonic() < ends:
            times += fresh(target, key)
            time.sleep(0.4)
    seen = f"at most {ms(max(times))} ({len(times)} requests; {ms(max(before))} before; {slow.opened} sockets opened)"
    return Figure(f"{WHAT}, {where}", must, seen, max(times) < goal_s)


def fresh(target: Server | Proxy, key: str) -> list[float]:
    """The latency of /healthz and of a send, each on a new connection; PATIENCE_S if it is not a 200."""
    answers = [asked(target, "GET", "/healthz"), send(target, key)]
    return [one.seconds if one.status == 200 else PATIENCE_S for one in answers]


@contextmanager
def behind(kind: str, directory: Path, upstream: int, *changes: tuple[str, str]) -> Iterator[Proxy]:
    """A proxy in front of a service: nginx or Caddy, with these changes of their files in deploy/."""
    directory.mkdir()
    with closing(Proxy(kind, directory, upstream, *changes, name="localhost")) as proxy:
        wait_until(proxy.is_ready)
        yield proxy
