"""What all pages have in common: templates without scripts, errors as pages, odd requests."""

import json
import re
from itertools import product

from core import accounts, attention
from models import Device
from store.engine import WriteFailed
from tests.support.accounts import OWNER
from tests.support.forms import POST_RULES, RESYNC
from tests.support.pages import Page, use_up_tries
from tests.support.rows import each
from tests.support.server import ROOT

# --- templates and scripts ----------------------------------------------------------------------------------


TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@each("template", TEMPLATES)
def test_a_template_has_no_script_or_style_inside(template):
    text = template.read_text()
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:", text, re.I) == []


@each("template", TEMPLATES)
def test_a_template_loads_and_sends_nothing_elsewhere(template):
    of_sender = (
        r'<a [^>]*href="\{\{ (content\.(url|image)|image|one\.url|piece) \}\}" rel="noopener noreferrer"[^>]*>'
    )
    shown = r'<img [^>]*src="\{\{ image \}\}"[^>]* referrerpolicy="no-referrer">'
    rest = re.sub(shown, "", re.sub(of_sender, "", template.read_text()))
    addresses = re.findall(r'\s(?:src|href|action)="([^"]*)"', rest)
    built = r"\{\{ (asset\('[\w.-]+'\)(?: \}\}#\{\{ name)?|path|request\.path|warning\.path|fetching\.link) \}\}"
    assert [address for address in addresses if not re.match(rf"/(?!/)|#|{built}", address)] == []


@each("template", TEMPLATES)
def test_a_template_switches_no_escaping_off(template):
    assert re.findall(r"\|\s*safe|autoescape|Markup", template.read_text()) == []


@each("template", TEMPLATES)
def test_every_form_holds_its_token(template):
    text = template.read_text()
    forms = re.findall(r"<form method=\"post\".*?</form>", text, re.S)
    assert len(forms) + text.count('<form method="get"') == text.count("<form")
    is_secret = 'action="{{ request.path }}'  # a button's form: the token is in its address
    assert [form for form in forms if "{{ token() }}" not in form and is_secret not in form] == []


@each("script", sorted((ROOT / "static").glob("*.js")))
def test_a_script_writes_no_html_and_evaluates_no_text(script):
    text = script.read_text()
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text) == []


def test_every_icon_of_the_manifest_is_there(visitor):
    manifest = json.loads(visitor.get("/app/static/manifest.webmanifest").text)
    assert [visitor.get(icon["src"]).mimetype for icon in manifest["icons"]] == ["image/png"] * len(manifest["icons"])
    assert visitor.get("/app/static/manifest.webmanifest").mimetype == "application/manifest+json"


# --- what goes wrong is a page, too -------------------------------------------------------------------------


def check_error_page(answer, status):
    page = Page(answer.text)
    assert (answer.status_code, answer.content_type) == (status, "text/html; charset=utf-8")
    styles = [link["href"].partition("?")[0] for link in page.all("link") if link["rel"] == "stylesheet"]
    assert "/app/static/app.css" in styles
    assert "/app/" in [link.get("href") for link in page.all("a")]
    (heading,), (alert,) = page.texts_of("h1"), [e for e in page.elements if e.attributes.get("role") == "alert"]
    assert re.fullmatch("[A-Z][a-z ]+", heading) and alert.attributes["tabindex"] == "-1"
    assert "autofocus" in alert.attributes
    sentence = alert.text
    assert sentence[0].isupper() and sentence.endswith(".") and "API key" not in sentence


@each("path", ["/app/nothing", "/app/static/nothing.js", "/app/static/../app.py", "/app//keys"])
def test_an_unknown_address_is_answered_with_a_page(owner, path):
    check_error_page(owner.get(path), 404)


@each(
    "method, path, allowed",
    [
        ("POST", "/app/sw.js", "GET"),
        ("DELETE", "/app/keys", "GET"),
        ("PUT", "/app/login", "GET"),
        ("GET", "/app/logout", "POST"),
        ("OPTIONS", "/app/keys", "GET"),
        ("POST", "/app/static/app.css", "GET"),
    ],
)
def test_a_wrong_method_is_answered_with_a_page(owner, method, path, allowed):
    answer = owner.client.open(path, method=method)
    check_error_page(answer, 405)
    assert allowed in answer.headers["Allow"]
    assert ("no page at this address" in answer.text) == (method == "GET")


def test_too_many_tries_are_answered_with_a_page(service, visitor):
    use_up_tries(visitor)
    check_error_page(visitor.sign_in(), 429)


def test_what_is_refused_is_answered_with_a_page_that_keeps_the_navigation_of_whoever_is_signed_in(owner, visitor):
    def has_navigation(answer):
        return "/app/keys" in [link.get("href") for link in Page(answer.text).all("a")]

    refused = [
        (owner.get("/app/nothing"), 404),
        (owner.client.open("/app/keys", method="DELETE"), 405),
        (owner.post("/app/keys", {"name": "x"}, token=""), 400),
        (owner.post("/app/keys", {"name": "x" * 600_000}), 413),
        (owner.get("/app/alerts/gone"), 404),
    ]
    for answer, status in refused:
        check_error_page(answer, status)
        assert has_navigation(answer), status
    assert not has_navigation(visitor.get("/app/nothing"))


