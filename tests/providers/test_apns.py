"""APNs: requests, what becomes of a notification and its retries, what is never shown."""

from itertools import pairwise

import pytest

import push
from providers.base import Outcome
from providers.transport import send_all
from tests.support.outcomes import assert_says, last_error, newest, pass_time, push_at_once, register, sent_status


@pytest.fixture
def service(make_service, apns, authority, moved_clock):
    """Configured for APNs alone, in place of the one for Web Push: `owner` is an account of it."""
    return make_service(**apns.settings, SSL_CERT_FILE=authority.ca_file)


@pytest.fixture
def phone(apns, owner, moved_clock):
    """The account's only device, a second old."""
    phone = apns.phone()
    register(owner, phone)
    moved_clock.advance(1)
    return phone


# --- the provider token -------------------------------------------------------------------------------------


def test_a_provider_token_is_renewed_before_it_is_60_minutes_old(phones, apns, moved_clock):
    apns.limits_tokens = True
    for _ in range(40):
        assert phones.pushed_to("apns").outcome is Outcome.DELIVERED
        moved_clock.advance(300)
    issued = [claims["iat"] for claims in apns.tokens.values()]
    assert all(1200 <= later - earlier <= 3600 for earlier, later in pairwise(issued))
    assert len(issued) >= 4 and len(phones.apple.pushes) == len(phones.apple.messages) == 40


def test_16_threads_share_one_provider_token_and_make_one_new_one_when_it_has_expired(phones, apns, moved_clock):
    apns.limits_tokens = True
    for tokens in (1, 2):
        assert push_at_once(phones, "apns") == ["delivered"] * 16
        assert (len(apns.tokens), len(phones.apple.pushes)) == (tokens, 16 * tokens)
        moved_clock.set_wall(moved_clock.ms + 3 * 3_600_000)


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


def test_a_wall_clock_that_was_set_costs_one_new_provider_token(phones, apns, moved_clock):
    for tokens, hours in ((1, 3), (2, -6), (3, 0), (3, 0)):
        assert phones.pushed_to("apns").outcome is Outcome.DELIVERED
        assert len(apns.tokens) == tokens
        moved_clock.set_wall(moved_clock.ms + hours * 3_600_000)


# --- connections --------------------------------------------------------------------------------------------


@pytest.fixture
def ten(apns, owner):
    """Ten iPhones of the account."""
    phones = [apns.phone() for _ in range(10)]
    for phone in phones:
        register(owner, phone)
    return phones


def test_of_several_pushes_one_goes_first(owner, ten, monkeypatch):
    sent = []
    monkeypatch.setattr(
        push, "send_all", lambda requests, left_s: sent.extend(requests) or send_all(requests, left_s)
    )
    owner.send()
    assert [request.leads for request in sent] == [True] * 10
