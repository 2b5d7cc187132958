"""What holds for every provider: the text of a push, what becomes of each kind of answer, what is never shown."""

from email.utils import formatdate

from providers.base import Outcome
from tests.support.fcm_service import BAD_TOKEN
from tests.support.outcomes import TEXTS, assert_says, assert_shortened, newest, pass_time, register, sent_status
from tests.support.rows import each
from tests.support.times import NOW
from wire.notification import Content

KINDS = ("apns", "fcm", "webpush")


def alerts(apple, android, browser):
    """Title and body as each provider gets them."""
    return [(one["title"], one["body"]) for one in (apple["aps"]["alert"], android["notification"], browser)]


def texts(phones):
    """Title and body of the newest messages."""
    return alerts(phones.to_apple[0], phones.to_android, phones.to_browser[0])


# --- what is sent -------------------------------------------------------------------------------------------


def test_a_push_carries_the_delivered_title_and_body_and_is_noted_on_its_device(phones, moved_clock):
    moved_clock.advance(10)
    phones.send("Disk “root”", "at 98 % 😀\nnow")
    assert texts(phones) == [("MCP - Disk “root”", "at 98 % 😀\nnow")] * 3 and newest(phones.caller) == "delivered"
    devices = phones.caller.get("/devices").json["devices"]
    assert [(one["lastDeliveredAt"], one["lastError"]) for one in devices] == [(moved_clock.ms, None)] * 3


@each("text", TEXTS)
@each("length", [1_000, 4_000, 10_000])
def test_a_text_over_the_providers_limit_is_shortened(phones, text, length):
    body = ("." + text * length)[:10_000]
    for _, shown in alerts(*phones.built(Content("T", body))):
        assert_shortened(shown, body)


def test_a_text_that_fits_is_sent_whole_and_a_long_title_leaves_room_for_the_body(phones):
    phones.send("t" * 500, "b" * 3_000)
    assert texts(phones) == [("MCP - " + "t" * 500, "b" * 3_000)] * 3
    sent = phones.send("😀" * 1_000, "b" * 9_000)
    for title, body in texts(phones):
        assert title.startswith("MCP - 😀😀😀") and title.endswith("😀…") and body.startswith("b" * 100)
    assert (sent["title"], sent["body"]) == ("MCP - " + "😀" * 1_000, "b" * 9_000)  # the history keeps all


def test_a_push_carries_line_ends_as_newlines_and_no_other_control_characters(phones):
    sent = phones.send("a\x07b\x1b[1m", "one\r\ntwo\nthree\x7f\x85\t\x01.")
    assert sent["body"] == "one\r\ntwo\nthree\x7f\x85\t\x01."
    assert texts(phones) == [("MCP - ab[1m", "one\ntwo\nthree.")] * 3


# --- what an answer means -----------------------------------------------------------------------------------


DEAD = [
    *(("apns", 410, {"reason": reason}) for reason in ("Unregistered", "ExpiredToken")),
    ("fcm", 404, {"error_code": "UNREGISTERED", "message": "Requested entity was not found."}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "message": BAD_TOKEN}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "wrong": "message.token"}),
    *(("webpush", status, {}) for status in (404, 410)),
]
REFUSED = [
    *(("apns", 400, {"reason": reason}) for reason in ("BadDeviceToken", "BadExpirationDate", "PayloadEmpty")),
    *(("apns", status, {}) for status in (405, 413)),
    ("fcm", 400, {"wrong": "message.data[0].value", "message": "Invalid value at 'message.data[0].value', 7"}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "message": "Android message is too big"}),
    ("fcm", 400, {"error_code": "INVALID_ARGUMENT", "wrong": "message.android.ttl"}),
    *(("fcm", 400, more) for more in ({"message": "Invalid JSON payload received."}, {"html": True})),
    *(("webpush", status, {}) for status in (400, 405, 413)),
]
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
MEANINGS = {
    Outcome.DEAD: DEAD,
    Outcome.REFUSED: REFUSED,
    Outcome.TRANSIENT: PASSING,
    Outcome.CONFIGURATION: CONFIGURATION,
}


@each("outcome, kind, status, more", [(outcome, *row) for outcome, rows in MEANINGS.items() for row in rows])
def test_what_an_answer_means(phones, outcome, kind, status, more):
    phones.of_kind[kind].then(status, **more)
    answer = phones.pushed_to(kind)
    assert (answer.outcome, answer.retry_after_s) == (outcome, None)
    assert_says(answer.error, f"answered {status}", phones.push_to(kind).token)
    word = "BadJwtToken" if "body" in more else more.get("reason") or more.get("error_code", "")
    assert outcome is Outcome.TRANSIENT or word in answer.error
    assert (ADVICE[kind] in answer.error) == (outcome is Outcome.CONFIGURATION)


DIES = {"apns": (410, "Unregistered"), "fcm": (404, "UNREGISTERED"), "webpush": (410,)}


def test_a_dead_device_is_removed_and_does_not_affect_other_kinds(phones, moved_clock):
    for place, kind in enumerate(KINDS, 1):
        phones.of_kind[kind].then(*DIES[kind])
        assert sent_status(phones.caller) == ("delivered" if place < 3 else "failed")
        assert {*phones.errors()} == {*KINDS[place:]}
        pass_time(phones.service, moved_clock, 3600)
    assert (newest(phones.caller), phones.seen(), phones.taken()) == ("failed", [1, 2, 3], [0, 1, 2])


