"""What all pages under /app/ have in common: forms, API keys, hostile texts, headers, errors, odd requests."""

import hashlib
import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

import config
import push
from app import ROUTES
from core import accounts
from models import Alert, ApiKey, Device
from store.database import transaction
from store.deliveries import Delivery
from store.notifications import Notification
from store.sessions import Session
from tests.conftest import Caller
from tests.support import pages
from tests.support.pages import (
    EMAIL,
    PASSWORD,
    Page,
    Visitor,
    account_set,
    device_ids,
    everything,
    listed,
    make_account,
    setup_link,
    use_up_tries,
)

cheap_passwords, owner, stranger, visitor = pages.cheap_passwords, pages.owner, pages.stranger, pages.visitor
few_time_zones = pages.few_time_zones
pytestmark = pytest.mark.usefixtures("few_time_zones")

ROOT = Path(config.__file__).parent
RESYNC = "/app/devices/resync"  # guarded by a device's token
PREVIEW = "/app/alerts/<alert_id>/preview"  # JSON for the page's script, and the only one that changes nothing
OF_ALERT_WITH_NAME = ("/app/alerts/new", "/app/alerts/<alert_id>/settings")
POST_RULES = [r.rule for r in ROUTES if r.method == "POST" and r.rule.startswith("/app/") and r.rule != RESYNC]
PAGES_OF_THE_OWNER = [
    "/app/",
    "/app/notifications",
    "/app/alerts",
    "/app/alerts/new",
    "/app/metrics",
    "/app/devices",
    "/app/keys",
    "/app/quiet",
    "/app/settings",
]
STATIC_FILES = sorted(f"/app/static/{path.name}" for path in (ROOT / "static").iterdir())


# --- forms from elsewhere -----------------------------------------------------------------------------------

FOREIGN_ORIGINS = [
    "https://evil.example",
    "http://localhost.evil.example",
    "http://evil.example/localhost",
    "http://localhost:8001",
    "http://localhost@evil.example",
    "null",
    "",
    "http://[",
]


class Forms:
    """Every form of the web app, ready to be sent: with what it needs, and by whom."""

    def __init__(self, service, owner, push_service):
        self.service, self.owner = service, owner
        service.flask("key", "create", EMAIL, "live")
        owner.enable(push_service.browser())
        service.caller().post("/devices", {"kind": "fcm", "token": "t"})
        account_set(service, "--quiet-hours", "09:00-11:00")
        hook = service.alert()
        of_grafana = {"alerts": [], "groupKey": "1", "orgId": 1, "title": "held"}
        assert hook.post(of_grafana).json["status"] == "held"
        (key_id, *_), *_ = listed(service, "key", "list", EMAIL)
        device_id = device_ids(service)[-1]
        link = service.flask("account", "create", "invited@example.org").output.strip().partition("/app/setup/")[2]
        self.ids = {"<key_id>": key_id, "<device_id>": device_id, "<token>": link, "<alert_id>": hook.id}
        self.subscription = push_service.browser().subscription
        self.visitor = Visitor(service)
        self.visitor.get("/app/login")

    def content(self, rule):
        if rule == "/app/devices":
            return json.dumps({"subscription": self.subscription})
        if rule in OF_ALERT_WITH_NAME:
            return {"name": "x", "icon": "flame", "color": "#00ff00", "frequency": "1h", "preset": "grafana"}
        if rule == PREVIEW:
            return json.dumps({"title": "{{ message }}", "body": "{{ a }}", "payload": "{}"})
        return {
            "name": "x", "email": EMAIL, "password": PASSWORD, "time_zone": "Asia/Tokyo", "theme": "dark",
            "kind": "apns", "token": "ab" * 32, "begin": "01:00", "end": "02:00",
            "current": PASSWORD, "new": "another password", "seen": "99", "title": "{{ message }}",
            "body": "b", "preset": "grafana", "on": "0", "priority": "high",
        }  # fmt: skip

    def send(self, rule, **more):
        path = re.sub("<[a-z_]+>", lambda match: self.ids[match[0]], rule)
        sender = self.visitor if rule == "/app/login" else self.owner
        return sender.post(path, self.content(rule), **more)


@pytest.fixture
def forms(service, owner, push_service, monkeypatch):
    monkeypatch.setattr(push, "configured", lambda: set(push.PROVIDERS))
    return Forms(service, owner, push_service)


