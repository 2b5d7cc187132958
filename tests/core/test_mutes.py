"""What mutes hold, what they keep to the history, what passes them, and what comes when they end."""

import pytest

from core import delivery, digests, pruning
from models import Account
from store.database import run
from store.senders import Owner
from tests.support.accounts import OWNER
from tests.support.alarms import acknowledge, bodies, detail, ring, send_at
from tests.support.devices import subscribe
from tests.support.heartbeats import Pinged, told
from tests.support.holding import digest_of, held, shown, statuses
from tests.support.mutes import key_id, mute, unmute
from tests.support.rows import each
from tests.support.times import HOUR_S, MINUTE_S
from wire.notification import Content

# --- what is muted ------------------------------------------------------------------------------------------


def send(caller, body="finished", **more):
    """The status of a notification that a key sends."""
    answer = caller.post("/notifications/send", {"title": "Backup", "body": body, **more})
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]["status"]


def test_a_mute_of_an_alert_holds_its_events_alone(service, owner, browser, passes):
    hook, other = service.alert(), service.alert(name="Other")
    mute(owner, "alert", hook.id)
    held(hook, "a", "b")
    assert other.post({"message": "c"}).json["status"] == "delivered" == send(owner)
    passes(HOUR_S)
    assert shown(browser)[2:] == [digest_of("Backups: a", "Backups: b")]
    assert set(statuses(owner).values()) == {"delivered"}


def test_a_mute_of_a_key_holds_what_it_sends(service, owner, browser, passes):
    other = service.caller(name="other")
    mute(owner, "key", key_id(owner))
    assert [send(owner, "a"), send(owner, "b"), send(other, "c")] == ["held", "held", "delivered"]
    assert service.alert().post({"message": "d"}).json["status"] == "delivered"
    passes(HOUR_S)
    assert shown(browser)[2:] == [digest_of("Backup: a", "Backup: b")]


def test_a_mute_of_everything_holds_everything_and_is_one_digest(service, owner, browser, passes, moved_clock):
    beat, hook = Pinged(service, owner, "--period", "1h"), service.alert()
    mute(owner)
    held(hook, "a")
    assert send(owner, "b") == "held"
    service.flask("send", OWNER, "Note", "c")
    beat.ping("/fail")
    passes(HOUR_S)
    (digest,) = browser.messages
    lines = digest["notification"]["body"].split("\n")
    assert lines[:3] == ["Backups: a", "Backup: b", "Note: c"] and "is down" in lines[3] and len(lines) == 4


def test_a_mute_of_a_heartbeat_or_a_rule_holds_what_it_tells(service, owner, browser, rule, passes):
    beat, other = Pinged(service, owner, "--period", "1h"), Pinged(service, owner, "--period", "1h", name="Other")
    mute(owner, "heartbeat", beat.id, 2 * HOUR_S - 1)
    mute(owner, "rule", rule.id)
    for happens in (lambda: beat.ping("/fail"), lambda: other.ping("/fail"), lambda: rule.sends(95)):
        happens()
    assert [title for title, _ in told(owner)] == ["Backup is down", "Other is down", "CPU is 95 %"]
    passes(1)
    assert [title for title, _ in shown(browser)] == ["MCP - Other is down"]
    passes(HOUR_S - 1)
    assert shown(browser)[1:] == [("MCP - CPU is 95 %", "Rule: > 90. Project: web.")]
    passes(HOUR_S)
    assert "MCP - Backup is down" in [title for title, _ in shown(browser)[2:]]


# --- hold and history ---------------------------------------------------------------------------------------


def test_what_is_kept_to_the_history_is_delivered_and_never_pushed(service, owner, browser, passes):
    hook = service.alert()
    mute(owner, "alert", hook.id, mode="history")
    event = hook.post({"message": "a"}).json
    assert event["status"] == "delivered"
    passes(2 * HOUR_S)
    assert browser.pushes == []
    assert [one["status"] for one in detail(owner, event["notificationId"])["deliveries"]] == ["quiet"]
    hook.post({"message": "b"})
    assert bodies(browser) == ["b"]


def test_what_is_kept_to_the_history_is_delivered_although_the_last_device_is_gone(owner, browser, passes):
    browser.then(410)
    assert send(owner) == "failed" == send(owner)
    mute(owner, mode="history")
    assert send(owner) == "delivered"


