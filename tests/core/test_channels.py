"""Channels beside phones: what gets everything, and that a fallback is used once or not at all."""

import threading

import pytest

import push
from core import channels, retries
from process import clock
from store import database
from tests.support.alarms import detail
from tests.support.channels import add_webhook, device
from tests.support.devices import subscribe
from tests.support.ntfy_app import add_phone
from tests.support.outcomes import pass_time
from tests.support.push_service import Answer
from tests.support.rows import each
from tests.support.server import wait_until
from tests.support.webhooks import at_once


@pytest.fixture
def service(make_service, receiver, push_service, moved_clock):
    return make_service(CHANNEL_HOSTS=receiver.origin, WEBPUSH_HOSTS=push_service.origin)


@pytest.fixture
def hook(owner, receiver):
    """Adds a webhook at this path."""

    def add(path="/hook", **more):
        return add_webhook(owner, receiver.origin + path, **more)

    return add


def urgent(owner, **more):
    """Send something urgent; its status."""
    sent = {"title": "Disk", "body": "full", "priority": 5, **more}
    answer = owner.post("/notifications/send", sent)
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]


def answering(phone, status):
    """Let the phone's push service answer like this from now on."""
    phone.answers[:] = [Answer(status) for _ in range(50)]


def waiting():
    return database.run("SELECT count(*) FROM fallback").fetchone()[0]


# Defaults


def test_a_channel_is_a_fallback_for_high_priorities_unless_it_says_more(owner, hook):
    made = hook()
    assert {name: made[name] for name in ("role", "afterS", "minPriority", "preset", "confirmed", "name")} == {
        "role": "fallback",
        "afterS": 300,
        "minPriority": 4,
        "preset": "generic",
        "confirmed": True,
        "name": "Webhook",
    }
    assert made["secret"].startswith("whsec_") and "secret" not in device(owner, made["id"])


def test_a_phone_has_no_role(owner, browser):
    assert not {"role", "afterS", "preset", "confirmed"} & owner.get("/devices").json["devices"][0].keys()


# Always


def test_a_channel_for_everything_gets_it_with_the_phones(owner, receiver, hook, browser):
    hook(role="always", minPriority=1)
    assert owner.send().json["notification"]["status"] == "delivered"
    assert len(receiver.got) == 1 and browser.pushes


def test_a_retry_gives_a_slow_webhook_twenty_seconds_and_keeps_no_phone_waiting(
    owner, receiver, hook, browser, moved_clock, monkeypatch
):
    hook(role="always", minPriority=1)
    browser.then(503)
    receiver.answers["/hook"] = (503,)
    sent = owner.send().json["notification"]
    send, waits, may_answer = push.send, {}, threading.Event()
    monkeypatch.setattr(push, "send", lambda some, wait_s: waits.update({some[0].kind: wait_s}) or send(some, wait_s))
    receiver.answers.clear()
    receiver.before_answer = may_answer.wait
    moved_clock.advance(31)
    retries.retry_due(moved_clock.ms)
    wait_until(lambda: len(receiver.got) == 2)
    retries.batches.finish()
    statuses = {one["kind"]: one["status"] for one in detail(owner, sent["id"])["deliveries"]}
    assert statuses == {"webpush": "delivered", "webhook": "pending"}
    may_answer.set()
    retries.slow_batches.finish()
    assert owner.listed()[0]["status"] == "delivered" and len(receiver.got) == 2
    assert {one["status"] for one in detail(owner, sent["id"])["deliveries"]} == {"delivered"}
    assert waits == {"webpush": 4.5, "webhook": 20}


# Fallback


def test_a_fallback_gets_nothing_that_a_phone_took(service, owner, receiver, hook, browser, moved_clock):
    hook()
    assert urgent(owner)["status"] == "delivered" and waiting() == 1
    pass_time(service, moved_clock, 301)
    assert not receiver.got and waiting() == 0


def test_a_fallback_gets_what_no_phone_took_in_its_time(service, owner, receiver, hook, push_service, moved_clock):
    phone = subscribe(owner, push_service)
    hook(afterS=60)
    answering(phone, 503)
    for seconds in (30, 29):
        assert urgent(owner)["status"] == "pending"
        pass_time(service, moved_clock, seconds)
    assert not receiver.got
    pass_time(service, moved_clock, 2)
    assert (len(receiver.got), waiting()) == (1, 1)
    pass_time(service, moved_clock, 120)
    assert (len(receiver.got), waiting()) == (2, 0)
    assert {one["status"] for one in owner.listed()} == {"delivered"}


@pytest.mark.parametrize("refused", [400, 410])
def test_a_fallback_gets_it_at_once_if_every_phone_refused_it_or_is_gone(
    service, owner, receiver, hook, push_service, refused
):
    phone = subscribe(owner, push_service)
    hook(), hook("/later", afterS=600)
    answering(phone, refused)
    assert urgent(owner)["status"] == "pending"
    service.work()
    assert len(receiver.at("/hook")) == len(receiver.got) == 1 and owner.listed()[0]["status"] == "delivered"


