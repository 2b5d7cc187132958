"""The page People, for administrators, and how somebody who was invited comes in."""

import re

import pytest

from models import Account
from tests.support.accounts import OTHER, OWNER, PASSWORD, seq_of
from tests.support.pages import Visitor, device_ids, make_account
from tests.support.rows import each
from tests.support.times import DAY_S

GUEST = "guest@example.org"
LINK = re.compile(r"/app/setup/[\w-]{43}")


def path(email, deed):
    return f"/app/people/{seq_of(email)}/{deed}"


def invited(owner, email=GUEST, **more):
    """Invite somebody on the page, and return the path of the link."""
    answer = owner.post("/app/people", {"email": email, "plan": "starter", **more})
    assert answer.status_code == 303
    (link,) = set(LINK.findall(owner.get(answer.location).text))
    return link


@pytest.fixture
def other(service):
    """Another account, whose owner can sign in."""
    make_account(service, OTHER)
    return OTHER


# --- who sees what ------------------------------------------------------------------------------------------


def test_an_ordinary_account_sees_no_sign_of_the_page(service, owner, stranger):
    assert "/app/people" in owner.get("/app/settings").text
    for page in ("/app/", "/app/settings"):
        assert "/app/people" not in stranger.get(page).text
    unknown = stranger.get("/app/peoples")
    for answer in (stranger.get("/app/people"), stranger.get(path(OWNER, "delete"))):
        assert (answer.status_code, answer.text.count("does not exist")) == (
            404,
            unknown.text.count("does not exist"),
        )
    for deed in ("disable", "enable", "administrator", "delete", "withdraw"):
        assert stranger.post(path(OWNER, deed), {"email": OWNER, "on": "1"}).status_code == 404
    assert stranger.post("/app/people", {"email": GUEST}).status_code == 404
    assert {one.email for one in Account.all()} == {OWNER, OTHER}


def test_the_page_shows_of_others_only_address_role_devices_plan_and_when_they_came(
    service, owner, other, moved_clock
):
    assert Visitor(service).sign_in(OTHER).status_code == 303
    caller = service.caller(OTHER, name="Secret key")
    caller.send(title="Secret title", body="Secret body")
    service.flask("alert", "create", OTHER, "Secret alert")
    service.flask("device", "add", OTHER, "apns", "ab" * 32, "--name", "Secret phone")
    service.flask("heartbeat", "create", OTHER, "Secret job", "--period", "1h")
    moved_clock.advance(3 * DAY_S)
    page = owner.page("/app/people")
    assert "Secret" not in page.text
    assert f"{OTHER} 1 Starter 3 days ago" in page.text


DEEDS = ("disable", "enable", "administrator", "delete", "withdraw")
WRONG_IDS = [("999", DEEDS), ("%D9%A1", DEEDS), *((id_, DEEDS[:1]) for id_ in ("0", "x", "-1", "1e3", "9" * 40))]


@each("id_, deeds", WRONG_IDS)
def test_an_unknown_account_is_a_404(owner, id_, deeds):
    for deed in deeds:
        assert owner.post(f"/app/people/{id_}/{deed}", {"email": OWNER}).status_code == 404
    assert owner.get(f"/app/people/{id_}/delete").status_code == 404


# --- invitations --------------------------------------------------------------------------------------------


def test_the_link_is_shown_once_to_the_browser_that_made_it(service, owner):
    shown_at = owner.post("/app/people", {"email": GUEST, "plan": "pro"}).location
    elsewhere = Visitor(service)
    elsewhere.sign_in()
    assert not LINK.search(elsewhere.get(shown_at).text)
    assert LINK.search(owner.get(shown_at).text) and not LINK.search(owner.get(shown_at).text)
    assert not LINK.search(owner.get("/app/people").text) and GUEST in owner.get("/app/people").text


def test_the_invited_one_comes_to_a_first_ring_on_the_phone_that_opened_the_link(service, owner, push_service):
    link, guest = invited(owner), Visitor(service)
    assert f"You were invited as {GUEST}." in guest.page(link).text  # a tap on the link
    answer = guest.post(link, {"password": PASSWORD, "time_zone": "Asia/Tokyo"})  # a tap on the button
    assert (answer.status_code, answer.location) == (303, "/app/devices/this")
    guest.get(answer.location)
    phone = push_service.browser()
    assert guest.enable(phone).status_code == 201  # two taps: the button, and the browser's question
    guest.post("/app/test")  # a tap
    assert (len(phone.messages), len(device_ids(service, GUEST)), Account.find(GUEST).time_zone) == (
        1,
        1,
        "Asia/Tokyo",
    )


def test_an_invitation_signs_the_browser_out_of_the_account_before(service, owner, other):
    link, guest = invited(owner), Visitor(service)
    guest.sign_in(OTHER)
    cookie = guest.cookie
    guest.get(link)
    guest.post(link, {"password": PASSWORD, "time_zone": "UTC"})
    assert guest.page("/app/settings").text.count(GUEST) and guest.cookie != cookie
    assert not guest.with_cookie(cookie).is_signed_in


def test_a_new_link_voids_the_one_before_and_an_expired_one_is_named(service, owner, moved_clock):
    first = invited(owner)
    second = invited(owner)
    assert [Visitor(service).get(link).status_code for link in (first, second)] == [404, 200]
    moved_clock.advance(7 * DAY_S)
    assert Visitor(service).get(second).status_code == 404
    assert "has expired" in owner.get("/app/people").text


def test_a_withdrawn_invitation_lets_nobody_in_and_a_used_one_cannot_be_withdrawn(service, owner):
    link = invited(owner)
    owner.done(path(GUEST, "withdraw"))
    assert Visitor(service).get(link).status_code == 404 and Account.find(GUEST) is None
    guest = Visitor(service)
    guest.get("/app/login")
    guest.post(invited(owner), {"password": PASSWORD, "time_zone": "UTC"})
    assert owner.post(path(GUEST, "withdraw")).status_code == 404 and guest.is_signed_in


# --- accounts -----------------------------------------------------------------------------------------------


def test_an_account_is_deleted_with_its_address_typed(service, owner, other):
    owner.done(path(OTHER, "delete"), {"email": f" {OTHER.upper()} "})
    assert Account.find(OTHER) is None
