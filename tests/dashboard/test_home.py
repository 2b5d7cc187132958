"""The Home page: counts, the last 14 days, the latest, warnings, first steps."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from store.database import EVERYBODY, run, transaction
from tests.support.accounts import account_set
from tests.support.alarms import ring, rung
from tests.support.heartbeats import Pinged
from tests.support.pages import Visitor, device_ids, signed_in
from tests.support.rows import each
from tests.support.rules import Ruled
from tests.support.times import HOUR_S, at


def warnings(visitor):
    """What needs the owner, on the Home page."""
    page = visitor.page("/app/")
    return [
        element.text
        for element in page.elements
        if element.tag == "li" and "problems" in (element.parent.attributes.get("class") or "")
    ]


def chart(visitor):
    """The chart's numbers, oldest first."""
    titles = [bar["title"] for bar in visitor.page("/app/").all("li") if "notification" in bar.get("title", "")]
    return [int(title.split(": ")[1].split()[0]) for title in titles]


def counts(visitor):
    return visitor.page("/app/").section("Last 14 days").removeprefix("Last 14 days").split("Sun 08 Nov")[0]


# --- numbers ------------------------------------------------------------------------------------------------


def test_what_rings_says_its_text_and_since_when(owner, caller):
    ring(caller)
    assert "Disk: full Nobody has acknowledged it · since 10:00" in owner.page("/app/").main


def test_the_counts_are_of_today_this_month_and_all_time(service, owner, moved_clock):
    caller = service.caller()
    for moment, many in (("2026-10-31T12:00", 1), ("2026-11-20T12:00", 2), ("2026-11-21T12:00", 4)):
        at(moved_clock, moment)
        for _ in range(many):
            caller.send()
    assert counts(owner).split() == ["4", "today", "·", "6", "this", "month"]


def test_the_chart_has_the_last_14_days_with_those_without_any_and_is_never_empty(service, owner, moved_clock):
    assert "Last 14 days" not in owner.page("/app/").main
    caller = service.caller()
    for moment, many in (("2026-11-07T23:59", 9), ("2026-11-08T00:00", 1), ("2026-11-15T12:00", 3)):
        at(moved_clock, moment)
        for _ in range(many):
            caller.send()
    at(moved_clock, "2026-11-21T10:00")
    expected = {f"2026-11-{day:02}": 0 for day in range(8, 22)} | {"2026-11-08": 1, "2026-11-15": 3}
    assert chart(owner) == list(expected.values())


def test_the_days_of_the_chart_are_those_of_the_accounts_zone(service, owner, moved_clock):
    zone = "Australia/Lord_Howe"
    account_set("--timezone", zone)
    caller, expected = service.caller(), dict[str, int]()
    at(moved_clock, "2026-10-20T00:00")
    for _ in range(33):
        caller.send()
        day = datetime.fromtimestamp(moved_clock.ms / 1000, ZoneInfo(zone)).date().isoformat()
        expected[day] = expected.get(day, 0) + 1
        moved_clock.advance(11 * HOUR_S)
    moved_clock.advance(-11 * HOUR_S)
    assert chart(owner) == list(expected.values())[-14:]


def test_a_picture_shows_the_same_numbers_as_the_table(service, owner, moved_clock):
    caller = service.caller()
    for _ in range(3):
        caller.send()
    page = owner.page("/app/")
    heights = [float(bar["height"]) for bar in page.all("rect") if bar["width"] == "10"]
    assert len(heights) == 14 and heights[-1] > 20 * max(heights[:-1])
    assert [bar.get("title") for bar in page.all("li")][-1] == "Today: 3 notifications"


# --- the latest ---------------------------------------------------------------------------------------------


def test_the_latest_six_are_listed_newest_first(service, owner):
    caller = service.caller()
    ids = [caller.send(f"n{number}").json["notification"]["id"] for number in range(8)]
    page = owner.page("/app/")
    assert page.rows() == ids[:1:-1]
    assert page.titles() == [f"n{number}" for number in (7, 6, 5, 4, 3, 2)]


# --- warnings -----------------------------------------------------------------------------------------------


UNSAFE = ["http://192.168.1.20:8000", "http://10.0.0.1", "http://bell.local", "http://localhost.example"]
SAFE = ["http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000", "http://bell.localhost", "https://a.b"]


@each("number, address", enumerate(UNSAFE + SAFE))
def test_an_address_on_the_network_without_https_is_warned_of(service, number, address):
    owner = signed_in(service, f"{number}@example.org", base_url=address)
    said = [one.partition(" This page uses http.")[0] for one in warnings(owner)]
    assert said == ["Phones and other computers need https"] * (address in UNSAFE)


@pytest.mark.parametrize("base_url, expected", [("https://bell.example.org", 0), ("http://bell.example.org", 1)])
def test_behind_a_proxy_the_public_address_decides(make_service, moved_clock, base_url, expected):
    owner = signed_in(make_service(BASE_URL=base_url), base_url=base_url)
    assert len(warnings(owner)) == expected


