"""The web app in a real browser: setting up by keyboard, the whole way without JavaScript, copying, themes.

How the pages look and read stands in test_pages.py.
"""

import json

import pytest
from playwright.sync_api import expect

from core import local_time
from process import clock
from tests.support.accounts import OWNER, PASSWORD
from tests.support.browser import (
    ENABLE,
    GROUND,
    MAX_TAPS,
    ON,
    Phone,
    enable_button,
    listen,
    no_script,
    said,
    state,
    tab_to,
)

# --- the whole way ------------------------------------------------------------------------------------------


@pytest.mark.shows_notifications
@pytest.mark.parametrize("width", [390, 1280])
def test_the_main_pages_can_be_used_by_keyboard_alone(site, open_context, push_service, width):
    context = open_context(viewport={"width": width, "height": 640})
    phone = Phone(site, context, push_service, is_signed_in=False)
    page, keyboard = phone.page, phone.page.keyboard
    page.goto(site.setup_link())
    expect(page.get_by_label("E-mail address")).to_be_focused()
    keyboard.type(OWNER)
    tab_to(page, "Password")
    keyboard.type(PASSWORD)
    tab_to(page, "Create account")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/devices/this")
    expect(enable_button(page)).to_be_visible()
    tab_to(page, ENABLE)
    keyboard.press("Space")
    expect(page.get_by_role("heading", name="Let it ring once")).to_be_visible()  # the next step
    worker = phone.worker()
    tab_to(page, "Send a test")
    keyboard.press("Space")
    expect(page.get_by_role("heading", name="It works")).to_be_visible()
    (message,) = phone.subscription.messages
    assert phone.deliver(worker, json.dumps(message))["title"] == "MCP - It works"
    tab_to(page, "Home")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/")
    assert 3 <= phone.taps() <= MAX_TAPS


def test_the_first_tab_stop_skips_the_navigation(phone):
    page = phone.go("/app/settings")
    tab_to(page, "Skip to the page", most=1)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('main').contains(document.activeElement)")


def test_the_time_zone_is_guessed_on_the_set_up_page(site, open_context):
    page = open_context(timezone_id="Europe/Berlin").new_page()
    page.goto(site.setup_link())
    expect(page.get_by_label("Time zone")).to_have_value("Europe/Berlin")


def test_a_time_zone_that_was_chosen_is_not_guessed_again(site, open_context):
    page = open_context(timezone_id="Europe/Berlin").new_page()
    page.goto(site.setup_link())
    page.get_by_label("E-mail address").fill("root@localhost")
    page.get_by_label("Password").fill("twelve characters")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_label("Password").evaluate("input => { input.minLength = 0; input.value = 'short'; }")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("alert")).to_contain_text("12 characters")
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Tokyo")


# --- copying, theme -----------------------------------------------------------------------------------------


def new_key(page, origin):
    page.goto(f"{origin}/app/keys")
    page.get_by_label("New key").fill("backup")
    page.get_by_role("button", name="Create key").click()
    return page.locator("#full-key").inner_text()


def pasted(page):
    """The clipboard's content, which can be read this way over plain http too."""
    field = page.get_by_label("New key")
    field.clear()
    page.keyboard.press("Control+V")
    return field.input_value()


@pytest.mark.parametrize("is_secure", [True, False], ids=["localhost", "plain http"])
def test_a_new_key_is_copied_with_one_tap(site, open_page, is_secure):
    origin = site.base if is_secure else site.insecure
    page = open_page(cookie={**site.cookie(), "url": origin})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    key = new_key(page, origin)
    assert page.evaluate("'clipboard' in navigator") is is_secure
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert pasted(page) == key


def test_a_new_key_that_cannot_be_copied_is_selected_for_it(site, open_page):
    page = open_page(cookie={**site.cookie(), "url": site.insecure})
    page.add_init_script("document.execCommand = () => false")
    key = new_key(page, site.insecure)
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Select it above and copy it")).to_have_count(1)
    assert page.evaluate("getSelection().toString()") == key


def is_dark(page):
    red, green, blue = page.evaluate(f"{GROUND}.match(/[0-9]+/g).slice(0, 3).map(Number)")
    return red + green + blue < 3 * 128


def choose_theme(page, theme):
    page.get_by_label(theme).check()
    page.get_by_role("region", name="Appearance").get_by_role("button", name="Save").click()


@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_chosen_theme_overrides_the_systems_theme(site, open_page, system):
    page, seen = open_page(color_scheme=system), []
    for theme in ("Dark", "Light", "System"):
        page.goto(f"{site.base}/app/settings")
        page.get_by_label(theme).check()
        said(page, "Saved")
        page.wait_for_load_state()  # the style sheet counts
        seen.append(is_dark(page))
        page.goto(f"{site.base}/app/")
        seen.append(is_dark(page))
    assert seen == [True, True, False, False, system == "dark", system == "dark"]


