"""Alerts in a real browser: from "New" to a notification that looks right, and what can go wrong on the way.

How the pages look and read stands in test_pages.py.
"""

import re
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from tests.support.alerts_in_browser import EVENT, AlertPage, open_values, post, pushed
from tests.support.browser import MAX_TAPS, follow, said, tab_to

POLL_MS = 5_000


# --- the whole way ------------------------------------------------------------------------------------------


def test_a_new_alert_shows_a_grafana_event_as_a_formatted_notification(phone, site, grafana):
    phone.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    phone.enable()
    page, before = phone.go("/app/"), phone.taps()
    page.clock.install()
    page.get_by_role("link", name="Alerts", exact=True).click()
    follow(page.get_by_role("link", name="New alert", exact=True))
    page.get_by_role("radio", name="Grafana").check()
    page.get_by_role("button", name="Create alert").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Grafana")
    expect(page.get_by_text("Contact points")).to_be_visible()  # how to send from there
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert phone.taps() - before <= MAX_TAPS
    address = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(rf"{site.base}/p/[0-9A-Za-z]{{7}}", address)
    expect(page.locator(".note", has_text="Waiting for the first request")).to_be_visible()
    post(address, grafana)
    page.clock.run_for(POLL_MS + 100)
    expect(page.get_by_text("Waiting for the first request")).to_have_count(0)
    shown = ("TestAlert resolved · Grafana", "All clear\nResolved: Notification test")
    assert AlertPage.shown.fget(SimpleNamespace(page=page)) == shown
    assert pushed(phone) == [shown]
    expect(page.locator("#preview li")).to_have_count(0)  # nothing is missing
    expect(page.get_by_role("button", name="Use the message")).to_have_count(0)


def test_a_waiting_page_shows_a_first_request_that_was_refused(page_with_clock, site):
    waiting = AlertPage(page_with_clock, site)
    with pytest.raises(urllib.error.HTTPError):
        post(waiting.address, b"{")
    page_with_clock.clock.run_for(POLL_MS + 100)
    expect(page_with_clock.get_by_text("Still waiting: the last request was refused with 400")).to_be_visible()


def not_reloaded(page, payload_of=None):
    """Give the page three chances to reload, and return whether it did not."""
    page.evaluate("window.isSame = true")
    if payload_of:
        post(payload_of.address, EVENT)
    for _ in range(3):
        page.clock.run_for(POLL_MS + 100)
        page.wait_for_timeout(150)  # for answers to what the page asked
    return page.evaluate("window.isSame === true")


def test_a_waiting_page_does_not_reload_while_a_template_is_edited(page_with_clock, site):
    waiting = AlertPage(page_with_clock, site)
    waiting.title.fill("{{ host")
    assert not_reloaded(page_with_clock, waiting)
    expect(waiting.title).to_have_value("{{ host")
    waiting.title.fill("")
    page_with_clock.clock.run_for(POLL_MS + 100)
    expect(page_with_clock.get_by_text("Waiting for the first request")).to_have_count(0)


