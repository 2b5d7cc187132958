"""APNs: requests, what becomes of a notification and its retries, what is never shown."""

from itertools import pairwise

import pytest

import push
from providers.transport import send_all
from tests.support.outcomes import (
    assert_says,
    last_error,
    newest,
    pass_time,
    register,
    send_at_once,
    sent_status,
)
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
    assert phone.messages[0].body["id"] == sent["id"]


# --- the provider token -------------------------------------------------------------------------------------


def test_one_provider_token_serves_pushes_of_all_accounts(service, owner, phone, apns):
    other, other_phone = service.caller(service.account("other@example.org")), apns.phone()
    register(other, other_phone)
    for sender in (owner, other) * 5:
        assert sent_status(sender) == "delivered"
    assert (len(phone.messages), len(other_phone.messages), len(apns.tokens)) == (5, 5, 1)


def test_a_provider_token_is_renewed_before_it_is_60_minutes_old(owner, phone, apns, moved_clock):
    apns.limits_tokens = True
    for _ in range(40):
        assert sent_status(owner) == "delivered"
        moved_clock.advance(300)
    issued = [claims["iat"] for claims in apns.tokens.values()]
    assert all(1200 <= later - earlier <= 3600 for earlier, later in pairwise(issued))
    assert len(issued) >= 4 and len(phone.pushes) == len(phone.messages) == 40


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
    assert (apns.connections, apns.excess) == (1, 0)


def test_of_several_pushes_one_goes_first(owner, ten, monkeypatch):
    sent = []
    monkeypatch.setattr(
        push, "send_all", lambda requests, left_s: sent.extend(requests) or send_all(requests, left_s)
    )
    owner.send()
    assert [request.leads for request in sent] == [True] * 10
