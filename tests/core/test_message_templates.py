"""Filling a template from an event: SPEC 1 and 4.8; CONTRACT 4, templates, rendered length, JSON."""

import functools
import json
import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core import message_templates
from wire import errors, strict_json

NOON = 1_795_262_400  # 2026-11-21 12:00 UTC
FILTERS = [
    *["default", "upcase", "downcase", "capitalize", "truncate", "join", "map", "size", "first", "last"],
    *["round", "date", "where"],
]


def filled(template, payload, limit=10_000, zone="UTC"):
    """What `fill` makes of a webhook's body; a payload that is text is the JSON as it was sent."""
    raw = payload if isinstance(payload, str) else json.dumps(payload)
    return message_templates.fill(template, strict_json.parse_event(raw.encode()), limit, zone)


def rendered(template, payload, **more):
    return filled(template, payload, **more).text


def applied(filters, value, **more):
    """The text of a value, given as JSON, behind these filters."""
    return rendered("{{ v | " + filters + " }}", f'{{"v": {value}}}', **more)


def stays_visible(filters, value):
    """Whether the placeholder stays as it was written and does not count as missing."""
    template = "<{{ v | " + filters + " }}>"
    return filled(template, f'{{"v": {value}}}') == (template, ())


def refusal(template):
    """The sentence with which a template is refused."""
    with pytest.raises(errors.Refused) as refused:
        message_templates.check_template(template)
    assert refused.value.status == 400
    return refused.value.message


# SPEC 1, 4.8: variables


def test_fields_of_the_payload_are_variables_with_dots_for_nested_data():
    payload = {"status": "down", "server": {"name": "db-1", "disks": [{"free": 3}]}}
    template = "{{status}}: {{ server.name }} has {{server.disks.0.free}} GB left"
    assert filled(template, payload) == ("down: db-1 has 3 GB left", ())


def test_a_result_names_its_text_and_what_is_missing():
    result = filled("{{ a }} {{ b }}", {"a": 1})
    assert (result.text, result.missing) == ("1 {{ b }}", ("b",))


def test_a_placeholder_may_come_again_and_stand_beside_another():
    assert rendered("{{ a }}{{ b }}{{ a }}", {"a": 1, "b": 2}) == "121"


@pytest.mark.parametrize("template", ["{{a}}", "{{ a}}", "{{a }}", "{{   a   }}", "{{\ta\t}}", "{{\n a\r\n}}"])
def test_white_space_around_a_path_is_ignored(template):
    assert rendered(template, {"a": "x"}) == "x"


@pytest.mark.parametrize(
    "value, text",
    [
        ('"text"', "text"),
        ('""', ""),
        ('" a  b\\n"', " a  b\n"),
        ('"\\u00e9\\ud83d\\ude00\\"\\\\"', 'é😀"\\'),
        ("true", "true"),
        ("false", "false"),
        ("null", ""),
        ("[]", "[]"),
        ("{}", "{}"),
    ],
)
def test_strings_render_as_themselves_booleans_as_words_and_null_as_nothing(value, text):
    assert filled("<{{ v }}>", f'{{"v": {value}}}') == (f"<{text}>", ())


NUMBERS = [
    *["0", "-0", "7", "-12", "9.90", "1.0", "-0.0", "0.10", "1e5", "1E+2", "1.50e-07", "5e-324", "1e-400", "1e308"],
    *["3.14159265358979323846264338327950288", "9007199254740993", "9" * 100, "-" + "9" * 100],
    *["0." + "1" * 3_000, "100000000000000000000000000.50"],
]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_render_digit_for_digit(number):
    payload = f'{{"v": {number}, "list": [{number}], "object": {{"n": {number}}}}}'
    assert rendered("{{ v }} {{ list }} {{ object }}", payload) == f'{number} [{number}] {{"n":{number}}}'


@pytest.mark.parametrize(
    "value, text",
    [
        ('[1, 2.50, "a b", true, false, null]', '[1,2.50,"a b",true,false,null]'),
        ('{"b" : 1 , "a" : {"z": [ ], "y": { }}}', '{"b":1,"a":{"z":[],"y":{}}}'),
        ('{"9": 1, "10": 2, "1": 3}', '{"9":1,"10":2,"1":3}'),
        ('["\\u00e9", "\\ud83d\\ude00", "漢"]', '["é","😀","漢"]'),
        ('["a\\"b\\\\c\\n"]', '["a\\"b\\\\c\\n"]'),
        ('{"a\\"b": "</x>", "": ""}', '{"a\\"b":"</x>","":""}'),
        ("[[[]], [{}]]", "[[[]],[{}]]"),
    ],
)
def test_objects_and_arrays_render_as_compact_json_in_the_payloads_order(value, text):
    assert rendered("{{ v }}", f'{{"v": {value}}}') == text


# Paths


@pytest.mark.parametrize(
    "key",
    [
        *["a-b", "a b", "a  b", "a.b", "a.b.c", ".", "..", ".a", "a.", "0", "01", "-1", "@timestamp", "$", "#x"],
        *["a/b", "é", "漢字", "😀", "A", "it's", 'say "x"', "a:b", "a,b", "a=b", "(a)", "[0]", "upcase", "%"],
    ],
)
def test_a_key_is_written_as_it_is(key):
    assert filled("<{{ " + key + " }}>", {key: "x", "other": "y"}) == ("<x>", ())


@pytest.mark.parametrize(
    "payload, path, value",
    [
        ({"a.b": 1, "a": {"b": 2}}, "a.b", "1"),
        ({"a": {"b": 2}, "a.b": 1}, "a.b", "1"),
        ({"a.b": {"c": 1}, "a": {"b": {"c": 2}, "b.c": 3, "x": 4}}, "a.b.c", "1"),
        ({"a.b": {"c": 1}, "a": {"b": {"c": 2}, "b.c": 3, "x": 4}}, "a.x", "4"),
        ({"a": {"b": {"c": 2}, "b.c": 3}}, "a.b.c", "3"),
        ({"a.b.c": 1, "a.b": {"c": 2}, "a": {"b.c": 3}}, "a.b.c", "1"),
        ({"a": {"b.c": {"d": 1}, "b": {"c.d": 2}}}, "a.b.c.d", "1"),
        ({"a": None, "a.b": 1}, "a.b", "1"),
        ({"a.b": None, "a": {"b": 1}}, "a.b", ""),
        ({"a": [{"b.c": 1, "b": {"c": 2}}]}, "a.0.b.c", "1"),
        ({"a.0": 1, "a": [2]}, "a.0", "1"),
        ({"a": {"0": 1, "00": 2}}, "a.00", "2"),
    ],
)
def test_at_each_object_the_longest_key_that_matches_wins(payload, path, value):
    assert filled("{{ " + path + " }}", payload) == (value, ())


@pytest.mark.parametrize(
    "payload",
    [
        {"a.b": {}, "a": {"b": {"c": 1}}},
        {"a.b": "text", "a": {"b": {"c": 1}}},
        {"a.b": None, "a": {"b": {"c": 1}, "b.c": 2}},
        {"a.b": [1], "a": {"b.c": 2}},
    ],
)
def test_a_longer_key_that_leads_nowhere_is_not_taken_back(payload):
    assert filled("{{ a.b.c }}", payload) == ("{{ a.b.c }}", ("a.b.c",))


