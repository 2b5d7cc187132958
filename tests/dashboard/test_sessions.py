"""How long a session lasts, and what its browser is called."""

import json
import sqlite3

import flask
import pytest

from app import app
from core import accounts
from store.database import WriteFailed
from store.sessions import Session
from tests.support.accounts import OWNER
from tests.support.pages import CHROME, Visitor
from tests.support.slow_bodies import post_slowly
from tests.support.tables import query
from tests.support.times import DAY_S
from web import guards

# --- how long a session lasts -------------------------------------------------------------------------------


def test_a_session_ends_90_days_after_the_last_visit(owner, moved_clock):
    moved_clock.advance(90 * DAY_S - 1)
    assert owner.is_signed_in
    moved_clock.advance(90 * DAY_S - 1)
    assert owner.is_signed_in
    moved_clock.advance(90 * DAY_S)
    assert not owner.is_signed_in


def test_the_cookie_goes_on_with_the_session(owner, moved_clock):
    moved_clock.advance(80 * DAY_S)
    (cookie,) = owner.get("/app/").headers.getlist("Set-Cookie")
    assert "Expires=" in cookie
    moved_clock.advance(90 * DAY_S)
    assert owner.get("/app/notifications/new").headers.getlist("Set-Cookie") == []  # it may replace a newer one


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


# --- signing one browser out --------------------------------------------------------------------------------


@pytest.fixture
def phone(service, owner):
    """Another browser of the owner."""
    visitor = Visitor(service, agent=AGENTS["Safari on iPhone"])
    visitor.sign_in()
    return visitor


def test_each_browser_but_this_one_can_be_signed_out_alone(owner, phone):
    (form,) = owner.page("/app/settings").forms("/end")
    page = owner.done(form, leads_to="/app/settings")
    assert page.said("status")[0] == "Safari on iPhone was signed out." and page.forms("/end") == []
    assert owner.is_signed_in and not phone.is_signed_in


def test_signing_a_browser_out_twice_says_that_it_is_signed_out(owner, phone):
    (form,) = owner.page("/app/settings").forms("/end")
    owner.done(form)
    answer = owner.post(form)
    assert answer.status_code == 404 and "already signed out" in answer.text


def test_a_session_that_had_ended_by_itself_is_not_ended_again(owner, phone, moved_clock):
    (form,) = owner.page("/app/settings").forms("/end")
    for _ in range(2):
        moved_clock.advance(50 * DAY_S)
        assert owner.is_signed_in
    assert owner.post(form).status_code == 404


# --- what a browser is called -------------------------------------------------------------------------------


AGENTS = {
    "Chrome on Linux": CHROME,
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


def test_a_session_is_called_by_its_browser_and_system(monkeypatch):
    monkeypatch.setattr(guards, "request", flask.request)
    for name, agent in [*AGENTS.items(), ("A browser", "")]:
        with app.test_request_context(headers={"User-Agent": agent}):
            assert guards.browser_name() == name


def signed_out_meanwhile(service, owner, path, body, **headers):
    """The answer to a form that was on its way while all sessions of the owner were ended."""
    end = lambda: accounts.sign_out_everywhere(accounts.find_account(OWNER).seq)  # noqa: E731
    sent = {"Origin": owner.base_url, "X-CSRF-Token": owner.token, **headers}
    return post_slowly(owner.client, path, body, end, base_url=owner.base_url, headers=sent)


MULTIPART = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nthief\r\n--x--\r\n'
FORMS = {"application/x-www-form-urlencoded": b"name=thief", "multipart/form-data; boundary=x": MULTIPART}


@pytest.mark.parametrize("kind", FORMS)
def test_a_form_of_a_session_that_ended_meanwhile_does_nothing(service, owner, kind):
    owner.get("/app/keys")
    answer = signed_out_meanwhile(service, owner, "/app/keys", FORMS[kind], **{"Content-Type": kind})
    assert (answer.status_code, answer.location) == (303, "/app/login")
    assert query(service, "SELECT * FROM api_key") == []


def test_a_device_of_a_session_that_ended_meanwhile_is_not_added(service, owner, push_service):
    owner.get("/app/devices")
    body = json.dumps({"subscription": push_service.browser().subscription}).encode()
    assert signed_out_meanwhile(service, owner, "/app/devices", body).status_code == 401
    assert query(service, "SELECT * FROM device") == []
