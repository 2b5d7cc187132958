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


def test_the_window_moves_with_every_request_whoever_sends_it(hook, moved_clock, few):
    assert [hook.post(data=b"{", address=f"198.51.100.{number}").status_code for number in range(4)] == [400] * 4
    moved_clock.advance(30)
    assert burst(hook, 3) == [400] * 2 + [429]
    moved_clock.advance(29.9)
    assert burst(hook, 1) == [429]
    moved_clock.advance(0.2)
    assert burst(hook, 5) == [400] * 4 + [429]


# Flood


@pytest.fixture
def zebra(service, owner):
    """An alert with a name that is easy to find in texts."""
    return service.alert(name="Zebra crossing")


def notices(caller):
    """The notifications that name the alert: bursts record no others."""
    listed = caller.listed()
    assert all("Zebra crossing" in each["title"] + each["body"] for each in listed)
    return listed


def test_the_500th_request_within_a_minute_pauses_the_alert_refused_ones_included(owner, zebra, monkeypatch):
    assert rate_limits.FLOOD.amount == 500
    monkeypatch.setattr(rate_limits.FLOOD, "amount", 80)
    assert burst(zebra, 79) == [400] * 60 + [429] * 19
    assert (the_alert(owner)["isActive"], notices(owner)) == (True, [])
    zebra.post({})
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 1)


def test_a_flood_is_that_many_requests_in_any_60_seconds(owner, zebra, moved_clock, low):
    burst(zebra, 4)
    moved_clock.advance(59)
    burst(zebra, 3)
    moved_clock.advance(1.1)
    burst(zebra, 1)
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 3)
    assert the_alert(owner)["isActive"] is True
    burst(zebra, 1)
    assert the_alert(owner)["isActive"] is False


def test_requests_to_two_alerts_are_no_flood(service, owner, zebra, low):
    second = service.alert(name="Second")
    for _ in range(2):
        burst(zebra, 3)
        burst(second, 3)
    assert [each["isActive"] for each in owner.get("/alerts").json["alerts"]] == [True, True]


def test_the_one_notice_is_pushed_although_it_is_night(service, owner, zebra, browser, low):
    account_set("--quiet-hours", "09:00-11:00")
    burst(zebra, 9)
    assert notices(owner)[0]["status"] in ("pending", "delivered")
    service.work()
    (notice,) = notices(owner)
    assert notice == {"id": ANY, "title": ANY, "body": ANY, "status": "delivered", "createdAt": ANY}
    assert notice["title"].startswith("MCP - ")
    (message,) = browser.messages
    shown = message["notification"]
    assert (shown["title"], shown["body"], shown["tag"]) == (notice["title"], notice["body"], notice["id"])


def test_a_paused_alert_stays_paused_and_gets_no_second_notice(service, owner, zebra, moved_clock, low):
    burst(zebra, 8)
    assert set(burst(zebra, 6)) <= {200, 429}
    moved_clock.advance(61)
    assert answered(zebra.post({})) == INACTIVE
    burst(zebra, 8)
    service.work()
    assert the_alert(owner)["isActive"] is False
    assert [notice["status"] for notice in notices(owner)] == ["delivered"]


def test_threads_that_flood_at_once_make_one_notice(service, owner, zebra, low):
    at_once(8, lambda: [service.app.test_client().post(zebra.url).status_code for _ in range(3)])
    assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, 1)


def test_switching_it_on_starts_the_count_afresh(owner, zebra, moved_clock, low):
    burst(zebra, 8)
    for paused, refused_while_paused in ((1, 0), (2, 3)):
        burst(zebra, refused_while_paused)
        moved_clock.advance(1)
        zebra.set("--active")
        assert the_alert(owner)["isActive"] is True
        burst(zebra, 7)
        assert (the_alert(owner)["isActive"], len(notices(owner))) == (True, paused)
        burst(zebra, 1)
        assert (the_alert(owner)["isActive"], len(notices(owner))) == (False, paused + 1)


# The global cap