@pytest.mark.parametrize("path", ["ab", "abc", "a.b", "A.c", "abc.d", "b", "abcd.c", "ab.cd", "ab.c.d", "ab."])
def test_a_key_matches_up_to_a_dot_or_the_end_alone(path):
    payload = {"abcd": 1, "a": {"c": 1}, "ab.cc": 1, "ab .c": 1, "ab.c": 1}
    assert filled("{{ " + path + " }}", payload) == ("{{ " + path + " }}", (path,))


@pytest.mark.parametrize(
    "path, value",
    [("a.0", "[10,11]"), ("a.0.1", "11"), ("a.2.b.0", "12"), ("a.10", "20"), ("a.1", ""), ("a.9", "[]")],
)
def test_array_positions_are_numbers(path, value):
    payload = {"a": [[10, 11], None, {"b": [12]}, 0, 0, 0, 0, 0, 0, [], 20]}
    assert filled("{{ " + path + " }}", payload) == (value, ())


@pytest.mark.parametrize(
    "position",
    [
        *["2", "00", "01", "-1", "+1", "-0", "1.0", "0x0", "1e0", "0_1", "٠", "²", "①", " 0", "", "length", "size"],
        *["first", "last", "0.", ".0", "[0]", "99999999999999999999", "9" * 5_000, "0" * 5_000],
    ],
)
def test_any_other_position_is_missing(position):
    template = "{{ a." + position + "|upcase}}"
    assert filled(template, {"a": ["x", "y"]}) == (template, (("a." + position).strip(),))


@pytest.mark.parametrize("value", ["text", "", 5, 1.5, True, False, None])
@pytest.mark.parametrize("rest", ["b", "0", "size", "upper", "__class__", "real", "literal", ""])
def test_what_is_no_object_or_array_has_nothing_inside(value, rest):
    assert filled("{{ a." + rest + " }}", {"a": value}) == ("{{ a." + rest + " }}", ("a." + rest,))


# What the payload lacks


@pytest.mark.parametrize(
    "template",
    [
        *["{{nope}}", "{{  nope   }}", "{{\tnope\n}}", "{{ nope|upcase }}", "{{ nope |  truncate:3|upcase }}"],
        *["{{ nope | date: '%H' }}", '{{ nope | join: ", " | size }}', "{{nope | first | last | round: 1}}"],
        *['{{ nope | map: "x" }}', "{{ nope | capitalize | downcase }}"],
    ],
)
def test_a_variable_that_the_payload_lacks_stays_visible_as_it_was_written(template):
    assert filled(f"<{template}>", {"a": 1}) == (f"<{template}>", ("nope",))


def test_a_null_is_not_missing_but_what_is_below_it_is():
    assert filled("<{{ a }}{{ a.b }}>", {"a": None}) == ("<{{ a.b }}>", ("a.b",))


def test_missing_paths_are_told_once_each_in_order_of_first_appearance():
    template = "{{ z }}{{ ok }}{{a.b}}{{ z | upcase }}{{  a.b  }}{{ c d }}"
    assert filled(template, {"ok": 1}).missing == ("z", "a.b", "c d")


def test_a_missing_variable_that_got_a_default_is_not_told():
    assert filled('{{ a | default: "x" }}', {}) == ("x", ())
    assert filled('{{ a | default: "x" }}{{ a }}', {}) == ("x{{ a }}", ("a",))


def test_any_number_of_paths_may_be_missing():
    paths = tuple(f"p{number}" for number in range(1_000))
    template = "".join("{{" + path + "}}" for path in paths)
    assert filled(template * 2, {}, limit=100_000) == (template * 2, paths)


# What is text


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "plain", "a | upcase", "line\nline\r\n", "é😀\x00\x01", "{", "}", "{}", "{ }", "{a}", "{{", "}}"],
        *["{{}}", "{{ }}", "{{\n}}", "{{a", "{{ a }", "{{ a } }", "{ { a } }", "{ {a}}", "a }}", "}}{{", "}} a {{"],
        *["{% if a %}", "{% endif %}", "{# a #}", "${a}", "$a", "%(a)s", "%s", "{a.__class__}", "{0}", "{a!r}"],
        *["<b>&amp;</b>", "\\{a}", "{{{", "}}}", "{{{}}}", "{{ a | upcase", '{{ a | default: "x }}'],
        "{{ a | default: '}}",
    ],
)
def test_any_other_text_is_itself(text):
    assert filled(text, {"a": "A", "": "E", "0": "Z"}) == (text, ())


@pytest.mark.parametrize(
    "template, text",
    [
        ("{{{name}}}", "{x}"),
        ("{{{ name }}}", "{x}"),
        ("{{{{name}}}}", "{{x}}"),
        ("{{{{{name}}}}}", "{{{x}}}"),
        ("{{{name}}", "{x"),
        ("{{name}}}", "x}"),
        ("{{ a {{ name }}", "{{ a x"),
        ("{{ name {{ name }}", "{{ name x"),
        ("{{ {{ name }} }}", "{{ x }}"),
        ("{{ a {{ b {{ name }} b }} a }}", "{{ a {{ b x b }} a }}"),
        ("{{ name | upcase {{ name }}", "{{ name | upcase x"),
        ("{{}}{{ name }}", "{{}}x"),
        ("{{ }}{{ name }}{{}}", "{{ }}x{{}}"),
        ("}} {{ name }} {{", "}} x {{"),
        ("{{ name }} }} {{ name }}", "x }} x"),
        ("{ {{ name }} }", "{ x }"),
        ("\\{{ name }}", "\\x"),
        ("{% raw %}{{ name }}{% endraw %}", "{% raw %}x{% endraw %}"),
        ('{"a": "{{ name }}"}', '{"a": "x"}'),
        ("'{{ name }}' | \"{{ name }}\"", "'x' | \"x\""),
        ("it's {{ name }}, it's {{ name }}", "it's x, it's x"),
    ],
)
def test_braces_that_are_no_placeholder_are_text_beside_one(template, text):
    assert rendered(template, {"name": "x"}) == text


@pytest.mark.parametrize(
    "inside",
    [
        *["7*7", "a()", "a[0]", "a == 1", "a + a", "a.__class__", "__class__", "a.__init__.__globals__", "self"],
        *["payload", "zone", "limit", "'a'", '"a"', "-a", "not a", "a if a", "%a", "#a", "/a", "^a", "a!"],
    ],
)
def test_nothing_is_ever_evaluated(inside):
    assert rendered("{{ " + inside + " }}", {"a": ["x"]}) == "{{ " + inside + " }}"


@pytest.mark.parametrize(
    "value",
    ["{{ b }}", "{{b}}", "{{", "}}", "{{ a }}", "{% b %}", "{{ b | upcase }}", "x | upcase", '" | upcase', "%H"],
)
@pytest.mark.parametrize("template", ["{{ a }}", "<{{ a }}>", "{{ a }} {{ a }}", "{{ a | truncate: 99 }}"])
def test_what_a_value_contains_is_never_looked_at_again(template, value):
    expected = template.replace("{{ a }}", value).replace("{{ a | truncate: 99 }}", value)
    assert filled(template, {"a": value, "b": "evaluated"}) == (expected, ())


