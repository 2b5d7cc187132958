"""The focused element is never covered."""

from tests.support.browser import settle, until
from tests.support.full_site import full_pages
from tests.support.rows import each

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


@each("name", ["home", "devices", "settings", "new alert", "alert: recent", "metric, 24 h"])
def test_the_focused_element_is_never_covered(full, full_page, name):
    page = full_page
    page.set_viewport_size({"width": 390, "height": 640})
    page.goto(full.site.base + full_pages(full)[name])
    settle(page)  # what it says may push the focused element under the navigation
    seen = 0
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate(NOT_COVERED) is None:
            break
        seen += 1
        until(lambda: page.evaluate(NOT_COVERED)[1], page, lambda: f"{page.evaluate(NOT_COVERED)[0]} is free")
    assert seen >= 10
