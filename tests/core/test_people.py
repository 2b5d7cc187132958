"""Accounts among people: administrators, invitations, and what a disabled account no longer gets."""

import pytest

from core import accounts, deletion, people, scheduled
from process import clock
from store.sessions import Session
from tests.support.accounts import OTHER, OWNER, account_set, seq_of
from tests.support.alarms import bodies, ring, rung, send_at
from tests.support.heartbeats import Pinged, told
from tests.support.holding import QUIET, held
from tests.support.rules import Ruled, send
from tests.support.times import DAY_S, HOUR_S
from wire.errors import Refused

HASH = "scrypt:128:1:1$none$"


def disable(email=OWNER):
    people.disable(seq_of(email), clock.now_ms())


def enable(email=OWNER):
    people.enable(seq_of(email), clock.now_ms())


def make(service, email, role="", password=HASH):
    """Make an account that can sign in, and is an administrator if `role` says so."""
    service.account(email, password_hash=password)
    people.set_administrator(seq_of(email), role == "administrator", None) if role else None


def administrators(service):
    """The enabled administrators."""
    lines = [line.split("\t") for line in service.flask("account", "list").stdout.splitlines()]
    return {line[0] for line in lines if line[5] == "administrator" and line[6] != "disabled"}


@pytest.fixture
def deeds(service):
    """What ends an administrator: each takes the account's seq."""
    return {
        "disable": lambda number: people.disable(number, clock.now_ms()),
        "unmake": lambda number: people.set_administrator(number, False),
        "delete": lambda number: deletion.delete_account(accounts.find_account(OWNER)),
    }


# --- administrators -----------------------------------------------------------------------------------------


def test_the_first_account_is_an_administrator_and_the_next_are_not(service):
    for email in (OWNER, OTHER):
        service.flask("account", "create", email)
    assert administrators(service) == {OWNER}


# who else there is, one after another: nobody of them can administer
OTHERS = [
    (None, "", None, False),
    ("ordinary@example.org", "", HASH, False),
    ("disabled@example.org", "administrator", HASH, True),
    ("invited@example.org", "administrator", None, False),
]


def test_the_last_administrator_who_can_sign_in_stays(service, deeds):
    make(service, OWNER)
    for email, role, password, is_disabled in OTHERS:
        if email:
            make(service, email, role, password)
        if is_disabled:
            disable(email)
        for name, deed in deeds.items():
            with pytest.raises(Refused, match="last administrator") as refused:
                deed(seq_of())
            assert refused.value.status == 409 and OWNER in administrators(service), (email, name)


@pytest.mark.parametrize("deed", ["disable", "unmake", "delete"])
def test_an_administrator_may_go_if_another_one_can_sign_in(service, deeds, deed):
    make(service, OWNER)
    make(service, OTHER, "administrator")
    deeds[deed](seq_of())
    assert administrators(service) == {OTHER}


def test_where_nobody_has_a_password_yet_the_only_administrator_can_only_be_deleted(service, deeds):
    service.account(OWNER)
    for deed in ("disable", "unmake"):
        with pytest.raises(Refused, match="last administrator"):
            deeds[deed](seq_of())
    deeds["delete"](seq_of())
    service.flask("account", "create", OTHER)
    assert administrators(service) == {OTHER}


def test_who_was_unmade_or_disabled_meanwhile_administers_nothing(service):
    make(service, OWNER)
    make(service, OTHER, "administrator")
    for end in (lambda: people.set_administrator(seq_of(OTHER), False), lambda: disable(OTHER)):
        end()
        for deed in (people.disable, people.enable):
            with pytest.raises(Refused) as refused:
                deed(seq_of(), 0, by=seq_of(OTHER))
            assert refused.value.status == 404
        with pytest.raises(Refused):
            people.invite("new@example.org", "pro", False, 0, by=seq_of(OTHER))
        people.set_administrator(seq_of(OTHER), True)
    assert accounts.find_account(OWNER).disabled_at is None


# --- invitations --------------------------------------------------------------------------------------------


def invite(email=OTHER, **more):
    values = {"plan": "starter", "is_administrator": False} | more
    return people.invite(email, values["plan"], values["is_administrator"], clock.now_ms())[1].rpartition("/")[2]


def use(token):
    form = {"password": "correct horse battery", "time_zone": "Europe/Berlin"}
    return accounts.use_link(token, form, clock.now_ms())


