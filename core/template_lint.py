"""`unfilled`: the parts of a template that stay visible as they are written, and why. Pure; bounded like filling.

Any text is a valid template, so nothing is refused here: the author is warned.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from core.message_templates import Placeholder, Stuck, misused, read, values
from core.template_filters import Work
from core.value_text import cut

MAX_UNFILLED = 20  # parts
MAX_SHOWN = 60  # characters of a part
TAKES = {  # a filter's argument; the others take none
    "default": 'the text to show instead, as in default: "n/a"',
    "truncate": "a number of characters, as in truncate: 30",
    "join": 'what to put between, as in join: ", "',
    "map": 'a path, as in map: "name"',
    "parse_json": 'nothing or a path in quotes, as in parse_json: "name"',
    "where": 'a path and a value, as in where: "status", "firing"',
    "replace": 'a text and what to put in its place, as in replace: "error", "high"',
    "append": 'the text to put after it, as in append: " GB"',
    "prepend": 'the text to put before it, as in prepend: "on "',
    "translate": 'pairs of a word and its translation, as in translate: "0=down, 1=up, *=unknown"',
    "round": "a number of decimals up to 20, as in round: 1",
    "date": 'a layout of at most 100 characters, as in date: "%H:%M"',
}
NO_TEXT_AT_THE_END = 'a text in quotes must end it, as in default: b | default: "n/a".'
NEEDS = {  # the others fit any value
    "join": "an array",
    "map": "an array",
    "where": "an array",
    "first": "an array",
    "last": "an array",
    "size": "an array, an object or a text",
    "parse_json": "a text of at most 100,000 characters",
    "round": "a number",
    "date": "a time: Unix seconds, milliseconds or ISO 8601",
}
OPENING = re.compile(r"\{\{|\{%")


class Unfilled(NamedTuple):
    """A part of a template as it is shown, shortened, and why it stays."""

    text: str
    why: str


def unfilled(template: str, payload: dict[str, Any] | None = None, zone: str = "UTC") -> list[Unfilled]:
    """The parts that no payload fills and, given a payload, parts that its values do not fit; each once, in order."""
    found, parsed = dict[Unfilled, None](), read(template)
    for placeholder, value in values(parsed, payload or {}, Work(zone)):
        found |= dict.fromkeys(_between(placeholder.before))
        if why := _reason(placeholder, value):
            found[_part(placeholder.written, why)] = None
        if len(found) >= MAX_UNFILLED:
            break
    else:
        found |= dict.fromkeys(_between(parsed.rest))
    return list(found)[:MAX_UNFILLED]


def _part(text: str, why: str) -> Unfilled:
    return Unfilled(cut(" ".join(text.split()), MAX_SHOWN), why)


def _between(text: str) -> Iterator[Unfilled]:
    """The parts between two placeholders that were meant to be placeholders."""
    openings = [opening.start() for opening in OPENING.finditer(text)][:MAX_UNFILLED]
    for start, after in pairwise([*openings, len(text)]):
        is_tag = text.startswith("{%", start)
        closing = text.find("%}" if is_tag else "}}", start, after)
        end = after if closing < 0 else closing + 2
        if is_tag:
            yield _part(text[start:end], "tags are not supported, only variables and filters.")
        else:
            why = "the closing }} is missing." if closing < 0 else "a quotation mark is not closed."
            yield _part(text[start:end], why)


def _reason(placeholder: Placeholder, value: object) -> str:
    """Why a placeholder stays visible; empty if it does not, or only because the payload lacks its variable."""
    if not placeholder.path:
        return "the name of a variable is missing."
    if (name := misused(placeholder)) is not None:
        is_path = name == "default" and placeholder.ends_in_path
        return NO_TEXT_AT_THE_END if is_path else f"{name} takes {TAKES.get(name, 'nothing after its name')}."
    if not isinstance(value, Stuck):
        return ""
    return "the payload is too large for that." if value.is_costly else f"{value.filter} needs {NEEDS[value.filter]}."
