"""What needs an account's owner, and in which order."""

from itertools import pairwise

import pytest

from core import attention
from core.attention import Need, Watched, in_order
from models import Account
from process import clock
from tests.support.accounts import OTHER
from tests.support.alarms import acknowledge, every, ring, send_at
from tests.support.buttons import paths, press
from tests.support.devices import subscribe
from tests.support.heartbeats import EMAIL, Pinged
from tests.support.rows import each
from tests.support.rules import Ruled
from tests.support.tables import alter
from tests.support.times import DAY_S, HOUR_S, MINUTE_S

QUESTION = {"title": "Deploy?", "body": "now", "actions": [{"label": "Yes", "answer": "yes"}]}


def needs(email=EMAIL, is_secure=True):
    account = Account.find(email)
    return attention.needs(account, Watched.of(account.seq), is_secure, clock.now_ms())


def kinds(email=EMAIL):
    return [need.kind for need in needs(email)]


def ask(caller, **more):
    answer = caller.post("/notifications/send", QUESTION | more)
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]["id"]


@pytest.fixture
def browser(service, owner, push_service):
    """The owner's only device, which is known."""
    browser = subscribe(owner, push_service)
    alter(service, "UPDATE account SET known_device_seq = 9")
    return browser


@pytest.fixture
def only():
    """The only thing that needs the owner."""

    def one():
        (found,) = needs()
        return found

    return one


# --- the order ----------------------------------------------------------------------------------------------


SEVEREST_FIRST = ("alarm", "storage", "no device", "heartbeat", "rule", "question", "alert", "device", "provider")


@each("worse, better", [*pairwise(SEVEREST_FIRST), ("provider", "https"), ("https", "new device")])
def test_each_kind_of_problem_has_a_severity(worse, better):
    first = Need(worse, "", "", "", since=2)
    assert in_order([Need(better, "", "", "", since=1), first])[0] is first


def test_problems_of_one_kind_are_listed_oldest_first():
    found = [Need("rule", name, "", "", since) for name, since in (("a", 3), ("b", 1), ("c", 2))]
    assert [need.name for need in in_order(found)] == ["b", "c", "a"]


# --- what needs the owner -----------------------------------------------------------------------------------


def test_a_healthy_account_has_nothing_that_needs_attention(service, owner, browser):
    owner.send()
    Pinged(service, owner, "--period", "1h").ping()
    Ruled(service, owner, "> 90").sends(1)
    service.alert().post({"message": "x"})
    assert needs() == []


def test_problems_of_another_account_are_not_listed(service, owner, browser, moved_clock):
    Pinged(service, owner, "--period", "1h").ping("/fail")
    ring(owner)
    ask(owner)
    service.account(OTHER)
    assert kinds(OTHER) == []


def test_a_notification_that_repeats_needs_its_owner_until_it_is_acknowledged(owner, browser, only, moved_clock):
    rang = ring(owner)
    assert only() == Need("alarm", "Disk", "full", "", moved_clock.ms, (rang,))
    acknowledge(owner, rang)
    assert needs() == []


@each("repeats, said", [(1, "repeated once"), (6, "repeated 6 times")])
def test_it_says_how_often_a_notification_was_repeated(service, owner, browser, only, moved_clock, repeats, said):
    rang = ring(owner)
    for _ in range(repeats):
        every(service, moved_clock, MINUTE_S)
    assert only().why == said
    acknowledge(owner, rang)


def test_a_notification_that_is_not_repeating_needs_no_attention(service, owner, browser, moved_clock):
    ring(owner, for_s=60)
    every(service, moved_clock, 2 * MINUTE_S)
    send_at(owner, moved_clock.ms + 1000 * HOUR_S, acknowledge=True)
    assert needs() == []


def test_a_question_needs_its_owner_until_it_is_answered(service, owner, browser, only, moved_clock):
    asked = ask(owner)
    assert only() == Need("question", "Deploy?", "", "It waits for an answer", moved_clock.ms, (asked,))
    press(service, paths(browser)["Yes"])
    assert needs() == []


