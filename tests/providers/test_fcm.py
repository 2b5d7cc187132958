"""FCM and its OAuth, and what no provider is to show."""

import json

import pytest

from tests.support.fcm_service import BAD_TOKEN
from tests.support.outcomes import assert_says, last_error, newest, pass_time, push_at_once, register, sent_status
from tests.support.rows import each


@pytest.fixture
def service(every_provider):
    """Configured for all three, in place of the one for Web Push alone: `owner` is an account of it."""
    return every_provider


@pytest.fixture
def phone(fcm, owner, moved_clock):
    """The account's only device, a second old."""
    phone = fcm.phone()
    register(owner, phone, "fcm")
    moved_clock.advance(1)
    return phone


# --- what an answer means -----------------------------------------------------------------------------------


def test_a_delivery_that_names_a_retry_after_is_not_repeated(service, owner, phone, moved_clock):
    phone.then(200, Retry_After="3")
    assert sent_status(owner) == "delivered"
    for seconds in (3, 27, 3600):
        pass_time(service, moved_clock, seconds)
    assert (len(phone.pushes), len(phone.messages)) == (1, 1)


# --- OAuth --------------------------------------------------------------------------------------------------


def test_an_access_token_is_kept_and_renewed_before_its_end(owner, phone, fcm, moved_clock):
    owner.send()
    moved_clock.advance(1800)
    owner.send()
    moved_clock.advance(fcm.expires_in - 1800)
    assert sent_status(owner) == "delivered"
    first, second, third = (one["authorization"] for one in phone.pushes)
    assert first == second != third
    assert fcm.oauth_calls == 2


@each("is_cold", [True, False])
def test_16_threads_at_once_fetch_one_access_token(phones, fcm, is_cold):
    if not is_cold:
        fcm.expire()
    calls, taken = fcm.oauth_calls, len(phones.android.messages)
    fcm.oauth_then(200, after_s=0.05)
    assert push_at_once(phones, "fcm") == ["delivered"] * 16
    assert (fcm.oauth_calls - calls, len(phones.android.messages) - taken) == (1, 16)


def test_an_access_token_that_was_refused_is_renewed_and_the_push_sent_again_within_the_request(owner, phone, fcm):
    owner.send()
    fcm.expire()
    assert sent_status(owner) == "delivered"
    first, second, third = (one["authorization"] for one in phone.pushes)
    assert first == second != third
    assert (fcm.oauth_calls, fcm.duplicates, last_error(owner)) == (2, 0, None)


def test_an_access_token_refused_twice_is_a_configuration_fault(service, owner, phone, fcm, moved_clock):
    owner.send()
    phone.then(401, reason="ACCESS_TOKEN_EXPIRED").then(401, reason="ACCESS_TOKEN_EXPIRED")
    assert (sent_status(owner), len(phone.pushes), fcm.oauth_calls) == ("pending", 3, 2)
    assert_says(last_error(owner), "", phone.token)
    pass_time(service, moved_clock, 30)
    assert (newest(owner), len(phone.pushes), last_error(owner)) == ("delivered", 4, None)


def test_access_tokens_that_end_at_once_make_no_loop(owner, phone, fcm):
    fcm.expires_in = 0
    assert sent_status(owner) == "pending"
    assert (len(phone.pushes), phone.messages) == (2, []) and fcm.oauth_calls <= 3


@each(
    "status, error",
    [
        (400, "invalid_grant"),
        (401, "invalid_client"),
        (403, "access_denied"),
        (429, ""),
        (500, ""),
        (503, ""),
        (0, ""),
    ],
)
def test_without_an_access_token_a_push_is_pending_and_the_device_says_so(
    service, owner, phone, fcm, moved_clock, status, error
):
    moved_clock.advance(fcm.expires_in)  # the token of the row before has ended
    before = len(phone.pushes)
    fcm.oauth_then(status, error)
    assert (sent_status(owner), len(phone.pushes)) == ("pending", before)
    assert_says(last_error(owner), error, phone.token)
    pass_time(service, moved_clock, 30)
    assert (newest(owner), len(phone.pushes), last_error(owner)) == ("delivered", before + 1, None)


def test_a_renewal_that_fails_after_a_refusal_leaves_the_push_pending(service, owner, phone, fcm, moved_clock):
    owner.send()
    fcm.expire()
    fcm.oauth_then(503)
    assert (sent_status(owner), len(phone.messages)) == ("pending", 1)
    pass_time(service, moved_clock, 30)
    assert (newest(owner), len(phone.messages), fcm.duplicates) == ("delivered", 2, 0)


def test_an_oauth_that_ssl_cert_file_does_not_vouch_for_gets_no_assertion(make_service, fcm, moved_clock):
    service = make_service(FCM_URL=fcm.origin, FCM_SERVICE_ACCOUNT=json.dumps(fcm.service_account()))
    caller, phone = service.caller(service.account()), fcm.phone()
    register(caller, phone, "fcm")
    assert (sent_status(caller), fcm.oauth_calls, phone.pushes) == ("pending", 0, [])
    assert_says(last_error(caller), "certificate", phone.token)


# --- what is never shown ------------------------------------------------------------------------------------


def secrets_of(apns, fcm, phones):
    account = fcm.service_account()
    keys = [line for pem in (apns.key_pem, account["private_key"]) for line in pem.splitlines() if "-" not in line]
    devices = [phones.apple.token, phones.android.token, *phones.browser.subscription["keys"].values()]
    return [*keys, account["private_key_id"], *devices, *apns.tokens, *fcm.access, "title-of-it", "body-of-it"]


def test_the_most_talkative_log_and_the_answers_hold_no_secret(
    service, phones, apns, fcm, moved_clock, caplog, capfd
):
    owner, answers = phones.caller, []
    for stand_in in ("hpack", "h2"):
        caplog.set_level("INFO", logger=stand_in)
    with caplog.at_level("DEBUG"):
        for apple, google, browser in [
            ((200,), (200,), (201,)),
            ((403, "ExpiredProviderToken"), (401, "", "Bad credentials"), (403,)),
            ((403, "InvalidProviderToken"), (401, "THIRD_PARTY_AUTH_ERROR"), (400,)),
            ((0,), (0,), (0,)),
            ((503,), (400,), (503,)),
            ((400, "BadDeviceToken"), (403, "SENDER_ID_MISMATCH"), (429,)),
        ]:
            phones.apple.then(*apple)
            phones.android.then(*google)
            phones.browser.then(*browser)
            answers.append(owner.send("title-of-it", "body-of-it").json["notification"]["status"])
            answers.append(owner.get("/devices").text)
            pass_time(service, moved_clock, 600)
        fcm.expire()
        fcm.oauth_then(400, "invalid_grant")
        owner.send("title-of-it", "body-of-it")
        answers.append(owner.get("/devices").text)
        answers.append(service.flask("device", "list", "owner@example.org").output)
        phones.apple.then(410)
        phones.android.then(400, "INVALID_ARGUMENT", BAD_TOKEN)
        owner.send("title-of-it", "body-of-it")
    told = "".join([*answers, caplog.text, *capfd.readouterr()])
    assert (len(apns.tokens) >= 1, len(fcm.access) >= 2) == (True, True)
    assert [secret for secret in secrets_of(apns, fcm, phones) if secret in told] == []
