"""What all push providers have in common: what is pushed, what an answer means, how a text is made to fit.

Must not know any provider, Flask or the database.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum

from process import clock
from providers.transport import Reply
from wire.json_text import as_json
from wire.notification import Content

LIFE_S = 86_400  # for which a provider keeps what a device cannot take yet
LEAST_BODY = 200  # characters of the body that a long title leaves room for
MAX_RETRY_AFTER_S = 48 * 3600
NOT_PUSHED = {code: None for code in (*range(32), *range(127, 160)) if code != ord("\n")}


class Outcome(Enum):
    """What a provider's answer means for the device and the notification."""

    DELIVERED = "delivered"
    DEAD = "dead"  # the token is no more: remove the device
    REFUSED = "refused"  # this device will not get this one: failed, the device stays
    TRANSIENT = "transient"  # try again later
    CONFIGURATION = "configuration"  # try again later, and tell the owner
    EXPIRED = "expired"  # our own credential is too old: once more with a new one, since nothing was taken


@dataclass(frozen=True)
class Message:
    """What to show. `id` makes a repeat replace the first on the screen; `path` is opened by a tap."""

    id: str
    content: Content
    path: str


@dataclass(frozen=True)
class Push:
    """One message to one device. `email` is the owner's, for a provider that has something to say."""

    kind: str
    token: str
    message: Message
    email: str
    p256dh: str | None = None
    auth: str | None = None
    origin: str | None = None


@dataclass(frozen=True)
class Answer:
    """What became of one push; `error` is a sentence for the owner unless it was delivered.

    `was_tried` is False when the provider is being left alone and nothing was sent.
    """

    outcome: Outcome
    error: str | None = None
    retry_after_s: int | None = None
    was_tried: bool = True


class Unavailable(Exception):
    """A push cannot be made now: the answer to give instead, and whether it is that of all to this provider."""

    def __init__(self, answer: Answer, is_for_all: bool = False) -> None:
        self.answer, self.is_for_all = answer, is_for_all
        super().__init__(answer.outcome.value)


@dataclass(frozen=True)
class Said:
    """A provider's answer in the terms of the table in push.py: a status, and its own word for what was wrong."""

    status: int
    reason: str = ""


def shown(text: str) -> str:
    """The text as a push carries it: CR LF as LF, no other control characters."""
    return text.replace("\r\n", "\n").translate(NOT_PUSHED)


def fitted(title: str, body: str, build: Callable[[str, str], bytes], limit: int) -> tuple[str, str]:
    """Both as long as `build(title, body)` has at most `limit` bytes; shortened on a character boundary."""
    if len(build(title, body)) > limit:
        title = _longest(title, lambda text: len(build(text, body[:LEAST_BODY])) <= limit)
        body = _longest(body, lambda text: len(build(title, text)) <= limit)
    return title, body


def _longest(text: str, fits: Callable[[str], bool]) -> str:
    """The text, or as much of its beginning as fits with a `…`; escapes make sizes uneven, so by bisection."""
    if fits(text):
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle] + "…") else (low, middle - 1)
    return text[:low] + "…"


def compact_json(value: object) -> bytes:
    """UTF-8 JSON without spaces."""
    return as_json(value).encode()


def retry_after_s(headers: Mapping[str, str]) -> int | None:
    """`Retry-After` in seconds from now, given as a number or a date; None when it is neither."""
    value = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,9}", value):
        return min(int(value), MAX_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(0, round(at - clock.now_ms() / 1000)), MAX_RETRY_AFTER_S)


def parsed(reply: Reply) -> dict[str, object]:
    """The JSON object of a provider's answer; empty when it is none."""
    try:
        value = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
