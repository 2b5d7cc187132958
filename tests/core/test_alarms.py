"""Alarms: notifications that repeat until they are acknowledged."""

import pytest

import push
from core import alarms, scheduler
from store import alarms as stored_alarms
from store import database
from tests.support.alarms import acknowledge, bodies, detail, every, ring, rung, send_at
from tests.support.devices import subscribe
from tests.support.rows import each
from tests.support.times import HOUR_S
from tests.support.webhooks import at_once


@pytest.fixture
def rings(owner, browser):
    """The id of a notification that repeats each minute for an hour, and was pushed once."""
    return ring(owner)


@pytest.fixture
def passes(service, moved_clock):
    return lambda seconds, times=1: every(service, moved_clock, seconds, times)


# --- repeating ----------------------------------------------------------------------------------------------


def test_an_alarm_is_pushed_again_as_it_was_until_it_is_acknowledged(owner, browser, rings, passes):
    passes(59)
    assert (rung(owner, rings), len(browser.messages)) == (("waiting", 0), 1)
    passes(1)
    passes(60)
    assert (rung(owner, rings), bodies(browser)) == (("waiting", 2), ["full"] * 3)
    assert browser.messages == [browser.messages[0]] * 3
    assert [(push["topic"], push["urgency"]) for push in browser.pushes] == [(rings, "high")] * 3
    acknowledge(owner, rings)
    passes(60, 5)
    assert rung(owner, rings) == ("acknowledged", 2)
    assert bodies(browser) == ["full"] * 3 + ["Acknowledged."]


def test_alarms_repeat_for_their_duration_and_then_expire_though_they_began_at_once(owner, browser, passes):
    id_, other = (ring(owner, every_s=30, for_s=90) for _ in range(2))
    passes(30, 3)
    assert rung(owner, id_) == rung(owner, other) == ("waiting", 3)
    passes(1)
    assert (rung(owner, id_), len(browser.messages)) == (("expired", 3), 8)
    passes(30, 3)
    assert len(browser.messages) == 8


def test_an_alarm_repeats_at_most_50_times(owner, browser, passes, monkeypatch):
    assert alarms.MAX_REPEATS == 50
    monkeypatch.setattr(alarms, "MAX_REPEATS", 5)
    id_ = ring(owner, every_s=30, for_s=10_800)
    passes(30, 7)
    assert (rung(owner, id_), len(browser.messages)) == (("expired", 5), 6)


def test_an_alarm_does_not_repeat_after_it_expires(owner, browser, passes, moved_clock):
    id_ = ring(owner, expiresAt=moved_clock.ms + 90_000)
    passes(60)
    passes(30)
    assert (rung(owner, id_), len(browser.messages)) == (("expired", 1), 2)


def test_after_downtime_an_alarm_repeats_once_and_then_at_its_interval(owner, browser, passes):
    id_ = ring(owner)
    passes(1_000)
    passes(59)
    assert rung(owner, id_) == ("waiting", 1)
    passes(1)
    assert rung(owner, id_) == ("waiting", 2)


@pytest.mark.parametrize("hours, repeats", [(-5, 0), (5, 1)])  # in the first minute
def test_setting_the_clock_stops_no_alarm(service, owner, browser, rings, passes, moved_clock, hours, repeats):
    service.work()
    moved_clock.set_wall(moved_clock.ms + hours * HOUR_S * 1000)
    passes(59)
    assert rung(owner, rings) == ("waiting", repeats)
    passes(1)
    assert rung(owner, rings) == ("waiting", 1)
    passes(3541)
    passes(60)
    assert rung(owner, rings)[0] == "expired"


# --- what becomes of the deliveries ------------------------------------------------------------------------


@each("refused, status", [(503, "pending"), (413, "failed")])
def test_an_accepted_repeat_delivers_a_pending_or_failed_alarm(owner, browser, passes, refused, status):
    browser.messages.clear()
    browser.then(refused, retry_after="7200")
    id_ = ring(owner)
    assert detail(owner, id_)["status"] == status
    passes(60)
    found = detail(owner, id_)
    (delivery,) = found["deliveries"]
    assert (found["status"], delivery["status"], "error" in delivery) == ("delivered", "delivered", False)
    passes(7200)
    assert len(browser.messages) == 1  # no retry came


