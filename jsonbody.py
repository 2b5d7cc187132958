"""`parse_json`: the one way a request body becomes an object (CONTRACT 3, JSON).

The standard decoder does the work; this module adds what it lets through (NaN, numbers beyond a double,
lone surrogates, NUL, unbounded nesting) and says what is wrong and where. Time is linear in the body.
Must not know Flask or what the fields mean.
"""

import json
import math
import re
from itertools import accumulate
from typing import Any

from errors import Refused

MAX_DEPTH = 64
MAX_INTEGER_DIGITS = 100

LONG_INTEGER = re.compile(rf"(?<!\d)\d{{{MAX_INTEGER_DIGITS + 1}}}")
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
SURROGATE = re.compile("[\ud800-\udfff]")
BRACKET = re.compile(r"[\[\]{}]")
STORABLE_ESCAPES = re.compile(  # no NUL; surrogates in pairs
    r'(?:[^\\]++|\\(?:["\\/bfnrt]|u(?!0000|[dD][89a-fA-F])....|u[dD][89abAB]..\\u[dD][c-fC-F]..))*+', re.DOTALL
)
TOKEN = re.compile(STRING.pattern + r"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity|[\[\]{}]", re.DOTALL)


class _Unusable(Exception):
    """The decoder met a value that is JSON to Python but not to us."""


def parse_json(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`; of duplicate keys the last wins.

    Raises `Refused` (400) with a sentence that says what is wrong and at which line and column.
    """
    text = _decode(raw)
    decoder = WARY_DECODER if LONG_INTEGER.search(text) else DECODER
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refused(400, _syntax_sentence(error)) from None
    except (_Unusable, RecursionError):
        raise Refused(400, _first_fault(text)) from None
    _check_text(text)
    if not isinstance(value, dict):
        raise Refused(400, f"The body must be a JSON object, not {_kind(value)}.")
    return value


def _decode(raw: bytes) -> str:
    if not raw:
        raise Refused(400, "The body is empty at line 1, column 1: it must be a JSON object.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        raise Refused(400, f"The body is not valid UTF-8 at {_place(before, len(before))}.") from None


def _syntax_sentence(error: json.JSONDecodeError) -> str:
    what = error.msg.split(" (")[0].removesuffix(" at").removesuffix(":")
    return f"The body is not valid JSON: {what} at line {error.lineno}, column {error.colno}."


def _no_constant(_: str) -> float:
    raise _Unusable


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise _Unusable
    return value


def _bounded(literal: str) -> int:
    if len(literal.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise _Unusable
    return int(literal)


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
WARY_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded)


def _check_text(text: str) -> None:
    """Depth and escapes of a text that was decoded; either is looked at only where there could be a fault."""
    deep = text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH
    if deep or ("\\u" in text and not STORABLE_ESCAPES.fullmatch(text)):
        raise Refused(400, _first_fault(text))


def _depth(text: str) -> int:
    brackets = BRACKET.findall(STRING.sub("", text))
    return max(accumulate(1 if bracket in "[{" else -1 for bracket in brackets))


def _first_fault(text: str) -> str:
    """The sentence for the first thing in the text that the decoder lets through and we do not."""
    depth = 0
    for token in TOKEN.finditer(text):
        literal = token[0]
        if literal in "[{":
            depth += 1
        elif literal in "]}":
            depth -= 1
        fault = f"nesting deeper than {MAX_DEPTH} levels" if depth > MAX_DEPTH else _fault_of(literal)
        if fault:
            return f"The body is not valid JSON: {fault} at {_place(text, token.start())}."
    return "The body is not valid JSON."


def _fault_of(literal: str) -> str | None:
    if literal[0] == '"':
        return _string_fault(literal) if "\\u" in literal else None
    if literal[-1] in "Ny":
        return f"{literal} is not a JSON number"
    if literal[-1].isdigit():
        return _number_fault(literal)
    return None


def _string_fault(literal: str) -> str | None:
    value = json.loads(literal)
    if "\0" in value:
        return "a string with a NUL character"
    return "a string with a lone surrogate" if SURROGATE.search(value) else None


def _number_fault(literal: str) -> str | None:
    if literal.lstrip("-").isdigit():
        return f"an integer of more than {MAX_INTEGER_DIGITS} digits" if LONG_INTEGER.search(literal) else None
    return "a number outside a double's range" if math.isinf(float(literal)) else None


def _place(text: str, index: int) -> str:
    line = text.count("\n", 0, index) + 1
    column = index - text.rfind("\n", 0, index)
    return f"line {line}, column {column}"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return "a string" if isinstance(value, str) else "an array"