def test_a_push_refused_for_these_devices_fails_and_the_devices_stay(phones, moved_clock):
    phones.then(413)
    assert sent_status(phones.caller) == "failed"
    assert all("answered 413" in error for error in phones.errors().values())
    pass_time(phones.service, moved_clock, 3600)
    assert (newest(phones.caller), phones.seen(), len(phones.errors())) == ("failed", [1] * 3, 3)


def assert_retried_after(seconds, phones, moved_clock, before=0):
    """The first pushes left the notification pending; second ones deliver it after this time."""
    pass_time(phones.service, moved_clock, seconds - 1)
    assert (newest(phones.caller), phones.seen()) == ("pending", [before + 1] * 3)
    pass_time(phones.service, moved_clock, 1)
    assert (newest(phones.caller), phones.seen()) == ("delivered", [before + 2] * 3)
    assert phones.errors() == dict.fromkeys(KINDS)


@each("status", [503, 403])
def test_a_passing_fault_and_one_of_the_configuration_are_pending_shown_and_retried_after_30_seconds(
    phones, moved_clock, status
):
    before = len(phones.apple.pushes)
    phones.then(status)
    assert sent_status(phones.caller) == "pending"
    assert all(f"answered {status}" in error for error in phones.errors().values())
    assert_retried_after(30, phones, moved_clock, before)


@each("kind, answer", [("apns", (403, "InvalidProviderToken")), ("fcm", (503, "UNAVAILABLE")), ("webpush", (0,))])
def test_a_failing_device_is_retried_alone(phones, moved_clock, kind, answer):
    taken, seen = phones.taken(), sum(phones.seen())
    phones.of_kind[kind].then(*answer)
    assert sent_status(phones.caller) == "delivered"
    assert [failing for failing, error in phones.errors().items() if error] == [kind]
    pass_time(phones.service, moved_clock, 30)
    assert (phones.taken(), sum(phones.seen())) == ([one + 1 for one in taken], seen + 4)


def test_a_configuration_fault_of_more_than_a_day_fails_and_costs_no_device(phones, moved_clock):
    for _ in range(3):
        phones.then(403)
    assert sent_status(phones.caller) == "pending"
    for hours, status in ((23, "pending"), (1, "failed")):
        pass_time(phones.service, moved_clock, hours * 3600)
        assert newest(phones.caller) == status
    assert all("403" in error for error in phones.errors().values()) and phones.errors().keys() == {*KINDS}


RETRY_AFTER = [
    *(("100", 100), (formatdate(NOW / 1000 + 100, usegmt=True), 100)),
    *((asked, None) for asked in ("soon", "-5", "1e9", "9" * 400, "Sat, 99 Nov 2026 10:01:40 GMT", "")),
]


@each("kind", KINDS)
@each("asked, after_s", RETRY_AFTER)
def test_retry_after_is_read_as_seconds_or_a_date(phones, kind, asked, after_s):
    phones.of_kind[kind].then(429, retry_after=asked)
    assert phones.pushed_to(kind).retry_after_s == after_s


def test_the_retries_honour_retry_after(phones, moved_clock):
    phones.then(503, retry_after="100")
    assert sent_status(phones.caller) == "pending"
    assert_retried_after(100, phones, moved_clock)


@each("is_kept", [False, True])
def test_a_connection_that_ends_without_an_answer_is_pending_and_the_push_not_sent_again_within_the_request(
    phones, moved_clock, is_kept
):
    if is_kept:
        phones.send("the first of the connection")
    before = len(phones.apple.pushes)
    phones.then(0)
    assert (sent_status(phones.caller), phones.seen()) == ("pending", [before + 1] * 3)
    for kind, error in phones.errors().items():
        assert_says(error, "could not be reached", phones.push_to(kind).token)
    pass_time(phones.service, moved_clock, 30)
    assert (newest(phones.caller), phones.seen()) == ("delivered", [before + 2] * 3)


REPEATED = [
    *(("apns", {"reason": words}) for words in ("{}", "Bad {}", "unknown token {}")),
    *(("fcm", {name: "BAD_{}"}) for name in ("message", "error_code", "reason")),
]


@each("status", [400, 403, 503])
@each("kind, more", REPEATED)
def test_a_token_that_the_answer_repeats_is_not_shown(phones, caplog, kind, status, more):
    token = phones.of_kind[kind].token
    phones.of_kind[kind].then(status, **{name: words.format(token) for name, words in more.items()})
    assert token not in phones.pushed_to(kind).error + caplog.text


# --- without a configuration --------------------------------------------------------------------------------


def test_phones_wait_until_their_providers_are_configured(
    make_service, push_service, apns, fcm, moved_clock, request
):
    service = make_service(WEBPUSH_HOSTS=push_service.origin)
    caller, some = service.caller(service.account()), {"apns": apns.phone(), "fcm": fcm.phone()}
    for kind, phone in some.items():
        register(caller, phone, kind)
    assert sent_status(caller) == "pending"
    for device in caller.get("/devices").json["devices"]:
        assert_says(device["lastError"], "not configured", some[device["kind"]].token)
    pass_time(service, moved_clock, 30)
    assert (newest(caller), [phone.pushes for phone in some.values()]) == ("pending", [[], []])
    pass_time(request.getfixturevalue("every_provider"), moved_clock, 3600)
    assert (newest(caller), [len(phone.messages) for phone in some.values()]) == ("delivered", [1, 1])
    assert {device["lastError"] for device in caller.get("/devices").json["devices"]} == {None}
