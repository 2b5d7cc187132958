"""The history: searched, filtered, page by page."""

from itertools import product

import pytest

import dashboard
from store import search as store_search
from tests.support.accounts import account_set
from tests.support.pages import HISTORY, Page, address, all_pages, event, notification_page, sent
from tests.support.rows import each
from tests.support.times import DAY_S, at


def found(owner, **asked):
    """The listed titles, newest first, without their prefix."""
    return owner.page(address(**asked)).titles()


# --- search -------------------------------------------------------------------------------------------------


TERMS = [
    ("nas backup failed", ["Backup of the NAS"]),
    ("FAILED   backup", ["Failed", "Backup of the NAS"]),
    ('"backup failed"', ["Failed"]),
    ("“backup failed” disk", []),
    ('nas "the night"', ["Backup of the NAS"]),
    ('nas "night the"', []),
    ("backup backup", ["Failed", "Backup of the NAS", "backup"]),
    ("mcp", []),  # which pages do not show
]


def test_a_search_requires_all_words_in_any_place_and_quoted_phrases_exactly(owner, caller):
    caller.send("backup", "ok")
    caller.send("Backup of the NAS", "It failed in the night")
    caller.send("Failed", "The backup failed")
    for term, titles in TERMS:
        assert found(owner, search=term) == titles, term


def test_each_word_that_was_found_is_marked(owner, caller):
    caller.send("Disk of the nas", "disk DISKS full")
    assert owner.page(address(search="dis nas disk")).texts_of("mark") == ["Disk", "nas", "disk", "DISK"]
    assert owner.page(HISTORY).texts_of("mark") == []


def test_without_filters_all_are_listed_by_day_newest_first(owner, caller, moved_clock):
    caller.send("old")
    moved_clock.advance(DAY_S)
    caller.send("new")
    page = owner.page(HISTORY)
    assert page.titles() == ["new", "old"]
    assert "new" in page.section("Today") and "old" in page.section("Yesterday")


def test_an_empty_history_says_so(owner):
    page = owner.page(HISTORY)
    assert page.rows() == [] and "Nothing has rung yet" in page.text


@each("term, marked", [("strasse", "Straße"), ("SS", "ß"), ("ﬁ", "fi"), ("İ", "İ")])
def test_a_match_is_marked_in_its_own_case(owner, caller, term, marked):
    """Case folding may compare a letter as another one, or as two."""
    caller.send("x", f"vor der {marked} nach")
    page = owner.page(address(search=term))
    assert page.texts_of("mark") == [marked] and f"vor der {marked} nach" in page.text


def test_a_match_deep_in_a_body_is_shown(owner, caller):
    caller.send("Log", "x " * 2000 + "needle" + " y" * 2000)
    page = owner.page(address(search="needle"))
    assert page.texts_of("mark") == ["needle"]
    assert len(page.text) < 1500


@each(
    "asked, said, ways",
    [
        ({}, "In the 365 days that are kept, sent by any sender.", [HISTORY]),
        ({"since": "2026-11-15"}, "In the last 7 days, sent by any sender.", [address(search="none"), HISTORY]),
        (
            {"since": "2026-11-03", "until": "2026-11-05", "priority": "high"},
            "2026-11-03 to 2026-11-05, sent by any sender, priority high.",
            [address(search="none", priority="high"), HISTORY],
        ),
    ],
)
def test_an_empty_result_names_the_search_and_offers_all_time(owner, caller, asked, said, ways):
    caller.send()
    page = owner.page(address(search="none", **asked))
    empty = page.section("No match for “none”")
    assert page.rows() == [] and said in empty
    links = {link["href"] for link in page.all("a") if "button" in link.get("class", "").split()}
    assert set(ways) <= links and ("Search all time" in empty) == (len(ways) == 2)


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


def test_filters_and_search_apply_together(owner, mixed):
    dates = {"": "", "yesterday": "2026-11-21", "today": "2026-11-22"}
    together = product(("", "failed"), ("", "yesterday"), ("", "disk"), ("", "DOOR"))
    alone = [("delivered", "", "", ""), ("", "today", "", ""), ("", "", "", "delivered")]
    pairs = [asked for asked in together if asked.count("") in (0, 2, 4)]
    for status, day, source, search in [*pairs, *alone]:
        words = [word for word in (status, day, source, search.lower()) if word]
        listed = found(owner, search=search, status=status, day=dates[day], sender=mixed.get(source, ""))
        assert listed == everything_of(*words), words


