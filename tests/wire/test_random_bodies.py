"""Random bodies, read by the service and by a slow and plain reading of the rules for JSON (docs/api.md)."""

import json
import math
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.answers import AT
from wire.errors import Refused
from wire.strict_json import MAX_DEPTH, MAX_INTEGER_DIGITS, Number, parse_event, parse_json

PROPERTY = settings(max_examples=70, deadline=None, derandomize=True)
NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
PIECES = st.sampled_from(
    [
        *["{", "}", "[", "]", ",", ":", '"', "\\", " ", "\n", '{"a":', '"k":', "[[", "]]"],
        *["0", "1", "-", "-0", ".5", "1.5", "e9", "1e400", "-1e400", "1e-400", "1E+099", "9" * 101, "-" + "9" * 101],
        *["9" * 100, "9" * 5_000, "NaN", "Infinity", "-Infinity", "nan", "N", "I", "null", "true", "false", "tru"],
        *['""', '"a"', '"\\x"', '"\\u12"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"', '"\\u0000"'],
        *['"\\ud800\\x"', '"\\ud8"', '"\\ud800\n"', '"\n"', '"\0"', '"\\\\"', '"\\""', '"[{"'],
        *["é", "😀", "\ufeff", "\0"],
        *["[" * 64, "]" * 64, '{"a":' * 63, "[" * 2_000, "\\ud800", "\\u0000", "\\x", "\\ud83d"],
    ]
)
VALUES = st.recursive(
    PIECES,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda some: f"[{','.join(some)}]")
        | st.lists(inner, max_size=3).map(
            lambda some: "{" + ",".join(f'"{n}":{one}' for n, one in enumerate(some)) + "}"
        )
    ),
    max_leaves=8,
)
TEXTS = st.lists(PIECES, max_size=12).map("".join) | VALUES | VALUES.map('{{"x": {}}}'.format)
BODIES = TEXTS.map(str.encode) | st.tuples(TEXTS.map(str.encode), st.binary(max_size=3)).map(b"".join)


class NotTaken(Exception):
    """The body is no JSON object by these rules."""


def _constant(_):
    raise NotTaken


def _number(literal):
    if literal.lstrip("-").isdigit() and len(literal.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise NotTaken
    if math.isinf(float(literal)):
        raise NotTaken
    return float(literal)


def _checked(value, level, storable):
    """The value, whose objects are tuples of pairs, with dictionaries and with `storable` strings."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, (list, tuple)) and level == MAX_DEPTH:
        raise NotTaken
    if isinstance(value, tuple):
        return {storable(name): _checked(one, level + 1, storable) for name, one in value}
    return [_checked(one, level + 1, storable) for one in value] if isinstance(value, list) else value


def _kept(text):
    if NOT_STORABLE.search(text):
        raise NotTaken
    return text


def plainly(raw, storable=_kept):
    """The object in the body, every number a float; None if there is none."""
    hooks = {"parse_constant": _constant, "parse_float": _number, "parse_int": _number, "object_pairs_hook": tuple}
    try:
        value = _checked(json.loads(raw.decode(), **hooks), 0, storable)
    except (NotTaken, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def numbers_as_floats(value):
    if isinstance(value, dict):
        return {name: numbers_as_floats(one) for name, one in value.items()}
    if isinstance(value, list):
        return [numbers_as_floats(one) for one in value]
    return float(value) if isinstance(value, (int, float, Number)) and not isinstance(value, bool) else value


def taken(parse, raw):
    """What `parse` reads in the body, every number a float; None if it refuses the body."""
    try:
        return numbers_as_floats(parse(raw))
    except Refused as refused:
        assert refused.status == 400
        assert AT.search(refused.message) or "must be a JSON object, not" in refused.message, refused.message
        return None


@PROPERTY
@given(raw=BODIES)
def test_of_random_bodies_exactly_the_strict_objects_are_taken_and_all_others_refused(raw):
    assert taken(parse_json, raw) == plainly(raw)


@PROPERTY
@given(raw=BODIES)
def test_of_random_events_exactly_objects_and_arrays_are_taken_with_storable_strings_and_all_others_refused(raw):
    plain = raw.removeprefix("\ufeff".encode())
    if plain.lstrip(b" \t\r\n").startswith(b"["):
        plain = b'{"items":' + plain + b"}"
    assert taken(parse_event, raw) == plainly(plain, lambda text: NOT_STORABLE.sub("\ufffd", text))
