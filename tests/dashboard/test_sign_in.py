"""The ways into the web app as a browser meets them: links, signing in and out, tries, sessions."""

import re
import sqlite3
import threading
from urllib.parse import urlencode

import pytest

from app import ROUTES
from core import accounts
from process import clock
from process.turns import Turns
from store.database import WriteFailed, transaction
from store.sessions import Session
from tests.support import pages
from tests.support.pages import (
    DAY_S,
    EMAIL,
    OTHER,
    PASSWORD,
    Page,
    Visitor,
    listed,
    make_account,
    setup_form,
    setup_link,
    use_up_tries,
)
from web import guards, rate_limits

cheap_passwords, owner, stranger, visitor = pages.cheap_passwords, pages.owner, pages.stranger, pages.visitor

REAL_PASSWORD_METHOD = accounts.PASSWORD_METHOD
SIGNED_IN_RULES = [(route.method, route.rule) for route in ROUTES if route.guard is guards.signed_in]


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


def test_the_set_up_form_signs_in_and_leads_home(visitor):
    link = setup_link()
    visitor.get(link)
    answer = visitor.post(link, setup_form())
    assert (answer.status_code, answer.location) == (303, "/app/")
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
    (sentence,) = Page(answer.text).said("alert")
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
    assert Page(answer.text).chosen("time_zone") == "Europe/Berlin"


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


def test_the_link_of_account_create_asks_for_a_password_and_the_time_zone(visitor, password_link):
    page = visitor.page(password_link)
    assert EMAIL in page.text
    assert [attributes.get("name") for attributes in page.all("input")] == ["csrf", "username", "password"]
    assert [select["name"] for select in page.all("select")] == ["time_zone"]


def test_the_link_of_account_create_asks_for_no_time_zone_once_something_was_counted_in_one(
    service, visitor, password_link
):
    service.caller().send()
    assert visitor.page(password_link).all("select") == []
    assert visitor.post(password_link, setup_form()).status_code == 303
    assert [line[2] for line in listed(service, "account", "list")] == ["UTC"]


def test_the_link_of_account_create_takes_no_wrong_time_zone_and_stays(service, visitor, password_link):
    visitor.get(password_link)
    answer = visitor.post(password_link, setup_form(time_zone="Mars/Olympus"))
    assert answer.status_code == 422 and "time zone" in Page(answer.text).said("alert")[0]
    assert visitor.post(password_link, setup_form()).status_code == 303


def test_the_link_of_account_create_sets_the_password_and_signs_in(service, visitor, password_link):
    visitor.get(password_link)
    answer = visitor.post(password_link, {"password": PASSWORD})
    assert (answer.status_code, answer.location) == (303, "/app/")
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


def test_the_link_of_account_create_sets_the_time_zone_and_never_the_address(service, visitor, password_link):
    visitor.get(password_link)
    visitor.post(password_link, setup_form(email="thief@example.org"))
    assert [line[:3] for line in listed(service, "account", "list")] == [[EMAIL, "starter", "Europe/Berlin"]]


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
    path = re.sub("<[a-z_]+>", "1", rule)
    answer = visitor.get(path) if method == "GET" else visitor.post(path)
    back = f"?{urlencode({'next': path})}" if method == "GET" and path != "/app/" else ""
    assert (answer.status_code, answer.location) == (303, f"/app/login{back}")


def test_the_web_app_has_a_place_of_its_own(visitor):
    answer = visitor.get("/")
    assert (answer.status_code, answer.location) == (303, "/app/")


def test_who_signed_in_sees_the_home_page_first(owner):
    assert owner.page("/app/").texts_of("h1") == ["Home"]


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


@pytest.mark.parametrize("cookie", ["", "x", "e30.x.y", "eyJ0b2tlbiI6IngifQ.aSAfWA.AAAAAAAAAAAAAAAAAAAAAAAAAAA", "é"])
def test_a_cookie_that_was_made_up_is_no_session(owner, cookie):
    assert not owner.with_cookie(cookie).is_signed_in


# --- how often a sign-in may be tried -----------------------------------------------------------------------


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


def test_a_right_password_does_not_count_as_a_try(service, visitor):
    make_account(service)
    for _ in range(11):
        assert visitor.sign_in().status_code == 303