@pytest.mark.parametrize("rule", POST_RULES)
def test_a_form_of_ours_is_taken_and_changes_something(forms, rule):
    before = everything()
    answer = forms.send(rule)
    assert answer.status_code in (200, 201, 303), answer.text
    assert (everything() != before) == (rule != PREVIEW)


@pytest.mark.parametrize("rule", POST_RULES)
def test_a_form_without_its_token_is_refused_and_changes_nothing(forms, rule):
    before = everything()
    answer = forms.send(rule, token="")
    assert answer.status_code == 400 and "open the page again" in answer.text
    assert everything() == before and forms.owner.is_signed_in and not forms.visitor.is_signed_in


@pytest.mark.parametrize("rule", POST_RULES)
def test_a_form_with_another_sessions_token_is_refused_and_changes_nothing(forms, rule, stranger):
    before = everything()
    answer = forms.send(rule, token=stranger.token)
    assert answer.status_code == 400 and "open the page again" in answer.text
    assert everything() == before and forms.owner.is_signed_in and not forms.visitor.is_signed_in


@pytest.mark.parametrize("rule", POST_RULES)
def test_a_form_from_another_origin_is_refused_and_changes_nothing(forms, rule):
    before = everything()
    answers = {origin: forms.send(rule, headers={"Origin": origin}) for origin in FOREIGN_ORIGINS}
    assert {origin: answer.status_code for origin, answer in answers.items()} == dict.fromkeys(FOREIGN_ORIGINS, 400)
    assert all("open the page again" in answer.text for answer in answers.values())
    assert everything() == before and forms.owner.is_signed_in and not forms.visitor.is_signed_in


@pytest.mark.parametrize("token", ["é", "\u00ff" * 5000, "0", "None", "undefined"])
def test_a_token_that_was_made_up_is_refused(owner, token):
    assert owner.post("/app/keys", {"name": "x", "csrf": token}, headers={"X-CSRF-Token": None}).status_code == 400


def test_a_form_of_a_browser_that_sends_no_origin_is_taken(owner):
    assert owner.post("/app/keys", {"name": "x"}, headers={"Origin": None}).status_code == 303


def test_a_form_sends_its_token_in_a_field(owner):
    sent = {"name": "x", "csrf": owner.page("/app/keys").value("csrf")}
    assert owner.post("/app/keys", sent, headers={"X-CSRF-Token": None}).status_code == 303


def test_a_form_that_was_open_while_the_browser_signed_out_is_refused(service, owner):
    old = owner.token
    owner.post("/app/logout")
    owner.sign_in()
    assert owner.post("/app/keys", {"name": "x"}, token=old).status_code == 400
    assert listed(service, "key", "list", EMAIL) == []


@pytest.mark.parametrize("rule", POST_RULES)
def test_looking_at_the_address_of_a_form_changes_nothing(forms, rule):
    before = everything()
    path = re.sub("<[a-z_]+>", lambda match: forms.ids[match[0]], rule)
    forms.owner.get(path, query_string=forms.content(rule) if rule not in ("/app/devices", PREVIEW) else None)
    assert everything() == before and forms.owner.is_signed_in


def test_every_form_of_a_page_holds_the_token_of_its_session(forms):
    for path in PAGES_OF_THE_OWNER:
        page = forms.owner.page(path)
        posts = [form for form in page.all("form") if form.get("method") == "post"]
        tokens = [field.get("value") for field in page.all("input") if field.get("name") == "csrf"]
        assert tokens == [forms.owner.token] * len(posts), path


# --- API keys -----------------------------------------------------------------------------------------------


def make_key(owner, name="backup"):
    """Make a key with the page's form; answers with its full text."""
    owner.get("/app/keys")
    return full_key_at(owner, owner.post("/app/keys", {"name": name}).location)


def full_key_at(owner, path):
    """The key that the page shows in full, if it does."""
    shown = re.search('<code id="full-key">(sk_test_[0-9a-f]{48})</code>', owner.get(path).text)
    return shown and shown[1]


def test_the_key_that_the_page_shows_sends_notifications(service, owner):
    assert Caller(service, make_key(owner)).send().status_code == 200


def test_a_key_is_shown_once_and_only_its_beginning_afterwards(owner):
    full_key = make_key(owner)
    later = owner.get("/app/keys").text
    assert full_key not in later and f"<code>{full_key[:16]}…</code>" in later
    assert full_key[:17] not in later


