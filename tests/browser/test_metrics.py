"""Metrics in a real browser."""

from pathlib import Path

from playwright.sync_api import expect

from process import clock
from process.clock import DAY_MS
from tests.support.browser import listen


def test_a_metric_is_shown_in_each_range_and_downloaded(site, owners_page):
    page = owners_page
    make_values(site)
    troubles = listen(page)
    page.goto(f"{site.base}/app/")
    page.get_by_role("link", name="Metrics", exact=True).click()
    page.get_by_role("link", name="<b class=hostile>Boiler</b>").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<b class=hostile>Boiler</b>")
    for name, seen in (("24 h", ["1"]), ("7 d", ["1", "2"]), ("30 d", ["1", "2", "4"])):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "true")
        expect(page.locator(".segments [aria-current]")).to_have_count(1)
        page.get_by_text("As a table").click()
        expect(page.locator("tbody tr td:nth-child(3)")).to_have_text(seen)
        page.locator("main .head summary").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as CSV").click()
        lines = Path(download.value.path()).read_text().splitlines()
        assert lines[0] == '"time","value","unit"'
        assert [line.split(",")[1:] for line in lines[1:]] == [[f"{value}.0", '"\'=°C"'] for value in reversed(seen)]
        assert download.value.suggested_filename.endswith(".csv")
        expect(page.locator(".plot canvas")).to_have_count(1)
        expect(page.locator("main .hostile")).to_have_count(0)
    page.get_by_role("link", name="Metrics").last.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Metrics")
    assert troubles == []


def make_values(site):
    """Make one series: its last value is in no range, and each range holds one value more than the range before."""
    key = site.new_key()
    ages = {1: 0, 2: 2 * DAY_MS, 4: 20 * DAY_MS, 8: 40 * DAY_MS}
    values = [
        {"metricId": "temp/1&2", "metricName": "<b class=hostile>Boiler</b>", "value": value, "unit": "=°C"}
        | {"timestamp": clock.now_ms() - age - 60_000}
        for value, age in ages.items()
    ]
    site.request("/api/webhooks/custom", key, {"projectId": "home #1", "metrics": values})


def test_the_page_of_no_metrics_has_a_command_to_copy(open_page, site):
    page = open_page("/app/metrics")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert f"{site.base}/api/webhooks/custom" in page.evaluate("navigator.clipboard.readText()")