@pytest.mark.parametrize("meanwhile", ["nothing came", "restarted", "offline"])
def test_a_waiting_page_waits_on_until_the_first_request(phone, site, meanwhile):
    phone.start_worker()
    page = phone.page
    page.clock.install()
    waiting = AlertPage(page, site)
    if meanwhile == "restarted":
        page.route(f"**{waiting.path}*", lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
    phone.context.set_offline(meanwhile == "offline")
    assert not_reloaded(page)
    phone.context.set_offline(False)
    page.unroute_all()
    post(waiting.address, EVENT)
    page.clock.run_for(POLL_MS + 100)
    expect(page.get_by_text("Waiting for the first request")).to_have_count(0)
    waiting.expect_shown("Disk", "root at 98 %")


def test_a_waiting_page_does_not_send_its_test_twice(page_with_clock, site):
    """The page that shows a draft answers a POST: to reload it would post the draft again."""
    waiting = AlertPage(page_with_clock, site)
    waiting.title.fill("{{ title | nothing }}")
    page_with_clock.get_by_role("button", name="Send a test").click()
    expect(page_with_clock.get_by_role("alert")).to_be_visible()
    sent = site.count("POST", waiting.path)
    not_reloaded(page_with_clock, waiting)
    assert site.count("POST", waiting.path) == sent
    expect(waiting.title).to_have_value("{{ title | nothing }}")


# --- the rest of the page -----------------------------------------------------------------------------------


def test_the_qr_code_is_drawn(alert):
    alert.tab("Connect")
    alert.page.get_by_text("Show as a QR code").click()
    expect(alert.page.get_by_role("img", name="QR code with the webhook address")).to_be_visible()


def test_an_alert_can_be_set_up_by_keyboard_alone(phone, site):
    phone.enable()
    page, keyboard = phone.go("/app/"), phone.page.keyboard
    tab_to(page, "Alerts")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/alerts")
    tab_to(page, "New alert")
    keyboard.press("Enter")
    expect(page).to_have_url(f"{site.base}/app/alerts/new")
    tab_to(page, "Your own JSONAny program that can send a request. You write the title and text.")
    for _ in range(4):  # round to the first, and on to the fourth
        keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Diun")).to_be_checked()
    tab_to(page, "Create alert")
    keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Diun")
    post(page.locator("#address").inner_text(), EVENT)
    page.reload()
    expect(page.get_by_text("Waiting for the first request")).to_have_count(0)
    tab_to(page, "Title")
    keyboard.press("Control+A")
    keyboard.type("on {{ host.name }}")
    tab_to(page, "Text")
    keyboard.press("Control+A")
    keyboard.type("in ")
    open_values(page)
    tab_to(page, "host.zone")
    keyboard.press("Enter")
    expect(page.locator("#preview strong")).to_have_text("on web-1")
    expect(page.locator("#preview .text")).to_have_text("in eu")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    tab_to(page, "Save")
    keyboard.press("Enter")
    said(page, "Saved")
    tab_to(page, "Send a test", most=60)
    keyboard.press("Space")
    said(page, "Test delivered")
    assert pushed(phone)[-1] == ("on web-1", "in eu")


def test_a_focused_value_does_not_move_when_a_preview_arrives(alert):
    open_values(alert.page)
    value = alert.page.get_by_role("button", name="host.name").element_handle()
    before = alert.previews()
    alert.title.fill("another title")
    alert.expect_shown("another title")
    assert alert.previews() > before and value.evaluate("it => it.isConnected")


def test_a_value_can_be_inserted_into_the_title_by_keyboard_alone(alert):
    """Between the title and the values, the focus passes through the text."""
    alert.title.focus()
    alert.page.keyboard.type("on ")
    open_values(alert.page)
    tab_to(alert.page, "host.name")
    alert.page.keyboard.press("Enter")
    expect(alert.title).to_have_value("on {{ host.name }}")


def test_an_alert_can_be_set_up_without_javascript(plain, site):
    plain.get_by_role("link", name="Alerts", exact=True).click()
    plain.get_by_role("link", name="New alert").click()
    alert = AlertPage(plain, site)
    expect(plain.get_by_role("button", name="Copy")).to_have_count(0)
    expect(plain.locator(".note", has_text="Waiting for the first request")).to_be_visible()
    alert.receive()
    alert.expect_shown("Disk", "root at 98 %")
    for button in plain.get_by_role("button").all():
        assert button.get_attribute("type") != "button", f"“{button.inner_text()}” does nothing"
    alert.title.fill("{{ titel }}")
    plain.get_by_role("button", name="Preview").click()
    expect(alert.wrong).to_have_text(["titel is not in this request. Did you mean title?"])
    alert.title.fill("{{ title | upper }}")
    plain.get_by_role("button", name="Preview").click()
    expect(alert.error).to_contain_text('There is no filter "upper"')
    alert.title.fill("{{ title | upcase }}")
    plain.get_by_text("Preview with other JSON").click()
    plain.get_by_label("JSON", exact=True).fill("{no JSON")
    plain.get_by_role("button", name="Preview").click()
    expect(plain.get_by_role("alert")).to_be_visible()
    expect(alert.title).to_have_value("{{ title | upcase }}")
    plain.get_by_label("JSON", exact=True).fill('{"title": "push"}')
    plain.get_by_role("button", name="Preview").click()
    alert.expect_shown("PUSH")
    plain.get_by_label("JSON", exact=True).fill("")
    plain.get_by_role("button", name="Send a test").click()
    said(plain, "No device received it")
    plain.goto(site.base + alert.path)
    alert.title.fill("{{ title | upcase }}")
    alert.save()
    alert.tab("Activity")
    plain.get_by_role("button", name="Send again").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("DISK")
    plain.goto(f"{site.base}{alert.path}?tab=settings")
    expect(plain.get_by_label("Filter icons by name")).to_be_hidden()
    plain.get_by_label("Delivery").select_option("1d")
    plain.get_by_role("button", name="Save settings").click()
    said(plain, "Saved")
    expect(plain.get_by_label("Delivery")).to_have_value("1d")
    alert.tab("Connect")
    expect(plain.get_by_role("button", name="Create new address")).to_be_hidden()
    plain.get_by_text("New address…").click()
    plain.get_by_role("button", name="Create new address").click()
    said(plain, "New address created")
    alert.tab("Settings")
    expect(plain.get_by_role("button", name="Delete Own JSON")).to_be_hidden()
    plain.get_by_text("Delete this alert…").click()
    plain.get_by_role("button", name="Delete Own JSON").click()
    said(plain, "deleted")
