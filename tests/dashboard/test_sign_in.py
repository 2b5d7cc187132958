"""Signing in and out, and the page that one is led to."""

import hashlib
import re
from urllib.parse import urlencode

import flask
import pytest

from app import ROUTES
from core import accounts
from dashboard import page
from tests.support.accounts import OWNER, PASSWORD
from tests.support.pages import Page, Visitor, make_account
from tests.support.rows import each
from tests.support.tables import everything
from web import guards

REAL_PASSWORD_METHOD = accounts.PASSWORD_METHOD
SIGNED_IN_RULES = [
    (route.method, route.rule) for route in ROUTES if route.guard in (guards.signed_in, guards.administrator)
]


# --- sign-in, sign-out --------------------------------------------------------------------------------------


@pytest.fixture
def signed_out(service, visitor):
    """A browser that has opened the sign-in page of a service that has an account."""
    make_account(service)
    visitor.get("/app/login")
    return visitor


@each("method, rule", SIGNED_IN_RULES)
def test_who_is_not_signed_in_is_led_to_the_sign_in_page(signed_out, method, rule):
    path = re.sub("<[a-z_]+>", "1", rule)
    answer = signed_out.get(path) if method == "GET" else signed_out.post(path)
    back = f"?{urlencode({'next': path})}" if method == "GET" and path != "/app/" else ""
    assert (answer.status_code, answer.location) == (303, f"/app/login{back}")


@each("spelt", [OWNER, "  Owner@Example.ORG "])
def test_address_and_password_sign_in(service, signed_out, spelt):
    visitor = Visitor(service)
    answer = visitor.sign_in(spelt)
    assert (answer.status_code, answer.location) == (303, "/app/")
    assert visitor.is_signed_in


def test_a_password_is_stored_as_a_slow_hash(service):
    make_account(service)
    stored = accounts.find_account(OWNER).password_hash
    assert stored.startswith(f"{accounts.PASSWORD_METHOD}$") and PASSWORD not in stored
    assert int(re.fullmatch("scrypt:([0-9]+):8:1", REAL_PASSWORD_METHOD)[1]) >= 2**17


def test_a_session_is_stored_as_a_hash(service, visitor):
    make_account(service)
    visitor.sign_in()
    with visitor.client.session_transaction("/app/", base_url=visitor.base_url) as kept:
        token = kept["token"]
    (stored,) = [bytes(session[0]) for session in everything()["session"]]
    assert stored == hashlib.sha256(token.encode()).digest()


def test_an_unknown_address_and_a_wrong_password_get_the_same_page(service, visitor):
    make_account(service)
    pages = []
    for email in (OWNER, "nobody@example.org"):
        answer = visitor.sign_in(email, "not the password")
        text = answer.text.replace(email, "…").replace(visitor.token, "…")
        headers = [pair for pair in answer.headers if pair[0] not in ("Content-Length", "X-Request-Id")]
        pages.append((answer.status_code, text, headers))
    assert pages[0] == pages[1] and pages[0][0] == 422


def test_an_unknown_address_costs_as_much_as_a_wrong_password(service, visitor, monkeypatch):
    make_account(service)
    service.account("without@example.org")
    costs, check = [], accounts.check_password_hash
    monkeypatch.setattr(
        accounts, "check_password_hash", lambda kept, tried: costs.append(kept.split("$")[0]) or check(kept, tried)
    )
    for email in (OWNER, "nobody@example.org", "without@example.org"):
        visitor.sign_in(email, "not the password")
    assert len(costs) == 3 and len(set(costs)) == 1


def test_a_refused_sign_in_keeps_the_address_and_not_the_password(service, visitor):
    make_account(service)
    answer = visitor.sign_in(OWNER, "not the password")
    assert Page(answer.text).value("email") == OWNER
    assert "not the password" not in answer.text


def test_the_cookie_from_before_the_sign_in_is_no_session_after_it(service, visitor):
    make_account(service)
    visitor.get("/app/login")
    planted = visitor.cookie
    visitor.sign_in()
    assert visitor.is_signed_in and visitor.cookie != planted
    assert not visitor.with_cookie(planted).is_signed_in


