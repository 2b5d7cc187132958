"""What ntfy's clients send and are answered with: parameters, the message object, errors. Must not know Flask.

The names are those of ntfy's server, and so is their order: JSON's fields first, then headers, then the query. What
is merely too long is cut, and a link that is none is left out, so that no message is lost for it.
"""

import base64
import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header
from typing import Any, NamedTuple

from wire.errors import Refused
from wire.json_text import as_json
from wire.notification import (
    DEFAULT_PRIORITY,
    MAX_ACTIONS,
    MAX_AHEAD_MS,
    MAX_LABEL_CHARACTERS,
    MAX_PRIORITY,
    MAX_TAG_CHARACTERS,
    PRIORITIES,
    Content,
    Recorded,
    checked_url,
)
from wire.ntfy_actions import ActionsError, parsed_actions
from wire.validation import MAX_BODY_CHARACTERS, MAX_TITLE_CHARACTERS, either

EMPTY_MESSAGE = "triggered"
MAX_ANSWER_BYTES = 4_096  # ntfy's command line reads no more
MAX_TAGS = 32
TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")

ATTACH = ("x-attach", "attach", "a")
FILE_NAME = ("x-filename", "filename", "file", "f")
EMAIL = ("x-email", "x-e-mail", "email", "e-mail", "mail", "e")
CALL = ("x-call", "call")
TEMPLATE = ("x-template", "template", "tpl")
TITLE = ("x-title", "title", "ti", "t")  # ti is in ntfy's documentation alone
MESSAGE = ("x-message", "message", "m")
PRIORITY = ("x-priority", "priority", "prio", "p")
TAGS = ("x-tags", "tags", "tag", "ta")
CLICK = ("x-click", "click")
ACTIONS = ("x-actions", "actions", "action")
DELAY = ("x-delay", "delay", "x-at", "at", "x-in", "in")
SEQUENCE = ("x-sequence-id", "sequence-id", "sid", "sequence_id")
JSON_FIELDS = (
    *("topic", "title", "message", "priority", "tags", "click", "actions", "delay", "sequence_id"),
    *("attach", "filename", "email", "call"),
)
FALSE = ("0", "no", "false")

PRIORITY_NUMBERS = PRIORITIES | {"default": DEFAULT_PRIORITY, "max": MAX_PRIORITY}
PRIORITY_NUMBERS |= {str(number): number for number in PRIORITIES.values()}
OF_BROWSERS = re.compile(r"u=\d\b.*|i\b.*")  # the header Priority of RFC 9218
UNIX_TIME = re.compile(r"[0-9]{1,15}", re.ASCII)
UNIT = r"(days?|d|hours?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
DURATION = re.compile(rf"([0-9]{{1,15}})\s*{UNIT}\s*", re.I | re.ASCII)
UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
ENCODED_WORD = r"=\?[\w-]+\?[bq]\?[^?\s]*\?="
ENCODED_WORDS = re.compile(rf"{ENCODED_WORD}(?:\s+{ENCODED_WORD})*+", re.I | re.ASCII)
WHOLE_CHARACTERS = re.compile(r"(?:[^\\]++|\\u[0-9a-f]{4}|\\[^u])*+", re.DOTALL)  # of a JSON string, perhaps cut
CHARSETS = ("utf-8", "us-ascii", "iso-8859-1", "iso-8859-15", "windows-1252")  # others are slow, or no text at all

CODES: Mapping[int, int] = {400: 40000, 401: 40101, 403: 40301, 404: 40401, 413: 41301, 429: 42901, 500: 50001}
WORDS: Mapping[int, str] = {401: "unauthorized", 403: "forbidden", 404: "page not found"}


class NtfyRefused(Refused):
    """A request that is refused with one of ntfy's codes, whose first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code // 100, message)
        self.code = code


def error_body(refused: Refused) -> dict[str, object]:
    """An error in ntfy's shape."""
    status = refused.status
    code = refused.code if isinstance(refused, NtfyRefused) else CODES.get(status, status * 100)
    return {"code": code, "http": status, "error": WORDS.get(status, refused.message)}


# --- what is sent -------------------------------------------------------------------------------------------


class Publication(NamedTuple):
    """A request to publish: its headers (as WSGI decodes them), query and JSON fields, by lower-case name."""

    headers: Mapping[str, str]
    query: Mapping[str, str]
    fields: Mapping[str, Any] = {}

    def read(self, names: tuple[str, ...]) -> Any:
        """The first value that is not empty: a text, or what JSON has."""
        for name in names:
            if (value := self.fields.get(name)) not in (None, "", 0, False, [], {}):
                return value
        for name in names:
            if (sent := self.headers.get(name)) and (value := header_text(name, sent)):
                return value
        return next((value for name in names if (value := self.query.get(name, "").strip())), "")

    def text(self, names: tuple[str, ...]) -> str:
        """`read` for what must be a text; `NtfyRefused` for another type of JSON."""
        value = self.read(names)
        if not isinstance(value, str):
            raise NtfyRefused(40017, f"{names[1]} must be a string.")
        return value.strip()


