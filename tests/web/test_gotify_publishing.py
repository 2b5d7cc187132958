"""Publishing by Gotify's addresses: JSON and forms, keys, and answers in Gotify's shapes."""

from io import BytesIO
from unittest.mock import ANY

from tests.support.rows import each
from tests.support.service import last

PATH = "/gotify/message"
LINK = "https://example.org/"
ON_A_TAP = {"client::notification": {"click": {"url": LINK}}}
MULTIPART, URL_ENCODED = "multipart/form-data", "application/x-www-form-urlencoded"


def publish(caller, json=None, **more):
    return caller.service.client.post(f"{PATH}?token={caller.key}", json=json, **more)


def gotify_error(status, name, sentence=ANY):
    """The whole body of an error."""
    return {"error": name, "errorCode": status, "errorDescription": sentence}


def assert_refused(answer, sentence):
    assert (answer.status_code, answer.json) == (400, gotify_error(400, "Bad Request", sentence))


# --- what is sent -------------------------------------------------------------------------------------------


def test_json_is_stored_and_answered_as_gotify_answers(pro):
    said = {"title": "Backup", "message": "finished", "priority": 5, "extras": {**ON_A_TAP, "x::y": {"z": 1}}}
    answer = publish(pro, said)
    (kept,) = pro.listed()
    assert {**kept, "id": ANY} == {
        **{"id": ANY, "title": "MCP - Backup", "body": "finished", "status": "delivered", "createdAt": ANY},
        **{"priority": 3, "url": LINK},
    }
    assert answer.status_code == 200
    assert answer.json == {
        **{"id": int(kept["id"][:13], 16), "appid": 1, "title": "MCP - Backup", "message": "finished"},
        **{"priority": 5, "date": "2026-11-21T10:00:00.000+00:00", "extras": ON_A_TAP},
    }


@each("content_type", [URL_ENCODED, MULTIPART])
def test_a_form_says_the_same(pro, content_type):
    answer = publish(pro, data={"title": "Größe", "message": "a\nb", "priority": "8"}, content_type=content_type)
    assert answer.status_code == 200 and answer.json["priority"] == 8 and "extras" not in answer.json
    assert last(pro) == ("Größe", "a\nb") and pro.listed()[0]["priority"] == 4


def test_without_a_title_it_is_the_name_of_the_key(pro):
    for title in ({}, {"title": ""}, {"title": " "}, {"title": None}):
        assert publish(pro, {"message": "x", **title}).json["title"] == "MCP - test"


OURS = {-1: 1, 0: 1, 1: 2, 2: 2, 3: 2, 4: 3, 5: 3, 7: 3, 8: 4, 9: 4, 10: 5, 11: 5, 10**14: 5}


@each("theirs, ours", OURS.items())
def test_each_gotify_priority_maps_to_a_priority(pro, theirs, ours):
    for sent in (theirs, str(theirs)):
        assert publish(pro, {"message": "x", "priority": sent}).json["priority"] == theirs
        assert pro.listed("?limit=1")[0]["priority"] == ours


@each("sent", [{}, {"priority": None}, {"priority": ""}])
def test_without_a_priority_it_is_a_plain_notification(pro, sent):
    assert publish(pro, {"message": "x", **sent}).json["priority"] == 0
    assert "priority" not in pro.listed()[0]


def of_a_tap(url):
    return {"client::notification": {"click": {"url": url}}}


@each(
    "extras",
    [
        *(None, [], "x", {}, {"client::notification": None}, {"client::notification": {"click": [LINK]}}),
        *(
            of_a_tap(1),
            of_a_tap("ftp://example.org"),
            of_a_tap("javascript:alert(1)"),
            of_a_tap(f"{LINK}{'a' * 2_000}"),
        ),
    ],
)
def test_extras_without_a_web_address_lose_no_message(pro, extras):
    assert "extras" not in publish(pro, {"message": "x", "extras": extras}).json
    assert "url" not in pro.listed()[0]


def test_what_is_too_long_is_cut(pro):
    assert publish(pro, {"message": "ü" * 10_001, "title": "t" * 1_001}).status_code == 200
    assert last(pro) == ("t" * 1_000, "ü" * 10_000)


# --- refusals -----------------------------------------------------------------------------------------------


@each("said", [{}, {"title": "x"}, {"message": ""}, {"message": " \n"}, {"message": None}])
def test_a_message_is_required(pro, said):
    assert_refused(publish(pro, said), "message is required.")
    assert_refused(publish(pro, data={k: v for k, v in said.items() if v}, content_type=MULTIPART), ANY)


