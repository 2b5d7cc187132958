"""`as_text`: a value of a payload as text. Pure; the work is bounded by the limit, however large the value is."""

import re
from collections.abc import Callable
from contextlib import suppress

from wire.json_text import as_json, json_bytes
from wire.strict_json import Number

WORDS = {True: "true", False: "false", None: "null"}
MARKED = re.compile(rb'"\\u0000([^"]+)"')  # a number between two passes of `payload_json`


class _Full(Exception):
    """The text has reached its limit."""


def cut(text: str, limit: int) -> str:
    """The text in at most `limit` characters, ending with `…` if it is longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def as_text(value: object, limit: int) -> str:
    """The first `limit` characters of a value's text."""
    if isinstance(value, str):
        return value[:limit]
    if isinstance(value, (dict, list)):
        return _compact_json(value, limit)
    return "" if value is None else scalar_text(value)[:limit]


def payload_json(payload: dict[str, object]) -> bytes:
    """A payload as compact JSON in UTF-8, its numbers digit for digit.

    No encoder knows a `Number`, so each goes through it as a string that begins with NUL, which no text of a payload
    holds (`parse_event`).
    """
    marked = json_bytes(payload, lambda number: "\0" + number.decode())
    return MARKED.sub(lambda found: found[1], marked)  # a template of `sub` takes five times as long


def scalar_text(value: object) -> str:
    """A number, a boolean or null as in the JSON."""
    if isinstance(value, Number):
        return value.decode()
    return WORDS[value] if value is None or isinstance(value, bool) else str(value)


def _compact_json(value: object, limit: int) -> str:
    parts: list[str] = []
    left = limit

    def add(part: str) -> None:
        nonlocal left
        parts.append(part)
        left -= len(part)
        if left <= 0:
            raise _Full

    with suppress(_Full):
        _write_json(value, add, limit)
    return "".join(parts)[:limit]


def _write_json(value: object, add: Callable[[str], None], limit: int) -> None:
    if isinstance(value, dict):
        separator = "{"
        for key, item in value.items():
            add(f"{separator}{as_json(key[:limit])}:")
            _write_json(item, add, limit)
            separator = ","
        add("}" if value else "{}")
    elif isinstance(value, list):
        add("[")
        for position, item in enumerate(value):
            if position:
                add(",")
            _write_json(item, add, limit)
        add("]")
    else:
        add(as_json(value[:limit]) if isinstance(value, str) else scalar_text(value))