def header_text(name: str, value: str) -> str:
    """The text of a header that WSGI decoded as Latin-1: UTF-8, Latin-1 or encoded words (RFC 2047)."""
    if not value.isascii():
        with suppress(UnicodeError):  # it is Latin-1 indeed
            value = value.encode("latin-1").decode()
    if "=?" in value:
        value = ENCODED_WORDS.sub(_decoded_words, value)
    value = value.strip()
    return "" if name == "priority" and OF_BROWSERS.fullmatch(value) else value


def _decoded_words(match: re.Match[str]) -> str:
    try:
        return "".join(_decoded_word(*part) for part in decode_header(match[0]))
    except (HeaderParseError, UnicodeError):
        return match[0]


def _decoded_word(text: bytes | str, charset: str | None) -> str:
    if isinstance(text, str):
        return text
    if charset is None or charset.lower() not in CHARSETS:
        raise UnicodeError
    return text.decode(charset)


def authorization(value: str) -> str:
    """The value of the header `Authorization` that `?auth=` holds as base64url, or nothing."""
    try:
        return base64.urlsafe_b64decode(value.encode("ascii", "replace") + b"==").decode()
    except ValueError:
        return ""


def user_and_password(value: str) -> tuple[str, str]:
    """Both of an `Authorization: Basic`; each may be empty."""
    scheme, _, encoded = value.strip().partition(" ")
    user, _, password = authorization(encoded.strip()).partition(":") if scheme.lower() == "basic" else ("", "", "")
    return user, password


def topic_of(fields: Mapping[str, Any]) -> str:
    """The topic that a JSON message names; `NtfyRefused` if it is none."""
    topic = fields.get("topic")
    if not isinstance(topic, str) or not TOPIC.fullmatch(topic):
        raise NtfyRefused(40009, "topic must have 1 to 64 letters, digits, hyphens or underscores.")
    return topic


def body_text(raw: bytes) -> str:
    """The message in the body of a request; `NtfyRefused` for what is no text."""
    try:
        return raw.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise NtfyRefused(40011, "The message is not text in UTF-8, and files cannot be attached.") from None


def published(sent: Publication, topic: str, body: str, sequence_id: str, now: int) -> Content:
    """What a request to publish says. `sequence_id` is the path's, or empty.

    Raises `NtfyRefused` for what cannot be understood, and for what Pocketbell does not do.
    """
    _refuse_what_is_not_offered(sent)
    text, named = body.strip(), sent.text(MESSAGE).replace("\\n", "\n").strip()
    if text and named and sent.read(FILE_NAME):
        raise NtfyRefused(40014, "Files cannot be attached: send the text as the message alone.")
    title, delay = sent.text(TITLE), sent.read(DELAY)
    return Content(
        title=cut(title or topic, MAX_TITLE_CHARACTERS),
        body=cut(text or named or EMPTY_MESSAGE, MAX_BODY_CHARACTERS),
        priority=_priority(sent.read(PRIORITY)),
        url=web_address(sent.text(CLICK)),
        tag=cut(sequence_id or sent.text(SEQUENCE), MAX_TAG_CHARACTERS) or None,
        actions=_actions(sent.read(ACTIONS)),
        deliver_at=_deliver_at(str(delay), now) if delay else None,
        tags=_tags(sent.read(TAGS)),
    )


def _refuse_what_is_not_offered(sent: Publication) -> None:
    if sent.read(ATTACH):
        raise NtfyRefused(40014, "Files cannot be attached: send a link to it as Click.")
    if sent.read(EMAIL):
        raise NtfyRefused(40001, "Pocketbell sends no e-mail: leave Email out.")
    if sent.read(CALL):
        raise NtfyRefused(40032, "Pocketbell makes no phone calls: leave Call out.")
    template = sent.read(TEMPLATE)
    if template and str(template).lower() not in FALSE:
        raise NtfyRefused(40043, "Templates belong to alerts: make an alert and send the JSON to its address.")


def cut(text: str, longest: int) -> str:
    """At most `longest` characters of a text, trimmed, with U+FFFD for a NUL."""
    return text.strip()[:longest].strip().replace("\0", "\ufffd")


def web_address(sent: object) -> str | None:
    """An address that a tap can open, or None for anything else."""
    try:
        return str(checked_url(sent, "click"))
    except Refused:
        return None


def _priority(sent: Any) -> int | None:
    if sent == "":
        return None
    number = PRIORITY_NUMBERS.get(str(sent).strip().lower()) if isinstance(sent, (str, int)) else None
    if number is None:
        raise NtfyRefused(40007, f"priority must be 1 to 5, or {either((*PRIORITIES, 'default', 'max'))}.")
    return number