def test_a_try_that_found_no_place_to_be_checked_does_not_count(service, visitor, monkeypatch):
    make_account(service)
    with monkeypatch.context() as patched:
        full = Turns(1, {accounts.NEW_BROWSER: 0}, 0, accounts.hash_turns.refuse)
        patched.setattr(accounts, "hash_turns", full)
        with full.turn(accounts.NEW_BROWSER):
            assert [visitor.sign_in(EMAIL, "not the password").status_code for _ in range(11)] == [429] * 11
    assert visitor.sign_in().status_code == 303


def test_blanks_around_an_address_are_no_way_around_its_limit(service):
    make_account(service)
    for number in range(10):
        Visitor(service).sign_in(EMAIL, f"not the password {number}")
    for blanks in (1, 254 - len(EMAIL), 253, 254, 255, 1_000):
        assert Visitor(service).sign_in(" " * blanks + EMAIL).status_code == 429, blanks


def test_a_password_that_is_changed_while_the_old_one_is_checked_opens_nothing(service, visitor, monkeypatch):
    make_account(service)
    with_password = accounts.with_password

    def checked_late(*args):
        account = with_password(*args)
        accounts.set_password(accounts.find_account(EMAIL), "scrypt:128:8:1$another$hash")
        return account

    monkeypatch.setattr(accounts, "with_password", checked_late)
    assert visitor.sign_in().status_code == 409
    assert Session.select().count() == 0


def test_an_address_that_is_only_asked_for_is_not_kept(service):
    kept = rate_limits.limiter.limiter.storage.hits[15 * 60]
    for number in range(100):
        rate_limits.check_sign_in(rate_limits.Visitor(f"{number}@example.org", "203.0.113.7", None))
    assert len(kept) == 0


def test_a_password_set_by_command_voids_the_link_that_would_set_another(service, visitor):
    link = service.flask("account", "create", EMAIL).output.strip()
    service.flask("account", "set", EMAIL, "--password-stdin", stdin=PASSWORD)
    assert visitor.get(link.removeprefix("http://127.0.0.1:8000")).status_code == 404


# --- a known browser, and everybody together ----------------------------------------------------------------


def from_address(service, address):
    return Visitor(service, address=address)


def test_tries_of_one_sender_do_not_lock_out_another(service, visitor):
    make_account(service)
    use_up_tries(from_address(service, "203.0.113.7"))
    assert from_address(service, "203.0.113.7").sign_in().status_code == 429
    assert from_address(service, "203.0.113.8").sign_in().status_code == 303


def test_the_addresses_of_one_ipv6_network_are_one_sender(service):
    make_account(service)
    use_up_tries(from_address(service, "2001:db8::1"))
    assert from_address(service, "2001:db8::2").sign_in().status_code == 429
    assert from_address(service, "2001:db8:0:1::1").sign_in().status_code == 303


def test_a_browser_that_was_signed_in_before_is_not_locked_out_by_its_own_sender(service, owner):
    owner.post("/app/logout")
    use_up_tries(Visitor(service))
    assert Visitor(service).sign_in().status_code == 429
    assert owner.sign_in().status_code == 303


def test_a_browser_that_was_signed_in_before_is_not_locked_out_by_strangers_however_many(service, owner):
    owner.post("/app/logout")
    for number in range(11):
        use_up_tries(from_address(service, f"203.0.113.{number}"))
    assert from_address(service, "198.51.100.1").sign_in().status_code == 429
    assert owner.sign_in().status_code == 303


def test_a_browser_that_was_signed_in_before_has_ten_tries_of_its_own(service, owner):
    owner.post("/app/logout")
    assert use_up_tries(owner) == [422] * 10
    assert owner.sign_in().status_code == 429
    assert Visitor(service).sign_in().status_code == 303


def test_the_tries_of_a_browser_that_was_signed_in_before_come_again_after_a_quarter_of_an_hour(owner, moved_clock):
    owner.post("/app/logout")
    use_up_tries(owner)
    moved_clock.advance(15 * 60)
    assert owner.sign_in().status_code == 303