def test_an_invitation_works_once_within_seven_days(service, moved_clock):
    make(service, OWNER)
    token = invite(plan="pro", is_administrator=True)
    moved_clock.advance(7 * DAY_S - 1)
    used = use(token)
    account = accounts.find_account(OTHER)
    assert (used.email, account.plan, account.time_zone) == (OTHER, "pro", "Europe/Berlin")
    assert (account.is_administrator, account.invited_until) == (1, None)
    with pytest.raises(Refused, match="no longer works"):
        use(token)


def test_a_second_invitation_takes_the_place_of_the_first(service):
    make(service, OWNER)
    first, second = invite(plan="pro"), invite(f" {OTHER.upper()}", plan="scale")
    with pytest.raises(Refused):
        use(first)
    assert use(second).plan == "scale"


@pytest.mark.parametrize("state", ["used", "disabled", "with a notification"])
def test_nobody_is_invited_into_an_account_that_is_used(service, state):
    make(service, OWNER)
    token = invite()
    if state == "used":
        use(token)
    elif state == "disabled":
        disable(OTHER)
    else:
        service.caller(OTHER).send()
    with pytest.raises(Refused, match="already an account") as refused:
        invite()
    assert refused.value.status == 400


@pytest.mark.parametrize("end", [disable, lambda email: deletion.delete_account(accounts.find_account(email))])
def test_the_link_of_an_invitation_that_was_ended_works_no_more(service, end):
    make(service, OWNER)
    token = invite()
    end(OTHER)
    with pytest.raises(Refused, match="no longer works"):
        use(token)


# --- disabled accounts --------------------------------------------------------------------------------------


def test_sessions_end_with_disabling_and_do_not_come_back(service, owner, administrator):
    account = accounts.find_account(OWNER)
    token = accounts.start_session(account, "Chrome", clock.now_ms())
    disable()
    assert accounts.session_account(token, clock.now_ms()) is None
    with pytest.raises(Refused, match="disabled"):
        accounts.start_session(account, "Chrome", clock.now_ms())
    enable()
    assert accounts.session_account(token, clock.now_ms()) is None and not Session.of_account(seq_of(), 0)


def test_a_scheduled_send_whose_account_is_disabled_as_its_turn_comes_is_not_released(
    service, owner, administrator, moved_clock, monkeypatch
):
    id_ = send_at(owner, moved_clock.ms + 1_000)
    moved_clock.advance(2)
    disable()
    with monkeypatch.context() as patch:
        patch.setattr(scheduled.queries, "next_account", lambda after, now: seq_of())  # it was found before
        scheduled._release_some()
    enable()
    assert owner.get(f"/notifications/{id_}").json["notification"]["status"] == "held"


def test_what_is_held_scheduled_pending_or_repeating_is_pushed_after_enabling(
    service, owner, browser, administrator, until, works, moved_clock, morning
):
    account_set("--quiet-hours", QUIET)
    until("2026-11-22T06:00")
    held(service.alert(), "held")
    send_at(owner, moved_clock.ms + 60_000)
    rings = ring(owner, for_s=3 * HOUR_S)
    browser.then(503)
    assert owner.send(body="pending").json["notification"]["status"] == "pending"
    before = bodies(browser)
    disable()
    morning()
    assert bodies(browser) == before
    enable()
    assert [one["status"] for one in owner.listed()].count("held") == 2 and rung(owner, rings)[0] == "waiting"
    works()
    assert sorted(bodies(browser)[len(before) :]) == ["full", "held", "later", "pending"]


def test_a_heartbeat_of_a_disabled_account_is_judged_anew_after_enabling(service, owner, administrator, passes):
    beat = Pinged(service, owner, "--period", "1h")
    beat.ping()
    disable()
    passes(DAY_S)
    enable()
    passes(0)
    assert (beat.state, told(owner)) == ("up", [])
    passes(2 * HOUR_S)
    passes(HOUR_S)
    assert beat.state == "down"


def test_a_rule_of_a_disabled_account_waits_again_after_enabling(service, owner, administrator, passes):
    ruled = Ruled(service, owner, "silent 2h")
    send(owner, 1)
    disable()
    passes(DAY_S)
    enable()
    passes(HOUR_S)
    assert (ruled.state, told(owner)) == ("ok", [])
    passes(HOUR_S)
    assert ruled.state == "firing"
