"""A held notification that a newer one with its tag replaces."""

import pytest

from core import digests
from models import Account
from tests.support.accounts import OWNER
from tests.support.alarms import detail
from tests.support.holding import MORNING, digest_of, shown
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


def test_firing_and_resolved_held_together_are_one_line(owner, hook, browser, night, until, works):
    old, new = post(hook, "down", "web"), post(hook, "up", "web", "resolved")
    post(hook, "other")
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("up: resolved", "other: firing")]
    assert by_title(owner) == {"down": "delivered", "up": "delivered", "other": "delivered"}
    assert detail(owner, old)["replacedBy"] == new and detail(owner, new)["priority"] == 2


def test_what_is_left_as_one_is_pushed_as_itself(owner, hook, browser, night, until, works):
    old, middle, new = (post(hook, f"{n}", "web") for n in range(3))
    until(MORNING)
    works()
    assert shown(browser) == [("MCP - 2", "firing")]
    assert by_title(owner) == {"0": "delivered", "1": "delivered", "2": "delivered"}
    assert [one["replacedBy"] for one in (detail(owner, old), detail(owner, middle))] == [middle, new]


def test_one_tag_of_two_alerts_has_one_line(service, owner, hook, browser, night, until, works):
    post(hook, "first", "web")
    post(service.alert(*FIELDS, name="Second"), "second", "web")
    post(hook, "other")
    until(MORNING)
    works()
    assert shown(browser) == [digest_of("second: firing", "other: firing")]


def test_one_that_is_pushed_meanwhile_stands_for_what_is_held(service, owner, browser, night, until, works):
    hook = service.alert(*FIELDS, PASSES)
    old = post(hook, "warning", "web", priority="normal")
    new = post(hook, "critical", "web", priority="urgent")
    assert by_title(owner) == {"warning": "delivered", "critical": "delivered"}
    assert detail(owner, old)["deliveries"] == detail(owner, new)["deliveries"]
    until(MORNING)
    works()
    assert shown(browser) == [("MCP - critical", "firing")]


def test_what_is_held_has_the_status_of_what_replaced_it(service, owner, browser, night, until, works, moved_clock):
    browser.then(503).then(503).then(503)
    hook = service.alert(*FIELDS, PASSES)
    post(hook, "warning", "web")
    post(hook, "critical", "web", priority="urgent")
    assert by_title(owner) == {"warning": "pending", "critical": "pending"}
    moved_clock.advance(HOUR_S)
    works()
    moved_clock.advance(HOUR_S)
    works()
    moved_clock.advance(HOUR_S)
    works()
    assert by_title(owner) == {"warning": "delivered", "critical": "delivered"}


def test_a_resolve_that_is_held_ends_what_is_pending_and_comes_in_the_morning(
    service, owner, browser, night, until, works, moved_clock
):
    browser.then(503)
    hook = service.alert(*FIELDS, PASSES)
    post(hook, "down", "web", priority="urgent")
    post(hook, "up", "web", "resolved", priority="urgent")
    assert by_title(owner) == {"down": "failed", "up": "held"}
    moved_clock.advance(2 * MINUTE_S)
    works()
    until(MORNING)
    works()
    assert [title for title, _ in shown(browser)] == ["MCP - up"]


def test_a_newer_one_that_is_sent_with_a_key_stands_for_what_is_held(owner, hook, browser, night, until, works):
    post(hook, "down", "web")
    sent = owner.post("/notifications/send", {"title": "fixed", "body": "by hand", "tag": "web"})
    assert sent.json["notification"]["status"] == "delivered"
    until(MORNING)
    works()
    assert shown(browser) == [("MCP - fixed", "by hand")] and by_title(owner)["down"] == "delivered"


def test_deliver_now_counts_the_lines(owner, hook, browser, night, moved_clock):
    for message, tag in [("0", "web"), ("1", "web"), ("2", "")]:
        post(hook, message, tag)
    assert digests.release_now(Account.find(OWNER).seq) == 2


# --- deleting -----------------------------------------------------------------------------------------------


def delete(caller, id_):
    assert caller.delete(f"/notifications/{id_}").status_code == 200


def test_deleting_the_older_one_leaves_the_newer_as_it_is(owner, hook, browser, night, until, works):
    delete(owner, (post(hook, "down", "web"), post(hook, "up", "web", "resolved"))[0])
    until(MORNING)
    works()
    assert shown(browser) == [("MCP - up", "resolved")] and by_title(owner) == {"up": "delivered"}


def test_deleting_the_newer_one_while_it_is_held_says_that_the_older_failed(
    owner, hook, browser, night, until, works
):
    post(hook, "down", "web")
    delete(owner, post(hook, "up", "web", "resolved"))
    assert by_title(owner) == {"down": "failed"}
    until(MORNING)
    works()
    assert browser.pushes == [] and by_title(owner) == {"down": "failed"}


def test_deleting_the_newer_one_after_its_delivery_leaves_the_older_delivered(
    owner, hook, browser, night, until, works
):
    post(hook, "down", "web")
    new = post(hook, "up", "web", "resolved")
    until(MORNING)
    works()
    delete(owner, new)
    assert by_title(owner) == {"down": "delivered"}


def test_deleting_a_line_of_a_digest_counts_the_lines_that_are_left(owner, hook, browser, night, until, works):
    browser.then(503)
    post(hook, "down", "web")
    post(hook, "up", "web", "resolved")
    other, _ = post(hook, "other"), post(hook, "more")
    until(MORNING)
    works()
    delete(owner, other)
    assert set(by_title(owner).values()) == {"pending"}
    until("2026-11-22T09:00")
    works()
    assert shown(browser)[-1] == digest_of("up: resolved", "more: firing")


def test_a_digest_of_which_only_replaced_ones_are_left_is_gone(owner, hook, browser, night, until, works):
    browser.then(503)
    post(hook, "down", "web")
    lines = [post(hook, "up", "web", "resolved"), post(hook, "other")]
    until(MORNING)
    works()
    for line in lines:
        delete(owner, line)
    until("2026-11-22T09:00")
    works()
    assert by_title(owner) == {"down": "failed"} and len(browser.messages) <= 1
