"""The links that make the owner’s account and that set a password."""

import re

import pytest

from app import ROUTES
from core import accounts
from models import Account
from process import clock
from tests.support.accounts import OWNER, PASSWORD
from tests.support.commands import lines_of
from tests.support.pages import Page, Visitor, setup_form, setup_link
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.times import DAY_S

# --- the link that makes the owner's account ----------------------------------------------------------------


def test_the_set_up_form_makes_the_account(service, visitor):
    link = setup_link()
    visitor.get(link)
    visitor.post(link, setup_form(email=" Owner@Example.org "))
    assert [line[:3] for line in lines_of(service, "account", "list")] == [[OWNER, "starter", "Europe/Berlin"]]


def test_set_up_leads_to_this_device_and_the_first_ring(service, visitor):
    link = setup_link()
    visitor.get(link)
    assert visitor.post(link, setup_form()).location == "/app/devices/this"

    next_steps = "Next, connect a script or a service"

    def step():
        return [
            one.text
            for one in visitor.page("/app/devices/this").elements
            if one.attributes.get("aria-current") == "step"
        ]

    assert step() == ["2 This device"]
    assert visitor.page("/app/devices/this").texts_of("a", **{"aria-current": "true"}) == []
    service.flask("device", "add", OWNER, "apns", "ab" * 32)
    assert step() == ["3 First ring"]
    assert next_steps in visitor.done("/app/test").main
    assert step() == []
    assert next_steps not in visitor.done("/app/test").main


def test_the_set_up_form_asks_for_the_limits_once(service, visitor):
    link = setup_link()
    assert visitor.page(link).texts_of("option", value="pro") == [
        "365 days of history, 1,000 requests a minute, 1,000 batches of metrics an hour"
    ]
    visitor.post(link, setup_form(plan="pro"))
    assert [line[1] for line in lines_of(service, "account", "list")] == ["pro"]


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
    ({"plan": "gratis"}, "limits"),
    ({"time_zone": "Mars/Olympus"}, "time zone"),
    ({"time_zone": "../../etc/passwd"}, "time zone"),
]


def test_an_error_in_the_set_up_form_is_shown_and_leaves_the_link_valid(visitor):
    link = setup_link()
    visitor.get(link)
    for wrong, named in WRONG_SETUPS:
        (sentence,) = visitor.refused(link, setup_form(**wrong)).said("alert")
        assert named in sentence and sentence.endswith("."), wrong
        assert not Account.exists()
    assert visitor.post(link, setup_form()).status_code == 303


@pytest.mark.usefixtures("all_time_zones")
def test_wrong_input_to_the_set_up_form_keeps_what_was_typed_but_the_password(visitor):
    link = setup_link()
    visitor.get(link)
    answer = visitor.post(link, setup_form(email="wrong", password="a-secret-of-mine"))
    assert Page(answer.text).value("email") == "wrong" and "a-secret-of-mine" not in answer.text
    assert Page(answer.text).chosen("time_zone") == "Europe/Berlin"


@sqlite_only
def test_the_next_start_voids_the_set_up_link_also_without_a_terminal(visitor):
    old, new = setup_link(), setup_link()
    assert [visitor.get(link).status_code for link in (old, new)] == [404, 200]
    accounts.make_setup_link(clock.now_ms(), wanted=False)
    assert visitor.get(new).status_code == 404


def test_a_start_voids_no_link_of_another_process_that_serves_the_same_database(visitor, monkeypatch):
    monkeypatch.setattr(accounts, "is_shared", lambda: True)
    one, other = setup_link(), setup_link()
    accounts.make_setup_link(clock.now_ms(), wanted=False)
    assert [visitor.get(link).status_code for link in (one, other)] == [200, 200]
    assert visitor.post(one, setup_form()).status_code == 303
    assert [visitor.get(link).status_code for link in (one, other)] == [404, 404]


def test_an_old_set_up_link_stays_void_after_the_account_is_deleted(service, visitor):
    link = setup_link()
    assert service.flask("account", "create", OWNER).exit_code == 0
    assert service.flask("account", "delete", OWNER, "--yes").exit_code == 0
    assert visitor.get(link).status_code == 404


def test_the_set_up_link_is_void_once_there_is_an_account_and_no_other_is_made(service, visitor):
    link = setup_link()
    visitor.get(link)
    service.account()
    assert visitor.get(link).status_code == 404
    assert visitor.post(link, setup_form(email="thief@example.org")).status_code == 404
    assert [line[0] for line in lines_of(service, "account", "list")] == [OWNER]
    assert setup_link() is None