def test_a_browser_is_known_for_the_account_alone_that_it_was_signed_in_to(service, owner, stranger):
    owner.post("/app/logout")
    assert use_up_tries(Visitor(service), OTHER) == [422] * 10
    assert owner.sign_in(OTHER).status_code == 429


def test_with_a_new_password_the_tries_of_all_begin_anew(service, owner):
    """Or an owner who set one in distress would stand before a closed door."""
    owner.post("/app/logout")
    strangers = [from_address(service, f"203.0.113.{number}") for number in range(10)]
    for visitor in (owner, *strangers):
        use_up_tries(visitor)
    service.flask("account", "set", EMAIL, "--password-stdin", stdin="another password")
    late = from_address(service, "198.51.100.1")
    assert [visitor.sign_in(password="another password").status_code for visitor in (owner, late)] == [303, 303]


def test_a_browser_that_was_signed_in_with_an_earlier_password_is_not_known(service, owner):
    """Who had stolen that one must not keep tries of his own."""
    service.flask("account", "set", EMAIL, "--password-stdin", stdin="another password")
    use_up_tries(Visitor(service))
    assert owner.sign_in(password="another password").status_code == 429


def test_each_browser_that_was_signed_in_before_has_tries_of_its_own(service, owner):
    second = Visitor(service)
    second.sign_in()
    for browser in (owner, second):
        browser.post("/app/logout")
    use_up_tries(owner)
    assert second.sign_in().status_code == 303


def test_a_browser_whose_session_ended_is_still_known(service, owner):
    with transaction():
        Session.delete().execute()
    use_up_tries(Visitor(service))
    assert not owner.is_signed_in and owner.sign_in().status_code == 303


FORGED = ["x", "e30.aSAfWA.x", "eyJrbm93biI6eyJlbWFpbCI6Im93bmVyQGV4YW1wbGUub3JnIiwiYnJvd3NlciI6IngifX0.aSAfWA.AAAA"]


@pytest.mark.parametrize("cookie", FORGED)
def test_a_cookie_that_was_made_up_makes_no_known_browser(service, visitor, cookie):
    make_account(service)
    use_up_tries(visitor)
    assert visitor.with_cookie(cookie).sign_in().status_code == 429


def test_a_known_browser_of_another_service_is_none_here(service, owner, visitor):
    """The cookie must be signed by this service's secret."""
    payload, *_ = owner.cookie.rpartition(".")
    use_up_tries(visitor)
    assert visitor.with_cookie(f"{payload}.{'A' * 27}").sign_in().status_code == 429


def test_thirty_tries_of_one_sender_over_many_addresses_are_all_it_has(service):
    make_account(service)
    sender = from_address(service, "203.0.113.7")
    tries = [sender.sign_in(f"{number}@example.org", "not the password").status_code for number in range(31)]
    assert tries == [422] * 30 + [429]
    assert sender.sign_in().status_code == 429
    assert from_address(service, "203.0.113.8").sign_in().status_code == 303


def test_the_wait_of_a_sender_ends_after_a_quarter_of_an_hour(service, moved_clock):
    make_account(service)
    sender = from_address(service, "203.0.113.7")
    for number in range(30):
        sender.sign_in(f"{number}@example.org", "not the password")
    moved_clock.advance(15 * 60 - 1)
    assert sender.sign_in().status_code == 429
    moved_clock.advance(1)
    assert sender.sign_in().status_code == 303


def test_a_hundred_tries_for_one_address_are_all_that_strangers_have_together(service, moved_clock):
    make_account(service)
    tries = [use_up_tries(from_address(service, f"203.0.113.{number}")) for number in range(10)]
    assert tries == [[422] * 10] * 10
    stranger = from_address(service, "198.51.100.1")
    assert stranger.sign_in().status_code == 429
    assert stranger.sign_in(OTHER, "x").status_code == 422
    moved_clock.advance(15 * 60)
    assert stranger.sign_in().status_code == 303


