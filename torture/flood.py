"""An attacker in its own process: many connections that send requests one after the other for some seconds.

`Flood` runs it, with the work as JSON on standard input; it prints how often each status was answered.
"""

import http.client
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tests.support.server import ROOT, Server, bearer
from torture.client import forget_peak, memory_mb, ms, percentile, worker_pid

STOPPED_WITHIN_S = 60.0
SEND = "/api/v1/notifications/send"
PAUSE_S = 0.08  # stays below a key's 1,000 requests a minute
ALONE_S = 3.0


class Flood(NamedTuple):
    """What attackers send. `requests` are (path, headers, body); each connection sends its own in turn."""

    port: int
    connections: int
    requests: list[tuple[str, dict[str, str], str]]
    is_tls: bool = False
    times: int = 0  # requests per connection; 0 means until stopped

    @contextmanager
    def going_on(self) -> Iterator[Counter[int]]:
        """Send meanwhile; in the end the counter has the answers by status (0: no answer)."""
        answers = Counter[int]()
        command = [sys.executable, "-m", "torture.flood"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin and process.stdout
            process.stdin.write(json.dumps(self._asdict()) + "\n")
            process.stdin.flush()
            yield answers
            process.stdin.close()  # tells it to stop
            answers.update({int(status): count for status, count in json.loads(process.stdout.read()).items()})

    def run(self) -> Counter[int]:
        """Send `times` requests."""
        with self.going_on() as answers:
            pass
        return answers


class Others:
    """What others notice: one client that keeps sending notifications, and the worker's memory."""

    def __init__(self, server: Server, key: str) -> None:
        self.server, self.key, self.pid = server, key, worker_pid(server)
        self.statuses, self.times, self.stopped = Counter[int](), list[float](), threading.Event()
        self.before_mb = self.grown_mb = 0.0

    def __enter__(self) -> "Others":
        """Start sending."""
        forget_peak(self.pid)
        self.before_mb = memory_mb(self.pid)
        self.thread = threading.Thread(target=self._send)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and read the memory."""
        self.stopped.set()
        self.thread.join()
        with suppress(OSError):  # the worker was killed
            self.grown_mb = memory_mb(self.pid, "VmHWM") - self.before_mb

    def _send(self) -> None:
        body = json.dumps({"title": "t", "body": "b"})
        while not self.stopped.wait(PAUSE_S):
            began = time.perf_counter()
            status = 0
            with suppress(OSError, http.client.HTTPException):
                status = self.server.request("POST", SEND, body, bearer(self.key)).status
            self.times.append(time.perf_counter() - began)
            self.statuses[status] += 1

    @property
    def p99_s(self) -> float:
        """The 99th percentile of the sends' latency."""
        return percentile(self.times, 0.99)

    @property
    def told(self) -> str:
        """The latency of the sends, for people."""
        return f"p50 {ms(percentile(self.times, 0.5))}, p99 {ms(self.p99_s)} of {len(self.times)}"

    @property
    def all_stored(self) -> bool:
        """Whether every send succeeded."""
        return set(self.statuses) == {200}


def alone(server: Server, key: str) -> str:
    """The latency of sends without an attacker, which shows a busy machine."""
    with Others(server, key) as others:
        time.sleep(ALONE_S)
    return f"alone {others.told}"


def main() -> None:
    """Flood until standard input closes, or `times` times."""
    os.nice(19)  # real attackers have machines of their own: do not take the service's CPU
    asked = json.loads(sys.stdin.readline())
    answers, stopped = Counter[int](), threading.Event()
    threads = [
        threading.Thread(target=_repeat, args=(asked, place, answers, stopped), daemon=True)
        for place in range(asked["connections"])
    ]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    if not asked["times"]:
        stopped.set()
    for thread in threads:
        thread.join(STOPPED_WITHIN_S)
    print(json.dumps(answers))


def _repeat(asked: dict[str, Any], place: int, answers: Counter[int], stopped: threading.Event) -> None:
    connection, sent = _connection(asked), 0
    while not stopped.is_set() and (not asked["times"] or sent < asked["times"]):
        path, headers, body = asked["requests"][(place + sent) % len(asked["requests"])]
        sent += 1
        try:
            connection.request("POST", path, body.encode(), headers)
            answer = connection.getresponse()
            answer.read()
            answers[answer.status] += 1
        except (OSError, http.client.HTTPException):
            answers[0] += 1
            connection.close()


def _connection(asked: dict[str, Any]) -> http.client.HTTPConnection:
    if not asked["is_tls"]:
        return http.client.HTTPConnection("127.0.0.1", asked["port"], timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection("127.0.0.1", asked["port"], timeout=30, context=context)


if __name__ == "__main__":
    main()
