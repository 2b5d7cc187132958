"""The history's pages: searched, filtered, page by page; one notification with what became of it."""

import re
from datetime import datetime
from itertools import product
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest

import dashboard
from store import search as store_search
from tests.support import pages
from tests.support.pages import DAY_S, EMAIL, Page, account_set, device_ids
from web import rate_limits

cheap_passwords, owner, stranger, browser = pages.cheap_passwords, pages.owner, pages.stranger, pages.browser

HISTORY = "/app/notifications"


@pytest.fixture
def caller(service, owner):
    service.flask("account", "set", EMAIL, "--plan", "pro")
    return service.caller(name="backup script")


def address(**asked):
    return f"{HISTORY}?{urlencode(asked)}"


def found(owner, **asked):
    """The titles that are listed, newest first, without the prefix."""
    return [title.removeprefix("MCP - ") for title in owner.page(address(**asked)).titles()]


def all_pages(owner, path, between=lambda: None):
    """The ids on a page and on all older ones that its links lead to."""
    ids, looked_at = [], 0
    while path:
        page = owner.page(path)
        ids += page.rows()
        older = [link["href"] for link in page.all("a") if link.get("rel") == "next"]
        path, looked_at = older[0] if older else None, looked_at + 1
        assert looked_at < 100
        between()
    return ids


def at(moved_clock, text, zone="UTC", fold=0):
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    moved_clock.set_wall(round(local.timestamp() * 1000))


def event(hook, **payload):
    """The id of the notification that an event makes."""
    return hook.post(payload).json["notificationId"]


def shown(owner, notification_id):
    return owner.page(f"{HISTORY}/{notification_id}")


# --- search -------------------------------------------------------------------------------------------------


def test_without_anything_asked_all_are_listed_newest_first_by_day(owner, caller, moved_clock):
    caller.send("old")
    moved_clock.advance(DAY_S)
    caller.send("new")
    page = owner.page(HISTORY)
    assert page.titles() == ["MCP - new", "MCP - old"]
    assert page.section("Today").count("MCP") == 1 and page.section("Yesterday").count("MCP") == 1


def test_an_empty_history_says_so(owner):
    page = owner.page(HISTORY)
    assert page.rows() == [] and "Nothing yet" in page.text


@pytest.mark.parametrize("term", ["disk", "DISK", "isk f", "98 %", "ROOT at", "strasse", "STRASSE", "straße"])
def test_a_search_finds_title_and_body_whatever_the_case(owner, caller, term):
    caller.send("Disk full", "root at 98 % in the Straße")
    caller.send("Other", "thing")
    assert found(owner, search=term) == ["Disk full"]


@pytest.mark.parametrize(
    "term", ["%", "_", "\\", "'", '"', "*", "?", "[a]", "a OR b", "NEAR(", "%%", "a_c", ".*", "("]
)
def test_signs_mean_themselves(owner, caller, term):
    caller.send("abc", "nothing")
    caller.send(f"has {term} in it", "x")
    assert found(owner, search=term) == [f"has {term} in it"]


def test_hits_are_marked_and_nothing_else(owner, caller):
    caller.send("Disk disk", "the DISK is full")
    page = owner.page(address(search="disk"))
    assert page.texts_of("mark") == ["Disk", "disk", "DISK"]
    assert owner.page(HISTORY).texts_of("mark") == []


@pytest.mark.parametrize("markup", ["<b>x</b>", "<script>", "&amp;", '"><img src=x>', "</mark>"])
def test_markup_that_was_searched_for_is_text(owner, caller, markup):
    caller.send(f"a {markup} b", f"{markup} {markup}")
    page = owner.page(address(search=markup))
    assert page.texts_of("mark") == [markup] * 3
    assert page.titles() == [f"MCP - a {markup} b"] and page.value("search") == markup


@pytest.mark.parametrize("term, marked", [("strasse", "Straße"), ("SS", "ß"), ("ﬁ", "fi"), ("İ", "İ")])
def test_a_hit_is_marked_as_it_was_found(owner, caller, term, marked):
    """Letters that are compared as others, and as more or fewer of them."""
    caller.send("x", f"vor der {marked} nach")
    page = owner.page(address(search=term))
    assert page.texts_of("mark") == [marked] and f"vor der {marked} nach" in page.text


def test_a_hit_deep_in_a_body_is_shown(owner, caller):
    caller.send("Log", "x " * 2000 + "needle" + " y" * 2000)
    page = owner.page(address(search="needle"))
    assert page.texts_of("mark") == ["needle"]
    assert len(page.text) < 1500


