"""An alert and its page in the dashboard."""

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
        """What the page says of a draft that is not saved."""
        sent = {"title": title, "body": body, "payload": payload, **more, "preview": "1"}
        return told_of(Page(self.owner.post(self.path, sent).text))

    def do(self, action, **form):
        """Send one of the page's forms and return the page that it leads to."""
        return self.owner.done(f"{self.path}/{action}", form)

    def switch(self, is_on):
        assert self.owner.post(f"{self.path}/switch", {"on": str(int(is_on))}).status_code == 303

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
FACTS = {"Link:": "url", "Tag:": "tag", "Picture:": "image"}
BADGES = {"resolved": "resolved", "repeats until acknowledged": "repeats"}
EMPTY = dict.fromkeys(("error", "priority", *BADGES.values(), *FACTS.values()), "")


def told_of(page):
    """What a page's preview says. It is parsed alone: the whole page takes longer than all else of a test."""
    start = page.html.index('<div id="preview"')
    part = Page(page.html[start : page.html.index("<h2", start)])
    texts = {(e.tag, e.attributes.get("class")): "".join(e.texts) for e in reversed(part.elements)}
    source, *facts, _ = (e for e in part.elements if e.tag == "p" and not e.attributes)
    lines = ["".join(e.texts) for e in part.elements if e.tag == "li"]
    told = EMPTY | {"title": texts["strong", None].removeprefix("MCP - "), "body": texts["span", "text"]}
    told |= {"source": source.text, "error": texts.get(("p", "error"), ""), "page": page}
    for e in (e for e in part.elements if e.parent in facts and e.tag != "br"):
        name = BADGES.get(e.text, "priority") if e.tag == "span" else FACTS[part.texts[e.begin - 1].split()[-1]]
        told[name] = "".join(e.texts)
    told["arrival"] = facts[0].texts[-1].strip() if facts else ""
    asked = (line.split(" is not in this request.") for line in lines if " is not in this request." in line)
    told["meant"] = {name: more.removeprefix(" Did you mean ").removesuffix("?") or None for name, more in asked}
    told["unfilled"] = [line.split(" cannot be filled: ") for line in lines if " cannot be filled: " in line]
    return told


def values_of(page):
    """The values that a page offers, by their paths."""
    start = page.html.index('<ul class="paths">')
    elements = Page(page.html[start : page.html.index("</ul>", start) + 5]).elements
    paths, texts = (["".join(e.texts) for e in elements if e.tag == tag] for tag in ("code", "span"))
    return dict(zip(paths, texts, strict=True))


def preview_of(page):
    """The title and the body in a page's preview."""
    told = told_of(page)
    return told["title"], told["body"]


def facts_of(told):
    """What a preview says beside title and body, without what is empty."""
    return {name: told[name] for name in ("priority", *BADGES.values(), "url", "tag", "arrival") if told[name]}


def in_history(owner):
    """The title and the body of the newest notification."""
    (entry,) = owner.service.caller().listed("?limit=1")
    return entry["title"].removeprefix("MCP - "), entry["body"]