def test_values_and_text_never_make_a_placeholder_together():
    payload = {"open": "{", "close": "}", "both": "{{ b", "b": "evaluated"}
    assert filled("{{ open }}{ b }}", payload) == ("{{ b }}", ())
    assert filled("{{ open }}{{ open }} b {{ close }}{{ close }}", payload) == ("{{ b }}", ())
    assert filled("{{ both }} }}", payload) == ("{{ b }}", ())


# Rendered length


@pytest.mark.parametrize(
    "template, limit, text",
    [
        ("abcde", 5, "abcde"),
        ("abcdef", 5, "abcd…"),
        ("{{ five }}", 5, "12345"),
        ("{{ five }}.", 5, "1234…"),
        ("{{ five }}", 4, "123…"),
        ("ab{{ five }}", 4, "ab1…"),
        ("ab{{ five }}", 2, "a…"),
        ("{{ nope }}", 10, "{{ nope }}"),
        ("{{ nope }}", 9, "{{ nope …"),
        ("{{ nope", 6, "{{ no…"),
        ("{{ five }}", 1, "…"),
        ("{{ one }}", 1, "x"),
        ("{{ faces }}", 4, "😀😀😀😀"),
        ("{{ faces }}{{ one }}", 4, "😀😀😀…"),
        ("{{ list }}", 6, "[1,2]"),
        ("{{ list }}", 4, "[1,…"),
        ("{{ none }}", 1, ""),
        ("{{ five }}{{ none }}", 5, "12345"),
        ("{{ five }}{{ none }}{{ five }}", 10, "1234512345"),
    ],
)
def test_the_text_is_cut_to_the_limit_with_the_ellipsis_included(template, limit, text):
    payload = {"five": "12345", "one": "x", "faces": "😀😀😀😀", "list": [1, 2], "none": None}
    assert rendered(template, payload, limit=limit) == text


# Filters: the notation


@pytest.mark.parametrize(
    "template",
    [
        *["{{v|upcase|truncate:3}}", "{{ v | upcase | truncate: 3 }}"],
        *[
            "{{   v   |   upcase   |   truncate:   3   }}",
            "{{ v\n| upcase\n| truncate: 3\n}}",
            "{{v |upcase| truncate:3 }}",
        ],
    ],
)
def test_white_space_around_filters_and_arguments_is_ignored(template):
    assert rendered(template, {"v": "abcdef"}) == "AB…"


@pytest.mark.parametrize(
    "written, argument",
    [
        ('"n/a"', "n/a"),
        ("'n/a'", "n/a"),
        ('""', ""),
        ('" a "', " a "),
        ("'say \"x\"'", 'say "x"'),
        ('"it\'s"', "it's"),
        ('"}}"', "}}"),
        ("'a }} b'", "a }} b"),
        ('"a | upcase"', "a | upcase"),
        ("'|'", "|"),
        ('"\\"', "\\"),
        ("'\\n\\u00e9'", "\\n\\u00e9"),
        ('"a: b, c"', "a: b, c"),
        ('"é😀"', "é😀"),
        ('"%s {} $"', "%s {} $"),
        ("0", "0"),
        ("42", "42"),
        ("1795262400", "1795262400"),
    ],
)
def test_an_argument_is_quoted_without_escapes_or_a_whole_number(written, argument):
    assert filled("<{{ v | default: " + written + " }}>", {}) == (f"<{argument}>", ())


def test_filters_apply_from_left_to_right():
    payload = {"alerts": [{"labels": {"name": "disk full"}}, {"labels": {}}, {"labels": {"name": "load"}}]}
    template = '{{ alerts | map: "labels.name" | join: ", " | upcase | truncate: 14 }} ({{ alerts | size }})'
    assert filled(template, payload) == ("DISK FULL, , … (3)", ())
    assert applied("truncate: 3 | size", '"abcdef"') == "3"
    assert applied("size | truncate: 1", '"abcdefghijk"') == "…"
    assert applied("upcase | capitalize | downcase", '"aBC dEF"') == "abc def"
    assert applied("last | first | round: 1", "[1, [2.25, 3]]") == "2.3"


WRONG_ARGUMENTS = [
    *["upcase: 1", 'upcase: "x"', "downcase: 1", "capitalize: 'x'", "size: 1", "first: 1", 'last: "x"'],
    *["truncate", "truncate:", "truncate: 0", 'truncate: "x"', "truncate: -3", "truncate: 3.5", "truncate: 3, 4"],
    *["truncate: abc", "truncate 3", "truncate: 3 4", "default", "default: x", 'default: "a", "b"'],
    *['default: "a" "b"', "map", "map: a", 'map: "a", "b"', "date", "date: %H", 'date: "%H", "%M"'],
    *["join: ,", 'join: ",", ","', "where", 'where: "a"', 'where: "a",', 'where: a, "1"', 'where: "a", 1, 2'],
    *['where: 1, "a"', 'where: "a" "1"', 'where: "a", b', 'where: , "1"', 'where: "a", -1', 'where "a", "1"'],
    *["round: 21", "round: -1", "round: 1.5", 'round: "x"', "round: x", "round: 1, 2", "round: 99999999999"],
]


@pytest.mark.parametrize("filters", WRONG_ARGUMENTS)
@pytest.mark.parametrize("value", ['"abcdef"', "1.25", "1795262400", '["a", {"a": 1}]'])
def test_a_filter_with_a_missing_wrong_or_surplus_argument_leaves_the_placeholder_visible(filters, value):
    assert stays_visible(filters, value)
    assert stays_visible(f"{filters} | upcase", value)


@pytest.mark.parametrize("filters", ["shout", "upcase | shout", "shout: 3 | upcase", "shout: 'x', 2", "UPCASE"])
def test_an_unknown_filter_leaves_the_placeholder_visible(filters):
    assert stays_visible(filters, '"text"')


CANNOT_TAKE = {
    "join": ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    'join: ","': ['"text"', "1", "true", "null", "{}", '""'],
    'map: "a"': ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    'where: "a", 1': ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    "first": ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    "last": ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    "size": ["1", "0", "1.5", "true", "false", "null"],
    "round": ["true", "false", "null", "[]", "[1]", "{}", '""', '"text"'],
    "round: 1": ["true", "null", "[1.25]", '{"a": 1}', '"1.25 GB"'],
    'date: "%H"': ["true", "false", "null", "[]", f"[{NOON}]", "{}", '""', '"soon"', '"2026-02-30"'],
}


@pytest.mark.parametrize(
    "filters, value", [(filters, value) for filters, values in CANNOT_TAKE.items() for value in values]
)
def test_a_filter_on_a_value_that_it_cannot_take_leaves_the_placeholder_visible(filters, value):
    assert stays_visible(filters, value)
    assert stays_visible(f'{filters} | default: "x"', value)


def test_a_placeholder_that_stays_visible_does_not_touch_its_neighbours():
    assert rendered("{{ a }}{{ a | first }}{{ a | shout }}{{ a }}", {"a": 1}) == "1{{ a | first }}{{ a | shout }}1"


# Filters, one by one


@pytest.mark.parametrize("value", ["null", "false", '""', "[]", "{}"])
def test_default_takes_the_place_of_null_false_and_what_is_empty(value):
    assert applied('default: "n/a"', value) == "n/a"


