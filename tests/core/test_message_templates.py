"""Placeholders: variables, paths, what the payload lacks, what is text, what is refused."""

import json

import pytest

from core import message_templates
from tests.support.rows import each
from tests.support.templates import FILTERS, NUMBERS, WRONG_ARGUMENTS, filled, rendered
from wire import errors, strict_json


def refusal(template):
    """The sentence with which a template is refused."""
    with pytest.raises(errors.Refused) as refused:
        message_templates.check_template(template)
    assert refused.value.status == 400
    return refused.value.message


# Variables


@each("template", ["{{a}}", "{{ a}}", "{{a }}", "{{   a   }}", "{{\ta\t}}", "{{\n a\r\n}}"])
def test_white_space_around_a_path_is_ignored(template):
    assert rendered(template, {"a": "x"}) == "x"


@each(
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
        ('[1, 2.50, "a b", true, false, null]', '[1,2.50,"a b",true,false,null]'),
        ('{"b" : 1 , "a" : {"z": [ ], "y": { }}}', '{"b":1,"a":{"z":[],"y":{}}}'),
        ('{"9": 1, "10": 2, "1": 3}', '{"9":1,"10":2,"1":3}'),
        ('["\\u00e9", "\\ud83d\\ude00", "漢"]', '["é","😀","漢"]'),
        ('["a\\"b\\\\c\\n"]', '["a\\"b\\\\c\\n"]'),
        ('{"a\\"b": "</x>", "": ""}', '{"a\\"b":"</x>","":""}'),
        ("[[[]], [{}]]", "[[[]],[{}]]"),
    ],
)
def test_texts_are_shown_as_they_are_booleans_as_words_null_as_nothing_and_the_rest_as_compact_json(value, text):
    assert filled("<{{ v }}>", f'{{"v": {value}}}') == (f"<{text}>", ())


@each("number", NUMBERS)
def test_numbers_render_digit_for_digit(number):
    payload = f'{{"v": {number}, "list": [{number}], "object": {{"n": {number}}}}}'
    assert rendered("{{ v }} {{ list }} {{ object }}", payload) == f'{number} [{number}] {{"n":{number}}}'


# Paths


@each(
    "key",
    [
        *["a-b", "a b", "a  b", "a.b", "a.b.c", ".", "..", ".a", "a.", "0", "01", "-1", "@timestamp", "$", "#x"],
        *["a/b", "é", "漢字", "😀", "A", "it's", 'say "x"', "a:b", "a,b", "a=b", "(a)", "[0]", "upcase", "%"],
    ],
)
def test_a_key_is_written_as_it_is(key):
    assert filled("<{{ " + key + " }}>", {key: "x", "other": "y"}) == ("<x>", ())


@each(
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
        ({"a.b": {}, "a": {"b": {"c": 1}}}, "a.b.c", None),
        ({"a.b": "text", "a": {"b": {"c": 1}}}, "a.b.c", None),
        ({"a.b": None, "a": {"b": {"c": 1}, "b.c": 2}}, "a.b.c", None),
        ({"a.b": [1], "a": {"b.c": 2}}, "a.b.c", None),
    ],
)
def test_at_each_object_the_longest_key_that_matches_wins_even_if_it_leads_nowhere(payload, path, value):
    template = "{{ " + path + " }}"
    assert filled(template, payload) == ((template, (path,)) if value is None else (value, ()))


@each("path", ["ab", "abc", "a.b", "A.c", "abc.d", "b", "abcd.c", "ab.cd", "ab.c.d", "ab."])
def test_a_key_matches_up_to_a_dot_or_the_end_alone(path):
    payload = {"abcd": 1, "a": {"c": 1}, "ab.cc": 1, "ab .c": 1, "ab.c": 1}
    assert filled("{{ " + path + " }}", payload) == ("{{ " + path + " }}", (path,))


@each(
    "path, value",
    [("a.0", "[10,11]"), ("a.0.1", "11"), ("a.2.b.0", "12"), ("a.10", "20"), ("a.1", ""), ("a.9", "[]")],
)
def test_array_positions_are_numbers(path, value):
    payload = {"a": [[10, 11], None, {"b": [12]}, 0, 0, 0, 0, 0, 0, [], 20]}
    assert filled("{{ " + path + " }}", payload) == (value, ())


