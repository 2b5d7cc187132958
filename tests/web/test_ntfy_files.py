"""Files that programs send to ntfy's addresses: the message stays, and says which file was not kept."""

import json

from core.turns import Turns
from tests.support.ntfy_publishing import LINK, VIEW, assert_stored, ntfy_error, publish
from tests.support.rows import each
from web import request_body
from web.request_body import MAX_UPLOAD_BYTES

PICTURE = b"\xff\xd8\xff\xe0" + bytes(83_996)
NOT_KEPT = "(cam.jpg, 84 kB, not kept)"


@each(
    "query, headers, body, text",
    [
        ("", {"Filename": "cam.jpg", "Message": "motion"}, PICTURE, f"motion\n{NOT_KEPT}"),
        ("?filename=cam.jpg&message=two%5Cnlines", {}, PICTURE, f"two\nlines\n{NOT_KEPT}"),
        ("", {"Filename": "cam.jpg"}, PICTURE, f"You received a file: cam.jpg\n{NOT_KEPT}"),
        ("?f=a%0Ab.jpg&m=x", {}, PICTURE, "x\n(a b.jpg, 84 kB, not kept)"),
        ("", {"M": "x", "Content-Type": "image/png"}, b"\x89PNG", "x\n(attachment.png, 1 kB, not kept)"),
        (
            "",
            {"M": "x", "Content-Type": "application/x-www-form-urlencoded"},
            b"\xff\0",
            "x\n(attachment, 1 kB, not kept)",
        ),
        ("", {"M": "x", "F": "log.txt"}, b"some text", "x\n(log.txt, 1 kB, not kept)"),
        ("", {"F": "log.txt"}, b"\xef\xbb\xbfsome text\n", "some text"),
        ("", {"Content-Type": "application/x-www-form-urlencoded"}, "Größe “1”".encode("cp1252"), "Größe “1”"),
        (
            "",
            {"Content-Type": "audio/mpeg"},
            b"\xff",
            "You received a file: attachment.mp3\n(attachment.mp3, 1 kB, not kept)",
        ),
        ("", {"M": "x", "F": "log.txt"}, b"", "x"),
        ("", {"M": "x", "Attach": LINK}, b"\xff\0", "x\n(attachment, 1 kB, not kept)"),
        ("", {"M": "ü" * 10_000, "F": "a" * 200}, PICTURE, f"{'ü' * 9_880}\n({'a' * 100}, 84 kB, not kept)"),
    ],
)
def test_a_file_leaves_the_message_and_a_line_that_it_was_not_kept(pro, query, headers, body, text):
    headers = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    assert_stored(publish(pro, f"/door{query}", body, "PUT", headers), body=text, title="MCP - door")


@each(
    "said, text, url, left_out",
    [
        ({"attach": "http://x.example/a.jpg", "message": "m"}, "m", "http://x.example/a.jpg", None),
        (
            {"attach": "http://x.example/b/%C3%BC%20c.jpg?d=e"},
            "You received a file: ü c.jpg",
            "http://x.example/b/%C3%BC%20c.jpg?d=e",
            None,
        ),
        ({"attach": "https://x.example/"}, "You received a file: attachment", None, None),
        ({"attach": "http://[x"}, "You received a file: attachment", None, "Attach"),
        (
            {"attach": "http://x.example/1", "filename": "cam.jpg"},
            "You received a file: cam.jpg",
            "http://x.example/1",
            None,
        ),
        ({"attach": "http://x.example/a.jpg", "click": LINK, "message": "m"}, "m", LINK, "Attach"),
        ({"attach": "file:///etc/passwd", "message": "m"}, "m", None, "Attach"),
        ({"email": "a@example.org", "message": "m"}, "m", None, "Email"),
        ({"call": "yes", "message": "m"}, "m", None, "Call"),
        ({"template": "github", "message": "m"}, "m", None, "Template"),
        ({"template": "no", "actions": [VIEW], "message": "m"}, "m", None, None),
        ({"actions": [VIEW, {"action": "http", "label": "Off", "url": LINK}], "message": "m"}, "m", None, "Actions"),
        ({"actions": [VIEW] * 4, "message": "m"}, "m", None, "Actions"),
        (
            {"actions": [{"action": "copy"}], "email": "a@b.example", "call": "1", "template": "yes", "message": "m"},
            *("m", None, "Email, Call, Template, Actions"),
        ),
    ],
)
def test_an_attached_address_is_the_link_and_dropped_files_are_named(pro, said, text, url, left_out):
    in_json = pro.request("POST", "/", json={"topic": "t", **said})
    assert_stored(in_json, body=text, url=url)
    headers = {name: value if isinstance(value, str) else json.dumps(value) for name, value in said.items()}
    in_headers = publish(pro, body=None, headers=headers)
    assert_stored(in_headers, body=text, url=url)
    assert in_json.headers.get("X-Pocketbell-Ignored") == in_headers.headers.get("X-Pocketbell-Ignored") == left_out


@each("size, words", [(1, "1 kB"), (999_001, "1000 kB"), (2_449_000, "2.4 MB"), (MAX_UPLOAD_BYTES, "15.0 MB")])
@each("is_chunked", [False, True])
def test_a_file_may_be_larger_than_other_bodies(small, size, words, is_chunked):
    headers = {"Filename": "cam.jpg", "Message": "x"} | ({"Transfer-Encoding": "chunked"} if is_chunked else {})
    answer = publish(small, "/door", b"\xff" + bytes(size - 1), headers=headers)
    assert_stored(answer, body=f"x\n(cam.jpg, {words}, not kept)")


@each("headers", [{}, {"Transfer-Encoding": "chunked"}])
def test_a_file_beyond_15_megabytes_is_a_413(small, headers):
    answer = publish(small, "/door", bytes(MAX_UPLOAD_BYTES + 1), headers=headers)
    assert (answer.status_code, answer.json) == (413, ntfy_error(41301)) and small.listed() == []


def test_a_text_beyond_other_bodies_is_cut_between_two_characters(small):
    assert_stored(publish(small, "/log", "…" * 100_000), body="…" * 10_000)


def test_json_may_not_be_larger_than_other_bodies(small):
    answer = small.request("POST", "/", json={"topic": "t", "message": "x" * 2_048})
    assert answer.json == ntfy_error(41301)


def test_a_file_that_ends_too_early_is_a_400(small):
    headers, sent = {"Authorization": f"Bearer {small.key}"}, {"CONTENT_LENGTH": "6000"}
    answer = small.service.client.put("/door", data=b"\xff" * 5_000, headers=headers, environ_overrides=sent)
    assert (answer.status_code, answer.json, small.listed()) == (400, ntfy_error(40000), [])


def test_few_large_files_come_at_once_and_small_messages_wait_for_none(small, monkeypatch):
    turns = Turns(1, {"all": 0}, 0, request_body.large_uploads.refuse)
    monkeypatch.setattr(request_body, "large_uploads", turns)
    with turns.turn("all"):
        refused = publish(small, "/door", bytes(3_000))
        assert (refused.status_code, refused.json, refused.headers["Retry-After"]) == (429, ntfy_error(42901), "10")
        assert publish(small, "/door", bytes(2_048)).status_code == 200
    assert publish(small, "/door", bytes(3_000)).status_code == 200
