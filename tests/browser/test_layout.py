"""The layout of pages: one left edge, rows under their heading, whole words, no page that is too long."""

import pytest
from playwright.sync_api import expect

from core import accounts, alerts, presets
from models import Account
from process import clock
from process.clock import HOUR_MS
from store.database import EVERYBODY, run, transaction
from tests.support import followers
from tests.support.accounts import OWNER
from tests.support.browser import follow, settle
from tests.support.full_site import PLAIN
from tests.support.mutes import key_id, mute

PHONE = {"width": 390, "height": 844}
MAX_SCREENS = 2.5  # of a phone, for what is no list
LEFT = "(all) => all.map((one) => Math.round(one.getBoundingClientRect().left))"
TOP = LEFT.replace("left", "top")
MIDDLE = "(all) => all.map((one) => one.getBoundingClientRect()).map((box) => Math.round(box.top + box.height / 2))"
LINES = """
(all) => all.map((one) => {
  const words = document.createRange();
  words.selectNodeContents(one);
  return words.getClientRects().length;
})
"""


def test_all_pages_have_the_same_left_edge(owners_page, site):
    site.send()
    site.service.alert()
    edges = {1280: {}, 1920: {}}
    for path in PLAIN.values():
        owners_page.goto(site.base + path)
        for width, found in edges.items():
            owners_page.set_viewport_size({"width": width, "height": 800})
            (found[path], *_) = owners_page.locator("main > *").evaluate_all(LEFT)
    assert [len(set(found.values())) for found in edges.values()] == [1, 1], edges


def test_the_facts_of_a_notification_do_not_break_within_a_word(owners_page, site):
    link = "https://example.org/" + "w" * 1_900
    sent = site.send(deliverAt=clock.now_ms() + HOUR_MS, priority=4, tag="x", url=link)
    owners_page.set_viewport_size(PHONE)
    owners_page.goto(f"{site.base}/app/notifications/{sent['id']}")
    owners_page.locator("summary", has_text="Details").click()
    lines = owners_page.locator("dt").evaluate_all(LINES)
    assert lines == [1] * len(lines) and len(lines) >= 6
    assert owners_page.locator("article .clamped").bounding_box()["height"] < 70


COVERED = """
(rows) => rows.map((row) => {
  const name = row.querySelector("strong").getBoundingClientRect();
  const boxes = [...row.querySelectorAll(".button")].map((it) => it.getBoundingClientRect());
  return boxes.some(({ left, top, right, bottom }) =>
    left < name.right && right > name.left && top < name.bottom && bottom > name.top);
})
"""


def test_on_a_phone_no_button_covers_a_keys_name_and_everywhere_each_answer_stays_in_its_button(owners_page, site):
    caller = site.service.caller(name="backup-script")
    site.service.caller(name="grafana")
    mute(caller, "key", key_id(caller, "grafana"))
    labels = ("roll_back_to_previous", "Wiederherstellungspunkt", "w" * 40)
    sent = site.send(actions=[{"label": label, "answer": label} for label in labels])
    owners_page.set_viewport_size({"width": 360, "height": 844})
    owners_page.goto(f"{site.base}/app/keys")
    assert owners_page.locator("tbody tr").evaluate_all(COVERED) == [False] * 3  # one sends for `site`
    owners_page.goto(f"{site.base}/app/notifications/{sent['id']}")
    beyond = "(all) => all.map((it) => it.scrollWidth - it.clientWidth)"
    assert owners_page.locator(".answers button").evaluate_all(beyond) == [0] * 3
    assert owners_page.evaluate("document.documentElement.scrollWidth") == 360
    owners_page.set_viewport_size({"width": 1280, "height": 844})
    assert owners_page.locator(".answers button").evaluate_all(beyond) == [0] * 3


def test_a_long_name_leaves_the_words_beside_it_whole(owners_page, site):
    site.service.caller(name="W" * 100)
    owners_page.set_viewport_size({"width": 1280, "height": 800})
    owners_page.goto(f"{site.base}/app/keys")
    assert owners_page.locator("td code").evaluate_all(LINES) == [1]


