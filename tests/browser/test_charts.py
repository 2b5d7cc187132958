"""A metric's chart in a real browser: drawn, read, in both themes, on narrow pages, and without JavaScript."""

import pytest
from playwright.sync_api import expect

from core import local_time
from process import clock
from process.clock import DAY_MS
from tests.support.accounts import OWNER, account_set
from tests.support.browser import listen, until
from tests.support.times import MINUTE_MS

ZONE = "Asia/Kathmandu"  # of the account; the browser is in another one
# How many dots of the chart have the colour of this variable of the style sheet, which it is drawn with.
DOTS = """
(name) => {
  const canvas = document.querySelector(".plot canvas");
  const wanted = getComputedStyle(canvas).getPropertyValue(name).trim();
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, copy.width, copy.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) {
    found += data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255;
  }
  return found;
}
"""


def value_at(age):
    return 20 + age // MINUTE_MS % 7


@pytest.fixture
def cpu(site):
    """A session; the path of a metric with a value every ten minutes, a gap and a rule; its newest time."""
    cookie = site.cookie()
    account_set("--timezone", ZONE)
    site.service.flask("rule", "create", OWNER, "web", "cpu", "> 30")
    now = clock.now_ms() // MINUTE_MS * MINUTE_MS
    ages = [n * 10 * MINUTE_MS for n in range(140) if not 40 < n < 52]
    key = site.new_key()
    for start in range(0, len(ages), 100):
        values = [
            {"metricId": "cpu", "metricName": "CPU", "value": value_at(age), "unit": "<%>", "timestamp": now - age}
            for age in ages[start : start + 100]
        ]
        site.request("/api/webhooks/custom", key, {"projectId": "web", "metrics": values})
    return cookie, "/app/metrics/one?project=web&metric=cpu", now


@pytest.fixture
def chart(cpu, site, open_page):
    """Opens the metric's page: the page, and what the browser complains of."""

    def show(**options):
        page = open_page(cookie=cpu[0], timezone_id="America/Los_Angeles", **options)
        troubles = listen(page)
        page.goto(site.base + cpu[1])
        return page, troubles

    return show


def test_the_chart_is_drawn_in_the_colours_of_the_theme(chart):
    page, troubles = chart(color_scheme="light")
    expect(page.locator(".plot canvas")).to_have_count(1)
    expect(page.locator(".plot svg")).to_have_count(0)
    expect(page.locator(".legend")).to_have_text("rule")  # the parts have one value each
    light = page.evaluate(DOTS, "--accent"), page.evaluate(DOTS, "--bad")
    page.emulate_media(color_scheme="dark")
    until(lambda: page.evaluate(DOTS, "--accent") > 100, page)
    dark = page.evaluate(DOTS, "--accent"), page.evaluate(DOTS, "--bad")
    assert min(light[0], dark[0]) > 100 and min(light[1], dark[1]) > 100
    assert troubles == []


def test_pointing_at_the_chart_shows_the_value_and_its_time_in_the_accounts_zone(chart, cpu):
    page, troubles = chart()
    box = page.locator(".u-over").bounding_box()
    age = 30 * 10 * MINUTE_MS
    page.mouse.move(box["x"] + page.evaluate(f"drawn.valToPos({cpu[2] - age}, 'x')"), box["y"] + 100)
    at = local_time.laid_out(cpu[2] - age, "%Y-%m-%d %H:%M:%S", ZONE)
    expect(page.locator(".tip")).to_have_text(f"{value_at(age)} <%>\n{at}", use_inner_text=True)
    page.mouse.move(0, 0)
    expect(page.locator(".tip")).to_be_hidden()
    assert troubles == []


def test_pointing_at_several_values_shows_mean_minimum_maximum_and_their_time_range(chart, cpu):
    page, _ = chart()
    page.get_by_role("link", name="30 d", exact=True).click()
    page.wait_for_url("**range=30*")
    box = page.locator(".u-over").bounding_box()
    place = page.evaluate(f"drawn.data[0].find((x) => x > {cpu[2] - 4 * 3_600_000})")
    page.mouse.move(round(box["x"] + page.evaluate(f"drawn.valToPos({place}, 'x')")), box["y"] + 100)
    text = page.locator(".tip").inner_text().split("\n")
    assert text[0].startswith("mean 2") and text[0].endswith(" <%>")
    assert text[1] == "min 20 · max 26 <%>" and text[2] == "12 values"
    begin, end = text[3].split(" – ")
    local = local_time.laid_out(int(place), "%Y-%m-%d %H:%M", ZONE)
    end = end.replace("00:00", "24:00") if len(end) == 5 else end  # midnight ends the day
    assert begin <= local <= (end if len(end) > 5 else f"{begin[:11]}{end}")
    expect(page.locator(".legend")).to_have_text("meanmin to maxrule")


