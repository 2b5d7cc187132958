"""`parse_json` and `parse_event`: the two ways a request body becomes an object.

The standard decoder does the work. This module refuses values that the decoder lets through (NaN, numbers beyond a
double, lone surrogates, NUL, unbounded nesting) and names the fault and its place, in time that is linear in the
body. Must not know Flask or the fields.
"""

import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any

from wire.errors import Refused

MAX_DEPTH = 64
MAX_INTEGER_DIGITS = 100

# For `_has_great_number`: with every digit turned into a zero and every plus left out, plain searches for bytes find
# each integer that may be too long and each exponent of three digits.
ALL_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
LONG_INTEGER = b"0" * (MAX_INTEGER_DIGITS + 1)
GREAT_EXPONENT = b"e000"
MINUS_ZERO = re.compile(r"-0(?![.eE])")
STRING = r'"[^"\\]*+(?:\\.?[^"\\]*+)*(?:"|\Z)'  # perhaps cut off
STRINGS = re.compile(STRING, re.DOTALL)
SQUARE = bytes.maketrans(b"{}", b"[]")
NEITHER_BRACKETS_NOR_QUOTES = bytes(set(range(256)) - set(b'[]{}"'))
NUMBER = r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?"
HIGH, LOW = (rf"\\u[dD][{digits}][0-9a-fA-F]{{2}}" for digits in ("89abAB", "c-fC-F"))  # surrogates
UNSTORABLE = re.compile(rf"\\u0000|{HIGH}(?!{LOW})|(?<!{HIGH}){LOW}")  # in a text without escaped backslashes
HIDDEN = "\ud800\ud800"  # for an escaped backslash; no text that was decoded has it

# All that can be wrong in JSON that the decoder takes, or in what it has read before it stops.
TOKEN = re.compile(
    rf"(?P<string>{STRING})|(?P<opened>[\[{{])|(?P<closed>[\]}}])|(?P<constant>NaN|-?Infinity)|(?P<number>{NUMBER})",
    re.DOTALL,
)


# A number in an event whose digits must stay as they were written: its literal as bytes, which `float` takes, too. No
# other JSON value is bytes. The decoder makes it without calling Python code: 250,000 take 13 ms and not 110.
Number = bytes
as_written: Callable[[str], Number] = str.encode
KINDS = {bool: "a boolean", type(None): "null", str: "a string", list: "an array"}
KINDS |= dict.fromkeys((int, float, Number), "a number")


class NotAnObject(Refused):
    """The body is JSON but not an object."""


