"""Web Push endpoints that lead to this machine in roundabout ways. Only the permitted one may be connected to."""

import selectors
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from providers import transport
from tests.support.push_service import Browser as Phone
from tests.support.push_service import PushService
from tests.support.server import Server
from torture.client import account, asked, counted, send, started, tell
from torture.figure import Figure

NAMED = "localhost,*.localhost,127.0.0.1,127.1,2130706433,0x7f000001,0177.0.0.1,0,0.0.0.0,ip6-localhost"
REDIRECTS = (301, 302, 303, 307, 308)
LAST_DIGITS = ("127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1")
NUMBERS = (*LAST_DIGITS, "017700000001", "0", "0.0.0.0", "10.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.169.254")
SIXES = ("::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1")
SIXES += ("2002:7f00:1::1", "2001:0:7f00:1::1", "fe80::1", "fc00::1", "fec0::1", "0:0:0:0:0:0:0:1")
ADDRESSES = ("127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "169.254.169.254", "10.0.0.1", "64:ff9b::7f00:1")
ADDRESSES += ("2002:7f00:1::1", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::")


def figures(scratch: Path) -> Iterator[Figure]:
    """Registered endpoints, endpoints in the database, redirects, and names that resolve to this machine."""
    with closing(Traps()) as traps, closing(PushService()) as push:
        traps.prove()
        hosts = f"{push.origin},{NAMED}"
        with started(scratch, "origins", WEBPUSH_HOSTS=hosts, LOG_LEVEL="debug") as server:
            key = account(server, "owner@example.org")
            endpoints = list(every_endpoint(traps, push.origin))
            yield registered(server, key, traps, endpoints)
            yield from pushed(server, key, traps, push, endpoints)
            yield redirected(server, key, traps, push)
        yield from resolved(traps)


class Traps:
    """Listeners on this machine that count connections: on 443 and 80 if allowed, and on another port."""

    def __init__(self) -> None:
        self.met, self.ports, self.selector = list[str](), set[int](), selectors.DefaultSelector()
        port = 0
        for wanted in (0, 443, 80, 22_222):
            for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                with suppress(OSError):
                    port = self._listen(family, host, wanted or port)
        self.other = next(one for one in self.ports if one not in (443, 80, 22_222))
        self.is_open = True
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _listen(self, family: int, host: str, port: int) -> int:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen()
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ)
        self.ports.add(listener.getsockname()[1])
        return int(listener.getsockname()[1])

    def _serve(self) -> None:
        while self.is_open:
            for ready, _ in self.selector.select(0.1):
                with suppress(OSError):
                    connection, peer = ready.fileobj.accept()  # type: ignore[union-attr]
                    self.met.append(f"{connection.getsockname()[:2]} from {peer[:2]}")
                    connection.close()

    def prove(self) -> None:
        """Check that they notice connections."""
        for port in self.ports:
            socket.create_connection(("127.0.0.1", port)).close()
        time.sleep(0.3)
        assert len(self.met) == len(self.ports), self.met
        self.met.clear()

    def close(self) -> None:
        """Stop listening."""
        self.is_open = False
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]


def every_endpoint(traps: Traps, permitted: str) -> Iterator[str]:
    """Addresses of this machine and of private networks, with and without port, and variants of the permitted one."""
    port = traps.other
    for host in NUMBERS:
        yield f"https://{host}/push"
        yield f"https://{host}:{port}/push"
    for host in SIXES:
        yield f"https://[{host}]/push"
        yield f"https://[{host}]:{port}/push"
    for host in ("localhost", "push.localhost", "LOCALHOST", "localhost.", "ip6-localhost", "localhost.localdomain"):
        yield f"https://{host}/push"
        yield f"https://{host}:{port}/push"
        yield f"http://{host}/push"
    yield f"http://127.0.0.1:{port}/push"
    yield f"https://127.0.0.1:{permitted.rpartition(':')[2]}/push"
    yield f"{permitted}@127.0.0.1:{port}/push"
    yield f"{permitted}:{port}/push"
    yield f"{permitted}\\@127.0.0.1:{port}/push"
    yield f"https://fcm.googleapis.com@127.0.0.1:{port}/push"
    yield f"https://fcm.googleapis.com:443@127.0.0.1:{port}/push"
    yield f"https://127.0.0.1:{port}#@fcm.googleapis.com/push"
    yield f"https://127.0.0.1:{port}?.localhost/push"
    yield f"https://127.0.0.1%2f.localhost:{port}/push"
    yield f"https://①②⑦.0.0.1:{port}/push"
    yield f"https://127。0。0。1:{port}/push"
    yield f"https://localhost:443:{port}/push"
    yield f"https://localhost:00{port}/push"
    yield f"//127.0.0.1:{port}/push"
    yield f"gopher://127.0.0.1:{port}/push"
    yield f"file:///etc/passwd?{port}"
    yield f" https://127.0.0.1:{port}/push"
    yield f"https://127.0.0.1:{port}/push\r\nHost: x"


