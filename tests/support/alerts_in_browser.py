"""The page of an alert in a browser."""

import json
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from playwright.sync_api import expect

from store.database import run
from tests.support.browser import follow, said
from tests.support.payloads import FOLDER

GRAFANA = FOLDER / "json" / "grafana-unified-test.json"
EVENT = {
    "title": "Disk",
    "message": "root at 98 %",
    "value": 1.50,
    "host": {"name": "web-1", "zone": "eu"},
    "at": "2026-11-21T10:00:00Z",
}


def post(address, payload):
    """Post an event as a sender does, and return the answer."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    with urllib.request.urlopen(urllib.request.Request(address, data), timeout=10) as answer:
        return json.load(answer)


class AlertPage:
    """The page of one alert and the elements on it."""

    def __init__(self, page, site, name="Own JSON"):
        self.page, self.site = page, site
        page.goto(f"{site.base}/app/alerts/new")
        page.get_by_role("radio", name=name).check()
        page.get_by_role("button", name="Create alert").click()
        expect(page.locator("#address")).to_be_visible()
        self.path, self.address = urlsplit(page.url).path, page.locator("#address").inner_text()
        self.tab("Message")

    def tab(self, name):
        """Go to a part of the page."""
        parts = self.page.get_by_role("list", name="Parts of this alert")
        follow(parts.get_by_role("link", name=name))
        expect(parts.locator("[aria-current=page]")).to_have_text(name)

    @property
    def title(self):
        return self.page.get_by_label("Title", exact=True)

    @property
    def body(self):
        return self.page.get_by_label("Text", exact=True)

    @property
    def shown(self):
        """The title and the text in the preview."""
        return tuple(self.page.locator(f"#preview {part}").text_content() for part in ("strong", ".text"))

    @property
    def wrong(self):
        """What the preview says of single placeholders."""
        return self.page.locator("#preview li")

    @property
    def error(self):
        return self.page.locator("#preview .error")

    def receive(self, payload=EVENT):
        """Post an event and open the page again."""
        answer = post(self.address, payload)
        self.page.goto(self.site.base + self.path)
        return answer

    def expect_shown(self, title=None, body=None):
        if title is not None:
            expect(self.page.locator("#preview strong")).to_have_text(title)
        if body is not None:
            expect(self.page.locator("#preview .text")).to_have_text(body)

    def previews(self):
        return self.site.count("POST", self.path)

    def save(self):
        self.page.get_by_role("button", name="Save", exact=True).click()
        said(self.page, "Saved")

    def stored(self):
        """The saved templates."""
        return tuple(run("SELECT title_template, body_template FROM alert").fetchone())


def pushed(phone):
    """The title, without its prefix, and the body of each message that the browser's push service received."""
    texts = [message["notification"] for message in phone.subscription.messages]
    return [(text["title"].removeprefix("MCP - "), text.get("body", "")) for text in texts]


def open_values(page):
    """Unfold the list of values, unless it is unfolded already."""
    page.locator("#values").evaluate("line => { line.open = true; }")