def test_the_form_keeps_the_search_and_filters(owner, mixed):
    page = owner.page(address(search="door", status="failed", day="2026-11-21", sender=mixed["door"]))
    assert [page.value(name) for name in ("search", "since", "until")] == ["door", "2026-11-21", "2026-11-21"]
    assert (page.chosen("status"), page.chosen("sender")) == ("failed", mixed["door"])


def test_pending_and_held_ones_are_found_by_their_status(service, owner, caller, browser):
    browser.then(503)
    caller.send("pending")
    account_set("--quiet-hours", "09:00-11:00")
    event(service.alert(), title="held")
    caller.send("delivered")
    assert [found(owner, status=status) for status in ("pending", "held")] == [["pending"], ["held"]]


def test_held_ones_that_were_released_in_a_digest_have_the_digests_status(
    service, owner, caller, browser, moved_clock, passes
):
    account_set("--quiet-hours", "09:00-11:00")
    hook = service.alert()
    ids = [event(hook, title=f"h{number}") for number in range(2)]
    assert found(owner, status="held") == ["h1", "h0"]
    browser.then(503)
    passes(3600)
    assert (found(owner, status="held"), found(owner, status="pending")) == ([], ["h1", "h0"])
    moved_clock.advance(60)
    service.work()
    assert (found(owner, status="pending"), found(owner, status="delivered")) == ([], ["h1", "h0"])
    assert owner.page(address(status="delivered")).rows() == ids[::-1]


DAYS = [  # zone, day, its first minute, the minutes just outside
    ("Asia/Tokyo", "2026-11-20", "00:00", "2026-11-19T23:59", "2026-11-21T00:00"),
    ("Africa/Cairo", "2026-04-24", "01:00", "2026-04-23T23:59", "2026-04-25T00:00"),  # without its first hour
]


@each("zone, day, first, before, after", DAYS)
def test_a_day_is_one_of_the_accounts_zone(owner, caller, moved_clock, zone, day, first, before, after):
    account_set("--timezone", zone)
    for moment in (before, f"{day}T{first}", f"{day}T23:59", after):
        at(moved_clock, moment, zone)
        caller.send(moment)
    assert found(owner, day=day) == [f"{day}T23:59", f"{day}T{first}"]


def test_a_day_includes_its_last_millisecond(owner, caller, moved_clock):
    """Their ids have the same beginning."""
    at(moved_clock, "2026-11-20T23:59:59.999")
    titles = [f"last {number}" for number in range(8)]
    sent(caller, *titles)
    assert found(owner, day="2026-11-20") == titles[::-1]


def test_a_day_lists_all_its_notifications_after_the_clock_was_set_back(owner, caller, moved_clock):
    caller.send("before")
    moved_clock.set_wall(moved_clock.ms - 3_600_000)
    caller.send("after")
    assert found(owner, day="2026-11-21") == ["after", "before"]


def test_a_day_lists_none_that_came_while_the_clock_was_ahead(owner, caller, moved_clock):
    moved_clock.set_wall(moved_clock.ms + DAY_S * 1000)
    caller.send("tomorrow")
    moved_clock.set_wall(moved_clock.ms - DAY_S * 1000)
    caller.send("today")
    assert (found(owner, day="2026-11-21"), found(owner, day="2026-11-22")) == (["today"], ["tomorrow"])


def test_an_empty_or_future_day_lists_none(owner, caller):
    caller.send()
    assert [found(owner, day=day) for day in ("2026-11-20", "2026-11-22", "2030-01-01", "1970-01-01")] == [[]] * 4


@pytest.fixture
def one_sent(caller):
    caller.send()


WRONG = [
    ({"sender": "0" * 32}, 404),
    ({"status": "DELIVERED"}, 400),
    ({"day": "yesterday"}, 400),
    ({"day": "2026-02-30"}, 400),
    ({"day": "9999-12-31"}, 400),
    ({"day": "2026-11-21\n"}, 400),
    ({"since": "2026-11-21", "until": "2026-11-20"}, 400),
    ({"after": "x"}, 400),
    ({"before": "-1"}, 400),
    ({"before": "9" * 19}, 400),
    ({"before": "٣"}, 400),
    ({"before": "1\n"}, 400),
    ({"search": "x" * 201}, 400),
]


