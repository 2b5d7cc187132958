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
        "h": "Let it ring once", "n": "History", "a": "Alerts", "w": "Watches", "m": "Metrics",
        "d": "Devices & channels", "k": "API keys", "q": "Quiet hours", "s": "Settings",
    }.items():  # fmt: skip
        press(page, "g", key)
        expect(heading(page)).to_have_text(name)


def test_g_waits_shortly_for_one_letter_only(page):
    press(page, "g", "x", "h")
    page.evaluate("prefixAt = performance.now() - 1600")
    press(page, "h")
    page.evaluate("prefixAt = performance.now()")
    press(page, "w")
    expect(heading(page)).to_have_text("Watches")


def test_a_row_is_opened_with_keys_alone(page):
    press(page, "j", "j", "k", "Enter")
    expect(heading(page)).to_have_text("third")


def test_escape_leads_from_an_opened_notification_to_its_row_in_both_widths(page):
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        page.goto(page.newest.rpartition("/")[0])
        press(page, "j", "j", "Enter")
        expect(heading(page)).to_have_text("second")
        expect(heading(page)).to_be_focused()
        press(page, "Escape")
        expect(page.locator("a.row:focus")).to_contain_text("second")


def test_the_search_is_reached_from_every_page(page, site):
    for name in ("notifications", "settings"):
        page.goto(f"{site.base}/app/{name}")
        press(page, "/")
        expect(page.get_by_role("searchbox")).to_be_focused()


def test_letters_in_a_field_or_with_a_modifier_are_no_shortcuts(page):
    page.get_by_role("searchbox").fill("")
    page.keyboard.type("?gs/jk")
    expect(page.get_by_role("searchbox")).to_have_value("?gs/jk")
    page.locator("body").evaluate("() => document.activeElement.blur()")
    press(page, "Alt+j", "Control+j", "Meta+j", "g", "Control+s")
    expect(page.locator("a.row:focus")).to_have_count(0)
    expect(heading(page)).to_have_text("History")


def test_the_open_list_of_shortcuts_blocks_all_other_shortcuts(page):
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
        page.get_by_text("owner@example.org").click()
        page.get_by_role("button", name="Keyboard shortcuts").click()
        page.get_by_role("checkbox", name="Use keyboard shortcuts").click()
        page.get_by_role("button", name="Close").click()

    switch()
    page.reload()
    press(page, "?", "j")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("a.row:focus")).to_have_count(0)
    switch()
    press(page, "j")
    expect(page.locator("a.row").first).to_be_focused()


def test_disabled_shortcuts_can_be_enabled_in_the_settings_on_every_screen(page, site):
    page.evaluate("localStorage.setItem('keys off', 'yes')")
    page.set_viewport_size(NARROW)
    page.goto(f"{site.base}/app/settings")
    page.locator("summary", has_text="Keyboard shortcuts").click()
    switch = page.get_by_role("checkbox", name="Use keyboard shortcuts")
    expect(switch).not_to_be_checked()
    switch.click()
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    dialog.get_by_role("checkbox").click()
    dialog.get_by_role("button", name="Close").click()
    expect(switch).not_to_be_checked()
    page.get_by_role("button", name="Show all").click()
    expect(dialog.get_by_role("checkbox")).not_to_be_checked()


def test_keys_move_on_from_the_selected_row(page):
    page.get_by_role("link", name="Select").click()
    page.get_by_role("checkbox", name="Select second").check()
    press(page, "j")
    expect(page.locator("a.row").nth(2)).to_be_focused()


def test_without_scripts_there_are_no_keys_to_switch(plain, site):
    plain.goto(f"{site.base}/app/settings")
    expect(plain.get_by_role("heading", name="Appearance")).to_be_visible()
    expect(plain.locator("#keys-setting")).to_be_hidden()


# --- wide screens -------------------------------------------------------------------------------------------


