"""A frozen machine: two services behind nginx and Caddy as docs/scaling.md says, one of which is stopped by SIGSTOP.

Clients send with an Idempotency-Key and repeat what was not answered with 200, or read. No request may take longer
than 6 s, and at the end each notification must be there once. A request with ?wait= is given its time.
"""

import http.client
import json
import os
import shutil
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.support import certificates
from tests.support.redis_server import RedisServer
from tests.support.server import Server, bearer, wait_until
from torture.figure import Figure
from torture.scale_servers import NAME, PostgreSql, missing
from torture.service import seed
from torture.sockets import DEPLOY, caddy, nginx

CLIENTS, BEFORE_S, FROZEN_S, AFTER_S = 12, 4, 15, 6
MAX_REQUEST_S, WAIT_S = 6.0, 7
READS = ("/api/v1/notifications", "/api/v1/notifications/00000000000000000000000000000000", "/app/login")


def for_two(name: str, ports: list[int]) -> str:
    """The file of deploy/ with the changes that docs/scaling.md names."""
    a, b = (f"127.0.0.1:{port}" for port in ports)
    text = (DEPLOY / name).read_text()
    if name == "nginx.conf":
        servers = "\n".join(f"\tserver {one} max_fails=1 fail_timeout=5s;" for one in (a, b))
        text = text.replace("\tserver 127.0.0.1:8000;", servers)
        return text.replace("\tproxy_read_timeout 35s; #", "\tproxy_read_timeout 5s; #")
    health = (
        "health_uri /healthz",
        "health_interval 2s",
        "health_timeout 2s",
        "fail_duration 5s",
        "lb_try_duration 5s",
    )
    text = text.replace("127.0.0.1:8000 {", "\n\t\t".join((f"{a} {b} {{", *health)))
    return text.replace("import pocketbell 35s # for two", "import pocketbell 5s # for two")


class Clients:
    """Threads that send and list through a proxy until they are told to end."""

    def __init__(self, port: int, keys: list[str], context: ssl.SSLContext) -> None:
        self.port, self.context, self.ends = port, context, threading.Event()
        self.sent, self.statuses, self.took = list[str](), Counter[int](), list[float]()
        self.threads = [threading.Thread(target=self._run, args=(n, keys[n % len(keys)])) for n in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def _run(self, number: int, key: str) -> None:
        for turn in range(1_000_000):
            if self.ends.is_set():
                return
            if number % 3 == 0:
                self._ask("GET", READS[turn % len(READS)], None, bearer(key))
                time.sleep(0.1)
                continue
            body = f"{self.port}-{number}-{turn}"
            headers = {**bearer(key), "Idempotency-Key": body}
            message = json.dumps({"title": "t", "body": body})
            while self._ask("POST", "/api/v1/notifications/send", message, headers) != 200:
                time.sleep(0.5)
            self.sent.append(body)
            time.sleep(0.1)

    def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> int:
        began = time.monotonic()
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=60, context=self.context)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            status = answer.status
        except OSError:
            status = 0
        finally:
            connection.close()
        self.took.append(time.monotonic() - began)
        self.statuses[status] += 1
        return status

    def end(self) -> None:
        """Let each finish what it began."""
        self.ends.set()
        for thread in self.threads:
            thread.join(90)


def figures(scratch: Path) -> Iterator[Figure]:
    """Both proxies, one after the other."""
    lacks = missing() or ", ".join(name for name in ("nginx", "caddy") if not shutil.which(name))
    if lacks:
        yield Figure("one of two services frozen", f"no request over {MAX_REQUEST_S:.0f} s", f"no {lacks}", None)
        return
    scratch.chmod(0o755)  # PostgreSQL's user must get through
    with ExitStack() as stack:
        database = PostgreSql(scratch / "postgresql")
        stack.callback(database.stop)
        redis = stack.enter_context(RedisServer())
        environ = {"DATABASE_URL": f"{database.url}/{NAME}", "REDIS_URL": redis.url}
        (owner,) = seed(scratch / "seed", ["a@example.org"], keys=CLIENTS, **environ)
        servers = [Server(scratch / name, **environ) for name in ("one", "two")]
        for server in servers:
            stack.callback(server.kill)
        for server in servers:
            server.wait_until_ready()
        made = certificates.make(scratch)
        for name, serve in (("nginx.conf", nginx), ("Caddyfile", caddy)):
            directory = scratch / name
            directory.mkdir()
            config = for_two(name, [server.port for server in servers])
            yield from _through(name, serve, directory, config, made, servers, owner.keys, database)


def _through(
    name: str,
    serve: Callable[..., object],
    directory: Path,
    config: str,
    made: certificates.Certificates,
    servers: list[Server],
    keys: list[str],
    database: PostgreSql,
) -> Iterator[Figure]:
    context = ssl.create_default_context(cafile=made.ca_file)
    database.rows("DELETE FROM notification")
    with serve(directory, config, servers[0].port, made) as port:  # type: ignore[attr-defined]
        wait_until(lambda: _answers(port, context))
        clients = Clients(port, keys, context)
        try:
            time.sleep(BEFORE_S)
            os.killpg(servers[1].process.pid, signal.SIGSTOP)
            time.sleep(FROZEN_S)
            os.killpg(servers[1].process.pid, signal.SIGCONT)
            time.sleep(AFTER_S)
        finally:
            os.killpg(servers[1].process.pid, signal.SIGCONT)
            clients.end()
        waited = _waits(port, context, keys[0])
    yield Figure(f"?wait={WAIT_S} behind {name}", f"200 after {WAIT_S} s", waited, waited == f"200 after {WAIT_S} s")
    stored = Counter(body for (body,) in database.rows("SELECT body FROM notification"))
    lost = [body for body in clients.sent if not stored[body]]
    doubled = [body for body, number in stored.items() if number > 1]
    what = f"one of two services frozen for {FROZEN_S} s behind {name}, {CLIENTS} clients"
    seen = f"{len(clients.took)} requests, worst {max(clients.took):.2f} s, statuses {dict(clients.statuses)}"
    yield Figure(what, f"no request over {MAX_REQUEST_S:.0f} s", seen, max(clients.took) <= MAX_REQUEST_S)
    seen = f"{len(clients.sent)} acknowledged, {len(lost)} lost, {len(doubled)} doubled"
    yield Figure(what, "none lost, none doubled", seen, bool(clients.sent) and not lost and not doubled)


def _waits(port: int, context: ssl.SSLContext, key: str) -> str:
    """The answer to a request that waits for a button that nobody presses: its status and how long it took."""
    question = {"title": "t", "body": "b", "actions": [{"label": "Yes", "answer": "yes"}]}
    connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
    connection.request("POST", "/api/v1/notifications/send", json.dumps(question), bearer(key))
    asked = json.load(connection.getresponse())["notification"]["id"]
    begun = time.monotonic()
    connection.request("GET", f"/api/v1/notifications/{asked}?wait={WAIT_S}", None, bearer(key))
    status = connection.getresponse().status
    connection.close()
    return f"{status} after {time.monotonic() - begun:.0f} s"


def _answers(port: int, context: ssl.SSLContext) -> bool:
    connection = http.client.HTTPSConnection("localhost", port, timeout=5, context=context)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
