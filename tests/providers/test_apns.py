"""APNs: requests, what becomes of a notification and its retries, what is never shown."""

from email.utils import formatdate
from itertools import pairwise

import pytest

from tests.support.outcomes import (
    NOWHERE,
    TEXTS,
    assert_retried_after,
    assert_says,
    assert_shortened,
    last_error,
    newest,
    pass_time,
    register,
    send_at_once,
    sent_status,
)
from tests.support.rows import each
from tests.support.times import DAY_S


def apns_settings(apns, **changes):
    return {
        "APNS_URL": apns.url,
        "APNS_KEY": apns.key_pem,
        "APNS_KEY_ID": apns.key_id,
        "APNS_TEAM_ID": apns.team_id,
        "APNS_TOPIC": apns.topic,
        **changes,
    }


@pytest.fixture
def service(make_service, apns, authority, moved_clock):
    """Configured for APNs alone, in place of the one for Web Push: `owner` is an account of it."""
    return make_service(**apns_settings(apns, SSL_CERT_FILE=authority.ca_file))


@pytest.fixture
def phone(apns, owner, moved_clock):
    """The account's only device, a second old."""
    phone = apns.phone()
    register(owner, phone)
    moved_clock.advance(1)
    return phone


# --- what is sent -------------------------------------------------------------------------------------------


def test_a_push_carries_the_delivered_title_the_body_and_the_id(owner, phone):
    sent = owner.send("Disk “root”", "at 98 % 😀\nnow").json["notification"]
    assert sent["status"] == "delivered"
    ((body, _),) = phone.messages
    assert body["aps"]["alert"] == {"title": "MCP - Disk “root”", "body": "at 98 % 😀\nnow"}
    assert body["id"] == sent["id"]
    assert newest(owner) == "delivered"


def test_a_push_is_an_urgent_alert_kept_for_a_day_that_replaces_its_own_repeat(owner, phone, apns, moved_clock):
    sent = owner.send().json["notification"]
    expected = {
        ":path": f"/3/device/{phone.token}",
        "content-type": "application/json",
        "apns-topic": apns.topic,
        "apns-push-type": "alert",
        "apns-priority": "10",
        "apns-expiration": str(moved_clock.ms // 1000 + DAY_S),
        "apns-collapse-id": sent["id"],
    }
    assert {name: phone.pushes[0].get(name) for name in expected} == expected


def test_a_delivered_push_is_noted_on_its_device(owner, phone, moved_clock):
    owner.send()
    (device,) = owner.get("/devices").json["devices"]
    assert (device["lastDeliveredAt"], device["lastError"]) == (moved_clock.ms, None)


@each("text", TEXTS)
@each("length", [1_000, 4_000, 10_000])
def test_what_passes_apples_limit_is_shortened_and_the_history_keeps_all(owner, phone, text, length):
    seen, body = len(phone.messages), ("." + text * length)[:10_000]
    sent = owner.send("T", body).json["notification"]
    assert (sent["status"], sent["body"]) == ("delivered", body)
    assert_shortened(phone.messages[seen].body["aps"]["alert"]["body"], body)


def test_a_text_that_fits_is_sent_whole(owner, phone):
    owner.send("t" * 500, "b" * 3_000)
    assert phone.messages[0].body["aps"]["alert"] == {"title": "MCP - " + "t" * 500, "body": "b" * 3_000}


def test_a_long_title_leaves_room_for_the_beginning_of_the_body(owner, phone):
    owner.send("😀" * 1_000, "b" * 9_000)
    shown = phone.messages[0].body["aps"]["alert"]
    assert shown["title"].startswith("MCP - 😀😀😀") and shown["title"].endswith("😀…")
    assert shown["body"].startswith("b" * 100)


def test_a_push_carries_line_ends_as_newlines_and_no_other_control_characters(owner, phone):
    sent = owner.send("a\x07b\x1b[1m", "one\r\ntwo\nthree\x7f\x85\x01.").json["notification"]
    assert sent["body"] == "one\r\ntwo\nthree\x7f\x85\x01."
    assert phone.messages[0].body["aps"]["alert"] == {"title": "MCP - ab[1m", "body": "one\ntwo\nthree."}


# --- what an answer means -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["Unregistered", "ExpiredToken"])
def test_a_dead_token_is_removed_and_the_notification_failed(service, owner, phone, moved_clock, reason):
    phone.then(410, reason)
    assert sent_status(owner) == "failed"
    assert owner.get("/devices").json["devices"] == []
    pass_time(service, moved_clock, 3600)
    assert (newest(owner), len(phone.pushes)) == ("failed", 1)


def test_a_refusal_for_this_device_alone_fails_and_the_device_stays(service, owner, phone, moved_clock):
    phone.then(400, "BadDeviceToken")
    assert sent_status(owner) == "failed"
    assert_says(last_error(owner), "BadDeviceToken", phone.token)
    pass_time(service, moved_clock, 3600)
    assert (newest(owner), len(phone.pushes)) == ("failed", 1)


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "BadExpirationDate"), (400, "PayloadEmpty"), (405, "MethodNotAllowed"), (413, "")]
)
def test_any_other_refusal_costs_no_device_and_is_not_called_delivered(owner, phone, status, reason):
    phone.then(status, reason)
    assert sent_status(owner) in ("failed", "pending")
    assert_says(last_error(owner), reason or "PayloadTooLarge", phone.token)
    assert len(phone.pushes) == 1


