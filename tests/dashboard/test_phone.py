"""Signing in on a phone with the code that a signed-in browser shows, and who is refused."""

import json

import pytest

from core import phone_links
from process import clock
from store.sessions import PhoneLink
from tests.support.accounts import OTHER, OWNER, PASSWORD
from tests.support.pages import PUBLIC, Page, Visitor, signed_in
from tests.support.rows import each
from tests.support.tables import alter, everything, query
from web import rate_limits

ANDROID = "Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Mobile Safari"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1"
CODE_PAGE, ASKING_PAGE, READY_PAGE = "/app/devices/phone", "/app/phone", "/app/devices/this"


@pytest.fixture
def service(make_service, push_service, moved_clock):
    return make_service(WEBPUSH_HOSTS=push_service.origin, BASE_URL=PUBLIC)


@pytest.fixture
def phone(service):
    return Visitor(service, agent=ANDROID, address="192.0.2.7")


@pytest.fixture
def another(service):
    """Somebody else's phone."""
    return Visitor(service, agent=ANDROID, address="198.51.100.9")


def shown(owner):
    """Have the owner's browser show a new code; returns the path of its link."""
    page = owner.done(CODE_PAGE, leads_to=CODE_PAGE)
    (label,) = [value for value in page.values() if value and value.startswith("QR code with the address ")]
    return label.partition(PUBLIC)[2]


def code_of(link):
    return link.rpartition("/")[2]


def asked(phone, link):
    """Send the code from the phone; returns the number that it shows."""
    phone.page(link)
    return number_on(phone.done(link, leads_to=ASKING_PAGE))


def number_on(page):
    (number,) = [text for text in page.texts_of("strong") if len(text) == 4 and text.isdigit()]
    return number


def answered(owner, number, answer="yes"):
    return owner.done(f"{CODE_PAGE}/answer", {"number": number, "answer": answer}, leads_to=CODE_PAGE)


def not_answered(owner, number):
    """Try to confirm a phone; nobody may be."""
    states = query(owner.service, "SELECT state FROM phone_link")
    assert answered(owner, number).said("alert") == ["This request to sign in has ended."]
    assert query(owner.service, "SELECT state FROM phone_link") == states


def confirmed(owner, phone):
    """Go the whole way to the phone's next look at its page."""
    answered(owner, asked(phone, shown(owner)))


# --- the way ------------------------------------------------------------------------------------------------


def test_the_phone_is_signed_in_once_the_computer_has_confirmed_the_number(owner, phone):
    link = shown(owner)
    assert "Sign in here" in phone.page(link).main
    number = asked(phone, link)
    assert not phone.is_signed_in
    question = owner.page(CODE_PAGE)
    assert "Chrome on Android at 192.0.2.7 wants to sign in" in question.main and number_on(question) == number
    assert "being signed in" in answered(owner, number).main
    assert phone.get(ASKING_PAGE).location == READY_PAGE
    ready = phone.page(READY_PAGE)
    assert "Turn on notifications" in ready.main and OWNER in ready.main
    assert "Your phone is signed in" in owner.page(CODE_PAGE).main and owner.is_signed_in


def test_the_phones_session_is_a_new_one_with_a_token_of_its_own(owner, phone):
    link = shown(owner)
    phone.get(link)
    before, token = phone.cookie, phone.token
    answered(owner, asked(phone, link))
    phone.get(ASKING_PAGE)
    phone.page(READY_PAGE)
    assert phone.token not in (token, owner.token)
    assert not phone.with_cookie(before).is_signed_in
    assert len(query(owner.service, "SELECT DISTINCT token_hash FROM session")) == 2
    assert "Chrome on Android" in owner.page("/app/settings").main


