"""What holds for every provider: the text of a push, what becomes of each kind of answer, what is never shown."""

from email.utils import formatdate

import pytest

from tests.support.fcm_service import BAD_TOKEN
from tests.support.outcomes import (
    TEXTS,
    assert_retried_after,
    assert_says,
    assert_shortened,
    last_error,
    newest,
    pass_time,
    register,
    sent_status,
)
from tests.support.rows import each

KINDS = ("apns", "fcm", "webpush")
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def service(every_provider):
    """Configured for all three, in place of the one for Web Push alone: `owner` is an account of it."""
    return every_provider


@pytest.fixture
def phone_of(owner, apns, fcm, push_service, moved_clock):
    """Give the account a device of this kind, ten seconds old, in the place of the one that it had."""

    def add(kind):
        for old in owner.get("/devices").json["devices"]:
            owner.delete(f"/devices/{old['id']}")
        phone = {"apns": apns.phone, "fcm": fcm.phone, "webpush": push_service.browser}[kind]()
        if kind == "webpush":
            owner.post("/devices", {"kind": kind, "subscription": phone.subscription})
            phone.token = phone.endpoint
        else:
            register(owner, phone, kind)
        moved_clock.advance(10)
        return phone

    return add


@pytest.fixture
def phone(kind, phone_of):
    """The account's only device."""
    return phone_of(kind)


def text_of(kind, phone):
    """Title and body of the newest message."""
    newest_one = phone.messages[-1]
    alert = newest_one.body["aps"]["alert"] if kind == "apns" else newest_one["notification"]
    return alert["title"], alert["body"]


# --- what is sent -------------------------------------------------------------------------------------------


@EACH_KIND
def test_a_push_carries_the_delivered_title_and_body_and_is_noted_on_its_device(owner, kind, phone, moved_clock):
    sent = owner.send("Disk “root”", "at 98 % 😀\nnow").json["notification"]
    assert (sent["status"], newest(owner)) == ("delivered", "delivered")
    assert text_of(kind, phone) == ("MCP - Disk “root”", "at 98 % 😀\nnow")
    (device,) = owner.get("/devices").json["devices"]
    assert (device["lastDeliveredAt"], device["lastError"]) == (moved_clock.ms, None)


@EACH_KIND
def test_a_push_over_the_providers_limit_is_shortened_and_the_history_keeps_all(owner, kind, phone):
    for text in TEXTS:
        for length in (1_000, 4_000, 10_000):
            body = ("." + text * length)[:10_000]
            sent = owner.send("T", body).json["notification"]
            assert (sent["status"], sent["body"]) == ("delivered", body)
            assert_shortened(text_of(kind, phone)[1], body)


@EACH_KIND
def test_a_text_that_fits_is_sent_whole_and_a_long_title_leaves_room_for_the_body(owner, kind, phone):
    owner.send("t" * 500, "b" * 3_000)
    assert text_of(kind, phone) == ("MCP - " + "t" * 500, "b" * 3_000)
    owner.send("😀" * 1_000, "b" * 9_000)
    title, body = text_of(kind, phone)
    assert title.startswith("MCP - 😀😀😀") and title.endswith("😀…") and body.startswith("b" * 100)


@EACH_KIND
def test_a_push_carries_line_ends_as_newlines_and_no_other_control_characters(owner, kind, phone):
    sent = owner.send("a\x07b\x1b[1m", "one\r\ntwo\nthree\x7f\x85\t\x01.").json["notification"]
    assert sent["body"] == "one\r\ntwo\nthree\x7f\x85\t\x01."
    assert text_of(kind, phone) == ("MCP - ab[1m", "one\ntwo\nthree.")


# --- what an answer means -----------------------------------------------------------------------------------


DEAD = [
    *(("apns", 410, {"reason": reason}) for reason in ("Unregistered", "ExpiredToken")),
    ("fcm", 404, {"error_code": "UNREGISTERED", "message": "Requested entity was not found."}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "message": BAD_TOKEN}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "wrong": "message.token"}),
    *(("webpush", status, {}) for status in (404, 410)),
]


