"""A notification's content, statuses, and shape in a request and in an answer. Must not know Flask or SQL.

Stated here once: the REST API and the history's filter take it from here, and tests hold schema.sql and
docs/openapi.yaml to it, which describes it to assistants, too. An optional field is a field of `Content` and a row of
`FIELDS`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from wire.errors import Refused
from wire.validation import (
    MAX_BODY_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    checked_length,
    checked_seconds,
    checked_string,
    either,
)

TITLE_PREFIX = "MCP - "  # before every title that is delivered
STATUSES = ("delivered", "pending", "held", "failed")
PRIORITIES = {"min": 1, "low": 2, "normal": 3, "high": 4, "urgent": 5}
PRIORITY_WORDS = {number: word for word, number in PRIORITIES.items()}
MIN_PRIORITY, LOW_PRIORITY, DEFAULT_PRIORITY, HIGH_PRIORITY, MAX_PRIORITY = PRIORITIES.values()
MAX_URL_CHARACTERS = 2_000
MAX_TAG_CHARACTERS = 64
MAX_ACTIONS = 3
MAX_LABEL_CHARACTERS = 40
MAX_ANSWER_CHARACTERS = 100
MIN_REPEATING_S, MAX_REPEATING_S = 30, 10_800  # of both times of `acknowledge`
EVERY_S, FOR_S = 60, 3_600  # of `acknowledge: true`
MAX_AHEAD_MS = 366 * 86_400_000  # of `deliverAt`
MAX_HOPS = 3  # what came through so many services goes to no webhook
LAST_TIME = 253_402_300_799_999  # the end of the year 9999, in ms
STEPS_BELOW = 10_000_000  # a smaller time counts steps, or is a test's
SECONDS_BELOW = 1_000_000_000_000  # 2001-09-09 in ms, or the year 33658 in seconds

HTTPS = re.compile("https://", re.I)
URL = re.compile(r"https?://[^\s/?#\\\x00-\x1f\x7f-\x9f][^\s\x00-\x1f\x7f-\x9f]*", re.I)


class Content(NamedTuple):
    """Everything that a notification says, from the check of a request to the row and the push.

    Each field is the column of its name in the table `notification`. An optional field that was not set has its
    default, which is NULL in the column.
    """

    title: str  # with the prefix once it is recorded
    body: str
    missing: tuple[str, ...] = ()  # the variables that an alert's template wanted and the event lacked
    priority: int | None = None
    url: str | None = None  # a tap opens it
    tag: str | None = None  # the newest notification with a tag replaces the earlier ones
    expires_at: int | None = None  # after it nothing is tried
    actions: tuple[dict[str, str], ...] = ()  # the buttons, each with `label` and either `url` or `answer`
    acknowledge: tuple[int, ...] = ()  # the seconds between repeats until it is acknowledged, and of all repeats
    deliver_at: int | None = None  # it is held until then
    tags: tuple[str, ...] = ()  # ntfy's tags, for its app
    image: str | None = None  # the address of a picture elsewhere
    picture: tuple[str | int, ...] = ()  # the content type, bytes and file name of a picture that came with it
    hops: int | None = None  # through how many services like this it came, if through any

    @property
    def given(self) -> dict[str, Any]:
        """The optional fields that were set, by name; most have none."""
        optional = self[2:]
        if optional == PLAIN:
            return {}
        each = zip(self._field_defaults, optional, strict=True)
        return {name: value for name, value in each if value is not None and value != ()}

    def prefixed(self) -> "Content":
        """The content as it is delivered, with the prefix before its title."""
        return Content._make((TITLE_PREFIX + self.title, *self[1:]))  # `_replace` takes four times as long


PLAIN = tuple(Content._field_defaults.values())  # the fields after title and body, if none is set


def bare(title: str) -> str:
    """A title without the prefix that all delivered ones have."""
    return title.removeprefix(TITLE_PREFIX)


class RequestField(NamedTuple):
    """A field of a request to send a notification, which the answer has too if it was set.

    `check` takes the sent value, which is never null, and the field's name, and returns the value to keep, or raises
    `Refused` (400) that names the field.
    """

    name: str  # that of the field of `Content`, in camel case
    check: Callable[[Any, str], Any]
    answered: Callable[[Any], Any] = lambda value: value  # the kept value as it is answered


def _text(longest: int) -> Callable[[Any, str], str]:
    """The check of a text that must not be blank and has at most `longest` characters."""
    return lambda sent, name: checked_length(checked_string(sent, name), name, longest)


def checked_priority(sent: Any, name: str) -> int:
    """The number of a priority that was sent as a number or as a word."""
    number = PRIORITIES.get(sent, 0) if isinstance(sent, str) else sent
    if type(number) is not int or not MIN_PRIORITY <= number <= MAX_PRIORITY:
        raise Refused(400, f"{name} must be a whole number from 1 to 5, or {either(PRIORITIES)}.", field=name)
    return number


def checked_url(sent: Any, name: str) -> str:
    """An http or https address of at most 2,000 characters, as it was sent."""
    url = checked_length(checked_string(sent, name), name, MAX_URL_CHARACTERS)
    if not URL.fullmatch(url) or not _has_host(url):
        sentence = f"{name} must be an address that begins with http:// or https://, without spaces."
        raise Refused(400, sentence, field=name)
    return url


def checked_image(sent: Any, name: str) -> str:
    """An https address of at most 2,000 characters, as it was sent: phones show no picture from another one."""
    if isinstance(sent, str) and not HTTPS.match(sent):
        raise Refused(400, f"{name} must be an address that begins with https://.", field=name)
    return checked_url(sent, name)


def image_address(sent: Any) -> str | None:
    """An address from which a phone shows a picture; None for anything else."""
    address = web_address(sent)
    return address if address and HTTPS.match(address) else None


def web_address(sent: Any) -> str | None:
    """An address that a tap can open; None for anything else."""
    try:
        return checked_url(sent, "url")
    except Refused:
        return None


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket that is not closed, a port that is no number
        return False


def _checked_tag(sent: Any, name: str) -> str:
    tag = checked_string(sent, name)
    if not 1 <= len(tag) <= MAX_TAG_CHARACTERS:
        raise Refused(400, f"{name} must have 1 to {MAX_TAG_CHARACTERS} characters.")
    return tag


def checked_time(sent: Any, name: str) -> int:
    """A time in milliseconds, as it was sent."""
    if type(sent) is not int or not 0 <= sent <= LAST_TIME:
        what = "a Unix time in milliseconds, from 0 to the end of the year 9999"
        raise Refused(400, f"{name} must be a whole number: {what}.", field=name)
    if STEPS_BELOW <= sent < SECONDS_BELOW:
        raise Refused(400, f"{name} looks like seconds: it takes milliseconds.", field=name)
    return sent


def _checked_actions(sent: Any, name: str) -> tuple[dict[str, str], ...]:
    if not isinstance(sent, list) or not 1 <= len(sent) <= MAX_ACTIONS:
        raise Refused(400, f"{name} must be an array of 1 to {MAX_ACTIONS} buttons.")
    return tuple(_checked_action(action, f"{name}[{place}]") for place, action in enumerate(sent))


def _checked_action(sent: Any, name: str) -> dict[str, str]:
    given = {part: value for part, value in sent.items() if value is not None} if isinstance(sent, dict) else {}
    if ("url" in given) == ("answer" in given) or given.keys() - {"label", "url", "answer"}:
        raise Refused(400, f"{name} must be an object with label, either url or answer, and nothing else.")
    checks = {"label": _text(MAX_LABEL_CHARACTERS), "url": checked_url, "answer": _text(MAX_ANSWER_CHARACTERS)}
    kind = "url" if "url" in given else "answer"
    return {part: checks[part](given.get(part), f"{name}.{part}") for part in ("label", kind)}


def _checked_acknowledge(sent: Any, name: str) -> tuple[int, ...]:
    """Both times in seconds."""
    if sent is True:
        return EVERY_S, FOR_S
    if not isinstance(sent, dict) or sent.keys() - {"everyS", "forS"}:
        raise Refused(400, f"{name} must be true or an object with everyS, forS and nothing else.")
    parts = {"everyS": EVERY_S, "forS": FOR_S} | {part: time for part, time in sent.items() if time is not None}
    bounds = MIN_REPEATING_S, MAX_REPEATING_S
    return tuple(checked_seconds(time, f"{name}.{part}", *bounds) for part, time in parts.items())


def as_acknowledge(times: tuple[int, ...]) -> dict[str, int]:
    """The two times of `acknowledge` as they are answered."""
    return dict(zip(("everyS", "forS"), times, strict=True))


FIELDS = (
    RequestField("title", _text(MAX_TITLE_CHARACTERS)),
    RequestField("body", _text(MAX_BODY_CHARACTERS)),
    RequestField("priority", checked_priority),
    RequestField("url", checked_url),
    RequestField("tag", _checked_tag),
    RequestField("expiresAt", checked_time),
    RequestField("actions", _checked_actions),
    RequestField("acknowledge", _checked_acknowledge, answered=as_acknowledge),
    RequestField("deliverAt", checked_time),
    RequestField("image", checked_image),
)
BY_COLUMN = {re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", field.name): field for field in FIELDS}
REQUIRED_FIELDS = ("title", "body")
OPTIONAL_FIELDS = {column: field for column, field in BY_COLUMN.items() if column not in REQUIRED_FIELDS}
SHOWN_COLUMNS = (*OPTIONAL_FIELDS, "picture")  # which is answered as `image`
FIELD_NAMES = tuple(field.name for field in FIELDS)


def checked_content(request: Mapping[str, Any]) -> Content:
    """The content of a request to send a notification; `Refused` (400) names the first wrong field."""
    said: dict[str, Any] = {}
    for column, field in BY_COLUMN.items():
        sent = request.get(field.name)
        if sent is not None:
            said[column] = field.check(sent, field.name)
        elif column in REQUIRED_FIELDS:
            raise Refused(400, f"{field.name} is required.")
    if "acknowledge" in said:
        said["priority"] = MAX_PRIORITY
    return Content(**said)


def check_times(content: Content, now: int) -> None:
    """Refuse (400) a time that is not in the future, and an expiry before the delivery."""
    if content.deliver_at is not None:
        if content.deliver_at <= now:
            raise Refused(400, "deliverAt must be in the future.")
        if content.deliver_at > now + MAX_AHEAD_MS:
            raise Refused(400, "deliverAt must be at most 366 days ahead.")
    if content.expires_at is not None:
        if content.expires_at <= now:
            raise Refused(400, "expiresAt must be in the future.")
        if content.deliver_at is not None and content.expires_at <= content.deliver_at:
            raise Refused(400, "expiresAt must be after deliverAt.")


class Recorded(NamedTuple):
    """A notification that is stored."""

    seq: int  # of its row; 0 in a repeated answer: it may be deleted since
    id: str
    status: str
    created_at: int
    content: Content


def as_answered(
    id_: str,
    status: str,
    created_at: int,
    title: str,
    body: str,
    given: dict[str, Any] | None,
    image_of: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """A notification as it is answered, with the address of its picture if `image_of` says that of an id.

    `given` is `Content.given`, or None if nothing is set.
    """
    shown = {"id": id_, "title": title, "body": body, "status": status, "createdAt": created_at}
    if given:
        for column, value in given.items():
            if field := OPTIONAL_FIELDS.get(column):
                shown[field.name] = field.answered(value)
        if image_of and "picture" in given:
            shown["image"] = image_of(id_)
    return shown
