"""What holds for any template over any payload."""

import functools
import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core import message_templates
from tests.support.strategies import ANY_LETTER, ANY_TEXT
from tests.support.templates import FILTERS, applied, cut, filled, rendered
from wire import errors

PROPERTY = settings(max_examples=30, deadline=None, derandomize=True)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT
KEYS = st.text("ab.", max_size=3) | st.sampled_from(["a", "b", "a.b", "0", "1"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
PAYLOADS = st.dictionaries(KEYS, VALUES, max_size=4)
ZONES = st.sampled_from(["UTC", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"])

INSIDE = {"a": '{"b":1.0,"":"{{ a.b }}"}', "a.b": "1.0", "a.": "{{ a.b }}", "b": "{"}


def naive(template):
    """A template without filters, filled with `INSIDE`: the first end belongs to the last beginning before it."""
    end = template.find("}}")
    if end < 0:
        return template
    start = template.rfind("{{", 0, end)
    head, rest = template[: end + 2], template[end + 2 :]
    path = template[start + 2 : end].strip() if start >= 0 else ""
    return (head[:start] + INSIDE[path] if path in INSIDE else head) + naive(rest)


@PROPERTY
@given(st.lists(st.sampled_from([*"{}ab. ", "{{", "}}", "{{a}}", "{{ a.b }}", "{{ b"]), max_size=20).map("".join))
def test_any_braces_are_read_as_a_naive_search_reads_them(template):
    assert rendered(template, '{"a": {"b": 1.0, "": "{{ a.b }}"}, "b": "{"}') == naive(template)


TOKENS = [
    *["{{", "}}", "{{ ", " }}", "{", "}", "|", " | ", ":", ": ", '"', "'", ",", ".", " ", "\n", "\\", "-", "%"],
    *["a", "b", "a.b", "0", "3", "20", "99999999999999999999", "é", "😀", "\ud800", "\x00", "shout"],
    *["{{ a }}", "{{ b", "{{ a | ", ' | default: "x" }}', "| truncate: 3", '| date: "%', '| join: ", "'],
    '| map: "a"',
    *FILTERS,
]
SOUP = st.lists(st.sampled_from(TOKENS), max_size=25).map("".join)
WITHOUT_DEFAULT = st.lists(st.sampled_from([one for one in TOKENS if "default" not in one]), max_size=25).map("".join)


@PROPERTY
@given(SOUP | ANY_TEXT, PAYLOADS, st.integers(1, 60), ZONES)
def test_filling_never_fails_and_never_passes_the_limit(template, payload, limit, zone):
    whole = filled(template, payload, limit=50_000, zone=zone)
    assert rendered(template, payload, limit=limit, zone=zone) == cut(whole.text, limit)
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
    st.integers(-(10**13), 10**13)
    | st.datetimes().map(lambda moment: moment.isoformat())
    | st.datetimes().map(lambda moment: moment.isoformat() + "Z")
    | st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01", "9999-12-31T23:59:59-14:00"])
    | st.text("0123456789-:TZ+. ", max_size=25)
)


@PROPERTY
@given(MOMENTS, st.text("%YmdHMSzZjaAQ0123456789-^#E ", max_size=8), ZONES)
def test_any_date_in_any_form_is_shown_or_leaves_the_placeholder_visible(moment, form, zone):
    result = filled("{{ v | date: '" + form + "' }}", {"v": moment}, limit=200, zone=zone)
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


def test_a_path_through_nested_arrays_is_bounded_like_one_through_objects():
    nested = {"a": [functools.reduce(lambda inner, _: [inner], range(60), 1)] * 1_000}
    template = '{{ a | map: "' + ".".join(["0"] * 60) + '" | size }}'
    assert filled(template, nested) == (template, ())
    assert filled(template, {"a": nested["a"][:100]}) == ("100", ())