def test_signing_in_changes_the_token_of_the_forms(service, visitor):
    make_account(service)
    visitor.get("/app/login")
    before = visitor.token
    visitor.sign_in()
    visitor.get("/app/devices")
    assert visitor.token != before
    assert visitor.post("/app/keys", {"name": "x"}, token=before).status_code == 400


def test_signing_out_ends_the_session_of_the_old_cookie_and_no_other(service, owner):
    other, stolen = Visitor(service), owner.cookie
    other.sign_in()
    answer = owner.post("/app/logout")
    assert (answer.status_code, answer.location) == (303, "/app/login")
    assert not owner.is_signed_in
    assert not owner.with_cookie(stolen).is_signed_in and other.is_signed_in


@each("cookie", ["", "x", "e30.x.y", "eyJ0b2tlbiI6IngifQ.aSAfWA.AAAAAAAAAAAAAAAAAAAAAAAAAAA", "é"])
def test_a_forged_cookie_is_no_session(owner, cookie):
    assert not owner.with_cookie(cookie).is_signed_in


# --- back to the page that was asked for --------------------------------------------------------------------


@each(
    "path",
    [
        "/app/notifications?search=disk+full&status=failed&before=17",
        "/app/notifications/0123456789abcdef0123456789abcdef",
    ],
)
def test_signing_in_leads_to_the_page_that_was_asked_for(service, signed_out, path):
    visitor = Visitor(service)
    asked = visitor.get(path)
    visitor.get(asked.location)
    answer = visitor.post(asked.location, {"email": OWNER, "password": PASSWORD})
    assert (answer.status_code, answer.location) == (303, path)


def test_a_wrong_password_does_not_lose_the_requested_page(service, visitor):
    make_account(service)
    sign_in = visitor.get("/app/quiet").location
    form = next(form for form in visitor.page(sign_in).all("form"))
    assert form.get("action", sign_in) == sign_in
    assert visitor.post(sign_in, {"email": OWNER, "password": "not the password"}).status_code == 422
    assert visitor.post(sign_in, {"email": OWNER, "password": PASSWORD}).location == "/app/quiet"


@pytest.fixture
def ended(owner):
    """The owner's browser, whose session has ended while a page was open."""
    owner.get("/app/keys")
    accounts.sign_out_everywhere(accounts.find_account(OWNER).seq)
    return owner


NOT_SAVED = "You were signed out, so your last change was not saved. Sign in and try again."


@each("path", ["/app/keys", "/app/notifications?search=disk&before=2"])
def test_a_form_sent_after_the_session_ended_is_said_to_be_lost_and_signing_in_leads_back_to_its_page(ended, path):
    answer = ended.post("/app/keys", {"name": "x"}, headers={"Referer": f"http://localhost{path}"})
    assert (answer.status_code, answer.location) == (303, f"/app/login?{urlencode({'next': path})}")
    assert ended.page(answer.location).said("status") == [NOT_SAVED]
    assert ended.page(answer.location).said("status") == []
    answer = ended.post(answer.location, {"email": OWNER, "password": PASSWORD})
    assert (answer.status_code, answer.location) == (303, path)
    accounts.sign_out_everywhere(accounts.find_account(OWNER).seq)


def test_a_lost_form_without_a_referrer_is_told_too(ended):
    answer = ended.post("/app/keys", {"name": "x"})
    assert answer.location == "/app/login" and ended.page(answer.location).said("status") == [NOT_SAVED]


FOREIGN_REFERRERS = [
    *("https://evil.example/app/keys", "http://localhost.evil.example/app/", "http://localhost@evil.example/app/"),
    *("http://localhost:8001/app/keys", "http://localhost", "//evil.example/app/keys", "/app/keys", "http://[/app/"),
]


