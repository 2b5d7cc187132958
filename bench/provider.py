"""A fast stand-in push service: `python -m bench.provider DELAY_MS SUBSCRIPTIONS`.

It prints its origin and its subscriptions as one line of JSON, answers each push with 201 after the delay, and exits
when its standard input closes. It verifies and decrypts every hundredth push (tests/support/push_service.py), and
answers a wrong one with 400. GET returns the number of pushes.
"""

import asyncio
import json
import sys
from asyncio import Transport
from collections import deque

from tests.support.push_service import Browser, PushService

VERIFIED_EVERY = 100


class Service:
    """The state that all connections share."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s, self.pushes, self.wrong = delay_s, 0, 0
        self.verifier = PushService()
        self.browsers: dict[str, Browser] = {}

    def open(self, port: int, subscriptions: int) -> str:
        """The line to print."""
        self.verifier.origin = origin = f"http://127.0.0.1:{port}"
        for place in range(subscriptions):
            browser = Browser(f"{origin}/push/{place}")
            browser.messages = deque(maxlen=1)  # type: ignore[assignment]
            browser.claims = deque(maxlen=1)  # type: ignore[assignment]
            self.browsers[f"/push/{place}"] = browser
        return json.dumps({"origin": origin, "subscriptions": [one.subscription for one in self.browsers.values()]})

    def receive(self, path: str, headers: dict[str, str], body: bytes) -> bytes:
        """The response to a push."""
        self.pushes += 1
        browser = self.browsers.get(path)
        if browser is None:
            return answer(404)
        if self.pushes % VERIFIED_EVERY == 1 and (wrong := self.verifier.receive(browser, headers, body)):
            self.wrong += 1
            return answer(400, wrong.encode())
        return answer(201)


def answer(status: int, body: bytes = b"") -> bytes:
    """A response as bytes."""
    return f"HTTP/1.1 {status} -\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Connection(asyncio.Protocol):
    """One persistent connection, handling a request at a time."""

    def __init__(self, service: Service) -> None:
        self.service, self.data = service, b""
        self.transport: Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """More of a request has arrived."""
        self.data += data
        head, end, body = self.data.partition(b"\r\n\r\n")
        if not end:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if len(body) < int(headers.get("content-length", "0")):
            return
        self.data = b""
        method, path, _ = first.split(" ")
        loop = asyncio.get_running_loop()
        if method == "GET":
            counted = {"pushes": self.service.pushes, "wrong": self.service.wrong}
            self.write(answer(200, json.dumps(counted).encode()))
        else:
            loop.call_later(self.service.delay_s, self.write, self.service.receive(path, headers, body))

    def write(self, data: bytes) -> None:
        """Write, unless the client has gone."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)


async def main(delay_ms: int, subscriptions: int) -> None:
    """Serve until standard input ends."""
    loop, service = asyncio.get_running_loop(), Service(delay_ms / 1000)
    server = await loop.create_server(lambda: Connection(service), "127.0.0.1", 0, backlog=256)
    print(service.open(server.sockets[0].getsockname()[1], subscriptions), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