def test_a_page_with_a_key_that_is_loaded_again_makes_no_second_one_and_shows_none(service, owner):
    answer = owner.post("/app/keys", {"name": "backup"})
    assert answer.status_code == 303 and full_key_at(owner, answer.location)
    assert full_key_at(owner, answer.location) is None and "was shown once" in owner.page(answer.location).text
    assert len(listed(service, "key", "list", EMAIL)) == 1


def test_two_tabs_are_shown_each_its_own_key(service, owner):
    paths = [owner.post("/app/keys", {"name": name}).location for name in ("first", "second")]
    keys = [full_key_at(owner, path) for path in paths]
    assert len({*keys}) == 2 and [Caller(service, key).send().status_code for key in keys] == [200, 200]


def test_a_new_key_is_shown_in_the_session_alone_that_made_it(service, owner, stranger):
    path = owner.post("/app/keys", {"name": "backup"}).location
    other_browser = Visitor(service)
    other_browser.sign_in()
    for visitor in (other_browser, stranger):
        assert visitor.get(path).status_code == 200 and full_key_at(visitor, path) is None
    assert full_key_at(owner, path)


@pytest.mark.parametrize("made", ["", "0" * 32, "é", "' OR 1", "%00"])
def test_an_address_with_a_made_up_key_shows_none(owner, made):
    owner.post("/app/keys", {"name": "backup"})
    assert full_key_at(owner, f"/app/keys?made={made}") is None


def test_a_key_is_in_no_cookie_no_header_and_no_address(owner):
    answer = owner.post("/app/keys", {"name": "backup"})
    signer = owner.service.app.session_interface.get_signing_serializer(owner.service.app)
    told = [answer.headers, answer.location, owner.cookie, signer.loads(owner.cookie)]
    full_key = full_key_at(owner, answer.location)
    told += [owner.cookie, signer.loads(owner.cookie), owner.get("/app/keys").headers]
    for part in (full_key, full_key[8:], full_key[16:]):
        assert part not in str(told)


def test_a_key_that_waits_to_be_shown_is_not_on_the_disk(service, owner):
    path = owner.post("/app/keys", {"name": "backup"}).location

    def stored():
        return b"".join(file.read_bytes() for file in service.data_dir.rglob("*") if file.is_file())

    while_waiting = stored()
    full_key = full_key_at(owner, path)
    for kept in (while_waiting, stored()):
        for part in (full_key, full_key[8:], full_key[16:]):
            assert part.encode() not in kept
        assert bytes.fromhex(full_key[8:]) not in kept


def test_a_key_that_nobody_looked_at_is_kept_for_no_later_one(owner, moved_clock):
    forgotten = owner.post("/app/keys", {"name": "forgotten"}).location
    moved_clock.advance(11 * 60)
    assert make_key(owner, "later") and full_key_at(owner, forgotten) is None


def test_the_example_command_holds_the_key_and_the_address_of_the_page(owner):
    page = owner.done("/app/keys", {"name": "x"})
    full_key = re.search("sk_test_[0-9a-f]{48}", page.text)[0]
    command = f"curl http://localhost/api/v1/notifications/send \\ -H 'Authorization: Bearer {full_key}' \\ -d '{{"
    assert command in page.text


def test_the_example_command_holds_the_public_address(make_service, push_service, moved_clock):
    service = make_service(BASE_URL="https://bell.example.org")
    make_account(service)
    owner = Visitor(service)
    owner.sign_in()
    owner.get("/app/keys")
    page = owner.done("/app/keys", {"name": "x"})
    assert "curl https://bell.example.org/api/v1/notifications/send" in page.text


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "\0"])
def test_a_key_without_a_good_name_is_refused_with_a_sentence(service, owner, name):
    answer = owner.post("/app/keys", {"name": name})
    (sentence,) = Page(answer.text).said("alert")
    assert answer.status_code == 422 and sentence.endswith(".")
    assert listed(service, "key", "list", EMAIL) == []


def test_a_key_is_revoked_only_after_a_second_question(owner):
    make_key(owner)
    page = owner.page("/app/keys")
    (action,) = page.forms("/revoke")
    asked = page.confirmation(action)
    assert asked.startswith("Revoke…") and "cannot be undone" in asked