TRANSIENT = [
    (429, "TooManyRequests"),
    (429, "TooManyProviderTokenUpdates"),
    (500, "InternalServerError"),
    (502, ""),
    (503, "ServiceUnavailable"),
    (503, "Shutdown"),
    (504, ""),
]


@pytest.mark.parametrize(("status", "reason"), TRANSIENT)
def test_a_passing_fault_is_pending_and_retried_after_30_seconds(service, owner, phone, moved_clock, status, reason):
    phone.then(status, reason)
    assert sent_status(owner) == "pending"
    assert_says(last_error(owner), reason or str(status), phone.token)
    assert_retried_after(30, service, owner, phone, moved_clock)


@pytest.mark.parametrize("reason", [7, ["Shutdown"], {"a": 1}, "x" * 5_000, "<b>no\nreason</b>", "é\u2028\x00"])
def test_a_reason_that_is_none_does_no_harm(service, owner, phone, moved_clock, reason):
    phone.then(503, reason)
    assert sent_status(owner) == "pending"
    assert_says(last_error(owner), "503", phone.token)
    assert_retried_after(30, service, owner, phone, moved_clock)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_a_passing_fault_and_never_followed(service, owner, phone, apns, moved_clock, status):
    elsewhere = apns.phone()
    phone.then(status, location=f"{apns.url}/3/device/{elsewhere.token}")
    assert sent_status(owner) == "pending"
    assert_says(last_error(owner), str(status), phone.token, elsewhere.token)
    assert_retried_after(30, service, owner, phone, moved_clock)
    assert elsewhere.pushes == []


CONFIGURATION = [
    *((403, reason) for reason in ("InvalidProviderToken", "MissingProviderToken", "Forbidden")),
    *((403, reason) for reason in ("BadCertificate", "BadCertificateEnvironment")),
    (401, "Unauthorized"),
    *((400, reason) for reason in ("DeviceTokenNotForTopic", "TopicDisallowed", "MissingTopic", "BadTopic")),
    (404, "BadPath"),
]


@pytest.mark.parametrize(("status", "reason"), CONFIGURATION)
def test_a_configuration_fault_is_pending_shown_and_retried(service, owner, phone, moved_clock, status, reason):
    phone.then(status, reason)
    assert sent_status(owner) == "pending"
    assert_says(last_error(owner), reason, phone.token)
    assert_retried_after(30, service, owner, phone, moved_clock)


def test_a_configuration_fault_of_more_than_a_day_fails_and_costs_no_device(service, owner, phone, moved_clock):
    for _ in range(60):
        phone.then(403, "InvalidProviderToken")
    assert sent_status(owner) == "pending"
    for _ in range(25):
        pass_time(service, moved_clock, 3600)
    assert newest(owner) == "failed"
    assert_says(last_error(owner), "InvalidProviderToken")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("as_date", [False, True])
def test_what_retry_after_asks_is_honoured_by_the_worker(service, owner, phone, moved_clock, status, as_date):
    phone.then(status, retry_after=formatdate(moved_clock.ms / 1000 + 100, usegmt=True) if as_date else "100")
    assert sent_status(owner) == "pending"
    assert_retried_after(100, service, owner, phone, moved_clock)


