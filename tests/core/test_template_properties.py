"""Any template over any payload gives what a slow and obvious oracle gives."""

import functools
import hashlib
import json
import math
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core import message_templates
from tests.support.strategies import ANY_LETTER, ANY_TEXT
from tests.support.templates import FILTERS, NUMBERS, applied, cut, filled, rendered
from wire import errors

# Properties, against an oracle that is slow and obvious


PROPERTY = settings(max_examples=50, deadline=None, derandomize=True)
MISSING = object()


class Digits(str):
    """A number in the payload, digit for digit."""


class Unfit(Exception):
    """A filter cannot take the value."""


def written(value, comma=",", colon=":"):
    """A value as JSON; compact unless told otherwise."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        return (
            "{"
            + comma.join(written(key) + colon + written(inner, comma, colon) for key, inner in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + comma.join(written(inner, comma, colon) for inner in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def shown(value):
    if value is None:
        return ""
    return str(value) if isinstance(value, str) else written(value)


def found(value, path):
    if isinstance(value, dict):
        for end in range(len(path), -1, -1):
            if path[:end] in value and (end == len(path) or path[end] == "."):
                inner = value[path[:end]]
                return inner if end == len(path) else found(inner, path[end + 1 :])
    if isinstance(value, list):
        position, dot, rest = path.partition(".")
        for number, inner in enumerate(value):
            if position == f"{number}":
                return found(inner, rest) if dot else inner
    return MISSING


def fit(condition):
    if not condition:
        raise Unfit


def join(value, between=" "):
    fit(isinstance(value, list))
    return between.join(shown(inner) for inner in value)


def element(position):
    def take(value):
        fit(isinstance(value, list))
        return value[position] if value else MISSING

    return take


def mapped(value, path):
    fit(isinstance(value, list))
    inner = [found(element, path) for element in value]
    return (
        MISSING
        if inner and all(one is MISSING for one in inner)
        else [None if one is MISSING else one for one in inner]
    )


def where(value, path, wanted):
    fit(isinstance(value, list))
    inner = [(one, found(one, path)) for one in value if isinstance(one, dict)]
    texts = [(one, "" if value is MISSING else value) for one, value in inner if not isinstance(value, (dict, list))]
    return [one for one, value in texts if shown(value) == wanted]


def size(value):
    fit(isinstance(value, (str, list, dict)) and not isinstance(value, Digits))
    return Digits(len(value))


def tidy(value):
    lines = [line.rstrip() for line in shown(value).split("\n")]
    return "\n".join(filter(None, lines)).strip()


ORACLE = {
    "upcase": lambda value: shown(value).upper(),
    "downcase": lambda value: shown(value).lower(),
    "tidy": tidy,
    "truncate": lambda value, length: cut(shown(value), length),
    "join": join,
    "first": element(0),
    "last": element(-1),
    "map": mapped,
    "where": where,
    "size": size,
    "replace": lambda value, old, new: new.join(shown(value).split(old)) if old else fit(False),
    "append": lambda value, after: shown(value) + after if shown(value).strip() else "",
    "prepend": lambda value, before: before + shown(value) if shown(value).strip() else "",
    "hash": lambda value: hashlib.sha256(shown(value).encode()).hexdigest()[:16] if shown(value) else "",
    "default": lambda value, other: other if value in (MISSING, None, "", [], {}) or value is False else value,
}


def expected(value, chain, placeholder):
    """The text of a placeholder whose path leads to this value."""
    try:
        for name, *arguments in chain:
            if value is not MISSING or name == "default":
                value = ORACLE[name](value, *arguments)
    except Unfit:
        return placeholder
    return placeholder if value is MISSING else shown(value)


LETTERS = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('{}|"\\\n')
STRINGS = st.text(LETTERS, max_size=12)
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?")
SHORT_NUMBERS = [number for number in NUMBERS if len(number) < 200]
DIGITS = (st.sampled_from(SHORT_NUMBERS) | st.from_regex(NUMBER, fullmatch=True, alphabet=ANY_LETTER)).map(Digits)
SCALARS = st.none() | st.booleans() | DIGITS | STRINGS
KEYS = st.text("ab.", max_size=3) | st.sampled_from(["a", "b", "a.b", "0", "1"])


def trees(leaves, smallest=0):
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, min_size=smallest, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    )


VALUES = trees(SCALARS)
PAYLOADS = st.dictionaries(KEYS, VALUES, max_size=4)


@st.composite
def payloads_and_paths(draw):
    """A payload and a path that often leads somewhere in it."""
    payload = value = draw(PAYLOADS)
    parts = []
    while isinstance(value, (dict, list)) and value and draw(st.booleans() | st.just(True)):
        steps = value if isinstance(value, dict) else range(len(value))
        step = draw(st.sampled_from(list(steps)))
        parts.append(f"{step}")
        value = value[step]
    parts += draw(st.lists(st.sampled_from(["a", "b", "0", "01", ""]), min_size=not parts, max_size=2))
    return payload, ".".join(parts)


@PROPERTY
@given(payloads_and_paths())
def test_any_path_leads_where_a_naive_search_leads(drawn):
    payload, path = drawn
    assume(path)
    value = found(payload, path)
    result = filled("<{{ " + path + " }}>", written(payload, " , ", " : "), limit=20_000)
    assert result == (("<{{ " + path + " }}>", (path,)) if value is MISSING else (f"<{shown(value)}>", ()))


ARGUMENTS = st.text("ab|}:, é%'", max_size=5).map(lambda text: (f'"{text}"', text)) | st.text(
    'ab|}:, é%"', max_size=5
).map(lambda text: (f"'{text}'", text))
MAP_PATHS = st.sampled_from(["a", "b", "a.b", "0", "b.0", "a..b"]).map(lambda path: (f'"{path}"', path))
WANTED = ARGUMENTS | st.sampled_from([('"true"', "true"), ("1", "1"), ('""', ""), ("'0'", "0")])


def both(arguments):
    """Two arguments as one: first as they are written, then for the oracle."""
    (first, path), (second, wanted) = arguments
    return f"{first} , {second}", path, wanted


STEPS = (
    st.sampled_from([(name, ()) for name in ("upcase", "downcase", "tidy", "join", "first", "last", "size", "hash")])
    | st.tuples(st.just("truncate"), st.integers(1, 12).map(lambda length: (f"{length}", length)))
    | st.tuples(st.sampled_from(["join", "default", "append", "prepend"]), ARGUMENTS)
    | st.tuples(st.just("map"), MAP_PATHS)
    | st.tuples(st.just("where"), st.tuples(MAP_PATHS, WANTED).map(both))
    | st.tuples(st.just("replace"), st.tuples(WANTED, WANTED).map(both))
)
BEFORE = st.text("ab|}\"'\n", max_size=5)
SPACES = st.sampled_from(["", " ", "  ", "\t"])


@st.composite
def chains(draw):
    """The filters of a placeholder: first as they are written, then for the oracle."""
    text, chain = "", []
    for name, argument in draw(st.lists(STEPS, max_size=4)):
        text += draw(SPACES) + "|" + draw(SPACES) + name
        text += f":{draw(SPACES)}{argument[0]}" if argument else ""
        chain.append((name, *argument[1:]))
    return text + draw(SPACES), chain


@PROPERTY
@given(trees(SCALARS, smallest=1), st.sampled_from(["v", "v", "nope"]), chains(), BEFORE)
def test_any_chain_of_filters_gives_what_naive_filters_give(value, path, chain, before):
    filters, steps = chain
    placeholder = "{{ " + path + filters + "}}"
    text = expected(value if path == "v" else MISSING, steps, placeholder)
    assert message_templates.check_template(placeholder) is None
    assert rendered(before + placeholder + "!", written({"v": value}), limit=50_000) == f"{before}{text}!"


def naive(template, payload):
    """A template without filters: the first end belongs to the last beginning before it."""
    end = template.find("}}")
    if end < 0:
        return template
    start = template.rfind("{{", 0, end)
    head, rest = template[: end + 2], template[end + 2 :]
    path = template[start + 2 : end].strip() if start >= 0 else ""
    value = found(payload, path) if path else MISSING
    return (head if value is MISSING else head[:start] + shown(value)) + naive(rest, payload)


@PROPERTY
@given(st.lists(st.sampled_from([*"{}ab. ", "{{", "}}", "{{a}}", "{{ a.b }}", "{{ b"]), max_size=20).map("".join))
def test_any_braces_are_read_as_a_naive_search_reads_them(template):
    payload = {"a": {"b": Digits("1.0"), "": "{{ a.b }}"}, "b": "{"}
    assert rendered(template, written(payload)) == naive(template, payload)


@PROPERTY
@given(ANY_TEXT.filter(lambda text: "{{" not in text), PAYLOADS)
def test_text_without_a_beginning_is_itself(text, payload):
    assert filled(text, written(payload)) == (text, ())


TOKENS = [
    *["{{", "}}", "{{ ", " }}", "{", "}", "|", " | ", ":", ": ", '"', "'", ",", ".", " ", "\n", "\\", "-", "%"],
    *["a", "b", "a.b", "0", "3", "20", "99999999999999999999", "é", "😀", "\ud800", "\x00", "shout"],
    *["{{ a }}", "{{ b", "{{ a | ", ' | default: "x" }}', "| truncate: 3", '| date: "%', '| join: ", "'],
    '| map: "a"',
    *FILTERS,
]
SOUP = st.lists(st.sampled_from(TOKENS), max_size=25).map("".join)
WITHOUT_DEFAULT = st.lists(st.sampled_from([one for one in TOKENS if "default" not in one]), max_size=25).map("".join)
ZONES = st.sampled_from(["UTC", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"])


@PROPERTY
@given(SOUP | ANY_TEXT, PAYLOADS, st.integers(1, 60), ZONES)
def test_filling_never_fails_and_never_passes_the_limit(template, payload, limit, zone):
    whole = filled(template, written(payload), limit=50_000, zone=zone)
    assert rendered(template, written(payload), limit=limit, zone=zone) == cut(whole.text, limit)
    assert len(set(whole.missing)) == len(whole.missing)
    assert all("{{" in template and path in template for path in whole.missing)


@PROPERTY
@given(WITHOUT_DEFAULT)
def test_an_empty_payload_leaves_any_template_without_a_default_as_it_is(template):
    assert rendered(template, {}) == template


@PROPERTY
@given(SOUP | ANY_TEXT)
def test_a_template_is_taken_or_refused_with_400(template):
    try:
        assert message_templates.check_template(template) is None
    except errors.Refused as refused:
        assert refused.status == 400 and "|" in template


MOMENTS = (
    st.integers(-(10**13), 10**13).map(lambda number: Digits(number))
    | DIGITS
    | st.datetimes().map(lambda moment: moment.isoformat())
    | st.datetimes().map(lambda moment: moment.isoformat() + "Z")
    | st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01", "9999-12-31T23:59:59-14:00"])
    | st.text("0123456789-:TZ+. ", max_size=25)
)


@PROPERTY
@given(MOMENTS, st.text("%YmdHMSzZjaAQ0123456789-^#E ", max_size=8), ZONES)
def test_any_date_in_any_form_is_shown_or_leaves_the_placeholder_visible(moment, form, zone):
    template = "{{ v | date: '" + form + "' }}"
    result = filled(template, written({"v": moment}), limit=200, zone=zone)
    assert len(result.text) <= 200 and result.missing == ()


@PROPERTY
@given(st.integers(0, 4 * 10**12), ZONES, st.booleans())
def test_any_moment_is_shown_in_the_local_time_of_the_zone(number, zone, quoted):
    unit = {"seconds": number} if number < 100_000_000_000 else {"milliseconds": number}
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(**unit)).astimezone(ZoneInfo(zone))
    value = f'"{number}"' if quoted else f"{number}"
    assume(len(value) != len('"20261121"'))  # a date too
    assert applied('date: "%Y-%m-%dT%H:%M:%S %z"', value, zone=zone) == local.strftime("%Y-%m-%dT%H:%M:%S %z")


@PROPERTY
@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,40})\.[0-9]{1,40}", fullmatch=True, alphabet=ANY_LETTER),
    st.integers(0, 20),
    st.booleans(),
)
def test_any_number_is_rounded_as_whole_number_arithmetic_rounds_it(number, decimals, quoted):
    rounded = applied(f"round: {decimals}", f'"{number}"' if quoted else number)
    if len(number.partition(".")[2]) <= decimals:
        assert rounded == number
        return
    scaled = abs(Fraction(number)) * 10**decimals
    whole = math.floor(scaled + Fraction(1, 2))
    assert Fraction(rounded) * 10**decimals == (-whole if number.startswith("-") else whole)


@PROPERTY
@given(st.text("abcXYZé ", max_size=10), st.sampled_from("aZé"))
def test_any_word_is_capitalized(rest, letter):
    assert applied("capitalize", json.dumps(letter + rest)) == letter.upper() + rest.lower()


def test_a_path_through_nested_arrays_is_bounded_like_one_through_objects():
    nested = {"a": [functools.reduce(lambda inner, _: [inner], range(60), 1)] * 5_000}
    template = '{{ a | map: "' + ".".join(["0"] * 60) + '" | size }}'
    assert filled(template, nested) == (template, ())
    assert filled(template, {"a": nested["a"][:100]}) == ("100", ())
