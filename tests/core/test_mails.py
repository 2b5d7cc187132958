"""Mails in the background: confirmation, the hourly limit, repeats, tests, crashes and two processes."""

import pytest

from core import doctor, mail_limits, mails
from process import clock
from process.clock import HOUR_MS
from store import database
from tests.support.accounts import OWNER
from tests.support.alarms import acknowledge, detail, every, ring
from tests.support.channels import add_mail_address, add_webhook, confirm_path, confirmed, device, mail_service
from tests.support.pages import signed_in
from tests.support.rows import each
from tests.support.webhooks import at_once


@pytest.fixture
def service(make_service, mail_server, push_service, moved_clock):
    return mail_service(make_service, mail_server, WEBPUSH_HOSTS=push_service.origin)


@pytest.fixture
def address(service, owner, mail_server):
    """A confirmed address that gets everything, and whose number is not its account's."""
    owner.delete(f"/devices/{owner.post('/devices', {'kind': 'ntfy'}).json['device']['id']}")
    made = confirmed(service, owner, mail_server, role="always", minPriority=1)
    mail_server.got.clear()
    return made


def subjects(mail_server):
    return [mail["subject"] for mail in mail_server.mails]


# Confirmation


def test_nothing_but_a_confirmation_goes_to_an_address_before_its_link_was_followed(service, owner, mail_server):
    made = add_mail_address(owner, role="always", minPriority=1)
    assert (made["confirmed"], made["name"], made["preset"]) == (False, "ana@example.org", None)
    assert "secret" not in made
    assert owner.send().json["notification"]["status"] == "delivered"  # it is in the history, which is all there is
    service.work()
    assert subjects(mail_server) == ["Confirm this address"]
    assert service.client.get(confirm_path(mail_server)).status_code == 200  # a program looks at the link
    assert not device(owner, made["id"])["confirmed"]
    assert service.client.post(confirm_path(mail_server)).status_code == 200
    assert device(owner, made["id"])["confirmed"]
    owner.send()
    service.work()
    assert subjects(mail_server)[1:] == ["MCP - Backup"]


def test_a_confirmation_is_good_for_seven_days(service, owner, mail_server, moved_clock):
    made = add_mail_address(owner)
    service.work()
    path = confirm_path(mail_server)
    moved_clock.advance(7 * 86_400 + 1)
    assert service.client.post(path).status_code == 404
    add_mail_address(owner)  # again
    service.work()
    assert confirm_path(mail_server) == path and service.client.post(path).status_code == 200
    assert device(owner, made["id"])["confirmed"]


def test_the_link_to_end_the_mails_in_a_confirmation_confirms_nothing(service, owner, mail_server):
    made = add_mail_address(owner)
    service.work()
    path = confirm_path(mail_server)
    one_click = {"List-Unsubscribe": "One-Click"}
    assert service.client.post(f"{path}/stop", data=one_click).status_code == 200
    assert device(owner, made["id"]) is None
    assert service.client.post(path).status_code == 404


@each("token", ["x", "é", "a/b", "stop", "0" * 65, "x/stop"])
def test_an_unknown_token_opens_nothing(service, token):
    assert service.client.get(f"/e/{token}").status_code == 404
    assert service.client.post(f"/e/{token}").status_code in (200, 404)


def test_a_confirmed_address_that_is_added_again_is_not_asked_again(service, owner, mail_server, address):
    assert add_mail_address(owner, role="fallback")["id"] == address["id"]
    service.work()
    assert not mail_server.got and device(owner, address["id"])["confirmed"]


def test_a_removed_address_gets_no_confirmation(service, owner, mail_server):
    owner.delete(f"/devices/{add_mail_address(owner)['id']}")
    service.work()
    assert not mail_server.got


# Roles


def test_a_repeat_is_mailed_again_and_acknowledged_is_not(service, owner, mail_server, address, passes):
    sent = {"title": "Disk", "body": "full", "acknowledge": {"everyS": 60, "forS": 600}}
    id_ = owner.post("/notifications/send", sent).json["notification"]["id"]
    service.work()
    for _ in range(2):
        passes(60)
    owner.post(f"/notifications/{id_}/acknowledge")
    service.work()
    assert subjects(mail_server) == ["MCP - Disk"] * 3
    ids = [mail["message-id"] for mail in mail_server.mails]
    assert len({*ids}) == 3


