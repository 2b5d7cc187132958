"""Sockets that send nothing, half a header or half a body: how long one holds a thread, and what others notice.

The proxies run with the configurations in deploy/ (or in the directory DEPLOY), on other ports and with a certificate
made here.
"""

import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.certificates import Certificates, make
from tests.support.server import OWNER, ROOT, Server, bearer, free_port, wait_until
from torture.figure import Figure
from torture.load import SEND, asked, ms, raw_request, together
from torture.service import seed, started

DEPLOY = Path(os.environ.get("DEPLOY", ROOT / "deploy"))
HELD_S = 25.0
OF_EACH = 50
DRIP_S = 2.0
GOAL_S = 10.0
PATIENCE_S = 45.0
CLOSE = {"Connection": "close"}
HEALTH = raw_request("GET", "/healthz", CLOSE)


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
        Slow("half a body", header + b"y\r\n" + sized + b'{"title": "', b""),
        Slow("half a body, dripping", header + b"y\r\n" + sized + b'{"title": "', b"x"),
        Slow("half a chunk, dripping", header + b"y\r\n" + chunked + b'{"title": "', b"x"),
        Slow("half a body for an unknown code, dripping", event, b" "),
    ]


def figures(scratch: Path) -> Iterator[Figure]:
    """One slow socket on one thread, then 150 of them directly and through the proxies."""
    yield from threads_kept(scratch)
    certificates = make(scratch)
    (account,) = seed(scratch / "data", [OWNER])
    with started(scratch / "data", BASE_URL="https://localhost") as server:
        key = account.keys[0]
        must = f"each answered within {GOAL_S:.0f} s: only those with a key and half of a long body keep a thread"
        yield from crowd("directly", must, GOAL_S, server.port, key, None)
        for name, serve in (("nginx", nginx), ("caddy", caddy)):
            yield from behind(name, serve, scratch, server, certificates, key)


# --- one socket, one thread ---------------------------------------------------------------------------------


def threads_kept(scratch: Path) -> Iterator[Figure]:
    """With THREADS=1: how long a fresh request waits behind one slow socket."""
    count = len(ways(""))
    with ExitStack() as stack:
        directories = [scratch / f"one{place}" / "data" for place in range(count)]
        keys = [seed(directory, [OWNER])[0].keys[0] for directory in directories]
        servers = [stack.enter_context(started(directory, THREADS="1")) for directory in directories]
        waits = [0.0] * count

        def wait(place: int) -> None:
            waits[place] = waited(servers[place], ways(keys[place])[place])

        together([lambda place=place: wait(place) for place in range(count)])
    for way, wait_s in zip(ways(""), waits, strict=True):
        seen = f"more than {PATIENCE_S:.0f} s" if wait_s >= PATIENCE_S else ms(wait_s)
        yield Figure(f"a thread is kept by one socket: {way.name}", "at most 10 s", seen, wait_s <= GOAL_S)


def waited(server: Server, way: Slow) -> float:
    """How long a fresh request waits behind one such socket."""
    asked(server, "GET", "/healthz")
    stop = threading.Event()
    slow = SlowSockets(server.port, None, [way])
    thread = threading.Thread(target=slow.hold, args=(stop,))
    thread.start()
    time.sleep(0.5)
    took_s = asked(server, "GET", "/healthz", timeout=PATIENCE_S).seconds
    stop.set()
    thread.join()
    return took_s


class SlowSockets:
    """Slow sockets. By themselves, they are not opened again after they were closed."""

    def __init__(
        self, port: int, context: ssl.SSLContext | None, slow: list[Slow], is_stubborn: bool = False
    ) -> None:
        self.port, self.context, self.slow, self.is_stubborn = port, context, slow, is_stubborn
        self.sockets: list[socket.socket | None] = [None] * len(slow)
        self.opened = 0

    def hold(self, stop: threading.Event) -> None:
        """Open them all and drip until told to stop."""
        for place in range(len(self.slow)):
            self._open(place)
        while not stop.wait(DRIP_S):
            for place, way in enumerate(self.slow):
                self._drip(place, way)
        for one in self.sockets:
            if one:
                one.close()

    def _open(self, place: int) -> None:
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", self.port), timeout=5)
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


