"""The addresses of heartbeats, which scripts ping as they do Healthchecks' (docs/watches.md). Must not know SQL."""

import re
from collections.abc import Mapping
from typing import cast

from flask import Response

from core import heartbeat_checks, heartbeats
from models import Account
from process import clock
from web import guards, rate_limits
from web.context import current, request
from web.request_body import read_beginning
from wire.errors import Refused
from wire.strict_json import replaced_text

MAX_READ_BYTES = 100_000
MAX_KEPT_BYTES = 10_000
EXIT_CODE = re.compile(r"[0-9]{1,3}", re.ASCII)
MAX_EXIT_CODE = 255
TEXT = "text/plain; charset=utf-8"


def admit_ping() -> None:
    """Refuse (404) what leads nowhere, which counts against its sender, and (429) too many pings.

    With `?create=1`, a ping key's slug need not lead to a heartbeat. `Refused` (409) when it leads to several.
    """
    known = current()
    owner, (slug, _) = known.ping_owner, _slug_and_signal(known.variables)
    if owner:
        found = heartbeats.with_slug(owner.seq, slug)
        if found[1:] or (not found and request.args.get("create") == "1"):
            rate_limits.count(rate_limits.PINGS_OF_NONE, owner.seq)
            return heartbeats.check_slug(slug, found)
        known.beat = found[0] if found else None
    if known.beat is None or (slug and not owner):
        guards.refuse_unknown()
    return rate_limits.count(rate_limits.PINGS, known.beat.seq)


def receive_ping(**sent: str) -> Response:
    """GET, HEAD or POST /ping/{uuid} or /ping/{ping key}/{slug}, and behind it /start, /fail, /log, /{exit code}."""
    slug, signal = _slug_and_signal(sent)
    meaning, text = _meaning(signal), replaced_text(read_beginning(MAX_READ_BYTES)[:MAX_KEPT_BYTES])
    body = text.encode()[:MAX_KEPT_BYTES].decode(errors="ignore")  # what replaces a byte may have three
    beat, is_new = current().beat, False
    if beat is None:
        beat, is_new = heartbeats.make_with_slug(cast(Account, current().ping_owner), slug, clock.now_ms())
        rate_limits.count(rate_limits.PINGS, beat.seq)
    heartbeat_checks.note_ping(beat, *meaning, body)
    return Response("Created" if is_new else "OK", 201 if is_new else 200, content_type=TEXT)


def _slug_and_signal(sent: Mapping[str, str]) -> tuple[str, str]:
    """The parts of the path: behind a ping key, the first is a slug."""
    signal = sent.get("signal", "")
    return (signal, "") if current().ping_owner and "slug" not in sent else (sent.get("slug", ""), signal)


def _meaning(signal: str) -> tuple[str, int | None]:
    """The kind of ping, and the exit code if the address names one; `Refused` (404) for any other signal."""
    if signal in ("start", "fail", "log"):
        return signal, None
    if not signal:
        return "success", None
    if not EXIT_CODE.fullmatch(signal) or int(signal) > MAX_EXIT_CODE:
        raise Refused(404)
    return ("fail" if int(signal) else "success"), int(signal)
