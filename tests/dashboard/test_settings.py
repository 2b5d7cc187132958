"""Settings and Quiet hours: theme, time zone, password, sessions, plan; the next window, what is held."""

import pytest

from models import Account
from store.sessions import Session
from tests.support.accounts import OTHER, OWNER, PASSWORD, account_set
from tests.support.pages import Page, Visitor, use_up_tries
from tests.support.rows import each
from tests.support.times import DAY_S, at

SETTINGS, QUIET = "/app/settings", "/app/quiet"
NEW = "another password"


# --- theme --------------------------------------------------------------------------------------------------


def look(page):
    """What tells a browser the theme: the colour schemes, and the page's own if it has one."""
    (schemes,) = [meta["content"] for meta in page.all("meta") if meta.get("name") == "color-scheme"]
    return schemes, page.all("html")[0].get("data-theme")


LOOKS = {"dark": ("dark", "dark"), "light": ("light", "light"), "system": ("light dark", None)}


@each("theme, expected", LOOKS.items())
def test_every_page_has_the_theme_that_was_chosen(owner, theme, expected):
    page = owner.done(f"{SETTINGS}/theme", {"theme": theme}, leads_to=SETTINGS)
    assert [field["value"] for field in page.all("input") if "checked" in field] == [theme]
    assert look(page) == look(owner.page("/app/")) == expected
    assert look(Page(owner.get("/app/notifications/unknown").text)) == expected


def test_a_theme_is_the_accounts_own_and_a_new_account_looks_like_the_system_as_does_the_sign_in_page(
    service, owner, stranger
):
    owner.post(f"{SETTINGS}/theme", {"theme": "dark"})
    assert look(stranger.page("/app/")) == look(Visitor(service).page("/app/login")) == LOOKS["system"]


# --- time zone ----------------------------------------------------------------------------------------------


def test_the_time_zone_is_changed_and_times_are_told_in_it(service, owner, moved_clock):
    service.caller()
    page = owner.done(f"{SETTINGS}/time-zone", {"time_zone": "Asia/Tokyo"}, leads_to=SETTINGS)
    assert page.chosen("time_zone") == "Asia/Tokyo" and "Asia/Tokyo" in page.said("status")[0]
    assert owner.page("/app/keys").times()[0] == "2026-11-21 19:00"


@pytest.mark.usefixtures("all_time_zones")
def test_every_time_zone_that_is_offered_is_taken(owner):
    zones = owner.page(SETTINGS).texts_of("option")
    assert len(zones) > 400 and {"UTC", "Europe/Berlin", "Asia/Kathmandu"} <= set(zones)
    for zone in zones[::100]:
        assert owner.post(f"{SETTINGS}/time-zone", {"time_zone": zone}).status_code == 303


# --- password -----------------------------------------------------------------------------------------------


def change(visitor, current=PASSWORD, new=NEW):
    return visitor.post(f"{SETTINGS}/password", {"current": current, "new": new})


def test_the_new_password_signs_in_and_the_old_one_does_not(service, owner):
    assert change(owner).location == SETTINGS
    assert Visitor(service).sign_in().status_code == 422
    assert Visitor(service).sign_in(password=NEW).status_code == 303


def test_a_new_password_ends_all_other_sessions_and_this_one_goes_on(service, owner, stranger):
    other, stolen = Visitor(service), owner.cookie
    other.sign_in()
    assert change(owner).status_code == 303
    assert owner.is_signed_in and stranger.is_signed_in
    assert not other.is_signed_in and not owner.with_cookie(stolen).is_signed_in


def test_no_password_that_was_typed_is_sent_back(owner):
    for current, new in (("a-wrong-one", NEW), (PASSWORD, "short-one")):
        text = change(owner, current, new).text
        assert not any(typed in text for typed in (PASSWORD, NEW, "a-wrong-one", "short-one"))


def test_a_wrong_current_password_counts_as_a_try(owner, moved_clock):
    assert [change(owner, current="not the password").status_code for _ in range(10)] == [422] * 10
    refused = change(owner)
    assert refused.status_code == 429 and "15 minutes" in Page(refused.text).text and owner.is_signed_in
    moved_clock.advance(15 * 60)
    assert change(owner).status_code == 303


def test_wrong_current_passwords_and_wrong_sign_ins_of_a_browser_are_counted_together(owner):
    for _ in range(10):
        change(owner, current="not the password")
    owner.post("/app/logout")
    assert owner.sign_in().status_code == 429


def test_attempts_of_strangers_do_not_stop_the_owner_from_changing_the_password(service, owner):
    use_up_tries(Visitor(service))
    assert change(owner).status_code == 303


# --- sessions -----------------------------------------------------------------------------------------------


