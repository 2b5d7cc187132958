"""The history: what is new, newer pages, senders, several at once, a download, links in texts."""

import csv
from io import StringIO
from urllib.parse import urlencode

import dashboard
from tests.support.accounts import account_set
from tests.support.alarms import ring
from tests.support.pages import HISTORY, Page, event, notification_page, sent
from tests.support.rows import each
from tests.support.times import DAY_S, MINUTE_S


def news(owner, path=HISTORY):
    """The address at which the page's script asks for what is new."""
    (found,) = [e.attributes["data-news"] for e in owner.page(path).elements if "data-news" in e.attributes]
    return found


def chips(page):
    """The chips by their words: where they lead, and whether they are on."""
    links = [e for e in page.elements if e.tag == "a" and any(p.attributes.get("class") == "chips" for p in e.within)]
    return {e.text.partition(",")[0]: (e.attributes["href"], "aria-current" in e.attributes) for e in links}


# --- what is new --------------------------------------------------------------------------------------------


@each("path", ["/app/", HISTORY])
def test_notifications_since_the_first_page_was_loaded_are_counted(owner, caller, path):
    sent(caller, "before")
    asked = news(owner, path)
    assert owner.get(asked).json == {"new": ""}
    sent(caller, "one", "two")
    assert owner.get(asked).json == {"new": "2"} and owner.get(news(owner, path)).json == {"new": ""}
    assert "data-news" not in owner.get(f"{HISTORY}?before=2").text


def test_the_count_of_new_notifications_is_capped(owner, caller, monkeypatch):
    monkeypatch.setattr(dashboard.history, "MAX_NEW", 2)
    asked = news(owner)
    sent(caller, "one", "two")
    assert owner.get(asked).json == {"new": "2"}
    sent(caller, "three")
    assert owner.get(asked).json == {"new": "2+"}


def test_only_new_notifications_that_match_the_filters_are_counted(owner, caller):
    asked = news(owner, f"{HISTORY}?search=disk")
    sent(caller, "disk", "other", "Disk")
    assert owner.get(asked).json == {"new": "2"}


# --- newer and senders --------------------------------------------------------------------------------------


def linked(page, rel):
    return [link["href"] for link in page.all("a") if link.get("rel") == rel]


def test_newer_links_lead_back_page_by_page_to_the_first(owner, caller, monkeypatch):
    monkeypatch.setattr(dashboard.history, "PAGE_ROWS", 10)
    ids = sent(caller, *(f"n{number}" for number in range(35)))[::-1]
    page = owner.page(HISTORY)
    assert linked(page, "prev") == []
    for _ in range(3):
        page = owner.page(*linked(page, "next"))
    assert page.rows() == ids[30:]
    for begin in (20, 10):
        page = owner.page(*linked(page, "prev"))
        assert page.rows() == ids[begin : begin + 10]
    answer = owner.get(*linked(page, "prev"))
    assert (answer.status_code, answer.location) == (303, HISTORY)


def test_newer_links_keep_the_search_and_filters(owner, caller, monkeypatch, moved_clock):
    monkeypatch.setattr(dashboard.history, "PAGE_ROWS", 2)
    wanted = []
    for number in range(5):
        wanted += sent(caller, f"disk {number}")
        sent(caller, "other")
    moved_clock.advance(DAY_S)
    sent(caller, "disk of the next day")
    page = owner.page(f"{HISTORY}?search=disk&since=2026-11-21&until=2026-11-21")
    for _ in range(2):
        page = owner.page(*linked(page, "next"))
    assert page.rows() == wanted[:1]
    assert owner.page(*linked(page, "prev")).rows() == wanted[2:0:-1]


def test_a_key_is_a_sender_like_an_alert(service, owner, caller):
    other = service.caller(name="other key")
    wanted, _ = sent(caller, "wanted"), sent(other, "not wanted")
    event(service.alert(), title="of an alert")
    options = [e for e in owner.page(HISTORY).elements if e.tag == "option" and e.text == "backup script"]
    page = owner.page(f"{HISTORY}?sender={options[0].attributes['value']}")
    assert page.rows() == wanted and chips(page)["backup script"] == (HISTORY, True)


def test_a_range_of_days_is_listed(owner, caller, moved_clock):
    for day in (21, 22, 23, 24):
        sent(caller, f"d{day}")
        moved_clock.advance(DAY_S)
    for since, until, days in (("22", "23", [23, 22]), ("23", "", [24, 23]), ("", "22", [22, 21])):
        asked = {name: f"2026-11-{day}" for name, day in (("since", since), ("until", until)) if day}
        assert owner.page(f"{HISTORY}?{urlencode(asked)}").titles() == [f"d{day}" for day in days]


def test_a_chip_sets_a_filter_and_removes_it(owner, caller, moved_clock):
    sent(caller, "old")
    moved_clock.advance(8 * DAY_S)
    new = sent(caller, "new")
    address, is_on = chips(owner.page(HISTORY))["Last 7 days"]
    page = owner.page(address)
    assert not is_on and page.rows() == new
    assert chips(page)["Last 7 days"] == (HISTORY, True)
    urgent = owner.page(chips(page)["Urgent"][0])
    assert urgent.rows() == [] and len(chips(urgent)) == len(chips(page))  # no second one says the same


# --- several at once ----------------------------------------------------------------------------------------