def test_all_alerts_of_an_account_take_half_of_the_cap_and_all_accounts_together_the_whole(capped_at):
    first, second = capped_at(3)
    others = [first.service.alert(email=first.service.account(f"{name}@example.org")) for name in ("b", "c")]
    assert [one.post({}).status_code for one in (first, second, first, second, first)] == [200] * 3 + [429] * 2
    assert_limited(second.post({}))
    assert [one.post({}).status_code for one in (*others, *others)] == [200] * 3 + [429]
    assert_limited(others[0].post({}))


def test_the_cap_does_not_count_events_over_an_alerts_own_limit(capped_at, few):
    first, second = capped_at(10)
    assert burst(first, 11) == [400] * 6 + [429] * 5
    assert burst(second, 5) == [400] * 4 + [429]


def test_the_cap_does_not_count_unknown_and_malformed_codes_and_refused_senders(capped, few):
    guess(capped.service, 7)
    ask(capped.service, "abcdef", OTHER_SENDER)
    assert burst(capped, 5) == [429] * 5  # for the sender
    assert [capped.post({}, address=OTHER_SENDER).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_request_refused_by_the_cap_does_not_use_up_the_alerts_own_60(capped_at, moved_clock, few):
    first, second = capped_at(6)
    burst(first, 6)
    moved_clock.advance(30)
    assert burst(second, 6) == [429] * 6
    moved_clock.advance(30.1)
    assert burst(second, 7) == [400] * 6 + [429]


# The budget of a sender that guesses


def test_an_address_may_ask_for_60_unknown_codes_a_minute(service):
    assert guess(service, 63) == [404] * 60 + [429] * 3
    assert_limited(ask(service, "abc1234"))


def test_rotated_codes_count_like_unknown_ones(service, hook, few):
    rotated(hook)
    assert guess(service, 5) + burst(hook, 2) == [404] * 6 + [429]


def test_beyond_the_budget_a_code_without_an_event_looks_like_an_unknown_one(service, owner, hook, few):
    guess(service, 6)
    assert_limited(hook.post({}))
    assert whole(hook.post({})) == whole(ask(service, UNKNOWN))
    assert owner.listed() == []
    assert hook.post({}, address=OTHER_SENDER).status_code == 200


@each("seconds, status", [(DAY_S - 1, 200), (DAY_S + 1, 429)])
def test_a_code_is_in_use_for_24_hours_after_its_last_event(service, hook, moved_clock, few, seconds, status):
    hook.post({})
    moved_clock.advance(seconds)
    guess(service, 6)
    assert hook.post({}).status_code == status


def test_requests_to_codes_that_exist_do_not_use_up_the_budget(service, hook, few):
    burst(hook, 7)
    assert guess(service, 7) == [404] * 6 + [429]


@each("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_guessing_with_another_method_learns_nothing(service, hook, moved_clock, few, method):
    moved_clock.advance(61)
    for _ in range(10):
        ask(service, f"{next(CODES):07}", method=method)
    assert whole(ask(service, hook.code, method=method)) == whole(ask(service, UNKNOWN, method=method))


def test_the_addresses_of_an_ipv6_64_share_one_budget(service, few):
    same = [status for number in range(1, 7) for status in guess(service, 1, f"2001:db8:1:2::{number:x}")]
    assert same == [404] * 6
    assert guess(service, 1, "2001:db8:1:3::1") == [404]
    assert guess(service, 1, "2001:db8:1:2:ffff::9") == [429]


# The client's address


def behind(*addresses):
    return {"X-Forwarded-For": ", ".join(addresses)}


def test_a_trusted_proxy_names_the_client(service, few):
    assert guess(service, 7, PROXY, behind(SENDER)) == [404] * 6 + [429]
    assert guess(service, 1, PROXY, behind(OTHER_SENDER)) == [404]
    assert guess(service, 1, SENDER) == [429]


def test_no_other_header_names_the_client(service, few):
    names = ("X-Real-IP", "Forwarded", "X-Client-IP", "CF-Connecting-IP")
    answers = guess(service, 7, PROXY, lambda number: dict.fromkeys(names, f"198.51.100.{number}") | behind(SENDER))
    assert answers == [404] * 6 + [429]
