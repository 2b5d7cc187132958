"""Events of alerts that repeat until they are acknowledged."""

import pytest

from core import alarms
from tests.support.alarms import acknowledge, detail, every, rung
from tests.support.holding import digest_of, shown
from tests.support.ntfy_app import add_phone
from tests.support.rows import each

FIELDS = (
    *("--title", "{{ m }}", "--body", "b", "--tag", "{{ t }}", "--priority", "{{ p }}"),
    *("--resolved-when", "s = resolved"),
)


@pytest.fixture
def hook(service, owner):
    return service.alert(*FIELDS, "--repeat-urgent")


@pytest.fixture
def minutes(service, moved_clock):
    """Let some minutes pass, and the worker work after each."""
    return lambda count=1: every(service, moved_clock, 60, count)


def post(hook, message="down", tag="web", priority="urgent", **more):
    answer = hook.post({"m": message, "t": tag, "p": priority, **more})
    assert answer.status_code == 200, answer.json
    return answer.json["notificationId"]


def titles(browser):
    return [title for title, _ in shown(browser)]


@each("more", [{"priority": "high"}, {"s": "resolved"}])
def test_other_events_do_not_repeat(owner, hook, browser, minutes, more):
    browser.messages.clear()
    id_ = post(hook, **more)
    pushed = len(browser.messages)
    minutes(2)
    assert len(browser.messages) == pushed
    assert "acknowledge" not in owner.get(f"/notifications/{id_}").json["notification"]


def test_an_event_that_resolves_it_ends_its_repeats_and_is_silent(owner, hook, browser, minutes):
    id_ = post(hook)
    minutes()
    resolved = post(hook, "up", s="resolved")
    minutes(3)
    assert rung(owner, id_) == ("cancelled", 1) and titles(browser) == ["MCP - down"] * 2 + ["MCP - up"]
    assert browser.messages[-1]["notification"]["silent"] is True
    assert "acknowledge" not in owner.get(f"/notifications/{resolved}").json["notification"]


def test_a_resolve_held_by_quiet_hours_ends_the_repeats_of_an_event_that_passed_them(
    owner, hook, browser, night, minutes
):
    hook.set("--urgent-passes-quiet-hours")
    id_ = post(hook)
    minutes()
    post(hook, "up", s="resolved")
    minutes(3)
    assert rung(owner, id_) == ("cancelled", 1) and titles(browser) == ["MCP - down"] * 2


def test_a_held_urgent_event_begins_to_repeat_in_the_morning(owner, hook, browser, night, minutes, morning):
    id_ = post(hook)
    minutes(3)
    assert (rung(owner, id_), browser.pushes) == (("waiting", 0), [])
    morning()
    minutes(2)
    assert (rung(owner, id_), titles(browser)) == (("waiting", 2), ["MCP - down"] * 3)


def test_an_urgent_event_of_a_digest_repeats_as_its_own_notification(owner, hook, browser, night, minutes, morning):
    ids = [post(hook, "down", "web"), post(hook, "full", "disk"), post(hook, "other", "x", "normal")]
    morning()
    assert shown(browser) == [digest_of("down: b", "full: b", "other: b")]
    minutes()
    assert sorted(titles(browser)[1:]) == ["MCP - down", "MCP - full"]
    assert [rung(owner, id_) for id_ in ids[:2]] == [("waiting", 1)] * 2


@pytest.mark.parametrize("refused, status", [(400, "failed"), (503, "pending")])
def test_an_event_whose_digest_no_device_has_is_delivered_by_a_repeat(
    owner, hook, browser, night, minutes, morning, refused, status
):
    id_, _ = post(hook), post(hook, "full", tag="disk", priority="normal")
    browser.then(refused, retry_after="7200")
    morning()
    assert detail(owner, id_)["status"] == status
    minutes()
    found = detail(owner, id_)
    assert (titles(browser), found["status"]) == (["MCP - down"], "delivered")
    assert [one["status"] for one in found["deliveries"]] == ["delivered"]
    acknowledge(owner, id_)
    assert detail(owner, id_)["status"] == "delivered"
    assert [one["status"] for one in owner.listed()] == [status, "delivered"]


def test_an_event_whose_digest_failed_is_delivered_when_an_app_fetches_its_repeat(
    owner, hook, browser, night, minutes, morning
):
    id_, _ = post(hook), post(hook, "full", tag="disk", priority="normal")
    browser.then(400).then(400)
    morning()
    phone = add_phone(owner)
    minutes()
    assert detail(owner, id_)["status"] == "failed"
    assert [one["title"] for one in phone.poll()] == ["MCP - down"]
    assert detail(owner, id_)["status"] == "delivered"


def test_an_event_resolved_while_held_never_repeats(owner, hook, browser, night, minutes, morning):
    id_ = post(hook)
    post(hook, "up", s="resolved")
    morning()
    minutes(2)
    assert rung(owner, id_) == ("cancelled", 0) and titles(browser) == ["MCP - up"]


def test_beyond_the_limit_of_waiting_alarms_an_event_is_pushed_without_repeating(owner, hook, browser, monkeypatch):
    monkeypatch.setattr(alarms, "MAX_WAITING", 2)
    ids = [post(hook, tag=f"{n}") for n in range(3)]
    assert len(browser.messages) == 3
    assert rung(owner, ids[0]) == ("waiting", 0)
    last = owner.get(f"/notifications/{ids[-1]}").json["notification"]
    assert last["priority"] == 5 and "acknowledge" not in last