@pytest.mark.parametrize("value", ["0", "0.0", "-0", "true", "[null]", '{"a":null}', "[[]]"])
def test_default_leaves_any_other_value(value):
    assert applied('default: "n/a"', value) == value


@pytest.mark.parametrize("text", [" ", "0", "false", "null", "\ufffd"])
def test_default_leaves_any_other_text(text):
    assert applied('default: "n/a"', json.dumps(text)) == text


@pytest.mark.parametrize("path", ["nope", "a.b", "list.7", "text.0", "none.x", "a b.c"])
def test_default_takes_the_place_of_a_missing_variable(path):
    payload = {"a": {}, "list": [1], "text": "t", "none": None}
    assert filled("{{ " + path + ' | default: "n/a" }}', payload) == ("n/a", ())


@pytest.mark.parametrize(
    "filters, text",
    [
        ('default: "n/a" | upcase', "N/A"),
        ('upcase | default: "n/a"', "n/a"),
        ('first | round: 2 | date: "%H" | map: "x" | default: "n/a" | capitalize', "N/a"),
        ('default: "" | default: "b"', "b"),
        ('default: "a" | default: "b"', "a"),
        ('default: "abcdef" | truncate: 3 | size', "3"),
        ('default: ""', ""),
    ],
)
def test_a_missing_variable_goes_through_filters_untouched_until_a_default_takes_it(filters, text):
    assert filled("{{ nope | " + filters + " }}", {}) == (text, ())


@pytest.mark.parametrize(
    "filters, text",
    [
        ('default: b | default: "n/a"', "B"),
        ('default: nope | default: b | default: "n/a"', "B"),
        ('default: nope | default: "n/a"', "n/a"),
        ('default: nil | default: empty | default: "" ', ""),
        ("default:b|default:'n/a'|upcase", "B"),
        ('default: list.1.n | default: "n/a"', "9.90"),
        ('default: key with-dash.x | default: "n/a"', "found"),
        ('default: list | default: "n/a" | size', "2"),
        ('default: off | default: "n/a"', "n/a"),
        ('first | default: b | upcase | default: "n/a" | downcase', "b"),
    ],
)
def test_default_takes_another_path_and_at_last_a_text(filters, text):
    payload = {"b": "B", "nil": None, "empty": "", "off": False, "list": [0, {"n": "9.90"}]}
    payload |= {"key with-dash": {"x": "found"}, "text": "{{ b }}"}
    for path in ("lacking", "nil.x", "list.7"):
        assert filled("{{ " + path + " | " + filters + " }}", payload) == (text, ())


@pytest.mark.parametrize("path, text", [("b", "B"), ("zero", "0"), ("list", "[0]"), ("quoted", "{{ b }}")])
def test_another_path_is_not_asked_for_what_is_there(path, text):
    payload = {"b": "B", "zero": 0, "list": [0], "quoted": "{{ b }}"}
    assert filled("{{ " + path + ' | default: other | default: "n/a" }}', payload) == (text, ())


@pytest.mark.parametrize("filters", ["default: b", 'default: "x" | default: b', "default: b | upcase", "default: v"])
@pytest.mark.parametrize("value", ['"text"', '""', "null"])
def test_a_default_that_ends_with_a_path_leaves_the_placeholder_visible(filters, value):
    assert stays_visible(filters, value)


@pytest.mark.parametrize(
    "filters", ["upcase: v", "join: v", "truncate: v", "map: v", "default: a, b", "default: a:b", "where: v, v"]
)
def test_only_default_takes_a_path(filters):
    assert stays_visible(f'{filters} | default: "x"', '["a"]')


def test_a_default_of_many_paths_is_bounded():
    payload = {f"k{number}": None for number in range(300)} | {"end": "found"}
    chain = "".join(f" | default: k{number}" for number in range(300))
    assert rendered("{{ nope" + chain + ' | default: end | default: "n/a" }}', payload) == "found"
    long = "x." * 400
    template = "{{ nope" + f" | default: {long}y" * 10 + ' | default: "" }}'
    assert rendered(template, {"x": {"y": 1}}) in ("", template)


@pytest.mark.parametrize(
    "value, upper, lower",
    [
        ('"hELLO wORLD"', "HELLO WORLD", "hello world"),
        ('"éCOLE"', "ÉCOLE", "école"),
        ('"Straße Ж"', "STRASSE Ж", "straße ж"),
        ('"日本 😀"', "日本 😀", "日本 😀"),
        ('""', "", ""),
        ("null", "", ""),
        ("true", "TRUE", "true"),
        ("1.50", "1.50", "1.50"),
        ("1E5", "1E5", "1e5"),
        ('["a", "B"]', '["A","B"]', '["a","b"]'),
        ('{"aB": null}', '{"AB":NULL}', '{"ab":null}'),
    ],
)
def test_upcase_and_downcase_work_on_the_text_of_a_value(value, upper, lower):
    assert (applied("upcase", value), applied("downcase", value)) == (upper, lower)


@pytest.mark.parametrize(
    "value, text",
    [
        *[('"hELLO wORLD"', "Hello world"), ('"ÉCOLE"', "École"), ('"éCOLE"', "École"), ('"x"', "X"), ('""', "")],
        *[("null", ""), ("true", "True"), ("false", "False"), ("9.90", "9.90"), ('"日本 😀"', "日本 😀")],
    ],
)
def test_capitalize_makes_the_first_letter_large_and_the_rest_small(value, text):
    assert applied("capitalize", value) == text


@pytest.mark.parametrize(
    "value, length, text",
    [
        ('"abcdef"', 6, "abcdef"),
        ('"abcdef"', 7, "abcdef"),
        ('"abcdef"', 5, "abcd…"),
        ('"abcdef"', 1, "…"),
        ('"a"', 1, "a"),
        ('""', 1, ""),
        ("null", 3, ""),
        ('"😀😀😀"', 2, "😀…"),
        ("12345.60", 5, "1234…"),
        ("true", 3, "tr…"),
        ("[1, 2, 3]", 4, "[1,…"),
        ('{"a": "b"}', 9, '{"a":"b"}'),
        ('"abcdef"', 1_000_000, "abcdef"),
    ],
)
def test_truncate_cuts_to_so_many_characters_with_the_ellipsis_included(value, length, text):
    assert applied(f"truncate: {length}", value) == text


@pytest.mark.parametrize(
    "value, filters, text",
    [
        ('["a", "b", "c"]', 'join: ", "', "a, b, c"),
        ('["a", "b"]', "join", "a b"),
        ('["a", "b"]', 'join: ""', "ab"),
        ('["a"]', 'join: ", "', "a"),
        ("[]", 'join: ", "', ""),
        ('[1.50, true, null, "x"]', 'join: "-"', "1.50-true--x"),
        ('[{"a": 1}, {}]', 'join: ";"', '{"a":1};{}'),
        ('["a", "b"]', "join: '}} | {'", "a}} | {b"),
        ('["a", "b"]', 'join: "," | upcase', "A,B"),
    ],
)
def test_join_puts_its_argument_between_the_elements(value, filters, text):
    assert applied(filters, value) == text


