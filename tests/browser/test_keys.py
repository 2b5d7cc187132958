"""Keyboard shortcuts, the sidebar of wide screens, and the list beside a notification."""

import pytest
from playwright.sync_api import expect

WIDE, MEDIUM, NARROW = ({"width": width, "height": 800} for width in (1280, 1000, 390))


@pytest.fixture
def page(owners_page, site):
    for title in ("first", "second", "third"):
        sent = site.send(title, "x")
    owners_page.set_viewport_size(WIDE)
    owners_page.newest = f"{site.base}/app/notifications/{sent['id']}"
    owners_page.goto(f"{site.base}/app/notifications")
    return owners_page


def press(page, *keys):
    page.wait_for_load_state()  # the page listens for keys
    for key in keys:
        page.keyboard.press(key)


def heading(page):
    return page.get_by_role("heading", level=1)


# --- keys ---------------------------------------------------------------------------------------------------


def test_g_and_a_letter_lead_to_the_pages(page):
    for key, name in {
        "h": "Home", "n": "History", "a": "Alerts", "w": "Watches", "m": "Metrics", "d": "Devices", "k": "API keys",
        "q": "Quiet hours", "s": "Settings",
    }.items():  # fmt: skip
        press(page, "g", key)
        expect(heading(page)).to_have_text(name)


def test_g_waits_a_moment_for_its_letter_and_for_no_second_one(page):
    press(page, "g", "x", "h")
    page.evaluate("prefixAt = performance.now() - 1600")
    press(page, "h")
    page.evaluate("prefixAt = performance.now()")
    press(page, "w")
    expect(heading(page)).to_have_text("Watches")


def test_a_row_is_opened_with_keys_alone(page):
    press(page, "j", "j", "k", "Enter")
    expect(heading(page)).to_have_text("MCP - third")


def test_the_search_is_reached_from_every_page(page, site):
    page.goto(f"{site.base}/app/settings")
    press(page, "/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_letters_in_a_field_and_with_a_modifier_are_no_keys(page):
    page.get_by_role("searchbox").fill("")
    page.keyboard.type("?gs/jk")
    expect(page.get_by_role("searchbox")).to_have_value("?gs/jk")
    page.locator("body").evaluate("() => document.activeElement.blur()")
    press(page, "Alt+j", "Control+j", "Meta+j", "g", "Control+s")
    expect(page.locator("a.row:focus")).to_have_count(0)
    expect(heading(page)).to_have_text("History")


def test_the_list_of_keys_opens_and_closes_and_takes_no_keys_meanwhile(page):
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    press(page, "g", "s")
    expect(heading(page)).to_have_text("History")
    press(page, "Escape")
    expect(dialog).to_be_hidden()
    press(page, "?")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_keys_can_be_switched_off_and_on_again(page):
    def switch():
        page.get_by_role("button", name="Keyboard shortcuts").click()
        page.get_by_role("checkbox", name="Keyboard shortcuts are on").click()
        page.get_by_role("button", name="Close").click()

    switch()
    page.reload()
    press(page, "?", "j")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("a.row:focus")).to_have_count(0)
    switch()
    press(page, "j")
    expect(page.locator("a.row").first).to_be_focused()


# --- wide screens -------------------------------------------------------------------------------------------


def test_a_wide_screen_has_a_sidebar_with_every_page_and_the_account(page):
    sidebar = page.get_by_role("navigation", name="Main")
    names = ["Pocketbell", "Home", "History", "Alerts", "Watches", "Metrics"]
    names += ["Devices", "API keys", "Quiet hours", "Settings", "API reference"]
    assert [link.inner_text() for link in sidebar.get_by_role("link").all()] == names
    expect(sidebar).to_contain_text("owner@example.org")
    sidebar.get_by_role("link", name="Devices").click()
    expect(sidebar.locator("[aria-current]")).to_have_text("Devices")
    sidebar.get_by_role("button", name="Sign out").click()
    expect(heading(page)).to_have_text("Sign in")


def test_a_narrow_screen_keeps_its_six_places(page, site):
    page.set_viewport_size(NARROW)
    links = page.get_by_role("navigation", name="Main").get_by_role("link")
    assert [link.inner_text() for link in links.all()] == [
        "Home", "History", "Alerts", "Watches", "Metrics", "Settings",
    ]  # fmt: skip


def test_the_list_stands_beside_a_notification_where_there_is_room(page):
    page.goto(page.newest)
    beside = page.get_by_role("navigation", name="History")
    expect(beside.locator(".sibling .clamped")).to_have_text(["MCP - third", "MCP - second", "MCP - first"])
    expect(beside.locator("[aria-current]")).to_contain_text("third")
    press(page, "j", "Enter")
    expect(heading(page)).to_have_text("MCP - second")
    expect(beside.locator("[aria-current]")).to_contain_text("second")
    for size in (MEDIUM, NARROW):
        page.set_viewport_size(size)
        expect(beside).to_be_hidden()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_the_list_beside_a_notification_keeps_the_filters(page, site):
    page.goto(f"{site.base}/app/notifications?search=first")
    page.get_by_role("link", name="first").click()
    beside = page.get_by_role("navigation", name="History")
    expect(beside.locator(".sibling")).to_have_count(1)
    beside.get_by_role("link", name="History").click()
    expect(page.get_by_role("searchbox")).to_have_value("first")
