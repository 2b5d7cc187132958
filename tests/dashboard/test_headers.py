"""The headers and cookies of every page and static file."""

import hashlib
import re

from tests.support.forms import PAGES_OF_THE_OWNER
from tests.support.hostile import POLICY
from tests.support.pages import Visitor, make_account
from tests.support.rows import each
from tests.support.server import ROOT

STATIC_FILES = sorted(f"/app/static/{path.name}" for path in (ROOT / "static").iterdir())
PAGES = [*PAGES_OF_THE_OWNER, "/app/login", "/app/nothing", "/app/setup/unknown", "/app/notifications/unknown"]


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


ICONS = set(re.findall('<symbol id="([^"]+)"', (ROOT / "static" / "icons.svg").read_text()))


@each("path", PAGES)
def test_a_page_carries_the_security_headers_is_never_stored_and_shows_icons_that_are_there(forms, path):
    answer = forms.owner.get(path)
    check_headers(answer, "no-store")
    shown = set(re.findall('<use [^>]*href="[^"#]*#([^"]+)"', answer.text))
    assert shown <= ICONS and (shown or path not in PAGES_OF_THE_OWNER)


@each("path", ["/app/", "/app/login", "/app/nothing", "/app/setup/unknown"])
def test_a_page_for_who_is_not_signed_in_carries_them_too(visitor, path):
    check_headers(visitor.get(path), "no-store")


def test_the_answer_to_a_form_carries_the_security_headers_and_is_never_stored(owner):
    check_headers(owner.post("/app/keys", {"name": "x"}), "no-store")
    check_headers(owner.post("/app/keys", {"name": ""}), "no-store")
    check_headers(owner.post("/app/keys", {"name": "x"}, token=""), "no-store")
    check_headers(owner.post("/app/logout"), "no-store")


@each("path", ["/a/unknown", "/e/unknown", "/i/unknown"])
def test_an_error_at_an_address_that_is_a_secret_carries_the_security_headers(visitor, path):
    check_headers(visitor.get(path, headers={"Accept": "text/html"}), "no-store")


@each("path", [*STATIC_FILES, "/app/sw.js"])
def test_a_static_file_carries_the_security_headers_and_nobodys_cookie_and_is_asked_for_each_time(owner, path):
    answer = owner.get(path)
    check_headers(answer, "no-cache")
    assert answer.headers.getlist("Set-Cookie") == []


@each("path", STATIC_FILES[::8])
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


def test_the_service_worker_is_a_script(visitor):
    assert visitor.get("/app/sw.js").mimetype == "text/javascript"


def test_the_policy_allows_nothing_unsafe_and_nothing_from_elsewhere():
    assert {word for part in POLICY.split("; ") for word in part.split()[1:]} == {"'none'", "'self'"}


def cookie_words(answer):
    (cookie,) = answer.headers.getlist("Set-Cookie")
    name = cookie.partition("=")[0]
    return name, {word.strip().partition("=")[0].lower(): word.strip() for word in cookie.split(";")[1:]}


@each("scheme, begin, more", [("http", "", set()), ("https", "__Host-", {"secure"})])
def test_the_cookie_is_for_pages_of_this_site_alone_and_over_https_bound_to_the_host(service, scheme, begin, more):
    name, words = cookie_words(Visitor(service, f"{scheme}://localhost").get("/app/login"))
    assert (name, set(words)) == (f"{begin}pocketbell", {"httponly", "path", "samesite"} | more)
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


@each("path", ["/", "/healthz", "/api/v1/stats", "/api/v1/nothing", "/nothing", "/p/abcdefg"])
def test_outside_the_pages_there_are_no_cookies(owner, path):
    assert owner.get(path).headers.getlist("Set-Cookie") == []
    assert owner.post(path).headers.getlist("Set-Cookie") == []


def test_a_session_is_no_way_into_the_rest_api(owner):
    assert owner.get("/api/v1/stats").status_code == 401
