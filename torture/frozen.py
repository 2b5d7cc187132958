"""A frozen machine: two services behind nginx and Caddy as docs/scaling.md says, one of which is stopped by SIGSTOP.

Clients send with an Idempotency-Key and repeat what was not answered with 200, or read. No request may take longer
than 6 s, and at the end each notification must be there once. A request with ?wait= is given its time.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.proxies import PROXIES, Proxy, program
from torture.figure import Figure
from torture.load import SEND, Answer, Crowd, asked, counted, stored_id
from torture.scale_servers import Site, missing, site
from torture.service import seed
from torture.sockets import behind

CLIENTS, BEFORE_S, FROZEN_S, AFTER_S = 12, 4, 15, 6
MAX_REQUEST_S, WAIT_S = 6.0, 7
READS = ("/api/v1/notifications", "/api/v1/notifications/00000000000000000000000000000000", "/app/login")
QUESTION = {"title": "t", "body": "b", "actions": [{"label": "Yes", "answer": "yes"}]}


def for_two(kind: str, other_port: int) -> list[tuple[str, str]]:
    """The changes of the file in deploy/ that docs/scaling.md names; the first service keeps the address in it."""
    first, other = "127.0.0.1:8000", f"127.0.0.1:{other_port}"
    if kind == "nginx":
        servers = "\n".join(f"\tserver {one} max_fails=1 fail_timeout=5s;" for one in (first, other))
        return [(f"\tserver {first};", servers), ("\tproxy_read_timeout 35s; #", "\tproxy_read_timeout 5s; #")]
    health = ("health_uri /healthz", "health_interval 2s", "health_timeout 2s")
    health += ("fail_duration 5s", "lb_try_duration 5s")
    return [
        (f"{first} {{", "\n\t\t".join((f"{first} {other} {{", *health))),
        ("import pocketbell 35s # for two", "import pocketbell 5s # for two"),
    ]


class Clients:
    """Threads that send and read through a proxy until they are told to end."""

    def __init__(self, proxy: Proxy, keys: list[str]) -> None:
        self.proxy, self.numbers = proxy, count()
        self.sent, self.answers = list[str](), list[Answer]()
        self.crowd = Crowd(*[partial(self._send if n % 3 else self._read, key) for n, key in enumerate(keys)])

    def _ask(self, method: str, path: str, body: Any, key: str, headers: dict[str, str]) -> Answer:
        self.answers.append(answer := asked(self.proxy, method, path, body, key, headers=headers))
        return answer

    def _read(self, key: str) -> None:
        for path in READS:
            self._ask("GET", path, None, key, {})
            time.sleep(0.1)

    def _send(self, key: str) -> None:
        body = f"{self.proxy.kind}-{next(self.numbers)}"
        message, once = {"title": "t", "body": body}, {"Idempotency-Key": body}
        while (answer := self._ask("POST", SEND, message, key, once)).status != 200:
            assert answer.status != 400, answer.text  # it would be refused for ever
            time.sleep(0.5)
        self.sent.append(body)
        time.sleep(0.1)


def figures(scratch: Path) -> Iterator[Figure]:
    """Both proxies, one after the other."""
    lacks = missing() or ", ".join(kind for kind in PROXIES if not program(kind))
    if lacks:
        yield Figure("one of two services frozen", f"no request over {MAX_REQUEST_S:.0f} s", f"no {lacks}", None)
        return
    with site(scratch, WEB_CONCURRENCY="1") as made:
        made.start()
        (owner,) = seed(scratch / "data-0", ["a@example.org"], keys=CLIENTS, **made.environ)
        for kind in PROXIES:
            made.postgres.rows("DELETE FROM notification")
            first, other = made.services
            with behind(kind, scratch / kind, first.port, *for_two(kind, other.port)) as proxy:
                yield from _through(proxy, made, owner.keys)


def _through(proxy: Proxy, made: Site, keys: list[str]) -> Iterator[Figure]:
    clients, process = Clients(proxy, keys), made.services[1].process.pid
    try:
        time.sleep(BEFORE_S)
        os.killpg(process, signal.SIGSTOP)
        time.sleep(FROZEN_S)
    finally:
        os.killpg(process, signal.SIGCONT)
    time.sleep(AFTER_S)
    clients.crowd.end()
    stored = Counter(body for (body,) in made.postgres.rows("SELECT body FROM notification"))
    lost = [body for body in clients.sent if not stored[body]]
    doubled = [body for body, number in stored.items() if number > 1]
    what = f"one of two services frozen for {FROZEN_S} s behind {proxy.kind}, {CLIENTS} clients"
    worst = max(one.seconds for one in clients.answers)
    statuses = counted(one.status for one in clients.answers)
    seen = f"{len(clients.answers)} requests, worst {worst:.2f} s, statuses {statuses}"
    yield Figure(what, f"no request over {MAX_REQUEST_S:.0f} s", seen, worst <= MAX_REQUEST_S)
    seen = f"{len(clients.sent)} acknowledged, {len(lost)} lost, {len(doubled)} doubled"
    yield Figure(what, "none lost, none doubled", seen, bool(clients.sent) and not lost and not doubled)
    question = stored_id(asked(proxy, "POST", SEND, QUESTION, keys[0]))
    answer = asked(proxy, "GET", f"/api/v1/notifications/{question}?wait={WAIT_S}", key=keys[0])
    waited, wanted = f"{answer.status} after {answer.seconds:.0f} s", f"200 after {WAIT_S} s"
    yield Figure(f"?wait={WAIT_S} behind {proxy.kind}", wanted, waited, waited == wanted)
