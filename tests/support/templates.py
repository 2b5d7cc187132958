"""Templates, rendered with a payload."""

import json

from core import message_templates
from core.template_filters import Work
from wire import strict_json

FILTERS = [
    *["default", "upcase", "downcase", "capitalize", "tidy", "truncate", "join", "map", "size", "first", "last"],
    *["round", "date", "where", "replace", "append", "prepend", "translate", "hash", "parse_json"],
]


def filled(template, payload, limit=10_000, zone="UTC"):
    """What `fill` makes from a webhook's body; a payload given as text is raw JSON."""
    raw = payload if isinstance(payload, str) else json.dumps(payload)
    return message_templates.fill(template, strict_json.parse_event(raw.encode()), limit, Work(zone))


def rendered(template, payload, **more):
    return filled(template, payload, **more).text


def applied(filters, value, **more):
    """The text that a value, given as JSON, becomes behind these filters."""
    return rendered("{{ v | " + filters + " }}", f'{{"v": {value}}}', **more)


# Variables


NUMBERS = [
    *["0", "-0", "7", "-12", "9.90", "1.0", "-0.0", "0.10", "1e5", "1E+2", "1.50e-07", "5e-324", "1e-400", "1e308"],
    *["3.14159265358979323846264338327950288", "9007199254740993", "9" * 100, "-" + "9" * 100],
    *["0." + "1" * 3_000, "100000000000000000000000000.50"],
]


# Filters: the notation


WRONG_ARGUMENTS = [
    *["parse_json: 1", "parse_json: a", 'parse_json: "a", "b"'],
    *[
        *("hash: 1", "upcase: 1", 'upcase: "x"', "downcase: 1", "capitalize: 'x'", "tidy: 1", "size: 1"),
        *("first: 1", 'last: "x"'),
    ],
    *["truncate", "truncate:", "truncate: 0", 'truncate: "x"', "truncate: -3", "truncate: 3.5", "truncate: 3, 4"],
    *["truncate: abc", "truncate 3", "truncate: 3 4", "default", "default: x", 'default: "a", "b"'],
    *['default: "a" "b"', "map", "map: a", 'map: "a", "b"', "date", "date: %H", 'date: "%H", "%M"'],
    *["join: ,", 'join: ",", ","', "where", 'where: "a"', 'where: "a",', 'where: a, "1"', 'where: "a", 1, 2'],
    *['where: 1, "a"', 'where: "a" "1"', 'where: "a", b', 'where: , "1"', 'where: "a", -1', 'where "a", "1"'],
    f'date: "{"%5000Y" * 17}"',  # 102 characters
    *["round: 21", "round: -1", "round: 1.5", 'round: "x"', "round: x", "round: 1, 2", "round: 99999999999"],
]


# Properties, against an oracle that is slow and obvious


def cut(text, limit):
    return text if len(text) <= limit else text[: limit - 1] + "…"