def test_the_code_can_be_typed_as_it_is_read(owner, phone):
    page = owner.done(CODE_PAGE)
    (code,) = page.texts_of("code", id="code")
    assert [len(part) for part in code.split()] == [4, 4, 4]
    phone.page(ASKING_PAGE)
    typed = code.lower().replace(" ", "-").replace("0", "o").replace("1", "l")
    number = number_on(phone.done(ASKING_PAGE, {"code": typed}, leads_to=ASKING_PAGE))
    answered(owner, number)
    assert phone.get(ASKING_PAGE).location == READY_PAGE


def test_the_sign_in_page_devices_and_first_steps_link_to_the_phones_sign_in(owner, visitor):
    assert ASKING_PAGE in visitor.page("/app/login").values()
    for path in ("/app/", "/app/devices"):
        assert owner.page(path).forms(CODE_PAGE) == [CODE_PAGE], path


def test_pages_that_wait_load_themselves_again_without_javascript_and_the_phones_shows_its_number(owner, phone):
    link = shown(owner)
    number = asked(phone, link)
    assert phone.get(link).location == ASKING_PAGE
    for page in (owner.page(CODE_PAGE), phone.page(ASKING_PAGE)):
        assert [meta.get("content") for meta in page.all("meta") if meta.get("http-equiv") == "refresh"] == ["4"]
    assert number_on(phone.page(ASKING_PAGE)) == number
    answered(owner, number, "no")
    assert [meta for meta in owner.page(CODE_PAGE).all("meta") if meta.get("http-equiv")] == []


def test_an_iphone_is_told_to_begin_on_its_home_screen(owner, service):
    link = shown(owner)
    assert "Add to Home Screen" in Visitor(service, agent=IPHONE).page(link).main
    assert "Add to Home Screen" not in Visitor(service, agent=ANDROID).page(link).main


# --- what spends a code -------------------------------------------------------------------------------------


def test_looking_at_a_link_changes_nothing(owner, another, phone):
    link = shown(owner)
    before = everything()
    for _ in range(3):
        assert another.get(link).status_code == 200
    assert everything() == before
    asked(phone, link)


def test_a_code_works_once(owner, phone, another):
    link = shown(owner)
    another.page(link)
    number = asked(phone, link)
    assert "has been used" in another.refused(link, status=409).main
    answered(owner, number)
    assert another.get(link).status_code == 409
    phone.get(ASKING_PAGE)
    assert another.get(link).status_code == 409
    assert not another.is_signed_in


def test_only_the_browser_that_sent_the_code_is_signed_in_and_only_once(owner, phone, another):
    link = shown(owner)
    number = asked(phone, link)
    waiting = phone.cookie
    answered(owner, number)
    another.get(ASKING_PAGE)
    assert not another.is_signed_in
    assert phone.get(ASKING_PAGE).location == READY_PAGE
    replayed = phone.with_cookie(waiting)
    assert replayed.get(ASKING_PAGE).status_code == 200 and not replayed.is_signed_in


def test_of_two_phones_that_send_a_code_at_once_only_the_first_is_asked_about(owner, phone, another, monkeypatch):
    link = shown(owner)
    another.page(link)
    seen_before = phone_links.find(code_of(link), clock.now_ms())
    number = asked(phone, link)
    monkeypatch.setattr(phone_links, "find", lambda *_: seen_before)
    assert "has been used" in another.refused(link, status=409).main
    assert number_on(owner.page(CODE_PAGE)) == number


def test_of_two_simultaneous_requests_of_a_phone_one_signs_it_in(owner, phone, monkeypatch):
    confirmed(owner, phone)
    waiting, link = phone.with_cookie(phone.cookie), PhoneLink.get()
    monkeypatch.setattr(PhoneLink, "of_phone", lambda _: link)
    assert phone.get(ASKING_PAGE).location == READY_PAGE
    waiting.get(ASKING_PAGE)
    assert not waiting.is_signed_in and len(query(owner.service, "SELECT token_hash FROM session")) == 2


def test_a_new_code_ends_the_one_before(owner, phone):
    link = shown(owner)
    shown(owner)
    assert "not valid" in Page(phone.get(link).text).main