@pytest.mark.parametrize(
    "value, first, last",
    [
        ('["a", "b", "c"]', "a", "c"),
        ("[9.90]", "9.90", "9.90"),
        ("[null, [1, 2]]", "", "[1,2]"),
        ('[{"a": 1}, false]', '{"a":1}', "false"),
    ],
)
def test_first_and_last_take_an_element(value, first, last):
    assert (applied("first", value), applied("last", value)) == (first, last)


@pytest.mark.parametrize("name", ["first", "last"])
def test_first_and_last_of_an_empty_array_are_like_a_missing_variable(name):
    template = "{{ v | " + name + " | upcase }}"
    assert filled(template, {"v": []}) == (template, ("v",))
    assert applied(f'{name} | upcase | default: "none"', "[]") == "none"


@pytest.mark.parametrize(
    "value, path, text",
    [
        ('[{"n": 1.50}, {"n": "b"}, {"n": null}]', "n", '[1.50,"b",null]'),
        ('[{"n": 1}, {}, 5, "n", null, []]', "n", "[1,null,null,null,null,null]"),
        ('[{"a": {"b": 1}}, {"a.b": 2, "a": {"b": 3}}]', "a.b", "[1,2]"),
        ("[[1, 2], [3], []]", "1", "[2,null,null]"),
        ('[{"a": [{"b": 7}]}]', "a.0.b", "[7]"),
        ('[{"a b-c": 1}]', "a b-c", "[1]"),
        ('[{"n": null}]', "n", "[null]"),
    ],
)
def test_map_takes_a_path_within_each_element_and_null_where_it_is_lacking(value, path, text):
    assert applied(f'map: "{path}"', value) == text


@pytest.mark.parametrize("value", ['[{"a": 1}]', "[1, 2]", '["n"]', "[null]", '[{"N": 1}, {"n.": 1}]', "[[]]"])
def test_map_of_a_path_that_every_element_lacks_is_like_a_missing_variable(value):
    template = '{{ v | map: "n" | join }}'
    assert filled(template, f'{{"v": {value}}}') == (template, ("v",))
    assert applied('map: "n" | join | default: "none"', value) == "none"


@pytest.mark.parametrize(
    "value, arguments, text",
    [
        ('[{"s": "on", "n": 1}, {"s": "off"}, {"s": "on"}]', '"s", "on"', '[{"s":"on","n":1},{"s":"on"}]'),
        ('[{"s": "firing"}]', "'s' ,'firing'", '[{"s":"firing"}]'),
        ('[{"s": "Firing"}, {"s": "firing "}, {"s": "fir"}, {"s": ["firing"]}]', '"s", "firing"', "[]"),
        ("[]", '"s", "firing"', "[]"),
        ('[{"a": {"b": "x"}}, {"a": {"b": "y"}}, {"a": "x"}]', '"a.b", "x"', '[{"a":{"b":"x"}}]'),
        ('[{"a.b": "x", "a": {"b": "y"}}]', '"a.b", "x"', '[{"a.b":"x","a":{"b":"y"}}]'),
        ('[{"a": [{"b": 7}]}, {"a": []}]', '"a.0.b", 7', '[{"a":[{"b":7}]}]'),
        ('[{"n": 500}, {"n": "500"}, {"n": 500.0}, {"n": 5e2}]', '"n", 500', '[{"n":500},{"n":"500"}]'),
        ('[{"n": 9.90}, {"n": 9.9}, {"n": "9.90"}]', '"n", "9.90"', '[{"n":9.90},{"n":"9.90"}]'),
        ('[{"b": true}, {"b": "true"}, {"b": 1}, {"b": false}]', '"b", "true"', '[{"b":true},{"b":"true"}]'),
        ('[{"b": false}, {"b": null}, {"b": 0}]', '"b", "false"', '[{"b":false}]'),
        ('[{"s": ""}, {"s": null}, {}, {"s": " "}, {"s": []}, {"s": {}}]', '"s", ""', '[{"s":""},{"s":null},{}]'),
        ('["s", 1, null, true, [{"s": "x"}], ["x"], {"s": "x"}]', '"s", "x"', '[{"s":"x"}]'),
        ('[["x"]]', '"0", "x"', "[]"),
        ('[{"o": {"a": 1}}, {"o": "{\\"a\\":1}"}]', '"o", \'{"a":1}\'', '[{"o":"{\\"a\\":1}"}]'),
        ('[{"a b-c": "é😀"}]', '"a b-c", "é😀"', '[{"a b-c":"é😀"}]'),
        ('[{"s": "a, b"}]', '"s", "a, b"', '[{"s":"a, b"}]'),
    ],
)  # fmt: skip
def test_where_takes_the_objects_of_an_array_whose_path_shows_that_value(value, arguments, text):
    assert applied(f"where: {arguments}", value) == text


def test_where_goes_on_with_other_filters():
    alerts = '[{"s": "firing", "n": {"x": "a"}}, {"s": "ok", "n": {"x": "b"}}, {"s": "firing", "n": {"x": "c"}}]'
    assert applied('where: "s", "firing" | map: "n.x" | join: ", "', alerts) == "a, c"
    assert applied('where: "s", "firing" | where: "n.x", "c" | size', alerts) == "1"
    assert applied('where: "s", "none" | size', alerts) == "0"
    assert applied('where: "s", "none" | map: "n.x" | join: ", " | default: "none"', alerts) == "none"
    assert applied('where: "s", "none" | first | default: "none"', alerts) == "none"
    assert rendered('{{ nope | where: "s", "x" | default: "none" }}', {}) == "none"


@pytest.mark.parametrize(
    "value, size",
    [
        ('""', 0),
        ('"abc"', 3),
        ('"é😀漢"', 3),
        ("[]", 0),
        ("[[1, 2], null]", 2),
        ("{}", 0),
        ('{"a": 1, "b": {"c": 2}}', 2),
        ('"' + "x" * 9_999 + '"', 9_999),
    ],
)
def test_size_counts_characters_elements_or_keys(value, size):
    assert applied("size", value) == str(size)


def test_a_filter_looks_at_the_first_10000_characters_of_a_text():
    value = '"' + "a" * 10_000 + "b" * 10_000 + '"'
    assert applied("upcase | size", value) == "10000"
    assert applied("downcase | truncate: 5", value) == "aaaa…"
    assert applied("upcase", value, limit=10_000) in ("A" * 10_000, "A" * 9_999 + "…")


@pytest.mark.parametrize(
    "value, decimals, text",
    [
        ("2.675", 2, "2.68"),
        ("2.5", 0, "3"),
        ("3.5", 0, "4"),
        ("0.5", 0, "1"),
        ("-2.5", 0, "-3"),
        ("-2.675", 2, "-2.68"),
        ("2.4", 0, "2"),
        ("1.005", 2, "1.01"),
        ("1.0049999999999999999999999999999999999999", 2, "1.00"),
        ("2.49999999999999999999999999999999999999999999", 0, "2"),
        ("9.99", 1, "10.0"),
        ("1" * 50 + ".678", 1, "1" * 50 + ".7"),
        ("9" * 50 + ".95", 1, "1" + "0" * 50),
        ("99.5", 0, "100"),
        ("0.1234567890123456789012345", 20, "0.12345678901234567890"),
        (
            "12345678901234567890123456789012345678901234567890.678",
            1,
            "12345678901234567890123456789012345678901234567890.7",
        ),
        ("1.25e-1", 2, "0.13"),
        ("12345e-3", 1, "12.3"),
        ("1.25e1", 0, "13"),
        ("5e-324", 3, "0"),
        ("1e-400", 2, "0"),
        ("-0.2", 0, "0"),
        ('"2.675"', 2, "2.68"),
        ('"-2.5"', 0, "-3"),
        ('"1.25e1"', 0, "13"),
    ],
)
def test_round_rounds_half_away_from_zero_on_the_decimal_digits(value, decimals, text):
    rounded = applied(f"round: {decimals}", value)
    assert re.fullmatch(r"-?\d+(\.\d+)?", rounded)
    assert Decimal(rounded) == Decimal(text)


