"""The filters of placeholders, one by one."""

import hashlib
import json

from core import message_templates
from core.template_filters import MAX_EMBEDDED, WORK
from tests.support.rows import each
from tests.support.templates import WRONG_ARGUMENTS, applied, filled, rendered
from wire import strict_json
from wire.strict_json import MAX_DEPTH

NOON = 1_795_262_400  # 2026-11-21 12:00 UTC


def stays_visible(filters, value):
    """Whether the placeholder stays as it was written and does not count as missing."""
    template = "<{{ v | " + filters + " }}>"
    return filled(template, f'{{"v": {value}}}') == (template, ())


# Filters: the notation


@each(
    "template",
    [
        *["{{v|upcase|truncate:3}}", "{{   v   |   upcase   |   truncate:   3   }}"],
        *["{{ v\n| upcase\n| truncate: 3\n}}", "{{v |upcase| truncate:3 }}"],
    ],
)
def test_white_space_around_filters_and_arguments_is_ignored(template):
    assert rendered(template, {"v": "abcdef"}) == "AB…"


ARGUMENTS = [
    ('"n/a"', "n/a"), ("'n/a'", "n/a"), ('""', ""), ("'say \"x\"'", 'say "x"'), ('"it\'s"', "it's"),
    ('"}}"', "}}"), ('"a | upcase"', "a | upcase"), ("'\\n\\u00e9'", "\\n\\u00e9"), ('"a: b, c"', "a: b, c"),
    ('"é😀"', "é😀"), ("0", "0"), ("1795262400", "1795262400"),
]  # fmt: skip


@each("written, argument", ARGUMENTS)
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


@each("filters", WRONG_ARGUMENTS)
@each("value", ['"abcdef"', "1.25", "1795262400", '["a", {"a": 1}]'])
def test_a_filter_with_a_missing_wrong_or_surplus_argument_leaves_the_placeholder_visible(filters, value):
    assert stays_visible(filters, value)
    assert stays_visible(f"{filters} | upcase", value)


@each("filters", ["shout", "upcase | shout", "shout: 3 | upcase", "shout: 'x', 2", "UPCASE"])
def test_an_unknown_filter_leaves_the_placeholder_visible(filters):
    assert stays_visible(filters, '"text"')


NO_NUMBERS = [
    *["", " ", "abc", "1,5", "01.5", "+1.5", ".5", "1.", "1_0.5", " 1.5", "1.5 ", "1.5\\n", "NaN", "Infinity"],
    *["-Infinity", "nan", "inf", "0x1p3", "1e", "--1", "-", "1.5.5", "١.٥", "１.５", "²", "1e5x", "true", "null"],
]
NO_TIMES = [
    *["", "soon", "2026-13-01", "2026-02-30T00:00:00Z", "2026-11-21T25:00:00Z", "21.11.2026", "²"],
    *["2026-11-21T12:00:00+99:00", "2026-11-21T12:00:00 Europe/Berlin", "now", "T", "Z", "-", "9" * 30, "9" * 5_000],
    f"2026-11-21T12:00:00.{'1' * 60}Z",  # longer than any that is read
]
NO_MOMENTS = ["1e300", "-1e300", "9" * 100, "-" + "9" * 100, "1e17"]  # beyond any calendar
CANNOT_TAKE = {
    "join": ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    'join: ","': ['"text"', "1", "true", "null", "{}", '""'],
    'map: "a"': ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    'where: "a", 1': ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    "first": ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    "last": ['"text"', "1", "true", "null", "{}", '{"a": 1}', '""'],
    "size": ["1", "0", "1.5", "true", "false", "null"],
    "round": ["true", "false", "null", "[]", "[1]", "{}", *(f'"{text}"' for text in NO_NUMBERS)],
    "round: 1": ["true", "null", "[1.25]", '{"a": 1}', '"1.25 GB"'],
    'date: "%H"': ["true", "null", "[]", f"[{NOON}]", "{}", *NO_MOMENTS, *(f'"{text}"' for text in NO_TIMES)],
    'parse_json: "a"': ["1", "1.5", "true", "null", "{}", '{"a": 1}', "[1]"],
}