def test_the_chart_follows_the_width_of_the_page(chart):
    page, _ = chart(viewport={"width": 1280, "height": 800})
    expect(page.locator(".plot canvas")).to_have_count(1)
    page.set_viewport_size({"width": 320, "height": 800})
    until(lambda: page.evaluate("drawn.width === plot.clientWidth && drawn.width < innerWidth"), page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_without_javascript_there_are_a_picture_and_the_table(chart):
    page, _ = chart(java_script_enabled=False)
    expect(page.locator(".plot svg polyline")).to_have_count(2)  # a gap is between them
    expect(page.locator(".legend")).to_be_hidden()
    page.get_by_text("As a table").click()
    expect(page.get_by_role("region", name="Values").get_by_role("row")).to_have_count(130)


def test_where_the_chart_cannot_be_drawn_the_picture_stays(chart):
    page, _ = chart()
    page.route("**/uPlot.iife.min.js*", lambda route: route.fulfill(body="throw new RangeError('no such locale')"))
    page.reload()
    expect(page.locator(".plot svg polyline")).to_have_count(2)


def test_only_a_page_with_a_chart_loads_what_draws_it(chart, cpu, site):
    page, _ = chart()
    loaded = "performance.getEntriesByType('resource').filter(({ name }) => /uPlot|charts/.test(name))"
    assert page.evaluate(f"{loaded}.length") == 3
    for path in ("/app/", "/app/metrics", "/app/watches"):
        page.goto(site.base + path)
        assert page.evaluate(f"{loaded}.length") == 0


def test_values_of_a_day_ago_and_older_are_drawn_in_the_ranges_that_have_them(site, owners_page):
    key = site.new_key()
    value = {"metricId": "m", "metricName": "M", "value": 1, "timestamp": clock.now_ms() - 3 * DAY_MS}
    site.request("/api/webhooks/custom", key, {"projectId": "p", "metrics": [value]})
    owners_page.goto(f"{site.base}/app/metrics/one?project=p&metric=m")
    expect(owners_page.get_by_text("No values in the last 24 h.")).to_have_count(1)
    owners_page.get_by_role("link", name="7 d", exact=True).click()
    expect(owners_page.locator(".plot canvas")).to_have_count(1)
    assert owners_page.evaluate(DOTS, "--accent") > 5  # the dot of one value alone
    owners_page.evaluate("document.querySelector('.plot canvas').style.setProperty('--white', '#ffffff')")
    assert owners_page.evaluate(DOTS, "--white") == 0  # with which uPlot fills a dot by itself


ODD = [[0, 0], [42], [-5, -7], [1, 1 + 1.1e-6], [9e14, -9e14], [2e-9, 1.5e-9], [1e12, 1e12 + 5e6], [99999.5, 100000]]


def test_the_axis_has_a_few_distinct_labels_for_any_values(site, owners_page):
    key = site.new_key()
    now = clock.now_ms()
    metrics = [
        {"metricId": str(n), "metricName": "M", "value": value, "timestamp": now - (at + 1) * 60 * MINUTE_MS}
        for n, values in enumerate(ODD)
        for at, value in enumerate(values)
    ]
    site.request("/api/webhooks/custom", key, {"projectId": "p", "metrics": metrics})
    troubles = listen(owners_page)
    for n, values in enumerate(ODD):
        owners_page.goto(f"{site.base}/app/metrics/one?project=p&metric={n}")
        expect(owners_page.locator(".plot canvas")).to_have_count(1)
        labels = owners_page.evaluate("drawn.axes[1]._values")
        assert 2 <= len(labels) <= 7 and len(set(labels)) == len(labels), (values, labels)
    assert troubles == []
