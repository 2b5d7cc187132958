"""Devices removed, notifications deleted or expired while a push is under way."""

import pytest

import push
from core import devices, fetching
from models import Device
from tests.support.accounts import OWNER
from tests.support.alarms import bodies, every, ring
from tests.support.devices import subscribe
from tests.support.holding import statuses
from tests.support.mutes import mute
from tests.support.outcomes import pass_time
from tests.support.rows import each
from tests.support.tables import query


@pytest.fixture
def meanwhile(monkeypatch):
    """Lets something happen when the providers have answered the next pushes, before their answers are stored."""
    send = push.send

    def let(happen):
        def answered(pushes, timeout_s):
            monkeypatch.setattr(push, "send", send)
            answers = send(pushes, timeout_s)
            happen()
            return answers

        monkeypatch.setattr(push, "send", answered)

    return let


def send(owner, key="order-1", **more):
    """The notification as it is answered."""
    sent = {"title": "Backup", "body": "finished", **more}
    answer = owner.post("/notifications/send", sent, headers={"Idempotency-Key": key})
    assert answer.status_code == 200
    return answer.json["notification"]


def stored(owner, notification):
    """Its status now, and that of each delivery."""
    one = owner.get(f"/notifications/{notification['id']}").json["notification"]
    assert owner.listed()[0]["status"] == one["status"]
    return one["status"], [delivery["status"] for delivery in one["deliveries"]]


def remove_first(owner):
    """Remove the device that was added first."""
    ((id_,), *_) = query(owner.service, "SELECT id FROM device WHERE removed_at IS NULL ORDER BY seq")
    assert owner.delete(f"/devices/{id_}").status_code == 200


# --- a device that its owner removes ------------------------------------------------------------------------


def test_a_delivery_to_a_device_removed_during_the_push_counts(owner, browser, meanwhile):
    meanwhile(lambda: remove_first(owner))
    sent = send(owner)
    assert (sent["status"], stored(owner, sent)) == ("delivered", ("delivered", ["delivered"]))
    assert send(owner) == sent and len(browser.messages) == 1


def test_a_delivery_to_a_removed_device_counts_when_all_other_devices_fail(
    service, owner, browser, push_service, moved_clock, meanwhile
):
    subscribe(owner, push_service).then(503).then(410)
    meanwhile(lambda: remove_first(owner))
    sent = send(owner)
    assert (sent["status"], stored(owner, sent)) == ("delivered", ("delivered", ["delivered", "pending"]))
    pass_time(service, moved_clock, 30)
    assert stored(owner, sent) == ("delivered", ["delivered", "failed"])


def test_a_retry_accepted_by_a_device_removed_meanwhile_counts(
    service, owner, browser, push_service, moved_clock, meanwhile
):
    browser.then(503)
    subscribe(owner, push_service).then(503).then(410)
    sent = send(owner)
    meanwhile(lambda: remove_first(owner))
    pass_time(service, moved_clock, 30)
    assert (sent["status"], stored(owner, sent)) == ("pending", ("delivered", ["delivered", "failed"]))


def test_a_fetch_by_an_app_removed_meanwhile_counts(owner, android, monkeypatch):
    note_fetched = fetching.note_fetched

    def late(taken, now):
        remove_first(owner)
        note_fetched(taken, now)

    monkeypatch.setattr(fetching, "note_fetched", late)
    sent = send(owner)
    assert android.bodies() == ["finished"]
    assert (sent["status"], stored(owner, sent)) == ("pending", ("delivered", ["delivered"]))


@each("refused", [410, 413, 503, 403])
def test_a_refusal_by_a_device_removed_meanwhile_leaves_no_delivery(
    service, owner, push_service, moved_clock, meanwhile, refused
):
    browser = subscribe(owner, push_service).then(refused)
    meanwhile(lambda: remove_first(owner))
    sent = send(owner, f"{refused}")
    assert (sent["status"], stored(owner, sent)) == ("delivered", ("delivered", []))
    pass_time(service, moved_clock, 3_600)
    assert (len(browser.pushes), stored(owner, sent)) == (1, ("delivered", []))


@each("refused", [410, 413, 503])
def test_a_refusal_by_a_removed_device_does_not_affect_other_devices(
    service, owner, push_service, moved_clock, meanwhile, refused
):
    browser = subscribe(owner, push_service).then(refused)
    subscribe(owner, push_service).then(503).then(410)
    meanwhile(lambda: remove_first(owner))
    sent = send(owner, f"{refused}")
    assert (sent["status"], stored(owner, sent)) == ("pending", ("pending", ["pending"]))
    pass_time(service, moved_clock, 30)
    assert (len(browser.pushes), stored(owner, sent)) == (1, ("failed", ["failed"]))


# --- a notification that is deleted -------------------------------------------------------------------------

DELETIONS = {
    "REST": lambda owner: owner.delete(f"/notifications/{owner.listed()[0]['id']}"),
    "command": lambda owner: owner.service.flask("history", "delete", OWNER, "--before", "2999-12-31"),
}


def left(service):
    """What is stored of notifications."""
    return [query(service, f"SELECT * FROM {table}") for table in ("notification", "delivery")]


