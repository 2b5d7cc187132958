"""Snoozes on the page of a notification: an hour, tomorrow at nine, what the pages say meanwhile."""

import pytest

from tests.support.accounts import account_set
from tests.support.alarms import every, ring
from tests.support.pages import HISTORY, notification_page
from tests.support.rows import each
from tests.support.times import HOUR_S, at, local_ms


@pytest.fixture
def sent(caller, browser):
    """The id of a notification that was pushed."""
    caller.send()
    return caller.listed()[0]["id"]


def snoozed_until(caller, id_):
    return caller.get(f"/notifications/{id_}").json["notification"].get("snoozedUntil")


def snooze(owner, id_, until):
    path = f"{HISTORY}/{id_}"
    return owner.done(f"{path}/snooze", {"until": until}, leads_to=path)


def test_a_page_snoozes_for_an_hour_and_says_until_when(service, owner, caller, browser, sent, moved_clock):
    page = snooze(owner, sent, "hour")
    assert snoozed_until(caller, sent) == moved_clock.ms + HOUR_S * 1000
    assert "Snoozed until today 11:00: it is pushed again then." in page.main
    every(service, moved_clock, HOUR_S, 1)
    service.work()
    assert len(browser.messages) == 2 and "Snoozed" not in notification_page(owner, sent).main


@each(
    "now, then",
    [
        ("2026-11-21T08:00", "2026-11-22T09:00"),
        ("2026-11-21T23:59", "2026-11-22T09:00"),
        ("2026-10-24T12:00", "2026-10-25T09:00"),  # a day of 25 hours
    ],
)
def test_tomorrow_is_nine_by_the_owners_clock(owner, caller, browser, moved_clock, now, then):
    account_set("--timezone", "Europe/Berlin")
    at(moved_clock, now, "Europe/Berlin")
    sent = caller.send().json["notification"]["id"]
    assert "until tomorrow 09:00" in snooze(owner, sent, "morning").main
    assert snoozed_until(caller, sent) == local_ms(then, "Europe/Berlin")


def test_a_page_offers_no_snooze_of_what_is_not_pushed_or_done_with(owner, caller, browser, sent):
    replaced, least = (
        caller.post("/notifications/send", {"title": "a", "body": "b", **more}).json["notification"]["id"]
        for more in ({"tag": "t"}, {"priority": 1})
    )
    caller.post("/notifications/send", {"title": "a", "body": "b", "tag": "t"})
    assert notification_page(owner, sent).forms("/snooze")
    for id_ in (replaced, least):
        assert notification_page(owner, id_).forms("/snooze") == []
    assert "replaced already" in snooze(owner, replaced, "hour").main


def test_another_word_and_an_unknown_notification_are_refused(owner, sent):
    assert owner.post(f"{HISTORY}/{sent}/snooze", {"until": "never"}).status_code == 400
    assert owner.post(f"{HISTORY}/{'0' * 32}/snooze", {"until": "hour"}).status_code == 404


def test_home_does_not_ask_about_what_is_snoozed(owner, caller, browser):
    id_ = ring(caller)
    assert "needs you" in owner.page("/app/").main
    assert "It will repeat every 1 min for 50 min" in snooze(owner, id_, "hour").main
    assert "needs you" not in owner.page("/app/").main