def test_a_fallback_waits_for_a_channel_that_gets_everything(service, owner, receiver, hook, moved_clock):
    hook("/chat", role="always")
    hook("/second")
    receiver.answers["/chat"] = (503,)
    assert urgent(owner)["status"] == "pending" and not receiver.at("/second")
    pass_time(service, moved_clock, 301)
    assert len(receiver.at("/second")) == 1


def test_fallbacks_take_turns_until_one_has_it(service, owner, receiver, hook, moved_clock):
    hook("/first", afterS=60)
    hook("/second", afterS=120)
    hook("/third", afterS=600)
    receiver.answers["/first"] = (503,)
    urgent(owner)
    assert [len(receiver.at(path)) for path in ("/first", "/second", "/third")] == [1, 0, 0]
    pass_time(service, moved_clock, 121)
    assert len(receiver.at("/second")) == 1
    pass_time(service, moved_clock, 600)
    assert not receiver.at("/third")


def test_the_next_fallback_gets_it_as_soon_as_the_first_one_refused(service, owner, receiver, hook, moved_clock):
    hook("/first", afterS=60)
    hook("/second", afterS=600)
    receiver.answers["/first"] = (404,)
    assert urgent(owner)["status"] == "pending"
    service.work()
    assert len(receiver.at("/second")) == 1


def test_a_fallback_waits_for_the_ntfy_app_to_fetch(service, owner, receiver, hook, moved_clock):
    phone = add_phone(owner)
    hook()
    urgent(owner)
    pass_time(service, moved_clock, 299)
    assert not receiver.got
    pass_time(service, moved_clock, 2)
    assert len(receiver.got) == 1
    urgent(owner)
    phone.poll()
    pass_time(service, moved_clock, 301)
    assert len(receiver.got) == 1


@each("end", ["acknowledged", "replaced", "deleted", "expired", "answered", "removed"])
def test_a_fallback_gets_nothing_that_has_ended_meanwhile(
    service, owner, receiver, hook, push_service, moved_clock, end
):
    phone = subscribe(owner, push_service)
    made = hook()
    answering(phone, 503)
    more = {
        "acknowledged": {"acknowledge": True},
        "replaced": {"tag": "disk"},
        "expired": {"expiresAt": moved_clock.ms + 200_000},
        "answered": {"actions": [{"label": "Yes", "answer": "yes"}]},
    }
    sent = urgent(owner, **more.get(end, {}))
    if end == "acknowledged":
        owner.post(f"/notifications/{sent['id']}/acknowledge")
    elif end == "replaced":
        answering(phone, 201)
        urgent(owner, tag="disk")
    elif end == "deleted":
        owner.delete(f"/notifications/{sent['id']}")
    elif end == "removed":
        owner.delete(f"/devices/{made['id']}")
    elif end == "answered":
        with database.transaction(1):
            find = "SELECT seq, 0, 1 FROM notification WHERE id = ?"
            database.run(f"INSERT INTO answer (notification_seq, position, answered_at) {find}", (sent["id"],))
    pass_time(service, moved_clock, 301)
    assert not receiver.got and waiting() == 0
    owner.delete(f"/devices/{phone.id}")


def test_a_repeat_goes_again_to_what_gets_everything_and_to_no_fallback(
    service, owner, receiver, hook, browser, moved_clock
):
    hook("/always", role="always")
    hook("/fallback")
    urgent(owner, acknowledge={"everyS": 60, "forS": 600})
    for _ in range(3):
        pass_time(service, moved_clock, 60)
    assert len(receiver.at("/always")) == 4 and not receiver.at("/fallback")


def test_a_fallback_gets_it_at_once_if_there_is_nothing_else_or_only_a_phone_in_its_quiet_hours(
    owner, receiver, hook, push_service
):
    hook()
    assert urgent(owner)["status"] == "delivered" and len(receiver.got) == 1
    subscribe(owner, push_service, quietHours="00:00-23:59")
    urgent(owner)
    assert len(receiver.got) == 2


def test_buttons_lead_somewhere_on_a_fallback_too(service, owner, receiver, hook, push_service, moved_clock):
    phone = subscribe(owner, push_service)
    hook()
    answering(phone, 400)
    urgent(owner, actions=[{"label": "Yes", "answer": "yes"}])
    service.work()
    url = receiver.got[0].json["actions"][0]["url"]
    path = url.removeprefix("http://127.0.0.1:8000")
    assert service.client.get(path).status_code == 200
    assert owner.listed()[0].get("answer") is None
    assert service.client.post(path).status_code == 200


# The last second, crashes, two processes


