"""A browser without JavaScript, a page that can be questioned, and owners who are signed in."""

import json
import re
import secrets
from functools import cached_property, lru_cache
from html import unescape
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

from core import accounts
from models import sha256_of
from process import clock
from store import database
from tests.support.accounts import OWNER, PASSWORD
from tests.support.commands import lines_of

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
OF_SVG = {"circle", "path", "polygon", "polyline", "rect", "use"}  # written with a slash at their end
PARTS = {"section", "li", "tr", "details", "article"}
PLAIN = re.compile(r'<(/?)([a-z][a-z0-9]*)((?:\s+[a-zA-Z:-]+(?:="[^"]*")?)*)\s*(/?)>|([^<]+)')  # a tag, or text
ATTRIBUTE = re.compile(r'([a-zA-Z:-]+)(="[^"]*")?\s*')
DOCTYPE = re.compile(r"\s*<!doctype html>")
# What signing in leaves, in a quarter of the time.
ADD_SESSION = (
    "INSERT INTO session (token_hash, account_seq, name, created_at, expires_at, last_seen_at)"
    " SELECT ?, seq, 'Chrome on Linux', ?, ?, ? FROM account WHERE email = ?"
)
ISOLATES = dict.fromkeys(map(ord, "\u2066\u2067\u2068\u2069"))  # around names: they set where right-to-left ends


def joined(texts):
    """These texts as a reader sees them."""
    return " ".join("".join(texts).translate(ISOLATES).split())


@lru_cache(10_000)
def _attributes(text):
    """The attributes that are written so, as html.parser tells them: most pages have the same elements."""
    return {name.lower(): unescape(value[2:-1]) if value else None for name, value in ATTRIBUTE.findall(text)}


class Element:
    """An element of a page; what few tests look at is worked out when one does."""

    def __init__(self, page, tag, attributes):
        """`attributes` are pairs as html.parser tells them, or the text between a plain tag's name and its end."""
        self.tag, self._page, self._attributes = tag, page, attributes
        self.parent = page.open[-1] if page.open else None
        self.begin = self.end = len(page.texts)  # its texts among the page's

    @cached_property
    def attributes(self):
        """Those without a value have None."""
        return _attributes(self._attributes) if isinstance(self._attributes, str) else dict(self._attributes)

    @property
    def within(self):
        """The elements that it stands in, the outermost first."""
        return [*self.parent.within, self.parent] if self.parent else []

    @property
    def texts(self):
        """All texts inside it, in order."""
        return self._page.texts[self.begin : self.end]

    @cached_property
    def text(self):
        return joined(self.texts)