@pytest.fixture
def typing(owner, phone):
    """The phone, on the page that takes a code, while the computer shows one."""
    shown(owner)
    phone.page(ASKING_PAGE)
    return phone


@each("code", ["", "x", "0" * 12, "é", "%00", "a" * 4000])
def test_a_forged_code_is_not_valid(typing, code):
    assert typing.get(f"{ASKING_PAGE}/{code}").status_code == 404
    page = typing.refused(ASKING_PAGE, {"code": code})
    assert page.said("alert") == ["This code is not valid. Show a new one on your computer."]


def test_a_code_does_not_open_the_page_that_sets_a_password(owner, phone):
    assert phone.get(f"/app/setup/{code_of(shown(owner))}").status_code == 404


# --- time ---------------------------------------------------------------------------------------------------


def test_a_code_expires_after_two_minutes(owner, phone, moved_clock):
    link = shown(owner)
    phone.get(link)
    moved_clock.advance(120)
    assert "expired" in phone.refused(link, status=404).main
    assert "The code has expired" in owner.page(CODE_PAGE).main


def test_a_question_expires_after_two_minutes(owner, phone, moved_clock):
    number = asked(phone, shown(owner))
    moved_clock.advance(120)
    not_answered(owner, number)
    assert "Nobody confirmed it" in phone.page(ASKING_PAGE).main
    assert not phone.is_signed_in


def test_a_phone_that_comes_back_too_late_is_not_signed_in(owner, phone, moved_clock):
    confirmed(owner, phone)
    moved_clock.advance(120)
    assert phone.get(ASKING_PAGE).status_code == 200 and not phone.is_signed_in


# --- who confirms -------------------------------------------------------------------------------------------


def test_a_phone_that_is_refused_is_told_so(owner, phone):
    number = asked(phone, shown(owner))
    assert "was not signed in" in answered(owner, number, "no").main
    assert "refused on the computer" in phone.page(ASKING_PAGE).main
    not_answered(owner, number)
    assert not phone.is_signed_in


def test_another_account_cannot_confirm_a_phone(owner, stranger, phone):
    number = asked(phone, shown(owner))
    for _ in range(2):
        not_answered(stranger, number)
        shown(stranger)
    assert "Confirm it" in phone.page(ASKING_PAGE).main and not phone.is_signed_in


def test_another_browser_of_the_same_account_cannot_confirm(owner, service, phone):
    other = Visitor(service)
    other.sign_in()
    other.get("/app/")
    number = asked(phone, shown(owner))
    not_answered(other, number)
    assert "Chrome on Android" not in other.page(CODE_PAGE).main


def test_a_wrong_number_confirms_no_phone(owner, phone):
    asked(phone, shown(owner))
    for number in ("", "12345", "é"):
        not_answered(owner, number)


def test_nobody_is_confirmed_before_a_phone_has_asked(owner):
    shown(owner)
    not_answered(owner, "")


def test_the_pages_of_the_computer_are_for_who_is_signed_in(service, visitor):
    visitor.get("/app/login")
    for path in (CODE_PAGE, READY_PAGE):
        assert visitor.get(path).location.startswith("/app/login")
    for path in (CODE_PAGE, f"{CODE_PAGE}/answer"):
        assert visitor.post(path, {"number": "1", "answer": "yes"}).location.startswith("/app/login")


# --- what ends with a session -------------------------------------------------------------------------------


def sign_out(owner, moved_clock):
    owner.done("/app/logout")


def sign_out_everywhere(owner, moved_clock):
    owner.done("/app/settings/sign-out-everywhere")


def change_password(owner, moved_clock):
    owner.done("/app/settings/password", {"current": PASSWORD, "new": "another password"})


def session_expires(owner, moved_clock):
    alter(owner.service, f"UPDATE session SET expires_at = {moved_clock.ms}")


@pytest.mark.parametrize("end", [sign_out, sign_out_everywhere, change_password, session_expires])
def test_a_code_ends_with_the_session_that_shows_it(owner, phone, moved_clock, end):
    link = shown(owner)
    phone.get(link)
    end(owner, moved_clock)
    assert phone.get(link).status_code == 404
    assert phone.post(link).status_code == 404


