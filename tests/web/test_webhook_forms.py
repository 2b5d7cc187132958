"""Forms, multipart forms and queries that an alert's address takes as events, and their bounds."""

import json
from urllib.parse import quote, urlencode

import pytest

from tests.support.answers import AT, FORM, refusal
from tests.support.rows import each
from tests.support.service import last
from tests.support.times import at_little_cost
from tests.support.webhooks import ask
from web import multipart

MULTIPART = {"Content-Type": "multipart/form-data; boundary=x"}


def parts(*fields, file=b"\xff\xd8\0 a picture"):
    """A multipart form with these fields and a file."""
    texts = [f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    picture = b'--x\r\nContent-Disposition: form-data; name="thumb"; filename="a.jpg"\r\n\r\n' + file + b"\r\n"
    return "".join(texts).encode() + picture + b"--x--\r\n"


@pytest.fixture
def shown(service, owner):
    """Posts an event and returns its fields `title`, `message` and `payload` as a template sees them."""
    fields = ("title", "message", "payload")
    template = "|".join(f'{{{{ {name} | default: "-" }}}}' for name in fields)
    hook = service.alert("--title", "t", "--body", template)

    def send(data, headers=FORM, query="", method="POST"):
        assert ask(service, hook.code + query, method=method, data=data, headers=headers).status_code == 200
        return last(owner)[1]

    return send


@each(
    "data, fields",
    [
        (b"title=t&message=m", "t|m|-"),
        (b"title=Disk full&message=98 %", "Disk full|98 %|-"),
        ("title=größe&message=%C3%BC+%F0%9F%94%94".encode(), "größe|ü 🔔|-"),
        (b"message=a%00b%FF&title=", "-|a\ufffdb\ufffd|-"),
        (b"title=a&title=b", "b|-|-"),
        (b"Payload=%7B%7D&message=m", "-|m|-"),
        (b"payload=x&message=m", "-|m|x"),
        (b"payload=%5B1%5D", "-|-|[1]"),
        (b"payload=null&message=m", "-|m|null"),
        (b"=x&message=m", "-|m|-"),
    ],
)
def test_a_forms_fields_are_an_object(shown, data, fields):
    assert shown(data) == fields


@each("before, after", [("", ""), ("token=x&", ""), ("", "&channel=y"), ("a&", "")])
def test_the_field_payload_of_a_form_is_the_event_if_it_holds_an_object(shown, before, after):
    payload = json.dumps({"title": "é + & = %41 漢", "message": "two\nlines\u0000"})
    assert shown(before + urlencode({"payload": payload}) + after) == "é + & = %41 漢|two\nlines\ufffd|-"


def test_a_field_payload_that_is_broken_json_is_told_where(owner, hook):
    for data, headers in ((b"payload=%7B%22a%22:%20%7D", FORM), (parts(("payload", '{"a": }')), MULTIPART)):
        told = refusal(hook.post(data=data, headers=headers))
        assert AT.search(told).groups() == ("1", "7") and "payload" in told
    assert owner.listed() == []


@each("data", ["words", "disk full", "load is = 4.5", "see https://nas.example/?disk=1", "R&D", "a:b=c", "100 %"])
def test_a_form_that_is_a_bare_key_or_a_sentence_is_a_text(owner, hook, data):
    assert hook.post(data=data, headers={**FORM, "Title": "nas"}).status_code == 200
    assert last(owner) == ("nas", data)


def test_the_texts_of_a_multipart_form_are_the_event_and_files_that_are_no_pictures_are_passed_over(shown):
    assert shown(parts(("title", "größe\0"), ("message", "a"), ("message", "b")), MULTIPART) == "größe\ufffd|b|-"
    payload = json.dumps({"title": "t", "message": "m"})
    assert shown(parts(("other", "x"), ("payload", payload)), MULTIPART) == "t|m|-"
    assert shown(parts(("payload_json", payload)), MULTIPART) == "t|m|-"
    assert shown(parts(("data", payload)), MULTIPART) == "t|m|-"  # Uptime Kuma's
    assert shown(parts(("data", payload), ("title", "other")), MULTIPART) == "other|-|-"
    assert shown(parts(), MULTIPART, "?title=t") == "t|-|-"
    large = parts(("title", "t"), file=b"\r\n--y" * 100_000)
    assert shown(large, MULTIPART) == "t|-|-"


@each(
    "kind, data",
    [
        ("multipart/form-data", parts(("title", "t"))),
        ("multipart/form-data; boundary=é", parts(("title", "t"))),
        ("multipart/form-data; boundary=y", parts(("title", "t"))),
        ("multipart/form-data; boundary=x", parts(("title", "t"))[:-9]),
        ("multipart/form-data; boundary=x", parts()),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n\r\n--x--"),
        ("multipart/mixed; boundary=x", parts(("title", "t"))),
    ],
)
def test_a_multipart_form_that_is_broken_or_holds_no_text_is_refused(owner, hook, kind, data):
    refusal(hook.post(data=data, headers={"Content-Type": kind}))
    assert owner.listed() == []


@each("method", ["GET", "POST", "PUT"])
@each("headers", [{}, FORM, {"Content-Type": "application/json"}])
def test_with_an_empty_body_the_querys_fields_are_the_event(shown, method, headers):
    assert shown(b"", headers, "?title=t&message=%C3%BC+1", method) == "t|ü 1|-"
    payload = quote(json.dumps({"title": "t", "message": "m"}))
    assert shown(b" \n", headers, f"?payload={payload}", method) == "t|m|-"
    assert shown(b"title=t", FORM, "?title=u&message=u", method) == "t|-|-"


def test_more_than_1000_fields_are_refused(hook, monkeypatch):
    assert multipart.MAX_FIELDS == 1_000
    monkeypatch.setattr(multipart, "MAX_FIELDS", 100)
    for most, status in ((100, 200), (101, 400)):
        pairs = [(f"field{number}", "x") for number in range(most)]
        assert hook.post(data=urlencode(pairs), headers=FORM).status_code == status
        assert hook.post(data=parts(*pairs[:-1]), headers=MULTIPART).status_code == status
        assert ask(hook.service, f"{hook.code}?{urlencode(pairs)}", data=b"").status_code == status


def test_more_than_131_072_bytes_of_names_and_headers_are_refused(hook):
    assert hook.post(data=parts(("x" * 130_000, "y")), headers=MULTIPART).status_code == 200
    refused = hook.post(data=parts(("x" * 70_000, "y"), ("z" * 70_000, "y")), headers=MULTIPART)
    assert refusal(refused) == "The names and headers in the multipart form have more than 131,072 bytes."


HOSTILE = {
    "fields": (FORM, b"a=1&" * 250_000),
    "separators": (FORM, b"a=" + b"&" * 1_000_000),
    "escapes": (FORM, b"a=" + b"%ff" * 330_000),
    "boundaries": (MULTIPART, b"--x\r\n" * 200_000),
    "boundaries without an end": (MULTIPART, b"\r\n--x" * 200_000),
    "line ends": (MULTIPART, b"--x\r\n" + b"\r\n" * 490_000),
    "parts": (MULTIPART, b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 19_000),
    "files": (MULTIPART, b'--x\r\nContent-Disposition: form-data; name=a; filename="b"\r\n\r\n1\r\n' * 15_000),
    "a long name": (MULTIPART, b'--x\r\nContent-Disposition: form-data; name="' + b'\\"' * 490_000 + b'"\r\n\r\n1'),
    "long names": (
        MULTIPART,
        b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n1\r\n' % (b'\\"' * 900) * 490,
    ),
    "beginnings of names": (MULTIPART, (b"content-disposition:" * 99 + b"\n") * 490),
    "headers": (MULTIPART, b"--x\r\n" + b"a: b\r\n" * 160_000),
    "carriage returns": (MULTIPART, b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n" + b"\r" * 900_000),
}


@each("name", HOSTILE)
def test_a_hostile_form_of_a_megabyte_costs_little(hook, name):
    headers, form = HOSTILE[name]
    with at_little_cost(1.0):
        assert hook.post(data=form, headers=headers).status_code in (200, 400)
