"""The pages under /app/ as a browser without JavaScript meets them: ways in, API keys, devices, forms, headers."""

import json
import re
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest

import accounts
import auth
import clock
import config
import quotas
from app import ROUTES
from models import ApiKey, Device
from tests.conftest import Caller

REAL_PASSWORD_METHOD = accounts.PASSWORD_METHOD
ROOT = Path(config.__file__).parent
EMAIL, PASSWORD = "owner@example.org", "correct horse battery"
DAY_S = 86_400
POST_RULES = [route.rule for route in ROUTES if route.method == "POST" and route.rule.startswith("/app/")]
SIGNED_IN_RULES = [(route.method, route.rule) for route in ROUTES if route.guard is auth.signed_in]
STATIC_FILES = sorted(f"/app/static/{path.name}" for path in (ROOT / "static").iterdir())
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@pytest.fixture(autouse=True)
def cheap_passwords(monkeypatch):
    """What a hash costs is the matter of one test only."""
    monkeypatch.setattr(accounts, "PASSWORD_METHOD", "scrypt:128:8:1")
    monkeypatch.setattr(accounts, "NOBODYS_PASSWORD", "scrypt:128:8:1$pocketbell$" + "0" * 128)


class Page(HTMLParser):
    """What a page says and what it is built of."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags = []  # (name, attributes), in order
        self.texts = []
        self.open = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    @property
    def shape(self):
        """Elements with the names of their attributes: what no text may change."""
        return [(tag, sorted(attributes)) for tag, attributes in self.tags]

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def value(self, name):
        """What the input of that name holds."""
        return next(attributes.get("value") for attributes in self.all("input") if attributes.get("name") == name)

    def values(self):
        return [value for _, attributes in self.tags for value in attributes.values()]


class Visitor:
    """A browser without JavaScript: keeps cookies and sends a form with the token of the page it saw last."""

    def __init__(self, service, base_url="http://localhost"):
        self.service, self.base_url, self.token = service, base_url, ""
        self.client = service.app.test_client()

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

    def sign_in(self, email=EMAIL, password=PASSWORD):
        self.get("/app/login")
        return self.post("/app/login", {"email": email, "password": password})

    @property
    def is_signed_in(self):
        return self.get("/app/devices").status_code == 200

    @property
    def cookie(self):
        name = "__Host-pocketbell" if self.base_url.startswith("https") else "pocketbell"
        found = self.client.get_cookie(name, "localhost", "/")
        return found.value if found else None

    def with_cookie(self, value):
        """Another browser that presents this cookie."""
        other = Visitor(self.service, self.base_url)
        other.client.set_cookie("pocketbell", value, domain="localhost")
        return other


@pytest.fixture
def visitor(service):
    return Visitor(service)


def make_account(service, email=EMAIL):
    made = service.flask("account", "create", email, "--password-stdin", stdin=PASSWORD)
    assert made.exit_code == 0, made.output
    return email


@pytest.fixture
def owner(service):
    """The owner, signed in with a browser."""
    make_account(service)
    visitor = Visitor(service)
    assert visitor.sign_in().status_code == 303
    visitor.get("/app/devices")
    return visitor


@pytest.fixture
def stranger(service, owner):
    """Another account's owner, signed in."""
    make_account(service, "other@example.org")
    visitor = Visitor(service)
    assert visitor.sign_in("other@example.org").status_code == 303
    visitor.get("/app/devices")
    return visitor


def setup_link():
    return accounts.make_setup_link(clock.now_ms())


def setup_form(**more):
    return {"email": EMAIL, "password": PASSWORD, "time_zone": "Europe/Berlin", **more}


def listed(service, *command):
    result = service.flask(*command)
    assert result.exit_code == 0, result.output
    return [line.split("\t") for line in result.output.splitlines()]


# --- the link that makes the owner's account ----------------------------------------------------------------


def test_looking_at_the_set_up_link_does_not_spend_it(visitor):
    link = setup_link()
    assert [visitor.get(link).status_code for _ in range(3)] == [200, 200, 200]
    assert visitor.post(link, setup_form()).status_code == 303


def test_the_set_up_form_makes_the_account(service, visitor):
    link = setup_link()
    visitor.get(link)
    visitor.post(link, setup_form(email=" Owner@Example.org "))
    assert [line[:3] for line in listed(service, "account", "list")] == [[EMAIL, "starter", "Europe/Berlin"]]