def parse_json(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`, of duplicate keys the last; `Refused` (400) names the fault, its line and column."""
    text = _decode(raw)
    value = _object(_value(text, DECODER))
    if not _is_storable(text):
        raise Refused(400, _first_fault(text))
    return value


def parse_event(raw: bytes) -> dict[str, Any]:
    """The JSON object in the body of a webhook; an array becomes the object's field `items`.

    A leading byte order mark is ignored. Numbers keep their digits: all but integers are a `Number`. A NUL or a lone
    surrogate in a string becomes U+FFFD. Raises `Refused` (400) like `parse_json`.
    """
    text = _decode(raw.removeprefix(BOM_UTF8))
    value = parse_embedded(text)
    if not isinstance(value, list):
        return _object(value)
    within = f"[{text}"  # it is kept one level deeper
    if _is_too_deep(within):
        raise Refused(400, _first_fault(within))
    return {"items": value}


def parse_embedded(text: str) -> Any:
    """The JSON value in a string of an event, with numbers as in `parse_event`; raises `Refused` (400) likewise."""
    if not _is_storable(text):
        text = _made_storable(text)
    has_minus_zero = "-0" in text and MINUS_ZERO.search(text)  # a plain search is far faster than the pattern's
    return _value(text, ALL_AS_WRITTEN_DECODER if has_minus_zero else EVENT_DECODER)


def replaced_text(raw: bytes) -> str:
    """Plain text for an event: U+FFFD replaces NUL and invalid UTF-8."""
    return without_nul(raw.removeprefix(BOM_UTF8).decode("utf-8", "replace"))


def without_nul(text: str) -> str:
    """The text with U+FFFD for each NUL, which PostgreSQL does not take."""
    return text.replace("\0", "\ufffd")


def _has_great_number(text: str) -> bool:
    """Whether a number may be too long or too great; takes a tenth of the time of a regular expression."""
    zeros = text.encode().translate(ALL_ZERO, b"+")
    return zeros.find(LONG_INTEGER) >= 0 or zeros.find(GREAT_EXPONENT) >= 0


def _is_storable(text: str) -> bool:
    return "\\u" not in text or _unstorable(text) is None


def _unstorable(text: str) -> re.Match[str] | None:
    """The first escape of JSON that cannot be stored: NUL or a lone surrogate."""
    return UNSTORABLE.search(text.replace(r"\\", HIDDEN))


def _made_storable(text: str) -> str:
    """The text with U+FFFD for escapes that cannot be stored; its length stays, so that places are right."""
    return UNSTORABLE.sub(r"\\ufffd", text.replace(r"\\", HIDDEN)).replace(HIDDEN, r"\\")


def _value(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refused(400, _fault_within(text[: error.pos]) or _syntax_sentence(error)) from None
    except (ValueError, RecursionError):  # a constant, an integer that is too long for Python, or nesting
        raise Refused(400, _first_fault(text)) from None
    if fault := _fault_within(text):
        raise Refused(400, fault)
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NotAnObject(400, f"The body must be a JSON object, not {KINDS[type(value)]}.")
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
    if error.doc.startswith("\ufeff"):
        what = "a byte order mark"
    return f"The body is not valid JSON: {what} at line {error.lineno}, column {error.colno}."


def _no_constant(_: str) -> float:
    raise ValueError


DECODER = json.JSONDecoder(parse_constant=_no_constant)
EVENT_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=as_written)
ALL_AS_WRITTEN_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=as_written, parse_int=as_written)


def _brackets(text: str) -> bytes:
    """The brackets outside strings, all turned into square ones.

    Dropping escaped quotes and then splitting at quotes leaves the parts outside strings at the even places.
    """
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    marks = text.encode().translate(SQUARE, NEITHER_BRACKETS_NOR_QUOTES).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2])


def _is_too_deep(text: str) -> bool:
    """Whether valid JSON, or a beginning of it, is nested too deep: each round removes the innermost brackets."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    brackets = _brackets(text)
    brackets += b"]" * (brackets.count(b"[") - brackets.count(b"]"))
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    return True


def _fault_within(text: str) -> str | None:
    """The fault in what the decoder has read, if there is one: it stops for none of these."""
    has_great_number = _has_great_number(text) and _has_great_number(STRINGS.sub("", text))
    return _first_fault(text) if has_great_number or _is_too_deep(text) else None


def _first_fault(text: str) -> str | None:
    """The sentence for the first fault in the text that the decoder lets through, if there is one."""
    depth = 0
    for token in TOKEN.finditer(text):
        depth += (token.lastgroup == "opened") - (token.lastgroup == "closed")
        what = f"nesting deeper than {MAX_DEPTH} levels" if depth > MAX_DEPTH else _fault_of(token)
        if what:
            return f"The body is not valid JSON: {what} at {_place(text, token.start())}."
    return None


def _fault_of(token: re.Match[str]) -> str | None:
    literal = token[0]
    if token.lastgroup == "constant":
        return f"{literal} is not a JSON number"
    if token.lastgroup == "string":
        escape = _unstorable(literal)
        kind = "NUL character" if escape and escape[0] == r"\u0000" else "lone surrogate"
        return f"a string with a {kind}" if escape else None
    if token.lastgroup != "number":
        return None
    if literal.removeprefix("-").isdigit():
        is_long = len(literal.removeprefix("-")) > MAX_INTEGER_DIGITS
        return f"an integer of more than {MAX_INTEGER_DIGITS} digits" if is_long else None
    return "a number outside a double's range" if math.isinf(float(literal)) else None


def _place(text: str, index: int) -> str:
    line = text.count("\n", 0, index) + 1
    column = index - text.rfind("\n", 0, index)
    return f"line {line}, column {column}"