@pytest.mark.parametrize("end", [sign_out, session_expires])
def test_a_confirmation_ends_with_the_session_that_gave_it(owner, phone, moved_clock, end):
    confirmed(owner, phone)
    end(owner, moved_clock)
    phone.get(ASKING_PAGE)
    assert not phone.is_signed_in


def test_a_phone_that_is_signed_in_stays_so_when_the_computer_signs_out(owner, phone):
    confirmed(owner, phone)
    phone.get(ASKING_PAGE)
    owner.done("/app/logout")
    assert phone.is_signed_in


# --- who is signed in already -------------------------------------------------------------------------------


def test_a_browser_that_is_signed_in_to_the_account_is_told_so(owner):
    assert "signed in already" in owner.page(shown(owner)).main
    assert owner.get(ASKING_PAGE).location == READY_PAGE


def test_a_phone_signed_in_to_another_account_is_told_so_and_switches_accounts(owner, stranger):
    link = shown(owner)
    assert OTHER in stranger.page(link).main and OWNER not in stranger.page(link).main
    before = stranger.cookie
    answered(owner, asked(stranger, link))
    stranger.get(ASKING_PAGE)
    assert OWNER in stranger.page(READY_PAGE).main
    assert not stranger.with_cookie(before).is_signed_in


# --- limits and secrets -------------------------------------------------------------------------------------


def three_instead_of_thirty(monkeypatch, name):
    quota = getattr(rate_limits, name)
    assert (quota.amount, quota.length_s) == (30, 15 * 60)
    monkeypatch.setattr(rate_limits, name, rate_limits.Quota(name, 3, 15, quota.words))


def test_one_sender_tries_thirty_codes_in_a_quarter_of_an_hour(owner, another, phone, moved_clock, monkeypatch):
    three_instead_of_thirty(monkeypatch, "PHONE_CODES")
    link = shown(owner)
    statuses = [another.get(f"{ASKING_PAGE}/{number:012}").status_code for number in range(4)]
    assert statuses == [404] * 3 + [429]
    assert another.get(link).status_code == 429
    another.get(ASKING_PAGE)
    assert another.post(ASKING_PAGE, {"code": code_of(link)}).status_code == 429
    assert phone.get(link).status_code == 200
    moved_clock.advance(15 * 60)
    assert another.get(ASKING_PAGE).status_code == 200


def test_an_account_makes_thirty_codes_in_a_quarter_of_an_hour(owner, stranger, monkeypatch):
    three_instead_of_thirty(monkeypatch, "NEW_PHONE_CODES")
    assert [owner.post(CODE_PAGE).status_code for _ in range(4)] == [303] * 3 + [429]
    assert stranger.post(CODE_PAGE).status_code == 303


def test_the_database_holds_neither_the_code_nor_the_phones_secret(owner, phone):
    link = shown(owner)
    asked(phone, link)
    with phone.client.session_transaction("/app/", base_url=phone.base_url) as kept:
        secret = kept["phone secret"]
    stored = json.dumps([list(map(str, row)) for row in query(owner.service, "SELECT * FROM phone_link")])
    assert code_of(link) not in stored and secret not in stored


@pytest.mark.parametrize(
    "base_url, says",
    [
        ("http://localhost:8000", "only this computer can reach"),
        ("https://localhost", "only this computer can reach"),
        ("http://192.168.1.5:8000", "not https"),
    ],
)
def test_an_address_that_a_phone_cannot_use_shows_what_to_do_instead_of_a_code(
    make_service, moved_clock, base_url, says
):
    owner = signed_in(make_service(BASE_URL=base_url))
    for page in (owner.page(CODE_PAGE), owner.done(CODE_PAGE)):
        assert says in page.main and "tailscale serve --bg 8000" in page.main
        assert page.all("svg") == [] or "QR code" not in str(page.values())
