"""How often a sign-in may be tried: by address, by sender, by a known browser, all together."""

import threading

import pytest

from core import accounts
from core.turns import Turns
from store.database import EVERYBODY, transaction
from store.sessions import Session
from tests.support.accounts import OTHER, OWNER, PASSWORD
from tests.support.pages import Visitor, make_account, use_up_tries
from web import rate_limits

# --- how often a sign-in may be tried -----------------------------------------------------------------------


def test_after_ten_tries_for_an_address_even_the_right_password_is_refused_for_a_quarter_of_an_hour(
    service, visitor, moved_clock
):
    make_account(service)
    assert use_up_tries(visitor) == [422] * 10
    answer = visitor.sign_in()
    assert answer.status_code == 429 and "Try again in 15 minutes" in answer.text
    assert not visitor.is_signed_in
    moved_clock.advance(15 * 60 - 1)
    assert visitor.sign_in().headers["Retry-After"] == "1"
    moved_clock.advance(1)
    assert visitor.sign_in().status_code == 303


def test_an_attempt_refused_for_lack_of_a_slot_does_not_count(service, visitor, monkeypatch):
    make_account(service)
    with monkeypatch.context() as patched:
        full = Turns(1, {accounts.NEW_BROWSER: 0}, 0, accounts.hash_turns.refuse)
        patched.setattr(accounts, "hash_turns", full)
        with full.turn(accounts.NEW_BROWSER):
            assert [visitor.sign_in(OWNER, "not the password").status_code for _ in range(11)] == [429] * 11
    assert visitor.sign_in().status_code == 303


def test_another_browser_or_spelling_of_an_address_does_not_evade_its_limit(service):
    make_account(service)
    for email in (OWNER, "nobody@example.org"):
        for _ in range(2):
            use_up_tries(Visitor(service), email, 5)
        for blanks in (1, 254 - len(email), 254, 1_000):
            assert Visitor(service).sign_in(" " * blanks + email.upper()).status_code == 429, (email, blanks)


def test_an_old_password_checked_while_it_is_changed_does_not_sign_in(service, visitor, monkeypatch):
    make_account(service)
    with_password = accounts.with_password

    def checked_late(*args):
        account = with_password(*args)
        accounts.set_password(accounts.find_account(OWNER), "scrypt:128:8:1$another$hash")
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
    link = service.flask("account", "create", OWNER).output.strip()
    service.flask("account", "set", OWNER, "--password-stdin", stdin=PASSWORD)
    assert visitor.get(link.removeprefix("http://127.0.0.1:8000")).status_code == 404


# --- a known browser, and everybody together ----------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """A sender has 3 attempts, strangers together 6: where the number is not the rule, a hundred would take long."""
    assert (rate_limits.TRIES_OF_STRANGERS.amount, rate_limits.TRIES_OF_STRANGERS.length_s) == (100, 15 * 60)
    monkeypatch.setattr(rate_limits, "SIGN_IN_TRIES", rate_limits.Quota("sign-in", 3, 15))
    monkeypatch.setattr(rate_limits, "TRIES_OF_STRANGERS", rate_limits.Quota("sign-in-password", 6, 15))


def from_address(service, address):
    return Visitor(service, address=address)


def test_the_addresses_of_one_ipv6_network_are_one_sender(service):
    make_account(service)
    use_up_tries(from_address(service, "2001:db8::1"))
    assert from_address(service, "2001:db8::2").sign_in().status_code == 429
    assert from_address(service, "2001:db8:0:1::1").sign_in().status_code == 303


def test_a_browser_that_was_signed_in_before_is_not_locked_out_by_strangers_however_many(service, owner, few):
    owner.post("/app/logout")
    for number in range(3):
        use_up_tries(from_address(service, f"203.0.113.{number}"), count=3)
    assert from_address(service, "198.51.100.1").sign_in().status_code == 429
    assert owner.sign_in().status_code == 303


def test_each_browser_that_was_signed_in_before_has_ten_tries_of_its_own(service, owner):
    second = Visitor(service)
    second.sign_in()
    for browser in (owner, second):
        browser.post("/app/logout")
    assert use_up_tries(owner) == [422] * 10
    assert owner.sign_in().status_code == 429
    assert (second.sign_in().status_code, Visitor(service).sign_in().status_code) == (303, 303)


