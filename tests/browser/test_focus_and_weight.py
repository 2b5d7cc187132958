"""The focused element is never covered, and the first load of every page is small."""

import gzip

import pytest

from tests.support.browser import until
from tests.support.full_site import OFFLINE, full_pages

LARGEST_LOAD = 40 * 1024  # bytes of the first load, gzipped
LARGEST_CHART = 26 * 1024  # more on a page with a chart: what draws it


# The focused element's name and whether nothing covers it; null once the focus has left the page.
NOT_COVERED = """
() => {
  const focused = document.activeElement;
  if (focused === document.body) return null;
  const { left, top, width, height } = focused.getClientRects()[0];
  const isFree = [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95].some((part) => {
    const hit = document.elementFromPoint(left + width / 2, top + part * height);
    return hit && (focused.contains(hit) || hit.contains(focused));
  });
  return [focused.id || focused.textContent.trim().slice(0, 40), isFree];
}
"""


@pytest.mark.parametrize("name", ["home", "devices", "settings", "new alert", "alert: recent", "metric, 24 h"])
def test_what_has_the_focus_is_never_covered(full, open_context, name):
    context = open_context(viewport={"width": 390, "height": 640})
    context.add_cookies([full.cookie])
    page = context.new_page()
    page.goto(full.site.base + full_pages(full)[name])
    seen = 0
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate(NOT_COVERED) is None:
            break
        seen += 1
        until(lambda: page.evaluate(NOT_COVERED)[1], page, lambda: f"{page.evaluate(NOT_COVERED)[0]} is free")
    assert seen >= 10


USED = "performance.getEntriesByType('resource').map((one) => one.name)"


def weigh(context, base, paths):
    """The weight of each page's first load: bytes after gzip, by file."""
    page, sizes, loads = context.new_page(), {}, {}

    def size(url):
        if url not in sizes:
            answer = context.request.get(url)
            is_text = answer.headers["content-type"].startswith(("text/", "image/svg+xml"))
            sizes[url] = len(gzip.compress(answer.body(), 6)) if is_text else 0
        return sizes[url]

    for name, path in paths.items():
        page.goto(base + path)
        for file in ("app.css", "icons.svg") if page.locator("svg use").count() else ("app.css",):
            until(lambda file=file: any(file in url for url in page.evaluate(USED)), page)
        loads[name] = {url: size(url) for url in (base + path, *page.evaluate(USED))}
    return loads


def must_be_light(loads):
    """Fail with the pages whose first load exceeds the limit."""
    heavy = {}
    for name, load in loads.items():
        charts = sum(size for url, size in load.items() if "uPlot" in url or "charts.js" in url)
        if charts > LARGEST_CHART or sum(load.values()) - charts > LARGEST_LOAD:
            heavy[name] = load
    assert heavy == {}


def test_the_first_load_of_a_visitors_page_is_small(site, open_context):
    link = site.setup_link().removeprefix(site.base)
    paths = {"set-up": link, "sign-in": "/app/login", "error": "/app/setup/x", "offline": OFFLINE}
    must_be_light(weigh(open_context(), site.base, paths))


def test_the_first_load_of_every_page_is_small(full, open_context):
    context = open_context()
    context.add_cookies([full.cookie])
    must_be_light(weigh(context, full.site.base, full_pages(full)))
