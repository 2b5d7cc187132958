"""Beside a notification stands the list that it was opened from; beside an alert, the list of all alerts."""

import pytest

from dashboard import history
from tests.support.pages import HISTORY, sent


def opened(page):
    """The addresses of the rows that are marked as open."""
    return [link["href"] for link in page.all("a") if link.get("class") == "row" and "aria-current" in link]


def way_to(page, notification_id):
    (href,) = [
        link["href"] for link in page.all("a") if link.get("href", "").startswith(f"{HISTORY}/{notification_id}")
    ]
    return href


@pytest.fixture
def short(monkeypatch):
    """Pages of the history with two rows."""
    monkeypatch.setattr(history, "PAGE_ROWS", 2)


def test_a_notification_stands_in_the_newest_part_of_the_history(owner, caller):
    first, second = sent(caller, "first", "second")
    page = owner.page(f"{HISTORY}/{first}")
    assert page.rows() == [second, first] and opened(page) == [f"{HISTORY}/{first}"]


def test_the_list_beside_it_has_the_page_and_the_filters_that_it_was_opened_from(owner, caller, short):
    ids = sent(caller, *(f"disk {number}" for number in range(5)), "other")
    listed = owner.page(f"{HISTORY}?search=disk&before=5")
    assert listed.rows() == [ids[3], ids[2]]
    page = owner.page(way_to(listed, ids[2]))
    assert page.rows() == listed.rows()
    assert opened(page) == [way_to(listed, ids[2])]


def test_a_page_that_was_reached_upwards_stays_the_same(owner, caller, short):
    ids = sent(caller, *"abcdef")
    listed = owner.page(f"{HISTORY}?after=2")
    assert listed.rows() == [ids[3], ids[2]]
    assert owner.page(way_to(listed, ids[2])).rows() == listed.rows()


def test_the_list_begins_with_a_notification_that_is_older_than_its_first_page(owner, caller, short):
    ids = sent(caller, *"abcde")
    assert owner.page(f"{HISTORY}/{ids[1]}").rows() == [ids[1], ids[0]]


@pytest.mark.parametrize("query", ["status=wrong", "sender=unknown", "before=x", "since=2026-13-01"])
def test_filters_that_are_wrong_do_not_keep_a_notification_from_its_reader(owner, caller, query):
    (only,) = sent(caller, "one")
    page = owner.page(f"{HISTORY}/{only}?{query}")
    assert page.texts_of("h1") == ["MCP - one"] and page.rows() == [only]


def test_an_alert_stands_in_the_list_of_alerts_in_the_same_order(owner, service):
    made = [service.alert(name=name) for name in ("a", "b", "c")]
    owner.post(f"/app/alerts/{made[0].id}/switch", {"on": "0"})
    names = owner.page("/app/alerts").texts_of("strong", **{"class": "clamped"})
    page = owner.page(f"/app/alerts/{made[1].id}")
    assert page.texts_of("strong", **{"class": "clamped"}) == names and names[-1] == "a"
    assert opened(page) == [f"/app/alerts/{made[1].id}"]
    assert len([one for one in page.all("button") if one.get("role") == "switch"]) == 1