def test_nothing_found_says_for_what(owner, caller):
    caller.send()
    page = owner.page(address(search="no such thing"))
    assert page.rows() == [] and "No match" in page.text and "no such thing" in page.text


def test_200_characters_may_be_searched_for_and_201_may_not(owner, caller):
    caller.send("Long", "x" * 300)
    assert found(owner, search="x" * 200) == ["Long"]
    answer = owner.get(address(search="x" * 201))
    assert answer.status_code == 400 and "200 characters" in Page(answer.text).said("alert")[0]


# --- filters ------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(service, owner, caller, browser, moved_clock):
    """Notifications of two alerts and a key, delivered and failed, today and yesterday; the alerts by name."""
    disk, door = service.alert(name="Disk"), service.alert(name="Door")
    for day in ("yesterday", "today"):
        for source, post in (("disk", disk.post), ("door", door.post)):
            for status in ("delivered", "failed"):
                browser.then(201 if status == "delivered" else 400)
                moved_clock.advance(0.001)
                answer = post({"title": f"{source} {status} {day}", "message": "m"})
                assert answer.json["status"] == status
        moved_clock.advance(0.001)
        caller.send(f"key delivered {day}", "m")
        moved_clock.advance(DAY_S if day == "yesterday" else 0)
    return {"disk": disk.id, "door": door.id}


def everything_of(*words):
    titles = [
        f"{source} {status} {day}"
        for day in ("yesterday", "today")
        for source, status in (
            ("disk", "delivered"), ("disk", "failed"), ("door", "delivered"), ("door", "failed"),
            ("key", "delivered"),
        )
    ]  # fmt: skip
    return [title for title in reversed(titles) if set(words) <= set(title.split())]


def test_filters_and_search_hold_all_together(owner, mixed):
    dates = {"": "", "yesterday": "2026-11-21", "today": "2026-11-22"}
    asked = product(("", "delivered", "failed"), dates, ("", "disk"), ("", "DOOR", "delivered"))
    for status, day, source, search in asked:
        words = [word for word in (status, day, source, search.lower()) if word]
        listed = found(owner, search=search, status=status, day=dates[day], alert=mixed.get(source, ""))
        assert listed == everything_of(*words), words


def test_what_was_asked_stays_in_the_form(owner, mixed):
    page = owner.page(address(search="door", status="failed", day="2026-11-21", alert=mixed["door"]))
    assert (page.value("search"), page.value("day")) == ("door", "2026-11-21")
    assert (page.chosen("status"), page.chosen("alert")) == ("failed", mixed["door"])


@pytest.mark.parametrize("status", ["pending", "held"])
def test_pending_and_held_ones_are_found_by_their_status(service, owner, caller, browser, status):
    browser.then(503)
    caller.send("pending")
    account_set(service, "--quiet-hours", "09:00-11:00")
    event(service.alert(), title="held")
    caller.send("delivered")
    assert found(owner, status=status) == [status]


def test_held_ones_that_were_released_in_a_digest_have_the_digests_status(
    service, owner, caller, browser, moved_clock
):
    account_set(service, "--quiet-hours", "09:00-11:00")
    hook = service.alert()
    ids = [event(hook, title=f"h{number}") for number in range(2)]
    assert found(owner, status="held") == ["h1", "h0"]
    browser.then(503)
    moved_clock.advance(3600)
    service.work()
    service.work()
    assert (found(owner, status="held"), found(owner, status="pending")) == ([], ["h1", "h0"])
    moved_clock.advance(60)
    service.work()
    assert (found(owner, status="pending"), found(owner, status="delivered")) == ([], ["h1", "h0"])
    assert owner.page(address(status="delivered")).rows() == ids[::-1]


def test_a_digest_is_in_no_list(service, owner, caller, browser):
    account_set(service, "--quiet-hours", "09:00-11:00")
    hook = service.alert()
    ids = [event(hook, title=f"h{number}") for number in range(2)]
    owner.done("/app/quiet/deliver")
    assert owner.page(HISTORY).rows() == ids[::-1] and found(owner, search="2 notifications") == []
    assert owner.page("/app/").rows() == ids[::-1]