def test_the_set_up_form_signs_in_and_leads_to_the_devices(visitor):
    link = setup_link()
    visitor.get(link)
    answer = visitor.post(link, setup_form())
    assert (answer.status_code, answer.location) == (303, "/app/devices")
    assert visitor.is_signed_in


def test_the_password_of_the_set_up_form_signs_in_later(service, visitor):
    link = setup_link()
    visitor.get(link)
    visitor.post(link, setup_form())
    later = Visitor(service)
    assert later.sign_in().status_code == 303 and later.is_signed_in


def test_the_set_up_link_works_once(service, visitor):
    link, late = setup_link(), Visitor(service)
    visitor.get(link)
    late.get(link)
    visitor.post(link, setup_form())
    assert late.post(link, setup_form(email="late@example.org")).status_code == 404
    assert late.get(link).status_code == 404
    assert [line[0] for line in listed(service, "account", "list")] == [EMAIL]


WRONG_SETUPS = [
    ({"email": ""}, "e-mail address"),
    ({"email": "nobody"}, "e-mail address"),
    ({"email": "a b@example.org"}, "e-mail address"),
    ({"email": "a@" + "b" * 253}, "e-mail address"),
    ({"email": "nul\0@example.org"}, "e-mail address"),
    ({"password": ""}, "password"),
    ({"password": "elevenchars"}, "password"),
    ({"password": "x" * 1025}, "password"),
    ({"time_zone": ""}, "time zone"),
    ({"time_zone": "Mars/Olympus"}, "time zone"),
    ({"time_zone": "../../etc/passwd"}, "time zone"),
]


@pytest.mark.parametrize("wrong, named", WRONG_SETUPS)
def test_wrong_input_to_the_set_up_form_is_answered_with_a_sentence(visitor, wrong, named):
    link = setup_link()
    visitor.get(link)
    answer = visitor.post(link, setup_form(**wrong))
    (sentence,) = re.findall(r'<p role="alert" class="error">(.+)</p>', answer.text)
    assert answer.status_code == 422
    assert named in sentence and sentence.endswith(".")


@pytest.mark.parametrize("wrong, named", WRONG_SETUPS)
def test_wrong_input_to_the_set_up_form_makes_no_account_and_leaves_the_link(visitor, wrong, named):
    link = setup_link()
    visitor.get(link)
    visitor.post(link, setup_form(**wrong))
    assert not accounts.any_account()
    assert visitor.post(link, setup_form()).status_code == 303


def test_wrong_input_to_the_set_up_form_keeps_what_was_typed(visitor):
    link = setup_link()
    visitor.get(link)
    answer = visitor.post(link, setup_form(password="short"))
    assert Page(answer.text).value("email") == EMAIL
    assert re.findall("<option selected>([^<]+)", answer.text) == ["Europe/Berlin"]


def test_a_password_that_was_typed_is_never_sent_back(visitor):
    link = setup_link()
    visitor.get(link)
    answer = visitor.post(link, setup_form(email="wrong", password="a-secret-of-mine"))
    assert answer.status_code == 422 and "a-secret-of-mine" not in answer.text


def test_the_set_up_link_is_good_for_24_hours(visitor, moved_clock):
    link = setup_link()
    moved_clock.advance(DAY_S - 1)
    assert visitor.get(link).status_code == 200
    moved_clock.advance(1)
    assert visitor.get(link).status_code == 404


def test_a_set_up_link_that_grew_old_while_its_page_was_open_makes_no_account(visitor, moved_clock):
    link = setup_link()
    visitor.get(link)
    moved_clock.advance(DAY_S)
    assert visitor.post(link, setup_form()).status_code == 404
    assert not accounts.any_account()


def test_the_next_start_voids_the_set_up_link(visitor):
    old, new = setup_link(), setup_link()
    assert [visitor.get(link).status_code for link in (old, new)] == [404, 200]


def test_a_start_without_a_terminal_voids_the_set_up_link_too(visitor):
    link = setup_link()
    accounts.make_setup_link(clock.now_ms(), wanted=False)
    assert visitor.get(link).status_code == 404


def test_the_set_up_link_is_void_once_there_is_an_account(service, visitor):
    link = setup_link()
    visitor.get(link)
    service.account()
    assert visitor.get(link).status_code == 404
    assert visitor.post(link, setup_form(email="thief@example.org")).status_code == 404
    assert [line[0] for line in listed(service, "account", "list")] == [EMAIL]


def test_there_is_no_set_up_link_once_there_is_an_account(service):
    service.account()
    assert setup_link() is None


