"""What the ntfy app reads of a notification, and what it may ask for: shapes and their checks.

Must not know Flask, SQL, or who asks.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wire.errors import Refused
from wire.json_text import as_json
from wire.notification import DEFAULT_PRIORITY, PRIORITIES, Content

PARAMETERS = {  # ntfy's names of each parameter: those of headers, which are asked first, and of the query
    "poll": ("x-poll", "poll", "po"),
    "since": ("x-since", "since", "si"),
    "id": ("x-id", "id"),
    "message": ("x-message", "message", "m"),
    "title": ("x-title", "title", "t"),
    "priority": ("x-priority", "priority", "prio", "p"),
    "tags": ("x-tags", "tags", "tag", "ta"),
}
YES = ("1", "yes", "true")
MORE_PRIORITIES = {"default": PRIORITIES["normal"], "max": PRIORITIES["urgent"]}
DIGITS = re.compile(r"[0-9]{1,12}")
OUR_ID = re.compile(r"([0-9a-f]{32})(?:-.{1,20})?", re.S)
DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h))+")
PART = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
UNIT_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 36e5}
ANY_ID = re.compile(r"[-_A-Za-z0-9]{1,64}")
EXTENSIBLE_PRIORITY = re.compile(r"\s*(u=[0-7]|i\b).*", re.I)  # RFC 9218's header of the same name

Message = dict[str, Any]


class NtfyRefused(Refused):
    """A request that is refused with one of ntfy's codes, whose first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code // 100, message)
        self.code = code


def error_body(refused: Refused) -> dict[str, object]:
    """An error in ntfy's shape."""
    code = refused.code if isinstance(refused, NtfyRefused) else refused.status * 100 + 1
    return {"code": code, "http": refused.status, "error": refused.message}


class Since(NamedTuple):
    """From where on stored messages are wanted: one of `all`, `latest`, `none`, an id, or a time in ms."""

    word: str = ""
    id: str = ""
    time: int = 0


class Filters(NamedTuple):
    """Which messages are wanted; what is empty lets all pass."""

    id: str = ""
    message: str = ""
    title: str = ""
    priorities: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def passes(self, message: Message) -> bool:
        """Whether the message is wanted."""
        is_same = all(not wanted or wanted == message[name] for name, wanted in zip(SAME, self[:3], strict=True))
        has_priority = not self.priorities or message["priority"] in self.priorities
        return is_same and has_priority and set(self.tags) <= set(message.get("tags", ()))


SAME = ("id", "message", "title")


class Wanted(NamedTuple):
    """What a request asks for."""

    poll: bool
    since: Since
    filters: Filters


def wanted(headers: Mapping[str, str], query: Mapping[str, str], now: int) -> Wanted:
    """What the parameters of a request ask for; raises `NtfyRefused`."""
    values = {name: _value(names, headers, query) for name, names in PARAMETERS.items()}
    poll = values["poll"].lower() in YES
    priorities = tuple(_priority(word) for word in _words(values["priority"]))
    filters = Filters(values["id"], values["message"], values["title"], priorities, _words(values["tags"]))
    return Wanted(poll, _since(values["since"], poll, now), filters)


def _value(names: tuple[str, ...], headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    in_headers = (headers.get(name, "") for name in names)
    found = next((text for text in in_headers if text and not EXTENSIBLE_PRIORITY.fullmatch(text)), "")
    return (found or next((text for name in names if (text := query.get(name, ""))), "")).strip()


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _priority(word: str) -> int:
    number = PRIORITIES.get(word.lower()) or MORE_PRIORITIES.get(word.lower())
    if number is None and word in "12345":
        number = int(word)
    if number is None:
        raise NtfyRefused(40007, "invalid priority parameter")
    return number


def _since(text: str, poll: bool, now: int) -> Since:
    if text in ("all", "latest", "none", ""):
        return Since(word=text or ("all" if poll else "none"))
    if ours := OUR_ID.fullmatch(text):
        return Since(id=ours[1])
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


# --- messages -----------------------------------------------------------------------------------------------


def event(name: str, topics: str, now: int) -> Message:
    """An event of the connection itself: `open` or `keepalive`."""
    return {"id": secrets.token_hex(6), "time": now // 1000, "event": name, "topic": topics}


def message(id_: str, content: Content, topic: str, begun_at: int) -> Message:
    """A notification whose delivery began at `begun_at`, as the app reads it; `content` is as it may be shown."""
    shown = {
        "id": id_,
        "time": begun_at // 1000,
        "event": "message",
        "topic": topic,
        "title": content.title,
        "message": content.body,
        "priority": content.priority or DEFAULT_PRIORITY,
        "tags": list(content.tags),
        "click": content.url,
        "actions": _actions(content),
        "sequence_id": content.tag or id_,
    }
    return {name: value for name, value in shown.items() if value not in (None, [])}


def _actions(content: Content) -> list[Message]:
    """The buttons that open an address."""
    return [
        {"id": str(place), "action": "view", "label": action["label"], "url": action["url"], "clear": False}
        for place, action in enumerate(content.actions)
        if "url" in action
    ]


# --- how messages are written one after the other -----------------------------------------------------------


class Format(NamedTuple):
    """How a stream is written, under this content type."""

    content_type: str
    written: Callable[[Message], str]


def _json_line(message: Message) -> str:
    return as_json(message) + "\n"


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