def test_a_key_is_revoked_by_its_button(service, owner):
    caller = Caller(service, make_key(owner))
    (action,) = [form["action"] for form in owner.page("/app/keys").all("form") if "revoke" in form["action"]]
    answer = owner.post(action)
    assert (answer.status_code, answer.location) == (303, "/app/keys")
    assert caller.send().status_code == 401


def test_a_revoked_key_is_listed_without_a_button(service, owner):
    make_key(owner)
    ((key_id, *_),) = listed(service, "key", "list", EMAIL)
    owner.post(f"/app/keys/{key_id}/revoke")
    page = owner.page("/app/keys")
    assert "revoked 2026-11-21 10:00" in page.text and "The key is revoked" in page.text
    assert not [form for form in page.all("form") if "revoke" in form["action"]]


def test_a_message_is_shown_once(service, owner):
    make_key(owner)
    ((key_id, *_),) = listed(service, "key", "list", EMAIL)
    owner.post(f"/app/keys/{key_id}/revoke")
    owner.get("/app/keys")
    assert "The key is revoked" not in owner.page("/app/keys").text


def test_a_key_says_when_it_was_used_last_in_the_owners_time_zone(service, owner, moved_clock):
    service.flask("account", "set", EMAIL, "--timezone", "Asia/Tokyo")
    caller = Caller(service, make_key(owner))
    assert "made 2026-11-21 19:00, never used" in owner.page("/app/keys").text
    moved_clock.advance(3600)
    caller.send()
    page = owner.page("/app/keys")
    assert "last used" in page.text and "2026-11-21 20:00" in page.values()


def test_a_key_names_the_devices_that_it_added(service, owner):
    maker, idle = service.caller(name="phone app"), service.caller(name="idle")
    for token, name in (("ab" * 32, "Phone"), ("cd" * 32, "Tablet")):
        assert maker.post("/devices", {"kind": "apns", "token": token, "name": name}).status_code == 201
    assert idle.send().status_code == 200
    page = owner.page("/app/keys")
    assert "Phone" in page.section("phone app") and "Tablet" in page.section("phone app")
    assert "Phone" not in page.section("idle")


def test_another_accounts_key_id_is_as_good_as_unknown(service, owner, stranger):
    caller = Caller(service, make_key(owner))
    ((key_id, *_),) = listed(service, "key", "list", EMAIL)
    foreign, unknown = (stranger.post(f"/app/keys/{tried}/revoke") for tried in (key_id, "0" * 32))
    assert (foreign.status_code, foreign.text) == (404, unknown.text)
    assert caller.send().status_code == 200


def test_another_accounts_keys_are_not_listed(owner, stranger):
    full_key = make_key(owner, "mine alone")
    assert "mine alone" not in stranger.get("/app/keys").text and full_key[:16] not in stranger.get("/app/keys").text


# --- what strangers write is text ---------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    '" onfocus="alert(1)" autofocus="',
    "' onfocus='alert(1)' autofocus='",
    '" style="background:red',
    "`onmouseover=alert(1)`",
    "</strong></li></ul><h1>gone</h1>",
    "</p></section></main>",
    "</title><title>x",
    "<!--",
    "-->",
    "<!-- x --><b>",
    "<![CDATA[<b>]]>",
    "<?php echo 1 ?>",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0>",
    "<form action=//evil.example><input name=csrf>",
    "{{ 7 * 7 }}{% raw %}",
    "{{ config.SECRET_KEY }}",
    "&lt;b&gt;&amp;amp;&#60;b&#62;",
    "&quot; onload=&quot;alert(1)",
    "\\x3cscript\\x3e\\u003cb\\u003e",
    "＜script＞‮gnp.exe",
]


def test_there_are_thirty_hostile_texts():
    assert len(set(HOSTILE)) == 30


def pages_with(text, owner, notification_id):
    """All pages with `text` wherever a stranger, a sender or a provider can put it."""
    with transaction():
        ApiKey.update(name=text).execute()
        Alert.update(name=text, icon=text, paused_at=1).execute()
        Device.update(name=text, last_error=text, last_error_at=1).execute()
        Notification.update(title=text, body=text, missing=json.dumps([text])).execute()
        Delivery.update(status="failed", answered_at=1, next_attempt_at=None, error=text).execute()
        Session.update(name=text).execute()
    return [owner.page(path) for path in (*PAGES_OF_THE_OWNER, f"/app/notifications/{notification_id}")]


