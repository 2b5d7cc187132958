"""Snoozes: when a notification is pushed again, what ends that, and what holds it then."""

import pytest

from core import alarms, answers, backoff, snoozes
from models import Account
from process import clock
from store import buttons, notifications
from store.database import EVERYBODY, transaction
from tests.support.accounts import OWNER
from tests.support.alarms import acknowledge, bodies, detail, ring, rung
from tests.support.buttons import ANSWERS, paths, press
from tests.support.commands import lines_of
from tests.support.devices import subscribe
from tests.support.followers import follower
from tests.support.heartbeats import Pinged
from tests.support.holding import digest_of, happens, held, shown, statuses
from tests.support.mutes import key_id, mute, unmute
from tests.support.rows import each
from tests.support.times import DAY_S, HOUR_S, MINUTE_S


def send(caller, body="finished", **more):
    """Send a notification, and return its id."""
    answer = caller.post("/notifications/send", {"title": "Backup", "body": body, **more})
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]["id"]


def snooze(caller, id_, for_s=HOUR_S):
    """Snooze a notification, and return it as it is answered."""
    answer = caller.post(f"/notifications/{id_}/snooze", {"forS": for_s})
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]


# --- when it is pushed again ----------------------------------------------------------------------------------


def test_it_is_pushed_again_once_exactly_at_its_time(owner, browser, passes, moved_clock):
    id_ = send(owner)
    snoozed = snooze(owner, id_)
    assert snoozed == {**detail(owner, id_), "snoozedUntil": moved_clock.ms + HOUR_S * 1000}
    passes(HOUR_S - 1)
    assert len(browser.pushes) == 1
    passes(1)
    assert bodies(browser) == ["finished"] * 2
    assert (detail(owner, id_)["status"], "snoozedUntil" in detail(owner, id_)) == ("delivered", False)
    passes(2 * DAY_S)
    assert len(browser.pushes) == 2 and len(owner.listed()) == 1


def test_a_second_snooze_replaces_the_first(owner, browser, passes):
    id_ = send(owner)
    snooze(owner, id_)
    passes(MINUTE_S)
    snooze(owner, id_, 2 * HOUR_S)
    passes(HOUR_S)
    assert len(browser.pushes) == 1
    passes(HOUR_S)
    assert len(browser.pushes) == 2
    snooze(owner, id_, 60)
    passes(60)
    assert len(browser.pushes) == 3


def test_accounts_are_pushed_to_in_turn_however_many_one_has_snoozed(service, owner, moved_clock, monkeypatch):
    bob = follower(service, owner, "key", key_id(owner))
    for caller in (owner, owner, owner, bob):
        snooze(caller, send(caller))
    moved_clock.advance(HOUR_S)
    monkeypatch.setattr(backoff, "ROWS_AT_ONCE", 2)
    assert snoozes.release_due(clock.now_ms())
    assert ["snoozedUntil" in detail(caller, caller.listed()[0]["id"]) for caller in (owner, bob)] == [True, False]


def test_it_goes_to_the_devices_that_there_are_then(owner, browser, push_service, passes):
    id_ = send(owner)
    snooze(owner, id_)
    other = subscribe(owner, push_service)
    passes(HOUR_S)
    assert (bodies(browser), bodies(other)) == (["finished"] * 2, ["finished"])
    assert [one["status"] for one in detail(owner, id_)["deliveries"]] == ["delivered"] * 2


def test_a_push_that_fails_then_is_retried_for_a_day(owner, browser, passes):
    id_ = send(owner)
    snooze(owner, id_, 7 * DAY_S)
    browser.then(503)
    passes(7 * DAY_S)
    assert detail(owner, id_)["status"] == "pending"
    passes(HOUR_S)
    assert (bodies(browser)[-1], detail(owner, id_)["status"]) == ("finished", "delivered")


def test_what_no_device_has_yet_is_not_tried_before(owner, browser, passes):
    browser.then(503)
    id_ = send(owner)
    tried = len(browser.pushes)
    snoozed = snooze(owner, id_)
    assert snoozed["deliveries"][0]["error"] == "It was snoozed before this device had it."
    passes(HOUR_S - 1)
    assert (len(browser.pushes), detail(owner, id_)["status"]) == (tried, snoozed["status"]) == (tried, "pending")
    passes(1)
    assert (len(browser.pushes), detail(owner, id_)["status"]) == (tried + 1, "delivered")


