"""The page of one notification: where it came from, what became of it, held ones, digests."""

import re

from tests.support.accounts import OWNER, account_set
from tests.support.pages import HISTORY, Page, alone, device_ids, event, notification_page, only_id
from tests.support.rows import each
from tests.support.times import DAY_S
from web import rate_limits

# --- one notification: where it came from -------------------------------------------------------------------


def test_a_notification_is_shown_whole(owner, caller):
    body = "line 1\n  line 2\n" + "x" * 9000
    sent = caller.send("Disk", body).json["notification"]
    page = notification_page(owner, sent["id"])
    assert page.texts_of("h1") == ["Disk"] and " ".join(body.split()) in page.texts_of("p")
    assert "2026-11-21 10:00" in page.text and "backup script" in page.text


def test_a_notification_names_its_alert_and_says_when_that_is_deleted(service, owner):
    hook = service.alert(name="Doorbell")
    notification_id = event(hook, title="x", message="y")
    assert "Doorbell" in notification_page(owner, notification_id).text
    service.flask("alert", "delete", OWNER, hook.id)
    page = notification_page(owner, notification_id)
    assert "Deleted alert" in page.text and "Doorbell" not in page.text
    assert "Deleted alert" in owner.page(HISTORY).text


@each("tried", ["0" * 32, "x", "%00", "%ff", "1", "x" * 5000])
def test_an_unknown_notification_is_a_404_with_a_sentence(owner, tried):
    answer = owner.get(f"{HISTORY}/{tried}")
    assert answer.status_code == 404 and Page(answer.text).texts_of("p")[0].endswith(".")


# --- one notification: what became of it --------------------------------------------------------------------


def test_a_device_that_took_it_says_when(owner, caller, browser, moved_clock):
    sent = caller.send().json["notification"]
    moved_clock.advance(DAY_S)
    page = notification_page(owner, sent["id"])
    assert "Handed to its push service 10:00" in page.section("Chrome on Linux")


def test_a_device_shows_the_last_answer_and_the_next_attempt_and_then_at_which_it_took_it(
    service, owner, caller, browser, moved_clock
):
    browser.then(503, Retry_After="3600")
    sent = caller.send().json["notification"]
    text = notification_page(owner, sent["id"]).section("Chrome on Linux")
    assert "The push service answered 503." in text and "Next try today 11:00" in text
    moved_clock.advance(3600)
    service.work()
    text = notification_page(owner, sent["id"]).section("Chrome on Linux")
    assert "Handed to its push service, on attempt 2 11:00:00" in text


def test_a_delivery_waiting_for_its_first_attempt_says_so(service, owner, caller, browser, monkeypatch):
    monkeypatch.setattr(rate_limits, "FLOOD", rate_limits.Quota("flood", 5))
    hook = service.alert()
    for _ in range(5):
        hook.post(data=b"{not JSON")
    (notification_id,) = owner.page(HISTORY).rows()
    assert "not tried yet" in notification_page(owner, notification_id).section("Chrome on Linux")
    service.work()
    assert "Handed to its push service" in notification_page(owner, notification_id).section("Chrome on Linux")


def test_a_failed_delivery_says_why(owner, caller, browser):
    browser.then(400, b'{"reason": "BadTopic"}')
    sent = caller.send().json["notification"]
    text = notification_page(owner, sent["id"]).section("Chrome on Linux")
    assert "Failed" in text and "The push service answered 400 (BadTopic)." in text


def test_each_device_is_listed_with_its_own_status(owner, caller, browser, push_service):
    other = push_service.browser()
    owner.enable(other, agent="Firefox/144.0 (Windows)")
    other.then(400)
    sent = caller.send().json["notification"]
    page = notification_page(owner, sent["id"])
    assert "1 of 2" in page.text
    devices = page.section("Devices")
    assert devices.index("Chrome") < devices.index("Firefox"), "in the order in which they were added"
    assert "Handed to its push service" in page.section("Chrome on Linux") and "Failed" in page.section(
        "Firefox on Windows"
    )