def test_a_refused_repeat_leaves_the_alarm_delivered_and_the_next_repeat_is_its_retry(owner, browser, rings, passes):
    for number, status in enumerate((503, 413, 403), 1):
        browser.then(status)
        passes(60)
        found = detail(owner, rings)
        assert (found["status"], found["deliveries"][0]["status"]) == ("delivered", "delivered")
        (device,) = owner.get("/devices").json["devices"]
        assert str(status) in device["lastError"] and found["repeats"] == 2 * number - 1
        passes(30)
        assert len(browser.pushes) == 2 * number
        passes(30)
        assert (len(browser.messages), rung(owner, rings)) == (number + 1, ("waiting", 2 * number))


def test_a_repeat_removes_a_device_whose_subscription_is_gone(owner, browser, rings, passes):
    browser.then(410)
    passes(60)
    assert owner.get("/devices").json["devices"] == []
    assert detail(owner, rings)["status"] == "delivered"
    passes(60)
    assert len(browser.pushes) == 2


# --- acknowledging ------------------------------------------------------------------------------------------


def test_acknowledging_an_alarm_replaces_it_silently_on_the_devices(owner, browser, rings, service, moved_clock):
    moved_clock.advance(20)
    acknowledge(owner, rings)
    service.work()
    shown = browser.messages[1]["notification"]
    assert (shown["title"], shown["body"], shown["silent"]) == ("MCP - Disk", "Acknowledged.", True)
    assert (browser.pushes[1]["topic"], browser.pushes[1]["urgency"]) == (rings, "low")


def test_acknowledging_on_one_device_pushes_its_name_to_the_others_only(
    service, owner, push_service, browser, moved_clock
):
    other, id_ = subscribe(owner, push_service), ring(owner)
    first = owner.get("/devices").json["devices"][-1]["id"]
    with database.transaction(database.EVERYBODY):
        find = "SELECT d.seq, d.account_seq, n.seq FROM device d, notification n WHERE d.id = ? AND n.id = ?"
        device_seq, account_seq, seq = database.run(find, (first, id_)).fetchone()
        database.run("UPDATE device SET name = 'Kitchen' WHERE seq = ?", (device_seq,))
        alarms.acknowledge(account_seq, seq, device_seq, moved_clock.ms)
    service.work()
    assert (bodies(browser), bodies(other)) == (["full"], ["full", "Acknowledged on Kitchen."])


def test_a_device_that_never_got_what_is_acknowledged_gets_nothing_any_more(owner, browser, passes):
    browser.then(503)
    id_ = ring(owner)
    acknowledge(owner, id_)
    passes(30, 4)
    assert bodies(browser) == []
    assert detail(owner, id_)["deliveries"][0]["error"] == "It was acknowledged before this device had it."


def test_acknowledging_an_expired_alarm_is_recorded(owner, browser, passes, moved_clock):
    id_ = ring(owner, every_s=30, for_s=30)
    passes(30)
    passes(30)
    assert rung(owner, id_) == ("expired", 1)
    assert acknowledge(owner, id_)["acknowledgedAt"] == moved_clock.ms
    passes(1)
    assert (rung(owner, id_), bodies(browser)[-1]) == (("acknowledged", 1), "Acknowledged.")


def test_a_failed_push_of_acknowledged_is_not_tried_again(owner, browser, rings, passes):
    acknowledge(owner, rings)
    browser.then(503)
    passes(1)
    passes(30, 4)
    assert len(browser.pushes) == 2


# --- other ends ---------------------------------------------------------------------------------------------


@each("when", ["before", "after"])
def test_acknowledging_a_replaced_alarm_pushes_nothing(owner, browser, passes, when):
    browser.messages.clear()
    id_ = ring(owner, every_s=30, for_s=30, tag="disk")
    passes(90)
    assert rung(owner, id_) == ("expired", 0)
    if when == "before":
        acknowledge(owner, id_)
    owner.post("/notifications/send", {"title": "Disk", "body": "free", "tag": "disk"})
    acknowledge(owner, id_)
    passes(30, 2)
    assert bodies(browser) == ["full", "free"]


# --- held first ---------------------------------------------------------------------------------------------


def test_an_alarm_acknowledged_while_held_is_pushed_once_and_does_not_repeat(owner, browser, passes, moved_clock):
    id_ = send_at(owner, moved_clock.ms + 90_000, acknowledge=True)
    assert acknowledge(owner, id_)["acknowledge"]["state"] == "acknowledged"
    passes(90)
    passes(60, 3)
    assert (rung(owner, id_), bodies(browser)) == (("acknowledged", 0), ["later"])