@each("kind, status, more", DEAD)
def test_a_dead_token_is_removed_and_the_notification_failed(
    service, owner, phone_of, moved_clock, kind, status, more
):
    phone = phone_of(kind)
    phone.then(status, **more)
    assert sent_status(owner) == "failed"
    assert owner.get("/devices").json["devices"] == []
    pass_time(service, moved_clock, 3600)
    assert (newest(owner), len(phone.pushes)) == ("failed", 1)


REFUSED = [
    *(("apns", 400, {"reason": reason}) for reason in ("BadDeviceToken", "BadExpirationDate", "PayloadEmpty")),
    *(("apns", status, {}) for status in (405, 413)),
    ("fcm", 400, {"wrong": "message.data[0].value", "message": "Invalid value at 'message.data[0].value', 7"}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "message": "Android message is too big"}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "wrong": "message.android.ttl"}),
    *(("fcm", 400, more) for more in ({"message": "Invalid JSON payload received."}, {"html": True})),
    *(("webpush", status, {}) for status in (400, 405, 413)),
]


@each("kind, status, more", REFUSED)
def test_a_push_refused_for_this_device_fails_and_the_device_stays(
    service, owner, phone_of, moved_clock, kind, status, more
):
    phone = phone_of(kind)
    phone.then(status, **more)
    assert sent_status(owner) == "failed"
    assert_says(last_error(owner), str(status), phone.token)
    assert more.get("reason", "") in last_error(owner)
    pass_time(service, moved_clock, 3600)
    assert (newest(owner), len(phone.pushes)) == ("failed", 1)


PASSING = [
    *(("apns", 429, {"reason": reason}) for reason in ("TooManyRequests", "TooManyProviderTokenUpdates")),
    *(("apns", 503, {"reason": reason}) for reason in ("ServiceUnavailable", "Shutdown")),
    *(("apns", status, {}) for status in (500, 502, 504)),
    ("apns", 400, {"reason": "IdleTimeout"}),
    *(("fcm", status, {"html": True}) for status in (500, 502, 503, 504)),
    *(("fcm", status, {}) for status in (429, 503)),
    ("fcm", 429, {"error_code": "QUOTA_EXCEEDED"}),
    *(("webpush", status, {}) for status in (429, 500, 502, 503)),
    *((kind, status, {"location": "https://localhost:1/x"}) for kind in KINDS for status in (301, 302, 307, 308)),
    # of which nothing is to be shown
    *(("apns", 503, {"reason": reason}) for reason in (7, ["Shutdown"], {"a": 1}, "x" * 5_000, "<b>no\nreason</b>")),
    *(("fcm", 503, {"message": message}) for message in ({"a": 1}, "x\ny\u2028" * 1_000)),
    ("fcm", 503, {"error_code": ["INTERNAL"], "wrong": ["message.token"]}),
    *(("webpush", 503, {"body": body}) for body in (b'{"reason": 7}', b'{"reason": "no\nreason"}', b"\xff" * 100)),
]


@each("kind, status, more", PASSING)
def test_a_passing_fault_is_pending_and_retried_after_30_seconds(
    service, owner, phone_of, moved_clock, kind, status, more
):
    phone = phone_of(kind)
    phone.then(status, **more)
    assert sent_status(owner) == "pending"
    assert_says(last_error(owner), f"answered {status}", phone.token)
    assert_retried_after(30, service, owner, phone, moved_clock)