def _tags(sent: Any) -> tuple[str, ...]:
    given = sent.split(",", MAX_TAGS) if isinstance(sent, str) else sent
    if not isinstance(given, list) or not all(isinstance(tag, str) for tag in given):
        raise NtfyRefused(40017, "tags must be an array of strings.")
    tags = (cut(tag, MAX_TAG_CHARACTERS) for tag in given[:MAX_TAGS])
    return tuple(tag for tag in tags if tag)


def _actions(sent: Any) -> tuple[dict[str, str], ...]:
    """The buttons that open an address; those of other kinds are left out."""
    try:
        actions = parsed_actions(sent) if isinstance(sent, str) else sent
        if not isinstance(actions, list):
            raise ActionsError("they must be an array.")
        buttons = [button for action in actions if (button := _button(action))]
    except ActionsError as error:
        raise NtfyRefused(40018, f"actions cannot be understood: {error}") from None
    return tuple(buttons[:MAX_ACTIONS])


def _button(action: Any) -> dict[str, str] | None:
    if not isinstance(action, dict):
        raise ActionsError("each must be an object.")
    if str(action.get("action", "")).strip().lower() != "view":
        return None
    label, url = action.get("label"), action.get("url")
    for name, value in (("label", label), ("url", url)):
        if not isinstance(value, str) or not value.strip():
            raise ActionsError(f"a view action needs {name}.")
    address = web_address(str(url).strip())
    return {"label": cut(str(label), MAX_LABEL_CHARACTERS), "url": address} if address else None


def _deliver_at(delay: str, now: int) -> int:
    """When a message is to be delivered, in ms: a Unix time in seconds, or a duration from now."""
    delay = delay.strip()
    if UNIX_TIME.fullmatch(delay):
        at = int(delay) * 1_000
    else:
        parts = DURATION.findall(delay)
        if not parts or DURATION.sub("", delay):
            raise NtfyRefused(40004, "delay must be a Unix time in seconds, or a duration such as 30m or 2 hours.")
        at = now + sum(int(number) * UNITS_MS[unit[0].lower()] for number, unit in parts)
    if at <= now:
        raise NtfyRefused(40005, "delay must lie in the future.")
    if at > now + MAX_AHEAD_MS:
        raise NtfyRefused(40006, "delay must be at most 366 days.")
    return at


# --- what is answered ---------------------------------------------------------------------------------------


def message(notification: Recorded, topic: str) -> dict[str, Any]:
    """A notification as ntfy's message object, with those of its buttons that open an address."""
    content = notification.content
    optional = {
        "priority": content.priority,
        "tags": content.tags,
        "click": content.url,
        "actions": [
            {"id": f"{notification.id}-{place}", "action": "view", **action, "clear": False}
            for place, action in enumerate(content.actions)
            if "url" in action
        ],
        "sequence_id": content.tag,
    }
    return {
        "id": notification.id,
        "time": (content.deliver_at or notification.created_at) // 1_000,
        "event": "message",
        "topic": topic,
        "title": content.title,
        "message": content.body,
        **{name: value for name, value in optional.items() if value},
    }


def fitted(answer: dict[str, Any], most: int = MAX_ANSWER_BYTES) -> dict[str, Any]:
    """The message object in at most `most` bytes: its message is cut, and if need be what else is long goes."""
    if _size(answer) <= most:
        return answer
    shorter = {**answer, "message": ""}
    for name in ("actions", "click", "tags", "title"):
        if _size(shorter) > most:
            shorter.pop(name, None)
    room = most - _size(shorter)
    written = as_json(answer["message"])[1:-1].encode()[:room].decode(errors="ignore")
    whole = WHOLE_CHARACTERS.match(written)
    return {**shorter, "message": json.loads(f'"{whole[0] if whole else ""}"')}


def _size(answer: dict[str, Any]) -> int:
    return len(as_json(answer).encode()) + 1  # the line end


def account(username: str, plan: str, today: int, limit: int, remaining: int, kept_s: int) -> dict[str, Any]:
    """An account as ntfy shows it: its messages of today, and the quota of its key; what is not offered is 0."""
    none = {"emails": 0, "calls": 0, "reservations": 0, "attachment_total_size": 0}
    limits = {"messages": limit, "messages_expiry_duration": kept_s, **none}
    limits |= {"attachment_file_size": 0, "attachment_expiry_duration": 0, "attachment_bandwidth": 0}
    stats = {"messages": today, "messages_remaining": remaining, **none}
    stats |= {f"{name}_remaining": 0 for name in none}
    tier = {"code": plan, "name": plan}
    return {"username": username, "role": "user", "tier": tier, "limits": {"basis": "tier", **limits}, "stats": stats}


def access_token(key: str, now: int) -> dict[str, Any]:
    """A key as the access token that ntfy would make: it never expires."""
    return {"token": key, "label": "", "last_access": now // 1_000, "last_origin": "", "expires": 0}
