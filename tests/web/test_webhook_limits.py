"""How many requests an alert webhook takes: 60 a minute, floods, the global cap, senders that guess."""

from unittest.mock import ANY

import pytest

from tests.support.accounts import account_set
from tests.support.rows import each
from tests.support.times import DAY_S
from tests.support.webhooks import (
    CODES,
    INACTIVE,
    OTHER_SENDER,
    PROXY,
    SENDER,
    UNKNOWN,
    answered,
    ask,
    assert_limited,
    at_once,
    burst,
    guess,
    rotated,
    the_alert,
    whole,
)
from web import rate_limits

# 60 a minute


def test_exactly_60_requests_a_minute_are_let_through(owner, hook):
    assert burst(hook, 70, b"{}") == [200] * 60 + [429] * 10
    assert the_alert(owner)["notificationCount"] == 60


def test_the_window_moves_with_every_request(hook, moved_clock):
    assert burst(hook, 40) == [400] * 40
    moved_clock.advance(30)
    assert burst(hook, 30) == [400] * 20 + [429] * 10
    moved_clock.advance(29.9)
    assert burst(hook, 1) == [429]
    moved_clock.advance(0.2)
    assert burst(hook, 50) == [400] * 40 + [429] * 10


def test_senders_share_the_alerts_count(hook):
    answers = [hook.post(data=b"{", address=f"198.51.100.{number}").status_code for number in range(61)]
    assert answers == [400] * 60 + [429]


# Flood


@pytest.fixture
def zebra(service, owner):
    """An alert with a name that is easy to find in texts."""
    return service.alert(name="Zebra crossing")


@pytest.fixture
def low(monkeypatch):
    """A flood is 80 requests: where the number is not the rule, 500 would take long."""
    monkeypatch.setattr(rate_limits, "FLOOD", rate_limits.Quota("flood", 80))


def notices(caller):
    """The notifications that name the alert: bursts record no others."""
    listed = caller.listed()
    assert all("Zebra crossing" in each["title"] + each["body"] for each in listed)
    return listed


def test_the_500th_request_within_a_minute_pauses_the_alert_refused_ones_included(owner, zebra):
    assert burst(zebra, 499) == [400] * 60 + [429] * 439
    assert (the_alert(owner)["isActive"], notices(owner)) == (True, [])
    zebra.post({})
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 1)


def test_a_flood_is_that_many_requests_in_any_60_seconds(owner, zebra, moved_clock, low):
    burst(zebra, 40)
    moved_clock.advance(59)
    burst(zebra, 39)
    moved_clock.advance(1.1)
    burst(zebra, 1)
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 39)
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 1)
    assert the_alert(owner)["isActive"] is False


def test_requests_to_two_alerts_are_no_flood(service, owner, zebra, low):
    second = service.alert(name="Second")
    for _ in range(2):
        burst(zebra, 25)
        burst(second, 25)
    assert [each["isActive"] for each in owner.get("/alerts").json["alerts"]] == [True, True]


def test_the_one_notice_is_pushed_although_it_is_night(service, owner, zebra, browser, low):
    account_set(service, "--quiet-hours", "09:00-11:00")
    burst(zebra, 90)
    assert notices(owner)[0]["status"] in ("pending", "delivered")
    service.work()
    (notice,) = notices(owner)
    assert notice == {"id": ANY, "title": ANY, "body": ANY, "status": "delivered", "createdAt": ANY}
    assert notice["title"].startswith("MCP - ")
    (message,) = browser.messages
    shown = message["notification"]
    assert (shown["title"], shown["body"], shown["tag"]) == (notice["title"], notice["body"], notice["id"])


def test_a_paused_alert_stays_paused_and_gets_no_second_notice(service, owner, zebra, moved_clock, low):
    burst(zebra, 80)
    assert set(burst(zebra, 60)) <= {200, 429}
    moved_clock.advance(61)
    assert answered(zebra.post({})) == INACTIVE
    burst(zebra, 80)
    service.work()
    assert the_alert(owner)["isActive"] is False
    assert [notice["status"] for notice in notices(owner)] == ["delivered"]


def test_threads_that_flood_at_once_make_one_notice(service, owner, zebra, low):
    at_once(8, lambda: [service.app.test_client().post(zebra.url).status_code for _ in range(15)])
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 1)