@pytest.mark.parametrize("token", ["x", "A" * 43, "%00", "%ff", "%ED%A0%80", "..%2f", "%25", "'or'1'='1", "x" * 5000])
def test_an_unknown_set_up_link_is_not_found(visitor, token):
    setup_link()
    visitor.get("/app/login")
    assert visitor.get(f"/app/setup/{token}").status_code == 404
    assert visitor.post(f"/app/setup/{token}", setup_form()).status_code == 404
    assert not accounts.any_account()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.rule}")
def test_without_the_link_no_route_makes_an_account(visitor, route):
    setup_link()
    path = re.sub("<[a-z_]+>", "0" * 32, route.rule)
    visitor.get("/app/login")
    form = setup_form(name="x", title="x", body="x", csrf=visitor.token)
    for sent in ({"data": form}, {"json": form}, {"query_string": form}):
        more = {"headers": {"X-CSRF-Token": visitor.token, "Authorization": "Bearer sk_test_" + "0" * 48}}
        assert visitor.client.open(path, method=route.method, **sent, **more).status_code < 500 or path == "/healthz"
    assert not accounts.any_account()


# --- the link that sets a password --------------------------------------------------------------------------


@pytest.fixture
def password_link(service):
    """What `flask account create` prints, without the address of the service."""
    printed = service.flask("account", "create", EMAIL).output.strip()
    assert printed.startswith("http://127.0.0.1:8000/app/setup/")
    return printed.removeprefix("http://127.0.0.1:8000")


def test_the_link_of_account_create_asks_for_a_password_alone(visitor, password_link):
    page = visitor.page(password_link)
    assert EMAIL in page.text
    assert [attributes.get("name") for attributes in page.all("input")] == ["csrf", "password"]
    assert page.all("select") == []


def test_the_link_of_account_create_sets_the_password_and_signs_in(service, visitor, password_link):
    visitor.get(password_link)
    answer = visitor.post(password_link, {"password": PASSWORD})
    assert (answer.status_code, answer.location) == (303, "/app/devices")
    assert visitor.is_signed_in
    assert Visitor(service).sign_in().status_code == 303


def test_the_link_of_account_create_works_once(service, visitor, password_link):
    visitor.get(password_link)
    visitor.post(password_link, {"password": PASSWORD})
    thief = Visitor(service)
    thief.get("/app/login")
    assert thief.get(password_link).status_code == 404
    assert thief.post(password_link, {"password": "another password"}).status_code == 404
    assert Visitor(service).sign_in().status_code == 303


def test_the_link_of_account_create_is_good_for_24_hours(visitor, password_link, moved_clock):
    moved_clock.advance(DAY_S - 1)
    assert visitor.get(password_link).status_code == 200
    moved_clock.advance(1)
    assert visitor.get(password_link).status_code == 404


def test_the_link_of_account_create_changes_neither_address_nor_time_zone(service, visitor, password_link):
    visitor.get(password_link)
    visitor.post(password_link, setup_form(email="thief@example.org"))
    assert [line[:3] for line in listed(service, "account", "list")] == [[EMAIL, "starter", "UTC"]]


def test_a_password_that_is_too_short_leaves_the_link_of_account_create(visitor, password_link):
    visitor.get(password_link)
    answer = visitor.post(password_link, {"password": "elevenchars"})
    assert answer.status_code == 422 and "12 characters or more" in answer.text
    assert visitor.post(password_link, {"password": PASSWORD}).status_code == 303


@pytest.mark.parametrize("password", ["", PASSWORD, "pocketbell"])
def test_nobody_signs_in_to_an_account_without_a_password(visitor, password_link, password):
    assert visitor.sign_in(EMAIL, password).status_code == 422


# --- sign-in, sign-out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method, rule", SIGNED_IN_RULES)
def test_who_is_not_signed_in_is_led_to_the_sign_in_page(service, visitor, method, rule):
    make_account(service)
    visitor.get("/app/login")
    path = rule.replace("<key_id>", "1").replace("<device_id>", "1")
    answer = visitor.get(path) if method == "GET" else visitor.post(path)
    assert (answer.status_code, answer.location) == (303, "/app/login")


@pytest.mark.parametrize("path", ["/", "/app/"])
def test_the_first_page_is_the_devices(visitor, path):
    answer = visitor.get(path)
    assert (answer.status_code, answer.location) == (303, "/app/devices")


def test_app_without_its_slash_is_the_first_page_too(visitor):
    answer = visitor.get("/app", follow_redirects=True)
    assert (answer.status_code, answer.request.path) == (200, "/app/login")


