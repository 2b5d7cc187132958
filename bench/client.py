"""A load generator for machines without wrk (`python -m bench.client PORT CONNECTIONS SECONDS FILE`)."""

import http.client
import itertools
import json
import sys
import threading
import time
from pathlib import Path

from bench.measure import Request, percentile


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
