"""ntfy's parameters, message object and errors. Must not know Flask.

Names and their order are as in ntfy's server: first JSON's fields, then headers, then the query. A text that is too
long is cut, and an invalid link is left out, so that no message is lost.
"""

import base64
import math
import mimetypes
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from wire.errors import Refused
from wire.json_text import as_json, longest
from wire.notification import (
    DEFAULT_PRIORITY,
    MAX_ACTIONS,
    MAX_LABEL_CHARACTERS,
    MAX_PRIORITY,
    MAX_TAG_CHARACTERS,
    PRIORITIES,
    Content,
    Recorded,
    image_address,
    web_address,
)
from wire.ntfy_actions import ActionsError, parsed_actions
from wire.strict_json import without_nul
from wire.validation import MAX_BODY_CHARACTERS, MAX_TITLE_CHARACTERS, either

EMPTY_MESSAGE, FILE_MESSAGE = "triggered", "You received a file: {}"
MAX_ANSWER_BYTES = 4_096  # ntfy's command line reads no more
MAX_TAGS = 32
MAX_FILE_NAME_CHARACTERS = 100
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
    *("attach", "filename", "email", "call", "template"),
)
FALSE = ("0", "no", "false")

PRIORITY_NUMBERS = PRIORITIES | {"default": DEFAULT_PRIORITY, "max": MAX_PRIORITY}
PRIORITY_NUMBERS |= {str(number): number for number in PRIORITIES.values()}
OF_BROWSERS = re.compile(r"u=\d\b.*|i\b.*")  # the header Priority of RFC 9218
ENCODED_WORD = r"=\?[\w-]+\?[bq]\?[^?\s]*\?="
ENCODED_WORDS = re.compile(rf"{ENCODED_WORD}(?:\s+{ENCODED_WORD})*", re.I | re.ASCII)
OF_TEXT = ("", "text/plain", "application/x-www-form-urlencoded")
CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")  # in files, but not in texts
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


# --- requests -----------------------------------------------------------------------------------------------


class Publication(NamedTuple):
    """A request to publish: its headers (as WSGI decodes them), query and JSON fields, by lower-case name."""

    headers: Mapping[str, str]
    query: Mapping[str, str]
    fields: Mapping[str, Any] = {}

    def read(self, names: tuple[str, ...]) -> Any:
        """The first value that is not empty: a text, or any JSON value."""
        for name in names:
            if (value := self.fields.get(name)) not in (None, "", 0, False, [], {}):
                return value
        for name in names:
            if (sent := self.headers.get(name)) and (value := header_text(name, sent)):
                return value
        return next((value for name in names if (value := self.query.get(name, "").strip())), "")

    def text(self, names: tuple[str, ...]) -> str:
        """The first text that is not empty; `NtfyRefused` for another JSON type."""
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
    """What encoded words say; as they are if that cannot be read."""
    try:
        words = decode_header(match[0])
        is_known = all(str(charset).lower() in CHARSETS for _, charset in words)
        return "".join(text.decode(charset) for text, charset in words) if is_known else match[0]
    except (HeaderParseError, UnicodeError):
        return match[0]


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


class Body(NamedTuple):
    """The body of a request to publish: its text, as far as that is kept, or None for a file that is no text.

    `is_picture` if it is one that is kept.
    """

    text: str | None
    size: int = 0
    content_type: str = ""
    is_picture: bool = False


def body_of(beginning: bytes, size: int, content_type: str) -> Body:
    """A body of `size` bytes, of which only the beginning was kept."""
    try:
        text = getincrementaldecoder("utf-8-sig")().decode(beginning, final=size == len(beginning))
    except UnicodeDecodeError:
        if size > len(beginning) or content_type not in OF_TEXT or CONTROL.search(beginning):
            return Body(None, size, content_type)
        text = beginning.decode("windows-1252", "replace")  # as Windows PowerShell sends it
    return Body(text.strip(), size)


def published(
    sent: Publication, topic: str, body: Body, sequence_id: str, moment: Callable[[str], int]
) -> tuple[Content, list[str]]:
    """The content of a request to publish, and ntfy's names of the parameters that were left out.

    `sequence_id` is the path's, or empty. `moment` returns the end of a delay. `NtfyRefused` if one is invalid.
    """
    attach, priority = sent.text(ATTACH), sent.read(PRIORITY)
    delay, template = sent.read(DELAY), sent.read(TEMPLATE)
    buttons, has_other_actions = _buttons(sent.read(ACTIONS))
    image = None if body.is_picture else image_address(attach)
    link = web_address(sent.text(CLICK)) or (None if image else web_address(attach))
    content = Content(
        title=cut(sent.text(TITLE) or topic, MAX_TITLE_CHARACTERS),
        body=_message(sent, body, attach),
        priority=checked_priority(priority) if priority else None,
        url=link,
        tag=cut(sequence_id or sent.text(SEQUENCE), MAX_TAG_CHARACTERS) or None,
        actions=buttons,
        deliver_at=moment(str(delay)) if delay else None,
        tags=_tags(sent.read(TAGS)),
        image=image,
    )
    left_out = {
        "Email": sent.read(EMAIL),
        "Call": sent.read(CALL),
        "Template": template and str(template).lower() not in FALSE,
        "Actions": has_other_actions,
        "Attach": attach and attach not in (link, image),
    }
    return content, [name for name, is_so in left_out.items() if is_so]