def sessions(visitor):
    return visitor.page(SETTINGS).section("Signed-in browsers")


def test_sessions_are_listed_with_name_begin_and_last_visit_and_this_one_is_marked(service, owner, moved_clock):
    phone = Visitor(service, agent="Mozilla/5.0 (iPhone) AppleWebKit/605 Version/18 Mobile Safari/604.1")
    phone.sign_in()
    moved_clock.advance(3 * DAY_S)
    page = owner.page(SETTINGS)
    assert "This browser" in page.section("Chrome on Linux")
    assert "This browser" not in page.section("Safari on iPhone")
    assert page.times() == ["2026-11-21 10:00", "2026-11-24 10:00", "2026-11-21 10:00", "2026-11-21 10:00"]


def test_sessions_that_ended_and_other_accounts_are_not_listed(service, owner, stranger, moved_clock):
    assert sessions(owner).count("Chrome on Linux") == 1
    Visitor(service).sign_in()
    for _ in range(2):
        moved_clock.advance(50 * DAY_S)
        owner.get("/app/")
    assert sessions(owner).count("Chrome on Linux") == 1


def test_signing_out_everywhere_ends_all_sessions_of_this_account(service, owner, stranger):
    other = Visitor(service)
    other.sign_in()
    owner.done(f"{SETTINGS}/sign-out-everywhere", leads_to="/app/login")
    assert not owner.is_signed_in and not other.is_signed_in and stranger.is_signed_in
    assert {session.account.email for session in Session.select()} == {OTHER}
    assert owner.sign_in().status_code == 303


# --- limits -------------------------------------------------------------------------------------------------


def used(owner):
    """What the table of the plan says: used and limit, by row."""
    page = owner.page(SETTINGS)
    cells = [
        e.text
        for e in page.elements
        if e.tag == "td" and e.attributes.get("class", "r") == "r" and "data-label" not in e.attributes
    ]
    return {cells[n]: (cells[n + 1], cells[n + 2]) for n in range(0, len(cells), 3)}


def row(table, word):
    return next(value for name, value in table.items() if word in name)


def test_the_use_of_the_plan_is_shown_until_its_window_ends_and_to_show_it_is_no_use(
    service, owner, browser, moved_clock
):
    busy, idle = service.caller(), service.caller()
    for _ in range(7):
        busy.get("/stats")
    idle.get("/stats")
    metrics = {"projectId": "p", "metrics": [{"metricId": "m", "metricName": "M", "value": 1}]}
    for _ in range(3):
        assert busy.request("POST", "/api/webhooks/custom", json=metrics).status_code == 200
    table = used(owner)
    assert (row(table, "API requests"), row(table, "Metrics")) == (("7", "100"), ("3", "100"))
    assert (row(table, "API keys"), row(table, "Devices")) == (("2", "1,000"), ("1", "20"))
    assert used(owner) == table
    moved_clock.advance(60)
    assert row(used(owner), "API requests") == ("0", "100")


def test_a_revoked_key_is_not_in_use(service, owner):
    service.caller().get("/stats")
    owner.done(owner.page("/app/keys").forms("/revoke")[0])
    assert (row(used(owner), "API keys"), row(used(owner), "API requests")[0]) == (("0", "1,000"), "0")


@each(
    "plan, rest, metrics, days", [("starter", "100", "100", "30"), ("pro", "1,000", "1,000", "365"),
                                  ("scale", "1,000", "10,000", "1,095")]
)  # fmt: skip
def test_each_plan_has_its_limits(owner, plan, rest, metrics, days):
    account_set("--plan", plan)
    table, page = used(owner), owner.page(SETTINGS)
    assert (row(table, "API requests")[1], row(table, "Metrics")[1]) == (rest, metrics)
    assert f"history kept for {days} days" in page.text and f"{plan} plan" not in page.text


# --- quiet hours: setting them ------------------------------------------------------------------------------


def quiet_hours():
    return Account.get(Account.email == OWNER).quiet_hours


DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")
DAILY = {"days": [f"0-{day}" for day in DAYS]}
WEEKLY = "mo-fr 22:00-07:00; sa,su 23:00-09:00"
TYPED_WEEKLY = {
    "days": [*(f"0-{day}" for day in DAYS[:5]), "1-sa", "1-su"],
    "begin": ["22:00", "23:00"],
    "end": ["07:00", "09:00"],
}


def windows_of(page):
    """The windows in the form: the ticked days, begin and end of each."""
    ticked = [box["value"].split("-") for box in page.all("input") if box.get("name") == "days" and "checked" in box]
    times = [[one["value"] for one in page.all("input") if one.get("name") == name] for name in ("begin", "end")]
    return [
        (" ".join(day for place, day in ticked if place == str(number)), *both)
        for number, both in enumerate(zip(*times, strict=True))
    ]