@pytest.mark.parametrize(
    "value, text", [("2.5", "3"), ("2.4", "2"), ("12.51", "13"), ('"0.5"', "1"), ("-0.51", "-1")]
)
def test_round_without_an_argument_rounds_to_a_whole_number(value, text):
    assert applied("round", value) == applied("round: 0", value) == text


@pytest.mark.parametrize(
    "value, decimals",
    [
        *[("7", 0), ("7", 2), ("-12", 1), ("9" * 100, 0), ("9.90", 2), ("9.90", 20), ("1.0", 1), ("0.5", 1)],
        *[("0", 0), ("1.10", 3), ("100000000000000000000000000.50", 2)],
        *[('"7"', 1), ('"9.90"', 2), ("1e5", 0), ("1e300", 2)],
    ],
)
def test_round_leaves_integers_and_what_has_no_more_decimals(value, decimals):
    assert applied(f"round: {decimals}", value) == value.strip('"')


@pytest.mark.parametrize(
    "string",
    [
        *["", " ", "abc", "1,5", "01.5", "+1.5", ".5", "1.", "1_0.5", " 1.5", "1.5 ", "1.5\\n", "NaN", "Infinity"],
        *["-Infinity", "nan", "inf", "0x1p3", "1e", "--1", "-", "1.5.5", "١.٥", "１.５", "²", "1e5x", "true", "null"],
    ],
)
def test_round_takes_no_string_that_is_not_a_json_number(string):
    assert stays_visible("round", f'"{string}"')


@pytest.mark.parametrize("exponent", ["999999999", "-999999999", "99999999999999999999", "-99999999999999999999"])
def test_round_never_fails_on_a_string_with_a_huge_exponent(exponent):
    number = f"1.5e{exponent}"
    assert applied("round: 2", f'"{number}"') in (number, "{{ v | round: 2 }}", "0", "0.00")


@pytest.mark.parametrize(
    "value", ["1e-999999999", "0." + "1" * 5_000, "0." + "1" * 100_000, '"0.' + "1" * 5_000 + '"']
)
def test_round_never_fails_on_a_number_of_very_many_digits(value):
    assert applied("round: 2", value) in ("{{ v | round: 2 }}", "0.11", "0", "0.00")


@pytest.mark.parametrize(
    "value, text",
    [
        ("0", "1970-01-01 00:00:00"),
        ("1795262400", "2026-11-21 12:00:00"),
        ("1795262400000", "2026-11-21 12:00:00"),
        ("1795262400999", "2026-11-21 12:00:00"),
        ("1795262400.9", "2026-11-21 12:00:00"),
        ("1795262400000.5", "2026-11-21 12:00:00"),
        ("1.7952624e9", "2026-11-21 12:00:00"),
        ("1.7952624E+12", "2026-11-21 12:00:00"),
        ("99999999999", "5138-11-16 09:46:39"),
        ("100000000000", "1973-03-03 09:46:40"),
        ('"1795262400"', "2026-11-21 12:00:00"),
        ('"1795262400000"', "2026-11-21 12:00:00"),
        ('"99999999999"', "5138-11-16 09:46:39"),
        ('"100000000000"', "1973-03-03 09:46:40"),
        ('"2026-11-21T12:00:00Z"', "2026-11-21 12:00:00"),
        ('"2026-11-21T12:00:00+00:00"', "2026-11-21 12:00:00"),
        ('"2026-11-21T14:30:00+02:30"', "2026-11-21 12:00:00"),
        ('"2026-11-20T20:00:00-16:00"', "2026-11-21 12:00:00"),
        ('"2026-11-21T12:00:00.123Z"', "2026-11-21 12:00:00"),
        ('"2026-11-21T12:00:00.123456789Z"', "2026-11-21 12:00:00"),
        ('"2026-11-21T12:00:00.999999999+00:00"', "2026-11-21 12:00:00"),
        ('"2026-11-21T12:00:00"', "2026-11-21 12:00:00"),
        ('"2026-11-21T12:00"', "2026-11-21 12:00:00"),
        ('"2026-11-21"', "2026-11-21 00:00:00"),
    ],
)
def test_date_takes_seconds_milliseconds_and_iso_8601(value, text):
    assert applied('date: "%Y-%m-%d %H:%M:%S"', value) == text


@pytest.mark.parametrize(
    "value, zone, text",
    [
        (f"{NOON}", "Europe/Berlin", "21 13:00 +0100"),
        (f"{NOON}000", "America/New_York", "21 07:00 -0500"),
        (f'"{NOON}"', "Asia/Kathmandu", "21 17:45 +0545"),
        (f"{NOON}", "Pacific/Kiritimati", "22 02:00 +1400"),
        ("1782907200", "Europe/Berlin", "01 14:00 +0200"),
        ("1792889999", "Europe/Berlin", "25 02:59 +0200"),
        ("1792890000", "Europe/Berlin", "25 02:00 +0100"),
        ('"2026-11-21T12:00:00Z"', "Europe/Berlin", "21 13:00 +0100"),
        ('"2026-07-01T12:00:00+09:00"', "Europe/Berlin", "01 05:00 +0200"),
        ('"2026-11-21T12:00:00"', "Europe/Berlin", "21 12:00 +0100"),
        ('"2026-07-01T12:00:00"', "America/New_York", "01 12:00 -0400"),
        ('"2026-11-21"', "Asia/Kathmandu", "21 00:00 +0545"),
    ],
)
def test_date_shows_the_accounts_local_time_and_honours_an_offset(value, zone, text):
    assert applied('date: "%d %H:%M %z"', value, zone=zone) == text


def test_a_date_is_in_utc_unless_told_otherwise():
    payload = strict_json.parse_event(b'{"v": 1795262400}')
    assert message_templates.fill('{{ v | date: "%H %Z" }}', payload, 100).text == "12 UTC"


@pytest.mark.parametrize(
    "form, text",
    [
        ("%A, %d %B %Y", "Saturday, 21 November 2026"),
        ("%H Uhr – %%", "12 Uhr – %"),
        ("um", "um"),
        ("%H}}%M|", "12}}00|"),
        ("%I:%M %p", "12:00 PM"),
        ("😀 %j", "😀 325"),
    ],
)
def test_a_date_is_shown_in_the_form_asked_for(form, text):
    assert applied(f"date: '{form}'", NOON) == text
    assert applied(f"date: '{form}' | upcase", NOON) == text.upper()