DAYS = [  # zone, day, its first minute, the minutes just outside
    ("UTC", "2026-11-20", "00:00", "2026-11-19T23:59", "2026-11-21T00:00"),
    ("Asia/Tokyo", "2026-11-20", "00:00", "2026-11-19T23:59", "2026-11-21T00:00"),
    ("Europe/Berlin", "2026-10-25", "00:00", "2026-10-24T23:59", "2026-10-26T00:00"),
    ("Europe/Berlin", "2026-03-29", "00:00", "2026-03-28T23:59", "2026-03-30T00:00"),
    ("Africa/Cairo", "2026-04-24", "01:00", "2026-04-23T23:59", "2026-04-25T00:00"),  # without its first hour
    ("Pacific/Marquesas", "2026-11-20", "00:00", "2026-11-19T23:59", "2026-11-21T00:00"),
]


@pytest.mark.parametrize("zone, day, first, before, after", DAYS)
def test_a_day_is_one_of_the_accounts_zone(service, owner, caller, moved_clock, zone, day, first, before, after):
    account_set(service, "--timezone", zone)
    for moment in (before, f"{day}T{first}", f"{day}T23:59", after):
        at(moved_clock, moment, zone)
        caller.send("in" if moment.startswith(day) else "out")
    assert found(owner, day=day) == ["in", "in"]


def test_a_day_of_23_or_25_hours_holds_all_of_them(service, owner, caller, moved_clock):
    account_set(service, "--timezone", "Europe/Berlin")
    for day in ("2026-03-29", "2026-10-25"):
        at(moved_clock, f"{day}T00:30", "Europe/Berlin")
        for _ in range(26):
            caller.send(day)
            moved_clock.advance(3600)
    assert (len(found(owner, day="2026-03-29")), len(found(owner, day="2026-10-25"))) == (23, 25)


def test_a_day_holds_all_that_came_in_its_last_millisecond(owner, caller, moved_clock):
    """Their ids begin alike and go on at random."""
    at(moved_clock, "2026-11-20T23:59:59.999")
    for _ in range(20):
        caller.send("last")
    assert found(owner, day="2026-11-20") == ["last"] * 20


def test_a_day_holds_all_of_it_when_the_clock_was_set_back(owner, caller, moved_clock):
    caller.send("before")
    moved_clock.set_wall(moved_clock.ms - 3_600_000)
    caller.send("after")
    assert found(owner, day="2026-11-21") == ["after", "before"]


def test_a_day_holds_none_of_a_clock_that_was_ahead(owner, caller, moved_clock):
    moved_clock.set_wall(moved_clock.ms + DAY_S * 1000)
    caller.send("tomorrow")
    moved_clock.set_wall(moved_clock.ms - DAY_S * 1000)
    caller.send("today")
    assert (found(owner, day="2026-11-21"), found(owner, day="2026-11-22")) == (["today"], ["tomorrow"])


def test_a_day_without_any_or_to_come_lists_none(owner, caller):
    caller.send()
    assert [found(owner, day=day) for day in ("2026-11-20", "2026-11-22", "2030-01-01", "1970-01-01")] == [[]] * 4


WRONG = [
    ({"alert": "0" * 32}, 404),
    ({"alert": "x' OR 1=1"}, 404),
    ({"status": "DELIVERED"}, 400),
    ({"status": "unknown"}, 400),
    ({"day": "yesterday"}, 400),
    ({"day": "2026-13-01"}, 400),
    ({"day": "2026-02-30"}, 400),
    ({"day": "0000-00-00"}, 400),
    ({"day": "9999-12-31"}, 400),
    ({"day": "21.11.2026"}, 400),
    ({"day": "2026-11-21\n"}, 400),
    ({"before": "x"}, 400),
    ({"before": "-1"}, 400),
    ({"before": "1.5"}, 400),
    ({"before": "9" * 19}, 400),
    ({"before": "٣"}, 400),
    ({"before": "1\n"}, 400),
    ({"search": "x" * 201}, 400),
]


@pytest.mark.parametrize("asked, status", WRONG)
def test_what_cannot_be_asked_is_answered_with_a_page_and_a_sentence(owner, caller, asked, status):
    caller.send()
    answer = owner.get(address(**asked))
    page = Page(answer.text)
    assert answer.status_code == status and answer.mimetype == "text/html"
    (said,) = page.said("alert")
    assert said.endswith(".") and page.rows() == [] and "No match" not in page.text


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-02", "9999-12-30", "9999-12-31"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Tokyo", "Pacific/Chatham", "America/New_York", "UTC"])
def test_the_first_and_the_last_days_of_all_break_no_page(service, owner, day, zone):
    account_set(service, "--timezone", zone)
    assert owner.get(address(day=day)).status_code in (200, 400)


