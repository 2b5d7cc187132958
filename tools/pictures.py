"""Make the pictures of README and docs/ anew, in docs/pictures: `make pictures`.

It runs the service in this process on a database of its own, with the tests' stand-in for the push services and the
data of `sample_data`, and looks at it with Debian's Chromium. Commit the result.
"""

import base64
import json
import math
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest import mock
from zoneinfo import ZoneInfo

from playwright.sync_api import sync_playwright

from process import clock
from tests.support.browser import CHROMIUM, FLAGS, Site
from tests.support.push_service import PushService
from tests.support.service import MovedClock
from tools import apng
from tools.sample_data import NOW, ZONE, Household

HERE = Path(__file__).parent
OUT = HERE.parent / "docs" / "pictures"
MAX_MOVING_BYTES = 400 * 1024
PHONE = {"viewport": {"width": 390, "height": 780}, "device_scale_factor": 1.5, "is_mobile": True, "has_touch": True}
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
ADDRESS = "https://bell.example.org"
SENT = {"title": "Backup", "body": "nas: 84 GB in 12 min"}
COMMAND = (
    f"$ curl {ADDRESS}/api/v1/notifications/send \\",
    "  -H 'Authorization: Bearer sk_test_…' \\",
    f"  -d '{json.dumps(SENT)}'",
)
QUESTION = "Deploy shop 2.14?"  # a notification of the sample data
CHARACTERS, TYPED_MS = 4, 90  # how many appear at once, and for how long
STEPS, STEP_MS = 5, 50  # of the notification's way onto the screen


@contextmanager
def household():
    """The service with the sample data, on a port of its own and on a clock that stands still."""
    moved, push_service = MovedClock(), PushService()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(clock, "now_ms", lambda: moved.ms),
        mock.patch.object(clock, "monotonic_s", lambda: moved.monotonic),
    ):
        site = Site(Path(folder) / "data", push_service)
        try:
            lived = Household(site.service, moved, push_service)
            lived.live()
            yield site, lived
        finally:
            site.close()
            push_service.close()


def open_page(browser, site, cookie, **options):
    """A page of the signed-in owner, whose clock stands still as well."""
    context = browser.new_context(locale="en-GB", timezone_id=ZONE, reduced_motion="reduce", **options)
    context.add_cookies([cookie])
    context.clock.set_fixed_time(NOW)
    page = context.new_page()
    page.goto(f"{site.base}/app/")
    return page


def keep(name, png):
    """Write a picture, and say how large it is."""
    OUT.mkdir(exist_ok=True)
    (OUT / name).write_bytes(png)
    (OUT / name).chmod(0o644)
    print(f"{name}: {len(png) / 1024:.0f} KB")


def take(page, name):
    keep(name, apng.smaller(page.screenshot()))


def wide(page, site):
    """The history, with a notification beside it where a wide window shows both."""
    page.goto(f"{site.base}/app/notifications")
    page.get_by_role("link", name=QUESTION).first.click()
    page.wait_for_load_state("networkidle")
    if not page.get_by_role("link", name="Washing machine").count():
        page.go_back()
    take(page, "wide.png")


def narrow(page, site, lived):
    """A phone: Home, the history, a question with its buttons, the message of an alert, a metric."""
    take(page, "home.png")
    page.goto(f"{site.base}/app/notifications")
    take(page, "history.png")
    page.goto(f"{site.base}/app/notifications?search=Deploy+2.14")
    page.get_by_role("link", name=QUESTION).first.click()
    take(page, "notification.png")
    page.goto(f"{site.base}/app/alerts/{lived.alerts['uptime'].id}")
    page.get_by_role("link", name="Message").click()
    page.wait_for_load_state("networkidle")
    take(page, "alert.png")
    page.goto(f"{site.base}/app/metrics")
    page.get_by_role("link", name="Living room").first.click()
    page.wait_for_load_state("networkidle")
    take(page, "metric.png")