def test_the_outcome_of_an_attempt_under_way_is_waited_for_but_not_for_ever(
    service, owner, receiver, hook, push_service, moved_clock
):
    phone = subscribe(owner, push_service)
    hook(afterS=60)
    answering(phone, 503)
    urgent(owner)
    moved_clock.advance(61)
    channels.fall_back_due(clock.now_ms(), busy={1})
    assert waiting() == 1
    moved_clock.advance(30)
    channels.fall_back_due(clock.now_ms(), busy={1})
    assert waiting() == 0


def test_two_processes_decide_once(service, owner, receiver, hook, push_service, moved_clock):
    phone = subscribe(owner, push_service)
    hook(afterS=60)
    answering(phone, 503)
    urgent(owner)
    moved_clock.advance(61)
    now = clock.now_ms()
    at_once(4, lambda: (channels.fall_back_due(now, ()), database.give_back()))
    assert database.run("SELECT count(*) FROM delivery").fetchone()[0] == 2
    service.work()
    pass_time(service, moved_clock, 3_600)
    assert len(receiver.got) == 1


def test_a_crash_before_the_decision_is_written_loses_nothing_and_doubles_nothing(
    service, owner, receiver, hook, push_service, moved_clock, monkeypatch
):
    phone = subscribe(owner, push_service)
    hook(afterS=60)
    answering(phone, 503)
    urgent(owner)
    moved_clock.advance(61)
    with monkeypatch.context() as patch:
        patch.setattr(channels.notifications, "settle_all", lambda seqs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            channels.fall_back_due(clock.now_ms(), ())
    assert waiting() == 1
    service.work()
    pass_time(service, moved_clock, 3_600)
    assert len(receiver.got) == 1 and waiting() == 0


# Changing


@each(
    "changes, role, after_s",
    [
        ({"role": "always"}, "always", None),
        ({"afterS": 600}, "fallback", 600),
        ({"role": "fallback", "afterS": 60}, "fallback", 60),
        ({"role": "always", "afterS": 60}, "always", None),
        ({"name": "Chat"}, "fallback", 300),
    ],
)
def test_the_role_can_be_changed(owner, hook, changes, role, after_s):
    made = hook()
    changed = owner.patch(f"/devices/{made['id']}", changes).json["device"]
    assert (changed["role"], changed["afterS"]) == (role, after_s)
    owner.delete(f"/devices/{made['id']}")


@each(
    "field, value, error",
    [
        ("role", "sometimes", 'role must be "always" or "fallback".'),
        ("role", 1, "role must be a string."),
        ("afterS", 59, "afterS must be a whole number of seconds from 60 to 3,600."),
        ("afterS", 3_601, "afterS must be a whole number of seconds from 60 to 3,600."),
        ("afterS", "300", "afterS must be a whole number of seconds from 60 to 3,600."),
        ("afterS", True, "afterS must be a whole number of seconds from 60 to 3,600."),
        ("minPriority", 6, None),
    ],
)
def test_a_wrong_value_is_named(owner, hook, receiver, field, value, error):
    made = hook()
    for answer in (
        owner.patch(f"/devices/{made['id']}", {field: value}),
        owner.post("/devices", {"kind": "webhook", "url": f"{receiver.origin}/b", field: value}),
    ):
        assert answer.status_code == 400 and (error is None or answer.json["error"] == error)
    assert len(owner.get("/devices").json["devices"]) == 1


def test_a_phone_takes_no_role(owner, browser):
    id_ = owner.get("/devices").json["devices"][0]["id"]
    answer = owner.patch(f"/devices/{id_}", {"role": "always"})
    assert (answer.status_code, answer.json["error"]) == (
        400,
        "role is for channels: a Web Push device gets everything at once.",
    )


def test_the_same_address_again_is_the_same_device_and_keeps_its_secret(owner, hook):
    made, again = hook(), hook(role="always")
    assert again["id"] == made["id"] and again["role"] == "always" and "secret" not in again
    (kept,) = database.run("SELECT auth FROM device").fetchone()
    assert kept == made["secret"]


def test_a_snoozed_notification_goes_to_no_fallback_and_begins_anew_at_its_end(
    service, owner, receiver, hook, push_service, moved_clock
):
    phone = subscribe(owner, push_service)
    hook(afterS=600)
    answering(phone, 503)
    sent = urgent(owner)
    moved_clock.advance(60)
    assert owner.post(f"/notifications/{sent['id']}/snooze", {"forS": 3_600}).status_code == 200
    pass_time(service, moved_clock, 3_500)
    assert not receiver.got and waiting() == 0
    pass_time(service, moved_clock, 101)
    assert waiting() == 1
    pass_time(service, moved_clock, 601)
    service.work()
    assert len(receiver.got) == 1
    (got,) = receiver.got
    assert got.headers["webhook-id"] != sent["id"] and got.headers["webhook-id"].startswith(sent["id"])
