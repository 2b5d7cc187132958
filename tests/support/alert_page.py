"""An alert and its page in the dashboard."""

import json
from types import SimpleNamespace

from models import Alert
from store.database import run
from tests.support.pages import Page


class AlertPage:
    """An alert with its webhook and its page in the dashboard."""

    def __init__(self, service, owner, *options, name="Backups"):
        self.hook, self.owner = service.alert(*options, name=name), owner
        self.post = self.hook.post
        self.path = f"/app/alerts/{self.hook.id}"

    @property
    def page(self):
        """The part that edits the message."""
        return self.tab("message")

    def tab(self, name):
        return self.owner.page(f"{self.path}?tab={name}")

    @property
    def row(self):
        return Alert.get(Alert.id == self.path.rpartition("/")[2])

    def preview(self, title="", body="", payload="", **more):
        sent = {"title": title, "body": body, "payload": payload, **more}
        answer = self.owner.post(f"{self.path}/preview", json.dumps(sent), content_type="application/json")
        told = dict(answer.json)
        return SimpleNamespace(
            status_code=answer.status_code, json=told | {"title": told.get("title", "").removeprefix("MCP - ")}
        )

    def do(self, action, **form):
        """Send one of the page's forms and return the page that it leads to."""
        return self.owner.done(f"{self.path}/{action}", form)

    def refused(self, action):
        """Send a form that is refused and return the part of the page that says so."""
        answer = self.owner.post(f"{self.path}/{action}")
        assert answer.location.startswith(f"{self.path}?tab=")
        return self.owner.page(answer.location)

    def settings(self, **more):
        form = {"name": "Backups", "icon": "bell", "color": "#3b82f6", "frequency": "instant", "keeps_payload": "1"}
        return self.owner.post(f"{self.path}/settings", form | more)

    @property
    def seen(self):
        """The recent requests as the page shows them."""
        cells = self.tab("activity").elements
        return [cell.text for cell in cells if cell.attributes.get("class") == "s"]

    @property
    def kept(self):
        row = run("SELECT payload FROM alert_payload").fetchone()
        return row and row[0]


KEPT_BYTES = 65_536
FACTS = ("priority", "resolved", "repeats", "url", "tag", "arrival")


def elements_of_preview(page):
    """They are parsed alone: to parse the whole page takes longer than all else that a test does with it."""
    start = page.html.index('<div id="preview"')
    return Page(page.html[start : page.html.index("</form>", start)]).elements


def preview_of(page):
    """The title and the body in a page's preview."""
    found = {
        name: e for e in elements_of_preview(page) for name in e.attributes if name in ("data-title", "data-body")
    }
    return "".join(found["data-title"].texts).removeprefix("MCP - "), "".join(found["data-body"].texts)


def facts_of(page):
    """What a page's preview says beside title and body; what is not shown is left out."""
    elements = elements_of_preview(page)
    found = {name: e for e in elements for name in FACTS if f"data-{name}" in e.attributes}
    return {name: text for name, e in found.items() if (text := "".join(e.texts))}


def in_history(owner):
    """The title and the body of the newest notification."""
    (entry,) = owner.service.caller().listed("?limit=1")
    return entry["title"].removeprefix("MCP - "), entry["body"]