def test_a_device_that_has_it_not_yet_is_not_tried_before_though_another_has_it(owner, browser, push_service, passes):
    other = subscribe(owner, push_service).then(503)
    id_ = send(owner)
    snoozed = snooze(owner, id_)
    assert (snoozed["status"], [one["status"] for one in snoozed["deliveries"]]) == (
        "delivered",
        ["delivered", "failed"],
    )
    passes(HOUR_S - 1)
    assert bodies(other) == []
    passes(1)
    assert (bodies(browser), bodies(other)) == (["finished"] * 2, ["finished"])


def test_the_ntfy_app_does_not_fetch_it_before_though_a_browser_has_it(owner, browser, android, passes):
    snooze(owner, send(owner))
    assert android.bodies() == []
    passes(HOUR_S)
    assert android.bodies() == ["finished"]


@pytest.fixture
def pending_digest(owner, browser, passes):
    """Two that a mute held, in a digest that the phone refused for now: their ids."""
    mute(owner, for_s=60)
    ids = send(owner, "a", tag="t"), send(owner, "b")
    browser.then(503)
    passes(60)
    assert statuses(owner) == {"a": "pending", "b": "pending"}
    return ids


def test_a_digest_that_a_device_has_still_to_get_leaves_it_out(pending_digest, owner, browser, passes):
    snoozed = snooze(owner, pending_digest[0])
    assert (snoozed["status"], [one["status"] for one in snoozed["deliveries"]]) == ("pending", ["failed"])
    passes(MINUTE_S)
    assert shown(browser) == [("MCP - 1 notification", "Backup: b")]
    assert statuses(owner) == {"a": "pending", "b": "delivered"}
    passes(HOUR_S - MINUTE_S)
    assert shown(browser)[1:] == [("MCP - Backup", "a")] and statuses(owner)["a"] == "delivered"


def test_a_digest_of_snoozed_ones_alone_is_not_pushed_again(pending_digest, owner, browser, passes):
    for id_ in pending_digest:
        snooze(owner, id_)
    passes(HOUR_S - 1)
    assert (shown(browser), statuses(owner)) == ([], {"a": "pending", "b": "pending"})
    passes(1)
    assert sorted(bodies(browser)) == ["a", "b"]


@pytest.mark.parametrize("end", ["acknowledged", "replaced"])
def test_what_no_device_has_got_in_a_digest_and_is_done_with_by_then_has_failed(pending_digest, owner, passes, end):
    snooze(owner, pending_digest[0])
    if end == "acknowledged":
        acknowledge(owner, pending_digest[0])
    else:
        send(owner, "newer", tag="t")
    passes(HOUR_S)
    assert statuses(owner)["a"] == "failed"


@each("end", ["acknowledged", "answered", "replaced"])
def test_what_no_device_has_and_is_done_with_by_then_has_failed(owner, browser, passes, end):
    browser.then(503)
    id_ = send(owner, tag="t", actions=ANSWERS)
    snooze(owner, id_)
    if end == "acknowledged":
        acknowledge(owner, id_)
    elif end == "answered":
        with transaction(EVERYBODY):
            assert buttons.put_first_answer(notifications.find(1, id_, 0).seq, 0, 0, None, None)
    else:
        send(owner, "newer", tag="t")
    passes(HOUR_S)
    assert detail(owner, id_)["status"] == "failed"


def test_its_buttons_work_when_it_comes_again_a_week_later(service, owner, browser, passes):
    id_ = send(owner, actions=ANSWERS)
    passes(60)
    snooze(owner, id_, 7 * DAY_S)
    passes(7 * DAY_S)
    assert len(browser.messages) == 2 and press(service, paths(browser)["Yes"]).status_code == 200
    assert detail(owner, id_)["answer"]["label"] == "Yes"


# --- what ends it ---------------------------------------------------------------------------------------------


@each("begin", [ring, send])
@each("end", ["acknowledged", "answered", "replaced", "deleted"])
def test_what_is_done_with_is_not_pushed_again(service, owner, browser, passes, begin, end):
    id_ = begin(owner, tag="t", actions=ANSWERS)
    snooze(owner, id_)
    if end == "acknowledged":
        acknowledge(owner, id_)
    elif end == "answered":
        assert press(service, paths(browser)["No"]).status_code == 200
    elif end == "replaced":
        send(owner, "newer", tag="t")
    else:
        owner.delete(f"/notifications/{id_}")
    passes(2)
    pushed = len(browser.pushes)
    passes(HOUR_S)
    assert len(browser.pushes) == pushed
    if end != "deleted":
        assert "snoozedUntil" not in detail(owner, id_)


