"""The addresses of heartbeats, which scripts ping as they do Healthchecks' (docs/watches.md). Must not know SQL."""

import re
from typing import cast

from flask import Response

from core import heartbeats, watching
from models import Account
from process import clock
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


def admit_ping_by_slug() -> None:
    """As `admit_ping`, for the heartbeat with the slug in the path; with `?create=1` there need not be one yet.

    `Refused` (409) when several have the slug.
    """
    known = current()
    owner = known.ping_owner
    found = heartbeats.with_slug(owner.seq, _slug()) if owner else []
    if owner and len(found) != 1 and (found or known.sent.args.get("create") == "1"):
        rate_limits.ping_of_none(owner.seq)
        heartbeats.check_slug(_slug(), found)
        return
    known.beat = found[0] if found else None
    admit_ping()


def receive_ping(ping_id: str, signal: str = "") -> Response:
    """GET, HEAD or POST /ping/{uuid}, /start, /fail, /log, /{exit code}."""
    watching.note_ping(cast(Beat, current().beat), *_meaning(signal), _body())
    return _text("OK")


def receive_ping_by_slug(ping_key: str, slug: str, signal: str = "") -> Response:
    """GET, HEAD or POST /ping/{ping key}/{slug}, /start, /fail, /log, /{exit code}; it may create the heartbeat."""
    meaning, body = _meaning(signal), _body()
    beat, is_new = current().beat, False
    if beat is None:
        beat, is_new = heartbeats.make_with_slug(cast(Account, current().ping_owner), slug, clock.now_ms())
        rate_limits.ping(beat.seq)
    watching.note_ping(beat, *meaning, body)
    return _text("Created", 201) if is_new else _text("OK")


def _slug() -> str:
    return str((current().sent.view_args or {})["slug"])


def _body() -> str:
    text = replaced_text(read_beginning(MAX_READ_BYTES)[:MAX_KEPT_BYTES])
    return text.encode()[:MAX_KEPT_BYTES].decode(errors="ignore")  # what replaces a byte may have three


def _text(words: str, status: int = 200) -> Response:
    return Response(words, status, content_type="text/plain; charset=utf-8")


def _meaning(signal: str) -> tuple[str, int | None]:
    """The kind of ping, and the exit code if the address names one; `Refused` (404) for any other signal."""
    if signal in ("start", "fail", "log"):
        return signal, None
    if not signal:
        return "success", None
    if not EXIT_CODE.fullmatch(signal) or int(signal) > MAX_EXIT_CODE:
        raise Refused(404)
    return ("fail" if int(signal) else "success"), int(signal)