class Page(HTMLParser):
    """A page's text and elements."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.html = html

    def __getattr__(self, name):
        """The elements or the texts, in order. To parse a page takes longest of all, and many are never looked at."""
        if name not in ("elements", "texts"):
            raise AttributeError(name)
        self.elements, self.texts, self.open = [], [], []
        if not self._reads_plain():
            self.elements, self.texts, self.open = [], [], []
            self.feed(self.html)
            self.close()
        return self.__dict__[name]

    def _reads_plain(self):
        """Whether the page is as plainly written as ours, and was read as the parser would, in much less time."""
        doctype = DOCTYPE.match(self.html)
        raw, at = None, doctype.end() if doctype else 0  # the element whose text is no HTML, and how far it was read
        for found in iter(PLAIN.scanner(self.html, at).match, None):
            ends, tag, attributes, is_whole, text = found.groups()
            if raw and not text and (ends, tag) != ("/", raw):
                return False
            if text:
                self.handle_data(text if raw or "&" not in text else unescape(text))
            elif ends:
                self.handle_endtag(tag)
                raw = None
            elif is_whole:
                self.handle_startendtag(tag, attributes)
            else:
                self.handle_starttag(tag, attributes)
                raw = tag if tag in self.CDATA_CONTENT_ELEMENTS else None
            at = found.end()
        return at == len(self.html)

    def updatepos(self, i, j):
        """Nobody asks for a line's number, and to count lines takes a tenth of the time."""
        return j

    def handle_starttag(self, tag, attrs):
        element = Element(self, tag, attrs)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID | OF_SVG, f"<{tag}/> is never closed"
        self.elements.append(Element(self, tag, attrs))

    def handle_endtag(self, tag):
        element = self.open.pop()
        assert element.tag == tag, f"</{tag}> closes nothing"
        element.end = len(self.texts)

    def handle_data(self, data):
        if not (self.open and self.open[-1].tag == "text"):  # the letter in a picture
            self.texts.append(data)

    @property
    def text(self):
        return joined(self.texts)

    @property
    def main(self):
        """The page's text without its title and navigation."""
        return next(element.text for element in self.elements if element.tag == "main")

    @property
    def shape(self):
        """The elements with the names of their attributes, which no text may change."""
        return [(element.tag, sorted(element.attributes)) for element in self.elements]

    def all(self, tag):
        return [element.attributes for element in self.elements if element.tag == tag]

    def texts_of(self, tag, **attributes):
        """The texts of all elements with this tag and these attributes."""
        return [
            element.text
            for element in self.elements
            if element.tag == tag and attributes.items() <= element.attributes.items()
        ]

    def action_of(self, what):
        """The address of the first form whose address has this in it."""
        return next(e.attributes["action"] for e in self.elements if what in (e.attributes.get("action") or ""))

    def said(self, role):
        """The texts of the elements with a role: `alert` says what is wrong, `status` what was done."""
        return [element.text for element in self.elements if element.attributes.get("role") == role]

    def section(self, heading):
        """The text of the innermost part of the page that begins with this heading."""
        found = [e for e in self.elements if e.tag in PARTS and e.text.startswith(heading)]
        assert found, f"no part begins with {heading!r}: {self.main}"
        return found[-1].text

    def times(self):
        """The times on the page, exact to the minute or second, in order."""
        return [time["title"] for time in self.all("time")]

    def row_links(self):
        """The links that are rows of a list."""
        return [e for e in self.elements if e.tag == "a" and "row" in e.attributes.get("class", "").split()]

    def rows(self):
        """The ids of the notifications that are listed, in order."""
        hrefs = [link.attributes["href"].partition("?")[0] for link in self.row_links()]
        return [href.removeprefix("/app/notifications/") for href in hrefs if href.startswith("/app/notifications/")]

    def titles(self):
        """The titles of the notifications that are listed, in order, without the prefix that all have."""
        return self.texts_of("strong", dir="auto")

    def forms(self, ending):
        """The addresses of the forms with this ending."""
        return [form["action"] for form in self.all("form") if form.get("action", "").endswith(ending)]

    def confirmation(self, action):
        """The text of the folded part that hides this form: what its owner reads before sending it."""
        form = next(e for e in self.elements if e.tag == "form" and e.attributes.get("action") == action)
        closed = [e for e in form.within if e.tag == "details" and "open" not in e.attributes]
        assert closed, f"{action} can be sent at once"
        return closed[-1].text

    def hidden(self, action):
        """The hidden fields of the form with this address."""
        place = next(
            n for n, e in enumerate(self.elements) if e.tag == "form" and e.attributes.get("action") == action
        )
        sent = {}
        for element in self.elements[place + 1 :]:
            if element.tag == "form":
                break
            if element.tag == "input" and element.attributes.get("type") == "hidden":
                sent[element.attributes["name"]] = element.attributes["value"]
        return sent

    def value(self, name):
        """The value of the input with this name."""
        return next(attributes.get("value") for attributes in self.all("input") if attributes.get("name") == name)

    def chosen(self, name):
        """The option that is selected in the select with this name."""
        place = next(n for n, e in enumerate(self.elements) if (e.tag, e.attributes.get("name")) == ("select", name))
        options = []
        for element in self.elements[place + 1 :]:
            if element.tag not in ("option", "optgroup"):
                break
            options += [element] if element.tag == "option" else []
        chosen = [option for option in options if "selected" in option.attributes] or options[:1]
        return chosen[0].attributes.get("value", chosen[0].text)

    def values(self):
        return [value for element in self.elements for value in element.attributes.values()]


class Visitor:
    """A browser without JavaScript: keeps cookies and sends a form with the token of the page it saw last."""

    def __init__(self, service, base_url="http://localhost", agent=CHROME, address="127.0.0.1"):
        self.service, self.base_url, self.token = service, base_url, ""
        self.client = service.app.test_client()
        self.client.environ_base.update(HTTP_USER_AGENT=agent, REMOTE_ADDR=address)

    def get(self, path, **more):
        return self._seen(self.client.get(path, base_url=self.base_url, **more))

    def post(self, path, data=None, token=None, headers=None, **more):
        sent = {"Origin": self.base_url, "X-CSRF-Token": self.token if token is None else token, **(headers or {})}
        kept = {name: value for name, value in sent.items() if value is not None}
        return self._seen(self.client.post(path, data=data or {}, headers=kept, base_url=self.base_url, **more))

    def _seen(self, answer):
        if answer.mimetype == "text/html":
            match = re.search(r'<meta name="csrf" content="([^"]*)">', answer.text)
            self.token = match[1] if match else self.token
        return answer

    def page(self, path):
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    def done(self, path, data=None, leads_to=None):
        """Send a form that is accepted, and return the page that it leads to."""
        answer = self.post(path, data)
        assert answer.status_code == 303, Page(answer.text).main
        assert leads_to in (None, answer.location)
        return self.page(answer.location)

    def refused(self, path, data=None, status=422):
        """Send a form that is refused, and return the page that says so."""
        answer = self.post(path, data)
        assert answer.status_code == status, answer.text
        return Page(answer.text)

    def enable(self, browser, agent=CHROME, **more):
        """Register a subscription as the page's script does."""
        sent = json.dumps({"subscription": browser.subscription, **more})
        return self.post("/app/devices", sent, headers={"User-Agent": agent})

    def sign_in(self, email=OWNER, password=PASSWORD, wanted=None):
        """`wanted` is the page that led to the sign-in."""
        query = {"next": wanted} if wanted else None
        self.get("/app/login")
        return self.post("/app/login", {"email": email, "password": password}, query_string=query)

    @property
    def is_signed_in(self):
        return self.get("/app/devices").status_code == 200

    @property
    def cookie_name(self):
        return "__Host-pocketbell" if self.base_url.startswith("https") else "pocketbell"

    @property
    def cookie(self):
        found = self.client.get_cookie(self.cookie_name, "localhost", "/")
        return found.value if found else None

    def with_cookie(self, value):
        """Another browser with this cookie."""
        other = Visitor(self.service, self.base_url)
        other.client.set_cookie("pocketbell", value, domain="localhost")
        return other


