"""Load over HTTP from a process of its own: wrk or, where there is none, this module.

`python -m bench.client PORT CONNECTIONS SECONDS FILE` prints the results in the format of the script for wrk.
"""

import http.client
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.measure import EVENT, MESSAGE, METRICS, ROOT, keep_off_service, percentile

JSON = "application/json"


class Request(NamedTuple):
    """One request of a list that is sent in turn."""

    method: str
    path: str
    key: str = ""
    body: str = ""
    kind: str = ""  # of the body

    @property
    def headers(self) -> dict[str, str]:
        """The headers, with the API key."""
        kind = {"Content-Type": self.kind} if self.kind else {}
        return kind | ({"Authorization": f"Bearer {self.key}"} if self.key else {})


def requests_of(keys: Sequence[str], codes: Sequence[str]) -> dict[str, list[Request]]:
    """The requests of each kind, one for each key or short code."""
    return {
        "send": [Request("POST", "/api/v1/notifications/send", key, MESSAGE, JSON) for key in keys],
        "event": [Request("POST", f"/p/{code}", "", EVENT, JSON) for code in codes],
        "list of 50": [Request("GET", "/api/v1/notifications", key) for key in keys],
        "stats": [Request("GET", "/api/v1/stats", key) for key in keys],
        "metrics": [Request("POST", "/api/webhooks/custom", key, METRICS, JSON) for key in keys],
    }


class Load(NamedTuple):
    """The results of sending requests for some seconds."""

    answered: int
    bad: int
    seconds: float
    p50_ms: float
    p99_ms: float
    pending: int = 0  # responses that say pending

    @property
    def per_s(self) -> float:
        """Requests per second."""
        return self.answered / self.seconds


SCRIPT = """
local number, requests = 0, {}
pending = 0
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init(args)
%s
end
function request()
  number = number %% #requests + 1
  return requests[number]
end
%s
function done(summary, latency)
  local e, pending = summary.errors, 0
  for _, thread in ipairs(threads) do pending = pending + (thread:get("pending") or 0) end
  io.write(string.format('\\nLOAD [%%d,%%d,%%f,%%f,%%f,%%d]\\n', summary.requests,
    e.connect + e.read + e.write + e.status + e.timeout, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, pending))
end
"""
COUNT_PENDING = """
function response(status, headers, body)
  if body:find('"pending"', 1, true) then pending = pending + 1 end
end
"""


class Client:
    """Sends a list of requests in turn over persistent connections, from its own process: wrk, or `bench.client`.

    The process runs on another core than the service, if there is one. An answer that is not a 2xx is an error,
    unless it is to be counted (`may_fail`).
    """

    def __init__(
        self,
        scratch: Path,
        port: int,
        requests: Sequence[Request],
        count_pending: bool = False,
        may_fail: bool = False,
    ) -> None:
        self.port, self.may_fail = port, may_fail
        handle, name = tempfile.mkstemp(dir=scratch)
        os.close(handle)
        self.file = Path(name)
        self.wrk = shutil.which("wrk")
        if self.wrk:
            lines = [f"  requests[{place}] = {_lua(one)}" for place, one in enumerate(requests, 1)]
            self.file.write_text(SCRIPT % ("\n".join(lines), COUNT_PENDING if count_pending else ""))
        else:
            self.file.write_text(json.dumps(requests))

    def run(self, connections: int, seconds: int) -> Load:
        """Send for that many seconds."""
        load = self.start(connections, seconds)
        return load()

    def start(self, connections: int, seconds: int) -> Callable[[], Load]:
        """Start sending, and return a function that waits for the end."""
        own = [sys.executable, "-m", "bench.client", str(self.port), str(connections), str(seconds), str(self.file)]
        flags = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(self.file)]
        command = [self.wrk, *flags, f"http://127.0.0.1:{self.port}"] if self.wrk else own
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        keep_off_service(process.pid)

        def wait() -> Load:
            out, error = process.communicate(timeout=seconds + 60)
            line = next((one for one in out.splitlines() if one.startswith("LOAD ")), None)
            if line is None:
                raise AssertionError(f"The client failed: {out} {error}")
            load = Load(*json.loads(line.removeprefix("LOAD ")))
            if not load.answered or load.bad >= max(1, load.answered * self.may_fail):
                raise AssertionError(f"{load.bad} of {load.answered} answers are not 2xx: the figures mean nothing.")
            return load

        return wait


def _lua(request: Request) -> str:
    headers = ", ".join(f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in request.headers.items())
    body = json.dumps(request.body) if request.body else "nil"
    return f"wrk.format({json.dumps(request.method)}, {json.dumps(request.path)}, {{{headers}}}, {body})"


# --- without wrk ------------------------------------------------------------------------------------------


def send(port: int, requests: list[Request], turn: itertools.count, ends_s: float, seen: list) -> None:
    """Send on one connection until the time is over; append (ms, status, whether it is pending) of each response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    while time.monotonic() < ends_s:
        one, began = requests[next(turn) % len(requests)], time.monotonic()
        try:
            connection.request(one.method, one.path, one.body or None, one.headers)
            answer = connection.getresponse()
            status, body = answer.status, answer.read()
        except OSError:
            status, body = 0, b""
            connection.close()
        seen.append(((time.monotonic() - began) * 1000, status, b'"pending"' in body))


def main(port: int, connections: int, seconds: int, file: str) -> None:
    """Print the results in the format of the script for wrk."""
    requests = [Request(*one) for one in json.loads(Path(file).read_text())]
    seen: list[tuple[float, int, bool]] = []
    began, turn = time.monotonic(), itertools.count()
    work = (port, requests, turn, began + seconds, seen)
    threads = [threading.Thread(target=send, args=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = [ms for ms, _, _ in seen]
    bad = sum(not 200 <= status < 300 for _, status, _ in seen)
    pending = sum(is_pending for _, _, is_pending in seen)
    elapsed_s = time.monotonic() - began
    print("LOAD", json.dumps([len(seen), bad, elapsed_s, percentile(times, 0.5), percentile(times, 0.99), pending]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4])