# --- back to the page that was asked for --------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/app/devices",
        "/app/notifications?search=disk+full&status=failed&before=17",
        "/app/notifications/0123456789abcdef0123456789abcdef",
        "/app/settings",
    ],
)
def test_signing_in_leads_to_the_page_that_was_asked_for(service, visitor, path):
    make_account(service)
    asked = visitor.get(path)
    visitor.get(asked.location)
    answer = visitor.post(asked.location, {"email": EMAIL, "password": PASSWORD})
    assert (answer.status_code, answer.location) == (303, path)


def test_a_wrong_password_in_between_does_not_forget_the_page_that_was_asked_for(service, visitor):
    make_account(service)
    sign_in = visitor.get("/app/quiet").location
    form = next(form for form in visitor.page(sign_in).all("form"))
    assert form.get("action", sign_in) == sign_in
    assert visitor.post(sign_in, {"email": EMAIL, "password": "not the password"}).status_code == 422
    assert visitor.post(sign_in, {"email": EMAIL, "password": PASSWORD}).location == "/app/quiet"


ELSEWHERE = [
    "//evil.example",
    "//evil.example/app/",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/app//evil.example",
    "/app/\\evil.example",
    "/app/..//evil.example",
    "/app/../../etc",
    "/app/..",
    "/app/%0d%0aLocation: //evil.example",
    "/app/\r\nSet-Cookie: a=b",
    "/app/\nx",
    "/app/x\n",
    "/app/\tx",
    "/app/ x",
    "/app/@evil.example",
    "/app/:80@evil.example",
    "https://evil.example/app/",
    "http://localhost/app/devices",
    "https:/app/devices",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "app/devices",
    "/",
    "/apps/devices",
    "/app.evil.example",
    "/api/v1/stats",
    "/healthz",
    "/p/abcdefg",
    " /app/devices",
    "\x00/app/devices",
    "/app/\x00",
    "/app/\u2028x",
    "/app/é",
    "/app/\uff0f\uff0fevil.example",
    "/app/#//evil.example",
    "/app/<script>",
    "/app/?next=//evil.example",
    "//app/devices",
]


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_signing_in_never_leads_elsewhere(service, visitor, wanted):
    make_account(service)
    answer = visitor.sign_in(wanted=wanted)
    assert (answer.status_code, answer.location) == (303, "/app/")
    assert len(answer.headers.getlist("Set-Cookie")) == 1


@pytest.mark.parametrize("where", ["/app/logout", "/app/login", "/app/sw.js", "/app/static/app.js"])
def test_signing_in_leads_to_pages_of_the_web_app_at_worst(service, visitor, where):
    """Even these are ours; a GET changes nothing."""
    make_account(service)
    before = pages.everything()
    del before["session"]
    visitor.sign_in(wanted=where)
    visitor.get(where)
    assert {table: rows for table, rows in pages.everything().items() if table != "session"} == before
    assert visitor.is_signed_in


def test_where_to_go_is_taken_from_the_address_and_never_from_the_form(service, visitor):
    make_account(service)
    visitor.get("/app/login")
    answer = visitor.post("/app/login", {"email": EMAIL, "password": PASSWORD, "next": "/app/keys"})
    assert answer.location == "/app/"


# --- how long a session lasts -------------------------------------------------------------------------------


def test_a_session_ends_90_days_after_the_last_visit(owner, moved_clock):
    moved_clock.advance(90 * DAY_S - 1)
    assert owner.is_signed_in
    moved_clock.advance(90 * DAY_S - 1)
    assert owner.is_signed_in
    moved_clock.advance(90 * DAY_S)
    assert not owner.is_signed_in


def test_a_visit_a_day_keeps_a_session_for_a_year(owner, moved_clock):
    for _ in range(365):
        moved_clock.advance(DAY_S)
        assert owner.is_signed_in


def test_the_cookie_goes_on_with_the_session(owner, moved_clock):
    moved_clock.advance(80 * DAY_S)
    (cookie,) = owner.get("/app/").headers.getlist("Set-Cookie")
    assert "Expires=" in cookie


