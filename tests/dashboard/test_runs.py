"""Several notifications in a row that are alike: one row of the history, and its page."""

import dashboard
from tests.support.alarms import ring
from tests.support.pages import HISTORY, address, all_pages, notification_page, sent


def listed(page):
    """The title of each row without its prefix, with how many it stands for."""
    return [row.removeprefix("MCP - ") for row in page.titles()], page.texts_of("span", **{"class": "badge"})


def test_alike_notifications_are_one_row_that_links_to_the_newest(owner, caller):
    ids = sent(caller, "Bell", "Paid", "Paid", "Paid", "Bell")
    page = owner.page(HISTORY)
    assert listed(page) == (["Bell", "Paid", "Bell"], ["× 3"])
    assert page.rows() == [ids[4], ids[3], ids[0]]


def test_an_open_question_or_alarm_has_its_own_row(owner, caller):
    ask = {"title": "Deploy?", "body": "x", "actions": [{"label": "Yes", "answer": "yes"}]}
    ids = [caller.post("/notifications/send", ask).json["notification"]["id"] for _ in range(2)]
    ids += [ring(caller), ring(caller)]
    assert len(owner.page(HISTORY).rows()) == 4
    for one in ids[:2]:
        owner.done(f"{HISTORY}/{one}/answer", {"position": "0"})
    for one in ids[2:]:
        owner.done(f"{HISTORY}/{one}/acknowledge")
    assert owner.page(HISTORY).rows() == [ids[3], ids[1]]


def test_each_notification_of_a_row_links_the_others(owner, caller):
    ids = sent(caller, "Bell", "Paid", "Paid", "Paid")
    for one in ids[1:]:
        page = notification_page(owner, one)
        assert "2 more like this" in page.main
        assert page.rows() == [other for other in ids[:0:-1] if other != one]
    assert notification_page(owner, ids[0]).rows() == []


def test_a_notification_reached_by_a_search_lists_the_others_of_that_search(owner, caller):
    ids = sent(caller, "Paid", "Bell", "Paid")
    assert owner.page(address(search="paid")).rows() == [ids[2]]
    assert "1 more like this" in owner.page(f"{HISTORY}/{ids[2]}?search=paid").main
    for query in ("", "?search=Bell", "?status=wrong"):
        assert "more like this" not in owner.page(f"{HISTORY}/{ids[2]}{query}").main


def test_the_row_of_several_notifications_is_marked_if_one_of_them_is_open(owner, caller):
    ids = sent(caller, "Bell", "Paid", "Paid", "Paid")
    page = owner.page(f"{HISTORY}/{ids[2]}")
    (current,) = [
        link for link in page.all("a") if link.get("class", "").startswith("row") and "aria-current" in link
    ]
    assert ids[3] in current["href"]


def test_a_page_has_fifty_rows_and_the_links_lead_to_each_once(owner, caller, monkeypatch):
    assert dashboard.history.PAGE_ROWS == 50
    monkeypatch.setattr(dashboard.history, "PAGE_ROWS", 5)
    ids = sent(caller, *(f"{number // 3}" for number in range(36)))
    page = owner.page(HISTORY)
    assert len(page.rows()) == 5 and set(listed(page)[1]) == {"× 3"}
    assert all_pages(owner, HISTORY) == ids[2::3][::-1]
    (older,) = [link["href"] for link in page.all("a") if link.get("rel") == "next"]
    (newer,) = [link["href"] for link in owner.page(older).all("a") if link.get("rel") == "prev"]
    assert owner.page(owner.get(newer).location).rows() == page.rows()


def test_selecting_a_row_selects_all_its_notifications(owner, caller):
    ids = sent(caller, "Bell", "Paid", "Paid", "Paid")
    box = next(one for one in owner.page(f"{HISTORY}?select=1").all("input") if one.get("name") == "id")
    assert box["value"].split(",") == ids[:0:-1]
    asked = owner.post(f"{HISTORY}/delete", {"id": box["value"]}).text
    assert "Delete 3 notifications?" in asked
    page = owner.done(f"{HISTORY}/delete", {"id": box["value"], "confirmed": "1"})
    assert page.said("status") == ["3 notifications deleted."] and page.rows() == ids[:1]


def test_a_download_lists_every_notification_of_a_row(owner, caller):
    sent(caller, "Paid", "Paid", "Paid")
    assert owner.get(f"{HISTORY}.csv").text.count("Paid") == 3


def test_a_row_says_how_many_of_its_notifications_failed(owner, caller, browser):
    browser.then(400)
    sent(caller, "Paid", "Paid", "Paid")
    assert "1 of 3 failed" in owner.page(HISTORY).main
