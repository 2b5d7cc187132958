"""`parse_json` and `parse_event`: the two ways a request body becomes an object (CONTRACT 3 and 4, JSON).

The standard decoder does the work; this module adds what it lets through (NaN, numbers beyond a double,
lone surrogates, NUL, unbounded nesting) and says what is wrong and where. Time is linear in the body.
Must not know Flask or what the fields mean.
"""

import json
import math
import re
from itertools import accumulate
from typing import Any
from urllib.parse import parse_qsl

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
ANY_ESCAPE = re.compile(  # group 1: one that can be stored
    r"(\\[^u]|\\u(?!0000|[dD][89a-fA-F])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})"
)
MINUS_ZERO = re.compile(r"-0(?![.eE])")
TOKEN = re.compile(STRING.pattern + r"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity|[\[\]{}]", re.DOTALL)


class Number(float):
    """A number of an event: its value, and the digits it was written with."""

    __slots__ = ("literal",)
    literal: str

    def __new__(cls, literal: str) -> "Number":
        """`literal` as it stands in the JSON; `_Unusable` beyond a double's range."""
        number = super().__new__(cls, literal)
        if math.isinf(number):
            raise _Unusable
        number.literal = literal
        return number


class _Unusable(Exception):
    """The decoder met a value that is JSON to Python but not to us."""


def parse_json(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`; of duplicate keys the last wins.

    Raises `Refused` (400) with a sentence that says what is wrong and at which line and column.
    """
    text = _decode(raw)
    value = _object(text, WARY_DECODER if LONG_INTEGER.search(text) else DECODER)
    if "\\u" in text and not STORABLE_ESCAPES.fullmatch(text):
        raise Refused(400, _first_fault(text))
    return value


def parse_event(raw: bytes) -> dict[str, Any]:
    """The object that a webhook's body is: JSON, or a form whose one field `payload` holds JSON.

    Numbers keep their digits: what is no whole number is a `Number`. A NUL or a lone surrogate in a string becomes
    U+FFFD. Raises `Refused` (400) like `parse_json`.
    """
    try:
        return _event(_decode(raw))
    except Refused:
        form = _form_payload(raw)
        if form is None:
            raise
        return _event(form)


def _event(text: str) -> dict[str, Any]:
    if "\\u" in text and not STORABLE_ESCAPES.fullmatch(text):
        text = ANY_ESCAPE.sub(lambda escape: escape[1] or "\\ufffd", text)  # as long as before: places stay right
    wary = LONG_INTEGER.search(text) or MINUS_ZERO.search(text)
    return _object(text, WARY_EVENT_DECODER if wary else EVENT_DECODER)


def _form_payload(raw: bytes) -> str | None:
    """What the form's only field holds, if it is called payload."""
    try:
        fields = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=1)
    except ValueError:
        return None
    return fields[0][1] if fields and fields[0][0] == "payload" else None


def _object(text: str, decoder: json.JSONDecoder) -> dict[str, Any]:
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refused(400, _syntax_sentence(error)) from None
    except (_Unusable, RecursionError):
        raise Refused(400, _first_fault(text)) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise Refused(400, _first_fault(text))
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


def _bounded_as_written(literal: str) -> int | Number:
    return Number(literal) if literal == "-0" else _bounded(literal)


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
WARY_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded)
EVENT_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=Number)
WARY_EVENT_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=Number, parse_int=_bounded_as_written)


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