@pytest.mark.parametrize("first", ["hold", "history"])
def test_where_both_apply_it_is_held_and_comes_when_the_hold_ends(service, owner, browser, passes, first):
    hook = service.alert()
    modes = {"hold": ("all", None, HOUR_S), "history": ("alert", hook.id, 2 * HOUR_S)}
    for mode in (first, *(modes.keys() - {first})):
        mute(owner, *modes[mode], mode=mode)
    held(hook, "a")
    passes(HOUR_S)
    assert (bodies(browser), statuses(owner)) == (["a"], {"a": "delivered"})
    assert hook.post({"message": "b"}).json["status"] == "delivered"
    assert bodies(browser) == ["a"]


def test_the_history_is_stronger_than_quiet_hours_and_digests(service, owner, browser, night, passes):
    for options in (("--frequency", "1h"), ()):
        hook = service.alert(*options)
        mute(owner, "alert", hook.id, mode="history")
        assert hook.post({"message": "a"}).json["status"] == "delivered"
    passes(12 * HOUR_S)
    assert browser.pushes == []


@pytest.mark.parametrize("had", [0, 1])
def test_it_repeats_on_no_device_that_is_added_later_and_can_be_acknowledged(owner, push_service, passes, had):
    devices = [subscribe(owner, push_service) for _ in range(had)]
    mute(owner, mode="history", urgentPasses=False)
    id_ = ring(owner)
    devices.append(subscribe(owner, push_service))
    passes(MINUTE_S)
    assert acknowledge(owner, id_)["acknowledge"]["state"] == "acknowledged"
    passes(MINUTE_S)
    assert ([bodies(one) for one in devices], detail(owner, id_)["status"]) == ([[]] * len(devices), "delivered")


# --- priorities ---------------------------------------------------------------------------------------------


@each("urgent_passes, of_5", [(True, "delivered"), (False, "held"), (None, "delivered")])
def test_urgent_passes_unless_said_and_the_least_priority_is_never_held(owner, urgent_passes, of_5):
    muted = mute(owner, urgentPasses=urgent_passes)
    assert [send(owner, priority=number) for number in range(1, 6)] == ["delivered", "held", "held", "held", of_5]
    unmute(owner, muted)


def test_what_passes_the_mute_is_still_held_by_quiet_hours(service, owner, browser, night, works_at):
    hook = service.alert("--priority", "{{ p }}")
    mute(owner, "alert", hook.id, HOUR_S)
    hook.post({"message": "a", "p": "urgent"})
    works_at("2026-11-22T07:00")
    assert bodies(browser) == ["a"]


# --- when it ends -------------------------------------------------------------------------------------------


def test_it_ends_exactly_at_its_time(owner, moved_clock):
    mute(owner, for_s=60)
    moved_clock.advance(59.999)
    assert send(owner) == "held"
    moved_clock.advance(0.001)
    assert send(owner) == "delivered"


def test_what_quiet_hours_and_mutes_hold_together_is_one_digest_when_the_last_of_them_ends(
    service, owner, browser, night, until, works_at
):
    quiet, muted, collected = service.alert(), service.alert(name="Muted"), service.alert("--frequency", "1h")
    mute(owner, "alert", muted.id, 10 * HOUR_S)  # from 23:00 to 09:00
    held(quiet, "a")
    held(muted, "b", "c")
    until("2026-11-22T06:30")
    held(collected, "d")
    works_at("2026-11-22T07:00")
    assert shown(browser) == [("MCP - Backups", "a")]
    works_at("2026-11-22T07:30")
    assert shown(browser)[1:] == [("MCP - Backups", "d")]
    works_at("2026-11-22T09:00")
    assert shown(browser)[2:] == [digest_of("Muted: b", "Muted: c")]


def test_a_mute_made_while_something_is_held_holds_it_longer(service, owner, browser, night, until, works_at):
    hook = service.alert()
    held(hook, "a")
    until("2026-11-22T06:59")
    mute(owner, "alert", hook.id)
    works_at("2026-11-22T07:00")
    assert (browser.pushes, statuses(owner)) == ([], {"a": "held"})
    works_at("2026-11-22T07:59")
    assert bodies(browser) == ["a"]


def test_of_two_mutes_the_one_that_is_left_still_holds(owner, browser, works):
    key, everything = mute(owner, "key", key_id(owner)), mute(owner)
    send(owner, "a")
    unmute(owner, everything)
    works()
    assert browser.pushes == []
    unmute(owner, key)
    works()
    assert bodies(browser) == ["a"]


def test_what_a_deleted_alert_was_muted_for_is_released(service, owner, browser, works):
    hook = service.alert()
    mute(owner, "alert", hook.id)
    held(hook, "a")
    service.flask("alert", "delete", OWNER, hook.id)
    works()
    assert bodies(browser) == ["a"] and owner.get("/mutes").json["mutes"] == []