@pytest.mark.parametrize("spelt", [EMAIL, "Owner@Example.ORG", f"  {EMAIL} "])
def test_address_and_password_sign_in(service, visitor, spelt):
    make_account(service)
    answer = visitor.sign_in(spelt)
    assert (answer.status_code, answer.location) == (303, "/app/")
    assert visitor.is_signed_in


def test_a_password_is_stored_as_a_slow_hash(service, monkeypatch):
    monkeypatch.setattr(accounts, "PASSWORD_METHOD", REAL_PASSWORD_METHOD)
    make_account(service)
    stored = accounts.find_account(EMAIL).password_hash
    cost = int(re.match(r"scrypt:([0-9]+):8:1\$", stored)[1])
    assert cost >= 2**17 and PASSWORD not in stored


def test_an_unknown_address_and_a_wrong_password_get_the_same_page(service, visitor):
    make_account(service)
    pages = []
    for email in (EMAIL, "nobody@example.org"):
        answer = visitor.sign_in(email, "not the password")
        text = answer.text.replace(email, "…").replace(visitor.token, "…")
        pages.append((answer.status_code, text, [pair for pair in answer.headers if pair[0] != "Content-Length"]))
    assert pages[0] == pages[1] and pages[0][0] == 422


def test_an_unknown_address_costs_as_much_as_a_wrong_password(service, visitor, monkeypatch):
    make_account(service)
    service.account("without@example.org")
    costs, check = [], accounts.check_password_hash
    monkeypatch.setattr(
        accounts, "check_password_hash", lambda kept, tried: costs.append(kept.split("$")[0]) or check(kept, tried)
    )
    for email in (EMAIL, "nobody@example.org", "without@example.org"):
        visitor.sign_in(email, "not the password")
    assert len(costs) == 3 and len(set(costs)) == 1


def test_a_refused_sign_in_keeps_the_address_and_not_the_password(service, visitor):
    make_account(service)
    answer = visitor.sign_in(EMAIL, "not the password")
    assert Page(answer.text).value("email") == EMAIL
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


def test_signing_out_ends_the_session_of_the_old_cookie(owner):
    stolen = owner.cookie
    answer = owner.post("/app/logout")
    assert (answer.status_code, answer.location) == (303, "/app/login")
    assert not owner.is_signed_in
    assert not owner.with_cookie(stolen).is_signed_in


def test_signing_out_leaves_the_other_sessions(service, owner):
    other = Visitor(service)
    other.sign_in()
    owner.post("/app/logout")
    assert other.is_signed_in


def test_a_new_password_ends_all_sessions(service, owner):
    other = Visitor(service)
    other.sign_in()
    service.flask("account", "set", EMAIL, "--password-stdin", stdin="another password")
    assert not owner.is_signed_in and not other.is_signed_in


def test_a_new_password_leaves_the_sessions_of_other_accounts(service, owner, stranger):
    service.flask("account", "set", EMAIL, "--password-stdin", stdin="another password")
    assert stranger.is_signed_in


def test_a_session_ends_after_90_days(owner, moved_clock):
    moved_clock.advance(90 * DAY_S - 1)
    assert owner.is_signed_in
    moved_clock.advance(1)
    assert not owner.is_signed_in


@pytest.mark.parametrize("cookie", ["", "x", "e30.x.y", "eyJ0b2tlbiI6IngifQ.aSAfWA.AAAAAAAAAAAAAAAAAAAAAAAAAAA", "é"])
def test_a_cookie_that_was_made_up_is_no_session(owner, cookie):
    assert not owner.with_cookie(cookie).is_signed_in


# --- how often a sign-in may be tried -----------------------------------------------------------------------


def use_up_tries(visitor, email=EMAIL):
    return [visitor.sign_in(email, "not the password").status_code for _ in range(10)]


def test_after_ten_tries_for_an_address_even_the_right_password_is_refused(service, visitor):
    make_account(service)
    assert use_up_tries(visitor) == [422] * 10
    answer = visitor.sign_in()
    assert answer.status_code == 429 and "wait a quarter of an hour" in answer.text
    assert not visitor.is_signed_in


def test_the_tries_are_counted_over_all_browsers_and_spellings(service, visitor):
    make_account(service)
    use_up_tries(visitor)
    assert Visitor(service).sign_in(" OWNER@example.org ").status_code == 429


def test_tries_for_one_address_do_not_touch_another(service, visitor):
    make_account(service)
    use_up_tries(visitor, "other@example.org")
    assert visitor.sign_in().status_code == 303