def test_that_there_is_no_device_is_warned_of_once_the_list_is_hidden(owner, push_service):
    assert warnings(owner) == []
    owner.done("/app/first-steps/hide", leads_to="/app/")
    (said,) = warnings(owner)
    assert "No device gets your notifications" in said
    owner.enable(push_service.browser())
    assert warnings(owner) == []


def test_that_the_last_device_and_no_other_died_is_warned_of_until_there_is_another(
    service, owner, browser, push_service
):
    owner.enable(last := push_service.browser())
    browser.then(410)
    service.caller().send()
    assert warnings(owner) == []
    last.then(410)
    service.caller().send()
    (said,) = warnings(owner)
    assert "last device no longer exists" in said
    owner.enable(push_service.browser())
    assert warnings(owner) == []


def test_an_alert_that_its_owner_switched_off_and_a_last_device_that_was_removed_are_not_warned_of(
    service, owner, browser
):
    service.alert().set("--inactive")
    assert warnings(owner) == []
    owner.post(f"/app/devices/{device_ids(service)[0]}/remove")
    assert warnings(owner) == []


def test_a_contact_that_apple_refuses_is_warned_of_once_a_browser_is_enabled(service, push_service):
    owner = signed_in(service, "root@nas.local")
    service.flask("device", "add", "root@nas.local", "fcm", "t")
    assert warnings(owner) == []
    owner.enable(push_service.browser())
    (said,) = warnings(owner)
    assert "Apple devices" in said and "BASE_URL" in said


def add_by_key(service, name, token, key="phone app"):
    caller = service.caller(name=key)
    assert caller.post("/devices", {"kind": "fcm", "token": token, "name": name}).status_code == 201


def knows_them(owner, page=None):
    """The owner tells that the devices of the page (the one that there is now) are known."""
    shown = page or owner.page("/app/")
    return owner.done("/app/devices/seen", shown.hidden("/app/devices/seen"), leads_to="/app/")


def test_a_device_that_a_key_added_is_warned_of_until_the_owner_knows_it(service, owner):
    add_by_key(service, "Pixel", "t")
    (said,) = warnings(owner)
    assert "“phone app”" in said and "Pixel" in said
    assert knows_them(owner).said("status")
    assert warnings(owner) == []


def test_a_device_that_a_key_added_while_the_page_was_open_is_not_known_with_it(service, owner):
    add_by_key(service, "Pixel", "t")
    page = owner.page("/app/")
    add_by_key(service, "Tablet", "u", key="other")
    knows_them(owner, page)
    (said,) = warnings(owner)
    assert "Tablet" in said and "Pixel" not in said


def test_a_forged_form_does_not_confirm_a_later_device(service, owner):
    add_by_key(service, "Pixel", "t")
    owner.done("/app/devices/seen", {"seen": "9" * 18}, leads_to="/app/")
    add_by_key(service, "Tablet", "u", key="other")
    assert "Tablet" in str(warnings(owner))


def test_a_forged_form_confirms_no_device_and_causes_no_error(service, owner):
    add_by_key(service, "Pixel", "t")
    for seen in ("", "x", "-1", "1.5", "9" * 40, "\u0663", "0"):
        assert owner.post("/app/devices/seen", {"seen": seen}).status_code == 303, seen
    assert "Pixel" in str(warnings(owner))


def test_an_old_page_does_not_undo_the_confirmation_of_devices(service, owner):
    add_by_key(service, "Pixel", "t")
    old = owner.page("/app/")
    add_by_key(service, "Tablet", "u", key="other")
    knows_them(owner)
    knows_them(owner, old)
    assert warnings(owner) == [] and owner.page("/app/").forms("/devices/seen") == []


# --- the answer ---------------------------------------------------------------------------------------------


def heading(visitor, path="/app/"):
    """The sentence with which Home begins, and the line of facts below it."""
    page = visitor.page(path)
    (facts,) = page.texts_of("p", **{"class": "facts"})
    return page.texts_of("h1")[0], facts


def test_all_is_well_in_the_first_steps_only_when_a_notification_can_ring(owner, push_service):
    owner.done("/app/test")
    assert owner.page("/app/").texts_of("h1") == ["Let it ring once"]
    owner.enable(push_service.browser())
    assert owner.page("/app/").texts_of("h1") == ["All is well"]


def test_the_heading_of_home_counts_problems_and_healthy_parts(service, owner, browser):
    beat = Pinged(service, service.caller(), "--period", "1h")
    beat.ping()
    owner.done("/app/first-steps/hide")
    assert heading(owner) == ("All is well", "1 watch up 1 device reachable")
    beat.ping("/fail")
    said, facts = heading(owner)
    assert said == "1 thing needs you" and facts.startswith("1 of 1 watch down 1 device reachable")
    Pinged(service, service.caller(), "--period", "1h", name="Sync").ping("/fail")
    assert heading(owner)[0] == "2 things need you"


