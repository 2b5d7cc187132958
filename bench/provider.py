"""A fast stand-in for any push service, over HTTP/2: `python -m bench.provider DIRECTORY DELAY_MS`.

It writes its certificates into the directory, prints its address and the CA file as one line of JSON, answers each
request after the delay as APNs, FCM, Google's OAuth or a browser's push service would, and exits when its standard
input closes. It checks nothing: the stand-ins in tests/support do.
"""

import asyncio
import json
import sys
from functools import partial
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

from tests.support import certificates

ANSWERS = {  # by the beginning of the path: status and body
    "/token": (200, b'{"access_token": "known", "expires_in": 3600, "token_type": "Bearer"}'),
    "/v1/": (200, b'{"name": "projects/pocketbell/messages/0:1500415314455276%31bd1c9631bd1c96"}'),
    "/3/device/": (200, b""),
    "/push/": (201, b""),
}
HEADERS = [("date", "Mon, 23 Nov 2026 04:00:00 GMT"), ("apns-id", "eabeae54-14a8-11e5-b60b-1697f925ec7b")]


class Connection(asyncio.Protocol):
    """One connection, with many streams."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.http = H2Connection(H2Configuration(client_side=False))
        self.paths: dict[int, str] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.http.initiate_connection()
        self.transport.write(self.http.data_to_send())

    def data_received(self, data: bytes) -> None:
        """More of some requests has arrived."""
        for event in self.http.receive_data(data):
            match event:
                case RequestReceived(stream_id=stream, headers=headers):
                    self.paths[stream] = dict(headers)[b":path"].decode()
                case DataReceived(stream_id=stream, flow_controlled_length=length):
                    self.http.acknowledge_received_data(length, stream)
                case StreamEnded(stream_id=stream):
                    answer = partial(self.answer, stream, self.paths.pop(stream))
                    asyncio.get_running_loop().call_later(self.delay_s, answer)
        self.transport.write(self.http.data_to_send())

    def answer(self, stream: int, path: str) -> None:
        """Answer a request, unless its client has gone."""
        if self.transport.is_closing():
            return
        status, body = next(answer for begin, answer in ANSWERS.items() if path.startswith(begin))
        self.http.send_headers(stream, [(":status", str(status)), *HEADERS], end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)
        self.transport.write(self.http.data_to_send())


async def main(directory: Path, delay_ms: int) -> None:
    """Serve until standard input ends."""
    loop, made = asyncio.get_running_loop(), certificates.make(directory)
    connect = partial(Connection, delay_ms / 1000)
    server = await loop.create_server(connect, "127.0.0.1", 0, ssl=made.context("h2"))
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"url": f"https://localhost:{port}", "ca_file": made.ca_file}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