@each("filters, value", [(filters, value) for filters, values in CANNOT_TAKE.items() for value in values])
def test_a_filter_on_a_value_that_it_cannot_take_leaves_the_placeholder_visible(filters, value):
    assert stays_visible(filters, value)
    assert stays_visible(f'{filters} | default: "x"', value)


def test_a_placeholder_that_stays_visible_does_not_touch_its_neighbours():
    assert rendered("{{ a }}{{ a | first }}{{ a | shout }}{{ a }}", {"a": 1}) == "1{{ a | first }}{{ a | shout }}1"


# Filters, one by one


KEPT = ["0", "0.0", "-0", "true", "[null]", '{"a":null}', "[[]]", '" "', '"0"', '"false"', '"null"', '"\ufffd"']
EMPTY = ["null", "false", '""', "[]", "{}"]


@each("value, text", [*((value, value.strip('"')) for value in KEPT), *((value, "n/a") for value in EMPTY)])
def test_default_takes_the_place_of_null_false_and_what_is_empty_alone(value, text):
    assert applied('default: "n/a"', value) == text


@each(
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


@each(
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


@each("path, text", [("b", "B"), ("zero", "0"), ("list", "[0]"), ("quoted", "{{ b }}")])
def test_default_does_not_read_its_path_if_the_value_is_present(path, text):
    payload = {"b": "B", "zero": 0, "list": [0], "quoted": "{{ b }}"}
    assert filled("{{ " + path + ' | default: other | default: "n/a" }}', payload) == (text, ())


@each("filters", ["default: b", 'default: "x" | default: b', "default: b | upcase", "default: v", "default: b, v"])
@each("value", ['"text"', '""', "null"])
def test_a_default_that_ends_with_a_path_leaves_the_placeholder_visible(filters, value):
    assert stays_visible(filters, value)


@each("filters", ["upcase: v", "join: v", "truncate: v", "map: v", "default: a,, b", "default: a:b", "where: v, v"])
def test_only_default_takes_a_path(filters):
    assert stays_visible(f'{filters} | default: "x"', '["a"]')


def test_a_default_of_many_paths_is_bounded():
    payload = {f"k{number}": None for number in range(300)} | {"end": "found"}
    chain = "".join(f" | default: k{number}" for number in range(300))
    assert rendered("{{ nope" + chain + ' | default: end | default: "n/a" }}', payload) == "found"
    long = "x." * 400
    template = "{{ nope" + f" | default: {long}y" * 10 + ' | default: "" }}'
    assert rendered(template, {"x": {"y": 1}}) in ("", template)


@each("filters", [f"map: '{'x|' * 300}'", "tidy" + " | tidy" * 50])
def test_paths_that_no_item_has_and_lines_of_a_text_cost_work(filters):
    template = f"{{{{ a | {filters} | size }}}}"
    assert filled(template, {"a": [1] * 900 if "map" in filters else "x\n" * 5_000}) == (template, ())


def sha(text):
    """The hash of a value that is shown as this text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


NOONS = [
    *["1795262400", "1795262400000", "1795262400.9", "1.7952624e9", '"1795262400"', '"1795262400000"'],
    *['"2026-11-21T12:00:00Z"', '"2026-11-21T14:30:00+02:30"', '"2026-11-21T12:00:00.123456789Z"'],
    *['"2026-11-21T12:00:00"', '"2026-11-21T12:00"'],
]
PAIRS = "failure=failed, timed_out = timed out, success=, https://*/pull=request, *ed=done, x=a=b, *#*=part, [?]=mark"
TRANSLATE = f'translate: "{PAIRS}"'
ALARM = json.dumps(
    '{"AlarmName": "CPU", "Trigger": {"Dimensions": [{"name": "Id", "value": "i-1"}]}, "a.b": 9.9, "none": null}'
)
ITEMS = '[{"a": 1, "b": 2}, {"a": "", "b": 2, "c": null}, {"b": 3, "c": 3}]'
EXAMPLES = {  # by the filters: pairs of a value and the text that it becomes
    "upcase": [('"straße é日😀"', "STRASSE É日😀"), ("null", ""), ("true", "TRUE"), ("1.50", "1.50"), ("1e5", "1E5"),
               ('{"aB": null}', '{"AB":NULL}')],
    "downcase": [('"hELLO Ж"', "hello ж"), ("1E5", "1e5"), ('["a", "B"]', '["a","b"]')],
    "capitalize": [('"hELLO wORLD"', "Hello world"), ('"éCOLE"', "École"), ('""', ""), ("false", "False"),
                   ("9.90", "9.90")],
    "truncate: 6": [('"abcdef"', "abcdef"), ('"abcdefg"', "abcde…"), ("12345.60", "12345…"), ("[1, 2, 3]", "[1,2,…")],
    "truncate: 1": [('"ab"', "…"), ('"a"', "a"), ('""', ""), ("null", "")],
    "truncate: 2": [('"😀😀😀"', "😀…"), ("true", "t…")],
    "truncate: 1000000": [('"abc"', "abc")],
    'join: ", "': [('["a", "b", "c"]', "a, b, c"), ('["a"]', "a"), ("[]", ""), ('[{"a": 1}, {}]', '{"a":1}, {}'),
                   ('[1.50, true, null, "x"]', "1.50, true, , x")],
    "join": [('["a", "b"]', "a b")],
    'join: ""': [('["a", "b"]', "ab")],
    "join: '}} | {'": [('["a", "b"]', "a}} | {b")],
    "first": [('["a", "b", "c"]', "a"), ("[9.90]", "9.90"), ("[null, [1, 2]]", ""), ('[{"a": 1}, false]', '{"a":1}')],
    "last": [('["a", "b", "c"]', "c"), ("[null, [1, 2]]", "[1,2]"), ('[{"a": 1}, false]', "false")],
    "size": [('""', "0"), ('"é😀漢"', "3"), ("[]", "0"), ("[[1, 2], null]", "2"), ("{}", "0"),
             ('{"a": 1, "b": {"c": 2}}', "2"), ('"' + "x" * 9_999 + '"', "9999")],
    'map: "n"': [('[{"n": 1.50}, {"n": "b"}, {"n": null}]', '[1.50,"b",null]'), ('[{"n": null}]', "[null]"),
                 ('[{"n": 1}, {}, 5, "n", null, []]', "[1,null,null,null,null,null]"), ("[]", "[]")],
    'map: "a.b"': [('[{"a": {"b": 1}}, {"a.b": 2, "a": {"b": 3}}]', "[1,2]")],
    'map: "1"': [("[[1, 2], [3], []]", "[2,null,null]")],
    'map: "a.0.b"': [('[{"a": [{"b": 7}]}]', "[7]")],
    'replace: "critical", "high"': [('"non-critical, critical"', "non-high, high")],
    'replace: ".", ""': [('"a.b"', "ab")],
    "replace: 1, 2": [("15", "25")],
    'replace: "true", "high"': [("true", "high")],
    'replace: "x", "{{ v }}"': [('"x"', "{{ v }}")],
    'replace: "x"': [('"x"', '{{ v | replace: "x" }}')],
    'replace: "", "y"': [('"x"', '{{ v | replace: "", "y" }}')],
    "hash": [('"web-1"', sha("web-1")), ('"é😀"', sha("é😀")), ("9.90", sha("9.90")), ("true", sha("true")),
             ('{"a": [1, null]}', sha('{"a":[1,null]}')), ('""', ""), ("null", "")],
    # half away from zero, on the decimal digits; integers and what has no more decimals stay
    "round": [("2.5", "3"), ("2.4", "2"), ("12.51", "13"), ('"0.5"', "1"), ("-0.51", "-1")],
    "round: 0": [("2.5", "3"), ("-2.5", "-3"), ("1.25e1", "13"), ("-0.2", "0"), ('"1.25e1"', "13"), ("7", "7"),
                 ("9" * 100, "9" * 100), ("0", "0"), ("1e5", "1e5")],
    "round: 1": [("9.99", "10.0"), ("9" * 50 + ".95", "1" + "0" * 50 + ".0"), ("-12", "-12"), ("1.0", "1.0"),
                 ("0.5", "0.5"), ('"7"', "7")],
    "round: 2": [("2.675", "2.68"), ('"2.675"', "2.68"), ("1.004" + "9" * 37, "1.00"), ("1.25e-1", "0.13"),
                 ("7", "7"), ("1e-400", "0.00"), ("9.90", "9.90"), ('"9.90"', "9.90"), ("1e300", "1e300")],
    "round: 20": [("0.1234567890123456789012345", "0.12345678901234567890"), ("9.90", "9.90")],
    'date: "%Y-%m-%d %H:%M:%S"': [("0", "1970-01-01 00:00:00"), ('"2026-11-21"', "2026-11-21 00:00:00"),
                                  ('"20261121"', "2026-11-21 00:00:00"),
                                  ("99999999999", "5138-11-16 09:46:39"), ("100000000000", "1973-03-03 09:46:40"),
                                  *((value, "2026-11-21 12:00:00") for value in NOONS)],
    **{f"date: '{form}'": [(f"{NOON}", text)] for form, text in (
        ("%A, %d %B %Y", "Saturday, 21 November 2026"), ("%H Uhr – %%", "12 Uhr – %"), ("um", "um"),
        ("%H}}%M|", "12}}00|"), ("%I:%M %p", "12:00 PM"), ("😀 %j", "😀 325"), ("%Y" * 50, "2026" * 50),
    )},
    # the objects of an array whose path shows that value
    'where: "s", "on"': [('[{"s": "on", "n": 1}, {"s": "off"}, {"s": "on"}]', '[{"s":"on","n":1},{"s":"on"}]')],
    "where: 's' ,'firing'": [('[{"s": "firing"}]', '[{"s":"firing"}]')],
    'where: "s", "firing"': [('[{"s": "Firing"}, {"s": "firing "}, {"s": "fir"}, {"s": ["firing"]}]', "[]"),
                             ("[]", "[]")],
    'where: "a.b", "x"': [('[{"a": {"b": "x"}}, {"a": {"b": "y"}}, {"a": "x"}]', '[{"a":{"b":"x"}}]'),
                          ('[{"a.b": "x", "a": {"b": "y"}}]', '[{"a.b":"x","a":{"b":"y"}}]')],
    'where: "a.0.b", 7': [('[{"a": [{"b": 7}]}, {"a": []}]', '[{"a":[{"b":7}]}]')],
    'where: "n", 500': [('[{"n": 500}, {"n": "500"}, {"n": 500.0}, {"n": 5e2}]', '[{"n":500},{"n":"500"}]')],
    'where: "n", "9.90"': [('[{"n": 9.90}, {"n": 9.9}, {"n": "9.90"}]', '[{"n":9.90},{"n":"9.90"}]')],
    'where: "b", "true"': [('[{"b": true}, {"b": "true"}, {"b": 1}, {"b": false}]', '[{"b":true},{"b":"true"}]')],
    'where: "b", "false"': [('[{"b": false}, {"b": null}, {"b": 0}]', '[{"b":false}]')],
    'where: "s", ""': [('[{"s": ""}, {"s": null}, {}, {"s": " "}, {"s": []}, {"s": {}}]',
                        '[{"s":""},{"s":null},{}]')],
    'where: "s", "x"': [('["s", 1, null, true, [{"s": "x"}], ["x"], {"s": "x"}]', '[{"s":"x"}]')],
    'where: "0", "x"': [('[["x"]]', "[]")],
    'where: "o", \'{"a":1}\'': [('[{"o": {"a": 1}}, {"o": "{\\"a\\":1}"}]', '[{"o":"{\\"a\\":1}"}]')],
    'where: "a b-c", "é😀"': [('[{"a b-c": "é😀"}]', '[{"a b-c":"é😀"}]')],
    'where: "s", "a, b"': [('[{"s": "a, b"}]', '[{"s":"a, b"}]')],
    # the first word of the table whose key fits the whole value as it is shown; an asterisk fits anything but nothing
    TRANSLATE: [('"failure"', "failed"), ('"startup_failure"', "startup_failure"), ('"Failure"', "Failure"),
                ('"timed_out"', "timed out"), ('"success"', ""), ('"https://git/pull"', "request"),
                ('"https:/pull"', "https:/pull"), ('"completed"', "done"), ('"ed"', "done"), ('"x"', "a=b"),
                ('"#"', "part"), ('"page#line\\n2"', "part"), ('"[?]"', "mark"), ('"?"', "?"), ('""', ""),
                ("null", ""), ("[1,2]", "[1,2]")],
    'translate: "0=down, 1=up, true=yes, false=no, *=other"': [
        ("0", "down"), ("1", "up"), ("true", "yes"), ("false", "no"), ("12", "other"), ("null", ""),
    ],
    # a text beside what is not blank
    'prepend: "on "': [('"x"', "on x"), ('""', ""), ("null", ""), ('" "', ""), ("0", "on 0"), ("[]", "on []")],
    'append: "!"': [('"x"', "x!"), ('""', ""), ("null", ""), ('" "', ""), ("0", "0!"), ("[]", "[]!")],
    # the first of several paths that has a value; a later one may say null, where none has
    **{f'map: "{paths}" | join': [(ITEMS, text)] for paths, text in (
        ("a | b | c", "1 2 3"), ("a|c", "1  3"), ("nope | b", "2 2 3"), ("a.x | c", "  3"),
    )},
    # a text becomes the JSON that it holds
    "parse_json: 'AlarmName'": [(ALARM, "CPU")],
    'parse_json: "AlarmName" | downcase': [(ALARM, "cpu")],
    "parse_json | size": [(ALARM, "4")],
    "parse_json: 'Trigger.Dimensions.0.value'": [(ALARM, "i-1")],
    "parse_json: 'Trigger.Dimensions' | map: 'value' | join: ','": [(ALARM, "i-1")],
    "parse_json: 'Trigger.Dimensions.0'": [(ALARM, '{"name":"Id","value":"i-1"}')],
    "parse_json: 'none'": [(ALARM, "")],
    "parse_json: 'none' | default: 'x'": [(ALARM, "x")],
    "parse_json: 'a.b'": [(json.dumps('{"a.b": 9.90}'), "9.90")],
    "parse_json": [(json.dumps("[-0, 1E+2, 9.90]"), "[-0,1E+2,9.90]"), (json.dumps('"text"'), "text"),
                   (json.dumps(" true "), "true")],
    "parse_json: 'a'": [(json.dumps('{"a": "\\u0000\\ud800"}'), "\ufffd\ufffd"),
                        (json.dumps('{"a": "{{ v }}"}'), "{{ v }}")],
    "parse_json: 'a' | parse_json: 'b'": [(json.dumps('{"a": "{\\"b\\": 1}"}'), "1")],
    "parse_json | parse_json: 'b'": [(json.dumps('"{\\"b\\": 1}"'), "1")],
    "tidy": [('" a \\r\\n\\r\\n  b\\n"', "a\n  b"), ('"\\n \\n"', ""), ('"a"', "a"), ('"\\u2028a\\t"', "a")],
}  # fmt: skip


@each("filters, value, text", [(filters, *pair) for filters, pairs in EXAMPLES.items() for pair in pairs])
def test_a_filter_makes_this_text_of_a_value(filters, value, text):
    assert applied(filters, value) == text


LACKING = ['[{"a": 1}]', "[1, 2]", '["n"]', "[null]", '[{"N": 1}, {"n.": 1}]', "[[]]"]


@each("value, filters", [("[]", "first"), ("[]", "last"), *((value, 'map: "n" | join') for value in LACKING)])
def test_an_end_of_an_empty_array_and_what_no_element_has_are_like_a_missing_variable(value, filters):
    template = "{{ v | " + filters + " | upcase }}"
    assert filled(template, f'{{"v": {value}}}') == (template, ("v",))
    assert applied(f'{filters} | upcase | default: "none"', value) == "none"


def test_hash_tells_long_texts_apart_that_begin_alike():
    first, second = (applied("hash", json.dumps("x" * 400_000 + end)) for end in "ab")
    assert first != second and len(first) == len(second) == 16


def test_a_hash_of_too_long_a_text_leaves_the_placeholder_visible():
    assert applied("hash", json.dumps(["x" * 10_000])) == "{{ v | hash }}"
    assert filled("{{ v | hash }}{{ v | hash }}", {"v": "x" * 700_000}).text.endswith("{{ v | hash }}")


def test_a_filter_looks_at_the_first_10000_characters_of_a_text():
    value = '"' + "a" * 10_000 + "b" * 10_000 + '"'
    assert applied("upcase | size", value) == "10000"
    assert applied("downcase | truncate: 5", value) == "aaaa…"
    assert applied("upcase", value, limit=10_000) in ("A" * 10_000, "A" * 9_999 + "…")


HUGE = [f'"1.5e{exponent}"' for exponent in ("999999999", "-999999999", "9" * 20, f"-{'9' * 20}")]
LONG = ["1e-999999999", "0." + "1" * 5_000, "0." + "1" * 100_000, '"0.' + "1" * 5_000 + '"']


@each("value", HUGE + LONG)
def test_round_never_fails_on_a_huge_exponent_or_very_many_digits(value):
    assert applied("round: 2", value) in (value.strip('"'), "{{ v | round: 2 }}", "0.11", "0", "0.00")


@each(
    "value, zone, text",
    [
        (f"{NOON}", "Europe/Berlin", "21 13:00 +0100 1795262400 %s"),
        ('"2026-11-21T12:00:00Z"', "Europe/Berlin", "21 13:00 +0100 1795262400 %s"),
        ('"2026-07-01T12:00:00+09:00"', "Europe/Berlin", "01 05:00 +0200 1782874800 %s"),
        ('"2026-07-01T12:00:00"', "America/New_York", "01 12:00 -0400 1782921600 %s"),
    ],
)
def test_date_shows_the_accounts_local_time_and_honours_an_offset(value, zone, text):
    assert applied('date: "%d %H:%M %z %s %%s"', value, zone=zone) == text


def test_a_date_is_in_utc_unless_told_otherwise():
    payload = strict_json.parse_event(b'{"v": 1795262400}')
    assert message_templates.fill('{{ v | date: "%H %Z" }}', payload, 100).text == "12 UTC"


def test_replace_makes_no_text_that_costs_more_than_the_template_may():
    filters = f'replace: "x", "{"y" * 900}"'
    assert applied(filters, json.dumps("x" * 10_000)) == f"{{{{ v | {filters} }}}}"


@each("table", ['""', '"a"', '"a=b,"', '"=b"', "5", '"a=b", "c"'])
def test_a_table_of_translate_that_is_no_table_stays_visible(table):
    assert applied(f"translate: {table}", '"a"') == f"{{{{ v | translate: {table} }}}}"


def test_what_is_missing_stays_visible_behind_prepend_and_translate_until_a_default():
    visible = "{{ nope | prepend: 'a' }}{{ nope | translate: 'a=b' }}"
    silent = "{{ nope | prepend: 'a' | default: '' }}{{ nope | translate: 'a=b' | default: '' }}"
    assert message_templates.fill(visible + silent, {}, 100).text == visible


@each(
    "alternatives, text",
    [
        ('b, c, "x"', "see"), ("b,c , 'x'", "see"), ('b, d e, "x"', "dee"), ('b, "x"', "x"), ('b, 1.y, "x"', "one"),
        ('b, 5', "5"), ('b, "x, y | z"', "x, y | z"), ('b, "x" | upcase', "X"), ('b, c | default: "x"', "see"),
        ("b, c", None), ('"x", c', None), ('b,, "x"', None), ('b, "x" y', None), ('b, "x', None),
        ('b, {c}, "x"', None),
    ],
)  # fmt: skip
def test_default_takes_the_first_of_its_alternatives_that_has_a_value(alternatives, text):
    template = "{{ a | default: " + alternatives + " }}"
    filled = message_templates.fill(template, {"b": "", "c": "see", "d e": "dee", "1": {"y": "one"}}, 100)
    assert filled.text == (template if text is None else text)


# Filters: `parse_json`, JSON in a text of the payload, as AWS SNS sends it


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