def test_a_wide_screen_has_a_sidebar_with_every_page_and_the_account(page):
    sidebar = page.get_by_role("navigation", name="Main")
    names = ["Pocketbell", "Home", "History", "Alerts", "Watches", "Metrics"]
    names += ["Devices & channels", "Quiet hours", "API keys", "People", "Settings"]
    assert [link.inner_text() for link in sidebar.get_by_role("link").all()] == names
    sidebar.get_by_role("link", name="Devices").click()
    expect(sidebar.locator("[aria-current]")).to_have_text("Devices & channels")
    sidebar.get_by_text("owner@example.org").click()
    expect(sidebar.get_by_role("link", name="API reference")).to_be_visible()
    sidebar.get_by_role("button", name="Sign out").click()
    expect(heading(page)).to_have_text("Sign in")


def test_a_narrow_screen_keeps_its_five_places(page, site):
    page.set_viewport_size(NARROW)
    links = page.get_by_role("navigation", name="Main").get_by_role("link")
    assert [link.inner_text() for link in links.all()] == [
        "Home", "History", "Alerts", "Watches", "More",
    ]  # fmt: skip


def test_on_a_wide_screen_the_list_is_beside_a_notification(page):
    page.goto(page.newest)
    beside = page.get_by_role("navigation", name="History")
    expect(beside.locator("strong")).to_have_text(["third", "second", "first"])
    expect(beside.locator(".row[aria-current]")).to_contain_text("third")
    press(page, "j", "Enter")
    expect(heading(page)).to_have_text("second")
    expect(beside.locator(".row[aria-current]")).to_contain_text("second")
    for size in (MEDIUM, NARROW):
        page.set_viewport_size(size)
        expect(beside).to_be_hidden()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_a_wide_list_has_the_days_beside_it_until_a_row_is_opened(page):
    days = page.get_by_role("heading", name="Last 14 days")
    expect(days).to_be_visible()
    page.set_viewport_size(MEDIUM)
    expect(days).to_be_hidden()


def places(page, selector):
    """Left and top of the parts of a list, in pixels."""
    measure = "(all) => all.map((one) => one.getBoundingClientRect()).map(({ x, y }) => [x, y].map(Math.round))"
    return page.locator(selector).evaluate_all(measure)


def test_opening_rows_does_not_scroll_the_list(page, site):
    for number in range(14):
        site.send(f"number {number}", "x")
    page.goto(f"{site.base}/app/notifications")
    for wanted in (12, 9):
        row = page.locator(".list a.row").nth(wanted)
        row.scroll_into_view_if_needed()
        title, before = row.locator("strong").inner_text(), places(page, ".list a.row .t")
        row.click()
        expect(page.locator(".list .row[aria-current] strong")).to_have_text(title)
        expect(page.locator("main article")).to_have_count(1)
        assert places(page, ".list a.row .t") == before
    page.go_back()
    page.go_back()
    assert page.evaluate("scrollY") > 0


def test_a_status_message_does_not_scroll_the_list(page, site):
    asked = site.send("asked", "x", actions=[{"label": "Yes", "answer": "y"}])
    page.goto(f"{site.base}/app/notifications/{asked['id']}")
    before = places(page, ".list a.row")
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("answered just now in the web app").first).to_be_visible()
    assert places(page, ".list a.row") == before


def test_a_row_that_was_not_opened_from_the_list_is_shown_in_it(page, site):
    oldest = site.send("oldest", "x")
    for number in range(14):
        site.send(f"number {number}", "x")
    page.goto(f"{site.base}/app/notifications/{oldest['id']}")
    expect(page.locator(".list .row[aria-current]")).to_be_in_viewport(ratio=0.9)


def test_the_skip_link_skips_the_list(page):
    page.goto(page.newest)
    press(page, "Tab", "Enter", "Tab")
    assert page.evaluate("document.activeElement.closest('#detail') !== null")


def test_slash_on_a_narrow_notification_page_leads_to_the_search_of_the_history(page):
    page.set_viewport_size(NARROW)
    page.goto(page.newest)
    press(page, "/")
    expect(heading(page)).to_have_text("History")
    expect(page.get_by_role("searchbox")).to_be_focused()