def test_a_page_whose_database_is_away_is_answered_with_a_page_that_needs_none(owner, monkeypatch):
    def fails(account_seq):
        raise WriteFailed("the connection is lost")

    monkeypatch.setattr(attention.heartbeats, "count_down", fails)
    check_error_page(owner.get("/app/devices"), 503)


def test_an_exception_is_answered_with_a_page_without_details(owner, monkeypatch):
    monkeypatch.setattr(Device, "of_account", lambda account_seq: 1 / 0)
    answer = owner.get("/app/devices")
    check_error_page(answer, 500)
    assert "Zero" not in answer.text and "zero" not in answer.text


# --- no request is too odd ----------------------------------------------------------------------------------


MULTIPART = "multipart/form-data; boundary=b"
NAMES = (
    "answer begin body code color confirmed cron current days email end for frequency grace icon id kind list"
    " minPriority more name new number off on operator password period position preset preview priority quietHours"
    " quiet_hours repeats resolved seen silent tab tag test theme time_zone title token url value without"
)
ENDING = [
    rule for rule in POST_RULES if rule.endswith(("/delete", "/remove", "/end", "/logout", "/sign-out-everywhere"))
]
DECIDING = {  # fields that decide what else is read
    "/app/alerts/<alert_id>": [("preview",), ("preview", "test")],
    "/app/metrics/one": [("silent",)],
    "/app/metrics/rules/<rule_id>": [("silent",)],
}


def test_odd_text_in_all_fields_breaks_no_form_of_what_there_is(forms):
    for rule in (rule for rule in POST_RULES if rule not in ENDING):
        for without in [(), *DECIDING.get(rule, ())]:
            for text in ("%00a", "%ff%F0%9F%94%94"):
                body = "&".join(f"{name}={text}" for name in NAMES.split() if name not in without)
                answer = forms.post(rule, body, content_type="application/x-www-form-urlencoded")
                assert answer.status_code in (200, 303, 400, 404, 409, 422, 429), f"{rule}: {answer.text}"


BODIES = [
    (b"\xff\xfe=%ff&%00=%00&email=%ED%A0%80&name=%ff&password=%00&time_zone=%00", None),
    (b"email=\xff\x00&password=\xff&name=\xff", None),
    (
        b'--b\r\nContent-Disposition: form-data; name="name"\r\nContent-Type: a/b; charset=utf-7\r\n\r\n+\r\n--b--',
        MULTIPART,
    ),
    (b"&".join(b"a%d=1" % n for n in range(20_000)), None),
    (b"email=" + b"x" * 900_000, None),
    (b"{", "application/json"),
    (b"", "multipart/form-data"),
    (b"--b\r\n", MULTIPART),
    (b'--b\r\nContent-Disposition: form-data; name="email"; filename="x"\r\n\r\nx\r\n--b--\r\n', MULTIPART),
    (b"--b\r\n\r\n\r\n" * 2000 + b"--b--", MULTIPART),
    (b"x", "text/plain; charset=nonsense"),
    (b"x", "\u00ff/\u00ff"),
]


@each("body, content_type", BODIES)
def test_an_odd_form_breaks_no_page(owner, body, content_type):
    for path in ("/app/keys", "/app/devices", RESYNC, "/app/login"):  # all read it in one way
        answer = owner.post(path, body, content_type=content_type or "application/x-www-form-urlencoded")
        expected = (401,) if path == RESYNC else (200, 303, 400, 404, 413, 422)
        assert answer.status_code in expected, f"{path}: {answer.text}"


ODD_VALUES = [
    *("", "[", "[::1", "x:y:z", "\u00ff\u00fe", "a, b", "x" * 5000, "<script>", "bytes=9-1", "http://[", "é\t")
]


PAGE, FORMS = ("GET", "/app/devices"), [("POST", "/app/keys"), ("POST", "/app/login")]
REQUESTS = {
    **{name: [PAGE, *FORMS] for name in ("Host", "Cookie")},
    **dict.fromkeys(("Origin", "X-CSRF-Token", "Content-Type"), FORMS),
    **{name: [PAGE, ("GET", "/app/static/app.css")] for name in ("Range", "If-None-Match")},
}


@each("name, requests", REQUESTS.items())
def test_an_odd_header_breaks_no_page(owner, name, requests):
    variable = "CONTENT_TYPE" if name == "Content-Type" else f"HTTP_{name.upper().replace('-', '_')}"
    form = {"name": "x", "csrf": owner.token, "email": OWNER, "password": "x"}
    client = owner.client if name != "Cookie" else owner.service.app.test_client(use_cookies=False)
    for value, (method, path) in product(ODD_VALUES, requests):
        sent = {"data": form if method == "POST" else None, "environ_overrides": {variable: value}}
        assert client.open(path, method=method, **sent).status_code < 500, (value, path)


@each("path", ["/", "/app"])
def test_the_redirect_to_the_sign_in_ignores_the_host_header(service, path):
    answer = service.client.get(path, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/app/")


def test_a_form_on_a_database_that_cannot_be_written_gets_a_page_that_says_so(owner, monkeypatch):
    def away(*_, **__):
        raise WriteFailed("database or disk is full")

    owner.get("/app/settings")
    monkeypatch.setattr(accounts, "change", away)
    answer = owner.post("/app/settings/theme", {"theme": "dark"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    assert "The database does not answer, or its disk is full. Try again in a few seconds." in answer.text