def test_a_removed_device_is_still_listed(service, owner, caller, browser):
    sent = caller.send().json["notification"]
    owner.post(f"/app/devices/{device_ids(service)[0]}/remove")
    text = notification_page(owner, sent["id"]).section("Chrome on Linux")
    assert "removed since" in text and "Handed to its push service" in text


def test_without_a_device_a_notification_is_called_stored_and_not_delivered(owner, caller):
    sent = caller.send().json["notification"]
    assert sent["status"] == "delivered"  # what the API calls it
    page = notification_page(owner, sent["id"])
    assert "Stored, no device" in page.text and "there was no device" in page.text
    for shown in (page, owner.page(HISTORY), owner.page("/app/")):
        assert shown.texts_of("span", **{"class": "stored"}) == ["Stored, no device"]
        assert shown.texts_of("span", **{"class": "good"}) == []


def test_a_digest_that_no_device_got_is_stored_like_what_it_holds(service, owner, moved_clock):
    account_set("--quiet-hours", "09:00-12:00")
    hook = service.alert()
    first, _ = [event(hook, title=title) for title in ("a", "b")]
    owner.done("/app/quiet/deliver")
    assert owner.page(HISTORY).texts_of("span", **{"class": "stored"}) == ["Stored, no device"] * 2
    assert "Stored, no device" in notification_page(owner, first).text


def test_a_notification_whose_only_device_was_removed_before_it_answered_is_stored(
    service, owner, caller, browser, moved_clock
):
    browser.then(503)
    sent = caller.send().json["notification"]
    moved_clock.advance(1)
    owner.post(f"/app/devices/{only_id(service)}/remove")
    page = notification_page(owner, sent["id"])
    assert "Stored, not pushed" in page.text and "no device got it" in page.text


def only_high(service, owner):
    """Let the owner's only device get nothing of a lower priority than high."""
    owner.done(f"/app/devices/{only_id(service)}", {"minPriority": "high"})


def test_what_no_device_gets_for_its_priority_says_so_while_that_is_told_by_the_devices(
    service, owner, caller, browser
):
    only_high(service, owner)
    sent = caller.send().json["notification"]["id"]
    page = notification_page(owner, sent)
    assert "Saved to History only: no device received notifications of this priority." in page.text
    for shown in (page, owner.page(HISTORY), owner.page("/app/")):
        assert shown.texts_of("span", **{"class": "stored"}) == ["Stored, not pushed"]
        assert "no device." not in shown.text
    owner.done(f"/app/devices/{only_id(service)}", {"minPriority": "min"})
    page = notification_page(owner, sent)
    assert "Saved to History only: no device got it." in page.text and "Stored, not pushed" in page.text


def test_a_digest_that_no_device_gets_for_its_priority_says_so(service, owner, held):
    first, _ = held("a", "b")
    only_high(service, owner)
    owner.done("/app/quiet/deliver")
    page = notification_page(owner, first)
    assert "Stored, not pushed" in page.text and "no device received notifications of this priority" in page.text


def test_a_device_that_was_added_later_was_none(service, owner, caller, push_service, moved_clock):
    sent = caller.send().json["notification"]
    moved_clock.advance(60)
    owner.enable(push_service.browser())
    only_high(service, owner)
    assert "Not sent: there was no device." in notification_page(owner, sent["id"]).text


def test_after_the_last_device_died_the_page_says_that_there_was_no_device(owner, caller, browser):
    browser.then(410)
    caller.send()
    sent = caller.send().json["notification"]
    page = notification_page(owner, sent["id"])
    assert "Failed" in page.text and "there was no device" in page.text


# --- one notification: held, digests, variables -------------------------------------------------------------


def test_a_held_notification_says_until_when_it_is_held_and_was_held(service, owner, held, passes):
    (notification_id,) = held("a")
    page = notification_page(owner, notification_id)
    assert page.text.count("Held until 12:00") == 2 and "Not sent yet" in page.text
    passes(2 * 3600)
    page = notification_page(owner, notification_id)
    assert "until 2026-11-21 12:00" in page.text and "Handed to its push service 12:00" in page.text