def test_a_visit_is_written_at_most_once_an_hour(owner, moved_clock):
    begun = moved_clock.ms
    seen = []
    for _ in range(7):
        moved_clock.advance(20 * 60)
        owner.get("/app/")
        seen.append((Session.get().last_seen_at - begun) // 60_000)
    assert seen == [0, 0, 60, 60, 60, 120, 120]


def test_a_clock_that_was_set_back_does_not_keep_visits_from_being_noted(owner, moved_clock):
    moved_clock.set_wall(moved_clock.ms - 5 * DAY_S * 1000)
    assert owner.is_signed_in
    assert Session.get().last_seen_at == moved_clock.ms


def test_a_visit_that_cannot_be_written_breaks_no_page(owner, moved_clock, monkeypatch):
    def full(*_):
        raise WriteFailed from sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Session, "note_visit", full)
    moved_clock.advance(7200)
    assert owner.get("/app/").status_code == 200


def test_who_looks_at_a_session_that_ended_is_led_back_after_signing_in(owner, moved_clock):
    moved_clock.advance(90 * DAY_S)
    sign_in = owner.get("/app/quiet").location
    owner.get(sign_in)
    assert owner.post(sign_in, {"email": EMAIL, "password": PASSWORD}).location == "/app/quiet"


# --- what a browser is called -------------------------------------------------------------------------------

AGENTS = {
    "Chrome on Linux": pages.CHROME,
    "Chrome on Android": "Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/141.0 Mobile Safari/537.36",
    "Edge on Windows": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/141.0 Safari/537.36 Edg/141.0",
    "Firefox on Windows": "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:144.0) Gecko/20100101 Firefox/144.0",
    "Safari on iPhone": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15"
    " (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
    "Safari on Mac": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/18.6 Safari/605.1.15",
    "A browser": "<script>alert(1)</script>",
}


@pytest.mark.parametrize("name, agent", AGENTS.items())
def test_a_session_is_called_by_its_browser_and_system(service, name, agent):
    make_account(service)
    visitor = Visitor(service, agent=agent)
    visitor.sign_in()
    assert Session.get().name == name
    assert name in visitor.page("/app/settings").section("Signed in")


def test_a_browser_that_does_not_say_what_it_is_can_sign_in(service):
    make_account(service)
    visitor = Visitor(service, agent="")
    assert visitor.sign_in().status_code == 303 and "A browser" in visitor.page("/app/settings").section("Signed in")


# --- races, clocks, proxies ---------------------------------------------------------------------------------


def test_tries_at_the_same_time_are_no_more_than_ten(service, monkeypatch):
    make_account(service)
    visitors = [Visitor(service) for _ in range(4)]
    for visitor in visitors:
        visitor.get("/app/login")
    for _ in range(9):
        assert visitors[0].post("/app/login", {"email": EMAIL, "password": "wrong"}).status_code == 422
    begun, checked = threading.Barrier(5), accounts.check_password_hash
    waiting = threading.Semaphore(0)

    def slow(expected, password):
        waiting.acquire(timeout=1)  # until all have passed the first look at the quota
        return checked(expected, password)

    monkeypatch.setattr(accounts, "check_password_hash", slow)
    answers = []

    def try_one(visitor):
        begun.wait()
        answers.append(visitor.post("/app/login", {"email": EMAIL, "password": "wrong"}).status_code)

    threads = [threading.Thread(target=try_one, args=[visitor]) for visitor in visitors]
    for thread in threads:
        thread.start()
    begun.wait()
    for _ in threads:
        waiting.release()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [422, 429, 429, 429]


def test_a_cookie_from_a_clock_that_was_ahead_is_still_a_session(owner, moved_clock):
    moved_clock.set_wall(moved_clock.ms - 3_600_000)
    assert owner.is_signed_in


def test_a_link_of_the_command_line_lets_the_owner_in_whatever_strangers_do(service):
    make_account(service)
    for number in range(100):
        stranger = Visitor(service)
        stranger.get("/app/login")
        sender = {"REMOTE_ADDR": f"203.0.113.{number // 9}"}
        stranger.post("/app/login", {"email": EMAIL, "password": "wrong"}, environ_overrides=sender)
    phone = Visitor(service)
    assert phone.sign_in().status_code == 429
    link = (
        service.flask("account", "set", EMAIL, "--password-link").output.strip().removeprefix("http://127.0.0.1:8000")
    )
    phone.get(link)
    assert phone.post(link, {"password": "another password"}).status_code == 303
    assert phone.is_signed_in
