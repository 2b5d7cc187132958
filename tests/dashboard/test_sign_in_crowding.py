"""Signing in under load: known browsers and links go first, no sender takes all places, sessions end."""

import threading

import pytest

from core import accounts
from process import clock
from store.sessions import Session
from tests.support.accounts import OTHER, OWNER, PASSWORD
from tests.support.pages import Visitor, make_account
from tests.support.server import PATIENCE_S, wait_until
from web import rate_limits

QUARTER_S = 900


class SlowHashes:
    """Every password is checked when a test lets it; `order` has the passwords in the order of their turns."""

    def __init__(self, monkeypatch):
        self.order, self.go, self.threads, self.answers = [], threading.Semaphore(0), [], {}
        check, generate = accounts.check_password_hash, accounts.generate_password_hash

        def slow(function, password):
            self.order.append(password)
            assert self.go.acquire(timeout=PATIENCE_S)
            return function()

        monkeypatch.setattr(
            accounts, "check_password_hash", lambda kept, tried: slow(lambda: check(kept, tried), tried)
        )
        monkeypatch.setattr(
            accounts, "generate_password_hash", lambda typed, how: slow(lambda: generate(typed, how), typed)
        )

    def waiting(self):
        return sum(map(len, accounts.hash_turns.queues.values()))

    def come(self, visitor, path, form):
        """A form in a thread of its own, which has a turn, waits for one or is answered when this returns."""
        before = self.waiting() + len(self.order) + len(self.answers)
        thread = threading.Thread(target=lambda: self.answers.update({form["password"]: visitor.post(path, form)}))
        self.threads.append(thread)
        thread.start()
        wait_until(lambda: self.waiting() + len(self.order) + len(self.answers) > before)

    def stranger(self, service, number, address=None):
        visitor = Visitor(service, address=address or f"203.0.113.{number}")
        visitor.get("/app/login")
        self.come(visitor, "/app/login", {"email": f"made-up-{number}@example.org", "password": f"guess {number}"})

    def status(self, password):
        return self.answers[password].status_code

    def end(self):
        self.go.release(100)
        for thread in self.threads:
            thread.join(15)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.fixture
def known(service):
    """A browser that was signed in with the password before."""
    make_account(service)
    visitor = Visitor(service, address="198.51.100.9")
    assert visitor.sign_in().status_code == 303
    visitor.get("/app/devices")
    visitor.post("/app/logout")
    visitor.get("/app/login")
    return visitor


@pytest.fixture
def hashes(known, monkeypatch):
    hashes = SlowHashes(monkeypatch)
    yield hashes
    hashes.end()


def test_known_browsers_and_links_go_before_waiting_strangers(service, known, hashes):
    link = service.flask("account", "create", OTHER).output.strip().removeprefix("http://127.0.0.1:8000")
    phone = Visitor(service)
    phone.get(link)
    for number in range(12):
        hashes.stranger(service, number)
    assert [hashes.status(f"guess {number}") for number in (9, 10, 11)] == [429] * 3
    hashes.come(known, "/app/login", {"email": OWNER, "password": PASSWORD})
    hashes.come(phone, link, {"password": "the password of the link", "time_zone": "UTC"})
    hashes.end()
    assert {PASSWORD, "the password of the link"} <= set(hashes.order[1:4])
    assert (hashes.status(PASSWORD), hashes.status("the password of the link")) == (303, 303)
    assert [hashes.status(f"guess {number}") for number in range(9)] == [422] * 9


def test_one_sender_has_at_most_two_waiting_sign_ins(service, hashes):
    for number in range(5):
        hashes.stranger(service, number, "203.0.113.7")
    hashes.stranger(service, 5, "203.0.113.8")
    hashes.end()
    assert [hashes.status(f"guess {number}") for number in range(6)] == [422, 422, 422, 429, 429, 422]


def test_the_browsers_of_one_account_leave_room_for_those_of_another(service, known, hashes):
    copies = [known.with_cookie(known.cookie) for _ in range(4)]
    for copy in copies:
        copy.get("/app/login")
    for number, copy in enumerate(copies):
        hashes.come(copy, "/app/login", {"email": OWNER, "password": f"wrong {number}"})
    hashes.end()
    assert [hashes.status(f"wrong {number}") for number in range(4)] == [422, 422, 422, 429]


# --- right passwords ----------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Five sign-ins and ten sessions are allowed: to use up the real numbers would take long."""
    quota = rate_limits.SIGN_INS
    assert (quota.amount, quota.length_s, accounts.MAX_SESSIONS) == (30, QUARTER_S, 100)
    monkeypatch.setattr(rate_limits, "SIGN_INS", rate_limits.Quota("sign-ins", 5, 15))
    monkeypatch.setattr(accounts, "MAX_SESSIONS", 10)


def sign_ins(service, count, address):
    """The statuses of so many sign-ins, each by a new browser."""
    return [Visitor(service, address=address).sign_in().status_code for _ in range(count)]


def test_one_sender_has_at_most_30_sign_ins_in_15_minutes(service, moved_clock, few):
    make_account(service)
    assert sign_ins(service, 6, "203.0.113.7") == [303] * 5 + [429]
    assert sign_ins(service, 1, "203.0.113.8") == [303]
    moved_clock.advance(QUARTER_S)
    assert sign_ins(service, 1, "203.0.113.7") == [303]


def test_repeated_sign_ins_do_not_lock_out_a_known_browser_at_the_same_address(service, known, few):
    make_account(service, OTHER)
    for _ in range(6):
        last = Visitor(service, address="198.51.100.9").sign_in(OTHER)
    assert last.status_code == 429 and known.sign_in().status_code == 303


def test_the_known_browsers_of_an_account_sign_in_as_often_as_one_sender(service, known, few):
    statuses = [known.sign_in().status_code for _ in range(6)]
    assert statuses == [303] * 5 + [429]


# --- sessions -----------------------------------------------------------------------------------------------


def test_above_100_sessions_of_an_account_its_one_seen_longest_ago_ends(service, owner_of, moved_clock, few):
    other = owner_of(OTHER)
    first, second = owner_of(OWNER), owner_of(OWNER)
    account = accounts.find_account(OWNER)
    for _ in range(8):
        moved_clock.advance(60)
        accounts.start_session(account, "", clock.now_ms())
    assert len(Session.of_account(account.seq, clock.now_ms())) == 10
    moved_clock.advance(7200)
    assert first.is_signed_in  # and was seen now
    accounts.start_session(account, "", clock.now_ms())
    assert (other.is_signed_in, first.is_signed_in, second.is_signed_in) == (True, True, False)
    assert len(Session.of_account(account.seq, clock.now_ms())) == 10


def test_a_new_session_is_kept_though_others_were_seen_in_the_future(service, owner_of, moved_clock, few):
    owner_of(OWNER)
    account = accounts.find_account(OWNER)
    for _ in range(10):
        accounts.start_session(account, "", clock.now_ms() + 3_600_000)
    moved_clock.advance(QUARTER_S)
    assert owner_of(OWNER).is_signed_in


@pytest.fixture
def owner_of(service):
    """Signs a new browser in, with an account that is made if it is not there."""
    made = set()

    def sign_in(email):
        if email not in made:
            made.add(make_account(service, email))
        visitor = Visitor(service)
        assert visitor.sign_in(email).status_code == 303
        return visitor

    return sign_in