def test_a_held_notification_says_until_when_its_frequency_collects(service, owner, browser, moved_clock):
    notification_id = event(service.alert("--frequency", "1d"), title="a")
    moved_clock.advance(3600)
    assert "tomorrow 10:00" in notification_page(owner, notification_id).text


def test_a_listed_notification_of_a_digest_says_how_many_devices_accepted_it(
    service, owner, held, browser, push_service
):
    owner.enable(push_service.browser().then(400))
    held("a", "b")
    owner.done("/app/quiet/deliver")
    service.work()
    assert owner.page(HISTORY).text.count("Not on 1 of 2 devices") == 2


def test_the_push_of_a_digest_links_to_a_page_with_its_notifications_which_show_its_status(
    service, owner, held, browser
):
    ids = held("a", "b", "c")
    owner.done("/app/quiet/deliver")
    service.work()
    (message,) = browser.messages
    path = message["notification"]["navigate"].removeprefix("http://localhost")
    assert path == f"{HISTORY}/{message['notification']['tag']}"
    page = alone(owner.page(path))
    assert page.texts_of("h1") == ["3 notifications"] and sorted(page.rows()) == sorted(ids)
    assert "Handed to its push service" in page.section("Chrome on Linux")
    page = notification_page(owner, ids[0])
    assert "digest" in page.text and "Delivered" in page.text
    assert "Handed to its push service 10:00" in page.section("Chrome on Linux")


def test_what_was_replaced_while_it_was_held_has_no_line_in_the_digest_and_says_so(service, owner, browser):
    account_set("--quiet-hours", "09:00-12:00")
    hook = service.alert("--tag", "{{ tag }}")
    old, new, other = (event(hook, title=title, tag=tag) for title, tag in (("a", "x"), ("b", "x"), ("c", "y")))
    owner.done("/app/quiet/deliver")
    service.work()
    digest = browser.messages[0]["notification"]["navigate"].removeprefix("http://localhost")
    assert sorted(alone(owner.page(digest)).rows()) == sorted([new, other])
    text = notification_page(owner, old).text
    assert "until a newer notification replaced it" in text and "digest" not in text


def test_what_was_replaced_while_it_was_held_does_not_say_that_there_was_no_device(service, owner, browser):
    account_set("--quiet-hours", "09:00-12:00")
    hook = service.alert("--tag", "x", "--priority", "{{ priority }}")
    old, _ = event(hook, title="a", priority=3), event(hook, title="b", priority="min")
    page = notification_page(owner, old)
    assert "Not sent: a newer notification replaced it while it was held." in page.text
    assert "Stored, not pushed" in page.text and "no device" not in page.text


def test_what_was_replaced_by_one_that_was_deleted_says_so(service, owner, browser):
    account_set("--quiet-hours", "09:00-12:00")
    hook = service.alert("--tag", "x")
    old, new = event(hook, title="a"), event(hook, title="b")
    owner.done(f"{HISTORY}/{new}/delete")
    page = notification_page(owner, old)
    assert "by a newer notification, since deleted" in page.text and "Not sent to any device." in page.text
    assert "there was no device" not in page.text


def test_the_variables_that_an_event_lacked_are_named_in_list_and_page(service, owner):
    hook = service.alert("--title", "{{ a }} {{ b.c }}", "--body", "{{ b.c }} {{ d }}")
    notification_id = event(hook, d=1)
    page = notification_page(owner, notification_id)
    assert page.texts_of("code") == ["{{ a }}", "{{ b.c }}"]
    assert re.search("2 (variables )?missing", owner.page(HISTORY).text)
    whole = notification_page(owner, event(hook, a=1, b={"c": 1}, d=1))
    assert "Missing" not in whole.text and owner.page(HISTORY).text.count("missing") == 1
