"""Pictures: in a form that sends a notification, at ntfy's and Gotify's addresses, and at their own address."""

from io import BytesIO

from werkzeug.datastructures import MultiDict

from core import derived_tokens, pictures
from process.clock import DAY_MS
from store import database
from tests.support import picture_files as files
from tests.support.alarms import detail
from tests.support.ntfy_app import add_phone
from tests.support.ntfy_publishing import LINK, assert_stored, publish
from tests.support.picture_files import ELSEWHERE, jpeg_of
from tests.support.rows import each
from web import request_body
from wire.picture_formats import MAX_PICTURE_BYTES, cut_picture

PNG, WITH_WORDS = files.png(), files.png_with_words()
LARGEST = jpeg_of(MAX_PICTURE_BYTES)
PAGE = b"<html><script>alert(1)</script>"


def send(caller, picture=PNG, name="cam.png", headers=None, **fields):
    parts = {"title": "Door", "body": "motion", **fields}
    if picture is not None:
        parts["image"] = (BytesIO(picture), name)
    return caller.request("POST", "/api/v1/notifications/send", data=parts, headers=headers)


def sent(caller, *args, **more):
    answer = send(caller, *args, **more)
    assert answer.status_code == 200, answer.data
    return answer.json["notification"]


def shown(caller, address):
    return caller.service.client.get(address)


def assert_refused(answer, status, sentence):
    expected = {"ok": False, "error": sentence, "code": "VALIDATION_ERROR", "statusCode": status}
    assert (answer.status_code, answer.json) == (status, expected)


# --- a form -------------------------------------------------------------------------------------------------


@each(
    "picture, content_type",
    [
        (files.jpeg_with_words(), "image/jpeg"),
        (files.png_with_words(), "image/png"),
        (files.gif_with_words(), "image/gif"),
        (files.webp_with_words(), "image/webp"),
    ],
)
def test_a_picture_is_served_with_its_own_type_and_without_what_it_says_about_maker_and_place(
    pro, picture, content_type
):
    address = sent(pro, picture)["image"]
    answer = shown(pro, address)
    assert (answer.status_code, answer.content_type) == (200, content_type)
    assert answer.data == cut_picture(picture).data != picture
    assert files.SECRET in picture and files.SECRET not in answer.data


def test_a_picture_can_do_nothing_in_a_browser(pro):
    answer = shown(pro, sent(pro)["image"])
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert answer.headers["Cache-Control"] == "private, max-age=2592000, immutable"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_address_is_the_same_in_the_answer_the_list_and_the_detail(pro):
    made = sent(pro)
    assert made["image"].startswith("http://localhost/i/") and len(made["image"].rpartition("/")[2]) == 22
    detail = pro.get(f"/notifications/{made['id']}").json["notification"]
    assert pro.listed()[0]["image"] == detail["image"] == made["image"]


def test_an_unknown_token_is_404_like_one_that_is_gone(pro):
    address = sent(pro)["image"]
    pro.delete(f"/notifications/{pro.listed()[0]['id']}")
    unknown = [shown(pro, path) for path in (address, f"{address}x", "/i/x", "/i/a/b", "/i/" + "A" * 22)]
    assert {(answer.status_code, answer.json["code"]) for answer in unknown} == {(404, "NOT_FOUND")}


def test_a_form_has_numbers_as_digits_and_lists_as_json(pro, moved_clock):
    later = moved_clock.ms + DAY_MS
    fields = {"priority": "4", "url": LINK, "tag": "door", "deliverAt": str(later), "expiresAt": str(later + 1)}
    made = sent(pro, **fields, actions='[{"label": "Open", "answer": "yes"}]')
    assert made["priority"] == 4 and made["deliverAt"] == later and made["expiresAt"] == later + 1
    assert (made["url"], made["tag"]) == (LINK, "door")
    assert made["actions"] == [{"label": "Open", "answer": "yes"}]
    assert sent(pro, priority="high", acknowledge='{"everyS": 30}')["acknowledge"] == {"everyS": 30, "forS": 3_600}
    assert sent(pro, acknowledge="true", url="")["priority"] == 5


NO_TIME = "deliverAt must be a whole number: a Unix time in milliseconds, from 0 to the end of the year 9999."


