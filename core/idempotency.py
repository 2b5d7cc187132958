"""Idempotency-Key: a repeated request to send within 24 hours sends nothing.

The hash of the request is kept with the key, so that another request with the same key is refused. Must not know
requests or headers.
"""

import hashlib
import json
from typing import NamedTuple

from process import clock
from process.clock import DAY_MS
from store import idempotency_keys
from store.database import is_shared
from wire.errors import Refused
from wire.notification import Content, Recorded

LIFE_MS = DAY_MS
RUNNING_MS = 6_000  # no request to send takes longer


class IdempotentRequest(NamedTuple):
    """An account's Idempotency-Key and the hash of its request."""

    account_seq: int
    key: str
    request_hash: bytes


def request_hash(content: Content, picture: bytes | None = None) -> bytes:
    """The SHA-256 of a request's content, which has the prefix in its title, and of the picture that came with it.

    An optional field counts only if it was set: keys that are older than a new field stay valid. The way on which it
    came does not count, nor does the name of the picture's file.
    """
    given = content.given
    given.pop("hops", None)
    if content.picture:
        given["picture"] = content.picture[:2]  # without its name
    said = [content.title, content.body, *([given] if given else [])]
    hashed = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    hashed.update(picture or b"")
    return hashed.digest()


def earlier(request: IdempotentRequest, content: Content, now: int) -> Recorded | None:
    """The notification of the first answer for the key within 24 hours; `content` is the repeated request's.

    `Refused` (400) if the key came with a different request, (409) while the first may be running.
    """
    known = idempotency_keys.find(request.account_seq, request.key, now - LIFE_MS)
    if known is None:
        return None
    if known.request_hash != request.request_hash:
        raise Refused(400, "This Idempotency-Key was already used for another request: use a new one.")
    may_run = is_shared() or known.created_at >= clock.began_at  # in another process, or in this one
    if not known.is_answered and may_run and abs(now - known.created_at) < RUNNING_MS:
        raise Refused(409)
    return Recorded(0, known.notification_id, known.status, known.created_at, content)
