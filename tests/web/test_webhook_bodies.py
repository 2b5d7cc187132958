"""Bodies that an alert webhook takes though they are not bare JSON, and refusals."""

import gzip
import zlib
from urllib.parse import urlencode

from tests.support.answers import AT, FORM, refusal
from tests.support.rows import each
from tests.support.service import last

BOM = b"\xef\xbb\xbf"
TEXT = {"Content-Type": "text/plain"}


def test_a_byte_order_mark_in_front_is_passed_over(owner, hook):
    form = urlencode({"payload": '{"title": "in a form"}'}).encode()
    for data, headers, title in [
        (b'{"title": "t"}', {}, "t"),
        (b' {"title": "text"}', TEXT, "text"),
        (form, FORM, "in a form"),
    ]:
        assert hook.post(data=BOM + data, headers=headers).status_code == 200
        assert last(owner)[0] == title
    hook.post(data=BOM + b"disk full", headers=TEXT)
    assert last(owner) == ("Backups", "disk full")


@each("kind", ["text/plain", "Text/Plain; charset=utf-8", "text/plain;charset=iso-8859-1"])
@each(
    "data, message",
    [
        (b"disk full", "disk full"),
        ("größer\n🔔 ".encode(), "größer\n🔔 "),
        (b"caf\xe9 \xed\xa0\x80", "caf\ufffd \ufffd\ufffd\ufffd"),
        (b"a\x00b", "a\ufffdb"),
        (b'"text"', '"text"'),
        (b"title=t&message=m", "title=t&message=m"),
        (b"<b>disk</b> is <full>", "<b>disk</b> is <full>"),
    ],
)
def test_a_text_that_is_no_json_object_is_the_message(owner, hook, kind, data, message):
    assert hook.post(data=data, headers={"Content-Type": kind}).status_code == 200
    assert last(owner) == ("Backups", message)


def test_a_json_object_sent_as_text_is_that_object(owner, hook):
    hook.post(data=b'{"title": "t", "message": "m"}', headers={**TEXT, "Title": "not this"})
    assert last(owner) == ("t", "m")


@each(
    "headers, title",
    [
        ({"Title": "Backup"}, "Backup"),
        ({"X-Title": "Backup"}, "Backup"),
        ({"X-Title": "x", "Title": "Backup"}, "Backup"),
        ({"X-Title": "Backup", "Title": ""}, "Backup"),
        ({"title": "größer 🔔".encode().decode("latin-1")}, "größer 🔔"),
        ({"Title": "caf\xe9"}, "café"),
        ({"Subject": "=?UTF-8?B?Z3LDtsOfZXIA?="}, "größer\ufffd"),
        ({"Title": ""}, "Backups"),
        ({"Subject": "Backup"}, "Backup"),
        ({"Subject": "x", "Title": "Backup"}, "Backup"),
        ({"X-Subject": "no"}, "Backups"),
    ],
)
def test_a_texts_title_is_in_the_header_title_x_title_or_subject(owner, hook, headers, title):
    assert hook.post(data=b"m", headers={**TEXT, **headers}).status_code == 200
    assert last(owner) == (title, "m")


def test_templates_are_filled_from_a_text(service, owner):
    hook = service.alert("--title", '{{ title | default: "none" }}', "--body", "{{ message | upcase }}")
    hook.post(data=b"disk full", headers={**TEXT, "Title": "nas"})
    assert last(owner) == ("nas", "DISK FULL")
    hook.post(data=b"disk full", headers=TEXT)
    assert last(owner) == ("none", "DISK FULL")


def test_a_body_of_another_type_must_be_json(owner, hook):
    for kind in ("text", "text/html", "text/plainer", "application/json", "text/markdown", "application/xml"):
        refusal(hook.post(data=b"disk full", headers={"Content-Type": kind}))
    assert owner.listed() == []


@each("data", [b"disk full", b"words", b"1", b"null", b"a = b", "größer".encode()])
def test_a_body_without_a_content_type_is_a_text(owner, hook, data):
    assert hook.post(data=data, headers={"Subject": "Snapshot"}).status_code == 200
    assert last(owner) == ("Snapshot", data.decode())


@each("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/html"])
@each("data", [b"[1", b"[disk] full", b' {"a": }', BOM + b'{"a": '])
def test_a_body_that_begins_like_json_is_json_whatever_its_type(owner, hook, kind, data):
    told = refusal(hook.post(data=data, headers={"Content-Type": kind}))
    assert AT.search(told) and owner.listed() == []


@each("kind", ["", "application/xml", "text/xml; charset=utf-8", "application/soap+xml", FORM["Content-Type"]])
def test_xml_is_refused(owner, hook, kind):
    data = b"<?xml version='1.0'?><a b='c'>d</a>\n"
    assert "XML" in refusal(hook.post(data=data, headers={"Content-Type": kind}))


def test_an_array_is_the_field_items_and_its_first_object_counts_as_the_event(service, owner, hook):
    hook.post(data=b'[1, {"title": "t", "message": "m"}, {"title": "u"}]')
    assert last(owner) == ("t", "m")
    service.alert("--title", "{{ items.1.title }}", "--body", "{{ items | size }}", name="Items").post(
        data=b'[1, {"title": "t"}, 3]'
    )
    assert last(owner) == ("t", "3")


@each("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded"])
@each(
    "coding, data",
    [
        ("gzip", gzip.compress(b'{"a": 1}', mtime=0)),
        ("GZIP ", b"anything"),
        ("x-gzip", b"anything"),
        ("deflate", zlib.compress(b'{"a": 1}')),
        ("br", b"\x8b\x03\x80"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("compress, gzip", b"anything"),
        (None, gzip.compress(b'{"a": 1}', mtime=0)),
        (None, b"\x28\xb5\x2f\xfd\x04"),
    ],
)
def test_a_compressed_body_is_told_so(owner, hook, kind, coding, data):
    encoding = {} if coding is None else {"Content-Encoding": coding}
    assert "compressed" in refusal(hook.post(data=data, headers={"Content-Type": kind, **encoding}))
    assert owner.listed() == []


def test_uncompressed_json_marked_as_compressed_is_read(owner, hook):
    for coding in ("gzip", "identity", "utf-8", "x"):
        assert hook.post(data=b'{"title": "t"}', headers={"Content-Encoding": coding}).status_code == 200
    assert "compressed" not in refusal(hook.post(data=b"{", headers={"Content-Encoding": "utf-8"}))


def test_broken_json_that_curl_calls_a_form_is_told_of_as_json(hook):
    told = refusal(hook.post(data=b' {"a": }', headers=FORM))
    assert AT.search(told).groups() == ("1", "8") and "form" not in told


def test_an_empty_body_is_refused_with_a_sentence(owner, hook):
    for headers in ({}, TEXT, FORM, {"Content-Type": "application/json"}, {"Title": "Backup"}):
        for data in (b"", b" \n", BOM):
            assert "empty" in refusal(hook.post(data=data, headers=headers))
    assert owner.listed() == []