CONFIGURATION = [
    *(("apns", 403, {"reason": reason}) for reason in ("InvalidProviderToken", "MissingProviderToken", "Forbidden")),
    *(("apns", 403, {"reason": reason}) for reason in ("BadCertificate", "BadCertificateEnvironment")),
    *(("apns", 400, {"reason": reason}) for reason in ("DeviceTokenNotForTopic", "TopicDisallowed", "MissingTopic")),
    *(("apns", 401, {"reason": "Unauthorized"}), ("apns", 400, {"reason": "BadTopic"})),
    ("apns", 404, {"reason": "BadPath"}),
    *(("fcm", 403, {"error_code": "SENDER_ID_MISMATCH"}), ("fcm", 403, {"reason": "IAM_PERMISSION_DENIED"})),
    *(("fcm", status, {"html": True}) for status in (403, 404)),
    *(("fcm", 404, {"message": "No such entity."}), ("fcm", 401, {"error_code": "THIRD_PARTY_AUTH_ERROR"})),
    *(("webpush", status, {"body": b'{"reason":"BadJwtToken"}'}) for status in (401, 403)),
]
ADVICE = {
    "apns": "Check the APNS_ settings.",
    "fcm": "Check FCM_",
    "webpush": "Check BASE_URL and the server's clock.",
}


@each("kind, status, more", CONFIGURATION)
def test_a_configuration_fault_is_pending_shown_and_retried(
    service, owner, phone_of, moved_clock, kind, status, more
):
    phone = phone_of(kind)
    phone.then(status, **more)
    assert sent_status(owner) == "pending"
    reason = "BadJwtToken" if kind == "webpush" else more.get("reason") or more.get("error_code", "")
    assert_says(last_error(owner), reason, phone.token)
    assert f"answered {status}" in last_error(owner) and ADVICE[kind] in last_error(owner)
    assert_retried_after(30, service, owner, phone, moved_clock)


@EACH_KIND
def test_a_configuration_fault_of_more_than_a_day_fails_and_costs_no_device(service, owner, phone, moved_clock):
    for _ in range(60):
        phone.then(403)
    assert sent_status(owner) == "pending"
    for _ in range(25):
        pass_time(service, moved_clock, 3600)
    assert newest(owner) == "failed"
    assert_says(last_error(owner), "403")


@EACH_KIND
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("as_date", [False, True])
def test_the_retries_honour_retry_after(service, owner, phone, moved_clock, status, as_date):
    phone.then(status, retry_after=formatdate(moved_clock.ms / 1000 + 100, usegmt=True) if as_date else "100")
    assert sent_status(owner) == "pending"
    assert_retried_after(100, service, owner, phone, moved_clock)


@EACH_KIND
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_connection_that_ends_without_an_answer_is_pending_and_the_push_not_sent_again_within_the_request(
    service, owner, phone, moved_clock, is_kept
):
    if is_kept:
        owner.send("the first of the connection")
    phone.then(0)
    before = len(phone.pushes)
    assert (sent_status(owner), len(phone.pushes) - before) == ("pending", 1)
    assert_says(last_error(owner), "could not be reached", phone.token)
    pass_time(service, moved_clock, 30)
    assert (newest(owner), len(phone.pushes) - before) == ("delivered", 2)


REPEATED = [
    *(("apns", {"reason": words}) for words in ("{}", "Bad {}", "unknown token {}")),
    *(("fcm", {name: "BAD_{}"}) for name in ("message", "error_code", "reason")),
]


@each("status", [400, 403, 503])
@each("kind, more", REPEATED)
def test_a_token_that_the_answer_repeats_is_not_shown(owner, phone_of, caplog, kind, status, more):
    phone = phone_of(kind)
    phone.then(status, **{name: words.format(phone.token) for name, words in more.items()})
    answer = owner.send()
    assert phone.token not in answer.text + owner.get("/devices").text + caplog.text


# --- without a configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["apns", "fcm"])
def test_a_phone_waits_until_its_provider_is_configured(
    make_service, push_service, apns, fcm, kind, moved_clock, request
):
    service, server = make_service(WEBPUSH_HOSTS=push_service.origin), {"apns": apns, "fcm": fcm}[kind]
    caller, phone = service.caller(service.account()), server.phone()
    register(caller, phone, kind)
    assert sent_status(caller) == "pending"
    assert_says(last_error(caller), "not configured", phone.token)
    pass_time(service, moved_clock, 30)
    assert (newest(caller), phone.pushes) == ("pending", [])
    pass_time(request.getfixturevalue("every_provider"), moved_clock, 3600)
    assert (newest(caller), len(phone.messages), last_error(caller)) == ("delivered", 1, None)
