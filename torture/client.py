"""What the measurements share: a service with accounts, raw connections, a browser, process statistics."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.support.server import BIN, ROOT, Server, bearer, wait_until
from torture.figure import Figure

LOGGED_FAULT = re.compile(
    r"Traceback \(most recent| failed: |\[ERROR\]|\[CRITICAL\]| ERROR |\"level\": \"(?:error|critical)"
)
PASSWORD = "a long enough password"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
observers: list[Callable[[str, "Answer"], None]] = []  # called with each request's target and answer
CSRF = re.compile(r'<meta name="csrf" content="([^"]*)">')


class Answer(NamedTuple):
    """An answer as it came over the socket."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    took_s: float = 0.0

    def header(self, name: str) -> str:
        """The first header with that name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Connection:
    """A socket to the service that keeps what it has read beyond the end of an answer."""

    def __init__(self, port: int, timeout: float = 20) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port, self.buffer = port, b""
        self.before: object = None  # the latest request
        self.was_reset = False

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send everything; it is no error if the peer has answered and closed already."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def half_close(self) -> None:
        """Shut down the sending side."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def _more(self) -> bool:
        try:
            data = self.socket.recv(65_536)
        except ConnectionResetError:
            self.was_reset = True  # an answer may be lost with the reset
            return False
        self.buffer += data
        return bool(data)

    def answer(self, is_head: bool = False) -> Answer | None:
        """The next final answer, or None if the connection ends without one."""
        while True:
            while b"\r\n\r\n" not in self.buffer:
                if not self._more():
                    return None
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
            status = int(first.split(" ")[1])
            if status >= 200:
                return self._with_body(Answer(status, headers, b""), is_head or status in (204, 304))

    def _with_body(self, answer: Answer, is_empty: bool) -> Answer:
        if is_empty:
            return answer
        length = answer.header("Content-Length")
        while len(self.buffer) < int(length) if length else True:
            if not self._more():
                break
        size = int(length) if length else len(self.buffer)
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return answer._replace(body=body)


def raw(port: int, data: bytes, half_close: bool = True, timeout: float = 20) -> Answer | None:
    """Send bytes on a new connection; returns the one answer."""
    connection = Connection(port, timeout)
    try:
        connection.send(data)
        if half_close:
            connection.half_close()
        answer = connection.answer(data.startswith(b"HEAD "))
        if answer:
            _tell_observers("", answer)
        return answer
    except TimeoutError:
        return None
    finally:
        connection.close()


def asked(
    port: int, method: str, path: str, body: Any = None, key: str = "", timeout: float = 20, **more: str
) -> Answer:
    """Send one request on a new connection. `more` are headers, with `_` for `-`."""
    headers = {**bearer(key), **{name.replace("_", "-"): value for name, value in more.items()}}
    data = json.dumps(body) if isinstance(body, dict | list) else body
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        seen = Answer(answer.status, answer.getheaders(), answer.read(), time.perf_counter() - began)
        _tell_observers(path, seen)
        return seen
    finally:
        connection.close()


def _tell_observers(target: str, answer: Answer) -> None:
    for observer in observers:
        observer(target, answer)


class Browser:
    """A browser without JavaScript: its cookie, and the token of the page it saw last."""

    def __init__(self, port: int) -> None:
        self.port, self.cookie, self.csrf = port, "", ""

    def get(self, path: str) -> Answer:
        """Open a page."""
        return self._seen(asked(self.port, "GET", path, Cookie=self.cookie))

    def form(self, path: str, **fields: str) -> Answer:
        """Submit a form."""
        kind = "application/x-www-form-urlencoded"
        headers = {"Cookie": self.cookie, "X_CSRF_Token": self.csrf, "Content_Type": kind}
        return self._seen(asked(self.port, "POST", path, urlencode(fields), **headers))

    def script(self, path: str, body: Any) -> Answer:
        """Send what a page's script sends."""
        headers = {"Cookie": self.cookie, "X_CSRF_Token": self.csrf, "Content_Type": "application/json"}
        return self._seen(asked(self.port, "POST", path, body, **headers))

    def sign_in(self, email: str, password: str = PASSWORD) -> "Browser":
        """Sign in and open the first page."""
        self.get("/app/login")
        answer = self.form("/app/login", email=email, password=password)
        assert answer.status == 303, answer.text
        self.get("/app/devices")
        return self

    def _seen(self, answer: Answer) -> Answer:
        for name, value in answer.headers:
            if name.lower() == "set-cookie":
                self.cookie = value.partition(";")[0]
        match = CSRF.search(answer.text)
        self.csrf = match[1] if match else self.csrf
        return answer