def said(caller, id_):
    """The status of a notification, and those of its deliveries, with their errors."""
    found = detail(caller, id_)
    return found["status"], [(one["status"], one.get("error")) for one in found["deliveries"]]


@each("behaves", ["550", "451"])
def test_a_refused_repeat_leaves_it_delivered_and_the_next_repeat_is_its_retry(
    service, owner, mail_server, address, passes, behaves
):
    id_ = ring(owner, for_s=120)
    passes(0)
    mail_server.got[:], mail_server.behaves = mail_server.got[-1:], behaves
    passes(60)
    assert said(owner, id_) == ("delivered", [("delivered", None)])
    mail_server.behaves = ""
    for seconds, mails_so_far in ((31, 1), (29, 2)):
        passes(seconds)
        assert len(mail_server.got) == mails_so_far
    assert said(owner, id_) == ("delivered", [("delivered", None)])


def test_what_an_address_has_stays_delivered_while_a_repeat_waits_and_when_it_ends(
    service, owner, mail_server, address, passes, monkeypatch
):
    ends = {
        "none": lambda id_: None,
        "acknowledged": lambda id_: acknowledge(owner, id_),
        "snoozed": lambda id_: owner.post(f"/notifications/{id_}/snooze", {"forS": 60}),
        "removed": lambda id_: owner.delete(f"/devices/{address['id']}"),
    }
    ids = {end: ring(owner) for end in ends}
    passes(0)
    monkeypatch.setattr(mails, "can_mail", lambda: False)
    passes(60)
    for end, happens in ends.items():
        happens(ids[end])
        assert said(owner, ids[end]) == ("delivered", [("delivered", None)]), end
    assert [one["status"] for one in owner.listed()] == ["delivered"] * 4


def test_the_digest_of_quiet_hours_is_mailed(service, owner, mail_server, address, passes):
    alert = service.alert("--frequency", "1h")
    alert.post({"title": "a"})
    alert.post({"title": "b"})
    passes(3_700)
    (mail,) = mail_server.mails
    assert mail["subject"] == "MCP - 2 notifications"
    assert mail.get_body(("plain",)).get_content().replace("\r\n", "\n").startswith("a: Backups\nb: Backups\n")


def test_a_phone_does_not_wait_for_the_mail(service, owner, mail_server, address, push_service, browser):
    mail_server.behaves = "hangs"
    assert owner.send().json["notification"]["status"] == "delivered" and browser.pushes


# The limit


def test_events_beyond_the_limit_make_one_mail_that_says_how_many_more(
    service, owner, mail_server, address, moved_clock, monkeypatch, passes
):
    monkeypatch.setattr(mail_limits, "MAX_MAILS", 6)
    moved_clock.advance(3_600)  # the confirmation was an hour ago
    alert = service.alert()
    for number in range(20):
        alert.post({"title": f"{number}"})
        every(service, moved_clock, 60)
    assert len(mail_server.got) == 6
    passes(3_600)
    assert subjects(mail_server)[6:] == ["MCP - 14 more"]
    assert "14 more notifications were not mailed" in mail_server.mails[-1].get_body(("plain",)).get_content()
    alert.post({"title": "next"})
    service.work()
    assert subjects(mail_server)[-1] == "MCP - next"


def test_what_was_not_mailed_says_so(service, owner, mail_server, address, monkeypatch):
    monkeypatch.setattr(mail_limits, "MAX_MAILS", 1)  # the confirmation was one
    owner.send()
    service.work()
    assert owner.listed()[0]["status"] == "failed" and not mail_server.got
    delivery = owner.get(f"/notifications/{owner.listed()[0]['id']}").json["notification"]["deliveries"][0]
    assert delivery["error"].startswith("60 mails were sent within an hour")


def test_confirmations_count_and_are_refused_beyond(service, owner, mail_server, monkeypatch):
    monkeypatch.setattr(mail_limits, "MAX_MAILS", 2)
    for name in ("a", "b"):
        add_mail_address(owner, f"{name}@example.org")
    answer = owner.post("/devices", {"kind": "email", "address": "c@example.org"})
    assert answer.status_code == 429 and "within an hour" in answer.json["error"]
    assert len(owner.get("/devices").json["devices"]) == 2


