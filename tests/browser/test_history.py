"""The history in a real browser: new notifications, deletion with undo, keyboard shortcuts."""

import pytest
from playwright.sync_api import expect

from core import accounts
from models import Account
from store.database import run
from tests.support.accounts import OWNER
from tests.support.browser import until


@pytest.fixture
def page(page_with_clock):
    return page_with_clock


def rows(page):
    return page.locator("a.row.n")


@pytest.mark.parametrize("path", ["/app/", "/app/notifications"])
def test_new_notifications_are_announced_and_shown_on_tap(page, site, path):
    site.send("first", "x")
    page.goto(site.base + path)
    site.send("second", "x")
    site.send("third", "x")
    page.clock.run_for(5_000)
    news = page.get_by_role("link", name="2 new")
    expect(news).to_be_visible()
    expect(rows(page)).to_have_count(1)
    news.click()
    expect(rows(page)).to_have_count(3)
    expect(news).to_have_count(0)


def test_home_updates_its_problems_without_a_reload(page, site):
    site.send("first", "x")
    page.goto(f"{site.base}/app/")
    heading = page.get_by_role("heading", level=1)
    before = heading.inner_text()
    site.send("Freezer", acknowledge=True)
    page.clock.run_for(5_000)
    expect(page.get_by_role("button", name="Acknowledge Freezer")).to_be_visible()
    expect(heading).to_contain_text("you")
    assert heading.inner_text() != before and page.title().startswith(heading.inner_text())
    expect(page.locator("[data-said]")).to_have_text(heading.inner_text())


def test_the_exception_of_a_row_is_whole_where_there_is_room_and_else_ends_in_an_ellipsis(page, site):
    site.send("Deploy shop 2.15 to all of the servers?", "x" * 2_000, actions=[{"label": "Yes", "answer": "y"}])
    for width, is_dense, how in ((1280, False, "whole"), (390, True, "ellipsis")):
        accounts.change(Account.find(OWNER), has_dense_rows=int(is_dense))
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(f"{site.base}/app/notifications")
        look = "(it) => it.scrollWidth > it.clientWidth ? getComputedStyle(it).textOverflow : 'whole'"
        assert rows(page).first.locator(".s .soon").evaluate(look) == how


def test_a_hidden_page_does_not_poll(page, site):
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => !window.isSeen });")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/new" in request.url else None)
    page.goto(f"{site.base}/app/notifications")
    page.clock.run_for(60_000)
    assert asked == []
    with page.expect_request("**/app/notifications/new*"):
        page.evaluate("window.isSeen = true; document.dispatchEvent(new Event('visibilitychange'))")


def choose(page, site):
    """Delete the newest of two, with a double click."""
    for title in ("stays", "goes"):
        site.send(title, "x")
    page.goto(f"{site.base}/app/notifications")
    page.get_by_role("link", name="Select").click()
    page.get_by_label("Select goes").check()
    page.get_by_role("button", name="Delete").dblclick()
    expect(page.get_by_text("1 deleted")).to_be_visible()
    expect(page.get_by_role("link", name="goes")).to_be_hidden()


WAYS = {
    "a link": lambda page: page.get_by_role("link", name="Done").click(),
    "keys": lambda page: page.keyboard.type("gn"),
    "a form": lambda page: page.get_by_role("searchbox").press("Enter"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_next_page_no_longer_lists_what_was_just_deleted(page, site, way):
    choose(page, site)
    with page.expect_navigation():
        WAYS[way](page)
    expect(page.get_by_role("link", name="Select")).to_be_visible()
    assert rows(page).count() == 1


def test_a_second_deletion_completes_the_first_and_is_the_one_that_can_be_undone(page, site):
    site.send("other", "x")
    choose(page, site)
    page.get_by_label("Select other").check()
    with page.expect_response("**/app/notifications/delete"):
        page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("1 deleted")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="other")).to_be_visible()
    page.reload()
    assert rows(page).locator("strong").all_inner_texts() == ["stays", "other"]


def test_a_deletion_after_the_session_ended_says_so_and_shows_the_rows_again(page, site):
    choose(page, site)
    accounts.sign_out_everywhere(Account.find(OWNER).seq)
    page.clock.run_for(8_000)
    expect(page.get_by_role("alert")).to_have_text("Could not delete them: you are signed out. Sign in again.")
    expect(page.get_by_role("link", name="goes")).to_be_visible()


@pytest.mark.parametrize("kind", ["page", "plain"])
def test_enter_on_a_selected_row_does_nothing(request, site, kind):
    page = request.getfixturevalue(kind)
    site.send("stays", "x")
    page.goto(f"{site.base}/app/notifications?select=1")
    box = page.get_by_label("Select stays")
    box.check()
    box.press("Enter")
    page.wait_for_timeout(100)
    expect(box).to_be_checked()
    assert page.locator(".toast").count() == 0 and page.url == f"{site.base}/app/notifications?select=1"


def test_undo_restores_a_deleted_notification(page, site):
    choose(page, site)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="goes")).to_be_visible()
    page.clock.run_for(20_000)
    page.reload()
    expect(rows(page)).to_have_count(2)


def test_without_undo_a_notification_is_deleted_after_a_delay(page, site):
    choose(page, site)
    with page.expect_response("**/app/notifications/delete"):
        page.clock.run_for(8_000)
    page.reload()
    expect(rows(page)).to_have_count(1)


def test_leaving_the_page_completes_a_deletion(page, site):
    choose(page, site)
    page.goto(f"{site.base}/app/settings")
    until(lambda: run("SELECT count(*) FROM notification").fetchone()[0] == 1, page)
    page.goto(f"{site.base}/app/notifications")
    expect(rows(page)).to_have_count(1)