# --- the browser's own complaints, and none of its help -----------------------------------------------------


def test_the_set_up_breaks_no_content_security_policy_and_logs_no_console_error(site, open_context, push_service):
    phone = Phone(site, open_context(), push_service, is_signed_in=False)
    page, troubles = phone.page, listen(phone.page)
    page.on("response", lambda answer: troubles.append(answer.url) if answer.status >= 400 else None)
    page.goto(site.setup_link())
    phone.context.add_cookies([site.cookie()])
    phone.enable()
    page.goto(f"{site.base}/app/login")
    page.goto(f"{site.base}/app/")
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("heading", name="It works")).to_be_visible()
    page.goto(f"{site.base}/app/devices")
    expect(state(page)).to_have_text(ON)
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_text("The push service took the test")).to_be_visible()
    new_key(page, site.base)
    assert troubles == []


def sign_in(page, password):
    page.get_by_label("E-mail address").fill(OWNER)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def look_for(page, search="", status="", day=""):
    """Fill in the history's form and send it."""
    if not page.get_by_label("Status", exact=True).is_visible():
        page.locator("summary", has_text="More filters").click()
    page.get_by_role("searchbox", name="Search").fill(search)
    page.get_by_label("Status", exact=True).select_option(status)
    page.get_by_label("From", exact=True).fill(day)
    page.get_by_label("To", exact=True).fill(day)
    page.get_by_role("button", name="Apply").click()


def test_home_and_history_work_without_javascript(plain, site):
    expect(no_script(plain)).to_be_visible()
    expect(enable_button(plain)).to_be_hidden()
    plain.get_by_role("button", name="Send a test").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("It works")
    site.send("Disk", "root at 98 %")
    plain.get_by_role("link", name="Home").click()
    plain.get_by_role("button", name="Hide these steps").click()
    expect(plain.get_by_text("steps done")).to_have_count(0)
    plain.get_by_role("link", name="All of History").click()
    notifications = plain.locator("a.row.n")
    expect(notifications).to_have_count(2)
    look_for(plain, search="ROOT", status="delivered", day=local_time.local_day(clock.now_ms(), "UTC"))
    expect(notifications).to_have_count(1)
    expect(plain.locator("mark")).to_have_text("root")
    plain.get_by_role("link", name="Disk").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("Disk")
    plain.get_by_role("link", name="History").first.click()
    look_for(plain, status="failed")
    expect(plain.get_by_text("No match")).to_be_visible()
    plain.get_by_role("link", name="Show all").click()
    expect(notifications).to_have_count(2)


def test_quiet_hours_work_without_javascript(plain, site):
    plain.get_by_role("link", name="Settings").click()
    plain.get_by_role("link", name="Quiet hours").first.click()
    plain.get_by_label("From").fill("00:00")
    plain.get_by_label("To", exact=True).fill("23:59")
    plain.get_by_role("button", name="Save").click()
    said(plain, "Quiet hours set: 00:00 to 23:59")
    alert = site.service.alert("--frequency", "1d")  # held, at whatever time of the day
    assert alert.post({"title": "Disk"}).json["status"] == "held"
    plain.reload()
    plain.get_by_role("button", name="Deliver now").click()
    said(plain, "The held notification is being delivered")
    plain.get_by_role("switch", name="Quiet hours").click()
    said(plain, "Quiet hours turned off")


def test_settings_and_signing_in_and_out_work_without_javascript(plain, site):
    plain.get_by_role("link", name="Settings").click()
    choose_theme(plain, "Dark")
    expect(plain.get_by_label("Dark")).to_be_checked()
    expect(plain.locator("meta[name=color-scheme]")).to_have_attribute("content", "dark")
    plain.get_by_role("combobox", name="Time zone").select_option("Asia/Tokyo")
    plain.get_by_role("region", name="Time zone").get_by_role("button", name="Save").click()
    said(plain, "Time zone set to Asia/Tokyo")
    plain.get_by_label("Current password").fill(PASSWORD)
    plain.get_by_label("New password").fill("another horse battery")
    plain.get_by_role("button", name="Change password").click()
    said(plain, "Password changed")
    plain.get_by_text("Sign out everywhere…").click()
    plain.get_by_role("button", name="Sign out everywhere").click()
    expect(plain).to_have_url(f"{site.base}/app/login")
    plain.goto(f"{site.base}/app/settings")
    expect(plain.get_by_role("heading", level=1)).to_have_text("Sign in")
    sign_in(plain, "another horse battery")
    expect(plain).to_have_url(f"{site.base}/app/settings")
    plain.get_by_text(OWNER).first.click()
    plain.get_by_role("button", name="Sign out", exact=True).click()
    expect(plain).to_have_url(f"{site.base}/app/login")