def registered(server: Server, key: str, traps: Traps, endpoints: list[str]) -> Figure:
    """Register each endpoint, and push to those that were accepted."""
    statuses, taken = list[int](), 0
    for endpoint in endpoints:
        body = {"kind": "webpush", "subscription": Phone(endpoint).subscription}
        answer = asked(server.port, "POST", "/api/v1/devices", body, key)
        statuses.append(answer.status)
        if answer.status == 201:
            taken += 1
            sent = send(server, key)
            statuses.append(sent.status)
            asked(server.port, "DELETE", f"/api/v1/devices/{answer.json['device']['id']}", key=key)
    time.sleep(0.5)
    if traps.met:
        tell("connected to", traps.met)
    seen = f"{len(traps.met)} connections ({counted(statuses)}; {taken} with a name that WEBPUSH_HOSTS has)"
    holds = not traps.met and set(statuses) <= {200, 201, 400} and taken > 3
    return Figure(
        f"{len(endpoints)} endpoints are registered and pushed to", "0 connections to this machine", seen, holds
    )


def pushed(server: Server, key: str, traps: Traps, push: PushService, endpoints: list[str]) -> Iterator[Figure]:
    """Put each endpoint into the database, as if the check at registration had failed, and push."""
    traps.met.clear()
    phone = push.browser()
    body = {"kind": "webpush", "subscription": phone.subscription}
    device = asked(server.port, "POST", "/api/v1/devices", body, key).json["device"]["id"]
    sent = send(server, key).json["notification"]["status"]
    yield Figure(
        "a push to the permitted stand-in", "delivered", sent, sent == "delivered" and len(phone.messages) == 1
    )
    statuses = list[str]()
    for endpoint in endpoints:
        with sqlite3.connect(server.data_dir / "pocketbell.db", timeout=10) as database:
            database.execute("UPDATE device SET token = ? WHERE id = ?", (endpoint, device))
        database.close()
        answer = send(server, key)
        statuses.append(answer.json["notification"]["status"] if answer.status == 200 else str(answer.status))
    asked(server.port, "DELETE", f"/api/v1/devices/{device}", key=key)
    time.sleep(0.5)
    if traps.met:
        tell("connected to", traps.met)
    seen = f"{len(traps.met)} connections; {counted(statuses)}"
    holds = not traps.met and set(statuses) <= {"pending", "failed"} and len(phone.messages) == 1
    what, must = f"{len(endpoints)} endpoints stand in the database", "0 connections; pending or failed"
    yield Figure(what, must, seen, holds)


def redirected(server: Server, key: str, traps: Traps, push: PushService) -> Figure:
    """Let the permitted stand-in redirect to a listener."""
    traps.met.clear()
    statuses = list[str]()
    for status in REDIRECTS:
        for target in (
            f"http://127.0.0.1:{traps.other}/",
            f"https://localhost:{traps.other}/",
            f"//127.1:{traps.other}/",
        ):
            phone = push.browser().then(status, Location=target)
            body = {"kind": "webpush", "subscription": phone.subscription}
            device = asked(server.port, "POST", "/api/v1/devices", body, key).json["device"]["id"]
            statuses.append(send(server, key).json["notification"]["status"])
            assert len(phone.pushes) == 1, "the stand-in was not asked"
            asked(server.port, "DELETE", f"/api/v1/devices/{device}", key=key)
    time.sleep(0.5)
    seen = f"{len(traps.met)} connections; {counted(statuses)}"
    holds = not traps.met and set(statuses) == {"pending"}
    return Figure(f"{len(statuses)} redirects to this machine", "0 connections; pending", seen, holds)


def resolved(traps: Traps) -> Iterator[Figure]:
    """Resolve a name to such an address. This calls the transport in this process, with a resolver of its own.

    The transport checks the address when it opens the socket, after the name was resolved. There is no second
    resolution that could return another address.
    """
    traps.met.clear()
    failures = list[str]()
    load = transport._Carrier.load
    for address in ADDRESSES:
        shown = f"[{address}]" if ":" in address else address

        def with_resolver(carrier: transport._Carrier, exchange: Any, timeout_s: float, shown: str = shown) -> Any:
            import pycurl

            handle = load(carrier, exchange, timeout_s)
            handle.setopt(pycurl.RESOLVE, [f"push.example.com:443:{shown}"])
            return handle

        transport._Carrier.load = with_resolver  # type: ignore[method-assign]
        try:
            request = transport.Request("https://push.example.com/x", {}, b"x")
            failures.append(str(transport.send_all([request], 3.0)[0].failure))
        finally:
            transport._Carrier.load = load  # type: ignore[method-assign]
            transport._thread.__dict__.clear()
    time.sleep(0.3)
    what = f"a name that resolves to {len(ADDRESSES)} addresses that are not public"
    seen = f"{len(traps.met)} connections; {counted(failures)}"
    yield Figure(what, "0 connections, no answer", seen, not traps.met and "None" not in failures)
    what = "a request that may go to any address: the listener on 443 notices"
    yield Figure(what, "1 connection or more", *noticed(traps))


def noticed(traps: Traps) -> tuple[str, bool | None]:
    """Whether a listener would have noticed a connection: otherwise the row above would mean nothing."""
    if 443 not in traps.ports:
        return "port 443 cannot be listened on here", None
    traps.met.clear()
    transport.send_all([transport.Request("https://127.0.0.1/x", {}, b"x", any_address=True)], 3.0)
    time.sleep(0.3)
    return f"{len(traps.met)}", len(traps.met) > 0