def test_deliver_now_delivers_what_is_muted_too(service, owner, browser):
    mute(owner)
    send(owner, "a")
    assert digests.release_now(Account.find(OWNER).seq) == 1
    service.work()
    assert bodies(browser) == ["a"]


# --- sends --------------------------------------------------------------------------------------------------


def test_a_scheduled_send_is_held_if_it_is_muted_when_its_time_comes(owner, browser, passes, moved_clock):
    at = moved_clock.ms + 30 * MINUTE_S * 1000
    ids = [send_at(owner, at, body) for body in "ab"]
    mute(owner, "key", key_id(owner))
    passes(30 * MINUTE_S)
    passes(1)
    assert (browser.pushes, {detail(owner, id_)["status"] for id_ in ids}) == ([], {"held"})
    passes(30 * MINUTE_S)
    assert shown(browser) == [digest_of("Later: a", "Later: b")]
    assert {detail(owner, id_)["status"] for id_ in ids} == {"delivered"}


def test_a_scheduled_send_whose_mute_ends_before_its_time_is_not_held(owner, browser, passes, moved_clock):
    send_at(owner, moved_clock.ms + 2 * HOUR_S * 1000)
    mute(owner)
    passes(2 * HOUR_S)
    assert bodies(browser) == ["later"]


def test_a_scheduled_send_that_is_due_while_it_is_muted_in_the_mode_history_is_not_pushed(
    owner, browser, passes, moved_clock
):
    id_ = send_at(owner, moved_clock.ms + MINUTE_S * 1000)
    mute(owner, mode="history")
    passes(MINUTE_S)
    passes(2 * HOUR_S)
    assert (browser.pushes, detail(owner, id_)["status"]) == ([], "delivered")


def test_a_held_send_goes_to_the_devices_that_were_chosen_for_it(service, owner, browser, push_service, passes):
    other = subscribe(owner, push_service)
    mute(owner)
    chosen = owner.get("/devices").json["devices"][0]["id"]
    sent = delivery.deliver(Owner.of(Account.find(OWNER)), Content("Note", "a"), device_ids=[chosen])
    assert sent.notification.status == "held"
    passes(HOUR_S)
    assert (bodies(other), bodies(browser)) == (["a"], [])


def test_a_held_send_that_expires_fails_at_its_time_and_is_in_no_digest(owner, browser, passes, moved_clock):
    mute(owner)
    soon = {"expiresAt": moved_clock.ms + MINUTE_S * 1000}
    assert [send(owner, "a", **soon), send(owner, "b"), send(owner, "c")] == ["held"] * 3
    passes(MINUTE_S)
    assert statuses(owner) == {"a": "failed", "b": "held", "c": "held"}
    passes(HOUR_S)
    assert shown(browser) == [digest_of("Backup: b", "Backup: c")]


def test_a_scheduled_send_that_is_muted_is_replaced_as_a_held_one(owner, browser, passes, moved_clock):
    send_at(owner, moved_clock.ms + MINUTE_S * 1000, "a", tag="t")
    mute(owner)
    passes(MINUTE_S)
    send(owner, "b", tag="t")
    passes(HOUR_S)
    assert bodies(browser) == ["b"] and statuses(owner) == {"a": "delivered", "b": "delivered"}


# --- the account's note that it has mutes --------------------------------------------------------------------


def has_mutes():
    return Account.find(OWNER).has_mutes


def test_an_account_without_mutes_is_known_to_have_none(service, owner, moved_clock):
    assert has_mutes() == 0
    muted = mute(owner)
    assert has_mutes() == 1
    unmute(owner, muted)
    assert has_mutes() == 0
    mute(owner, for_s=60)
    moved_clock.advance(60)
    assert owner.get("/mutes").json["mutes"] == [] and has_mutes() == 1
    pruning.prune(moved_clock.ms)
    assert (has_mutes(), run("SELECT count(*) FROM mute").fetchone()[0]) == (0, 0)


# --- clocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("back_s, status", [(10 * MINUTE_S, "held"), (365 * 86_400, "delivered")])
def test_a_clock_that_is_set_back_a_little_ends_no_mute_and_one_set_back_far_does(
    owner, browser, works, moved_clock, back_s, status
):
    mute(owner)
    send(owner, "a")
    moved_clock.set_wall(moved_clock.ms - back_s * 1000)
    works()
    assert statuses(owner) == {"a": status}


def test_in_quiet_hours_of_the_account_a_muted_send_is_released_as_nothing_else_holds_it(
    service, owner, browser, night, passes
):
    mute(owner, for_s=60)
    send(owner, "a")
    passes(60)
    assert bodies(browser) == ["a"]
