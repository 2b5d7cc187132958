"""The filter `parse_json`: JSON in a text of the payload, as AWS SNS sends it."""

import json

from core.template_filters import MAX_EMBEDDED, WORK
from tests.support.rows import each
from tests.support.templates import applied, filled
from wire.strict_json import MAX_DEPTH

ALARM = {"AlarmName": "CPU", "Trigger": {"Dimensions": [{"name": "Id", "value": "i-1"}]}, "a.b": 9.90, "none": None}


@each(
    "filters, holds, text",
    [
        ("parse_json: 'AlarmName'", ALARM, "CPU"),
        ('parse_json: "AlarmName" | downcase', ALARM, "cpu"),
        ("parse_json | size", ALARM, "4"),
        ("parse_json: 'Trigger.Dimensions.0.value'", ALARM, "i-1"),
        ("parse_json: 'Trigger.Dimensions' | map: 'value' | join: ','", ALARM, "i-1"),
        ("parse_json: 'Trigger.Dimensions.0'", ALARM, '{"name":"Id","value":"i-1"}'),
        ("parse_json: 'a.b'", '{"a.b": 9.90}', "9.90"),
        ("parse_json", "[-0, 1E+2, 9.90]", "[-0,1E+2,9.90]"),
        ("parse_json: 'none'", ALARM, ""),
        ("parse_json: 'none' | default: 'x'", ALARM, "x"),
        ("parse_json", '"text"', "text"),
        ("parse_json", " true ", "true"),
        ("parse_json: 'a'", '{"a": "\\u0000\\ud800"}', "\ufffd\ufffd"),
        ("parse_json: 'a' | parse_json: 'b'", '{"a": "{\\"b\\": 1}"}', "1"),
        ("parse_json | parse_json: 'b'", '"{\\"b\\": 1}"', "1"),
        ("parse_json: 'a'", '{"a": "{{ v }}"}', "{{ v }}"),
    ],
)
def test_a_text_becomes_the_json_that_it_holds(filters, holds, text):
    value = holds if isinstance(holds, str) else json.dumps(holds)
    assert applied(filters, json.dumps(value)) == text


@each(
    "text",
    [
        *["", "words", "{", '{"a": NaN}', '{"a": 1e400}', "[1,]", "\ufeff{}", '{"b": 1}', "[]", "1", "null"],
        *["[" * 5_000, '{"a":' * MAX_DEPTH + "{}" + "}" * MAX_DEPTH],
    ],
)
def test_a_text_without_json_or_without_the_path_counts_as_missing(text):
    template = "{{ v | parse_json: 'a' }}"
    assert filled(template, {"v": text}) == (template, ("v",))
    assert applied("parse_json: 'a' | default: 'n/a'", json.dumps(text)) == "n/a"


def test_a_text_of_up_to_100000_characters_is_read():
    for surplus, shown in ((0, "9"), (1, "{{ v | parse_json: 'a' }}")):
        text = '{"a": 9}'.ljust(MAX_EMBEDDED + surplus)
        assert applied("parse_json: 'a'", json.dumps(text)) == shown


def test_a_text_is_read_once_for_all_placeholders():
    text = json.dumps({"a": "x", "long": "y" * (MAX_EMBEDDED - 50)})
    template = "{{ v | parse_json: 'a' }}" * 100
    assert filled(template, {"v": text}) == ("x" * 100, ())


def test_reading_many_long_texts_ends_where_the_template_has_no_work_left():
    many = WORK // MAX_EMBEDDED
    payload = {f"v{place}": json.dumps(str(place) * (MAX_EMBEDDED - 2)) for place in range(many)}
    template = "".join(f"{{{{ {name} | parse_json | size }}}}," for name in payload)
    shown = filled(template, payload).text.split(",")
    assert shown[0] == "99998" and shown[-2] == f"{{{{ v{many - 1} | parse_json | size }}}}"
