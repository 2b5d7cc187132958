"""A held notification that a newer one with its tag replaces."""

import pytest

from core import digests
from models import Account
from store.database import run
from tests.support.accounts import OWNER
from tests.support.alarms import detail
from tests.support.devices import subscribe
from tests.support.holding import digest_of, shown
from tests.support.times import HOUR_S, MINUTE_S

FIELDS = (
    *("--title", "{{ m }}", "--body", "{{ s }}", "--tag", "{{ t }}", "--priority", "{{ p }}"),
    *("--resolved-when", "s = resolved"),
)
PASSES = "--urgent-passes-quiet-hours"


@pytest.fixture
def hook(service, owner):
    return service.alert(*FIELDS)


def post(hook, message, tag="", status="firing", priority=""):
    answer = hook.post({"m": message, "t": tag, "s": status, "p": priority})
    assert answer.status_code == 200, answer.json
    return answer.json["notificationId"]


def by_title(caller):
    """The statuses by title."""
    return {one["title"].removeprefix("MCP - "): one["status"] for one in caller.listed("?limit=100")}


def test_firing_and_resolved_events_held_together_are_one_line(owner, hook, browser, night, morning):
    old, new = post(hook, "down", "web"), post(hook, "up", "web", "resolved")
    post(hook, "other")
    morning()
    assert shown(browser) == [digest_of("up: resolved", "other: firing")]
    assert by_title(owner) == {"down": "delivered", "up": "delivered", "other": "delivered"}
    assert detail(owner, old)["replacedBy"] == new and detail(owner, new)["priority"] == 2


def test_held_notifications_reduced_to_one_are_pushed_as_that_one(owner, hook, browser, night, morning):
    old, middle, new = (post(hook, f"{n}", "web") for n in range(3))
    morning()
    assert shown(browser) == [("MCP - 2", "firing")]
    assert by_title(owner) == {"0": "delivered", "1": "delivered", "2": "delivered"}
    assert [one["replacedBy"] for one in (detail(owner, old), detail(owner, middle))] == [middle, new]


def test_an_event_pushed_meanwhile_replaces_a_held_one_with_its_tag(service, owner, browser, night, morning):
    hook = service.alert(*FIELDS, PASSES)
    old = post(hook, "warning", "web", priority="normal")
    new = post(hook, "critical", "web", priority="urgent")
    assert by_title(owner) == {"warning": "delivered", "critical": "delivered"}
    assert detail(owner, old)["deliveries"] == detail(owner, new)["deliveries"]
    morning()
    assert shown(browser) == [("MCP - critical", "firing")]


def test_a_replaced_held_event_gets_the_status_of_its_replacement(service, owner, browser, night, passes):
    browser.then(503).then(503).then(503)
    hook = service.alert(*FIELDS, PASSES)
    post(hook, "warning", "web")
    post(hook, "critical", "web", priority="urgent")
    assert by_title(owner) == {"warning": "pending", "critical": "pending"}
    passes(HOUR_S)
    passes(HOUR_S)
    passes(HOUR_S)
    assert by_title(owner) == {"warning": "delivered", "critical": "delivered"}


def test_a_held_resolve_ends_the_pending_event_and_is_pushed_in_the_morning(
    service, owner, browser, night, morning, passes
):
    browser.then(503)
    hook = service.alert(*FIELDS, PASSES)
    post(hook, "down", "web", priority="urgent")
    post(hook, "up", "web", "resolved", priority="urgent")
    assert by_title(owner) == {"down": "failed", "up": "held"}
    passes(2 * MINUTE_S)
    morning()
    assert [title for title, _ in shown(browser)] == ["MCP - up"]


def test_a_notification_sent_with_a_key_replaces_a_held_event_with_its_tag(owner, hook, browser, night, morning):
    post(hook, "down", "web")
    sent = owner.post("/notifications/send", {"title": "fixed", "body": "by hand", "tag": "web"})
    assert sent.json["notification"]["status"] == "delivered"
    morning()
    assert shown(browser) == [("MCP - fixed", "by hand")] and by_title(owner)["down"] == "delivered"


def test_a_digest_that_is_pushed_again_leaves_out_what_was_replaced_meanwhile(
    owner, hook, browser, night, morning, works_at
):
    browser.then(503)
    old, _ = post(hook, "down", "web"), post(hook, "other")
    morning()
    new = post(hook, "up", "web", "resolved")
    assert by_title(owner) == {"down": "failed", "up": "delivered", "other": "pending"}
    assert detail(owner, old)["replacedBy"] == new
    works_at("2026-11-22T09:00")
    assert shown(browser) == [("MCP - up", "resolved"), ("MCP - 1 notification", "other: firing")]
    assert by_title(owner) == {"down": "failed", "up": "delivered", "other": "delivered"}


def test_a_digest_that_is_pushed_again_leaves_out_what_was_acknowledged_meanwhile(
    owner, hook, browser, night, morning, works_at
):
    browser.then(503)
    seen, _ = post(hook, "seen"), post(hook, "other")
    morning()
    assert owner.post(f"/notifications/{seen}/acknowledge").status_code == 200
    works_at("2026-11-22T09:00")
    digests_shown = [message for message in shown(browser) if "notification" in message[0]]
    assert digests_shown == [("MCP - 1 notification", "other: firing")]
    assert by_title(owner) == {"seen": "failed", "other": "delivered"} and "acknowledgedAt" in detail(owner, seen)


