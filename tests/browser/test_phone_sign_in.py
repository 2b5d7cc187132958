"""Signing in on a phone with two browsers: the owner's computer, and a phone that knows no password."""

import json
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.support.browser import Phone, enable_button, state
from tests.support.pages import CHROME, PUBLIC
from web import guards

MAX_TAPS_ON_PHONE = 3


@pytest.fixture
def site(make_site, monkeypatch):
    """A service that takes an https address for its own; the browsers reach it at another."""
    made = make_site()
    monkeypatch.setattr(guards, "origin", lambda: PUBLIC)
    return made


@pytest.fixture
def open_computer(open_page):
    """Opens the Devices page in the browser of the owner."""
    return partial(open_page, "/app/devices")


def link(site, computer):
    """Have the computer show a code, and return its link as the phone reaches it."""
    computer.get_by_role("button", name="Add a phone").click()
    label = computer.get_by_role("img", name="QR code with the address").get_attribute("aria-label")
    return site.base + label.partition(PUBLIC)[2]


def number(page):
    return page.locator(".typed strong").inner_text()


@pytest.mark.shows_notifications
def test_a_phone_gets_its_first_notification_after_three_taps_on_it_and_two_on_the_computer(
    site, open_computer, open_context, push_service
):
    computer = open_computer()
    context = open_context(viewport={"width": 390, "height": 844}, user_agent=CHROME.replace("X11; Linux", "Android"))
    phone = Phone(site, context, push_service, is_signed_in=False)
    phone.page.goto(link(site, computer))
    phone.page.get_by_role("button", name="Sign in here").click()
    expect(computer.get_by_role("heading", name="Is this your phone?")).to_be_focused()
    assert number(computer) == number(phone.page)
    computer.get_by_role("button", name="Yes, that is my phone").click()
    expect(phone.page.get_by_role("heading", level=1)).to_have_text("Turn on notifications")
    expect(computer.get_by_role("heading", name="Your phone is signed in")).to_be_visible()
    enable_button(phone.page).click()
    expect(state(phone.page)).to_contain_text("This browser gets your notifications.")
    worker = phone.worker()
    phone.page.get_by_role("button", name="Send a test").click()
    expect(phone.page.get_by_role("heading", name="It works")).to_be_visible()
    (message,) = phone.subscription.messages
    assert phone.deliver(worker, json.dumps(message))["title"] == "MCP - It works"
    assert phone.taps() <= MAX_TAPS_ON_PHONE


def test_a_phone_signs_in_with_a_typed_code_and_both_without_javascript(site, open_computer, open_context):
    computer, phone = open_computer(java_script_enabled=False), open_context(java_script_enabled=False).new_page()
    link(site, computer)
    phone.goto(f"{site.base}/app/login")
    phone.get_by_role("link", name="Use a code from your computer").click()
    phone.get_by_label("Code").fill(computer.locator("#code").inner_text().lower())
    phone.get_by_role("button", name="Sign in").click()
    expect(computer.get_by_role("heading", name="Is this your phone?")).to_be_visible()
    assert number(computer) == number(phone)
    computer.get_by_role("button", name="Yes, that is my phone").click()
    expect(phone.get_by_role("heading", level=1)).to_have_text("Turn on notifications")
    expect(computer.get_by_role("heading", name="Your phone is signed in")).to_be_visible()