def test_quiet_hours_are_saved_and_shown(owner):
    page = owner.done(QUIET, {**DAILY, "begin": "22:00", "end": "07:00"}, leads_to=QUIET)
    assert (windows_of(page), quiet_hours()) == ([(" ".join(DAYS), "22:00", "07:00")], "22:00-07:00")
    assert page.said("status") and "22:00 to 07:00" in owner.page(SETTINGS).text


def test_each_window_has_days_of_its_own(owner):
    page = owner.done(QUIET, TYPED_WEEKLY, leads_to=QUIET)
    assert quiet_hours() == WEEKLY
    assert windows_of(page) == [("mo tu we th fr", "22:00", "07:00"), ("sa su", "23:00", "09:00")]
    assert page.said("status") == ["Quiet hours set: Mon–Fri 22:00 to 07:00; Sat, Sun 23:00 to 09:00."]


def test_another_window_is_added_and_one_is_removed(owner):
    page = Page(owner.post(QUIET, {**DAILY, "begin": "22:00", "end": "07:00", "more": "1"}).text)
    assert (windows_of(page)[1:], quiet_hours()) == ([("", "", "")], None)
    assert [one["id"] for one in page.all("div") if "autofocus" in one] == ["days-1"]
    owner.done(QUIET, TYPED_WEEKLY)
    assert windows_of(owner.done(QUIET, {**TYPED_WEEKLY, "without": "0"})) == [("sa su", "23:00", "09:00")]
    owner.done(QUIET, {"days": "0-sa", "begin": "23:00", "end": "09:00", "without": "0"})
    assert quiet_hours() is None


def test_a_wrong_window_among_several_is_named_and_marked_and_all_stay_as_typed(owner):
    typed = {**TYPED_WEEKLY, "begin": ["22:00", "06:00"]}
    page = owner.refused(QUIET, typed)
    assert page.said("alert") == ['The quiet hours "mo-fr 22:00-07:00" and "sa,su 06:00-09:00" overlap on Saturday.']
    assert [one["id"] for one in page.all("input") if one.get("aria-invalid")] == ["end-1"]
    assert windows_of(page)[1] == ("sa su", "06:00", "09:00") and quiet_hours() is None
    without_days = owner.refused(QUIET, {**TYPED_WEEKLY, "days": "1-sa"})
    assert without_days.said("alert") == ["Choose the days of the quiet hours 22:00-07:00."]


def test_the_switch_of_quiet_hours_sets_the_usual_ones_and_removes_them_whatever_else_the_form_holds(owner):
    assert (windows_of(owner.page(QUIET)), quiet_hours()) == ([(" ".join(DAYS), "22:00", "07:00")], None)
    owner.done(QUIET, {"on": "1"})
    assert quiet_hours() == "22:00-07:00"
    page = owner.done(QUIET, {**DAILY, "begin": "23:00", "end": "07:00", "on": "0"})
    assert quiet_hours() is None and "Off" in page.text


def test_the_switch_sets_the_windows_again_that_there_were_before(owner):
    owner.done(QUIET, TYPED_WEEKLY)
    for _ in range(2):
        page = owner.done(QUIET, {"on": "0"})
        assert (quiet_hours(), len(windows_of(page))) == (None, 2)
    owner.done(QUIET, {"on": "1"})
    assert quiet_hours() == WEEKLY


def test_enter_in_a_field_of_quiet_hours_saves_and_removes_nothing(owner):
    page = owner.done(QUIET, TYPED_WEEKLY)
    (place,) = [e.within[-1] for e in page.elements if e.attributes.get("id") == "days-0"]
    form = next(e for e in place.within if e.tag == "form")
    pressed_by_enter = next(e for e in page.elements if e.tag == "button" and form in e.within)
    assert pressed_by_enter.text == "Save" and "name" not in pressed_by_enter.attributes


def test_a_strip_of_the_week_shows_the_quiet_hours_of_each_day_and_the_present_time(owner):
    account_set("--quiet-hours", "fr,sa 18:00-06:00; mo 06:00-12:00")
    page = owner.page(QUIET)
    bars = [one for one in page.all("svg") if one.get("class") == "night"]
    assert [bar["aria-label"] for bar in bars] == [
        "Monday: quiet 06:00 to 12:00",
        *(f"{day}: quiet never" for day in ("Tuesday", "Wednesday", "Thursday")),
        "Friday: quiet 18:00 to 24:00",
        "Saturday: quiet 00:00 to 06:00 and 18:00 to 24:00; now 10:00",
        "Sunday: quiet 00:00 to 06:00",
    ]
    parts = [(one["x"], one["width"]) for one in page.all("rect") if one.get("class") == "on"]
    assert parts == [("60.0", "60.0"), ("180.0", "60.0"), ("0.0", "60.0"), ("180.0", "60.0"), ("0.0", "60.0")]
    assert [one["x"] for one in page.all("rect") if one.get("class") == "now"] == ["100.0"]


