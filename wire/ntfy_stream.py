"""The ntfy app's requests for messages, and the messages' shapes. Must not know Flask, SQL or users."""

import re
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from wire.json_text import as_json
from wire.ntfy import MESSAGE, PRIORITY, TAGS, TITLE, NtfyRefused, Publication, checked_priority

POLL, SINCE, ID = ("x-poll", "poll", "po"), ("x-since", "since", "si"), ("x-id", "id")
YES = ("1", "yes", "true")
DIGITS = re.compile(r"[0-9]{1,12}")
OUR_ID = re.compile(r"([0-9a-f]{32})(?:-([0-9a-z]{1,9}))?")
DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h))+")
PART = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
UNIT_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 36e5}
LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}  # for the app on iPhones, within a line too
ANY_ID = re.compile(r"[-_A-Za-z0-9]{1,64}")

Message = dict[str, Any]


class Since(NamedTuple):
    """From where on stored messages are wanted: one of `all`, `latest`, `none`, an id, or a time in ms."""

    word: str = ""
    id: str = ""
    version: str = ""  # which message of that notification
    time: int = 0


class Filters(NamedTuple):
    """Filters for messages; an empty one lets all pass."""

    id: str = ""
    message: str = ""
    title: str = ""
    priorities: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def passes(self, message: Message) -> bool:
        """Whether the message is wanted."""
        is_it = not self.id or notification_id(self.id) == notification_id(message["id"])
        is_same = is_it and self.message in ("", message["message"]) and self.title in ("", message["title"])
        has_priority = not self.priorities or message["priority"] in self.priorities
        return is_same and has_priority and set(self.tags) <= set(message.get("tags", ()))


class Wanted(NamedTuple):
    """The parameters of a request for messages."""

    poll: bool
    since: Since
    filters: Filters


def wanted(sent: Publication, now: int) -> Wanted:
    """The parameters of a request, checked; raises `NtfyRefused`."""
    poll = sent.text(POLL).lower() in YES
    priorities = tuple(checked_priority(word) for word in _words(sent.text(PRIORITY)))
    filters = Filters(sent.text(ID), sent.text(MESSAGE), sent.text(TITLE), priorities, _words(sent.text(TAGS)))
    return Wanted(poll, _since(sent.text(SINCE), poll, now), filters)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _since(text: str, poll: bool, now: int) -> Since:
    if text in ("all", "latest", "none", ""):
        return Since(word=text or ("all" if poll else "none"))
    if ours := OUR_ID.fullmatch(text):
        return Since(id=ours[1], version=ours[2] or "")
    if DIGITS.fullmatch(text):
        return Since(time=int(text) * 1000)
    if DURATION.fullmatch(text):
        return Since(time=now - round(sum(float(number) * UNIT_MS[unit] for number, unit in PART.findall(text))))
    if ANY_ID.fullmatch(text):  # of a message that we never had
        return Since(word="all")
    raise NtfyRefused(40008, "invalid since parameter")


def notification_id(message_id: str) -> str:
    """The id of the notification that a message with this id is, or was, of."""
    ours = OUR_ID.fullmatch(message_id)
    return ours[1] if ours else message_id


def message_id(id_: str, version: str) -> str:
    """The id of this version of a notification's message: the app drops a message whose id it knows."""
    return f"{id_}-{version}" if version else id_


# --- messages -----------------------------------------------------------------------------------------------


def event(name: str, topics: str, now: int) -> Message:
    """An event of the connection itself: `open` or `keepalive`."""
    return {"id": secrets.token_hex(6), "time": now // 1000, "event": name, "topic": topics}


def action(place: int, label: str, url: str, is_sent: bool) -> Message:
    """A button: it opens an address, or is sent to this service and clears the notification."""
    kind = {"action": "http", "method": "POST", "clear": True} if is_sent else {"action": "view", "clear": False}
    return {"id": str(place), "label": label, "url": url, **kind}


# --- how messages are written one after the other -----------------------------------------------------------


class Format(NamedTuple):
    """How a stream is written, under this content type."""

    content_type: str
    written: Callable[[Message], str]


def _json_line(message: Message) -> str:
    return as_json(message).translate(LINE_ENDS) + "\n"


def _sse_event(message: Message) -> str:
    name = "" if message["event"] == "message" else f"event: {message['event']}\n"
    return f"{name}data: {as_json(message)}\n\n"


def _raw_line(message: Message) -> str:
    return " ".join(message.get("message", "").splitlines()) + "\n"


FORMATS = {
    "json": Format("application/x-ndjson; charset=utf-8", _json_line),
    "sse": Format("text/event-stream; charset=utf-8", _sse_event),
    "raw": Format("text/plain; charset=utf-8", _raw_line),
}