def crowd(
    where: str, must: str, goal_s: float, port: int, key: str, context: ssl.SSLContext | None
) -> Iterator[Figure]:
    """150 slow sockets, reopened when they are closed, and fresh requests meanwhile."""
    every = ways(key)
    mixed = [every[0]] * OF_EACH + (every[1:3] * OF_EACH)[:OF_EACH] + (every[3:6] * OF_EACH)[:OF_EACH]
    slow, stop, times = SlowSockets(port, context, mixed, is_stubborn=True), threading.Event(), list[float]()
    before = fresh(port, key, context)
    thread = threading.Thread(target=slow.hold, args=(stop,))
    thread.start()
    ends = time.monotonic() + HELD_S
    while time.monotonic() < ends:
        times += fresh(port, key, context)
        time.sleep(0.4)
    stop.set()
    thread.join()
    seen = f"at most {ms(max(times))} ({len(times)} requests; {ms(max(before))} before; {slow.opened} sockets opened)"
    what = f"/healthz and a send with {len(mixed)} slow sockets for {HELD_S:.0f} s, {where}"
    yield Figure(what, must, seen, max(times) < goal_s)


def fresh(port: int, key: str, context: ssl.SSLContext | None) -> list[float]:
    """The latency of /healthz and of a send, each on a new connection."""
    message = raw_request("POST", SEND, {**bearer(key), **CLOSE}, b'{"title": "t", "body": "b"}')
    return [timed(port, context, HEALTH), timed(port, context, message)]


def timed(port: int, context: ssl.SSLContext | None, request: bytes) -> float:
    """The time until the first bytes of the answer; PATIENCE_S if it is not a 200."""
    began = time.perf_counter()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as plain:
            one = context.wrap_socket(plain, server_hostname="localhost") if context else plain
            one.sendall(request)
            is_good = one.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        is_good = False
    return time.perf_counter() - began if is_good else PATIENCE_S


# --- through the proxies ------------------------------------------------------------------------------------


def behind(
    name: str, serve: Callable[..., object], scratch: Path, server: Server, certificates: Certificates, key: str
) -> Iterator[Figure]:
    """The same behind a proxy."""
    file = DEPLOY / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[name]
    must = "each answered with 200 within 1 s"
    missing = next(
        (what for what, is_there in ((name, shutil.which(name)), (file, file.exists())) if not is_there), None
    )
    if missing:
        what = f"/healthz and a send with {3 * OF_EACH} slow sockets for {HELD_S:.0f} s, through {name}"
        yield Figure(what, must, f"{missing} is not there", None)
        return
    context = ssl.create_default_context(cafile=certificates.ca_file)
    directory = scratch / name
    directory.mkdir()
    with serve(directory, file.read_text(), server.port, certificates) as port:  # type: ignore[attr-defined]
        wait_until(lambda: timed(port, context, HEALTH) < PATIENCE_S, 15)
        yield from crowd(f"through {name} ({file})", must, 1.0, port, key, context)


@contextmanager
def running(command: list[str], log: Path, **environ: str) -> Iterator[None]:
    """Run a proxy."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environ})
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def nginx(directory: Path, config: str, upstream: int, certificates: Certificates) -> Iterator[int]:
    """Run nginx with the project's server blocks, on loopback."""
    port, plain = free_port(), free_port()
    config = config.replace("127.0.0.1:8000", f"127.0.0.1:{upstream}").replace("push.example.org", "localhost")
    config = re.sub(r"(?m)^\s*listen \[::\].*$", "", config)
    config = re.sub(r"listen 80\b", f"listen 127.0.0.1:{plain}", config)
    config = re.sub(r"listen 443\b", f"listen 127.0.0.1:{port}", config)
    config = re.sub(r"(ssl_certificate(_key)?) [^;]*;", rf"\1 {certificates.file};", config)
    config = config.replace("/var/log/nginx", str(directory))
    paths = "".join(
        f"{kind}_temp_path {directory}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    main = f"{user}daemon off;\nworker_processes 1;\npid {directory}/pid;\nerror_log {directory}/error.log;\n"
    main += f"events {{ worker_connections 1024; }}\nhttp {{\n{paths}{config}\n}}\n"
    file = directory / "nginx.conf"
    file.write_text(main)
    with running(["nginx", "-p", str(directory), "-e", f"{directory}/first.log", "-c", str(file)], directory / "log"):
        yield port


@contextmanager
def caddy(directory: Path, config: str, upstream: int, certificates: Certificates) -> Iterator[int]:
    """Run Caddy with the project's Caddyfile, on loopback."""
    port = free_port()
    config = config.replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
    site = f"https://localhost:{port} {{\n\tbind 127.0.0.1\n\ttls {certificates.file} {certificates.file}\n"
    config = re.sub(r"(?m)^push\.example\.org \{\n", site, config)
    config = re.sub(r"(?m)^\{\n", "{\n\tadmin off\n\tauto_https disable_redirects\n", config, count=1)
    file = directory / "Caddyfile"
    file.write_text(config)
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]
    with running(command, directory / "log", XDG_DATA_HOME=str(directory), HOME=str(directory)):
        yield port
