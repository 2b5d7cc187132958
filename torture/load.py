"""The load of all parts: single requests, threads that repeat their work, and attackers in a process of their own."""

import http.client
import json
import multiprocessing
import os
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from tests.support.proxies import Proxy
from tests.support.server import Server, bearer, in_threads

SEND = "/api/v1/notifications/send"
METRICS = "/api/webhooks/custom"
ERROR = {"ok": bool, "error": str, "code": str, "statusCode": int}
BATCH = 20  # metrics per request
PAUSE_S = 0.08  # between two sends of a client: it stays below a key's 1,000 a minute
FAST = 1_048_576  # bytes between two pauses of an attacker that reads; others read less, or 0
READ_EVERY_S = 0.05
MAX_P99_S = 0.25  # of others' sends beside an attacker
GIVES_UP_S, AGAIN_S = 5.0, 1.0  # one that does not read asks again after the first, others after the second
STATUSES = 600


class Answer(NamedTuple):
    """The result of a request and its duration; status 0 if there was no answer."""

    status: int
    text: str
    began: float
    seconds: float

    @property
    def json(self) -> Any:
        """The body, or None if it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @property
    def is_error_in_shape(self) -> bool:
        """Whether it is a 5xx with a REST error body of the same status."""
        body = self.json
        fits = isinstance(body, dict) and all(isinstance(body.get(name), kind) for name, kind in ERROR.items())
        return self.status >= 500 and fits and body["statusCode"] == self.status and body["ok"] is False


# --- single requests ----------------------------------------------------------------------------------------


def asked(
    server: Server | Proxy, method: str, path: str, body: Any = None, key: str | None = None, **more: Any
) -> Answer:
    """Send one request on a new connection, with `body` as JSON. No answer counts as status 0."""
    data = body if body is None or isinstance(body, str) else json.dumps(body)
    headers = bearer(key) | more.pop("headers", {})
    began = time.monotonic()
    try:
        answer = server.request(method, path, data, headers, **more)
        status, text = answer.status, answer.text
    except (OSError, http.client.HTTPException, ValueError) as error:
        status, text = 0, type(error).__name__
    return Answer(status, text, began, time.monotonic() - began)


def send(server: Server | Proxy, key: str, title: str = "t", body: str = "b", **more: Any) -> Answer:
    """Send a notification through the REST API."""
    return asked(server, "POST", SEND, {"title": title, "body": body}, key, **more)


def happen(server: Server, code: str, message: str = "m", **more: Any) -> Answer:
    """Send an event to an alert's address."""
    return asked(server, "POST", f"/p/{code}", {"message": message}, **more)


def measure(server: Server, key: str, project: str, **more: Any) -> Answer:
    """Store a batch of metrics in a new project."""
    metrics = [{"metricId": f"m{n}", "metricName": "M", "value": n} for n in range(BATCH)]
    return asked(server, "POST", METRICS, {"projectId": project, "metrics": metrics}, key, **more)


def new_key(server: Server, key: str, name: str) -> dict[str, str]:
    """Another key of the account that has this one, or nothing if it was refused."""
    answer = asked(server, "POST", "/api/v1/api-keys/generate", {"name": name}, key)
    return answer.json["apiKey"] if answer.status == 201 else {}


def stored_id(answer: Answer) -> str | None:
    """The notification's id in a 200 of a send or a webhook, or None."""
    body = answer.json if answer.status == 200 else None
    if not isinstance(body, dict):
        return None
    return body.get("notificationId") or body.get("notification", {}).get("id")


def raw_request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """The bytes of a request."""
    headers = {"Host": "localhost", **headers} | ({"Content-Length": str(len(body))} if body else {})
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


# --- threads ------------------------------------------------------------------------------------------------


def together(works: Sequence[Callable[[], object]]) -> None:
    """Do all of these at the same time, and wait for their ends."""
    for thread in in_threads(len(works), lambda number: works[number]()):
        thread.join()


class Crowd:
    """Threads that repeat their work until they are told to stop; keeps the first error of each."""

    def __init__(self, *works: Callable[[], object]) -> None:
        self.ending = threading.Event()
        self.faults: list[BaseException] = []
        self.threads = [threading.Thread(target=self._repeat, args=(work,), daemon=True) for work in works]
        for thread in self.threads:
            thread.start()

    def _repeat(self, work: Callable[[], object]) -> None:
        try:
            while not self.ending.is_set():
                work()
        except Exception as fault:
            self.faults.append(fault)

    def stop(self) -> None:
        """Let each thread finish."""
        self.ending.set()
        for thread in self.threads:
            thread.join(60)

    def end(self) -> None:
        """Let each thread finish; raise an error that one of them had."""
        self.stop()
        if self.faults:
            raise self.faults[0]