def test_within_any_hour_there_are_no_more_than_sixty(service, owner, moved_clock):
    taken = []
    for _ in range(180):
        with database.transaction(1):
            if mail_limits.take(1, None, clock.now_ms()):
                taken.append(clock.now_ms())
        mail_limits.tell_how_many_more(clock.now_ms())
        moved_clock.advance(41)
    assert all(sum(at - HOUR_MS < other <= at for other in taken) <= 60 for at in taken)


def test_another_try_takes_no_place(service, owner, mail_server, address, moved_clock, monkeypatch):
    monkeypatch.setattr(mail_limits, "MAX_MAILS", 2)
    mail_server.behaves = "451"
    owner.send()
    service.work()
    mail_server.behaves = ""
    every(service, moved_clock, 31)
    assert len(mail_server.got) == 1


# Tests


def test_the_test_of_an_address_is_mailed_in_the_background(service, mail_server):
    visitor, owner = signed_in(service), service.caller()
    address = confirmed(service, owner, mail_server)
    mail_server.got.clear()
    answer = visitor.post(f"/app/devices/{address['id']}/test", {})
    assert answer.status_code == 303 and not mail_server.got
    service.work()
    assert subjects(mail_server) == ["MCP - Test"]
    mail_server.behaves, mail_server.at = "550", "RCPT"
    visitor.post(f"/app/devices/{address['id']}/test", {})
    service.work()
    assert device(owner, address["id"])["lastError"] == "The mail server answered 550 (Not today)."
    assert "The mail server answered 550" in visitor.page("/app/devices").text


# Crashes and processes


def test_a_mail_whose_process_died_is_sent_when_its_lease_ends(service, owner, mail_server, moved_clock, monkeypatch):
    add_mail_address(owner)
    with monkeypatch.context() as patch:
        patch.setattr(mails, "_sent", lambda mail: 1 / 0)  # as kill -9, after the claim
        service.work()
    assert not mail_server.got
    service.work()
    assert not mail_server.got  # nobody takes it before its lease ends
    every(service, moved_clock, 31)
    assert len(mail_server.got) == 1


def test_two_processes_send_each_mail_once(service, owner, mail_server, address):
    for _ in range(5):
        owner.send()
    now = clock.now_ms()
    due = mails.retries._due(now, mails.batches, {"email"})
    at_once(2, lambda: (mails.retries._retry(1, due[1], now, mails._admitted, 20.0), database.give_back()))
    assert len(mail_server.got) == 5


def test_a_mail_and_a_chat_beside_each_other(make_service, mail_server, passes):
    service = mail_service(make_service, mail_server, CHANNEL_HOSTS="http://127.0.0.1:9")
    service.account(OWNER)
    owner = service.caller()
    confirmed(service, owner, mail_server)
    mail_server.got.clear()
    add_webhook(owner, "http://127.0.0.1:9/x", role="always")
    owner.post("/notifications/send", {"title": "Disk", "body": "full", "priority": 5})
    passes(301)
    assert subjects(mail_server) == ["MCP - Disk"]


# Doctor


def checked(service):
    return next((one.level, one.words) for one in doctor.examine(service.settings) if one.check == "E-mail")


def test_doctor_connects_and_signs_in_and_mails_nothing(service, mail_server):
    assert checked(service) == ("ok", "the mail server takes the connection and the sign-in.")
    assert mail_server.connections and not mail_server.got


@each(
    "behaves, at, said",
    [
        ("535", "AUTH", "The mail server refused the name or password (535). Check SMTP_URL."),
        ("554", "greeting", "The mail server answered 554 (Not today)."),
        ("closes", "", "The mail server could not be reached: the connection was lost."),
    ],
)
def test_doctor_says_what_is_wrong_with_the_mail_server(make_service, mail_server, behaves, at, said):
    mail_server.offers = ("AUTH PLAIN",)
    service = make_service(SMTP_URL=mail_server.url("u:p@"), SMTP_FROM="bell@example.org")
    mail_server.behaves, mail_server.at = behaves, at
    assert checked(service) == ("bad", said)


def test_doctor_says_what_to_set_for_mail(make_service):
    service = make_service()
    assert checked(service) == ("ok", "not configured: set SMTP_URL and SMTP_FROM to send e-mail.")