# --- how many -----------------------------------------------------------------------------------------------


def test_the_21st_waiting_alarm_is_refused_until_one_is_acknowledged(owner, browser):
    first, *_ = [ring(owner) for _ in range(20)]
    answer = owner.post("/notifications/send", {"title": "t", "body": "b", "acknowledge": True})
    assert (answer.status_code, answer.json["code"]) == (429, "RATE_LIMIT_EXCEEDED")
    assert answer.json["error"] == "20 notifications are not acknowledged yet: acknowledge or delete one first."
    assert owner.send().status_code == 200 and len(owner.listed()) == 21
    acknowledge(owner, first)
    ring(owner)


def test_an_alarm_that_replaces_another_does_not_count_towards_the_limit(owner, browser, monkeypatch):
    monkeypatch.setattr(alarms, "MAX_WAITING", 3)
    for number in range(3):
        ring(owner, tag=f"disk {number}")
    ring(owner, tag="disk 1")


def test_an_idempotent_replay_is_accepted_at_the_limit_and_starts_no_alarm(owner, browser, passes, monkeypatch):
    monkeypatch.setattr(alarms, "MAX_WAITING", 3)
    sent = {"title": "t", "body": "b", "acknowledge": True}
    first, *_ = [owner.post("/notifications/send", sent, headers={"Idempotency-Key": str(n)}) for n in range(3)]
    again = owner.post("/notifications/send", sent, headers={"Idempotency-Key": "0"})
    assert (again.status_code, again.json) == (200, first.json)
    passes(60, 1)
    passes(0)
    assert len(browser.messages) == 6


# --- leases and other processes ----------------------------------------------------------------------------


def test_of_several_workers_one_makes_a_repeat(owner, browser, rings, passes, moved_clock):
    moved_clock.advance(60)
    due = stored_alarms.due(moved_clock.ms)
    (account_seq,) = {one.account_seq for one in due}
    at_once(8, lambda: alarms._push_due(account_seq, due))
    assert (len(browser.messages), rung(owner, rings)) == (2, ("waiting", 1))


def test_an_acknowledgement_during_a_repeat_is_pushed_after_the_repeat(
    service, owner, browser, rings, moved_clock, monkeypatch
):
    send = push.send

    def acknowledged_meanwhile(pushes, timeout_s):
        monkeypatch.setattr(push, "send", send)
        acknowledge(owner, rings)
        service.work()  # as another process does: "Acknowledged" overtakes the repeat
        return send(pushes, timeout_s)

    moved_clock.advance(60)
    due = stored_alarms.due(moved_clock.ms)
    monkeypatch.setattr(push, "send", acknowledged_meanwhile)
    alarms._push_due(due[0].account_seq, due)
    service.work()
    service.work()
    assert (bodies(browser)[-2:], rung(owner, rings)) == (["full", "Acknowledged."], ("acknowledged", 1))


def test_an_acknowledgement_during_the_first_push_is_pushed_after_it(service, owner, browser, monkeypatch):
    send = push.send

    def acknowledged_before_it_arrives(pushes, timeout_s):
        monkeypatch.setattr(push, "send", send)
        acknowledge(owner, owner.listed()[0]["id"])
        service.work()
        return send(pushes, timeout_s)

    monkeypatch.setattr(push, "send", acknowledged_before_it_arrives)
    id_ = ring(owner)
    for _ in range(2):
        service.work()
    assert bodies(browser) == ["full", "Acknowledged."]
    assert (rung(owner, id_), detail(owner, id_)["status"]) == (("acknowledged", 0), "delivered")


def test_a_repeat_that_raises_is_logged_and_made_when_its_lease_ends(
    owner, browser, rings, passes, monkeypatch, caplog
):
    def fault(attempts):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(alarms, "push_all", fault)
        passes(60)
    assert "A batch of repeats failed: ZeroDivisionError" in caplog.text
    passes(29)
    assert len(browser.messages) == 1
    passes(1)
    assert (len(browser.messages), rung(owner, rings)) == (2, ("waiting", 1))


def test_a_stored_acknowledgement_wakes_the_thread_that_pushes_it(owner, browser, rings):
    alarms.batches.due.clear()
    with database.transaction(1):
        acknowledge(owner, rings)
        assert not alarms.batches.due.is_set()
    assert alarms.batches.due.is_set()
    assert alarms.batches.due in [lane.wake for lane in scheduler.background.lanes]