def test_repeats_end_until_then_and_begin_anew(owner, browser, passes):
    id_ = ring(owner, every_s=60, for_s=HOUR_S)
    passes(60)
    assert rung(owner, id_) == ("waiting", 1)
    snooze(owner, id_, 2 * HOUR_S)
    passes(60)
    passes(2 * HOUR_S - 61)
    assert rung(owner, id_) == ("waiting", 1) and len(browser.pushes) == 2
    passes(1)
    assert len(browser.pushes) == 3
    passes(60)
    assert rung(owner, id_) == ("waiting", 2) and len(browser.pushes) == 4


def test_one_that_repeats_and_has_expired_by_then_is_over_and_makes_room(
    owner, browser, passes, moved_clock, monkeypatch
):
    monkeypatch.setattr(alarms, "MAX_WAITING", 2)
    ids = [ring(owner, expiresAt=moved_clock.ms + 60_500) for _ in range(2)]
    for id_ in ids:
        snooze(owner, id_, 60)
    passes(61)
    assert {rung(owner, id_)[0] for id_ in ids} == {"expired"} and len(browser.pushes) == 2
    assert ring(owner)


# --- what holds it then ---------------------------------------------------------------------------------------


@each("end", ["acknowledged", "answered", "acknowledged as it repeats"])
@each("others", [0, 1])
def test_what_is_done_with_while_a_mute_holds_it_is_not_pushed_again(service, owner, browser, passes, end, others):
    before = len(browser.pushes)
    id_ = (ring if "repeats" in end else send)(owner, actions=ANSWERS)
    snooze(owner, id_, 60)
    mute(owner, for_s=600, urgentPasses=False)
    passes(60)
    assert detail(owner, id_)["status"] == "held"
    for _ in range(others):
        send(owner, "other")
    if end == "answered":
        assert press(service, paths(browser)["Yes"]).status_code == 200
    else:
        acknowledge(owner, id_)
    found = detail(owner, id_)
    assert (found["status"], [one["status"] for one in found["deliveries"]]) == ("delivered", ["delivered"])
    passes(600)
    assert len(browser.pushes) == before + 1 + others


def test_what_another_account_has_answered_is_not_pushed_again_to_a_follower_who_snoozed_it(service, owner, passes):
    bob = follower(service, owner, "key", key_id(owner))
    id_ = send(owner, actions=ANSWERS)
    (copy,) = bob.listed()
    snooze(bob, copy["id"], 60)
    mute(bob, for_s=600)
    passes(60)
    assert detail(bob, copy["id"])["status"] == "held"
    answers.answer(Account.find(OWNER), id_, 0)
    assert detail(bob, copy["id"])["status"] == "delivered"


@each("what", ["all", "key"])
def test_a_mute_holds_it(owner, browser, passes, what):
    browser.messages.clear()
    id_ = send(owner)
    snooze(owner, id_)
    muted = mute(owner, what, key_id(owner) if what == "key" else None, 2 * HOUR_S)
    passes(HOUR_S)
    assert (bodies(browser), detail(owner, id_)["status"]) == (["finished"], "held")
    unmute(owner, muted)
    passes(1)
    assert (bodies(browser), detail(owner, id_)["status"]) == (["finished"] * 2, "delivered")


def test_a_mute_holds_one_that_came_in_a_digest_too(owner, browser, passes):
    mute(owner, for_s=60)
    id_, _ = send(owner, "a"), send(owner, "b")
    passes(60)
    snooze(owner, id_)
    mute(owner, for_s=HOUR_S + 60)
    passes(HOUR_S)
    assert statuses(owner) == {"a": "held", "b": "delivered"}
    passes(60)
    assert bodies(browser)[1:] == ["a"] and statuses(owner)["a"] == "delivered"


def test_quiet_hours_hold_it_as_an_event_whoever_sent_it(service, owner, browser, night, works_at):
    hook, passing = service.alert("--follow-quiet-hours"), service.alert("--ignore-quiet-hours", name="Always")
    service.flask("send", OWNER, "Note", "by hand")
    ids = {one["body"]: one["id"] for one in owner.listed()} | {"sent": send(owner, "sent")}
    ids["passing"] = passing.post({"message": "passing"}).json["notificationId"]
    for id_ in ids.values():
        snooze(owner, id_)
    held(hook, "event")
    works_at("2026-11-22T00:00")
    assert statuses(owner) == {"by hand": "held", "sent": "held", "passing": "delivered", "event": "held"}
    works_at("2026-11-22T07:00")
    assert shown(browser)[-1] == digest_of("Note: by hand", "Backup: sent", "Backups: event")
    assert set(statuses(owner).values()) == {"delivered"}