@pytest.mark.parametrize("texts", [HOSTILE[start::6] for start in range(6)], ids=range(6))
def test_names_texts_and_errors_are_shown_as_they_are(service, owner, texts):
    caller = service.caller()
    assert caller.post("/devices", {"kind": "apns", "token": "ab" * 32, "name": "x"}).status_code == 201
    notification_id = service.alert().post({"message": "x"}).json["notificationId"]
    plain = pages_with("harmless", owner, notification_id)
    for text in texts:
        hostile = pages_with(text, owner, notification_id)
        for before, after in zip(plain, hostile, strict=True):
            assert after.shape == before.shape, text
            assert after.text == before.text.replace("harmless", " ".join(text.split()))
        assert any(f"Revoke {text}" in page.values() for page in hostile)
        assert any(f"Remove {text}" in page.values() for page in hostile)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_was_searched_for_is_shown_as_it_is(service, owner, text):
    service.caller().send(f"a {text} b", "body")
    terms = ("body", text, "!?", f"!?{text}")
    searched = [owner.page(f"/app/notifications?{urlencode({'search': term})}") for term in terms]
    assert [page.value("search") for page in searched] == list(terms)
    assert searched[1].texts_of("mark") == [" ".join(text.split())]
    assert searched[0].titles() == searched[1].titles() == [f"MCP - a {' '.join(text.split())} b"]
    assert searched[2].shape == searched[3].shape


