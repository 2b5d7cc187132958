"""What changes on a page by itself, and that nothing on a page jumps: while it loads, and when it changes."""

import pytest
from playwright.sync_api import expect

from tests.support.accounts import OWNER
from tests.support.browser import OBSERVE, SHIFTS, Phone, jumps, settle
from tests.support.full_site import PLAIN, SEARCHES, full_pages
from tests.support.heartbeats import Pinged

WIDTHS = (390, 1280)
BYTES_PER_S = 8_000  # so slow that a page arrives in many parts


def observed(site, open_context, push_service, width, *cookies):
    """A page that keeps its layout shifts."""
    context = open_context(viewport={"width": width, "height": 844})
    context.add_cookies([*cookies])
    page = Phone(site, context, push_service, is_signed_in=False).page
    page.add_init_script(OBSERVE)
    return page


@pytest.fixture
def page(phone):
    """The owner's page, whose clock the test moves."""
    phone.page.clock.install()
    return phone.page


def test_no_page_jumps_while_it_loads_on_a_phone(full, open_context, push_service):
    """Whether one does on a large screen is seen in test_pages.py."""
    page = observed(full.site, open_context, push_service, WIDTHS[0], full.cookie)
    addresses, found = full_pages(full), {}
    kinds = (
        "notification: long",
        "notification: digest",
        "alert: large",
        "alert, connect",
        "watch: down",
        "metric, 7 d",
    )
    for name in (*PLAIN, *SEARCHES, *kinds, "metric, changing a value rule"):
        page.goto(full.site.base + addresses[name])
        settle(page)
        found[name] = jumps(page)
    assert not any(found.values()), "\n".join(f"{name}: {shifts}" for name, shifts in found.items() if shifts)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_that_arrives_slowly_is_shown_once_it_is_whole(full, open_context, push_service, width):
    page = observed(full.site, open_context, push_service, width, full.cookie)
    page.goto(full.site.base + full_pages(full)["alert: recent"])
    slow = {"offline": False, "latency": 0, "downloadThroughput": BYTES_PER_S, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    page.reload()  # the style sheet and the scripts are there by now
    settle(page)
    assert page.evaluate(SHIFTS) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_of_a_visitor_or_a_new_account_jumps_while_it_loads(site, open_context, push_service, width):
    page = observed(site, open_context, push_service, width)
    found = {}

    def look(path):
        page.goto(path)
        settle(page)
        found[path] = jumps(page)

    look(site.setup_link())
    page.context.add_cookies([site.cookie()])
    for path in PLAIN.values():
        look(site.base + path)
    page.context.clear_cookies()
    for path in ("/app/login", "/app/phone", "/docs"):
        look(site.base + path)
    assert not any(found.values()), "\n".join(f"{path}: {shifts}" for path, shifts in found.items() if shifts)


@pytest.mark.parametrize("width", WIDTHS)
def test_devices_do_not_jump_in_a_browser_that_gets_notifications(phone, width):
    phone.page.set_viewport_size({"width": width, "height": 844})
    phone.page.add_init_script(OBSERVE)
    phone.enable()
    settle(phone.go())
    assert jumps(phone.page) == []


@pytest.mark.parametrize(
    "path, width, rows, height",  # the page scrolls, or is too short for that
    [
        ("/app/", 390, 12, 500),
        ("/app/", 1280, 2, 1600),
        ("/app/notifications", 390, 2, 1600),
        ("/app/notifications", 1280, 12, 500),
    ],
)
def test_home_and_history_do_not_jump_when_they_change_by_themselves(page, site, path, width, rows, height):
    page.add_init_script(OBSERVE)
    page.set_viewport_size({"width": width, "height": height})
    site.service.flask("heartbeat", "create", OWNER, "Backup", "--period", "1h")
    for number in range(rows):
        site.send(f"Bell {number}", "x")
    page.goto(site.base + path)
    settle(page)
    row = page.locator("a.row.n").first
    before = row.bounding_box()["y"]
    site.send("Freezer", acknowledge=True)
    page.clock.run_for(5_000)
    strip = page.get_by_role("link", name="1 new")
    expect(strip).to_be_visible()
    if path == "/app/":
        expect(page.get_by_role("button", name="Acknowledge Freezer")).to_be_attached()
    assert jumps(page) == []
    after, seen = row.bounding_box(), strip.bounding_box()
    assert abs(after["y"] - before) < 1 and seen["y"] + seen["height"] <= after["y"]
    if path != "/app/":  # Home has it beside its heading
        assert seen["width"] > 0.9 * after["width"]
        assert page.get_by_role("heading", name="Today").bounding_box()["y"] >= seen["y"]


def test_watches_change_by_themselves(page, site):
    page.goto(f"{site.base}/app/watches")
    site.service.flask("heartbeat", "create", OWNER, "Backup", "--period", "1h")
    page.clock.run_for(5_000)
    expect(page.get_by_role("link", name="Backup")).to_contain_text("Waiting for the first ping")
    expect(page.get_by_role("main").get_by_text("1 new")).to_be_visible()
    Pinged(site.service, site.service.caller(), "--period", "1h", name="Mail").ping("/fail")
    page.clock.run_for(5_000)
    expect(page.get_by_role("link", name="Mail")).to_contain_text("Down since")
    expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Watches")).to_contain_text("1 need")


def test_metrics_change_by_themselves(page, site):
    key = site.new_key()

    def send(value):
        metric = {"metricId": "t", "metricName": "Temperature", "value": value}
        site.request("/api/webhooks/custom", key, {"projectId": "home", "metrics": [metric]})

    page.goto(f"{site.base}/app/metrics")
    for value in ("21.5", "22.5"):  # the first makes the list, the second is in it
        send(float(value))
        page.clock.run_for(5_000)
        expect(page.get_by_role("link", name="Temperature")).to_contain_text(value)


def test_a_part_is_not_replaced_while_its_menu_is_open_or_a_field_in_it_has_the_focus(page, site):
    site.service.flask("heartbeat", "create", OWNER, "Backup", "--period", "1h")
    page.goto(f"{site.base}/app/watches")
    page.get_by_role("link", name="Backup").focus()
    site.service.flask("heartbeat", "create", OWNER, "Mail", "--period", "1h")
    page.clock.run_for(5_000)
    expect(page.get_by_role("link", name="Backup")).to_be_focused()
    page.get_by_role("link", name="New heartbeat").evaluate("() => document.activeElement.blur()")
    page.clock.run_for(5_000)
    expect(page.get_by_role("link", name="Mail")).to_be_visible()