@each("referrer", FOREIGN_REFERRERS)
def test_a_lost_form_never_leads_to_the_page_of_another_site(ended, referrer):
    answer = ended.post("/app/keys", {"name": "x"}, headers={"Referer": referrer})
    assert (answer.status_code, answer.location) == (303, "/app/login")


@each("origin", ["https://evil.example", "http://localhost.evil.example", "null", "", None])
def test_a_form_of_another_site_never_changes_the_cookie_of_who_is_not_signed_in(visitor, origin):
    """Such a form comes without the cookie of who is signed in here, which a new one would replace."""
    headers = {"Origin": origin, "Referer": "http://localhost/app/keys"}
    answer = visitor.post("/app/keys", {"name": "x"}, headers=headers)
    assert (answer.location, answer.headers.getlist("Set-Cookie")) == ("/app/login", [])


def test_signing_out_twice_loses_nothing(ended):
    answer = ended.post("/app/logout", headers={"Referer": "http://localhost/app/keys"})
    assert answer.location == "/app/login" and ended.page(answer.location).said("status") == []


ELSEWHERE = [
    *("//evil.example", "//evil.example/app/", "///evil.example", "/\\evil.example", "\\\\evil.example"),
    *("/app//evil.example", "/app/\\evil.example", "/app/..//evil.example", "/app/../../etc", "/app/.."),
    *("/app/%0d%0aLocation: //evil.example", "/app/\r\nSet-Cookie: a=b", "/app/\nx", "/app/x\n", "/app/\tx"),
    *("/app/ x", "/app/@evil.example", "/app/:80@evil.example", "https://evil.example/app/"),
    *("http://localhost/app/devices", "https:/app/devices", "javascript:alert(1)", "data:text/html,x"),
    *("evil.example", "app/devices", "/", "/apps/devices", "/app.evil.example", "/api/v1/stats", "/healthz"),
    *("/p/abcdefg", " /app/devices", "\x00/app/devices", "/app/\x00", "/app/\u2028x", "/app/é"),
    *("/app/\uff0f\uff0fevil.example", "/app/#//evil.example", "/app/<script>", "/app/?next=//evil.example"),
    *("//app/devices",),
]


@each("wanted", ELSEWHERE)
def test_no_address_elsewhere_is_taken_for_the_page_that_was_asked_for(service, monkeypatch, wanted):
    monkeypatch.setattr(page, "request", flask.request)
    with service.app.test_request_context("/app/login", query_string={"next": wanted}):
        assert page.asked_for("next", "/app/") == "/app/"


@each("wanted", ["//evil.example/app/", "/app/\r\nSet-Cookie: a=b"])
def test_signing_in_never_redirects_to_another_host(signed_out, wanted):
    answer = signed_out.with_cookie("").sign_in(wanted=wanted)
    assert (answer.status_code, answer.location) == (303, "/app/")
    assert len(answer.headers.getlist("Set-Cookie")) == 1


def test_signing_in_with_an_invalid_target_leads_to_the_web_app(service, signed_out):
    """Even these are ours; a GET changes nothing."""
    assert signed_out.sign_in().status_code == 303 and signed_out.is_signed_in  # which notes when it was last seen
    before = everything()
    for where in ("/app/logout", "/app/login", "/app/sw.js", "/app/static/app.js"):
        signed_out.sign_in(wanted=where)
        signed_out.get(where)
        assert {table for table, rows in everything().items() if rows != before[table]} <= {"session"}, where
        assert signed_out.is_signed_in, where


def test_the_target_after_signing_in_is_read_from_the_address_and_not_from_the_form(service, visitor):
    make_account(service)
    visitor.get("/app/login")
    answer = visitor.post("/app/login", {"email": OWNER, "password": PASSWORD, "next": "/app/keys"})
    assert answer.location == "/app/"


def test_without_an_account_the_page_says_where_the_link_is(service, visitor):
    assert "There is no account yet. Open the one-time link" in visitor.page("/app/login").main
    make_account(service)
    shown = visitor.page("/app/login").main
    assert "There is no account" not in shown and "Forgot password?" in shown