@each(
    "position",
    [
        *["2", "00", "01", "-1", "+1", "-0", "1.0", "0x0", "1e0", "0_1", "٠", "²", "①", " 0", "", "length", "size"],
        *["first", "last", "0.", ".0", "[0]", "99999999999999999999", "9" * 5_000, "0" * 5_000],
    ],
)
def test_any_other_position_is_missing(position):
    template = "{{ a." + position + "|upcase}}"
    assert filled(template, {"a": ["x", "y"]}) == (template, (("a." + position).strip(),))


@each("value", ["text", "", 5, 1.5, True, False, None])
@each("rest", ["b", "0", "size", "upper", "__class__", "real", "literal", ""])
def test_a_path_into_a_scalar_is_missing(value, rest):
    assert filled("{{ a." + rest + " }}", {"a": value}) == ("{{ a." + rest + " }}", ("a." + rest,))


# What the payload lacks


@each(
    "template",
    [
        *["{{nope}}", "{{  nope   }}", "{{\tnope\n}}", "{{ nope|upcase }}", "{{ nope |  truncate:3|upcase }}"],
        *["{{ nope | date: '%H' }}", '{{ nope | join: ", " | size }}', "{{nope | first | last | round: 1}}"],
        *['{{ nope | map: "x" }}', "{{ nope | capitalize | downcase }}"],
    ],
)
def test_a_variable_that_the_payload_lacks_stays_visible_as_it_was_written(template):
    assert filled(f"<{template}>", {"a": 1}) == (f"<{template}>", ("nope",))


def test_missing_paths_are_listed_once_in_order_of_appearance():
    template = "{{ z }}{{ ok }}{{a.b}}{{ z | upcase }}{{  a.b  }}{{ c d }}"
    assert filled(template, {"ok": 1}).missing == ("z", "a.b", "c d")


# What is text


@each(
    "text",
    [
        *["", " ", "plain", "a | upcase", "line\nline\r\n", "é😀\x00\x01", "{", "}", "{}", "{ }", "{a}", "{{", "}}"],
        *["{{}}", "{{ }}", "{{\n}}", "{{a", "{{ a }", "{{ a } }", "{ { a } }", "{ {a}}", "a }}", "}}{{", "}} a {{"],
        *["{% if a %}", "{% endif %}", "{# a #}", "${a}", "$a", "%(a)s", "%s", "{a.__class__}", "{0}", "{a!r}"],
        *["<b>&amp;</b>", "\\{a}", "{{{", "}}}", "{{{}}}", "{{ a | upcase", '{{ a | default: "x }}'],
        "{{ a | default: '}}",
    ],
)
def test_text_without_placeholders_is_unchanged(text):
    assert filled(text, {"a": "A", "": "E", "0": "Z"}) == (text, ())


@each(
    "template, text",
    [
        ("{{ name | upcase {{ name }}", "{{ name | upcase x"),
        ("\\{{ name }}", "\\x"),
        ("{% raw %}{{ name }}{% endraw %}", "{% raw %}x{% endraw %}"),
        ('{"a": "{{ name }}"}', '{"a": "x"}'),
        ("'{{ name }}' | \"{{ name }}\"", "'x' | \"x\""),
        ("it's {{ name }}, it's {{ name }}", "it's x, it's x"),
    ],
)
def test_braces_that_are_no_placeholder_are_text_beside_one(template, text):
    assert rendered(template, {"name": "x"}) == text


@each(
    "inside",
    [
        *["7*7", "a()", "a[0]", "a == 1", "a + a", "a.__class__", "__class__", "a.__init__.__globals__", "self"],
        *["payload", "zone", "limit", "'a'", '"a"', "-a", "not a", "a if a", "%a", "#a", "/a", "^a", "a!"],
    ],
)
def test_nothing_is_ever_evaluated(inside):
    assert rendered("{{ " + inside + " }}", {"a": ["x"]}) == "{{ " + inside + " }}"


@each(
    "value",
    ["{{ b }}", "{{b}}", "{{", "}}", "{{ a }}", "{% b %}", "{{ b | upcase }}", "x | upcase", '" | upcase', "%H"],
)
@each("template", ["{{ a }}", "<{{ a }}>", "{{ a }} {{ a }}", "{{ a | truncate: 99 }}"])
def test_placeholders_in_a_value_are_not_filled(template, value):
    expected = template.replace("{{ a }}", value).replace("{{ a | truncate: 99 }}", value)
    assert filled(template, {"a": value, "b": "evaluated"}) == (expected, ())


# Rendered length


