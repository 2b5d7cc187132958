"""An event's title, text, link and picture where its alert has no template (docs/alerts.md). Pure.

They come from fields with the usual names, from a chat message's cards, or from all fields of the event. Payloads are
not trusted: the work is bounded, however large they are. The text is never JSON.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from typing import Any

from core import cards
from core.value_text import cut, scalar_text
from wire.errors import Refused
from wire.notification import Content, image_address, web_address
from wire.strict_json import Number, parse_embedded

TITLE_FIELDS = ("title", "subject", "summary", "name", "alertname", "event")
BODY_FIELDS = ("message", "body", "text", "msg", "content", "description", "reason", "details")
LINK_FIELDS = ("url", "link", "html_url", "permalink")
PICTURE_FIELDS = ("image", "image_url", "imageurl")
FIELDS = (*TITLE_FIELDS, *BODY_FIELDS, *LINK_FIELDS)
NO_TEXT = "(no text)"
PLACES = {"repository", "repo", "project", "organization", "workspace", "team", "channel"}  # their texts are no news
PEOPLE = {"user", "sender", "author", "actor", "owner", "assignee", "creator", "member", "pusher", "customer"}
MAX_LINES = 20
MAX_LINE = 200  # characters of a value in a line
LEVELS = 2  # of objects whose values become lines
MAX_LOOKED_AT = 500  # objects or values that are looked at
MAX_EMBEDDED = 100_000  # characters of a text that is read as JSON
BEGINS_AS_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[{\"])")
UNREADABLE = re.compile(r"https?://|[^\s,]{40}")
NO_WORDS = re.compile(r"\{\s*\"|\[\s*\{|data:[\w/]+;base64")  # JSON, or a file in an address

Payload = dict[str, Any]


def default_message(payload: Payload, name: str) -> Content:
    """Title, body, link and picture of an event for an alert with that name. An empty title stands for the name."""
    path, event = _unwrapped(_read(payload))
    top = _lowered(event)
    card = cards.read(top)
    title, text = _first([top], TITLE_FIELDS), _first([top], BODY_FIELDS)
    url = next(filter(None, (web_address(top[field]) for field in LINK_FIELDS if field in top)), None)
    image = next(filter(None, (image_address(top[field]) for field in PICTURE_FIELDS if field in top)), None)
    if card or "<http" in text or top.get("@type") == "MessageCard":
        said = card or cards.Cards()
        text = said.plain(text)
        url, image = url or said.url, image or said.image
    if card and (card.title or card.lines):
        title, text = _of_card(card, title, text, bool(top.get("blocks")))
    elif not title or not text:
        title, text = _from_below(path, event, title, text)
    if not text:
        title, _, text = title.partition("\n")
    if not text.strip() or text == title:
        lines = [] if card else _lines(event, (title, url, image), path)
        text = "\n".join(lines) or (name if title and title != name else NO_TEXT)
    return Content(title, text, url=url, image=image)


def _from_below(path: str, event: Payload, title: str, text: str) -> tuple[str, str]:
    """Title and text, looked for one level down if they are not at the top."""
    inside = [(key.lower(), _lowered(inner)) for key, inner in _inside(event) if key.lower() not in PEOPLE]
    events = [inner for key, inner in inside if key not in PLACES]
    title = title or _first(events, TITLE_FIELDS) or _first([inner for _, inner in inside], TITLE_FIELDS)
    if not text and (text := _first(events, BODY_FIELDS)) and not title:
        text = "\n".join([text, *_lines(event, (text,), path, levels=1)])  # the lines say whose text it is
    return title, text


def _read(payload: Payload) -> Payload:
    """The event itself: of an array, the first object."""
    items = payload.get("items")
    if len(payload) == 1 and isinstance(items, list):
        payload = next((item for item in items[:MAX_LOOKED_AT] if isinstance(item, dict)), payload)
    return _opened(payload)


def _opened(event: Payload) -> Payload:
    """The event with each of its texts that holds a JSON object as that object."""
    held = {}
    for key, value in islice(event.items(), MAX_LOOKED_AT):
        if isinstance(value, str) and len(value) <= MAX_EMBEDDED and value.lstrip().startswith("{"):
            with suppress(Refused):
                held[key] = parse_embedded(value)
    return {**event, **held}


def _unwrapped(event: Payload) -> tuple[str, Payload]:
    """The first object inward that is more than a wrapper of one other object, and the path to it."""
    path = ""
    while len(event) == 1:
        ((key, inner),) = event.items()
        if not isinstance(inner, dict):
            break
        path, event = f"{path}{key}.", _opened(inner)
    return path, event


def _lowered(level: Payload) -> Payload:
    return {key.lower(): value for key, value in level.items()}


def _first(levels: Iterable[Payload], fields: tuple[str, ...]) -> str:
    """The first text that one of the levels has under the first of these names; empty if there is none."""
    for field in fields:
        for level in levels:
            if field in level and (text := _text(level[field])):
                return text
    return ""


def _text(value: Any) -> str:
    is_text = isinstance(value, str) and value.strip() and not BEGINS_AS_JSON.match(value)
    return value if is_text else ""


def _inside(level: Payload) -> Iterator[tuple[str, Payload]]:
    """The objects one level down with their keys; an array stands for its first item."""
    for key, value in islice(level.items(), MAX_LOOKED_AT):
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, dict):
            yield key, inner


def _of_card(card: cards.Cards, title: str, text: str, has_blocks: bool) -> tuple[str, str]:
    """Title and text of a message with cards. Beside blocks, Slack shows the message's own text only as a title."""
    if has_blocks and card.lines:
        title, text = title or card.title or text, ""
    title = title or card.title
    said = [text, card.title, *card.lines]
    return title, "\n".join(line for line in dict.fromkeys(said) if line and line != title)


def _lines(event: Payload, shown: tuple[str | None, ...], path: str, levels: int = LEVELS) -> list[str]:
    """The event's values as lines, except for values that are `shown` already; addresses and hashes come last.

    They are from the first `levels` levels, or from the first level with any values.
    """
    lines, waiting, left = list[tuple[bool, str]](), deque([(path, event, 1)]), MAX_LOOKED_AT
    while waiting and left > 0:
        path, level, depth = waiting.popleft()
        if depth > levels and (lines or levels == 1):
            break
        for key, value in islice(level.items(), left):
            left -= 1
            if value not in shown and (text := _line(value)):
                lines.append((UNREADABLE.match(text) is not None, f"{path}{key}: {text}"))
        waiting.extend((f"{path}{key}.", inner, depth + 1) for key, inner in _inside(level))
    return [line for _, line in sorted(lines, key=itemgetter(0))[:MAX_LINES]]


def _line(value: Any) -> str:
    """A scalar, or an array of scalars, in one line; empty for an empty value, null, JSON or a file."""
    if isinstance(value, list):
        return ", ".join(text for item in value[:MAX_LINES] if not isinstance(item, list) and (text := _line(item)))
    if isinstance(value, str):
        text = " ".join(value[: MAX_LINE * 2].split())
        return "" if NO_WORDS.search(text) else cut(text, MAX_LINE)
    return scalar_text(value) if isinstance(value, (bool, int, Number)) else ""