@each(
    "said",
    [
        *({"message": 1}, {"message": "x", "title": ["y"]}, {"message": "x", "priority": "high"}),
        *({"message": "x", "priority": True}, {"message": "x", "priority": 4.5}, {"message": "x", "priority": []}),
        {"message": "x", "priority": "9" * 16},
    ],
)
def test_another_type_is_refused(pro, said):
    assert_refused(publish(pro, said), ANY)
    assert pro.listed() == []


@each("data", [b"", b"{", b"[]", b"\xff", b"x=y", b'{"message": "\\ud800"}'])
def test_json_that_is_none_is_refused(pro, data):
    assert_refused(publish(pro, data=data), ANY)


@each(
    "data, content_type, status",
    [
        (b"&".join(b"f%d=1" % n for n in range(10_000)), URL_ENCODED, 400),
        (b"message=%ff%00", URL_ENCODED, 200),
        (b"message", URL_ENCODED, 400),
        (b"--x\r\n", f"{MULTIPART}; boundary=x", 400),
        (b"message=x", MULTIPART, 400),
        (b'--x\r\nContent-Disposition: form-data; name="message"\r\n\r\nx', f"{MULTIPART}; boundary=x", 400),
    ],
)
def test_a_malformed_form_causes_no_500(pro, data, content_type, status):
    assert publish(pro, data=data, content_type=content_type).status_code == status


def test_a_form_of_many_parts_or_large_ones_is_refused(pro):
    parts = publish(pro, data={f"f{n}": "x" for n in range(10_000)}, content_type=MULTIPART)
    assert parts.status_code == 413 and parts.json == gotify_error(413, "Request Entity Too Large")
    large = publish(pro, data={"message": "x" * 600_000}, content_type=MULTIPART)
    assert large.status_code == 413


@each("content_type", [None, URL_ENCODED, "application/json"])
def test_the_query_may_have_the_fields_beside_an_empty_body(pro, content_type):
    query = {"message": "finished", "title": "Backup", "priority": "8", "token": pro.key}
    answer = pro.service.client.post(PATH, query_string=query, content_type=content_type)
    assert (answer.status_code, answer.json["title"], answer.json["priority"]) == (200, "MCP - Backup", 8)


def test_a_file_beside_the_message_is_not_kept(pro):
    said = {"message": "x", "file": (BytesIO(b"\x89PNG"), "a.png")}
    assert publish(pro, data=said, content_type=MULTIPART).status_code == 200


# --- keys ---------------------------------------------------------------------------------------------------


@each(
    "sent",
    [
        lambda key: {"headers": {"X-Gotify-Key": key}},
        lambda key: {"headers": {"X-Gotify-Key": f"tk_{key}"}},
        lambda key: {"headers": {"Authorization": f"Bearer {key}"}},
        lambda key: {"query_string": {"token": key}},
        lambda key: {"query_string": {"token": "x"}, "headers": {"X-Gotify-Key": key}},
    ],
)
def test_a_key_comes_in_each_way_that_gotifys_clients_have(pro, sent):
    answer = pro.service.client.post(PATH, json={"message": "x"}, **sent(pro.key))
    assert (answer.status_code, answer.headers["X-RateLimit-Limit"]) == (200, "1000")


@each(
    "sent",
    [
        lambda key: {},
        lambda key: {"headers": {"X-Gotify-Key": key[:-1]}},
        lambda key: {"headers": {"Authorization": f"Basic {key}"}},
        lambda key: {"query_string": {"auth": key}},
        lambda key: {"data": {"token": key}},
    ],
)
def test_without_a_key_it_is_401_in_gotifys_shape(pro, sent):
    answer = pro.service.client.post(PATH, **sent(pro.key))
    assert (answer.status_code, answer.json) == (401, gotify_error(401, "Unauthorized"))


def test_an_idempotency_key_works_as_for_send(pro):
    first, second = (publish(pro, {"message": "x"}, headers={"Idempotency-Key": "a"}) for _ in range(2))
    assert first.json == second.json and second.headers["Idempotent-Replayed"] == "true"


# --- version and health -------------------------------------------------------------------------------------


def test_the_version_is_gotifys(service):
    assert service.client.get("/gotify/version").json == {"version": ANY, "commit": "pocketbell", "buildDate": ""}