@pytest.mark.parametrize(
    "string",
    [
        *["soon", "2026-13-01", "2026-02-30T00:00:00Z", "2026-11-21T25:00:00Z", "21.11.2026", "²"],
        *["2026-11-21T12:00:00+99:00", "2026-11-21T12:00:00 Europe/Berlin", "now", "T", "Z", "-", "9" * 30],
        *["9" * 5_000],
    ],
)
def test_date_takes_no_other_string(string):
    assert stays_visible('date: "%H"', f'"{string}"')


@pytest.mark.parametrize("value", ["1e300", "-1e300", "9" * 100, "-" + "9" * 100, "1e17"])
def test_date_takes_no_number_that_lies_beyond_any_calendar(value):
    assert stays_visible('date: "%H"', value)


# What is refused when it is saved


@pytest.mark.parametrize(
    "template",
    [
        *["{{ a | shout }}", "{{a|shout}}", "{{ a | shout: 3 }}", '{{ a | shout: "x" }}', "{{{ a | shout }}}"],
        *["{{ a | upcase | shout }}", '{{ a | default: "}}" | shout }}'],
        *["{{ b }} text {{ a.b-c d | shout | upcase }}"],
        *["{{ a {{ a | shout }}", "{{ a | first }}{{ a | shout }}", "{{ a | join: '|' | shout | truncate: 3 }}"],
        "x" * 9_000 + "{{ a | shout }}",
    ],
)
def test_a_template_with_an_unknown_filter_is_refused_with_its_name(template):
    assert "shout" in refusal(template)


@pytest.mark.parametrize(
    "name", ["Upcase", "UPCASE", "upcased", "up", "strip", "escape", "date_to_string", "plus", "__class__", "größe"]
)
def test_only_the_filters_of_the_set_are_known(name):
    assert name in refusal("{{ a | " + name + " }}")


@pytest.mark.parametrize(
    "template",
    [
        *["", "text", "{{ a }}", "{{ nope.0.x }}", "a | shout", "{% a | shout %}", "{ a | shout }", "{{}}", "{{ }}"],
        *["{{ a | shout", "{{ a | shout }", "{{ a | shout {{ b }}", '{{ a | default: "b | shout" }}'],
        *["{{ a | default: '}} | shout' | upcase }}", *("{{ a | " + wrong + " }}" for wrong in WRONG_ARGUMENTS[:7])],
        *["{{ a | truncate: 0 }}", '{{ a | round: "x" }}', "{{ a | truncate }}", "{{ a | default }}"],
        *["{{ a | date }}"],
        *("{{ a | " + name + " }}" for name in FILTERS),
    ],
)
def test_any_other_template_is_taken(template):
    assert message_templates.check_template(template) is None


# CONTRACT 4, JSON: the payload


@pytest.mark.parametrize(
    "string, text",
    [
        ("\\u0000", "\ufffd"),
        ("a\\u0000b\\u0000", "a\ufffdb\ufffd"),
        ("\\ud800", "\ufffd"),
        ("\\uDFFFx", "\ufffdx"),
        ("\\udc00\\ud800", "\ufffd\ufffd"),
        ("\\ud83d\\ud83d\\ude00", "\ufffd😀"),
        ("\\ud83d\\ude00\\ude00", "😀\ufffd"),
        ("\\ud83d\\u0041", "\ufffdA"),
        ("\\\\u0000", "\\u0000"),
        ("\\\\\\u0000", "\\\ufffd"),
        ("\\\\ud800", "\\ud800"),
        ("\\u0001", "\x01"),
    ],
)
def test_a_nul_or_a_lone_surrogate_becomes_a_replacement_character(string, text):
    raw = f'{{"v": "{string}", "k{string}": 1, "list": ["{string}"]}}'
    assert strict_json.parse_event(raw.encode()) == {"v": text, f"k{text}": 1, "list": [text]}


