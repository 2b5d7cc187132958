"""Writing JSON: `as_json` as text, `json_bytes` for answers, which may be long; `longest` makes a text fit.

`own_json` reads the service's own JSON; `strict_json.py` reads other programs'.
"""

import json
from bisect import bisect
from collections.abc import Callable
from typing import Any

COMPACT: Any = {"ensure_ascii": False, "separators": (",", ":")}
as_json = json.JSONEncoder(**COMPACT).encode

try:
    import orjson  # which is faster
except ImportError:  # there is no wheel for every machine (requirements.in)
    orjson = None  # type: ignore[assignment]


def json_bytes(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """A value as JSON in UTF-8. A float may have its exponent in another form: 1e-7 for 1e-07.

    `default` makes a JSON value of any other type.
    """
    if orjson:
        try:
            return orjson.dumps(value, default)
        except TypeError:  # such as an integer of more than 64 bits
            pass
    return json.JSONEncoder(**COMPACT, default=default).encode(value).encode()


def own_json(text: str) -> Any:
    """The value of JSON that the service or its database wrote; an integer in it has at most 64 bits."""
    if orjson:
        try:
            return orjson.loads(text)
        except ValueError:  # half of a surrogate pair
            pass
    return json.loads(text)


def longest(text: str, fits: Callable[[str], bool]) -> str:
    """The text, or as much of its beginning as fits before a `…`.

    JSON's escapes make characters of different sizes, so the place of the cut is found by bisection.
    """
    if fits(text):
        return text
    cut = bisect(range(1, len(text) + 1), False, key=lambda length: not fits(text[:length] + "…"))
    return text[:cut] + "…"