def test_headings_stay_where_they_are_from_page_to_page(owners_page, site):
    owners_page.set_viewport_size({"width": 1280, "height": 800})
    places = {}

    def look(name):
        (heading,) = owners_page.locator("h1:not(#detail *), .list .h1").evaluate_all(MIDDLE)
        places[name] = heading

    for name in ("notifications", "settings"):
        owners_page.goto(f"{site.base}/app/{name}")
        look(name)
    site.send()
    owners_page.goto(f"{site.base}/app/notifications")
    look("notifications with a row")
    follow(owners_page.locator(".list a.row"))
    look("notifications with an open row")
    assert len(set(places.values())) == 1, places


def test_the_actions_on_selected_rows_fit_one_line_on_a_phone(owners_page, site):
    site.send()
    owners_page.set_viewport_size(PHONE)
    owners_page.goto(f"{site.base}/app/notifications?select=1")
    buttons = owners_page.locator("#several button")
    expect(buttons).to_have_count(3)
    assert len(set(buttons.evaluate_all(TOP))) == 1


def test_the_facts_of_a_listed_device_do_not_break_inside_one(owners_page, site):
    site.service.flask("device", "add", OWNER, "apns", "ab" * 32)
    owners_page.set_viewport_size(PHONE)
    owners_page.goto(f"{site.base}/app/devices")
    tops = "(all) => all.map((one) => new Set([...one.getClientRects()].map((box) => box.top)).size)"
    assert owners_page.locator("td[data-label]").evaluate_all(tops) == [1, 1]


@pytest.mark.parametrize("width", [360, 1280])
def test_what_a_channel_got_last_stands_below_when(owners_page, site, width):
    site.service.flask("device", "add", OWNER, "webhook", "https://hooks.slack.com/services/x", "--preset", "slack")
    site.send("to mail")
    with transaction(EVERYBODY):
        run("UPDATE device SET last_delivered_at = ?", (clock.now_ms(),))
        run(
            "INSERT INTO delivery (notification_seq, device_seq, status, attempts)"
            " SELECT n.seq, d.seq, 'delivered', 1 FROM notification n, device d"
        )
    owners_page.set_viewport_size({"width": width, "height": 800})
    owners_page.goto(f"{site.base}/app/devices")
    cell = owners_page.locator("td[data-label='Last delivery']")
    when, title = (cell.locator(one).bounding_box() for one in ("time", ".help"))
    assert when["y"] + when["height"] <= title["y"] and cell.inner_text().split("\n")[-1] == "to mail"


def test_what_opens_over_a_page_scrolls_where_it_is_higher_than_the_screen(owners_page, site):
    owners_page.set_viewport_size({"width": 667, "height": 320})
    owners_page.goto(f"{site.base}/app/notifications")
    owners_page.locator("summary", has_text="More filters").click()
    for name in ("Sender", "To"):
        field = owners_page.get_by_label(name, exact=True)
        field.scroll_into_view_if_needed()
        assert field.bounding_box()["y"] >= 0, name


def test_no_row_is_wider_than_its_panel(owners_page, site):
    site.send()
    owners_page.set_viewport_size({"width": 1280, "height": 800})
    owners_page.goto(f"{site.base}/app/notifications")
    follow(owners_page.locator(".list a.row"))
    row, panel = (owners_page.locator(f".list {one}").first.bounding_box() for one in ("a.row", ".panel:has(.row)"))
    assert panel["x"] < row["x"] and row["x"] + row["width"] < panel["x"] + panel["width"]


def test_words_are_written_in_the_font_of_the_page_and_templates_in_that_of_code(alert, site):
    font = "(field) => getComputedStyle(field).fontFamily === getComputedStyle(document.body).fontFamily"
    assert not alert.page.get_by_label("Text", exact=True).evaluate(font)
    alert.page.goto(f"{site.base}/app/ring")
    assert alert.page.get_by_label("Text", exact=True).evaluate(font)


def test_what_is_chosen_is_seen_in_forced_colours(site, open_page):
    page = open_page(forced_colors="active")
    outlines = "(all) => all.map((one) => getComputedStyle(one).outlineStyle)"
    for path, choices in (("settings", ".segments label"), ("alerts/new", ".presets label")):
        page.goto(f"{site.base}/app/{path}")
        styles = page.locator(choices).evaluate_all(outlines)
        assert styles.count("solid") == 1 < len(styles), (path, styles)
    page.goto(f"{site.base}/app/alerts/{site.service.alert().id}")
    knob = "(it) => getComputedStyle(it, '::after').backgroundColor !== getComputedStyle(it).backgroundColor"
    assert page.get_by_role("switch", checked=True).evaluate(knob)