def make_account(service, email=OWNER):
    """Make an account with a password."""
    return service.account(email, password_hash=accounts.password_hash(PASSWORD))


def signed_in(service, email=OWNER, base_url="http://localhost"):
    """The owner of a new account, signed in with a browser. The tests of signing in go through the form."""
    make_account(service, email)
    visitor = Visitor(service, base_url)
    if "[" in base_url:  # the test client cannot keep a session for an IPv6 address by itself
        assert visitor.sign_in(email).status_code == 303
        visitor.get("/app/devices")
        return visitor
    token, visitor.token = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
    now = clock.now_ms()
    with database.transaction(database.EVERYBODY):
        database.run(ADD_SESSION, (sha256_of(token), now, now + accounts.SESSION_LIFE_MS, now, email))
    known = {"password": accounts.password_mark(email), "browser": secrets.token_urlsafe(16)}
    begun = {"_permanent": True, "token": token, "csrf": visitor.token, "known": known}
    value = service.app.session_interface.get_signing_serializer(service.app).dumps(begun)
    visitor.client.set_cookie(visitor.cookie_name, value, domain=urlsplit(base_url).hostname)
    return visitor


def setup_link():
    return accounts.make_setup_link(clock.now_ms())


def setup_form(**more):
    return {"email": OWNER, "password": PASSWORD, "time_zone": "Europe/Berlin", **more}


def device_ids(service, email=OWNER):
    """Newest first."""
    return [line[0] for line in lines_of(service, "device", "list", email)]


def use_up_tries(visitor, email=OWNER, count=10):
    """Send the form of one page again and again."""
    visitor.get("/app/login")
    form = {"email": email, "password": "not the password"}
    return [visitor.post("/app/login", form).status_code for _ in range(count)]


APNS = "ab" * 32


def the_device(owner, name="Chrome on Linux"):
    """What the Devices page says about a device."""
    return owner.page("/app/devices").section(name)


def only_id(service, email=OWNER):
    (device_id,) = device_ids(service, email)
    return device_id


WRONG_SUBSCRIPTIONS = [
    b"",
    b"not JSON",
    b"[]",
    b"null",
    b"{}",
    b'{"subscription": null}',
    b'{"subscription": {"endpoint": "http://169.254.169.254/", "keys": {"p256dh": "x", "auth": "x"}}}',
    b'{"subscription": {"endpoint": "\\ud800"}}',
    b'{"subscription": {"endpoint": 1, "keys": []}}',
    b"\xff",
    b"[" * 100_000,
]


def given_token(owner, browser):
    """Enable a browser as the page's script does, and return the token for its service worker."""
    answer = owner.enable(browser)
    assert answer.status_code == 201, answer.text
    return answer.json["token"]


HISTORY = "/app/notifications"
PUBLIC = "https://bell.example.org"  # an origin that a phone can reach


def address(day="", **asked):
    """The page of the history with these filters; `day` is both the first and the last."""
    asked |= {"since": day, "until": day} if day else {}
    return f"{HISTORY}?{urlencode(asked)}"


def all_pages(owner, path, between=lambda: None):
    """The ids on a page and on all older pages that its links lead to."""
    ids, looked_at = [], 0
    while path:
        page = owner.page(path)
        ids += page.rows()
        older = [link["href"] for link in page.all("a") if link.get("rel") == "next"]
        path, looked_at = older[0] if older else None, looked_at + 1
        assert looked_at < 100
        between()
    return ids


def sent(caller, *titles):
    """The ids of new notifications with these titles."""
    return [caller.send(title).json["notification"]["id"] for title in titles]


def event(hook, **payload):
    """Post an event and return the id of its notification."""
    return hook.post(payload).json["notificationId"]


def notification_page(owner, notification_id):
    """The page of a notification, without the list beside it."""
    return alone(owner.page(f"{HISTORY}/{notification_id}"))


def alone(page):
    """The page without the list beside it."""
    before, _, listed = page.html.partition('<div class="list only-split"')
    assert listed, "no list stands beside this page"
    begin = '<div class="detail" id="detail">'
    return Page(before + begin + listed.partition(begin)[2])


def drawing(page):
    """What the page of a metric gives the browser to draw, as compact JSON; None if nothing."""
    (plot,) = [one for one in page.all("div") if one.get("class") == "plot"]
    text = plot.get("data-chart", "null")
    assert '": ' not in text, "it may have hundreds of numbers"
    return json.loads(text)