def test_the_heading_of_home_counts_a_device_that_gets_nothing(service, owner, browser, push_service):
    owner.enable(push_service.browser())
    browser.then(413)
    service.caller().send()
    assert "1 of 2 devices unreachable" in heading(owner)[1]


def test_the_fragment_for_the_script_equals_the_page(service, owner, browser):
    Pinged(service, service.caller(), "--period", "1h").ping("/fail")
    assert heading(owner, "/app/attention") == heading(owner)
    assert "Backup is down" in owner.page("/app/attention").text


def test_a_notification_that_repeats_is_acknowledged_in_place(service, owner, browser):
    rang = ring(service.caller())
    (form,) = owner.page("/app/").forms("/acknowledge?back=/app/")
    assert heading(owner)[0] == "1 thing needs you"
    page = owner.done(form, leads_to="/app/")
    assert page.texts_of("h1") == ["All is well"]
    assert rung(service.caller(), rang)[0] == "acknowledged"


def test_the_navigation_counts_the_watches_that_are_down_or_fire(service, owner):
    def counted():
        return owner.page("/app/keys").texts_of("span", **{"class": "count"})

    caller = service.caller()
    assert counted() == []
    Pinged(service, caller, "--period", "1h").ping("/fail")
    Ruled(service, caller, "> 90").sends(95)
    assert counted() == ["2 need attention"]


def test_the_watches_are_listed_the_worst_first(service, owner):
    caller = service.caller()
    for name, signal in (("a", ""), ("b", "/fail"), ("c", "")):
        Pinged(service, caller, "--period", "1h", name=name).ping(signal)
    Ruled(service, caller, "> 90").sends(95)
    words = owner.page("/app/").section("Watches").replace("All watches", " ").split()
    assert words[:5] == ["Watches", "b,", "Down", "CPU,", "Firing"]


# --- first steps --------------------------------------------------------------------------------------------


def steps(owner):
    """How many of the first steps are done, according to the line above them and to the marks."""
    page = owner.page("/app/")
    marked = [e for e in page.elements if e.tag == "li" and e.attributes.get("class") == "done"]
    assert f"{len(marked)} of 5 steps done" in page.main
    return len(marked)


def test_the_first_steps_tick_themselves_and_only_the_next_ones_button_is_primary(service, owner, push_service):
    def done_and_next():
        page = owner.page("/app/")
        return steps(owner), *(
            text for kind in ("a", "button") for text in page.texts_of(kind, **{"class": "button primary"})
        )

    assert done_and_next() == (1, "Turn on notifications")
    owner.enable(push_service.browser())
    assert done_and_next() == (2, "Send a test")
    owner.done("/app/test")
    assert done_and_next() == (3, "Create key")
    owner.done("/app/keys", {"name": "x"})
    assert done_and_next() == (4, "Create alert")
    owner.post("/app/alerts/new", {"preset": "grafana"})
    assert "steps done" not in owner.page("/app/").main


@each("path", ["/app/", "/app/devices"])
def test_only_a_browser_without_javascript_is_told_to_switch_it_on(owner, path):
    page = owner.page(path)
    assert page.texts_of("noscript") == ["To get notifications in this browser, JavaScript must be on."]
    assert page.texts_of("div", id="push-state") == [""]


def test_any_notification_completes_its_first_step_for_good(service, owner):
    owner.done("/app/test")
    assert steps(owner) == 2 and owner.page("/app/").forms("/app/test") == []
    with transaction(EVERYBODY):
        run("DELETE FROM notification")
    assert steps(owner) == 2


def test_a_revoked_key_or_removed_device_does_not_complete_its_first_step(service, owner, browser):
    service.caller()
    (revoke,) = owner.page("/app/keys").forms("/revoke")
    assert steps(owner) == 3
    owner.done(revoke)
    owner.done(f"/app/devices/{device_ids(service)[0]}/remove")
    assert steps(owner) == 1


def test_the_first_steps_are_hidden_for_good_and_for_this_account_alone(service, owner, stranger):
    owner.done("/app/first-steps/hide", leads_to="/app/")
    again = Visitor(service)
    again.sign_in()
    for visitor in (owner, again):
        assert "steps done" not in visitor.page("/app/").text
    assert "steps done" in stranger.page("/app/").text


# --- a test of everything -----------------------------------------------------------------------------------


def test_a_test_is_a_real_notification_and_leads_to_its_page(service, owner, browser):
    answer = owner.post("/app/test")
    (listed,) = service.caller().listed()
    assert (answer.status_code, answer.location) == (303, f"/app/notifications/{listed['id']}")
    assert listed["status"] == "delivered"
    (message,) = browser.messages
    assert message["notification"]["tag"] == listed["id"]
    page = owner.page(answer.location)
    assert "Pocketbell" in page.texts_of("dd") and "Handed to its push service" in page.section("Chrome on Linux")