def test_parts_beside_home_keep_their_distance_without_watches(owners_page, site):
    site.send()
    owners_page.set_viewport_size({"width": 1280, "height": 800})
    owners_page.goto(f"{site.base}/app/")
    phone, days = (owners_page.get_by_role("region", name=name).bounding_box() for name in ("On your", "Last 14"))
    assert days["y"] - phone["y"] - phone["height"] == 32


def test_settings_below_a_form_keep_their_distance(alert, site):
    alert.page.goto(f"{alert.page.url.partition('?')[0]}?tab=settings")
    tops = alert.page.locator("main .group").evaluate_all(TOP)
    bottoms = alert.page.locator("main .group").evaluate_all(LEFT.replace("left", "bottom"))
    assert [top - bottom for top, bottom in zip(tops[1:], bottoms, strict=False)] == [32, 32]


def test_a_long_template_does_not_grow_its_field_beyond_the_screen(alert):
    alert.page.get_by_label("Text", exact=True).fill("{{ a }}\n" * 80)
    assert alert.page.get_by_label("Text", exact=True).bounding_box()["height"] < 300


@pytest.fixture
def used(site, owners_page):
    """An account that is in use: three browsers, a device, a key, an alert with a request, a heartbeat."""
    account = Account.find(OWNER)
    for name in ("Safari on iPhone", "Firefox on Windows", "Chrome on Android"):
        accounts.start_session(account, name, clock.now_ms())
    site.service.flask("device", "add", OWNER, "apns", "ab" * 32)
    site.service.flask("heartbeat", "create", OWNER, "Nightly backup", "--period", "1d")
    hook = site.service.alert()
    site.send()
    owners_page.set_viewport_size(PHONE)
    return hook


def test_the_switch_of_the_keyboard_shortcuts_is_one_line_on_a_phone(owners_page, site):
    owners_page.set_viewport_size(PHONE)
    owners_page.goto(f"{site.base}/app/settings")
    owners_page.locator("#keys-setting summary").click()
    assert owners_page.locator("#keys-setting label").bounding_box()["height"] < 48


def test_no_page_is_longer_than_two_and_a_half_phone_screens(owners_page, site, used):
    parts = ("connect", "message", "activity", "settings")
    tabs = {f"alert: {part}": f"/app/alerts/{used.id}?tab={part}" for part in parts}
    preset = {"name": "GitHub", **presets.of("github").settings}
    made = alerts.create_alert(Account.find(OWNER).seq, preset, clock.now_ms())
    tabs["a preset's message"] = f"/app/alerts/{made.id}?tab=message"
    heights = {}
    for name, path in {**PLAIN, **tabs}.items():
        owners_page.goto(site.base + path)
        settle(owners_page)
        heights[name] = owners_page.evaluate("document.documentElement.scrollHeight") / PHONE["height"]
    assert {name: height for name, height in heights.items() if height > MAX_SCREENS} == {}


OVERLAPS = """
(rows) => rows.filter((row) => {
  const [name, does] = [row.querySelector('strong'), row.querySelector('.does > *')];
  if (!name || !does) return false;
  const [a, b] = [name, does].map((one) => one.getBoundingClientRect());
  return a.right > b.left && a.left < b.right && a.bottom > b.top && a.top < b.bottom;
}).length
"""


def test_on_a_phone_no_button_lies_on_the_name_that_it_is_for(owners_page, site):
    site.service.flask("account", "invite", "somebody.with.a.name@example.org")
    ana = site.service.caller(site.service.account("ana@example.org", "pro"), "W" * 40)
    followers.follow(ana, site.service.caller(), OWNER, "key", ana.get("/api-keys").json["apiKeys"][0]["id"])
    owners_page.set_viewport_size(PHONE)
    for path in ("people", "keys", "settings"):
        owners_page.goto(f"{site.base}/app/{path}")
        assert owners_page.locator("table tr").evaluate_all(OVERLAPS) == 0, path