def test_a_browser_is_known_for_the_account_alone_that_it_was_signed_in_to(service, owner, stranger):
    owner.post("/app/logout")
    assert use_up_tries(Visitor(service), OTHER) == [422] * 10
    assert owner.sign_in(OTHER).status_code == 429


def test_a_new_password_resets_all_counts_of_attempts(service, owner, few):
    """Otherwise a new password would not help an owner who is locked out."""
    owner.post("/app/logout")
    for visitor in (owner, *(from_address(service, f"203.0.113.{number}") for number in range(2))):
        use_up_tries(visitor, count=3)
    service.flask("account", "set", OWNER, "--password-stdin", stdin="another password")
    late = from_address(service, "198.51.100.1")
    assert [visitor.sign_in(password="another password").status_code for visitor in (owner, late)] == [303, 303]


def test_a_browser_that_was_signed_in_with_an_earlier_password_is_not_known(service, owner):
    """A thief of that password must not keep attempts of his own."""
    service.flask("account", "set", OWNER, "--password-stdin", stdin="another password")
    use_up_tries(Visitor(service))
    assert owner.sign_in(password="another password").status_code == 429


def test_a_browser_whose_session_ended_is_still_known(service, owner):
    with transaction(EVERYBODY):
        Session.delete().execute()
    use_up_tries(Visitor(service))
    assert not owner.is_signed_in and owner.sign_in().status_code == 303


def test_a_known_browser_of_another_service_is_unknown(service, owner, visitor):
    """The cookie must be signed by this service's secret."""
    payload, *_ = owner.cookie.rpartition(".")
    use_up_tries(visitor)
    assert visitor.with_cookie(f"{payload}.{'A' * 27}").sign_in().status_code == 429


def test_one_sender_has_thirty_attempts_over_all_addresses_in_15_minutes(service, moved_clock):
    make_account(service)
    sender = from_address(service, "203.0.113.7")
    tries = [use_up_tries(sender, f"{number}@example.org", 8) for number in range(4)]
    assert [status for eight in tries for status in eight] == [422] * 30 + [429] * 2
    moved_clock.advance(15 * 60 - 1)
    assert sender.sign_in().status_code == 429
    assert from_address(service, "203.0.113.8").sign_in().status_code == 303
    moved_clock.advance(1)
    assert sender.sign_in().status_code == 303


def test_strangers_together_have_a_hundred_attempts_for_one_address(service, moved_clock, few):
    make_account(service)
    tries = [use_up_tries(from_address(service, f"203.0.113.{number}"), count=3) for number in range(2)]
    assert tries == [[422] * 3] * 2
    stranger = from_address(service, "198.51.100.1")
    assert stranger.sign_in().status_code == 429
    assert stranger.sign_in(OTHER, "x").status_code == 422
    moved_clock.advance(15 * 60)
    assert stranger.sign_in().status_code == 303


# --- races, clocks, proxies ---------------------------------------------------------------------------------


def test_tries_at_the_same_time_are_no_more_than_ten(service, monkeypatch):
    make_account(service)
    visitors = [Visitor(service) for _ in range(4)]
    for visitor in visitors:
        visitor.get("/app/login")
    for _ in range(9):
        assert visitors[0].post("/app/login", {"email": OWNER, "password": "wrong"}).status_code == 422
    begun, checked = threading.Barrier(5), accounts.check_password_hash
    waiting = threading.Semaphore(0)

    def slow(expected, password):
        waiting.acquire(timeout=1)  # until all have passed the first look at the quota
        return checked(expected, password)

    monkeypatch.setattr(accounts, "check_password_hash", slow)
    answers = []

    def try_one(visitor):
        begun.wait()
        answers.append(visitor.post("/app/login", {"email": OWNER, "password": "wrong"}).status_code)

    threads = [threading.Thread(target=try_one, args=[visitor]) for visitor in visitors]
    for thread in threads:
        thread.start()
    begun.wait()
    for _ in threads:
        waiting.release()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [422, 429, 429, 429]


def test_a_link_of_the_command_line_works_regardless_of_attempts_by_strangers(service, few):
    make_account(service)
    for number in range(2):
        use_up_tries(from_address(service, f"203.0.113.{number}"), count=3)
    phone = Visitor(service)
    assert phone.sign_in().status_code == 429
    link = (
        service.flask("account", "set", OWNER, "--password-link").output.strip().removeprefix("http://127.0.0.1:8000")
    )
    phone.get(link)
    assert phone.post(link, {"password": "another password"}).status_code == 303
    assert phone.is_signed_in