def test_several_are_deleted_after_a_confirmation_and_the_filters_stay(owner, caller):
    ids = sent(caller, "a 1", "a 2", "a 3", "a 4")[:3]
    listed = f"{HISTORY}/delete?search=a&before=4"
    page = owner.page(f"{HISTORY}?search=a&before=4&select=1")
    assert listed in [button.get("formaction") for button in page.all("button")]
    assert [box["value"] for box in page.all("input") if box.get("type") == "checkbox"] == ids[::-1]
    asked = Page(owner.post(listed, {"id": ids[:2]}).text)
    assert asked.texts_of("h1") == ["Delete 2 notifications?"] and asked.rows() == ids[1::-1]
    assert len(owner.page(HISTORY).rows()) == 4
    assert asked.forms("/delete?search=a&before=4") == [listed]
    page = owner.done(listed, asked.hidden(listed) | {"id": ids[:2]}, leads_to=f"{HISTORY}?search=a&before=4")
    assert page.said("status") == ["2 notifications deleted."] and page.rows() == ids[2:]


def test_notifications_of_another_account_are_neither_deleted_nor_shown(owner, caller, stranger):
    ids = sent(caller, "mine")
    assert Page(stranger.post(f"{HISTORY}/delete", {"id": ids}).text).rows() == []
    stranger.done(f"{HISTORY}/delete", {"id": ids, "confirmed": "1"})
    stranger.done(f"{HISTORY}/acknowledge", {"id": ids})
    assert owner.page(HISTORY).rows() == ids


def test_deleting_none_or_too_many_is_answered_with_a_sentence(owner):
    assert "Select some" in owner.done(f"{HISTORY}/delete").text
    assert "at most 500" in owner.refused(f"{HISTORY}/delete", {"id": ",".join(["x"] * 501)}, 400).main


def test_selected_waiting_notifications_are_acknowledged_together(owner, caller, browser):
    ids = [ring(caller), ring(caller), *sent(caller, "plain")]
    page = owner.done(f"{HISTORY}/acknowledge", {"id": ids})
    assert page.said("status") == ["2 notifications acknowledged."] and "not acknowledged" not in page.main
    assert "None of these" in owner.done(f"{HISTORY}/acknowledge", {"id": ids}).text


# --- a download ---------------------------------------------------------------------------------------------


def downloaded(owner, query=""):
    answer = owner.get(f"{HISTORY}.csv{query}")
    assert answer.mimetype == "text/csv"
    return list(csv.DictReader(StringIO(answer.text)))


def test_a_download_has_all_matches_and_not_only_one_page(owner, caller, monkeypatch):
    monkeypatch.setattr(dashboard.history, "PAGE_ROWS", 2)
    sent(caller, *(f"disk {number}" for number in range(5)), "other")
    assert [row["title"] for row in downloaded(owner, "?search=disk")] == [f"MCP - disk {n}" for n in (4, 3, 2, 1, 0)]


def test_a_download_is_limited_and_contains_no_formula(owner, caller, monkeypatch):
    monkeypatch.setattr(dashboard.history, "MAX_CSV_ROWS", 2)
    fields = {"priority": 5, "url": "https://example.org/", "tag": "t"}
    caller.post("/notifications/send", {"title": "x", "body": "=1+1", **fields})
    caller.send("y")
    sent(caller, "z")
    rows = downloaded(owner)
    assert [row["title"] for row in rows] == ["MCP - z", "MCP - y"]
    monkeypatch.setattr(dashboard.history, "MAX_CSV_ROWS", 5)
    row = downloaded(owner)[-1]
    assert (row["body"], row["priority"], row["link"], row["tag"]) == ("'=1+1", "urgent", "https://example.org/", "t")
    assert (row["from"], row["time"]) == ("backup script", "2026-11-21T10:00:00.000Z")


# --- links in texts -----------------------------------------------------------------------------------------

LINKED = [
    ("see https://a.example/x?y=1&z=2.", ["https://a.example/x?y=1&z=2"]),
    ("(https://a.example/x_(y)) [b](http://b.example/)", ["https://a.example/x_(y)", "http://b.example/"]),
    ('<a href="https://a.example/">', ["https://a.example/"]),
    ("HTTPS://A.example", ["HTTPS://A.example"]),
    ("https:// http://) javascript:alert(1) ftp://a data:text/html,x //a.example a.example", []),
    ("javascript:'https://a.example'", ["https://a.example"]),
    ("https://a.example\u202egpj.exe", ["https://a.example"]),
]


@each("body, addresses", LINKED)
def test_only_web_addresses_in_a_text_become_links(owner, caller, body, addresses):
    sent_id = caller.send("x", body).json["notification"]["id"]
    page = notification_page(owner, sent_id)
    links = [e for e in page.elements if e.tag == "a" and any(p.attributes.get("class") == "full" for p in e.within)]
    assert [link.attributes["href"] for link in links] == addresses
    assert all("noopener" in link.attributes["rel"] for link in links) and body.split()[0] in page.main


# --- quiet hours on Home ------------------------------------------------------------------------------------


def test_home_says_what_quiet_hours_hold_and_until_when(service, owner, moved_clock):
    assert "Quiet hours" not in owner.page("/app/").main
    account_set("--quiet-hours", "09:00-12:00")
    assert "Quiet now, until 12:00 Nothing is held." in owner.page("/app/").main
    event(service.alert(), title="held")
    assert "1 held, arrives today 12:00." in owner.page("/app/").main
    moved_clock.advance(2 * 60 * MINUTE_S)
    service.work()
    assert "Tomorrow 09:00 to 12:00 Nothing is held." in owner.page("/app/").main