def test_quiet_hours_that_are_alike_each_day_are_one_bar(owner):
    account_set("--quiet-hours", "18:00-06:00")
    (bar,) = [one for one in owner.page(QUIET).all("svg") if one.get("class") == "night"]
    assert bar["aria-label"] == "Each day: quiet 00:00 to 06:00 and 18:00 to 24:00; now 10:00"


def test_the_page_lists_what_quiet_hours_do_not_hold(service, owner):
    service.alert("--ignore-quiet-hours", name="All")
    service.alert("--urgent-passes-quiet-hours", name="Red")
    service.alert(name="Slow")
    rows = "API keys and Ring always Red urgent All everything 1 other alert waits Watches wait"
    assert rows in owner.page(QUIET).section("What comes through")


WINDOWS = [  # zone, window, now, what the page says
    ("UTC", "22:00-07:00", "2026-11-21T10:00", "Tonight 22:00 to 07:00"),
    ("UTC", "14:00-06:00", "2026-11-21T10:00", "Today 14:00 to 06:00"),
    ("UTC", "22:00-07:00", "2026-11-21T23:30", "Quiet now, until 07:00"),
    ("Asia/Tokyo", "22:00-07:00", "2026-11-21T10:00", "Tonight 22:00 to 07:00"),
    ("Europe/Berlin", "02:10-02:50", "2026-03-28T12:00", "Mon 30 Mar 02:10 to 02:50"),  # not on the 29th
]


@each("zone, window, now, said", WINDOWS)
def test_the_next_window_is_told_in_words(owner, moved_clock, zone, window, now, said):
    at(moved_clock, now, zone)
    owner.sign_in()
    account_set("--timezone", zone, "--quiet-hours", window)
    heading = owner.page(QUIET).texts_of("h2")[0]
    assert heading == said


# --- quiet hours: what is held ------------------------------------------------------------------------------


@pytest.fixture
def hold(service, owner, browser):
    """Makes events that are held until 12:00."""
    account_set("--quiet-hours", "09:00-12:00")
    hook = service.alert()

    def happen(*titles):
        return [hook.post({"title": title, "message": "m"}).json["notificationId"] for title in titles]

    return happen


def held(visitor):
    page = visitor.page(QUIET)
    return next(e.text for e in page.elements if e.attributes.get("aria-labelledby") == "held")


def test_the_page_says_how_many_are_held_and_until_when(owner, hold):
    hold("a")
    assert "1 held now" in held(owner)
    hold("b", "c")
    assert "3 held now" in held(owner) and "today 12:00" in held(owner)


def test_held_notifications_with_different_ends_show_the_first_and_the_last(service, owner, browser, moved_clock):
    service.alert("--frequency", "1h", name="a").post({"title": "x"})
    moved_clock.advance(1800)
    service.alert("--frequency", "1d", name="b").post({"title": "x"})
    text = held(owner)
    assert "2 held now" in text and text.index("today 11:00") < text.index("tomorrow 10:30")


def test_delivering_now_pushes_several_held_notifications_as_a_digest_and_holds_later_ones_again(
    service, owner, browser, hold
):
    hold("a", "b", "c")
    page = owner.done(f"{QUIET}/deliver")
    assert "3 notifications" in page.said("status")[0]
    service.work()
    (message,) = browser.messages
    assert message["notification"]["title"] == "MCP - 3 notifications"
    assert message["notification"]["body"] == "a: m\nb: m\nc: m"
    assert {row["status"] for row in service.caller().listed()} == {"delivered"}
    hold("d")
    service.work()
    assert len(browser.messages) == 1 and "Nothing is held" not in held(owner)


def test_with_nothing_held_the_page_says_so_and_to_deliver_now_pushes_nothing(service, owner, browser):
    page = owner.page(QUIET)
    assert "Nothing is held" in page.text and page.forms("/deliver") == []
    page = owner.done(f"{QUIET}/deliver")
    service.work()
    assert "Nothing was held" in page.said("status")[0] and browser.pushes == []


def test_delivering_now_includes_events_collected_over_a_day(service, owner, browser):
    service.alert("--frequency", "1d", "--ignore-quiet-hours").post({"title": "x"})
    owner.done(f"{QUIET}/deliver")
    service.work()
    assert len(browser.messages) == 1