@each(
    "fields, sentence",
    [
        ({"priority": "9"}, "priority must be a whole number from 1 to 5, or min, low, normal, high or urgent."),
        *(({"deliverAt": sent}, NO_TIME) for sent in ("soon", "9" * 30, "٣")),
        ({"actions": "Open"}, "actions must be JSON in a form."),
        ({"actions": '[], "title": "x"'}, "actions must be JSON in a form."),
        ({"actions": "[]"}, "actions must be an array of 1 to 3 buttons."),
        ({"acknowledge": "yes"}, "acknowledge must be JSON in a form."),
        ({"body": ""}, "body is required."),
        ({"title": " "}, "title must not be blank."),
        ({"body": "a\0b"}, "The form is not valid: a field has a NUL character."),
    ],
)
def test_a_wrong_field_of_a_form_is_named_and_nothing_is_kept(pro, fields, sentence):
    assert_refused(send(pro, **fields), 400, sentence)
    assert pro.listed() == []
    assert database.run("SELECT count(*) FROM picture").fetchone()[0] == 0


@each(
    "picture",
    [b"", PAGE, b"%PDF-1.7", b"<svg xmlns='http://www.w3.org/2000/svg'/>", PNG[:-1], files.jpeg()[:-2], PNG[8:]],
)
def test_a_file_that_is_no_whole_picture_is_refused(pro, picture):
    assert_refused(send(pro, picture), 400, "image must be a whole JPEG, PNG, GIF or WebP file.")
    assert pro.listed() == []


def test_a_picture_has_at_most_2_000_000_bytes(pro):
    assert len(LARGEST) == MAX_PICTURE_BYTES
    assert shown(pro, sent(pro, LARGEST)["image"]).data == LARGEST
    assert_refused(send(pro, LARGEST + b"x"), 413, "image is larger than 2,000,000 bytes.")
    assert send(pro, LARGEST * 2).status_code == 413


def test_two_pictures_are_refused(pro):
    both = "image is there twice: a notification has one picture."
    for other in (ELSEWHERE, (BytesIO(PNG), "b.png")):
        parts = MultiDict([("title", "a"), ("body", "b"), ("image", (BytesIO(PNG), "a.png")), ("image", other)])
        assert_refused(pro.request("POST", "/api/v1/notifications/send", data=parts), 400, both)


def test_a_form_may_have_an_address_or_no_picture_and_other_files_are_passed_over(pro):
    def in_form(**fields):
        parts = {"title": "Door", "body": "motion", **fields}
        headers = {"Content-Type": "multipart/form-data"}
        answer = pro.request("POST", "/api/v1/notifications/send", data=parts, headers=headers)
        assert answer.status_code == 200, answer.data
        return answer.json

    assert in_form(image=ELSEWHERE)["notification"]["image"] == ELSEWHERE
    log = (BytesIO(b"text"), "log.txt")
    assert "image" not in in_form(log=log)["notification"]
    assert in_form(prioritiy="4")["warnings"] == ["prioritiy is not known; did you mean priority?"]


def test_the_first_picture_under_another_name_counts_unless_image_is_there(pro):
    names = ("file01", "file02", "file03")
    parts = {name: (BytesIO(data), "a") for name, data in zip(names, (b"text", WITH_WORDS, LARGEST), strict=True)}
    assert shown(pro, sent(pro, None, **parts)["image"]).data == cut_picture(WITH_WORDS).data
    beside = sent(pro, files.gif(), file01=(BytesIO(PNG), "a.png"))
    assert shown(pro, beside["image"]).data == files.gif()
    assert sent(pro, None, image=ELSEWHERE, file01=(BytesIO(PNG), "a.png"))["image"] == ELSEWHERE


def test_a_form_that_cannot_be_read_is_refused(pro):
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = pro.request("POST", "/api/v1/notifications/send", data=b"--y\r\n", headers=headers)
    assert_refused(answer, 400, "The multipart form cannot be read: its parts do not fit the boundary.")


def test_beyond_the_turns_for_large_uploads_one_is_told_to_try_again(pro, monkeypatch):
    monkeypatch.setattr(request_body, "large_uploads", request_body.upload_turns(0, 0))
    assert send(pro).status_code == 200
    answer = send(pro, LARGEST)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "10")
    assert answer.json["error"] == "Too many large files are being uploaded at once."


# --- at an alert's address ---


def event(alert, picture=PNG, name="thumb.png", more=()):
    file = (BytesIO(picture), name)
    return alert.post(data=MultiDict([("payload_json", '{"title": "Door"}'), ("files[0]", file), *more]))