@pytest.mark.parametrize("before", ["0", "1", "9" * 18])
def test_any_number_may_be_where_a_page_begins(owner, caller, before):
    caller.send()
    assert len(owner.page(address(before=before)).rows()) == (before == "9" * 18)


def test_another_accounts_alert_is_as_good_as_unknown(service, owner, stranger):
    hook = service.alert()
    event(hook, title="mine")
    foreign, unknown = (stranger.get(address(alert=tried)) for tried in (hook.id, "0" * 32))
    assert (foreign.status_code, foreign.text) == (404, unknown.text)


def test_another_accounts_notifications_are_never_found(service, owner, caller, stranger):
    caller.send("mine alone")
    event(service.alert(), title="mine alone, too")
    for asked in ({}, {"search": "mine"}, {"status": "delivered"}, {"day": "2026-11-21"}):
        assert found(stranger, **asked) == []
    assert "Backups" not in stranger.page(HISTORY).text  # the alert's name


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(dashboard.history, "PAGE_ROWS", 10)


# --- older ones ---------------------------------------------------------------------------------------------


def test_the_link_leads_to_older_ones_without_repeat_or_gap_while_new_ones_arrive(owner, caller, short_pages):
    ids = [caller.send(f"n{number}").json["notification"]["id"] for number in range(33)]
    assert all_pages(owner, HISTORY, between=caller.send) == ids[::-1]


def test_the_link_to_older_ones_keeps_what_was_asked(service, owner, caller, moved_clock, short_pages):
    hook, wanted = service.alert(), []
    event(hook, title="disk & more of yesterday")
    moved_clock.advance(DAY_S)
    for number in range(23):
        wanted.append(event(hook, title=f"disk & more {number}"))
        caller.send("disk & more of another source")
        moved_clock.advance(0.001)
    asked = {"search": "DISK & more", "status": "delivered", "day": "2026-11-22", "alert": hook.id}
    assert all_pages(owner, address(**asked)) == wanted[::-1]


def test_a_page_that_is_full_and_the_last_has_no_link(owner, caller):
    for _ in range(50):
        caller.send()
    assert len(owner.page(HISTORY).rows()) == 50
    assert [link for link in owner.page(HISTORY).all("a") if link.get("rel") == "next"] == []


def test_a_search_that_looked_at_enough_goes_on_by_the_link(owner, caller, monkeypatch):
    ids = [caller.send("needle" if number == 0 else "hay").json["notification"]["id"] for number in range(60)]
    monkeypatch.setattr(store_search, "SEARCH_COST", 20 * store_search.ROW_COST)
    page = owner.page(address(search="needle"))
    assert page.rows() == [] and "No match among the newest" in page.text
    assert all_pages(owner, address(search="needle")) == ids[:1]


@pytest.mark.parametrize("plan, days", [("starter", 30), ("pro", 365)])
def test_rows_older_than_the_plans_days_are_not_shown(service, owner, caller, moved_clock, plan, days):
    service.flask("account", "set", EMAIL, "--plan", plan)
    old = caller.send("old").json["notification"]["id"]
    moved_clock.advance(days * DAY_S)
    owner.sign_in()
    assert found(owner) == ["old"] and shown(owner, old)
    moved_clock.advance(0.001)
    assert (found(owner), found(owner, search="old"), found(owner, day="2026-11-21")) == ([], [], [])
    assert owner.get(f"{HISTORY}/{old}").status_code == 404
    assert owner.page("/app/").rows() == []


# --- one notification: where it came from -------------------------------------------------------------------


def test_a_notification_is_shown_whole(owner, caller):
    body = "line 1\n  line 2\n" + "x" * 9000
    sent = caller.send("Disk", body).json["notification"]
    page = shown(owner, sent["id"])
    assert page.texts_of("h1") == ["MCP - Disk"] and " ".join(body.split()) in page.texts_of("p")
    assert "2026-11-21 10:00" in page.text


def test_a_notification_names_the_key_that_sent_it(owner, caller):
    sent = caller.send().json["notification"]
    assert "backup script" in shown(owner, sent["id"]).text


def test_a_notification_names_its_alert(service, owner):
    assert "Doorbell" in shown(owner, event(service.alert(name="Doorbell"), title="x")).text


def test_a_notification_of_a_deleted_alert_stays_and_says_so(service, owner):
    hook = service.alert(name="Doorbell")
    notification_id = event(hook, title="x")
    service.flask("alert", "delete", EMAIL, hook.id)
    page = shown(owner, notification_id)
    assert "deleted" in page.text and "Doorbell" not in page.text
    assert "deleted" in owner.page(HISTORY).text