@each("answer, status", [(201, "delivered"), (410, "failed"), (413, "failed"), (503, "failed")])
@each("by", DELETIONS)
def test_a_notification_deleted_during_its_push_is_answered_by_whether_a_device_accepted_it(
    service, owner, push_service, meanwhile, moved_clock, by, answer, status
):
    browser = subscribe(owner, push_service).then(answer)
    meanwhile(lambda: DELETIONS[by](owner))
    key, before = f"{by}-{answer}", owner.get("/stats").json["stats"]["totalNotificationsAllTime"]
    sent = send(owner, key)
    assert (sent["status"], owner.listed(), left(service)) == (status, [], [[], []])
    assert (send(owner, key), owner.get("/stats").json["stats"]["totalNotificationsAllTime"]) == (sent, before + 1)
    pass_time(service, moved_clock, 3_600)
    assert (len(browser.pushes), left(service)) == (1, [[], []])
    owner.delete(f"/devices/{browser.id}")


# --- one that expires ---------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["seen", "unseen"])
def expires(request, service, moved_clock, meanwhile):
    """When the next one expires, which is while it is pushed; the worker may see that before its push is answered."""

    def expire():
        moved_clock.advance(4)
        if request.param:
            service.work()

    def at():
        meanwhile(expire)
        return moved_clock.ms + 3_000

    return at


def test_a_notification_that_expires_while_a_device_accepts_it_is_delivered(owner, browser, expires):
    sent = send(owner, expiresAt=expires())
    assert (sent["status"], stored(owner, sent)) == ("delivered", ("delivered", ["delivered"]))


def test_a_delivery_in_time_counts_and_an_expired_notification_is_not_retried(
    service, owner, browser, push_service, moved_clock, expires
):
    other = subscribe(owner, push_service).then(503)
    sent = send(owner, expiresAt=expires())
    assert (sent["status"], stored(owner, sent)) == ("delivered", ("delivered", ["delivered", "failed"]))
    pass_time(service, moved_clock, 30)
    assert len(other.pushes) == 1


def test_a_delivery_ends_when_its_notification_expires_and_not_at_its_next_try(
    service, owner, browser, push_service, moved_clock
):
    subscribe(owner, push_service).then(503)
    sent = send(owner, expiresAt=moved_clock.ms + 10_000)
    assert (sent["status"], stored(owner, sent)[1]) == ("delivered", ["delivered", "pending"])
    pass_time(service, moved_clock, 10)
    assert stored(owner, sent) == ("delivered", ["delivered", "failed"])


@each("answer", [503, 403, 410, 0])
def test_a_notification_that_expires_before_any_delivery_fails(service, owner, push_service, expires, answer):
    browser = subscribe(owner, push_service).then(answer)
    sent = send(owner, f"{answer}", expiresAt=expires())
    assert (sent["status"], stored(owner, sent)) == ("failed", ("failed", ["failed"]))
    service.work()
    assert (len(browser.pushes), stored(owner, sent)) == (1, ("failed", ["failed"]))
    owner.delete(f"/devices/{browser.id}")


def test_a_notification_that_expires_during_a_retry_fails(service, owner, browser, moved_clock, meanwhile):
    browser.then(503).then(503)
    sent = send(owner, expiresAt=moved_clock.ms + 31_000)
    meanwhile(lambda: moved_clock.advance(2))
    pass_time(service, moved_clock, 30)
    assert (len(browser.pushes), stored(owner, sent)) == (2, ("failed", ["failed"]))
    assert query(service, "SELECT error FROM delivery") == [("It expired before this device had it.",)]


# --- a device that gets another subscription ----------------------------------------------------------------


def test_a_repeat_to_a_subscription_that_is_gone_does_not_remove_the_device_that_has_a_new_one(
    service, owner, push_service, browser, moved_clock, meanwhile
):
    ring(owner)
    ((device,), new) = Device.select(), push_service.browser()
    browser.then(410)
    meanwhile(lambda: devices.resync(device, new.subscription))
    every(service, moved_clock, 60, 2)
    assert [one["id"] for one in owner.get("/devices").json["devices"]] == [device.id]
    assert (len(browser.pushes), bodies(new)) == (2, ["full"])


# --- a notification that its owner snoozes or acknowledges --------------------------------------------------


@pytest.mark.parametrize("end", [("acknowledge", {}), ("snooze", {"forS": 60})], ids=lambda end: end[0])
def test_what_leaves_a_digest_during_its_retry_is_taken_with_it(owner, browser, passes, meanwhile, end):
    mute(owner, for_s=60)
    owner.send(body="a")
    owner.send(body="b")
    browser.then(503)
    passes(60)
    (path, sent), id_ = end, owner.listed()[0]["id"]
    meanwhile(lambda: owner.post(f"/notifications/{id_}/{path}", sent))
    passes(30)
    assert bodies(browser)[0] == "Backup: a\nBackup: b" and statuses(owner) == {"a": "delivered", "b": "delivered"}


def test_what_is_snoozed_during_a_push_that_fails_is_pending_until_it_is_done_with(owner, browser, passes, meanwhile):
    browser.then(503).then(503)
    sent = send(owner)
    meanwhile(lambda: owner.post(f"/notifications/{sent['id']}/snooze", {"forS": 3600}))
    passes(30)
    assert stored(owner, sent) == ("pending", ["failed"])
    owner.post(f"/notifications/{sent['id']}/acknowledge")
    assert stored(owner, sent) == ("failed", ["failed"])
