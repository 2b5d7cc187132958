"""The list beside a notification is the one that it was opened from."""

import pytest

from dashboard import history
from tests.support.alarms import ring
from tests.support.buttons import ANSWERS
from tests.support.pages import HISTORY, sent

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1"


def opened(page):
    """The addresses of the rows that are marked as open."""
    return [row.attributes["href"] for row in page.row_links() if "aria-current" in row.attributes]


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
    assert page.texts_of("a", href=f"{HISTORY}?search=disk&before=5") == ["History", "History"]


def test_a_page_reached_by_newer_links_stays_the_same_beside_a_notification(owner, caller, short):
    ids = sent(caller, *"abcdef")
    listed = owner.page(f"{HISTORY}?after=2")
    assert listed.rows() == [ids[3], ids[2]]
    assert owner.page(way_to(listed, ids[2])).rows() == listed.rows()


def test_the_list_begins_with_a_notification_that_is_older_than_its_first_page(owner, caller, short):
    ids = sent(caller, *"abcde")
    assert owner.page(f"{HISTORY}/{ids[1]}").rows() == [ids[1], ids[0]]


def test_a_notification_is_shown_despite_invalid_filters(owner, caller):
    (only,) = sent(caller, "one")
    for query in ("status=wrong", "sender=unknown", "before=x", "since=2026-13-01"):
        page = owner.page(f"{HISTORY}/{only}?{query}")
        assert (page.texts_of("h1"), page.rows()) == (["one"], [only]), query


def test_an_action_on_a_notification_keeps_the_list_beside_it(owner, caller, browser, short):
    ids = [ring(caller, title=f"disk {number}") for number in range(4)]
    shown = f"{HISTORY}/{ids[1]}?search=disk&before=3"
    page = owner.page(shown)
    (acknowledge,) = page.forms("/acknowledge?search=disk&before=3")
    page = owner.done(acknowledge, leads_to=shown)
    (delete,) = page.forms("/delete?search=disk&before=3")
    assert owner.done(delete, leads_to=f"{HISTORY}?search=disk&before=3").rows() == [ids[0]]


def test_answering_a_notification_keeps_the_list_beside_it(owner, caller):
    fields = {"title": "disk", "body": "full", "actions": ANSWERS}
    first = caller.post("/notifications/send", fields).json["notification"]["id"]
    sent(caller, "disk 2")
    shown = f"{HISTORY}/{first}?search=disk&before=2"
    form = owner.page(shown).forms("/answer?search=disk&before=2")[0]
    owner.done(form, {"position": "0"}, leads_to=shown)


def test_a_phone_gets_no_list_beside_a_notification(owner, caller):
    (only,) = sent(caller, "disk 1")
    owner.client.environ_base["HTTP_USER_AGENT"] = PHONE
    page = owner.page(f"{HISTORY}/{only}?search=disk")
    assert page.rows() == [] and f"{HISTORY}?search=disk" in [link.get("href") for link in page.all("a")]
