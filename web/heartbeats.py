"""The address of a heartbeat, which scripts ping as they do Healthchecks' (CONTRACT 10). Must not know SQL."""

import re
from typing import cast

from flask import Response

from core import watching
from store.heartbeats import Beat
from web import guards, rate_limits
from web.context import current
from web.request_body import read_beginning
from wire.errors import Refused
from wire.strict_json import replaced_text

MAX_READ_BYTES = 100_000
MAX_KEPT_BYTES = 10_000
EXIT_CODE = re.compile(r"[0-9]{1,3}", re.ASCII)
MAX_EXIT_CODE = 255


def admit_ping() -> None:
    """Refuse (404) what leads nowhere, which counts against its sender, and (429) too many pings."""
    if current().beat is None:
        rate_limits.count_unknown_code(guards.sender())
        raise Refused(404)
    rate_limits.ping(cast(Beat, current().beat).seq)


def receive_ping(ping_id: str, signal: str = "") -> Response:
    """GET, HEAD or POST /ping/{uuid}, /start, /fail, /{exit code}."""
    kind, exit_code = _meaning(signal)
    text = replaced_text(read_beginning(MAX_READ_BYTES)[:MAX_KEPT_BYTES])
    body = text.encode()[:MAX_KEPT_BYTES].decode(errors="ignore")  # what replaces a byte may have three
    watching.note_ping(cast(Beat, current().beat), kind, exit_code, body)
    return Response("OK", content_type="text/plain; charset=utf-8")


def _meaning(signal: str) -> tuple[str, int | None]:
    """The kind of ping, and the exit code if the address names one; `Refused` (404) for any other signal."""
    if signal in ("start", "fail"):
        return signal, None
    if not signal:
        return "success", None
    if not EXIT_CODE.fullmatch(signal) or int(signal) > MAX_EXIT_CODE:
        raise Refused(404)
    return ("fail" if int(signal) else "success"), int(signal)