def test_a_notification_from_these_pages_says_so(owner):
    assert "these pages" in owner.done("/app/test").text


@pytest.mark.parametrize("tried", ["0" * 32, "x", "%00", "%ff", "1", "x" * 5000])
def test_an_unknown_notification_is_a_404_with_a_sentence(owner, tried):
    answer = owner.get(f"{HISTORY}/{tried}")
    assert answer.status_code == 404 and Page(answer.text).texts_of("p")[0].endswith(".")


def test_another_accounts_notification_is_as_good_as_unknown(owner, caller, stranger):
    sent = caller.send("mine").json["notification"]
    foreign, unknown = (stranger.get(f"{HISTORY}/{tried}") for tried in (sent["id"], "0" * 32))
    assert (foreign.status_code, foreign.text) == (404, unknown.text)


# --- one notification: what became of it --------------------------------------------------------------------


def test_a_device_that_took_it_says_when(owner, caller, browser, moved_clock):
    sent = caller.send().json["notification"]
    moved_clock.advance(DAY_S)
    page = shown(owner, sent["id"])
    assert "accepted 2026-11-21 10:00" in page.section("Chrome on Linux")


def test_a_device_that_took_it_at_a_later_try_says_at_which(service, owner, caller, browser, moved_clock):
    browser.then(503)
    sent = caller.send().json["notification"]
    moved_clock.advance(60)
    service.work()
    text = shown(owner, sent["id"]).section("Chrome on Linux")
    assert "accepted 2026-11-21 10:01:00, on attempt 2" in text


def test_a_pending_one_says_what_was_answered_and_when_it_is_tried_next(owner, caller, browser):
    browser.then(503, Retry_After="3600")
    sent = caller.send().json["notification"]
    page = shown(owner, sent["id"])
    text = page.section("Chrome on Linux")
    assert "The push service answered 503." in text and "Next try today 11:00" in text


def test_one_that_waits_for_its_first_try_says_so(service, owner, caller, browser, monkeypatch):
    monkeypatch.setattr(rate_limits, "FLOOD", rate_limits.Quota(5))
    hook = service.alert()
    for _ in range(5):
        hook.post(data=b"not JSON")
    (notification_id,) = owner.page(HISTORY).rows()
    assert "not tried yet" in shown(owner, notification_id).section("Chrome on Linux")
    service.work()
    assert "accepted" in shown(owner, notification_id).section("Chrome on Linux")


def test_a_failed_one_says_why(owner, caller, browser):
    browser.then(400, b'{"reason": "BadTopic"}')
    sent = caller.send().json["notification"]
    text = shown(owner, sent["id"]).section("Chrome on Linux")
    assert "failed 2026-11-21 10:00" in text and "The push service answered 400 (BadTopic)." in text


def test_each_device_is_told_of_on_its_own(owner, caller, browser, push_service):
    other = push_service.browser()
    owner.enable(other, agent="Firefox/144.0 (Windows)")
    other.then(400)
    sent = caller.send().json["notification"]
    page = shown(owner, sent["id"])
    assert "1 of 2" in page.text
    assert "accepted" in page.section("Chrome on Linux") and "failed" in page.section("Firefox on Windows")


def test_a_device_that_was_removed_since_is_still_told_of(service, owner, caller, browser):
    sent = caller.send().json["notification"]
    owner.post(f"/app/devices/{device_ids(service)[0]}/remove")
    text = shown(owner, sent["id"]).section("Chrome on Linux")
    assert "removed since" in text and "accepted" in text


def test_without_a_device_it_is_stored_and_no_page_calls_that_delivered(owner, caller):
    sent = caller.send().json["notification"]
    assert sent["status"] == "delivered"  # what the API calls it
    page = shown(owner, sent["id"])
    assert "stored, no device" in page.text and "There was no device" in page.text
    for path in (f"{HISTORY}/{sent['id']}", HISTORY, "/app/"):
        page = owner.page(path)
        assert page.texts_of("span", **{"class": "stored"}) == ["stored, no device"], path
        assert page.texts_of("span", **{"class": "good"}) == [], path


def test_a_digest_that_no_device_got_is_stored_like_what_it_holds(service, owner, moved_clock):
    account_set(service, "--quiet-hours", "09:00-12:00")
    hook = service.alert()
    first, _ = [event(hook, title=title) for title in ("a", "b")]
    owner.done("/app/quiet/deliver")
    assert owner.page(HISTORY).texts_of("span", **{"class": "stored"}) == ["stored, no device"] * 2
    assert "stored, no device" in shown(owner, first).text


