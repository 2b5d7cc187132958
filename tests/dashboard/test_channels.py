"""The channels on the page Devices & channels, and the pages that links in mails lead to."""

import re

import pytest

from tests.support.channels import add_mail_address, confirm_path, confirmed, mail_service
from tests.support.pages import signed_in
from tests.support.rows import each

CHANNEL = "/app/devices/new"


@pytest.fixture
def service(make_service, mail_server, receiver, moved_clock):
    return mail_service(make_service, mail_server, CHANNEL_HOSTS=receiver.origin)


def channels(owner):
    """The text of the section on channels."""
    return owner.page("/app/devices").section("Channels")


def listed(service):
    return service.caller().get("/devices").json["devices"]


def test_a_chat_is_added_and_tested(service, owner, receiver):
    form = {"kind": "webhook", "preset": "slack", "url": f"{receiver.origin}/hook", "name": "Ops", "when": "0"}
    assert owner.post(CHANNEL, form).headers["Location"] == "/app/devices"
    page = owner.page("/app/devices")
    shown = page.section("Channels")
    assert "Ops" in shown and "Slack" in shown and "Everything at once" in shown and "/hook" not in page.text
    (device,) = listed(service)
    owner.post(f"/app/devices/{device['id']}/test", {})
    assert receiver.got[0].json["text"].startswith("MCP - Test")


@each("preset, name", [("discord", "Discord"), ("generic", "The webhook")])
def test_the_test_of_a_channel_names_the_service_that_took_it(service, owner, receiver, preset, name):
    owner.post(CHANNEL, {"kind": "webhook", "preset": preset, "url": f"{receiver.origin}/{preset}"})
    path = f"/app/devices/{listed(service)[0]['id']}/test"
    assert f"{name} accepted the test." in owner.done(path, leads_to="/app/devices").said("status")
    receiver.answers[f"/{preset}"] = (410, b"")
    assert "The channel was removed." in owner.done(path).text


def test_the_secret_of_a_generic_webhook_is_shown_once(service, owner, receiver):
    answer = owner.post(CHANNEL, {"kind": "webhook", "preset": "generic", "url": f"{receiver.origin}/hook"})
    shown = owner.get(answer.headers["Location"]).text
    (secret,) = {*re.findall(r"whsec_[0-9A-Za-z+/]{32}", shown)}
    assert secret not in owner.get(answer.headers["Location"]).text and secret not in owner.get("/app/devices").text


def test_what_it_got_last_and_why_not_are_shown(service, owner, receiver):
    owner.post(CHANNEL, {"kind": "webhook", "preset": "slack", "url": f"{receiver.origin}/hook", "when": "0"})
    send = {"title": "Disk full", "body": "b", "priority": 5}
    service.caller().post("/notifications/send", send)
    assert "Disk full" in channels(owner)
    receiver.answers["/hook"] = (404, b"no_service")
    service.caller().post("/notifications/send", {**send, "title": "Second"})
    shown = channels(owner)
    assert "The webhook answered 404 (no_service)." in shown and "Disk full" in shown


def test_a_mail_address_is_confirmed_by_its_link_which_is_no_delivery_and_may_be_asked_again(
    service, owner, mail_server
):
    owner.post(CHANNEL, {"kind": "email", "address": "ana@example.org", "when": "300"})
    service.work()
    owner.post(f"/app/devices/{listed(service)[0]['id']}/confirm", {})
    service.work()
    assert len(mail_server.got) == 2 and listed(service)[0]["lastDeliveredAt"] is None
    shown = channels(owner)
    assert "Not confirmed" in shown and "What nothing else has after 5 min" in shown
    assert "Last delivery" in shown and "not confirmed yet" in shown and "just now" not in shown
    path = confirm_path(mail_server)
    page = service.client.get(path).text
    assert "ana@example.org" in page and "Confirm this address" in page and page.count("<button") == 1
    assert "This address is confirmed." in service.client.post(path).text
    shown = channels(owner)
    assert "Not confirmed" not in shown and "never" in shown


