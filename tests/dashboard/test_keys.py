"""The page of API keys: made, shown once, revoked."""

import re

from core import api_keys
from store import server_notes
from store.database import WriteFailed
from tests.support.accounts import OWNER, account_set
from tests.support.commands import lines_of
from tests.support.pages import Visitor, signed_in
from tests.support.rows import each
from tests.support.service import Caller

SOON = "Programs with this key stop working"


def make_key(owner, name="backup"):
    """Make a key with the page's form, and return its full text."""
    owner.get("/app/keys")
    return full_key_at(owner, owner.post("/app/keys", {"name": name}).location)


def full_key_at(owner, path):
    """The key that the page shows in full, if any."""
    shown = re.search('<code id="full-key">(sk_test_[0-9a-f]{48})</code>', owner.get(path).text)
    return shown and shown[1]


def test_the_page_offers_a_key_that_may_only_send_first(service, owner):
    page = owner.page("/app/keys")
    assert page.chosen("scope") == "send" and page.chosen("life") == ""
    answer = owner.post("/app/keys", {"name": "script", "scope": "send", "life": "90d"})
    sender = Caller(service, full_key_at(owner, answer.location))
    assert sender.send().status_code == 200 and sender.get("/stats").status_code == 404
    assert "May send · until" in owner.page("/app/keys").text


def test_home_says_that_a_key_expires_soon(service, owner, moved_clock):
    owner.post("/app/keys", {"name": "script", "scope": "send", "life": "30d"})
    said = [SOON in owner.page("/app/").text]
    for days in (23, 7):
        moved_clock.advance(days * 86_400)
        api_keys.look_at_ends(moved_clock.ms)
        said.append(SOON in owner.page("/app/").text)
    assert said == [False, True, False]


def test_a_key_is_shown_once_and_only_its_beginning_afterwards(owner):
    full_key = make_key(owner)
    later = owner.get("/app/keys").text
    assert full_key not in later and f"<code>{full_key[:16]}…</code>" in later
    assert full_key[:17] not in later


def test_each_of_two_tabs_shows_its_own_new_key_of_the_same_name(service, owner):
    paths = [owner.post("/app/keys", {"name": "backup"}).location for _ in range(2)]
    keys = [full_key_at(owner, path) for path in paths]
    assert len({*keys}) == 2 and [Caller(service, key).send().status_code for key in keys] == [200, 200]


def test_a_new_key_is_shown_once_in_the_session_that_made_it_and_reloading_makes_no_second(service, owner, stranger):
    path = owner.post("/app/keys", {"name": "backup"}).location
    other_browser = Visitor(service)
    other_browser.sign_in()
    for visitor in (other_browser, stranger):
        assert visitor.get(path).status_code == 200 and full_key_at(visitor, path) is None
    assert full_key_at(owner, path)
    assert full_key_at(owner, path) is None and "was shown once" in owner.page(path).text
    assert len(lines_of(service, "key", "list", OWNER)) == 1


@each("made", ["", "0" * 32, "é", "' OR 1", "%00"])
def test_an_address_with_a_forged_key_shows_no_key(owner, made):
    owner.post("/app/keys", {"name": "backup"})
    assert full_key_at(owner, f"/app/keys?made={made}") is None


def test_a_key_is_in_no_cookie_no_header_and_no_address(owner):
    answer = owner.post("/app/keys", {"name": "backup"})
    signer = owner.service.app.session_interface.get_signing_serializer(owner.service.app)
    told = [answer.headers, answer.location, owner.cookie, signer.loads(owner.cookie)]
    full_key = full_key_at(owner, answer.location)
    told += [owner.cookie, signer.loads(owner.cookie), owner.get("/app/keys").headers]
    for part in (full_key, full_key[8:], full_key[16:]):
        assert part not in str(told)


