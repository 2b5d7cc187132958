"""What a notification carries, in the web app: on its page, in the history and on the Devices page."""

import pytest

from tests.support.pages import HISTORY, device_ids, notification_page
from tests.support.rows import each

URL = "https://nas.example.org/a?b=1&c=%22"


@pytest.fixture
def caller(service, owner):
    return service.caller()


def send(caller, title="Disk", **more):
    answer = caller.post("/notifications/send", {"title": title, "body": "full", **more})
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]["id"]


def badges(page):
    """The words of the pictures that stand before titles."""
    return [one["aria-label"] for one in page.all("svg") if one.get("class", "").startswith("prio ")]


# --- one notification ---------------------------------------------------------------------------------------


def test_a_priority_is_shown_as_an_icon_with_words(owner, caller):
    words = {1: "Lowest priority", 2: "Low priority", 4: "High priority", 5: "Urgent"}
    for priority, word in words.items():
        notification_id = send(caller, title=word, priority=priority)
        assert word.replace("Lowest", "Min") in notification_page(owner, notification_id).main
    assert badges(owner.page(HISTORY)) == [*words.values()][::-1]


def test_the_default_priority_has_no_badge(owner, caller):
    plain, normal = send(caller), send(caller, title="Normal", priority=3)
    assert badges(owner.page(HISTORY)) == badges(notification_page(owner, normal)) == []
    assert (
        "PriorityNormal" in notification_page(owner, normal).main
        and "Priority" not in notification_page(owner, plain).main
    )


def test_a_url_is_a_link_that_tells_nothing_of_this_page(owner, caller):
    page = notification_page(owner, send(caller, url=URL))
    (link,) = [link for link in page.all("a") if link.get("href") == URL]
    assert link["rel"] == "noopener noreferrer" and "target" not in link
    assert URL in page.texts_of("a")


def test_a_url_is_text_and_no_markup(owner, caller):
    url = 'https://example.org/"><script>alert(1)</script>'
    page = notification_page(owner, send(caller, url=url))
    assert [link["href"] for link in page.all("a") if link["href"].startswith("http")] == [url]
    assert "alert" not in "".join(page.texts_of("script"))


def test_tag_and_expiry_are_on_the_notifications_page(owner, caller, moved_clock):
    page = notification_page(owner, send(caller, tag="<b>disk", expiresAt=moved_clock.ms + 90_000))
    assert "Tag<b>disk" in page.main and "Expires2026-11-21 10:01:30" in page.main


def test_a_notification_links_its_replacement_and_the_one_it_replaced(owner, caller):
    first, second, third = (send(caller, title=name, tag="t") for name in ("first", "second", "third"))
    page = notification_page(owner, second)
    assert "Replacedby a newer notification" in page.main
    assert f"{HISTORY}/{third}" in [link["href"] for link in page.all("a")]
    assert page.rows() == [first] and page.section("Earlier versions")
    assert (
        "Replaced" not in notification_page(owner, third).main
        and "Earlier versions" not in notification_page(owner, first).main
    )


def test_a_notification_of_least_priority_says_that_it_was_not_pushed(owner, caller, browser):
    page = notification_page(owner, send(caller, priority=1))
    assert "Saved to History only" in page.section("Devices")
    assert "Stored, not pushed" in page.main and browser.pushes == []


def test_an_expired_notification_says_so(service, owner, caller, browser, moved_clock):
    browser.then(503)
    notification_id = send(caller, expiresAt=moved_clock.ms + 10_000)
    moved_clock.advance(10)
    service.work()
    assert "It expired before this device had it." in notification_page(owner, notification_id).section("Devices")


# --- the history --------------------------------------------------------------------------------------------


def test_the_history_is_filtered_by_priority(owner, caller):
    sent = {word: send(caller, priority=word) for word in ("min", "low", "high", "urgent")}
    plain, normal = send(caller), send(caller, title="Normal", priority=3)
    for word, notification_id in sent.items():
        page = owner.page(f"{HISTORY}?priority={word}")
        assert (page.rows(), page.chosen("priority")) == ([notification_id], word)
    assert owner.page(f"{HISTORY}?priority=normal").rows() == [normal, plain]
    assert owner.page(f"{HISTORY}?priority=urgent&status=failed").rows() == []
    assert len(owner.page(f"{HISTORY}?priority=").rows()) == 6


@each("wrong", ["3", "max", "URGENT"])
def test_an_invalid_priority_filter_is_refused_on_the_page(owner, caller, wrong):
    answer = owner.get(f"{HISTORY}?priority={wrong}")
    assert answer.status_code == 400 and "The priority must be one of min, low" in answer.text


# --- the Devices page ---------------------------------------------------------------------------------------


def choose(service, owner, priority):
    path = f"/app/devices/{device_ids(service)[0]}"
    return owner.done(path, {"minPriority": priority}, leads_to="/app/devices")


def test_a_device_is_given_its_least_priority(service, owner, caller, browser):
    assert owner.page("/app/devices").chosen("minPriority") == "min"
    page = choose(service, owner, "high")
    assert "Only priority high and higher" in page.main and page.chosen("minPriority") == "high"
    send(caller)
    send(caller, priority=4)
    assert len(browser.pushes) == 1
    assert caller.get("/devices").json["devices"][0]["minPriority"] == 4
    page = choose(service, owner, "min")
    assert "Only priority" not in page.main


def test_a_device_is_given_quiet_hours(service, owner, caller, browser):
    path = f"/app/devices/{device_ids(service)[0]}"
    page = owner.done(path, {"quietHours": " MO-FR 22:00-07:00; sa 09:00-11:00"}, leads_to="/app/devices")
    assert page.value("quietHours") == "mo-fr 22:00-07:00; sa 09:00-11:00"
    assert "Quiet Mon–Fri 22:00 to 07:00; Sat 09:00 to 11:00" in page.main
    shown = owner.page(f"/app/notifications/{send(caller)}")
    assert "Stored, not pushed" in shown.main and "Not pushed: its quiet hours" in shown.section("Devices")
    assert "Quiet Mon" not in owner.done(path, {"quietHours": ""}, leads_to="/app/devices").main
    send(caller)
    assert len(browser.pushes) == 1


def test_a_test_reaches_a_device_whatever_its_least_priority_is(service, owner, browser):
    choose(service, owner, "urgent")
    owner.done(f"/app/devices/{device_ids(service)[0]}/test", leads_to="/app/devices")
    assert len(browser.pushes) == 1