@each(
    "more",
    [{"actions": [{"label": '"answer":', "url": "https://a.b"}]}, {"deliverAt": 2_000_000_000_000}, {"tag": "t"}],
)
def test_a_notification_without_an_answer_button_needs_no_attention(owner, browser, more, moved_clock):
    moved_clock.ms = 1_999_999_000_000
    asked = ask(owner, **more)
    if "tag" in more:
        owner.post("/notifications/send", {"title": "newer", "body": "b", "tag": "t"})
    assert needs() == []
    owner.delete(f"/notifications/{asked}")


def test_a_question_needs_no_attention_once_it_or_its_buttons_expired(owner, browser, moved_clock):
    ask(owner, expiresAt=moved_clock.ms + 1000 * HOUR_S)
    ask(owner)
    moved_clock.advance(HOUR_S)
    assert kinds() == ["question"]
    moved_clock.advance(7 * DAY_S)
    assert kinds() == []


def test_a_repeating_question_is_listed_once(owner, browser):
    rang = ask(owner, acknowledge=True)
    assert kinds() == ["alarm"]
    acknowledge(owner, rang)
    assert kinds() == []


@each("signal, why", [("/fail", "Failed"), ("/3", "Failed with exit code 3"), ("", "No ping came in time")])
def test_a_heartbeat_that_is_down_needs_its_owner(service, owner, browser, only, signal, why, passes):
    beat = Pinged(service, owner, "--period", "1h")
    beat.ping(signal)
    if not signal:
        passes(2 * HOUR_S)
    assert only() == Need("heartbeat", "Backup", "is down", why, only().since, (beat.id,))
    beat.ping()
    assert needs() == []
    beat.run("delete", beat.id)


def test_a_late_or_paused_heartbeat_needs_no_attention(service, owner, browser, moved_clock):
    late, paused = (Pinged(service, owner, "--period", "1h", name=name) for name in "ab")
    late.ping()
    paused.ping("/fail")
    paused.run("pause", paused.id)
    every(service, moved_clock, HOUR_S + 1)
    assert late.state == "late" and needs() == []


def test_a_rule_that_fires_needs_its_owner(service, owner, browser, only, moved_clock):
    rule = Ruled(service, owner, "> 90")
    rule.sends(95)
    assert only() == Need("rule", "CPU", "is 95 %", "Rule “above 90 %” firing", moved_clock.ms, ("web", "cpu"))
    rule.sends(1)
    assert needs() == []


def test_a_rule_without_values_says_that_its_metric_is_silent(service, owner, browser, only, moved_clock):
    Ruled(service, owner, "silent 1h")
    every(service, moved_clock, HOUR_S)
    assert only()[1:4] == ("cpu", "is silent", "Rule “nothing for 1 h” firing")


def test_an_alert_that_a_flood_paused_needs_its_owner(service, owner, browser, only):
    service.alert(name="Doorbell")
    alter(service, "UPDATE alert SET is_active = 0, paused_at = 5")
    assert only()[:5] == ("alert", "Doorbell", "is paused", "It got too many requests", 5)


def test_a_device_that_gets_nothing_needs_its_owner(owner, browser, only, moved_clock):
    browser.then(413)
    owner.send()
    assert only()[2:5] == ("gets nothing", "The push service answered 413", moved_clock.ms)


def test_a_device_that_a_key_added_needs_its_owner_until_it_is_known(service, owner, push_service, only, moved_clock):
    subscribe(owner, push_service)
    said = Need("new device", "Web Push", "gets your notifications", "Added with the API key", moved_clock.ms)
    assert only() == said._replace(key="test")


def test_an_address_that_is_not_secure_needs_its_owner(owner, browser):
    assert [need.kind for need in needs(is_secure=False)] == ["https"]