def test_tries_for_an_unknown_address_are_counted_alike(service, visitor):
    make_account(service)
    assert use_up_tries(visitor, "nobody@example.org") == [422] * 10
    assert visitor.sign_in("nobody@example.org").status_code == 429


def test_a_quarter_of_an_hour_later_the_owner_can_sign_in(service, visitor, moved_clock):
    make_account(service)
    use_up_tries(visitor)
    moved_clock.advance(15 * 60 - 1)
    assert visitor.sign_in().status_code == 429
    moved_clock.advance(1)
    assert visitor.sign_in().status_code == 303


def test_tries_that_were_refused_do_not_lengthen_the_wait(service, visitor, moved_clock):
    make_account(service)
    use_up_tries(visitor)
    for _ in range(14):
        moved_clock.advance(60)
        assert visitor.sign_in(EMAIL, "not the password").status_code == 429
    moved_clock.advance(60)
    assert visitor.sign_in().status_code == 303


def test_setting_the_wall_clock_back_does_not_lengthen_the_wait(service, visitor, moved_clock):
    make_account(service)
    use_up_tries(visitor)
    moved_clock.set_wall(moved_clock.ms - 3_600_000)
    moved_clock.advance(15 * 60)
    assert visitor.sign_in().status_code == 303


def test_retry_after_says_when_the_next_try_is_taken(service, visitor, moved_clock):
    make_account(service)
    use_up_tries(visitor)
    moved_clock.advance(int(visitor.sign_in().headers["Retry-After"]))
    assert visitor.sign_in().status_code == 303


def test_who_is_signed_in_stays_so_while_others_try(owner, service):
    use_up_tries(Visitor(service))
    assert owner.is_signed_in


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


def send_form(rule, owner, service, push_service, **more):
    """What the form of `rule` sends, with `more` for its token and headers; it must have changed nothing."""
    service.flask("key", "create", EMAIL, "live")
    owner.post("/app/devices", json.dumps({"subscription": push_service.browser().subscription}))
    ((key_id, *_),) = listed(service, "key", "list", EMAIL)
    ((device_id, *_),) = listed(service, "device", "list", EMAIL)
    link = service.flask("account", "create", "invited@example.org").output.strip().partition("/app/setup/")[2]
    path = rule.replace("<key_id>", key_id).replace("<device_id>", device_id).replace("<token>", link)
    form = {"name": "x", "email": EMAIL, "password": PASSWORD, "time_zone": "UTC"}
    if rule == "/app/devices":
        form = json.dumps({"subscription": push_service.browser().subscription})
    visitor = owner
    if rule == "/app/login":
        visitor = Visitor(service)
        visitor.get(rule)
    before = what_there_is(service)
    answer = visitor.post(path, form, **more)
    assert what_there_is(service) == before
    assert owner.is_signed_in and visitor.is_signed_in == (visitor is owner)
    assert owner.get(f"/app/setup/{link}").status_code == 200
    return answer


def what_there_is(service):
    commands = ("account", "list"), ("key", "list", EMAIL), ("device", "list", EMAIL)
    return [listed(service, *command) for command in commands]


@pytest.mark.parametrize("rule", POST_RULES)
def test_a_form_without_its_token_is_refused_and_changes_nothing(owner, rule, service, push_service):
    answer = send_form(rule, owner, service, push_service, token="")
    assert answer.status_code == 400 and "open the page again" in answer.text


@pytest.mark.parametrize("rule", POST_RULES)
def test_a_form_with_another_sessions_token_is_refused_and_changes_nothing(
    owner, rule, service, push_service, stranger
):
    answer = send_form(rule, owner, service, push_service, token=stranger.token)
    assert answer.status_code == 400 and "open the page again" in answer.text


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
@pytest.mark.parametrize("rule", POST_RULES)
def test_a_form_from_another_origin_is_refused_and_changes_nothing(owner, rule, origin, service, push_service):
    answer = send_form(rule, owner, service, push_service, headers={"Origin": origin})
    assert answer.status_code == 400 and "open the page again" in answer.text


@pytest.mark.parametrize("token", ["é", "\u00ff" * 5000, "0", "None", "undefined"])
def test_a_token_that_was_made_up_is_refused(owner, token):
    assert owner.post("/app/keys", {"name": "x", "csrf": token}, headers={"X-CSRF-Token": None}).status_code == 400


def test_a_form_of_a_browser_that_sends_no_origin_is_taken(owner):
    assert owner.post("/app/keys", {"name": "x"}, headers={"Origin": None}).status_code == 200


