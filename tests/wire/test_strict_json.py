"""What a request body may be: JSON, content type, unknown fields, 413."""

import io
import json
from unittest.mock import ANY

import pytest

from tests.support.answers import AT, refusal
from tests.support.rows import each

SEND, METRICS = "/api/v1/notifications/send", "/api/webhooks/custom"


def bodied(extra, title='"t"', body='"b"'):
    """A send request whose second line is the extra field."""
    return f'{{"title": {title}, "body": {body},\n"x": {extra}}}'


def place(answer):
    """The line and the column that a refusal names."""
    found = AT.search(refusal(answer))
    assert found, answer.json["error"]
    return int(found[1]), int(found[2])


def send(caller, data):
    return caller.request("POST", SEND, data=data if isinstance(data, bytes) else data.encode())


def nested(levels, start="[", end="]"):
    return start * levels + end * levels


# What is not JSON


def test_an_empty_body_is_called_empty(owner):
    assert refusal(send(owner, "")) == "The body is empty at line 1, column 1: it must be a JSON object."


@each(
    "value, kind",
    [("null", "null"), ("true", "a boolean"), ("1.5", "a number"), ('"{}"', "a string"), ("[{}]", "an array")],
)
def test_a_body_that_is_no_object_is_named_by_its_kind(owner, hook, value, kind):
    said = f"The body must be a JSON object, not {kind}."
    assert refusal(send(owner, value)) == said
    event = hook.post(data=value, headers={"Content-Type": "application/json"})
    assert kind == "an array" or refusal(event) == said


@each("escape, name", [(r"\u0000", "NUL character"), (r"\udc00", "lone surrogate")])
def test_unsupported_values_are_refused_by_name(owner, escape, name):
    assert f": a string with a {name} at line 2" in refusal(send(owner, bodied(f'"{escape}"')))


@each(
    "data, where",
    [
        ("{", (1, 2)),
        ("nonsense", (1, 1)),
        ('{"title": "a",\n "body": nan}', (2, 10)),
        ('{"title": "a",\n "body": }', (2, 10)),
        ("{'title': 'a'}", (1, 2)),
        ("{title: 1}", (1, 2)),
        ('{"title": "t", "body": "b"}\n{}', (2, 1)),
        ('{"title": "t", "body": "b"} x', (1, 29)),
        ('{"title" "t"}', (1, 10)),
        ('{"title": "t"\n"body": "b"}', (2, 1)),
        ("title=t&body=b", (1, 1)),
        ("<title>t</title>", (1, 1)),
        ('/* c */ {"title": "t", "body": "b"}', (1, 1)),
        ('\u00a0{"title": "t", "body": "b"}', (1, 1)),
        ('\x0c{"title": "t", "body": "b"}', (1, 1)),
        ('[NaN,"\\x"]', (1, 2)),
        ('{"title": "t",\n "body": 1e400, "x": "\\x"}', (2, 10)),
    ],
)
def test_a_body_that_is_not_json_is_refused_with_line_and_column(owner, data, where):
    assert place(send(owner, data)) == where
    assert owner.listed() == []


@each(
    "value",
    [
        *["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" + "0" * 308 + "1.0e10"],
        *["9" * 101, "-" + "9" * 101, "9" * 5_000, "9" * 100_000, '[[{"a": 1e999}]]', '[[{"a": "\\udfff"}]]'],
        *[r'"\ud800"', r'"\udc00"', r'"a\ud83d"', r'"\udc00\ud800"', r'"\ud800\u0041"', r'"\ud800\ud800\udc00"'],
        *[r'"\u0000"', r'"a\u0000b"', r'{"\ud800": 1}', r'{"\u0000": 1}', nested(70)],
    ],
)
def test_a_value_that_cannot_be_kept_is_refused_with_its_line_even_in_an_unknown_or_repeated_field(owner, value):
    for extra in (value, f'{value}, "x": 1'):
        assert place(send(owner, bodied(extra)))[0] == 2
    assert owner.listed() == []