def test_an_address_that_is_not_confirmed_is_no_device_until_it_is(service, owner, mail_server):
    def devices():
        return owner.page("/app/devices").section("Your devices")

    owner.post(CHANNEL, {"kind": "email", "address": "ana@example.org"})
    assert "notifications are only saved to History" in devices()
    home = owner.page("/app/").main
    assert "1 of 5 steps done" in home and "reachable" not in home
    home = owner.done("/app/first-steps/hide", leads_to="/app/").main
    assert "No device gets your notifications" in home and "reachable" not in home
    service.work()
    assert service.client.post(confirm_path(mail_server)).status_code == 200
    shown, home = devices(), owner.page("/app/").main
    assert "only your channels get notifications" in shown and "History" not in shown
    assert "All is well" in home and "1 device reachable" in home


def test_an_address_that_a_key_added_is_told_of_before_it_is_confirmed(service, owner):
    add_mail_address(service.caller())
    shown = owner.page("/app/")
    assert "is not confirmed yet Added with the API key" in " ".join(shown.main.split())
    page = owner.done("/app/devices/seen", shown.hidden("/app/devices/seen"), leads_to="/app/")
    assert "Added with the API key" not in page.main


def test_the_page_that_ends_the_mails_asks_once_and_says_that_it_is_done(service, owner, mail_server):
    confirmed(service, service.caller(), mail_server)
    service.caller().post("/notifications/send", {"title": "t", "body": "b", "priority": 5})
    service.work()
    path = re.search(r"<http://127\.0\.0\.1:8000(.*)>", mail_server.mails[-1]["list-unsubscribe"])[1]
    assert "Stop the mails to this address" in service.client.get(path).text and listed(service)
    assert "This address gets no more mails." in service.client.post(path).text and not listed(service)
    assert "This address gets no more mails." in service.client.post(path).text


@each("address", ["a b", "a@b.c\r\nBcc: d@e.f"])
def test_a_wrong_form_says_what_is_wrong(service, owner, address):
    answer = owner.post(CHANNEL, {"kind": "email", "address": address})
    assert answer.status_code == 422 and "ddress must be a mail address" in answer.text and listed(service) == []


@each("form", [{"kind": "webhook", "url": "http://10.0.0.1/"}, {"kind": "email", "address": "a b"}])
def test_what_was_chosen_stays_chosen_beside_an_error(owner, form):
    page = owner.refused(CHANNEL, {**form, "when": "0"})
    assert page.chosen("when") == "0"


def test_whether_an_invitation_is_mailed_stays_as_chosen_and_is_said(service, owner, mail_server):
    page = owner.refused("/app/people", {"email": "nobody", "plan": "starter"})
    assert [box for box in page.all("input") if box.get("name") == "mail" and "checked" in box] == []
    for mail, said in (({}, "Send it to them."), ({"mail": "1"}, "It was mailed to them")):
        answer = owner.post("/app/people", {"email": "ana@example.org", "plan": "starter", **mail})
        assert said in owner.get(answer.location).text


def test_the_role_is_changed_on_the_page(service, owner, receiver):
    owner.post(CHANNEL, {"kind": "webhook", "preset": "slack", "url": f"{receiver.origin}/hook"})
    (device,) = listed(service)
    owner.post(f"/app/devices/{device['id']}", {"when": "600"})
    assert listed(service)[0]["afterS"] == 600 and "What nothing else has after 10 min" in channels(owner)
    assert owner.post(f"/app/devices/{device['id']}", {"when": "5"}).status_code == 422
    page = owner.refused(f"/app/devices/{device['id']}", {"when": "60", "quietHours": "x"})
    assert page.html.count('value="60" selected') == 1  # the forms for new channels keep their own


def test_without_a_mail_server_the_page_says_who_sets_it(make_service, moved_clock):
    owner = signed_in(make_service())
    assert "SMTP_URL" in owner.page("/app/devices").text