def test_the_first_picture_among_an_events_files_is_kept(service, owner):
    others = [("log", (BytesIO(b"{}"), "a.txt")), ("files[1]", (BytesIO(files.gif_with_words()), "b.gif"))]
    answer = event(service.alert("--image", ELSEWHERE), WITH_WORDS, more=others)
    address = detail(owner, answer.json["notificationId"])["image"]
    assert (shown(owner, address).data, shown(owner, address).content_type) == (PNG, "image/png")


@each("picture", [PNG[:-1], b"", PAGE, jpeg_of(MAX_PICTURE_BYTES + 1)[:900_000]])
def test_an_event_with_a_file_that_is_no_whole_picture_has_its_text(service, owner, picture):
    answer = event(service.alert("--image", ELSEWHERE), picture)
    assert answer.status_code == 200
    assert detail(owner, answer.json["notificationId"])["image"] == ELSEWHERE


# --- an Idempotency-Key -------------------------------------------------------------------------------------


def test_a_replay_has_the_same_address_whatever_the_boundary_and_the_files_name(pro):
    once = {"Idempotency-Key": "once"}
    first, again = send(pro, headers=once), send(pro, name="tmp.7f3a.png", headers=once)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json == first.json
    assert database.run("SELECT count(*) FROM picture").fetchone()[0] == 1


def test_another_picture_with_the_same_key_is_another_request(pro):
    once = {"Idempotency-Key": "once"}
    sent(pro, headers=once)
    other = files.png(pixels=files.chunk(b"IDAT", b"other"))
    assert len(other) != len(PNG) or other != PNG
    assert send(pro, other, headers=once).status_code == 400
    assert pro.post("/notifications/send", {"title": "Door", "body": "motion"}, headers=once).status_code == 400


# --- an address in JSON -------------------------------------------------------------------------------------


@each(
    "image, sentence",
    [
        (ELSEWHERE, None),
        ("HTTPS://x.example/" + "a" * 1_982, None),
        ("https://x.example/" + "a" * 1_983, "image is 2001 characters long: at most 2000 are allowed."),
        ("http://x.example/cam.jpg", "image must be an address that begins with https://."),
        ("data:image/png;base64,AA", "image must be an address that begins with https://."),
        (7, "image must be a string."),
        ({"a": 1}, "image must be a string."),
    ],
)
def test_an_address_of_a_picture_is_https(pro, image, sentence):
    answer = pro.post("/notifications/send", {"title": "a", "body": "b", "image": image})
    if sentence:
        assert_refused(answer, 400, sentence)
    else:
        assert answer.json["notification"]["image"] == image == pro.listed()[0]["image"]


# --- ntfy ---------------------------------------------------------------------------------------------------


def attached(answer):
    assert answer.status_code == 200, answer.data
    return answer.json["attachment"]


def test_a_picture_that_is_put_is_kept_with_its_message(pro, moved_clock):
    answer = publish(pro, "/door", WITH_WORDS, "PUT", {"Filename": "cam.png", "Message": "motion"})
    told = attached(answer)
    assert answer.json["message"] == "motion"
    assert told == {
        "name": "cam.png",
        "type": "image/png",
        "size": len(cut_picture(WITH_WORDS).data),
        "expires": (moved_clock.ms + 30 * DAY_MS) // 1_000,
        "url": pro.listed()[0]["image"],
    }
    assert shown(pro, told["url"]).data == cut_picture(WITH_WORDS).data


@each(
    "headers, name, text",
    [
        ({}, "image.png", "You received a file: attachment.png"),
        ({"Filename": "a/b\\c d.png"}, "c d.png", "You received a file: a/b\\c d.png"),
        ({"Filename": "x" * 200, "M": "m"}, "x" * 100, "m"),
        ({"Filename": "/", "M": "m"}, "image.png", "m"),
    ],
)
def test_a_picture_has_a_name(pro, headers, name, text):
    answer = publish(pro, "/door", PNG, "PUT", headers)
    assert (attached(answer)["name"], answer.json["message"]) == (name, text)


@each(
    "body, line",
    [
        (LARGEST + b"x", "(cam.jpg, 2.0 MB, not kept)"),
        (PNG[:-1], "(cam.jpg, 1 kB, not kept)"),
        (b"\xff\xd8\xff" + b"\xff" * 200_000, "(cam.jpg, 201 kB, not kept)"),
    ],
)
def test_of_a_file_that_is_no_picture_to_keep_the_text_stays(pro, body, line):
    answer = publish(pro, "/door", body, "PUT", {"Filename": "cam.jpg", "Message": "motion"})
    assert answer.json["message"] == f"motion\n{line}"
    assert "attachment" not in answer.json and "image" not in pro.listed()[0]


