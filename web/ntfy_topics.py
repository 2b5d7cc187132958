"""The addresses at which the ntfy app fetches what is stored for a device.

The topic is the credential. Must not know SQL, or what is stored for whom.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from flask import Response
from werkzeug.http import http_date

from core import subscriptions
from core.streams import Empty, Subscription, Writer, hub
from process import clock
from process.streams import Framing, HandOver, Source, Stream
from web.context import current, request
from web.json_answers import STATUS_LINES
from web.ntfy import publication
from wire.errors import existing
from wire.json_text import as_json
from wire.ntfy import NtfyRefused
from wire.ntfy_stream import FORMATS, Format, Wanted, wanted

RETRY_AFTER_S = 30
UNBUFFERED = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
OF_PREFLIGHTS = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "*, Authorization",  # which the asterisk does not cover
    "Access-Control-Max-Age": "86400",
}


def check_topic(topics: str) -> dict[str, Any]:
    """GET /{topics}/auth: the guard has found the topic."""
    return {"success": True}


def preflight() -> Response | None:
    """Answer a browser's preflight request, which carries no credential."""
    return Response(status=204, headers=OF_PREFLIGHTS) if request.method == "OPTIONS" else None


def refuse_method() -> Response:
    """404 instead of 405: a topic exists only for its own methods. Preflight requests are answered."""
    return existing(preflight())


def stream_frames(topics: str) -> Response:
    """GET /{topics}/ws."""
    from web import websocket

    key = request.headers.get("Sec-WebSocket-Key", "")
    asks = request.headers.get("Upgrade", "").lower() == "websocket" and websocket.is_key(key)
    if not asks or request.headers.get("Sec-WebSocket-Version") != websocket.VERSION:
        raise NtfyRefused(40016, "invalid request: client not using the websocket protocol")
    frames = websocket.WebSocket()
    source = _subscription(_asked(), lambda message: frames.frame(as_json(message)))
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": websocket.accept(key)}
    return Streaming(source, upgrade, 101, frames)


def stream(written: Format, topics: str) -> Response:
    """GET /{topics}/json, /{topics}/sse and /{topics}/raw."""
    asked = _asked()
    if request.method == "HEAD":
        return Response(content_type=written.content_type, headers=UNBUFFERED)
    if asked.poll:
        polled = subscriptions.polled(current().topics, asked, written, clock.now_ms())
        return Response(polled, content_type=written.content_type, headers=UNBUFFERED)
    source = _subscription(asked, lambda message: written.written(message).encode())
    return Streaming(source, {"Content-Type": written.content_type, "Connection": "close"})


def _asked() -> Wanted:
    return wanted(publication({}), clock.now_ms())


def _subscription(asked: Wanted, write: Writer) -> Subscription:
    known = current()
    names = known.variables["topics"]
    if known.topics:
        return Subscription(known.topics, names, asked, write)
    return Empty(names, asked, write, known.caller, known.confirm)


OPERATIONS: dict[str, Callable[..., Any]] = {  # by the last part of the address
    "auth": check_topic,
    "ws": stream_frames,
    **{name: partial(stream, written) for name, written in FORMATS.items()},
}


class Streaming(Response):
    """A response without an end: the hub of streams takes over the connection and writes the head."""

    default_mimetype = None

    def __init__(
        self, source: Source, headers: dict[str, str], status: int = 200, framing: Framing | None = None
    ) -> None:
        super().__init__(None, status, UNBUFFERED | headers)
        self.source, self.framing = source, framing
        if "gunicorn.socket" not in current().environ:
            raise NtfyRefused(40000, "This server has no streams: ask with poll=1.")
        if not hub.has_room(source):
            refused = NtfyRefused(42903, "limit reached: too many active subscriptions")
            refused.retry_after_s = RETRY_AFTER_S
            raise refused

    def __call__(self, environ: Any, start_response: Any) -> NoReturn:
        """Hand the connection over to the hub."""
        fields = {
            "request_id": environ["pocketbell.request"],
            "client": environ.get("REMOTE_ADDR", "-"),
            "method": environ["REQUEST_METHOD"],
            "route": environ["pocketbell.route"],
            "status": self.status_code,
        }
        raise HandOver(lambda taken: hub.open(Stream(taken, self._head(), self.source, fields, self.framing)))

    def _head(self) -> bytes:
        self.headers["Date"] = http_date(clock.now_ms() // 1000)
        return f"HTTP/1.1 {STATUS_LINES[self.status_code]}\r\n{self.headers}".encode("latin-1")