def test_a_form_sends_its_token_in_a_field(owner):
    sent = {"name": "x", "csrf": owner.page("/app/keys").value("csrf")}
    assert owner.post("/app/keys", sent, headers={"X-CSRF-Token": None}).status_code == 200


def test_a_form_that_was_open_while_the_browser_signed_out_is_refused(service, owner):
    old = owner.token
    owner.post("/app/logout")
    owner.sign_in()
    assert owner.post("/app/keys", {"name": "x"}, token=old).status_code == 400
    assert listed(service, "key", "list", EMAIL) == []


@pytest.mark.parametrize("rule", POST_RULES)
def test_looking_at_the_address_of_a_form_changes_nothing(owner, rule, service):
    service.flask("key", "create", EMAIL, "live")
    ((key_id, *_),) = listed(service, "key", "list", EMAIL)
    before = what_there_is(service)
    owner.get(rule.replace("<key_id>", key_id))
    assert what_there_is(service) == before and owner.is_signed_in


# --- API keys -----------------------------------------------------------------------------------------------


def make_key(owner, name="backup"):
    """Make a key with the page's form; answers with its full text."""
    owner.get("/app/keys")
    answer = owner.post("/app/keys", {"name": name})
    assert answer.status_code == 200, answer.text
    return re.search('<code id="full-key">(sk_test_[0-9a-f]{48})</code>', answer.text)[1]


def test_the_key_that_the_page_shows_sends_notifications(service, owner):
    assert Caller(service, make_key(owner)).send().status_code == 200


def test_a_key_is_shown_once_and_only_its_beginning_afterwards(owner):
    full_key = make_key(owner)
    later = owner.get("/app/keys").text
    assert full_key not in later and f"<code>{full_key[:16]}…</code>" in later
    assert full_key[:17] not in later


def test_a_key_is_kept_by_no_cookie(owner):
    full_key = make_key(owner)
    assert full_key not in owner.cookie and full_key not in str(owner.get("/app/keys").headers)


def test_the_example_command_holds_the_key_and_the_address_of_the_page(owner):
    page = Page(owner.post("/app/keys", {"name": "x"}).text)
    full_key = re.search("sk_test_[0-9a-f]{48}", page.text)[0]
    command = f"curl http://localhost/api/v1/notifications/send \\ -H 'Authorization: Bearer {full_key}' \\ -d '{{"
    assert command in page.text


def test_the_example_command_holds_the_public_address(make_service, push_service, moved_clock):
    service = make_service(BASE_URL="https://bell.example.org")
    make_account(service)
    owner = Visitor(service)
    owner.sign_in()
    owner.get("/app/keys")
    answer = owner.post("/app/keys", {"name": "x"})
    assert "curl https://bell.example.org/api/v1/notifications/send" in Page(answer.text).text


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "\0"])
def test_a_key_without_a_good_name_is_refused_with_a_sentence(service, owner, name):
    answer = owner.post("/app/keys", {"name": name})
    (sentence,) = re.findall(r'<p role="alert" class="error">(.+)</p>', answer.text)
    assert answer.status_code == 422 and sentence.endswith(".")
    assert listed(service, "key", "list", EMAIL) == []


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
    assert "last used 2026-11-21 20:00" in owner.page("/app/keys").text


def test_another_accounts_key_id_is_as_good_as_unknown(service, owner, stranger):
    caller = Caller(service, make_key(owner))
    ((key_id, *_),) = listed(service, "key", "list", EMAIL)
    foreign, unknown = (stranger.post(f"/app/keys/{tried}/revoke") for tried in (key_id, "0" * 32))
    assert (foreign.status_code, foreign.text) == (404, unknown.text)
    assert caller.send().status_code == 200


def test_another_accounts_keys_are_not_listed(owner, stranger):
    full_key = make_key(owner, "mine alone")
    assert "mine alone" not in stranger.get("/app/keys").text and full_key[:16] not in stranger.get("/app/keys").text


# --- devices ------------------------------------------------------------------------------------------------


def enable(owner, browser, **more):
    """What the page's script does with a subscription."""
    return owner.post("/app/devices", json.dumps({"subscription": browser.subscription, **more}))


@pytest.fixture
def browser(owner, push_service):
    """The owner's only device, added on the page."""
    browser = push_service.browser()
    assert enable(owner, browser, name="Chrome on Linux").status_code == 201
    return browser


def test_a_browser_that_the_page_enabled_is_listed(owner, browser):
    text = owner.page("/app/devices").text
    assert "Chrome on Linux added 2026-11-21 10:00, nothing delivered yet" in text


