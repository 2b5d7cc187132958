"""Metrics in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from process import clock
from process.clock import DAY_MS
from tests.support.browser import listen


@pytest.mark.parametrize("has_script", [True, False], ids=["JavaScript", "none"])
def test_a_metric_is_shown_in_each_range_and_downloaded(site, open_context, has_script):
    context = open_context(java_script_enabled=has_script)
    context.add_cookies([site.cookie()])
    make_values(site)
    page = context.new_page()
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
        expect(page.locator(".plot canvas" if has_script else ".plot svg")).to_have_count(1)
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


@pytest.mark.parametrize("has_script", [True, False], ids=["JavaScript", "none"])
def test_a_rule_is_made_from_the_value_shown_listed_and_deleted(site, open_context, has_script):
    context = open_context(java_script_enabled=has_script)
    context.add_cookies([site.cookie()])
    make_values(site)
    page = context.new_page()
    troubles = listen(page)
    page.goto(f"{site.base}/app/metrics")
    page.get_by_role("link", name="<b class=hostile>Boiler</b>").click()
    expect(page.get_by_label("Value (=°C)")).to_have_value("1")
    page.get_by_label("Notify me when the value is").select_option("below")
    page.get_by_label("For (optional)").fill("5m")
    page.get_by_role("button", name="Add rule").click()
    expect(page.get_by_role("status")).to_have_text("Rule added: < 1 for 5m.")
    page.get_by_text("Add a rule").click()
    page.get_by_label("Notify me when nothing arrives for").fill("2h")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("link", name="Watches").click()
    rules = page.locator("section", has=page.get_by_role("heading", name="Metric rules")).get_by_role("listitem")
    expect(rules).to_have_count(2)
    expect(rules.first).to_contain_text("nothing for 2 h")
    rules.last.get_by_role("link").click()
    line = page.get_by_role("listitem").filter(has_text="below 1 =°C for 5 min")
    line.locator("summary").click()
    line.get_by_role("button", name="Delete below 1 =°C for 5 min").click()
    expect(page.get_by_role("status")).to_contain_text("Rule deleted")
    expect(line).to_have_count(0)
    assert troubles == []


def test_the_range_of_the_list_is_that_of_a_metrics_page(owners_page, site):
    make_values(site)
    owners_page.goto(f"{site.base}/app/metrics")
    owners_page.get_by_role("link", name="30 d", exact=True).click()
    owners_page.get_by_role("link", name="Boiler").click()
    expect(owners_page.locator(".segments [aria-current]")).to_have_text("30 d")
    owners_page.get_by_text("As a table").click()
    expect(owners_page.locator("tbody tr")).to_have_count(3)


def test_the_page_of_no_metrics_has_a_command_to_copy(open_context, site):
    context = open_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    context.add_cookies([site.cookie()])
    page = context.new_page()
    page.goto(f"{site.base}/app/metrics")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(1)
    assert f"{site.base}/api/webhooks/custom" in page.evaluate("navigator.clipboard.readText()")