def _message(sent: Publication, body: Body, attach: str) -> str:
    """The message; if a file came with it that is not kept, the last line says so.

    Text that comes as a file, without a message, is the message.
    """
    named = sent.text(MESSAGE).replace("\\n", "\n").strip()
    if body.text is None or (body.text and named and not attach and sent.read(FILE_NAME)):
        name = file_name(sent) or f"attachment{mimetypes.guess_extension(body.content_type) or ''}"
        line = "" if body.is_picture else f"\n({name}, {_in_words(body.size)}, not kept)"
        return cut(named or FILE_MESSAGE.format(name), MAX_BODY_CHARACTERS - len(line)) + line
    text = body.text or named
    if attach and not text:
        text = FILE_MESSAGE.format(file_name(sent) or _name_at(attach) or "attachment")
    return cut(text or EMPTY_MESSAGE, MAX_BODY_CHARACTERS)


def file_name(sent: Publication) -> str:
    """The name that was sent of a file; empty if there is none."""
    return cut(" ".join(sent.text(FILE_NAME).split()), MAX_FILE_NAME_CHARACTERS)


def _name_at(address: str) -> str:
    """The name of the file at an address; empty if there is none, or if it is no address, such as `http://[`."""
    try:
        name = unquote(urlsplit(address).path).rpartition("/")[2]
    except ValueError:
        return ""
    return cut(" ".join(name.split()), MAX_FILE_NAME_CHARACTERS)


def _in_words(size: int) -> str:
    """The size of a file."""
    return f"{size / 1_000_000:.1f} MB" if size >= 1_000_000 else f"{math.ceil(size / 1_000)} kB"


def cut(text: str, longest: int) -> str:
    """At most `longest` characters of a text, trimmed, with U+FFFD for a NUL."""
    return without_nul(text.strip()[:longest].strip())


def checked_priority(sent: Any) -> int:
    """The number of a priority that was sent as a number or as a word; `NtfyRefused` if it is none."""
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


def _buttons(sent: Any) -> tuple[tuple[dict[str, str], ...], bool]:
    """The actions that open an address, as buttons; and whether there are others, which are left out."""
    try:
        actions = parsed_actions(sent) if isinstance(sent, str) else sent
        if not isinstance(actions, list):
            raise ActionsError("they must be an array.")
        buttons = [button for action in actions if (button := _button(action))][:MAX_ACTIONS]
    except ActionsError as error:
        raise NtfyRefused(40018, f"actions cannot be understood: {error}") from None
    return tuple(buttons), len(buttons) < len(actions)


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


# --- answers ------------------------------------------------------------------------------------------------


def attachment(content: Content, url: str | None, expires_at: int) -> dict[str, Any] | None:
    """The picture at `url` as ntfy's attachment; only of one that is kept are type, size and end (ms) known."""
    if url is None:
        return None
    if not content.picture:
        return {"name": _name_at(url) or "image", "url": url}
    content_type, size, name = content.picture
    return {"name": name, "type": content_type, "size": size, "expires": expires_at // 1_000, "url": url}


def message(notification: Recorded, topic: str, attached: dict[str, Any] | None) -> dict[str, Any]:
    """A notification as ntfy's message object, with the buttons that open an address."""
    content = notification.content
    actions = [
        {"id": f"{notification.id}-{place}", "action": "view", **action, "clear": False}
        for place, action in enumerate(content.actions)
        if "url" in action
    ]
    at = content.deliver_at or notification.created_at
    return message_object(notification.id, at, topic, content, actions, attached)


def message_object(
    id_: str, at: int, topic: str, content: Content, actions: list[dict[str, Any]], attached: dict[str, Any] | None
) -> dict[str, Any]:
    """A message object of this time (ms), without what is not set; the content's tag is its sequence."""
    optional: dict[str, Any] = {"priority": content.priority, "tags": list(content.tags), "click": content.url}
    optional |= {"actions": actions, "sequence_id": content.tag, "attachment": attached}
    always = {"id": id_, "time": at // 1_000, "event": "message", "topic": topic, "title": content.title}
    return {**always, "message": content.body, **{name: value for name, value in optional.items() if value}}


def fitted(answer: dict[str, Any]) -> dict[str, Any]:
    """The message object in `MAX_ANSWER_BYTES`: its message is cut, and if need be other fields are dropped."""
    if _size(answer) <= MAX_ANSWER_BYTES:
        return answer
    shorter = {**answer, "message": ""}
    for name in ("actions", "attachment", "click", "tags", "title"):
        if _size(shorter) > MAX_ANSWER_BYTES:
            shorter.pop(name, None)
    kept = longest(answer["message"], lambda text: _size({**shorter, "message": text}) <= MAX_ANSWER_BYTES)
    return {**shorter, "message": kept}


def _size(answer: dict[str, Any]) -> int:
    return len(as_json(answer).encode()) + 1  # the line end


def account(username: str, plan: str, today: int, limit: int, remaining: int, kept_s: int) -> dict[str, Any]:
    """An account as ntfy shows it: its messages of today, and the quota of its key; other features have 0."""
    none = {"emails": 0, "calls": 0, "reservations": 0, "attachment_total_size": 0}
    limits = {"messages": limit, "messages_expiry_duration": kept_s, **none}
    limits |= {"attachment_file_size": 0, "attachment_expiry_duration": 0, "attachment_bandwidth": 0}
    stats = {"messages": today, "messages_remaining": remaining, **none}
    stats |= {f"{name}_remaining": 0 for name in none}
    tier = {"code": plan, "name": plan}
    return {"username": username, "role": "user", "tier": tier, "limits": {"basis": "tier", **limits}, "stats": stats}


def access_token(key: str, expires_at: int | None, now: int) -> dict[str, Any]:
    """A key as the access token that ntfy would make: 0 as `expires` says that it never does."""
    ends_s = (expires_at or 0) // 1_000
    return {"token": key, "label": "", "last_access": now // 1_000, "last_origin": "", "expires": ends_s}