SHORTENED = [
    ("abcde", 5, "abcde"), ("abcdef", 5, "abcd…"), ("{{ five }}", 5, "12345"), ("{{ five }}.", 5, "1234…"),
    ("{{ five }}", 4, "123…"), ("ab{{ five }}", 4, "ab1…"), ("ab{{ five }}", 2, "a…"),
    ("{{ nope }}", 10, "{{ nope }}"), ("{{ nope }}", 9, "{{ nope …"), ("{{ nope", 6, "{{ no…"),
    ("{{ five }}", 1, "…"), ("{{ one }}", 1, "x"), ("{{ faces }}", 4, "😀😀😀😀"),
    ("{{ faces }}{{ one }}", 4, "😀😀😀…"), ("{{ list }}", 6, "[1,2]"), ("{{ list }}", 4, "[1,…"),
    ("{{ none }}", 1, ""), ("{{ five }}{{ none }}", 5, "12345"),
    ("{{ five }}{{ none }}{{ five }}", 10, "1234512345"),
]  # fmt: skip


@each("template, limit, text", SHORTENED)
def test_the_text_is_cut_to_the_limit_with_the_ellipsis_included(template, limit, text):
    payload = {"five": "12345", "one": "x", "faces": "😀😀😀😀", "list": [1, 2], "none": None}
    assert rendered(template, payload, limit=limit) == text


# What is refused when it is saved


@each(
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


@each(
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
def test_every_template_without_an_unknown_filter_is_accepted(template):
    assert message_templates.check_template(template) is None


# Hostile input: what it costs is measured elsewhere


def test_a_key_may_have_thousands_of_dots():
    path = "." * 5_000
    assert rendered("{{ " + path + " }}", {path: "y", "": {"": "x"}}) == "y"


def test_a_path_of_thousands_of_dots_is_missing_from_nested_objects():
    nested = '{"":' * 60 + '"x"' + "}" * 60
    path = "." * 5_000
    assert filled("{{ " + path + " }}", nested) == ("{{ " + path + " }}", (path,))


def test_a_chain_may_have_thousands_of_filters():
    assert rendered("{{ a" + "|upcase" * 1_400 + "}}", {"a": "x"}) == "X"
    assert rendered("{{ a" + "|upcase" * 1_400 + "|shout}}", {"a": "x"})[:20] == "{{ a|upcase|upcase|u"


@pytest.fixture(scope="module")
def huge():
    payload = {
        "text": "x" * 100_000,
        "list": [{"n": number} for number in range(20_000)] + [0] * 20_000,
        "object": {f"k{number}": number for number in range(10_000)},
        "digits": "1" * 100_000,
        "name": "x",
    }
    raw = json.dumps(payload)[:-1] + ', "number": 0.' + "1" * 100_000 + "}"
    return strict_json.parse_event(raw.encode())


@each(
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
        ("{{ list | size }}", "4000040000"),
        ("{{ list | last }}", "0000000000"),
        ("{{ list.19999.n }}", "1999919999"),
        ('{{ list | map: "x" }}', "{{ list | "),
        ('{{ list | where: "n", 7 }}', "{{ list | "),
        ("{{ list | upcase }}", '[{"N":0},{'),
        ("{{ object }}", '{"k0":0,"k'),
        ("{{ object | size }}", "1000010000"),
        ("{{ object | upcase | downcase }}", '{"k0":0,"k'),
        ("{{ object.k9999 }}", "9999999999"),
        ("{{ object.nope }}", "{{ object."),
    ],
)
def test_a_thousand_placeholders_over_a_huge_payload_are_cut_to_the_limit(huge, placeholder, begins):
    text = message_templates.fill(placeholder * 1_000, huge, 900).text
    assert (text[:10], len(text), text[-1]) == (begins, 900, "…")


@each(
    "costly",
    [
        *['{{ list | map: "n" | size }}', '{{ list | map: "x" }}', '{{ list | join: "" | size }}'],
        *["{{ list | upcase | size }}", "{{ object | upcase | size }}", "{{ digits | round: 1 | size }}"],
        *['{{ list | where: "n", 1 | size }}', '{{ list | where: "x", "" | where: "x", "" | size }}'],
    ],
)
def test_a_costly_placeholder_does_not_affect_other_placeholders(huge, costly):
    text, missing = message_templates.fill(costly + "|{{ name }}{{ name | upcase }}{{ nope }}", huge, 1_000)
    assert (text.rpartition("|")[2], missing[-1:]) == ("xX{{ nope }}", ("nope",))