def test_a_notification_whose_only_device_was_removed_before_it_answered_is_stored(service, owner, caller, browser):
    browser.then(503)
    sent = caller.send().json["notification"]
    owner.post(f"/app/devices/{device_ids(service)[0]}/remove")
    assert "stored, no device" in shown(owner, sent["id"]).text


def test_after_the_last_device_died_it_says_that_there_was_none(owner, caller, browser):
    browser.then(410)
    caller.send()
    sent = caller.send().json["notification"]
    page = shown(owner, sent["id"])
    assert "failed" in page.text and "There was no device" in page.text


def test_times_are_in_the_owners_zone(service, owner, caller, browser):
    account_set(service, "--timezone", "Asia/Tokyo")
    sent = caller.send().json["notification"]
    assert "accepted 2026-11-21 19:00" in shown(owner, sent["id"]).text


# --- one notification: held, digests, variables -------------------------------------------------------------


@pytest.fixture
def held(service, owner, browser, moved_clock):
    """Makes events that quiet hours hold until 12:00; answers with their ids."""
    account_set(service, "--quiet-hours", "09:00-12:00")
    hook = service.alert()
    return lambda *titles: [event(hook, title=title) for title in titles]


def test_a_held_one_says_until_when(owner, held):
    (notification_id,) = held("a")
    page = shown(owner, notification_id)
    assert "held" in page.text and "today 12:00" in page.text and "No device was asked yet" in page.text


def test_a_held_one_says_until_when_a_frequency_collects(service, owner, browser, moved_clock):
    notification_id = event(service.alert("--frequency", "1d"), title="a")
    moved_clock.advance(3600)
    assert "tomorrow 10:00" in shown(owner, notification_id).text


def test_one_that_was_held_says_until_when_it_was(service, owner, held, moved_clock):
    (notification_id,) = held("a")
    moved_clock.advance(2 * 3600)
    service.work()
    service.work()
    page = shown(owner, notification_id)
    assert "until 2026-11-21 12:00" in page.text and "accepted 2026-11-21 12:00" in page.text


def test_part_of_a_digest_says_so_and_what_became_of_the_digest(service, owner, held, moved_clock):
    first, _ = held("a", "b")
    moved_clock.advance(2 * 3600)
    service.work()
    service.work()
    page = shown(owner, first)
    assert "digest" in page.text and "delivered" in page.text
    assert "accepted 2026-11-21 12:00" in page.section("Chrome on Linux")


def test_part_of_a_digest_says_in_the_list_how_many_devices_took_it(service, owner, held, browser, push_service):
    owner.enable(push_service.browser().then(400))
    held("a", "b")
    owner.done("/app/quiet/deliver")
    service.work()
    assert owner.page(HISTORY).text.count("1 of 2") == 2


def test_the_push_of_a_digest_leads_to_a_page_with_its_contents(service, owner, held, browser):
    ids = held("a", "b", "c")
    owner.done("/app/quiet/deliver")
    service.work()
    (message,) = browser.messages
    path = message["notification"]["navigate"].removeprefix("http://localhost")
    assert path == f"{HISTORY}/{message['notification']['tag']}"
    page = owner.page(path)
    assert page.texts_of("h1") == ["MCP - 3 notifications"] and sorted(page.rows()) == sorted(ids)
    assert "accepted" in page.section("Chrome on Linux")


def test_another_accounts_digest_is_as_good_as_unknown(service, owner, held, browser, stranger):
    held("a", "b")
    owner.done("/app/quiet/deliver")
    service.work()
    digest_id = browser.messages[0]["notification"]["tag"]
    assert stranger.get(f"{HISTORY}/{digest_id}").status_code == 404


def test_the_variables_that_an_event_lacked_are_named_in_list_and_page(service, owner):
    hook = service.alert("--title", "{{ a }} {{ b.c }}", "--body", "{{ b.c }} {{ d }}")
    notification_id = event(hook, d=1)
    page = shown(owner, notification_id)
    assert page.texts_of("code") == ["{{ a }}", "{{ b.c }}"]
    assert re.search("2 (variables )?missing", owner.page(HISTORY).text)


def test_when_nothing_was_missing_nothing_is_said_of_it(service, owner):
    notification_id = event(service.alert("--title", "{{ a }}"), a=1)
    assert "Missing" not in shown(owner, notification_id).text and "missing" not in owner.page(HISTORY).text