@pytest.mark.parametrize("kept", [False, True])
def test_a_connection_that_ends_without_an_answer_is_pending_and_the_push_not_sent_again_within_the_request(
    service, owner, phone, apns, moved_clock, kept
):
    if kept:
        owner.send("the first of the connection")
    phone.then(0)
    before = len(phone.pushes)
    sent = owner.send().json["notification"]
    assert (sent["status"], len(phone.pushes) - before, apns.duplicates) == ("pending", 1, 0)
    assert_says(last_error(owner), "", phone.token)
    pass_time(service, moved_clock, 30)
    assert newest(owner) == "delivered"
    assert [one["apns-collapse-id"] for one in phone.pushes[before:]] == [sent["id"]] * 2


@pytest.mark.parametrize("way", ["goaway", "goaway-hard", "refuse"])
def test_a_push_that_a_closing_connection_did_not_take_arrives_once(service, owner, phone, apns, moved_clock, way):
    owner.send("the first of the connection")
    phone.then(way)
    owner.send()
    pass_time(service, moved_clock, 30)
    assert (newest(owner), len(phone.messages), apns.duplicates) == ("delivered", 2, 0)


def test_where_nothing_listens_a_push_is_pending_and_the_device_says_so(make_service, apns, authority, moved_clock):
    service = make_service(**apns_settings(apns, APNS_URL=NOWHERE, SSL_CERT_FILE=authority.ca_file))
    caller, phone = service.caller(service.account()), apns.phone()
    register(caller, phone)
    assert sent_status(caller) == "pending"
    assert_says(last_error(caller), "", phone.token)


def test_a_server_that_ssl_cert_file_does_not_vouch_for_gets_no_push(make_service, apns, moved_clock):
    service = make_service(**apns_settings(apns))
    caller, phone = service.caller(service.account()), apns.phone()
    register(caller, phone)
    assert sent_status(caller) == "pending"
    assert_says(last_error(caller), "certificate", phone.token)
    assert apns.seen == 0


@pytest.mark.parametrize("status", [400, 403, 503])
@pytest.mark.parametrize("words", ["{}", "Bad {}", "unknown token {}"])
def test_a_token_that_the_answer_repeats_is_not_shown(owner, phone, caplog, status, words):
    phone.then(status, words.format(phone.token))
    answer = owner.send()
    assert phone.token not in answer.text + owner.get("/devices").text + caplog.text


# --- the provider token -------------------------------------------------------------------------------------


def test_one_provider_token_serves_pushes_of_all_accounts(service, owner, phone, apns):
    other, other_phone = service.caller(service.account("other@example.org")), apns.phone()
    register(other, other_phone)
    for sender in (owner, other) * 5:
        assert sent_status(sender) == "delivered"
    assert (len(phone.messages), len(other_phone.messages), len(apns.tokens)) == (5, 5, 1)


def test_a_provider_token_is_kept_for_20_minutes(owner, phone, apns, moved_clock):
    owner.send()
    moved_clock.advance(20 * 60 - 1)
    assert (sent_status(owner), len(apns.tokens)) == ("delivered", 1)


def test_a_provider_token_is_renewed_before_it_is_60_minutes_old(owner, phone, apns, moved_clock):
    apns.limits_tokens = True
    for _ in range(40):
        assert sent_status(owner) == "delivered"
        moved_clock.advance(300)
    issued = [claims["iat"] for claims in apns.tokens.values()]
    assert all(1200 <= later - earlier <= 3600 for earlier, later in pairwise(issued))
    assert len(issued) >= 4 and len(phone.pushes) == len(phone.messages) == 40


def test_after_a_long_silence_a_provider_token_is_renewed_before_it_is_used(owner, phone, apns, moved_clock):
    owner.send()
    moved_clock.advance(DAY_S)
    assert sent_status(owner) == "delivered"
    assert (len(phone.pushes), len(apns.tokens)) == (2, 2)


def test_16_threads_share_one_provider_token(service, apns):
    apns.limits_tokens = True
    assert send_at_once(service, apns, "apns") == ["delivered"] * 16
    assert (len(apns.tokens), apns.duplicates) == (1, 0)


def test_an_expired_provider_token_is_renewed_and_the_push_sent_again_within_the_request(
    owner, phone, apns, moved_clock
):
    owner.send()
    moved_clock.advance(25 * 60)
    phone.then(403, "ExpiredProviderToken")
    assert sent_status(owner) == "delivered"
    first, second, third = (one["authorization"] for one in phone.pushes)
    assert first == second != third
    assert (last_error(owner), apns.duplicates) == (None, 0)