def command(server: Server, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of the service's command line."""
    return subprocess.run(
        [BIN / "flask", *args],
        env=server.environ,
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


def account(server: Server, email: str, plan: str = "scale") -> str:
    """Create an account with PASSWORD; returns a key."""
    made = command(server, "account", "create", email, "--plan", plan, "--password-stdin", stdin=PASSWORD)
    assert made.returncode == 0, made.stderr
    return command(server, "key", "create", email, "first").stdout.strip()


@contextmanager
def started(scratch: Path, name: str, **environ: str) -> Iterator[Server]:
    """Start the service on its own directory, and wait until it is ready."""
    directory = scratch / name
    directory.mkdir()
    server = Server(directory / "data", **environ)
    try:
        yield server.wait_until_ready()
    finally:
        if server.process.poll() is None:
            server.kill()


def alerts_of(browser: Browser, count: int) -> list[tuple[str, str]]:
    """Create alerts in the web app; the id and short code of each."""
    made = []
    for number in range(count):
        location = browser.form("/app/alerts/new", preset="", name=f"alert {number}").header("Location")
        code = re.search(r"/p/([0-9A-Za-z]{7})\b", browser.get(location).text)
        assert code, location
        made.append((location.rpartition("/")[2], code[1]))
    return made


def new_keys(server: Server, key: str, count: int) -> list[str]:
    """Create more keys for the key's account."""
    made = [asked(server.port, "POST", "/api/v1/api-keys/generate", {"name": f"k{n}"}, key) for n in range(count)]
    return [answer.json["apiKey"]["fullKey"] for answer in made]


def send(server: Server, key: str, title: str = "t", body: str = "b", timeout: float = 20) -> Answer:
    """Send a notification."""
    return asked(server.port, "POST", "/api/v1/notifications/send", {"title": title, "body": body}, key, timeout)


# --- processes ----------------------------------------------------------------------------------------------


def worker_pid(server: Server) -> int:
    """The process id of the worker."""

    def children() -> list[str]:
        path = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        return path.read_text().split()

    return int(wait_until(children)[0])


def cpu_s(pid: int) -> float:
    """The CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mb(pid: int, name: str = "VmRSS") -> float:
    """The memory of a process; `VmHWM` is its peak."""
    match = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def forget_peak(pid: int) -> None:
    """Reset the peak VmHWM."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def logged_faults(server: Server) -> Figure:
    """A row about errors in the log."""
    found = [match.start() for match in LOGGED_FAULT.finditer(server.log)]
    for place in found[:3]:
        tell("in the log", server.log[max(0, place - 200) : place + 1500])
    return Figure("errors in the log", "0", str(len(found)), not found)


# --- numbers ------------------------------------------------------------------------------------------------


def percentile(values: Iterable[float], share: float) -> float:
    """The percentile `share` (0 to 1) of the values; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def ms(seconds: float) -> str:
    """A time, formatted for people."""
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def counted(values: Iterable[Any]) -> str:
    """How often each value occurs."""
    counts = dict[Any, int]()
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return ", ".join(f"{value}: {count}" for value, count in sorted(counts.items(), key=str)) or "none"


def tell(what: str, detail: object) -> None:
    """Print a finding in full, beside the table."""
    print(f"    {what}: {detail}", file=sys.stderr, flush=True)


def strict_json(body: bytes) -> bool:
    """Whether it is JSON, without NaN and Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(body.decode("utf-8"), parse_constant=refuse)
    except ValueError:
        return False
    return True


def head(method: str, path: str, headers: Mapping[str, str] | Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """The bytes of a request."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in pairs)]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body
