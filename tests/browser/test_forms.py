"""What scripts add to forms, which work without them: saving at once, a filter of icons, closing what is unfolded."""

import pytest
from playwright.sync_api import expect

from models import Account
from tests.support.accounts import OWNER
from tests.support.browser import said, until


def test_the_time_zone_is_saved_when_it_changes(owners_page, site):
    owners_page.goto(f"{site.base}/app/settings")
    expect(owners_page.get_by_role("region", name="Time zone").get_by_role("button")).to_be_hidden()
    owners_page.get_by_role("combobox", name="Time zone").select_option("Asia/Tokyo")
    said(owners_page, "Saved")
    owners_page.goto(f"{site.base}/app/quiet")
    expect(owners_page.get_by_text("Asia/Tokyo time")).to_be_visible()
    expect(owners_page.get_by_role("status")).to_have_count(0)  # it was said once


def test_a_choice_after_the_session_ended_leads_to_the_sign_in_page_that_says_so(owners_page, site):
    owners_page.goto(f"{site.base}/app/settings")
    owners_page.context.clear_cookies()
    owners_page.get_by_role("combobox", name="Time zone").select_option("Asia/Tokyo")
    expect(owners_page.get_by_text("your last change was not saved")).to_be_visible()


def test_of_choices_in_quick_succession_the_last_one_is_saved(owners_page, site):
    posts = []
    owners_page.goto(f"{site.base}/app/settings")
    owners_page.route("**/time-zone", lambda route: (posts.append(route), len(posts) > 1 and route.continue_()))
    for zone in ("Asia/Tokyo", "Europe/Berlin"):
        owners_page.get_by_role("combobox", name="Time zone").select_option(zone)
    until(lambda: Account.find(OWNER).time_zone == "Europe/Berlin", owners_page)
    posts[0].continue_()  # which arrives last
    until(lambda: len(posts) == 3 and Account.find(OWNER).time_zone == "Europe/Berlin", owners_page)


def test_icons_are_found_by_words_of_their_names(alert):
    page = alert.page
    alert.tab("Settings")
    icons = page.get_by_role("radio")
    count = icons.count()
    search = page.get_by_label("Filter icons by name")
    search.fill("Charging batt")
    expect(icons.and_(page.locator(":visible"))).to_have_count(1)
    page.get_by_role("radio", name="battery-charging").check()
    search.fill("no such icon")
    expect(page.get_by_text("No icon has that name.")).to_be_visible()
    search.fill("")
    assert count > 50 and icons.and_(page.locator(":visible")).count() == count
    page.get_by_role("button", name="Save settings").click()
    expect(page.locator("#icon :checked")).to_have_value("battery-charging")


def test_senders_are_found_by_words_of_their_names(owners_page, site):
    page = owners_page
    page.goto(f"{site.base}/app/alerts/new")
    page.get_by_label("Filter senders").fill("home ass")
    expect(page.locator("#presets label:visible")).to_have_count(1)
    page.get_by_text("Home Assistant", exact=True).click()
    page.get_by_role("button", name="Create alert").click()
    expect(page.get_by_role("heading", name="Home Assistant", level=1)).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_an_unfolded_row_is_closed_by_escape_and_by_a_tap_elsewhere(owners_page, site, width):
    owners_page.set_viewport_size({"width": width, "height": 800})
    site.new_key()
    owners_page.goto(f"{site.base}/app/keys")
    summary = owners_page.locator("summary", has_text="Revoke…")
    button = owners_page.get_by_role("button", name="Revoke sender")
    for close in (lambda: owners_page.keyboard.press("Escape"), lambda: owners_page.mouse.click(5, 5)):
        summary.click()
        expect(button).to_be_visible()
        close()
        expect(button).to_be_hidden()


def test_a_button_that_is_pressed_twice_sends_its_form_once(owners_page, site):
    requests = []
    owners_page.goto(f"{site.base}/app/ring")
    owners_page.route("**/app/ring", lambda route: requests.append(route))
    for label in ("Title", "Text"):
        owners_page.get_by_label(label, exact=True).fill("Dinner")
    button = owners_page.get_by_role("button", name="Ring").bounding_box()
    for _ in range(2):
        owners_page.mouse.click(button["x"] + 9, button["y"] + 9)
    until(lambda: requests, owners_page)[0].continue_()
    expect(owners_page.get_by_role("heading", name="Dinner", level=1)).to_be_visible()
    assert len(requests) == 1