class Watch:
    """One client that repeats a request (`_repeat`) as long as the block lasts, and its answers."""

    def __init__(self, server: Server) -> None:
        self.server, self.answers = server, list[Answer]()

    def __enter__(self) -> Self:
        self.crowd = Crowd(self._repeat)
        return self

    def __exit__(self, *_: object) -> None:
        self.crowd.end()

    @property
    def times(self) -> list[float]:
        """How long each answer took."""
        return [one.seconds for one in self.answers]

    @property
    def told(self) -> str:
        """The answers, for people."""
        return f"{latency(self.times)}; {counted(one.status for one in self.answers)}"


class HealthWatch(Watch):
    """Requests /healthz every 100 ms."""

    def _repeat(self) -> None:
        self.answers.append(asked(self.server, "GET", "/healthz"))
        time.sleep(max(0.0, 0.1 - self.answers[-1].seconds))


class Others(Watch):
    """What others notice: a client that keeps sending, with these keys in turn."""

    def __init__(self, server: Server, *keys: str) -> None:
        super().__init__(server)
        self.keys = keys

    def _repeat(self) -> None:
        self.answers.append(send(self.server, self.keys[len(self.answers) % len(self.keys)]))
        time.sleep(PAUSE_S)

    @property
    def are_served(self) -> bool:
        """Whether every send was stored, and soon."""
        return {one.status for one in self.answers} == {200} and percentile(self.times, 0.99) < MAX_P99_S


# --- attackers ----------------------------------------------------------------------------------------------


class Flood:
    """Attackers in a process of their own, as long as the block lasts.

    Each thread sends its requests in turn, each on a new connection, and reads `pace` bytes of the answers at a time.
    Then it pauses for `pause_s` and begins again.
    """

    def __init__(
        self,
        port: int,
        threads: Sequence[list[bytes]],
        pace: int = FAST,
        context: ssl.SSLContext | None = None,
        pause_s: float = AGAIN_S,
    ) -> None:
        self.port, self.threads, self.pace, self.context = port, threads, pace, context
        self.pause_s = pause_s
        self.counts = multiprocessing.Array("l", STATUSES)

    def __enter__(self) -> "Flood":
        self.process = multiprocessing.Process(target=self._attack, daemon=True)
        self.process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.join()

    @property
    def statuses(self) -> Counter[int]:
        """How often each status was answered."""
        return Counter({status: count for status, count in enumerate(self.counts) if count})

    def _attack(self) -> None:
        os.nice(19)  # real attackers have machines of their own: do not take the service's CPU
        for thread in in_threads(len(self.threads), lambda place: self._repeat(self.threads[place])):
            thread.join()

    def _repeat(self, requests: list[bytes]) -> None:
        while True:
            for request in requests:
                with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), GIVES_UP_S) as plain:
                    self._ask(plain, request)
            time.sleep(self.pause_s)

    def _ask(self, plain: socket.socket, request: bytes) -> None:
        one = self.context.wrap_socket(plain, server_hostname="localhost") if self.context else plain
        one.sendall(request)
        begun = one.recv(self.pace) if self.pace else b""
        if begun.startswith(b"HTTP/1.1 "):
            with self.counts.get_lock():
                self.counts[int(begun[9:12])] += 1
        while begun and one.recv(self.pace):
            time.sleep(READ_EVERY_S if self.pace < FAST else 0)
        time.sleep(0 if self.pace else GIVES_UP_S)


# --- numbers ------------------------------------------------------------------------------------------------


def percentile(values: Iterable[float], share: float) -> float:
    """The percentile `share` (0 to 1) of the values; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def ms(seconds: float) -> str:
    """A time, formatted for people."""
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def latency(seconds: Iterable[float]) -> str:
    """The number, the median, the 99th percentile and the maximum of times, for people."""
    times = list(seconds)
    parts = [percentile(times, 0.5), percentile(times, 0.99), max(times, default=0.0)]
    return f"{len(times)} times: p50 {ms(parts[0])}, p99 {ms(parts[1])}, worst {ms(parts[2])}"


def counted(values: Iterable[Any]) -> str:
    """How often each value occurs."""
    return ", ".join(f"{value}: {count}" for value, count in sorted(Counter(values).items(), key=str)) or "none"