@each("value, column", [(b"nan", 8), (b"NaN", 8), (b'"\xff"', 9)])
def test_the_column_counts_characters_and_not_bytes(owner, value, column):
    assert place(send(owner, '{"é😀": '.encode() + value + b"}")) == (1, column)


@each(
    "data",
    [
        b'{"title": "\xff", "body": "b"}',
        b'{"title": "t", "body": "b", "x": "\xc3"}',
        b'{"title": "t", "body": "b", "\xe9": 1}',
        b'{"title": "\xed\xa0\x80", "body": "b"}',  # a surrogate
        b'{"title": "\xc0\x80", "body": "b"}',  # overlong
        b'{"title": "\xf4\x90\x80\x80", "body": "b"}',  # beyond U+10FFFF
        b'{"title": "t", "body": "b"}\xff',
        '{"title": "t", "body": "b"}'.encode("utf-16"),
        '{"title": "t", "body": "b"}'.encode("utf-16-le"),
        '{"title": "t", "body": "b"}'.encode("utf-32"),
        '{"title": "é", "body": "b"}'.encode("latin-1"),
        b"\x80",
        b"\x1f\x8b\x08\x00",
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_with_line_and_column(owner, data):
    place(send(owner, data))
    assert owner.listed() == []


@each("data", [b'\xef\xbb\xbf{"title": "t", "body": "b"}', b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_not_json_and_is_called_by_its_name(owner, data):
    answer = send(owner, data)
    assert place(answer) == (1, 1) and "byte order mark" in answer.json["error"]


# Nesting


@each(
    "value",
    [
        *[nested(63), nested(63, '{"a":', "}").replace(":}", ":1}"), "[" + nested(62) + ",[]]"],
        "[" + "[]," * 10_000 + "{}]",
    ],
)
def test_64_levels_and_any_number_of_brackets_side_by_side_are_taken(owner, value):
    assert send(owner, bodied(value)).status_code == 200


@each("event", [nested(63), '{"a":' + nested(63) + "}"])
def test_64_levels_of_an_event_are_taken_with_the_object_around_its_array(hook, event):
    assert hook.post(data=event).status_code == 200


@each("levels", [64, 65, 1_000, 100_000])
@each("start, end", [("[", "]"), ('{"a":[', "]}"), ("[0,", "0]")])
def test_more_than_64_levels_are_refused(owner, levels, start, end):
    refusal(send(owner, bodied(nested(levels, start, end))))
    assert owner.listed() == []


@each("text", ["[" * 500, "{" * 500, '\\"[' * 200, "\\\\[" * 200, '\\\\\\"' + "[" * 200])
def test_brackets_within_a_string_are_no_nesting(owner, text):
    assert send(owner, bodied("1", body=f'"{text}"')).json["notification"]["body"] == json.loads(f'"{text}"')


# What is JSON, however odd


@each(
    "extra",
    [
        *["1e308", "-1.7976931348623157e308", "5e-324", "-0", "-0.0", "9" * 100, "-" + "9" * 100, "0." + "1" * 5_000],
        *["1E+2", "null", "[]", '""', r'"\u0001"', r'"\ud83d\ude00"', '"\x7f"', r'"\/"', '{"": {"": 1}}'],
    ],
)
def test_an_unknown_field_is_ignored_whatever_it_holds(owner, extra):
    sent = send(owner, bodied(extra)).json["notification"]
    assert (sent["title"], sent["body"]) == ("MCP - t", "b")


@each("fields", [{"id": "x"}, {"status": "failed"}, {"createdAt": 1}, {"account": 2}, {"ok": False}])
def test_the_fields_of_the_answer_cannot_be_set(owner, moved_clock, fields):
    sent = owner.post("/notifications/send", {"title": "t", "body": "b"} | fields).json["notification"]
    assert sent == {"id": ANY, "title": "MCP - t", "body": "b", "status": "delivered", "createdAt": moved_clock.ms}
    assert sent["id"] != "x"


@each(
    "data, title",
    [
        ('{"title": "first", "title": "last", "body": "b"}', "last"),
        ('{"title": 1, "title": null, "title": "last", "body": "b"}', "last"),
        ('{"body": "b", "title": "first", "t\\u0069tle": "last"}', "last"),
    ],
)
def test_the_last_of_duplicate_keys_wins(owner, data, title):
    assert send(owner, data).json["notification"]["title"] == f"MCP - {title}"


# Wrong types


REQUIRED = [
    ("/notifications/send", {"title": "t", "body": "b"}, "title"),
    ("/notifications/send", {"title": "t", "body": "b"}, "body"),
    ("/api-keys/generate", {"name": "n"}, "name"),
    ("/devices", {"kind": "apns", "token": "ab" * 32}, "kind"),
    ("/devices", {"kind": "apns", "token": "ab" * 32}, "token"),
]
WRONG = [1, 0, 1.5, True, False, [], ["t"], {}, {"title": "t"}]


@each(
    "path, good, field",
    [
        *REQUIRED,
        ("/devices", {"kind": "fcm", "token": "t"}, "token"),
        ("/devices", {"kind": "apns", "token": "ab" * 32}, "name"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(owner, path, good, field):
    for value in WRONG:
        refusal(owner.post(path, good | {field: value}))


@each("path, good, field", REQUIRED)
def test_a_required_field_that_is_missing_or_null_is_refused(owner, path, good, field):
    refusal(owner.post(path, {name: value for name, value in good.items() if name != field}))
    refusal(owner.post(path, good | {field: None}))


@each("name", ["Title", "TITLE", " title", "title ", "tïtle"])
def test_a_fields_name_is_exact(owner, name):
    refusal(owner.post("/notifications/send", {name: "t", "body": "b"}))


# Content type


@each(
    "content_type",
    [
        *[None, "", "text/plain", "application/xml", "application/x-www-form-urlencoded", "application/octet-stream"],
        *["multipart/form-data", "multipart/form-data; boundary=x", "application/json; charset=utf-16"],
        *["application/json; charset=latin-1", "application/json; charset=nonsense", "nonsense", ";;;"],
    ],
)
def test_the_body_is_json_in_utf_8_whatever_it_is_called(owner, content_type):
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = owner.request("POST", SEND, data=' {"title": "é", "body": "漢"}'.encode(), headers=headers)
    assert (answer.status_code, answer.json["notification"]["title"]) == (200, "MCP - é")
    refusal(owner.request("POST", SEND, data=b"title=t&body=b", headers=headers))


def test_the_query_is_not_the_body(owner):
    refusal(owner.request("POST", f"{SEND}?title=t&body=b", data=b"{}"))


# MAX_BODY_BYTES


def padded(good, size):
    data = json.dumps(good).encode()
    return data[:-1] + b" " * (size - len(data)) + b"}"


@pytest.mark.parametrize(
    "path, good",
    [
        (SEND, {"title": "t", "body": "b"}),
        (METRICS, {"projectId": "p", "metrics": [{"metricId": "m", "metricName": "M", "value": 1}]}),
        ("an alert's address", {"title": "t"}),
    ],
)
@each("chunked", [False, True])
def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_413(small, path, good, chunked):
    if not path.startswith("/"):
        path = f"/p/{small.service.alert().code}"

    def post(data):
        if not chunked:
            return small.request("POST", path, data=data)
        return small.service.client.post(
            path,
            input_stream=io.BytesIO(data),
            headers={"Authorization": f"Bearer {small.key}", "Transfer-Encoding": "chunked"},
            environ_overrides={"wsgi.input_terminated": True},
        )

    assert post(padded(good, 2_048)).status_code in (200, 201)
    for data in (padded(good, 2_049), padded(good, 300_000), b"x" * 2_049):
        answer = post(data)
        assert answer.status_code == 413 and answer.json["error"]


def test_the_limit_is_a_mebibyte_unless_told_otherwise(owner):
    good = {"title": "t", "body": "b"}
    assert send(owner, padded(good, 1_048_576)).status_code == 200
    refusal(send(owner, padded(good, 1_048_577)), 413)