def test_the_page_tells_the_script_the_devices_id(service, owner, push_service):
    answer = enable(owner, push_service.browser())
    ((device_id, *_),) = listed(service, "device", "list", EMAIL)
    assert (answer.status_code, answer.json) == (201, {"ok": True, "id": device_id})


def test_a_browser_that_is_enabled_again_stays_one_device(service, owner, browser):
    assert enable(owner, browser).status_code == 201
    assert len(listed(service, "device", "list", EMAIL)) == 1


def test_a_push_leads_to_the_dashboard_where_the_browser_subscribed(service, owner, browser):
    service.caller().send()
    assert browser.messages[0]["notification"]["navigate"] == "http://localhost/app/"


def test_a_device_that_an_api_key_added_names_the_key(service, owner, push_service):
    caller = service.caller(name="phone app")
    caller.post("/devices", {"kind": "webpush", "subscription": push_service.browser().subscription})
    assert "by the API key “phone app”" in owner.page("/app/devices").text


def test_a_device_that_the_owner_added_names_no_key(owner, browser):
    assert "API key “" not in owner.page("/app/devices").text


def test_the_last_error_of_a_device_is_shown(service, owner, browser):
    browser.then(403, b'{"reason": "BadJwtToken"}')
    service.caller().send()
    assert "The push service answered 403 (BadJwtToken)." in owner.page("/app/devices").text


def test_a_push_that_arrives_takes_the_last_error_away(service, owner, browser):
    caller = service.caller()
    browser.then(403)
    caller.send()
    caller.send()
    page = owner.page("/app/devices")
    assert "403" not in page.text and "last delivered 2026-11-21 10:00" in page.text


def test_a_device_is_removed_by_its_button(service, owner, browser):
    (action,) = [form["action"] for form in owner.page("/app/devices").all("form") if "remove" in form["action"]]
    answer = owner.post(action)
    assert (answer.status_code, answer.location) == (303, "/app/devices")
    page = owner.page("/app/devices")
    assert "The device is removed" in page.text and "No device yet" in page.text
    service.caller().send()
    assert browser.pushes == []


def test_the_page_says_so_when_the_last_device_died_and_sending_fails(service, owner, browser):
    caller = service.caller()
    browser.then(410)
    caller.send()
    assert caller.send().json["notification"]["status"] == "failed"
    assert "what is sent goes to the history alone" not in owner.page("/app/devices").text


def test_a_contact_that_apple_refuses_is_warned_about_on_the_page(make_service, push_service, moved_clock):
    service = make_service()
    make_account(service, "root@localhost")
    owner = Visitor(service)
    owner.sign_in("root@localhost")
    assert "Apple refuses Web Push from the contact mailto:root@localhost" in owner.page("/app/devices").text


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


@pytest.mark.parametrize("body", WRONG_SUBSCRIPTIONS)
def test_a_subscription_that_cannot_be_one_is_refused_with_a_sentence_for_the_script(service, owner, body):
    answer = owner.post("/app/devices", body, content_type="application/json")
    assert answer.status_code == 400
    assert set(answer.json) == {"ok", "error", "code", "statusCode"} and answer.json["error"].endswith(".")
    assert listed(service, "device", "list", EMAIL) == []


def test_another_accounts_device_id_is_as_good_as_unknown(service, owner, browser, stranger):
    ((device_id, *_),) = listed(service, "device", "list", EMAIL)
    foreign, unknown = (stranger.post(f"/app/devices/{tried}/remove") for tried in (device_id, "0" * 32))
    assert (foreign.status_code, foreign.text) == (404, unknown.text)
    assert len(listed(service, "device", "list", EMAIL)) == 1


def test_another_accounts_devices_are_not_listed(owner, browser, stranger):
    assert "Chrome on Linux" not in stranger.get("/app/devices").text


def test_a_browser_that_two_accounts_enabled_belongs_to_each_on_its_own(service, owner, browser, stranger):
    enable(stranger, browser)
    ((device_id, *_),) = listed(service, "device", "list", "other@example.org")
    stranger.post(f"/app/devices/{device_id}/remove")
    assert len(listed(service, "device", "list", EMAIL)) == 1


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