TYPED = [
    ("/app/keys", "name", {"name": "…" + "x" * 100}),
    ("/app/quiet", "end", {"begin": "22:00", "end": "…"}),
    ("/app/devices/token", "name", {"kind": "apns", "token": "no", "name": "…"}),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_was_typed_in_a_form_is_shown_as_it_is(owner, text):
    for path, field, form in TYPED:
        plain, hostile = (
            owner.refused(path, {name: value.replace("…", typed) for name, value in form.items()})
            for typed in ("harmless", text)
        )
        assert hostile.shape == plain.shape, path
        assert form[field].replace("…", text) in hostile.values()


@pytest.mark.parametrize("text", HOSTILE)
def test_an_address_that_was_typed_is_shown_as_it_is(service, visitor, text):
    make_account(service)
    pages = [Page(visitor.sign_in(email, "x").text) for email in ("harmless", text)]
    assert pages[1].value("email") == text
    assert pages[1].shape == pages[0].shape and pages[1].text == pages[0].text


@pytest.mark.parametrize("text", HOSTILE)
def test_what_was_typed_on_the_set_up_page_is_shown_as_it_is(visitor, text):
    link = setup_link()
    visitor.get(link)
    typed = [{"email": one, "password": PASSWORD, "time_zone": one} for one in ("harmless", text)]
    pages = [Page(visitor.post(link, form).text) for form in typed]
    assert pages[1].value("email") == text
    assert pages[1].shape == pages[0].shape


@pytest.mark.parametrize("text", HOSTILE)
def test_an_accounts_address_is_shown_as_it_is(service, text):
    shown = []
    for local in ("harmless", "".join(text.split()).replace("@", "").lower()):
        address = local + "@x.local"
        printed = service.flask("account", "create", "--", address).output.strip().partition(":8000")[2]
        visitor = Visitor(service)
        setup = visitor.page(printed)
        assert f"For the account {address}." in setup.text
        visitor.post(printed, {"password": PASSWORD})
        devices, settings = visitor.page("/app/devices"), visitor.page("/app/settings")
        assert f"Apple refuses Web Push from the contact mailto:{address}:" in devices.text
        assert address in settings.text
        shown.append([page.shape for page in (setup, devices, settings)])
    assert shown[0] == shown[1]


# --- headers and cookies ------------------------------------------------------------------------------------

PAGES = [*PAGES_OF_THE_OWNER, "/app/login", "/app/nothing", "/app/setup/unknown", "/app/notifications/unknown"]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def check_headers(answer, cache_control):
    expected = {
        "Cache-Control": [cache_control],
        "Content-Security-Policy": [POLICY],
        "Cross-Origin-Opener-Policy": ["same-origin"],
        "X-Content-Type-Options": ["nosniff"],
    }
    assert {name: answer.headers.getlist(name) for name in expected} == expected
    # both keep our addresses from other sites; with the first, a browser's own forms say "Origin: null"
    assert answer.headers.getlist("Referrer-Policy") in (["no-referrer"], ["same-origin"])


@pytest.mark.parametrize("path", PAGES)
def test_a_page_carries_the_security_headers_and_is_never_stored(owner, service, path):
    for visitor in (owner, Visitor(service)):
        check_headers(visitor.get(path), "no-store")


def test_the_set_up_page_carries_the_security_headers_and_is_never_stored(visitor):
    check_headers(visitor.get(setup_link()), "no-store")


def test_the_answer_to_a_form_carries_the_security_headers_and_is_never_stored(owner):
    check_headers(owner.post("/app/keys", {"name": "x"}), "no-store")
    check_headers(owner.post("/app/keys", {"name": ""}), "no-store")
    check_headers(owner.post("/app/keys", {"name": "x"}, token=""), "no-store")
    check_headers(owner.post("/app/logout"), "no-store")


@pytest.mark.parametrize("path", STATIC_FILES)
def test_a_static_file_carries_the_security_headers_and_is_asked_for_each_time(visitor, path):
    check_headers(visitor.get(path), "no-cache")


@pytest.mark.parametrize("path", STATIC_FILES)
def test_a_static_file_at_the_address_of_its_content_is_kept_for_a_year(visitor, path):
    check_headers(visitor.get(f"{path}?v=0123456789ab"), "public, max-age=31536000, immutable")


def test_an_unknown_static_file_is_never_kept(visitor):
    check_headers(visitor.get("/app/static/nothing.js?v=0123456789ab"), "no-store")


def test_pages_address_what_may_be_kept_by_its_content(owner):
    page = owner.page("/app/")
    addresses = [link["href"] for link in page.all("link") if link["rel"] == "stylesheet"]
    addresses += [script["src"] for script in page.all("script")]
    addresses += [use["href"].partition("#")[0] for use in page.all("use")]
    assert len(addresses) > 4
    for address in set(addresses):
        path, _, version = address.partition("?v=")
        file = ROOT / "static" / path.removeprefix("/app/static/")
        assert hashlib.sha256(file.read_bytes()).hexdigest().startswith(version) and len(version) >= 8


def test_every_icon_that_a_page_shows_is_there(forms):
    known = set(re.findall('<symbol id="([^"]+)"', (ROOT / "static" / "icons.svg").read_text()))
    for path in PAGES_OF_THE_OWNER:
        shown = {use["href"].partition("#")[2] for use in forms.owner.page(path).all("use")}
        assert shown - known == set(), path


def test_the_service_worker_carries_the_security_headers_and_is_asked_for_each_time(visitor):
    answer = visitor.get("/app/sw.js")
    check_headers(answer, "no-cache")
    assert answer.mimetype == "text/javascript"


def test_the_policy_allows_nothing_unsafe_and_nothing_from_elsewhere():
    assert {word for part in POLICY.split("; ") for word in part.split()[1:]} == {"'none'", "'self'"}


def test_a_static_file_carries_nobodys_cookie(owner):
    cookies = {path: owner.get(path).headers.getlist("Set-Cookie") for path in [*STATIC_FILES, "/app/sw.js"]}
    assert [path for path, sent in cookies.items() if sent] == []


def cookie_words(answer):
    (cookie,) = answer.headers.getlist("Set-Cookie")
    name = cookie.partition("=")[0]
    return name, {word.strip().partition("=")[0].lower(): word.strip() for word in cookie.split(";")[1:]}


def test_over_http_the_cookie_is_for_pages_of_this_site_alone(visitor):
    name, words = cookie_words(visitor.get("/app/login"))
    assert name == "pocketbell"
    assert set(words) == {"httponly", "path", "samesite"}
    assert (words["path"], words["samesite"]) == ("Path=/", "SameSite=Lax")


def test_over_https_the_cookie_is_bound_to_the_host_and_to_https(service):
    visitor = Visitor(service, "https://localhost")
    name, words = cookie_words(visitor.get("/app/login"))
    assert name == "__Host-pocketbell"
    assert set(words) == {"httponly", "path", "samesite", "secure"}
    assert (words["path"], words["samesite"]) == ("Path=/", "SameSite=Lax")


def test_over_https_one_can_sign_in(service):
    make_account(service)
    visitor = Visitor(service, "https://localhost")
    assert visitor.sign_in().status_code == 303 and visitor.is_signed_in


def test_a_cookie_from_http_is_no_session_over_https(service, owner):
    secure = Visitor(service, "https://localhost")
    secure.client.set_cookie("pocketbell", owner.cookie, domain="localhost")
    assert not secure.is_signed_in


def test_the_cookie_of_a_session_outlives_the_browser_by_90_days(service, visitor):
    make_account(service)
    _, words = cookie_words(visitor.sign_in())
    assert set(words) == {"httponly", "path", "samesite", "expires"}


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/stats", "/api/v1/nothing", "/nothing", "/p/abcdefg"])
def test_outside_the_pages_there_are_no_cookies(owner, path):
    assert owner.get(path).headers.getlist("Set-Cookie") == []
    assert owner.post(path).headers.getlist("Set-Cookie") == []


def test_a_session_is_no_way_into_the_rest_api(owner):
    assert owner.get("/api/v1/stats").status_code == 401


# --- templates and scripts ----------------------------------------------------------------------------------

TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_script_or_style_inside(template):
    text = template.read_text()
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:", text, re.I) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_loads_and_sends_nothing_elsewhere(template):
    text = template.read_text().replace(
        '<a href="{{ content.url }}" rel="noopener noreferrer">', ""
    )  # a sender's link
    addresses = re.findall(r'\s(?:src|href|action)="([^"]*)"', text)
    built = r"\{\{ (asset\('[\w.-]+'\)(?: \}\}#\{\{ name)?|path|warning\.path) \}\}"
    assert [address for address in addresses if not re.match(rf"/(?!/)|#|{built}", address)] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_switches_no_escaping_off(template):
    assert re.findall(r"\|\s*safe|autoescape|Markup", template.read_text()) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_form_holds_its_token(template):
    text = template.read_text()
    forms = re.findall(r"<form method=\"post\".*?</form>", text, re.S)
    assert len(forms) + text.count('<form method="get"') == text.count("<form")
    assert [form for form in forms if "{{ token() }}" not in form] == []


@pytest.mark.parametrize("script", sorted((ROOT / "static").glob("*.js")), ids=lambda path: path.name)
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
    sentence = re.search(
        r'<h1>That did not work</h1>\s*<p role="alert" tabindex="-1" autofocus>([^<]+)</p>', answer.text
    )[1]
    assert sentence[0].isupper() and sentence.endswith(".") and "API key" not in sentence


@pytest.mark.parametrize("path", ["/app/nothing", "/app/static/nothing.js", "/app/static/../app.py", "/app//keys"])
def test_an_unknown_address_is_answered_with_a_page(owner, path):
    check_error_page(owner.get(path), 404)


@pytest.mark.parametrize(
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


def test_a_form_that_is_too_large_is_answered_with_a_page(make_service):
    visitor = Visitor(make_service(MAX_BODY_BYTES="1024"))
    visitor.get("/app/login")
    form = {"csrf": visitor.token, "email": "x" * 2000}
    check_error_page(visitor.post("/app/login", form, headers={"X-CSRF-Token": None}), 413)


def test_too_many_tries_are_answered_with_a_page(service, visitor):
    use_up_tries(visitor)
    check_error_page(visitor.sign_in(), 429)


def test_a_form_from_elsewhere_is_answered_with_a_page(owner):
    check_error_page(owner.post("/app/keys", {"name": "x"}, token=""), 400)


def test_a_fault_is_answered_with_a_page_that_tells_nothing_of_it(owner, monkeypatch):
    monkeypatch.setattr(Device, "of_account", lambda account_seq: 1 / 0)
    answer = owner.get("/app/devices")
    check_error_page(answer, 500)
    assert "Zero" not in answer.text and "zero" not in answer.text


def test_the_page_of_an_error_lets_who_is_signed_in_go_on(owner):
    page = Page(owner.post("/app/keys/nothing/revoke").text)
    assert {"/app/", "/app/notifications", "/app/alerts", "/app/metrics", "/app/settings"} <= {
        link["href"] for link in page.all("a")
    }


# --- no request is too odd ----------------------------------------------------------------------------------

QUERIES = [
    "%ff%fe",
    "%00",
    "=&=&&&;;",
    "next=//evil.example&next=/%5cevil.example",
    "csrf=&email[]=a&__proto__=1",
    "a=" + "x" * 5000,
    "&".join(f"a{n}=1" for n in range(2000)),
    "%ED%A0%80={{7*7}}",
]
GET_PATHS = [*PAGES_OF_THE_OWNER, "/app/login", "/app/sw.js", "/app/static/app.css", "/app/setup/x"]
MULTIPART = "multipart/form-data; boundary=b"
BODIES = [
    (b"\xff\xfe=%ff&%00=%00&email=%ED%A0%80&name=%ff&password=%00&time_zone=%00", None),
    (b"email=\xff\x00&password=\xff&name=\xff", None),
    (b"&".join(b"a%d=1" % n for n in range(20_000)), None),
    (b"email=" + b"x" * 900_000, None),
    (b"{}", "application/json"),
    (b"{", "application/json"),
    (b"", "multipart/form-data"),
    (b"--b\r\n", MULTIPART),
    (b'--b\r\nContent-Disposition: form-data; name="email"; filename="x"\r\n\r\nx\r\n--b--\r\n', MULTIPART),
    (
        b'--b\r\nContent-Disposition: form-data; name="name"\r\nContent-Type: a/b; charset=utf-7\r\n\r\n+\r\n--b--',
        MULTIPART,
    ),
    (b"--b\r\n\r\n\r\n" * 2000 + b"--b--", MULTIPART),
    (b"x", "text/plain; charset=nonsense"),
    (b"x", "\u00ff/\u00ff"),
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_an_odd_query_string_breaks_no_page(owner, query):
    statuses = {path: owner.client.get(f"{path}?{query}").status_code for path in GET_PATHS}
    assert statuses == {path: owner.client.get(path).status_code for path in GET_PATHS}


def test_no_query_string_leads_away_from_the_service(service, visitor):
    make_account(service)
    visitor.get("/app/login?next=//evil.example")
    answer = visitor.post("/app/login?next=//evil.example", {"email": EMAIL, "password": PASSWORD, "next": "//evil"})
    assert answer.location == "/app/"


@pytest.mark.parametrize("body, content_type", BODIES, ids=range(len(BODIES)))
def test_an_odd_form_breaks_no_page(service, owner, body, content_type):
    for rule in [*POST_RULES, RESYNC]:
        owner.sign_in()
        owner.get("/app/devices")
        path = re.sub("<[a-z_]+>", "x", rule)
        answer = owner.post(path, body, content_type=content_type or "application/x-www-form-urlencoded")
        expected = (401,) if rule == RESYNC else (200, 303, 400, 404, 413, 422)
        assert answer.status_code in expected, f"{rule}: {answer.text}"


@pytest.mark.parametrize("body, content_type", BODIES, ids=range(len(BODIES)))
def test_an_odd_form_breaks_no_set_up_page(visitor, body, content_type):
    link = setup_link()
    visitor.get(link)
    answer = visitor.post(link, body, content_type=content_type or "application/x-www-form-urlencoded")
    assert answer.status_code in (400, 413, 422), answer.text
    assert not accounts.any_account()


ODD_VALUES = [
    "",
    "[",
    "[::1",
    "x:y:z",
    "\u00ff\u00fe",
    "a, b",
    "x" * 5000,
    "<script>",
    "bytes=9-1",
    "http://[",
    "é\t",
]


@pytest.mark.parametrize(
    "name", ["Host", "Origin", "X-CSRF-Token", "Cookie", "Content-Type", "Range", "If-None-Match"]
)
def test_an_odd_header_breaks_no_page(owner, name):
    variable = "CONTENT_TYPE" if name == "Content-Type" else f"HTTP_{name.upper().replace('-', '_')}"
    form = {"name": "x", "csrf": owner.token, "email": EMAIL, "password": "x"}
    for value in ODD_VALUES:
        odd = {"environ_overrides": {variable: value}}
        gets = [owner.client.get(path, **odd) for path in ("/app/login", "/app/devices", "/app/static/app.css")]
        posts = [owner.client.post(path, data=form, **odd) for path in ("/app/keys", "/app/login")]
        assert [answer.status_code for answer in gets + posts if answer.status_code >= 500] == [], value


@pytest.mark.parametrize("path", ["/", "/app"])
def test_the_way_in_leads_to_no_host_that_a_request_names(service, path):
    answer = service.client.get(path, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/app/")
