"""Devices that fetch: their deliveries wait for a day, and nothing is pushed to them."""

from tests.support.devices import subscribe
from tests.support.ntfy_app import add_phone
from tests.support.tables import query

HOUR_S = 3600


def delivery(owner, id_=None):
    """The status of the newest notification, or of one, and of its only delivery with the reason."""
    one = owner.get(f"/notifications/{id_ or owner.listed()[0]['id']}").json["notification"]
    (device,) = one["deliveries"]
    return one["status"], device["status"], device.get("error")


def test_a_notification_is_pending_until_it_is_fetched(owner, android, moved_clock):
    assert owner.send().json["notification"]["status"] == "pending"
    owner.service.work()
    assert delivery(owner) == ("pending", "pending", None)
    moved_clock.advance(5)
    android.poll()
    assert delivery(owner) == ("delivered", "delivered", None)
    assert owner.get("/devices").json["devices"][0]["lastDeliveredAt"] == moved_clock.ms


def test_fetching_a_notification_again_changes_nothing(owner, android, moved_clock):
    owner.send()
    android.poll()
    fetched = query(owner.service, "SELECT * FROM delivery")
    moved_clock.advance(5)
    assert len(android.messages("since=all")) == 1
    assert query(owner.service, "SELECT * FROM delivery") == fetched


def test_a_notification_that_nobody_fetches_fails_after_a_day(owner, android, moved_clock):
    owner.send()
    moved_clock.advance(24 * HOUR_S - 1)
    owner.service.work()
    assert delivery(owner)[0] == "pending"
    moved_clock.advance(2)
    owner.service.work()
    sentence = "The ntfy app did not fetch it within 24 hours."
    assert delivery(owner) == ("failed", "failed", sentence)
    assert android.poll() == []


def test_an_unfetched_delivery_fails_when_the_notification_expires(owner, push_service, moved_clock):
    subscribe(owner, push_service)
    android = add_phone(owner)
    sent = {"title": "t", "body": "b", "expiresAt": moved_clock.ms + 60_000}
    assert owner.post("/notifications/send", sent).json["notification"]["status"] == "delivered"
    moved_clock.advance(61)
    assert android.messages() == []
    owner.service.work()
    one = owner.get(f"/notifications/{owner.listed()[0]['id']}").json["notification"]
    assert one["status"] == "delivered"
    assert one["deliveries"][1]["error"] == "It expired before this device had it."


def test_a_replaced_notification_cannot_be_fetched(owner, android):
    for body in ("old", "new"):
        owner.post("/notifications/send", {"title": "t", "body": body, "tag": "disk"})
    assert android.bodies() == ["new"]
    assert [one["status"] for one in owner.listed()] == ["delivered", "failed"]


def test_priority_1_reaches_the_app_and_no_browser(owner, push_service):
    browser, android = subscribe(owner, push_service), add_phone(owner)
    owner.post("/notifications/send", {"title": "t", "body": "quiet", "priority": 1})
    assert android.bodies() == ["quiet"] and browser.messages == []
    assert [bool(one["lastDeliveredAt"]) for one in owner.get("/devices").json["devices"]] == [True, False]


def test_a_notification_of_priority_1_is_delivered_once_stored(owner, android, moved_clock):
    quiet = {"title": "t", "body": "quiet", "priority": 1}
    later = owner.post("/notifications/send", quiet | {"deliverAt": moved_clock.ms + 1000}).json["notification"]
    now = owner.post("/notifications/send", quiet).json["notification"]
    moved_clock.advance(2)
    owner.service.work()
    assert (later["status"], now["status"]) == ("held", "delivered")
    assert [delivery(owner, one["id"])[:2] for one in (later, now)] == [("delivered", "pending")] * 2
    moved_clock.advance(24 * HOUR_S + 1)
    owner.service.work()
    assert [delivery(owner, one["id"])[:2] for one in (later, now)] == [("delivered", "failed")] * 2


def test_the_least_priority_of_an_app_applies_to_priority_1_too(owner):
    android = add_phone(owner, minPriority=2)
    for priority in (1, 2):
        owner.post("/notifications/send", {"title": "t", "body": str(priority), "priority": priority})
    assert android.bodies() == ["2"]


def test_a_digest_is_fetched_as_one_message(owner, android, hook, moved_clock):
    hook.set("--frequency", "1h")
    for message in ("one", "two"):
        hook.post({"message": message})
    moved_clock.advance(HOUR_S + 1)
    owner.service.work()
    (digest,) = android.poll()
    assert digest["title"] == "MCP - 2 notifications"
    assert {one["status"] for one in owner.listed()} == {"delivered"}