def test_the_largest_picture_is_kept(pro):
    assert attached(publish(pro, "/door", LARGEST, "PUT"))["size"] == MAX_PICTURE_BYTES


@each(
    "headers, url, image, left_out",
    [
        ({"Attach": ELSEWHERE}, None, ELSEWHERE, None),
        ({"Attach": ELSEWHERE, "Click": LINK}, LINK, ELSEWHERE, None),
        ({"Attach": "http://x.example/a.jpg"}, "http://x.example/a.jpg", None, None),
        ({"Attach": "http://x.example/a.jpg", "Click": LINK}, LINK, None, "Attach"),
        ({"Attach": "ftp://x.example/a.jpg"}, None, None, "Attach"),
    ],
)
def test_an_attached_https_address_is_the_picture_and_another_one_the_link(pro, headers, url, image, left_out):
    answer = publish(pro, headers=headers)
    assert_stored(answer, url=url, image=image)
    assert answer.headers.get("X-Pocketbell-Ignored") == left_out
    assert answer.json.get("attachment") == (image and {"name": "cam.jpg", "url": image})


def test_beside_a_picture_an_attached_address_is_the_link(pro):
    assert_stored(publish(pro, "/door", PNG, "PUT", {"Attach": ELSEWHERE}), url=ELSEWHERE, image=None)
    assert "/i/" in pro.listed()[0]["image"]


def test_the_ntfy_app_gets_a_picture_as_an_attachment(pro):
    phone = add_phone(pro)
    image = sent(pro)["image"]
    pro.post("/notifications/send", {"title": "a", "body": "b", "image": ELSEWHERE})
    kept, linked = phone.messages()
    assert kept["attachment"]["url"].rpartition("/")[2] == image.rpartition("/")[2]
    assert (kept["attachment"]["type"], kept["attachment"]["name"]) == ("image/png", "cam.png")
    assert linked["attachment"] == {"name": "cam.jpg", "url": ELSEWHERE}


# --- Gotify -------------------------------------------------------------------------------------------------


@each(
    "image, kept", [(ELSEWHERE, ELSEWHERE), ("http://x.example/a.jpg", None), (7, None), ({"a": 1}, None), ("", None)]
)
def test_gotifys_big_image_is_the_picture(pro, image, kept):
    extras = {"client::notification": {"bigImageUrl": image, "click": {"url": LINK}}}
    answer = pro.request("POST", "/gotify/message", json={"message": "m", "extras": extras})
    assert_stored(answer, image=kept, url=LINK)
    told = {"bigImageUrl": kept} if kept else {}
    assert answer.json["extras"] == {"client::notification": {"click": {"url": LINK}, **told}}


@each(
    "text, image, body, kept",
    [
        (f"ana plays\n\n![Up]({ELSEWHERE})", None, "ana plays", ELSEWHERE),
        (f"![]({ELSEWHERE})", None, f"![]({ELSEWHERE})", ELSEWHERE),
        (f"a ![]({ELSEWHERE}) b", ELSEWHERE, "a  b", ELSEWHERE),
        (f"a ![]({ELSEWHERE})", LINK, f"a ![]({ELSEWHERE})", LINK),
        ("a ![](http://x.example/a.jpg)", None, "a ![](http://x.example/a.jpg)", None),
    ],
)
def test_the_first_picture_of_gotifys_markdown_is_the_picture(pro, text, image, body, kept):
    extras = {"client::display": {"contentType": "text/markdown"}, "client::notification": {"bigImageUrl": image}}
    answer = pro.request("POST", "/gotify/message", json={"message": text, "extras": extras})
    assert_stored(answer, body=body, image=kept)
    plain = {"message": f"a ![]({ELSEWHERE})", "extras": {"client::display": {"contentType": "text/plain"}}}
    assert_stored(pro.request("POST", "/gotify/message", json=plain), body=plain["message"])


# --- keys that may only send --------------------------------------------------------------------------------


def test_the_token_is_no_name_that_can_be_computed_from_the_id(pro):
    one, other = sent(pro), sent(pro)
    assert one["image"] != other["image"] and one["id"] not in one["image"]
    assert pictures.token_of(one["id"]) == one["image"].rpartition("/")[2]
    derived_tokens.configure("another secret")
    assert pictures.token_of(one["id"]) != one["image"].rpartition("/")[2]
