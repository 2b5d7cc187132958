"""FCM and its OAuth, and all providers together: status, retries, what is never shown."""

import json

import pytest

from tests.support.devices import subscribe
from tests.support.fcm_service import BAD_TOKEN
from tests.support.outcomes import assert_says, last_error, newest, pass_time, register, send_at_once, sent_status


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


@pytest.mark.parametrize("cold", [True, False])
def test_16_threads_at_once_fetch_one_access_token(service, owner, phone, fcm, cold):
    if not cold:
        owner.send()
        fcm.expire()
    before = fcm.oauth_calls
    fcm.oauth_then(200, after_s=0.05)
    assert send_at_once(service, fcm, "fcm") == ["delivered"] * 16
    assert (fcm.oauth_calls - before, fcm.duplicates) == (1, 0)


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


@pytest.mark.parametrize(
    ("status", "error"),
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
    fcm.oauth_then(status, error)
    assert (sent_status(owner), phone.pushes) == ("pending", [])
    assert_says(last_error(owner), error, phone.token)
    pass_time(service, moved_clock, 30)
    assert (newest(owner), len(phone.pushes), last_error(owner)) == ("delivered", 1, None)


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


# --- all three together -------------------------------------------------------------------------------------


@pytest.fixture
def family(service, owner, apns, fcm, push_service, moved_clock):
    """A phone of each kind, by its kind; the registered devices' ids in `.ids`."""
    phones = {"apns": apns.phone(), "fcm": fcm.phone()}
    for kind, phone in phones.items():
        register(owner, phone, kind)
    phones["webpush"] = subscribe(owner, push_service)
    moved_clock.advance(1)
    return phones


def received(phones):
    return {kind: len(phone.messages) for kind, phone in phones.items()}


DIES = {"apns": (410, "Unregistered"), "fcm": (404, "UNREGISTERED"), "webpush": (410,)}
HAS_A_FAULT = {"apns": (503,), "fcm": (503, "UNAVAILABLE"), "webpush": (503,)}
IS_MISCONFIGURED = {"apns": (403, "InvalidProviderToken"), "fcm": (403, "SENDER_ID_MISMATCH"), "webpush": (403,)}
DROPS = {"apns": (0,), "fcm": (0,), "webpush": (0,)}


@pytest.mark.parametrize("kind", ["apns", "fcm", "webpush"])
def test_a_dead_device_does_not_affect_other_kinds(service, owner, family, moved_clock, kind):
    family[kind].then(*DIES[kind])
    assert sent_status(owner) == "delivered"
    assert {one["kind"] for one in owner.get("/devices").json["devices"]} == set(family) - {kind}
    pass_time(service, moved_clock, 3600)
    assert received(family) == {"apns": 1, "fcm": 1, "webpush": 1} | {kind: 0}


@pytest.mark.parametrize("kind", ["apns", "fcm", "webpush"])
@pytest.mark.parametrize("fault", [HAS_A_FAULT, IS_MISCONFIGURED, DROPS], ids=["fault", "misconfigured", "drop"])
def test_a_failing_device_is_retried_alone(service, owner, family, moved_clock, kind, fault):
    family[kind].then(*fault[kind])
    assert sent_status(owner) == "delivered"
    errors = {one["kind"]: one["lastError"] for one in owner.get("/devices").json["devices"]}
    assert [failing for failing, error in errors.items() if error] == [kind]
    pass_time(service, moved_clock, 30)
    assert received(family) == {"apns": 1, "fcm": 1, "webpush": 1}
    assert sum(len(phone.pushes) for phone in family.values()) == 4


# --- what is never shown ------------------------------------------------------------------------------------


def secrets_of(apns, fcm, family):
    account = fcm.service_account()
    keys = [line for pem in (apns.key_pem, account["private_key"]) for line in pem.splitlines() if "-" not in line]
    phones = [family["apns"].token, family["fcm"].token, *family["webpush"].subscription["keys"].values()]
    return [*keys, account["private_key_id"], *phones, *apns.tokens, *fcm.access, "title-of-it", "body-of-it"]


def test_the_most_talkative_log_and_the_answers_hold_no_secret(
    service, owner, family, apns, fcm, moved_clock, caplog, capfd
):
    answers = []
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
            family["apns"].then(*apple)
            family["fcm"].then(*google)
            family["webpush"].then(*browser)
            answers.append(owner.send("title-of-it", "body-of-it").json["notification"]["status"])
            answers.append(owner.get("/devices").text)
            pass_time(service, moved_clock, 600)
        fcm.expire()
        fcm.oauth_then(400, "invalid_grant")
        owner.send("title-of-it", "body-of-it")
        answers.append(owner.get("/devices").text)
        answers.append(service.flask("device", "list", "owner@example.org").output)
        family["apns"].then(410)
        family["fcm"].then(400, "INVALID_ARGUMENT", BAD_TOKEN)
        owner.send("title-of-it", "body-of-it")
    told = "".join([*answers, caplog.text, *capfd.readouterr()])
    assert (len(apns.tokens) >= 1, len(fcm.access) >= 2) == (True, True)
    assert [secret for secret in secrets_of(apns, fcm, family) if secret in told] == []