def test_a_mute_of_a_heartbeat_holds_what_it_told(service, owner, browser, passes):
    beat = Pinged(service, owner, "--period", "1h")
    beat.ping("/fail")
    passes(1)
    (told,) = owner.listed()
    snooze(owner, told["id"])
    mute(owner, "heartbeat", beat.id, 2 * HOUR_S)
    passes(HOUR_S)
    assert detail(owner, told["id"])["status"] == "held"


@each("is_muted", [False, True])
def test_a_frequency_does_not_delay_it_even_after_a_mute(service, owner, browser, passes, is_muted):
    browser.messages.clear()
    hook = service.alert("--frequency", "1d")
    (id_,) = held(hook, "a")
    passes(DAY_S)
    snooze(owner, id_)
    if is_muted:
        mute(owner, for_s=HOUR_S + 100)
    passes(HOUR_S)
    held(hook, "b")
    passes(100 if is_muted else 0)
    assert bodies(browser) == ["a", "a"] and statuses(owner) == {"a": "delivered", "b": "held"}
    lines_of(service, "history", "delete", OWNER, "--before", "2999-12-31")


@each("quiet_hours", ["--ignore-quiet-hours", "--urgent-passes-quiet-hours"])
def test_a_mute_holds_it_no_longer_than_its_alert_has_it_held(service, owner, browser, night, passes, quiet_hours):
    browser.messages.clear()
    hook = service.alert(quiet_hours, "--priority", "urgent")
    (id_,) = happens(hook, "a")
    snooze(owner, id_)
    muted = mute(owner, "alert", hook.id, 2 * HOUR_S, urgentPasses=False)
    passes(HOUR_S)
    assert detail(owner, id_)["status"] == "held"
    unmute(owner, muted)
    passes(1)
    assert bodies(browser) == ["a", "a"]


def test_one_that_is_held_then_and_repeats_begins_to_when_it_is_released(owner, browser, passes):
    id_ = ring(owner)
    snooze(owner, id_)
    mute(owner, for_s=2 * HOUR_S, urgentPasses=False)
    passes(HOUR_S)
    passes(60)
    assert rung(owner, id_) == ("waiting", 0) and len(browser.pushes) == 1
    passes(HOUR_S)
    assert len(browser.pushes) == 2
    passes(60)
    assert rung(owner, id_) == ("waiting", 1) and len(browser.pushes) == 3


# --- what can be snoozed --------------------------------------------------------------------------------------


def test_what_cannot_be_pushed_again_is_refused_with_the_reason(service, owner, browser, moved_clock):
    mute(owner, "alert", (hook := service.alert()).id)
    (is_held,) = held(hook, "a")
    least, replaced = send(owner, priority=1), send(owner, tag="t")
    newer = send(owner, tag="t")
    seen = ring(owner)
    acknowledge(owner, seen)
    short = send(owner, expiresAt=moved_clock.ms + HOUR_S * 1000)
    for id_, status, part in (
        (is_held, 409, "held"),
        (least, 409, "priority 1"),
        (replaced, 409, "replaced"),
        (seen, 409, "acknowledged"),
        (short, 400, "expires"),
        (newer.replace(newer[-1], "0" if newer[-1] != "0" else "1"), 404, ""),
    ):
        answer = owner.post(f"/notifications/{id_}/snooze", {"forS": HOUR_S})
        assert (answer.status_code, part in answer.json["error"]) == (status, True), answer.json


WRONG = [*(("forS", {"forS": for_s}) for for_s in (59, 604_801, True, 60.0, "60", None, 10**40, -60, [60]))]
WRONG += [("until", {"forS": 60, "until": 1})]


def test_a_wrong_length_or_an_unknown_field_is_refused(owner, browser):
    id_ = send(owner)
    for field, sent in WRONG:
        answer = owner.post(f"/notifications/{id_}/snooze", sent)
        assert answer.status_code == 400 and field in answer.json["error"], sent


@each("body", [b"{", b'{"forS": 59}'])
def test_a_wrong_body_is_refused_before_the_notification_is_looked_for(owner, body):
    assert owner.post(f"/notifications/{'0' * 32}/snooze", data=body).status_code == 400


def test_what_the_history_no_longer_has_then_is_refused(service, owner, browser, moved_clock):
    id_ = send(owner)
    moved_clock.advance(29 * DAY_S)
    answer = owner.post(f"/notifications/{id_}/snooze", {"forS": 2 * DAY_S})
    assert (answer.status_code, "too old" in answer.json["error"]) == (400, True)
    assert snooze(owner, id_, HOUR_S)