def test_acknowledging_a_replaced_event_leaves_its_replacement_that_is_still_tried(
    owner, hook, browser, night, morning, works_at
):
    browser.then(503)
    old, _ = post(hook, "down", "web"), post(hook, "up", "web", "resolved")
    morning()
    assert owner.post(f"/notifications/{old}/acknowledge").status_code == 200
    assert by_title(owner) == {"down": "pending", "up": "pending"}
    works_at("2026-11-22T09:00")
    assert shown(browser) == [("MCP - up", "resolved")] and by_title(owner) == {
        "down": "delivered",
        "up": "delivered",
    }


def test_what_leaves_a_digest_keeps_what_its_devices_said(owner, hook, browser, push_service, night, morning):
    late = subscribe(owner, push_service)
    late.then(503)
    seen, _ = post(hook, "seen"), post(hook, "other")
    morning()
    owner.post(f"/notifications/{seen}/acknowledge")
    assert [one["status"] for one in detail(owner, seen)["deliveries"]] == ["delivered", "failed"]
    assert by_title(owner) == {"seen": "delivered", "other": "delivered"}


def test_a_digest_that_a_device_shows_stays_although_nothing_is_left_to_push(
    owner, hook, browser, push_service, night, morning, works_at
):
    late = subscribe(owner, push_service)
    late.then(503)
    ids = [post(hook, "a"), post(hook, "b")]
    morning()
    (digest,) = run("SELECT id FROM notification WHERE is_digest = 1").fetchone()
    for id_ in ids:
        owner.post(f"/notifications/{id_}/acknowledge")
    works_at("2026-11-22T09:00")
    assert shown(browser)[0] == digest_of("a: firing", "b: firing") not in shown(late)
    assert run("SELECT status FROM notification WHERE id = ?", (digest,)).fetchone() == ("delivered",)


def test_a_digest_has_the_priority_of_what_is_left_of_it(owner, hook, browser, night, morning, works_at):
    browser.then(503)
    urgent, _ = post(hook, "urgent", priority="urgent"), post(hook, "low", priority="low")
    morning()
    owner.post(f"/notifications/{urgent}/acknowledge")
    works_at("2026-11-22T09:00")
    (message,) = [one["notification"] for one in browser.messages if "notification" in one["notification"]["title"]]
    assert message["body"] == "low: firing" and "requireInteraction" not in message


def test_a_digest_of_replaced_notifications_alone_is_not_pushed_again(owner, hook, browser, night, morning, works_at):
    browser.then(503)
    for tag in ("web", "mail"):
        post(hook, f"{tag} down", tag)
    morning()
    for tag in ("web", "mail"):
        post(hook, f"{tag} up", tag)
    works_at("2026-11-22T09:00")
    assert shown(browser) == [("MCP - web up", "firing"), ("MCP - mail up", "firing")]


def test_what_one_device_got_in_a_digest_stays_delivered_when_it_is_replaced(
    owner, hook, browser, push_service, night, morning, works_at
):
    late = subscribe(owner, push_service)
    late.then(503)
    post(hook, "down", "web")
    post(hook, "other")
    morning()
    post(hook, "up", "web", "resolved")
    works_at("2026-11-22T09:00")
    assert by_title(owner) == {"down": "delivered", "up": "delivered", "other": "delivered"}
    assert shown(browser) == [digest_of("down: firing", "other: firing"), ("MCP - up", "resolved")]
    assert shown(late) == [("MCP - up", "resolved"), ("MCP - 1 notification", "other: firing")]


def test_delivering_now_counts_the_lines_of_the_digest(owner, hook, browser, night, moved_clock):
    for message, tag in [("0", "web"), ("1", "web"), ("2", "")]:
        post(hook, message, tag)
    assert digests.release_now(Account.find(OWNER).seq) == 2


# --- deleting -----------------------------------------------------------------------------------------------


def delete(caller, id_):
    assert caller.delete(f"/notifications/{id_}").status_code == 200


def test_deleting_a_replaced_event_leaves_its_replacement(owner, hook, browser, night, morning):
    delete(owner, (post(hook, "down", "web"), post(hook, "up", "web", "resolved"))[0])
    morning()
    assert shown(browser) == [("MCP - up", "resolved")] and by_title(owner) == {"up": "delivered"}


def test_deleting_a_held_replacement_fails_the_event_it_replaced(owner, hook, browser, night, morning):
    post(hook, "down", "web")
    delete(owner, post(hook, "up", "web", "resolved"))
    assert by_title(owner) == {"down": "failed"}
    morning()
    assert browser.pushes == [] and by_title(owner) == {"down": "failed"}


def test_deleting_a_delivered_replacement_leaves_the_replaced_event_delivered(owner, hook, browser, night, morning):
    post(hook, "down", "web")
    new = post(hook, "up", "web", "resolved")
    morning()
    delete(owner, new)
    assert by_title(owner) == {"down": "delivered"}


def test_deleting_a_line_of_a_digest_counts_the_lines_that_are_left(owner, hook, browser, night, morning, works_at):
    browser.then(503)
    post(hook, "down", "web")
    post(hook, "up", "web", "resolved")
    other, _ = post(hook, "other"), post(hook, "more")
    morning()
    delete(owner, other)
    assert set(by_title(owner).values()) == {"pending"}
    works_at("2026-11-22T09:00")
    assert shown(browser)[-1] == digest_of("up: resolved", "more: firing")


def test_a_digest_with_only_replaced_events_is_removed(owner, hook, browser, night, morning, works_at):
    browser.then(503)
    post(hook, "down", "web")
    lines = [post(hook, "up", "web", "resolved"), post(hook, "other")]
    morning()
    for line in lines:
        delete(owner, line)
    works_at("2026-11-22T09:00")
    assert by_title(owner) == {"down": "failed"} and len(browser.messages) <= 1
