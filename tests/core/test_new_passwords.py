"""Mails with one-time links: invitations, and links for a forgotten password."""

import re

import pytest

from store import database
from tests.support.accounts import OWNER, PASSWORD
from tests.support.channels import mail_service
from tests.support.pages import Visitor, signed_in


@pytest.fixture
def service(make_service, mail_server, moved_clock):
    return mail_service(make_service, mail_server)


def setup_path(mail_server):
    """The path of the one-time link in the last mail."""
    text = mail_server.mails[-1].get_body(("plain",)).get_content()
    return re.search(r"http://127\.0\.0\.1:8000(/app/setup/\S+)", text)[1]


def ask(service, email):
    visitor = Visitor(service)
    visitor.get("/app/forgot")
    return visitor.post("/app/forgot", {"email": email})


def test_a_forgotten_password_is_replaced_by_a_link_that_works_once(service, mail_server, works):
    signed_in(service)
    assert "Forgot password?" in Visitor(service).get("/app/login").text
    answer = ask(service, OWNER.upper())
    assert "a link is on its way" in answer.text and not mail_server.got
    works()
    (mail,) = mail_server.mails
    assert (mail["to"], mail["subject"]) == (OWNER, "A new password for Pocketbell")
    path, visitor = setup_path(mail_server), Visitor(service)
    visitor.get(path)
    assert visitor.post(path, {"password": "a brand new password"}).status_code == 303
    assert Visitor(service).get(path).status_code == 404
    other = Visitor(service)
    other.get("/app/login")
    assert other.post("/app/login", {"email": OWNER, "password": PASSWORD}).status_code == 422


def test_the_link_works_for_thirty_minutes(service, mail_server, moved_clock, works):
    signed_in(service)
    ask(service, OWNER)
    works()
    moved_clock.advance(1_799)
    assert Visitor(service).get(setup_path(mail_server)).status_code == 200
    moved_clock.advance(2)
    assert Visitor(service).get(setup_path(mail_server)).status_code == 404


def test_nobody_can_tell_from_the_answer_whether_there_is_an_account(service, mail_server, works):
    signed_in(service)
    answers = [ask(service, email) for email in (OWNER, "nobody@example.org", "", "é\r\n")]
    assert len({(one.status_code, re.sub(r"[0-9A-Za-z_-]{20,}", "", one.text)) for one in answers}) == 1
    works()
    assert [receivers for _, receivers, _ in mail_server.got] == [[OWNER]]


def test_a_disabled_or_invited_account_gets_no_link(service, mail_server, works):
    signed_in(service)
    service.flask("account", "invite", "guest@example.org")
    ask(service, "guest@example.org")
    works()
    assert not mail_server.got


def test_only_so_many_links_are_asked_for(service, mail_server):
    signed_in(service)
    assert [ask(service, OWNER).status_code for _ in range(6)] == [200] * 5 + [429]


def test_the_database_holds_no_token_of_a_link(service, mail_server, works):
    signed_in(service)
    mail_server.behaves, mail_server.at = "451", "RCPT"
    ask(service, OWNER)
    works()
    (detail,) = database.run("SELECT detail FROM mail").fetchone()
    mail_server.behaves = ""
    assert Visitor(service).get(f"/app/setup/{detail}").status_code == 404


def test_without_a_mail_server_there_is_no_such_page(make_service, moved_clock):
    service = make_service()
    signed_in(service)
    visitor = Visitor(service)
    assert visitor.get("/app/forgot").status_code == 404 and visitor.post("/app/forgot", {}).status_code == 404
    assert "--password-link" in visitor.get("/app/login").text


def test_an_invitation_is_mailed_from_the_page(service, mail_server):
    owner = signed_in(service)
    form = {"email": "guest@example.org", "plan": "starter", "mail": "1"}
    owner.post("/app/people", form)
    service.work()
    (mail,) = mail_server.mails
    assert (mail["to"], mail["subject"]) == ("guest@example.org", "An invitation to Pocketbell")
    assert Visitor(service).get(setup_path(mail_server)).status_code == 200


def test_an_invitation_is_mailed_by_the_command_and_printed_too(service, mail_server):
    result = service.flask("account", "invite", "guest@example.org", "--mail")
    service.work()
    assert result.output.strip().endswith(setup_path(mail_server))


def test_without_a_mail_server_an_invitation_is_not_mailed_and_nothing_is_made(make_service, moved_clock):
    service = make_service()
    result = service.flask("account", "invite", "guest@example.org", "--mail")
    assert result.exit_code == 1 and "sends no e-mail" in result.output
    assert "guest" not in service.flask("account", "list").output