@pytest.mark.parametrize(
    "raw, line",
    [
        ("", 1),
        ("{", 1),
        ('{"a": 1,\n "b": }', 2),
        ('{"a":\n NaN}', 2),
        ('{"a":\n 1e400}', 2),
        ('{"a":\n ' + "9" * 101 + "}", 2),
        ('{"a":\n' + "[" * 64 + "]" * 64 + "}", 2),
        ('{"a": "\\u0000",\n\n "b": nan}', 3),
        ("title=t", 1),
        ("payload=%7B%22a%22%3A%0A+nan%7D", 2),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(raw, line):
    with pytest.raises(errors.Refused) as refused:
        strict_json.parse_event(raw.encode())
    found = re.search(r"\bline (\d+),? column \d+", refused.value.message)
    assert (refused.value.status, int(found[1])) == (400, line)


@pytest.mark.parametrize("raw", ["[]", "null", "1", '"text"', '[{"a": 1}]', "payload=[]", "payload=1", "payload="])
def test_only_an_object_is_a_payload(raw):
    with pytest.raises(errors.Refused) as refused:
        strict_json.parse_event(raw.encode())
    assert refused.value.status == 400


@pytest.mark.parametrize("form", ["payload=%7B%22a%22%3A+9.90%7D", 'payload={"a":9.90}'])
def test_a_form_with_one_field_payload_is_the_object_that_it_holds(form):
    payload = strict_json.parse_event(form.encode())
    assert message_templates.fill("{{ a }} {{ payload }}", payload, 100) == ("9.90 {{ payload }}", ("payload",))


def test_the_last_of_duplicate_keys_wins():
    assert rendered("{{ a }}", '{"a": 1, "b": 0, "a": 2.50}') == "2.50"


# Hostile input: what it costs is measured elsewhere


@pytest.mark.parametrize(
    "text",
    [
        *["{{" + " " * 64_000, "{{" * 10_000, "{" * 20_000, "}" * 20_000, "{{ a " * 5_000, "{{ a |" * 5_000],
        *['{{ a | default: "' * 3_000, "{{'" * 5_000, "{{ a" + " |" * 5_000, "{{ a" + "." * 20_000, "{ {" * 10_000],
        *["{{}" * 5_000, "{{}}" * 5_000, "{{ }}" * 5_000, " }}" * 10_000],
    ],
)
def test_text_of_many_braces_is_itself(text):
    assert filled(text, {"a": "x"}, limit=100_000) == (text, ())


def test_of_many_open_braces_the_last_pair_begins_the_placeholder():
    assert rendered("{" * 20_000 + "a}}", {"a": "x"}, limit=20_000) == "{" * 19_998 + "x"
    assert rendered("{{ a " * 5_000 + "}}", {"a": "x"}, limit=30_000) == "{{ a " * 4_999 + "x"


def test_many_spaces_around_a_path_are_ignored():
    spaces = " " * 30_000
    assert rendered("{{" + spaces + "a" + spaces + "|" + spaces + "upcase" + spaces + "}}", {"a": "x"}) == "X"


def test_a_key_may_have_thousands_of_dots():
    path = "." * 5_000
    assert rendered("{{ " + path + " }}", {path: "y", "": {"": "x"}}) == "y"


def test_a_path_leads_through_many_objects():
    nested = '{"":' * 60 + '"x"' + "}" * 60
    assert rendered("{{ " + "." * 59 + "}}", nested) == "x"


def test_a_path_of_thousands_of_dots_is_missing_from_nested_objects():
    nested = '{"":' * 60 + '"x"' + "}" * 60
    path = "." * 5_000
    assert filled("{{ " + path + " }}", nested) == ("{{ " + path + " }}", (path,))


def test_a_chain_may_have_thousands_of_filters():
    assert rendered("{{ a" + "|upcase" * 1_400 + "}}", {"a": "x"}) == "X"
    assert rendered("{{ a" + "|upcase" * 1_400 + "|shout}}", {"a": "x"})[:20] == "{{ a|upcase|upcase|u"


HUGE = {
    "text": "x" * 1_000_000,
    "list": [{"n": number} for number in range(50_000)] + [0] * 50_000,
    "object": {f"k{number}": number for number in range(100_000)},
    "digits": "1" * 1_000_000,
    "name": "x",
}


@pytest.fixture(scope="module")
def huge():
    raw = json.dumps(HUGE)[:-1] + ', "number": 0.' + "1" * 1_000_000 + "}"
    return strict_json.parse_event(raw.encode())


@pytest.mark.parametrize(
    "placeholder, begins",
    [
        ("{{ text }}", "xxxxxxxxxx"),
        ("{{ text | upcase }}", "XXXXXXXXXX"),
        ("{{ text | upcase | size }}", "1000010000"),
        ("{{ text | truncate: 3 }}", "xx…xx…xx…x"),
        ("{{ text | first }}", "{{ text | "),
        ("{{ text | round }}", "{{ text | "),
        ("{{ text | date: '%H' }}", "{{ text | "),
        ("{{ digits | date: '%H' }}", "{{ digits "),
        ("{{ number }}", "0.11111111"),
        ("{{ list }}", '[{"n":0},{'),
        ("{{ list | size }}", "1000001000"),
        ("{{ list | last }}", "0000000000"),
        ("{{ list.49999.n }}", "4999949999"),
        ('{{ list | map: "x" }}', "{{ list | "),
        ('{{ list | where: "n", 7 }}', "{{ list | "),
        ("{{ list | upcase }}", '[{"N":0},{'),
        ("{{ object }}", '{"k0":0,"k'),
        ("{{ object | size }}", "1000001000"),
        ("{{ object | upcase | downcase }}", '{"k0":0,"k'),
        ("{{ object.k99999 }}", "9999999999"),
        ("{{ object.nope }}", "{{ object."),
    ],
)
def test_a_thousand_placeholders_over_a_huge_payload_are_cut_to_the_limit(huge, placeholder, begins):
    text = message_templates.fill(placeholder * 1_000, huge, 900).text
    assert (text[:10], len(text), text[-1]) == (begins, 900, "…")


@pytest.mark.parametrize(
    "placeholder, text",
    [
        ('{{ list | map: "n" }}', "[0,1,2,3,4,5,6,7,8,…"),
        ('{{ list | map: "n" | join: "" }}', "0123456789101112131…"),
        ("{{ digits | round: 1 }}", "1" * 19 + "…"),
    ],
)
def test_a_filter_that_would_look_at_too_much_may_leave_the_placeholder_visible(huge, placeholder, text):
    assert message_templates.fill(placeholder, huge, 20).text in (text, cut(placeholder, 20))


@pytest.mark.parametrize(
    "costly",
    [
        *['{{ list | map: "n" | size }}', '{{ list | map: "x" }}', '{{ list | join: "" | size }}'],
        *["{{ list | upcase | size }}", "{{ object | upcase | size }}", "{{ digits | round: 1 | size }}"],
        *['{{ list | where: "n", 1 | size }}', '{{ list | where: "x", "" | where: "x", "" | size }}'],
    ],
)
def test_a_costly_placeholder_does_not_touch_its_neighbours(huge, costly):
    text, missing = message_templates.fill(costly + "|{{ name }}{{ name | upcase }}{{ nope }}", huge, 1_000)
    assert (text.rpartition("|")[2], missing[-1:]) == ("xX{{ nope }}", ("nope",))


# Properties, against an oracle that is slow and obvious


PROPERTY = settings(max_examples=150, deadline=None, derandomize=True)
MISSING = object()


class Digits(str):
    """A number of the payload, as it is written."""


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


def cut(text, limit):
    return text if len(text) <= limit else text[: limit - 1] + "…"


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
    return MISSING if all(one is MISSING for one in inner) else [None if one is MISSING else one for one in inner]


def where(value, path, wanted):
    fit(isinstance(value, list))
    inner = [(one, found(one, path)) for one in value if isinstance(one, dict)]
    texts = [(one, "" if value is MISSING else value) for one, value in inner if not isinstance(value, (dict, list))]
    return [one for one, value in texts if shown(value) == wanted]


def size(value):
    fit(isinstance(value, (str, list, dict)) and not isinstance(value, Digits))
    return Digits(len(value))


ORACLE = {
    "upcase": lambda value: shown(value).upper(),
    "downcase": lambda value: shown(value).lower(),
    "truncate": lambda value, length: cut(shown(value), length),
    "join": join,
    "first": element(0),
    "last": element(-1),
    "map": mapped,
    "where": where,
    "size": size,
    "default": lambda value, other: other if value in (MISSING, None, "", [], {}) or value is False else value,
}


def expected(value, chain, placeholder):
    """What a placeholder shows whose path leads to this value."""
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
DIGITS = (st.sampled_from(SHORT_NUMBERS) | st.from_regex(NUMBER, fullmatch=True)).map(Digits)
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
    """Two arguments as one: as they are written, then for the oracle."""
    (first, path), (second, wanted) = arguments
    return f"{first} , {second}", path, wanted


STEPS = (
    st.sampled_from([(name, ()) for name in ("upcase", "downcase", "join", "first", "last", "size")])
    | st.tuples(st.just("truncate"), st.integers(1, 12).map(lambda length: (f"{length}", length)))
    | st.tuples(st.sampled_from(["join", "default"]), ARGUMENTS)
    | st.tuples(st.just("map"), MAP_PATHS)
    | st.tuples(st.just("where"), st.tuples(MAP_PATHS, WANTED).map(both))
)
BEFORE = st.text("ab|}\"'\n", max_size=5)
SPACES = st.sampled_from(["", " ", "  ", "\t"])


@st.composite
def chains(draw):
    """The filters of a placeholder: as they are written, and for the oracle."""
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
@given(st.text().filter(lambda text: "{{" not in text), PAYLOADS)
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


@settings(PROPERTY, max_examples=200)
@given(SOUP | st.text(), PAYLOADS, st.integers(1, 60), ZONES)
def test_filling_never_fails_and_never_passes_the_limit(template, payload, limit, zone):
    whole = filled(template, written(payload), limit=50_000, zone=zone)
    assert rendered(template, written(payload), limit=limit, zone=zone) == cut(whole.text, limit)
    assert len(set(whole.missing)) == len(whole.missing)
    assert all("{{" in template and path in template for path in whole.missing)


@settings(PROPERTY, max_examples=200)
@given(WITHOUT_DEFAULT)
def test_an_empty_payload_leaves_any_template_without_a_default_as_it_is(template):
    assert rendered(template, {}) == template


@settings(PROPERTY, max_examples=200)
@given(SOUP | st.text())
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
@given(st.from_regex(r"-?(0|[1-9][0-9]{0,40})\.[0-9]{1,40}", fullmatch=True), st.integers(0, 20), st.booleans())
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