class Scene:
    """The page that is filmed, and the frames so far."""

    def __init__(self, page):
        self.page, self.frames = page, []
        page.goto((HERE / "curl_to_phone.html").as_uri())

    def show(self, **texts):
        """Write these texts into the elements with these ids."""
        for name, text in texts.items():
            self.page.locator(f"#{name}").evaluate("(it, text) => { it.textContent = text; }", text)

    def style(self, name, **values):
        self.page.locator(f"#{name}").evaluate("(it, values) => { Object.assign(it.style, values); }", values)

    def look(self, name, png):
        """Put a picture into the <img> with this id, and wait until it is there."""
        url = "data:image/png;base64," + base64.b64encode(png).decode()
        self.page.locator(f"#{name}").evaluate("(it, url) => { it.src = url; return it.decode(); }", url)

    def line(self, text, kind=""):
        """A new line of the terminal."""
        add = "(it, made) => { it.append(Object.assign(document.createElement('span'), made)); }"
        self.page.locator("#lines").evaluate(add, {"textContent": text, "className": kind})

    def type(self, lines):
        """Type these lines, some characters at a time."""
        newest = self.page.locator("#lines span:last-child")
        for text in lines:
            self.line("")
            for end in range(CHARACTERS, len(text) + CHARACTERS, CHARACTERS):
                newest.evaluate("(it, text) => { it.textContent = text; }", text[:end])
                self.film("#lines span:last-child", TYPED_MS)

    def film(self, selector, shown_ms):
        """One more frame, of this part of the page alone."""
        box = self.page.locator(selector).bounding_box()
        left, top = math.floor(box["x"]), math.floor(box["y"])
        right, bottom = math.ceil(box["x"] + box["width"]), math.ceil(box["y"] + box["height"])
        clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        self.frames.append(apng.Frame(self.page.screenshot(clip=clip), left, top, shown_ms))


def arrival(scene, opened, site, lived):
    """The film: a command is typed and answered, the notification comes, and a tap opens it."""
    scene.show(day=f"{NOW:%A} {NOW.day} {NOW:%B}", time=NOW.astimezone(ZoneInfo(ZONE)).strftime("%H:%M"))
    scene.look("icon", (HERE.parent / "static/icon-192.png").read_bytes())
    scene.film("body", 900)
    scene.type(COMMAND)
    answer = lived.callers["nas"].send(**SENT)
    scene.line(answer.text.strip(), "answer")
    scene.film("#lines", 500)
    pushed = lived.browsers[0].messages[-1]["notification"]
    scene.show(title=pushed["title"], body=pushed["body"])
    for step in range(1, STEPS + 1):
        scene.style("card", opacity=step / STEPS, marginTop=f"{(STEPS - step) * 9}px")
        scene.film("#way", STEP_MS)
    still = scene.page.screenshot()
    scene.film("#card", 2200)
    scene.style("touch", opacity=1)
    scene.film("#card", 350)
    opened.goto(f"{site.base}/app/notifications/{answer.json['notification']['id']}")
    scene.look("page", opened.screenshot())
    for opacity in (0.5, 1):
        scene.style("app", opacity=opacity)
        scene.film("#screen", STEP_MS if opacity < 1 else 3500)
    return apng.animated(still, scene.frames)


def main():
    """Make all pictures."""
    if CHROMIUM is None:
        return "There is no Chromium: apt-get install chromium"
    with household() as (site, lived), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        cookie = site.cookie()
        wide(open_page(browser, site, cookie, **DESKTOP), site)
        phone = open_page(browser, site, cookie, **PHONE)
        narrow(phone, site, lived)
        scene = Scene(browser.new_page(viewport={"width": 900, "height": 520}))
        moving = arrival(scene, phone, site, lived)
        keep("arrives.png", moving)
        browser.close()
    return "arrives.png is too large" if len(moving) > MAX_MOVING_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