@pytest.mark.parametrize("refused_while_paused", [0, 30])
def test_switching_it_on_starts_the_count_afresh(owner, zebra, moved_clock, refused_while_paused, low):
    burst(zebra, 80 + refused_while_paused)
    moved_clock.advance(1)
    zebra.set("--active")
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 79)
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (True, 1)
    burst(zebra, 1)
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 2)


# The global cap


def test_all_alerts_of_an_account_take_half_of_the_cap_and_all_accounts_together_the_whole(capped_at):
    first, second = capped_at(3)
    others = [first.service.alert(email=first.service.account(f"{name}@example.org")) for name in ("b", "c")]
    assert [one.post({}).status_code for one in (first, second, first, second, first)] == [200] * 3 + [429] * 2
    assert_limited(second.post({}))
    assert [one.post({}).status_code for one in (*others, *others)] == [200] * 3 + [429]
    assert_limited(others[0].post({}))


def test_the_cap_does_not_count_events_over_an_alerts_own_limit(capped_at):
    first, second = capped_at(100)
    assert burst(first, 110) == [400] * 60 + [429] * 50
    assert burst(second, 41) == [400] * 40 + [429]


def test_the_cap_does_not_count_unknown_and_malformed_codes_and_refused_senders(capped):
    guess(capped.service, 70)
    ask(capped.service, "abcdef", OTHER_SENDER)
    assert burst(capped, 5) == [429] * 5  # for the sender
    assert [capped.post({}, address=OTHER_SENDER).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_request_refused_by_the_cap_does_not_use_up_the_alerts_own_60(capped_at, moved_clock):
    first, second = capped_at(60)
    burst(first, 60)
    moved_clock.advance(30)
    assert burst(second, 60) == [429] * 60
    moved_clock.advance(30.1)
    assert burst(second, 61) == [400] * 60 + [429]


# The budget of a sender that guesses


def test_an_address_may_ask_for_60_unknown_codes_a_minute(service):
    assert guess(service, 63) == [404] * 60 + [429] * 3
    assert_limited(ask(service, "abc1234"))


def test_rotated_codes_count_like_unknown_ones(service, hook):
    rotated(hook)
    assert guess(service, 59) + burst(hook, 2) == [404] * 60 + [429]


def test_beyond_the_budget_a_code_without_an_event_looks_like_an_unknown_one(service, owner, hook):
    guess(service, 60)
    assert_limited(hook.post({}))
    assert whole(hook.post({})) == whole(ask(service, UNKNOWN))
    assert owner.listed() == []
    assert hook.post({}, address=OTHER_SENDER).status_code == 200


@each("seconds, status", [(DAY_S - 1, 200), (DAY_S + 1, 429)])
def test_a_code_is_in_use_for_24_hours_after_its_last_event(service, hook, moved_clock, seconds, status):
    hook.post({})
    moved_clock.advance(seconds)
    guess(service, 60)
    assert hook.post({}).status_code == status


def test_requests_to_codes_that_exist_do_not_use_up_the_budget(service, hook):
    burst(hook, 70)
    assert guess(service, 61) == [404] * 60 + [429]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_guessing_with_another_method_learns_nothing(service, hook, method):
    for _ in range(100):
        ask(service, f"{next(CODES):07}", method=method)
    assert whole(ask(service, hook.code, method=method)) == whole(ask(service, UNKNOWN, method=method))


@pytest.mark.parametrize("other, status", [("2001:db8:1:2:ffff::9", 429), ("2001:db8:1:3::1", 404)])
def test_the_addresses_of_an_ipv6_64_share_one_budget(service, other, status):
    same = [status for number in range(1, 61) for status in guess(service, 1, f"2001:db8:1:2::{number:x}")]
    assert same == [404] * 60
    assert guess(service, 1, other) == [status]


# The client's address


def behind(*addresses):
    return {"X-Forwarded-For": ", ".join(addresses)}


def test_a_trusted_proxy_names_the_client(service):
    assert guess(service, 61, PROXY, behind(SENDER)) == [404] * 60 + [429]
    assert guess(service, 1, PROXY, behind(OTHER_SENDER)) == [404]
    assert guess(service, 1, SENDER) == [429]


def test_no_other_header_names_the_client(service):
    names = ("X-Real-IP", "Forwarded", "X-Client-IP", "CF-Connecting-IP")
    answers = guess(service, 61, PROXY, lambda number: dict.fromkeys(names, f"198.51.100.{number}") | behind(SENDER))
    assert answers == [404] * 60 + [429]