def test_a_provider_token_expired_twice_is_a_configuration_fault(service, owner, phone, apns, moved_clock):
    owner.send()
    moved_clock.advance(25 * 60)
    phone.then(403, "ExpiredProviderToken").then(403, "ExpiredProviderToken")
    assert (sent_status(owner), len(phone.pushes)) == ("pending", 3)
    assert_says(last_error(owner), "ExpiredProviderToken", phone.token)
    pass_time(service, moved_clock, 30)
    assert (newest(owner), len(phone.pushes), last_error(owner)) == ("delivered", 4, None)


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_wall_clock_that_was_set_costs_one_new_provider_token(owner, phone, apns, moved_clock, hours):
    owner.send()
    moved_clock.set_wall(moved_clock.ms + hours * 3_600_000)
    assert sent_status(owner) == "delivered"
    assert (len(phone.messages), len(apns.tokens)) == (2, 2)


def test_16_threads_whose_provider_token_expired_make_one_new_one(service, owner, phone, apns, moved_clock):
    apns.limits_tokens = True
    owner.send()
    moved_clock.set_wall(moved_clock.ms + 3 * 3_600_000)
    assert send_at_once(service, apns, "apns") == ["delivered"] * 16
    assert (len(apns.tokens), apns.duplicates) == (2, 0)


# --- connections --------------------------------------------------------------------------------------------


@pytest.fixture
def ten(apns, owner):
    """Ten iPhones of the account."""
    phones = [apns.phone() for _ in range(10)]
    for phone in phones:
        register(owner, phone)
    return phones


def test_ten_iphones_get_a_push_over_a_fresh_connection_that_takes_one_at_a_time(owner, apns, ten):
    assert (apns.first_streams, apns.connections) == (1, 0)
    assert sent_status(owner) == "delivered"
    assert [(len(phone.messages), len(phone.pushes)) for phone in ten] == [(1, 1)] * 10


def test_ten_iphones_get_a_push_when_the_first_of_them_is_dead(owner, apns, ten):
    for phone in ten[::2]:
        phone.then(410)
    assert sent_status(owner) == "delivered"
    assert [len(phone.messages) for phone in ten] == [0, 1] * 5
    assert len(owner.get("/devices").json["devices"]) == 5


def test_ten_iphones_get_a_push_once_when_the_kept_connection_was_closed(service, owner, apns, ten, moved_clock):
    owner.send()
    apns.hang_up()
    owner.send()
    pass_time(service, moved_clock, 30)
    assert [len(phone.messages) for phone in ten] == [2] * 10
    assert (newest(owner), apns.duplicates) == ("delivered", 0)


def test_a_connection_is_kept_for_further_pushes(owner, phone, apns):
    for _ in range(10):
        owner.send()
    assert (len(phone.messages), apns.connections) == (10, 1)


# --- without a configuration --------------------------------------------------------------------------------


def test_a_phone_waits_until_apns_is_configured(make_service, apns, authority, moved_clock):
    service, phone = make_service(), apns.phone()
    caller = service.caller(service.account())
    register(caller, phone)
    assert sent_status(caller) == "pending"
    assert_says(last_error(caller), "not configured", phone.token)
    pass_time(service, moved_clock, 30)
    assert (newest(caller), apns.seen) == ("pending", 0)
    assert_says(last_error(caller), "not configured")
    configured = make_service(**apns_settings(apns, SSL_CERT_FILE=authority.ca_file))
    pass_time(configured, moved_clock, 3600)
    assert (newest(caller), len(phone.messages), last_error(caller)) == ("delivered", 1, None)


def test_a_phone_of_apns_beside_one_that_works_waits_and_says_so(make_service, apns, push_service, moved_clock):
    service = make_service(WEBPUSH_HOSTS=push_service.origin)
    caller, phone, browser = service.caller(service.account()), apns.phone(), push_service.browser()
    waiting = register(caller, phone)
    caller.post("/devices", {"kind": "webpush", "subscription": browser.subscription})
    assert (sent_status(caller), len(browser.messages)) == ("delivered", 1)
    errors = {one["id"]: one["lastError"] for one in caller.get("/devices").json["devices"]}
    assert_says(errors.pop(waiting), "not configured", phone.token)
    assert list(errors.values()) == [None]