def pages_with(text, service, owner):
    """The pages with `text` as the name of a key and of a device, and as what a provider said."""
    ApiKey.update(name=text).execute()
    Device.update(name=text, last_error=text).execute()
    return [owner.page(path) for path in ("/app/keys", "/app/devices")]


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_errors_are_shown_as_they_are(service, owner, text):
    caller = service.caller()
    assert caller.post("/devices", {"kind": "apns", "token": "ab" * 32, "name": text}).status_code == 201
    plain, hostile = pages_with("harmless", service, owner), pages_with(text, service, owner)
    for before, after in zip(plain, hostile, strict=True):
        assert after.shape == before.shape
        assert after.text == before.text.replace("harmless", " ".join(text.split()))
    assert f"Revoke {text}" in hostile[0].values() and f"Remove {text}" in hostile[1].values()


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
    page = Page(visitor.post(link, {"email": text, "password": PASSWORD, "time_zone": text}).text)
    assert page.value("email") == text
    assert {tag for tag, _ in page.shape} <= ALL_TAGS


@pytest.mark.parametrize("text", HOSTILE)
def test_an_accounts_address_is_shown_as_it_is(service, text):
    address = "".join(text.split()).replace("@", "").lower() + "@x.local"
    printed = service.flask("account", "create", "--", address).output.strip().partition(":8000")[2]
    visitor = Visitor(service)
    setup = visitor.page(printed)
    assert f"For the account {address}." in setup.text
    visitor.post(printed, {"password": PASSWORD})
    devices = visitor.page("/app/devices")
    assert f"Apple refuses Web Push from the contact mailto:{address}:" in devices.text
    assert {tag for tag, _ in setup.shape + devices.shape} <= ALL_TAGS


ALL_TAGS = set(
    re.findall(
        "[a-z0-9]+",
        "html head meta title link body header a nav form input button main p section h1 h2 strong ul li script label"
        " select option code pre",
    )
)


# --- headers and cookies ------------------------------------------------------------------------------------

PAGES = ["/app/", "/app/login", "/app/keys", "/app/devices", "/app/nothing", "/app/setup/unknown"]
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
    addresses = re.findall(r'\s(?:src|href|action)="([^"]*)"', template.read_text())
    assert [address for address in addresses if not re.match(r"/(?!/)", address)] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_switches_no_escaping_off(template):
    assert re.findall(r"\|\s*safe|autoescape|Markup", template.read_text()) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_form_holds_its_token(template):
    forms = re.findall(r"<form method=\"post\".*?</form>", template.read_text(), re.S)
    assert len(forms) == template.read_text().count("<form")
    assert [form for form in forms if '{% include "csrf.html" %}' not in form] == []


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
    assert {"rel": "stylesheet", "href": "/app/static/app.css"} in page.all("link")
    assert {"class": "name", "href": "/app/"} in page.all("a")
    sentence = re.search(r"<h1>That did not work</h1>\s*<p>([^<]+)</p>", answer.text)[1]
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
    assert {"href": "/app/keys"} in page.all("a")
    assert owner.post("/app/logout", {"csrf": page.value("csrf")}, headers={"X-CSRF-Token": None}).status_code == 303


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
GET_PATHS = ["/app/", "/app/login", "/app/keys", "/app/devices", "/app/sw.js", "/app/static/app.css", "/app/setup/x"]
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
    for rule in POST_RULES:
        owner.sign_in()
        owner.get("/app/devices")
        path = rule.replace("<token>", "x").replace("<key_id>", "x").replace("<device_id>", "x")
        answer = owner.post(path, body, content_type=content_type or "application/x-www-form-urlencoded")
        assert answer.status_code in (200, 303, 400, 404, 413, 422), f"{rule}: {answer.text}"


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


def test_a_right_password_does_not_count_as_a_try(service, visitor):
    make_account(service)
    for _ in range(11):
        assert visitor.sign_in().status_code == 303


def test_a_try_that_found_no_place_to_be_checked_does_not_count(service, visitor, monkeypatch):
    make_account(service)
    with monkeypatch.context() as patched:
        patched.setattr(accounts, "_hash_places", threading.BoundedSemaphore(1))
        patched.setattr(accounts, "HASH_WAIT_S", 0)
        with accounts._hash_places:
            assert [visitor.sign_in(EMAIL, "not the password").status_code for _ in range(11)] == [429] * 11
    assert visitor.sign_in().status_code == 303


def test_an_address_that_is_only_asked_for_is_not_kept(service):
    kept = quotas.limiter.limiter.storage.hits[15 * 60]
    for number in range(100):
        quotas.check_sign_in(f"{number}@example.org")
    assert len(kept) == 0


def test_a_password_set_by_command_voids_the_link_that_would_set_another(service, visitor):
    link = service.flask("account", "create", EMAIL).output.strip()
    service.flask("account", "set", EMAIL, "--password-stdin", stdin=PASSWORD)
    assert visitor.get(link.removeprefix("http://127.0.0.1:8000")).status_code == 404
