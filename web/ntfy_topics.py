"""The addresses at which the ntfy app fetches what is stored for a device (CONTRACT 9).

The topic is the credential. Must not know SQL, or what is stored for whom.
"""

from typing import Any

from flask import Response, request

from core import subscriptions
from process import clock
from web.context import current
from wire.ntfy_stream import FORMATS, Format, NtfyRefused, Wanted, wanted

UNBUFFERED = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}


def check_topic(topics: str) -> dict[str, Any]:
    """GET /{topics}/auth: the guard has found the topic."""
    return {"success": True}


def stream_json(topics: str) -> Response:
    """GET /{topics}/json."""
    return _answer(FORMATS["json"])


def stream_events(topics: str) -> Response:
    """GET /{topics}/sse."""
    return _answer(FORMATS["sse"])


def stream_texts(topics: str) -> Response:
    """GET /{topics}/raw."""
    return _answer(FORMATS["raw"])


def _answer(written: Format) -> Response:
    now = clock.now_ms()
    asked = _asked(now)
    if request.method == "HEAD":
        return Response(content_type=written.content_type, headers=UNBUFFERED)
    if asked.poll:
        text = subscriptions.polled(current().topics, asked, written, now)
        return Response(text, content_type=written.content_type, headers=UNBUFFERED)
    raise NtfyRefused(40000, "There are no streams yet: ask with poll=1.")


def _asked(now: int) -> Wanted:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return wanted(headers, request.args, now)