@each("asked, status", WRONG)
def test_an_invalid_search_or_filter_is_answered_with_a_page_and_a_sentence(owner, one_sent, asked, status):
    answer = owner.get(address(**asked))
    page = Page(answer.text)
    assert answer.status_code == status and answer.mimetype == "text/html"
    (said,) = page.said("alert")
    assert said.endswith(".") and page.rows() == [] and "No match" not in page.text


@each("before", ["0", "1", "9" * 18])
def test_a_page_may_begin_at_any_number(owner, one_sent, before):
    assert len(owner.page(address(before=before)).rows()) == (before == "9" * 18)


def test_an_alert_of_another_account_is_answered_like_an_unknown_one(service, owner, stranger):
    hook = service.alert()
    event(hook, title="mine")
    foreign, unknown = (stranger.get(address(sender=tried)) for tried in (hook.id, "0" * 32))
    assert (foreign.status_code, foreign.text) == (404, unknown.text)


@pytest.fixture
def short_pages(monkeypatch):
    monkeypatch.setattr(dashboard.history, "PAGE_ROWS", 4)


# --- older ones ---------------------------------------------------------------------------------------------


def test_the_link_leads_to_older_ones_without_repeat_or_gap_while_new_ones_arrive(owner, caller, short_pages):
    ids = sent(caller, *(f"n{number}" for number in range(9)))
    assert all_pages(owner, HISTORY, between=caller.send) == ids[::-1]


def test_the_link_to_older_ones_keeps_what_was_asked(service, owner, caller, moved_clock, short_pages):
    hook, wanted = service.alert("--priority", "high"), []
    event(hook, title="disk & more of yesterday")
    moved_clock.advance(DAY_S)
    for number in range(9):
        wanted.append(event(hook, title=f"disk & more {number}"))
        caller.send("disk & more of another source")
        moved_clock.advance(0.001)
    asked = {"search": "DISK & more", "status": "delivered", "day": "2026-11-22", "sender": hook.id}
    path = address(**asked, priority="high")
    assert all_pages(owner, path) == wanted[::-1]
    (older,) = [link["href"] for link in owner.page(path).all("a") if link.get("rel") == "next"]
    assert "&priority=high&" in older


def test_a_full_last_page_has_no_link_to_older_ones(owner, caller, short_pages):
    sent(caller, *"abcd")
    page = owner.page(HISTORY)
    assert len(page.rows()) == 4 and [link for link in page.all("a") if link.get("rel") == "next"] == []


def test_a_search_that_reached_its_work_limit_continues_by_the_link(owner, caller, monkeypatch):
    ids = sent(caller, "needle", *["hay"] * 20)
    monkeypatch.setattr(store_search, "SEARCH_COST", 7 * store_search.ROW_COST)
    page = owner.page(address(search="needle"))
    assert page.rows() == [] and "No match so far" in page.text
    assert all_pages(owner, address(search="needle")) == ids[:1]


def test_rows_older_than_the_plans_days_are_not_shown(owner, caller, moved_clock):
    account_set("--plan", "starter")
    old = caller.send("old").json["notification"]["id"]
    moved_clock.advance(30 * DAY_S)
    owner.sign_in()
    assert found(owner) == ["old"] and notification_page(owner, old)
    moved_clock.advance(0.001)
    assert (found(owner), found(owner, search="old"), found(owner, day="2026-11-21")) == ([], [], [])
    assert owner.get(f"{HISTORY}/{old}").status_code == 404
    assert owner.page("/app/").rows() == []


def test_a_notification_chosen_twice_is_deleted_once(owner, caller):
    id_ = caller.send().json["notification"]["id"]
    assert "1 notification deleted" in owner.done(f"{HISTORY}/delete", {"id": [id_, id_], "confirmed": "1"}).text


@each("action", ["delete", "acknowledge"])
def test_unknown_ids_among_several_chosen_are_skipped(owner, caller, action):
    caller.send()
    chosen = {"id": ["", "x", "\0", "a\0", "0" * 32], "confirmed": "1"}
    assert owner.post(f"/app/notifications/{action}", chosen).status_code == 303
    assert len(Page(owner.get(HISTORY).text).rows()) == 1
