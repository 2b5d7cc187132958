"""Which parts of a template are shown as they are written, and why: for the template alone, and for a payload."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from core import message_templates, presets
from core.template_lint import MAX_UNFILLED, NEEDS, NO_TEXT_AT_THE_END, TAKES, unfilled
from tests.support.rows import each
from wire import strict_json

NO_END = "the closing }} is missing."
NO_QUOTE = "a quotation mark is not closed."
NO_NAME = "the name of a variable is missing."
NO_TAGS = "tags are not supported, only variables and filters."


def told(template, payload=None, zone="UTC"):
    """The parts as pairs; the payload is JSON."""
    parsed = None if payload is None else strict_json.parse_event(payload.encode())
    return [tuple(part) for part in unfilled(template, parsed, zone)]


@each(
    "template",
    [
        "", "plain", "{{ title }}", "{{title}}{{ a.0.b }}", "{{ a | default: 5 }}", "{{ a b-c.d }}", "{{{ a }}}",
        '{{ a | default: "n/a" | upcase }}', '{{ a | default: b.c | default: "x" }}', "{{ a | truncate: 30 }}",
        "{ lone }", "a } b", "}}", "{}", "50 % off", "{ % x % }", "{{ it's }}", "{{ a | round }}{{ a | round: 20 }}",
        '{{ a | join }}{{ a | join: "" }}', '{{ a | map: "b.c" | first | last | size }}',
        '{{ a | where: "s", "f" | size }}', '{{ a | date: "%H:%M" }}', '{{ a | default: "}} {{ {% x %}" }}',
    ],
)  # fmt: skip
def test_a_template_that_can_be_filled_has_no_warnings(template):
    assert told(template) == []


@each(
    "template, shown, why",
    [
        ("{{ title", "{{ title", NO_END),
        ("a {{ title }\nb", "{{ title } b", NO_END),
        ("{{ a {{ b }}", "{{ a", NO_END),
        ("{{", "{{", NO_END),
        ("}} {{", "{{", NO_END),
        ("{{" + "x" * 100, "{{" + "x" * 57 + "…", NO_END),
        ('{{ a | default: "n/a }}', '{{ a | default: "n/a }}', NO_QUOTE),
        ("{{ a | default: it's }} b", "{{ a | default: it's }}", NO_QUOTE),
        ("{{ }}", "{{ }}", NO_NAME),
        ("{{}}", "{{}}", NO_NAME),
        ("{{ | upcase }}", "{{ | upcase }}", NO_NAME),
        ("{% if title %}", "{% if title %}", NO_TAGS),
        ("a {% endif", "{% endif", NO_TAGS),
        ("{%- x -%} {{ a }}", "{%- x -%}", NO_TAGS),
    ],
)
def test_an_invalid_placeholder_is_reported_with_the_reason(template, shown, why):
    assert told(template) == [(shown, why)]


@each(
    "filters, name",
    [
        ("truncate", "truncate"), ("truncate: abc", "truncate"), ("truncate: 0", "truncate"),
        ("truncate: -1", "truncate"), ('truncate: "5"', "truncate"), ("truncate 5", "truncate"),
        ("default", "default"), ("default:", "default"),
        ("default: 1, 2", "default"),
        ('upcase: "a", "b"', "upcase"), ("where", "where"), ('where: "a"', "where"), ('where: 1, "b"', "where"),
        ("where: a, b", "where"),
        ("upcase: 1", "upcase"), ('first: "x"', "first"), ("size: 2", "size"), ("last: 1", "last"),
        ("join: 3", "join"), ("join: ,", "join"), ("map", "map"), ("map: a", "map"), ("round: 21", "round"),
        ('round: "1"', "round"), ("round: 1.5", "round"), ("date", "date"), ("date: %H", "date"),
        ("upcase | truncate: x | default", "truncate"), ("downcase: 1", "downcase"), ("capitalize: 1", "capitalize"),
    ],
)  # fmt: skip
def test_a_filter_with_an_invalid_argument_is_reported_for_any_payload(filters, name):
    placeholder = "{{ a | " + filters + " }}"
    expected = [(placeholder, f"{name} takes {TAKES.get(name, 'nothing after its name')}.")]
    assert told(f"x {placeholder} y") == expected
    for value in ('"text"', "1.5", "[]", "null", '{"b": 1}'):
        assert told(f"x {placeholder} y", f'{{"a": {value}}}') == expected
    assert told(f"x {placeholder} y", "{}") == expected


@each(
    "filters", ["default: nobody", "default: b | default: c.d", "upcase | default: b", 'default: "n/a" | default: b']
)
def test_a_default_that_ends_in_a_path_is_told_that_a_text_must_end_it(filters):
    placeholder = "{{ a | " + filters + " }}"
    for payload in (None, "{}", '{"a": "text", "b": "other"}'):
        assert told(placeholder, payload) == [(placeholder, NO_TEXT_AT_THE_END)]


@each(
    "filters, value, name",
    [
        ("round", '"disk"', "round"), ("round: 2", "true", "round"), ("round", "[]", "round"),
        ('date: "%H"', '"soon"', "date"), ('date: "%H"', "null", "date"), ('date: "%H"', "1e300", "date"),
        ("join", '"a"', "join"), ('where: "b", "c"', '"a"', "where"),
        ('map: "b"', "1", "map"), ("first", "{}", "first"), ("last", '"abc"', "last"),
        ("size", "5", "size"), ("upcase | round", '"a"', "round"),
    ],
)  # fmt: skip
def test_a_filter_that_does_not_fit_its_value_is_reported_for_that_payload(filters, value, name):
    placeholder = "{{ a | " + filters + " }}"
    payload = f'{{"a": {value}}}'
    assert told(placeholder, payload) == [(placeholder, f"{name} needs {NEEDS[name]}.")]
    assert told(placeholder) == told(placeholder, "{}") == []


def test_a_placeholder_that_takes_too_much_work_says_so():
    payload = json.dumps({"a": [{"b": 1}] * 60_000})
    ((shown, why),) = told('{{ a | map: "b" | join }}', payload)
    assert shown == '{{ a | map: "b" | join }}' and why == "the payload is too large for that."


def test_equal_warnings_are_reported_once_and_at_most_twenty():
    assert told("{{ }} {{ }} {{ a | truncate }} {{ }}") == [
        ("{{ }}", NO_NAME), ("{{ a | truncate }}", f"truncate takes {TAKES['truncate']}."),
    ]  # fmt: skip
    many = "".join(f"{{{{ a{number} | truncate }}}}" for number in range(100))
    assert MAX_UNFILLED == 20 and told(many) == told(many)[:20] and len(told(many)) == 20


def test_every_filter_says_what_it_takes_and_what_it_needs():
    for name in message_templates.FILTERS:
        takes = TAKES.get(name)
        example = re.search("as in (.+)", takes)[1] if takes else name
        assert example.split(":")[0] == name and told("{{ a | " + example + " }}") == [], name
        if takes is None:
            assert told("{{ a | " + name + ': "x" }}') and told("{{ a | " + name + ": 1 }}"), name
        for value in ('"x"', "1", "null", "[]", "{}", "true"):
            for _, why in told("{{ a | " + example + " }}", f'{{"a": {value}}}'):
                assert why == f"{name} needs {NEEDS[name]}.", (name, value)


@each("preset", presets.PRESETS)
def test_a_preset_with_its_sample_has_no_warnings(preset):
    for template in filter(None, (preset.title, preset.body)):
        assert told(template) == told(template, json.dumps(preset.sample)) == []


PARTS = st.sampled_from(
    ["{{", "}}", "{%", "%}", " a ", "|", ":", '"', "'", "truncate", "default", "round", "5", "{", "}"]
)


@given(st.lists(PARTS, max_size=14).map("".join))
def test_there_is_no_warning_exactly_if_every_placeholder_is_filled(template):
    payload = {"a": "text", "5": "text", "truncate": "text", "default": "text", "round": "text"}
    parsed = strict_json.parse_event(json.dumps(payload).encode())
    filled = message_templates.fill(template, parsed, 100_000)
    stays = [text for text, _ in unfilled(template, parsed)]
    if not stays and not filled.missing:
        assert "{{" not in filled.text and "{%" not in filled.text
    for text in stays:
        assert text.rstrip("…").split()[0] in " ".join(filled.text.split())


@each(
    "template",
    [
        "{{" * 5_000, "{{ " * 3_000, "{{ a | truncate }}" * 550, "{%" * 5_000, "{{ }}" * 2_000,
        "{{ a |" + "|" * 9_000 + "}}", '{{ a | "' * 1_200,
    ],
)  # fmt: skip
def test_warnings_on_the_longest_templates_are_few_and_short(template):
    found = unfilled(template, {"a": "text"})
    assert 1 <= len(found) <= MAX_UNFILLED and all(len(text) <= 60 for text, _ in found)