@each("token", ["x", "A" * 43, "%00", "%ff", "%ED%A0%80", "..%2f", "%25", "'or'1'='1", "x" * 5000])
def test_an_unknown_set_up_link_is_not_found(visitor, token):
    setup_link()
    visitor.get("/app/login")
    assert visitor.get(f"/app/setup/{token}").status_code == 404
    assert visitor.post(f"/app/setup/{token}", setup_form()).status_code == 404
    assert not Account.exists()


def test_without_the_link_no_route_makes_an_account(visitor, moved_clock):
    setup_link()
    visitor.get("/app/login")
    form = setup_form(name="x", title="x", body="x", csrf=visitor.token)
    headers = {"X-CSRF-Token": visitor.token, "Authorization": "Bearer sk_test_" + "0" * 48}
    for route in ROUTES:
        moved_clock.advance(15 * 60)  # no quota is used up
        path = re.sub("<[a-z_]+>", "0" * 32, route.rule)
        sent = {"data" if path.startswith("/app/") else "json": form, "query_string": form, "headers": headers}
        answer = visitor.client.open(path, method=route.method, **sent)
        assert answer.status_code < 500 or path == "/healthz", path
        assert not Account.exists(), path


# --- the link that sets a password --------------------------------------------------------------------------


@pytest.fixture
def password_link(service):
    """What `flask account create` prints, without the address of the service."""
    printed = service.flask("account", "create", OWNER).output.strip()
    assert printed.startswith("http://127.0.0.1:8000/app/setup/")
    return printed.removeprefix("http://127.0.0.1:8000")


def test_the_link_of_account_create_asks_for_a_password_and_the_time_zone(visitor, password_link):
    page = visitor.page(password_link)
    assert OWNER in page.text
    assert [attributes.get("name") for attributes in page.all("input")] == ["csrf", "username", "password"]
    assert [select["name"] for select in page.all("select")] == ["time_zone"]


def test_the_link_of_account_create_asks_for_no_time_zone_once_something_was_counted_in_one(
    service, visitor, password_link
):
    service.caller().send()
    assert visitor.page(password_link).all("select") == []
    assert visitor.post(password_link, setup_form()).status_code == 303
    assert [line[2] for line in lines_of(service, "account", "list")] == ["UTC"]


def test_the_link_of_account_create_refuses_what_is_wrong_and_stays_valid(visitor, password_link):
    visitor.get(password_link)
    for wrong, said in (({"time_zone": "Mars/Olympus"}, "time zone"), ({"password": "elevenchars"}, "at least 12")):
        assert said in visitor.refused(password_link, setup_form(**wrong)).said("alert")[0]
    assert visitor.post(password_link, setup_form()).status_code == 303


def test_the_link_of_account_create_sets_the_time_zone_and_never_the_address(service, visitor, password_link):
    visitor.get(password_link)
    visitor.post(password_link, setup_form(email="thief@example.org"))
    assert [line[:3] for line in lines_of(service, "account", "list")] == [[OWNER, "starter", "Europe/Berlin"]]


@each("password", ["", PASSWORD, "pocketbell"])
def test_nobody_signs_in_to_an_account_without_a_password(visitor, password_link, password):
    assert visitor.sign_in(OWNER, password).status_code == 422


# --- either -------------------------------------------------------------------------------------------------


NEXT = {"makes the account": "/app/devices/this", "sets a password": "/app/"}


@pytest.fixture(params=NEXT)
def link(request, service):
    return setup_link() if request.param == "makes the account" else request.getfixturevalue("password_link")


def test_either_link_sets_a_password_and_signs_in(request, service, visitor, link):
    assert [visitor.get(link).status_code for _ in range(3)] == [200, 200, 200]  # to look at it does not spend it
    answer = visitor.post(link, setup_form())
    assert (answer.status_code, answer.location) == (303, NEXT[request.node.callspec.params["link"]])
    assert visitor.is_signed_in and Visitor(service).sign_in().status_code == 303


def test_either_link_works_once(service, visitor, link):
    late = Visitor(service)
    for browser in (visitor, late):
        browser.get(link)
    visitor.post(link, setup_form())
    assert late.post(link, setup_form(email="late@example.org", password="another password")).status_code == 404
    assert late.get(link).status_code == 404
    assert [line[0] for line in lines_of(service, "account", "list")] == [OWNER]
    assert Visitor(service).sign_in().status_code == 303


def test_either_link_is_good_for_24_hours_also_if_its_page_was_opened_before(visitor, moved_clock, link):
    moved_clock.advance(DAY_S - 1)
    assert visitor.get(link).status_code == 200
    moved_clock.advance(1)
    assert (visitor.get(link).status_code, visitor.post(link, setup_form()).status_code) == (404, 404)
    assert not visitor.is_signed_in