def test_a_new_key_not_yet_shown_is_not_written_to_disk(service, owner):
    path = owner.post("/app/keys", {"name": "backup"}).location

    def stored():
        return b"".join(file.read_bytes() for file in service.data_dir.rglob("*") if file.is_file())

    while_waiting = stored()
    full_key = full_key_at(owner, path)
    for kept in (while_waiting, stored()):
        for part in (full_key, full_key[8:], full_key[16:]):
            assert part.encode() not in kept
        assert bytes.fromhex(full_key[8:]) not in kept


def test_a_new_key_never_shown_is_forgotten_after_some_minutes(owner, moved_clock):
    forgotten = owner.post("/app/keys", {"name": "forgotten"}).location
    moved_clock.advance(11 * 60)
    assert make_key(owner, "later") and full_key_at(owner, forgotten) is None


def test_neither_a_key_nor_a_device_is_stored_without_the_secret_that_its_page_shows(service, owner, monkeypatch):
    def fails(*_):
        raise WriteFailed("disk full")

    monkeypatch.setattr(server_notes, "put", fails)
    forms = {"/app/keys": {"name": "backup"}, "/app/devices/new": {"kind": "ntfy"}}
    assert [owner.post(path, form).status_code for path, form in forms.items()] == [503, 503]
    assert [lines_of(service, what, "list", OWNER) for what in ("key", "device")] == [[], []]


def test_the_example_command_holds_the_key_and_the_address_of_the_page(owner):
    page = owner.done("/app/keys", {"name": "x"})
    full_key = re.search("sk_test_[0-9a-f]{48}", page.text)[0]
    command = f"curl http://localhost/api/v1/notifications/send \\ -H 'Authorization: Bearer {full_key}' \\ -d '{{"
    assert command in page.text


def test_the_example_command_holds_the_public_address(make_service, push_service, moved_clock):
    owner = signed_in(make_service(BASE_URL="https://bell.example.org"))
    page = owner.done("/app/keys", {"name": "x"})
    assert "curl https://bell.example.org/api/v1/notifications/send" in page.text


def test_a_new_key_has_a_name_that_no_live_key_has(owner):
    for name in ("Script", "Script 2", "Script 3"):
        assert owner.page("/app/keys").value("name") == name
        owner.done("/app/keys", {"name": name})


def test_a_key_is_revoked_only_after_a_second_question_and_stays_listed_without_a_button(service, owner):
    caller = Caller(service, make_key(owner))
    page = owner.page("/app/keys")
    (action,) = page.forms("/revoke")
    asked = page.confirmation(action)
    assert asked.startswith("Revoke…") and "cannot be undone" in asked
    page = owner.done(action, leads_to="/app/keys")
    assert page.times() == ["2026-11-21 10:00"] * 2 and "Key revoked" in page.text
    assert "Key revoked" not in owner.page("/app/keys").text
    assert not [form for form in page.all("form") if "revoke" in form["action"]]
    assert caller.send().status_code == 401


def test_a_key_says_when_it_was_used_last_in_the_owners_time_zone(service, owner, moved_clock):
    account_set("--timezone", "Asia/Tokyo")
    caller = Caller(service, make_key(owner))
    page = owner.page("/app/keys")
    assert page.times() == ["2026-11-21 19:00"] and "never" in page.section("backup")
    moved_clock.advance(3600)
    caller.send()
    page = owner.page("/app/keys")
    assert page.times() == ["2026-11-21 19:00", "2026-11-21 20:00"] and "1 h ago just now" in page.section("backup")


def test_a_key_names_the_devices_that_it_added(service, owner):
    maker, idle = service.caller(name="phone app"), service.caller(name="idle")
    for token, name in (("ab" * 32, "Phone"), ("cd" * 32, "Tablet")):
        assert maker.post("/devices", {"kind": "apns", "token": token, "name": name}).status_code == 201
    assert idle.send().status_code == 200
    page = owner.page("/app/keys")
    assert "Phone" in page.section("phone app") and "Tablet" in page.section("phone app")
    assert "Phone" not in page.section("idle")
