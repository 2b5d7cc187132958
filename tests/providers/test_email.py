"""E-mail: one well-formed message of any text, and what a mail server's answers and faults mean."""

import hmac
import ssl
from base64 import b64decode
from email.headerregistry import Address as MailAddress
from email.utils import parsedate_to_datetime

import certifi
import pytest

from core import retries
from providers import email, smtp
from tests.support.accounts import OWNER
from tests.support.channels import add_mail_address, confirmed, device, mail_service
from tests.support.rows import each
from tests.support.smtp_service import SmtpService

ADDRESS = "ana@example.org"


@pytest.fixture
def service(make_service, mail_server, moved_clock):
    return mail_service(make_service, mail_server)


@pytest.fixture
def address(service, owner, mail_server):
    """A confirmed address that gets everything."""
    return confirmed(service, owner, mail_server, role="always", minPriority=1)


def plain(mail):
    """The text of a mail."""
    return mail.get_body(("plain",)).get_content().replace("\r\n", "\n")


def mailed(service, owner, mail_server, title="Backup", body="finished", **more):
    """Send this; the mail that comes."""
    mail_server.got.clear()
    answer = owner.post("/notifications/send", {"title": title, "body": body, **more})
    assert answer.json["notification"]["status"] == "pending"  # no request mails
    assert not mail_server.got
    service.work()
    (mail,) = mail_server.mails
    return mail


# The message


def test_a_mail_has_a_subject_a_text_and_the_same_as_html(service, owner, mail_server, address, moved_clock):
    mail = mailed(service, owner, mail_server, "Disk", "91 %\nof <b>nas</b>", url="https://example.com/?a=1&b=2")
    assert (mail["subject"], mail["to"], mail["from"]) == ("MCP - Disk", ADDRESS, "Bell <bell@example.org>")
    assert parsedate_to_datetime(mail["date"]).timestamp() == moved_clock.ms // 1000
    id_ = owner.listed()[0]["id"]
    assert mail["message-id"] == f"<{id_}@127.0.0.1>" and mail["auto-submitted"] == "auto-generated"
    text = plain(mail)
    assert text.startswith("91 %\nof <b>nas</b>\n\nOpen: https://example.com/?a=1&b=2\n")
    assert f"Show in Pocketbell: http://127.0.0.1:8000/app/notifications/{id_}" in text
    html = mail.get_body(("html",)).get_content().replace("\r\n", "\n")
    assert "91 %<br>\nof &lt;b&gt;nas&lt;/b&gt;" in html
    assert '<a href="https://example.com/?a=1&amp;b=2"' in html and "<b>" not in html
    assert mail_server.got[0][1] == [ADDRESS] and owner.listed()[0]["status"] == "delivered"


HOSTILE = [
    ("two lines", "Disk\r\nBcc: eve@example.org\r\n\r\nHello", "b"),
    ("other line breaks", "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", "b"),
    ("1,000 characters", "x" * 1_000, "y" * 10_000),
    ("1,000 wide characters", "\u6c34" * 1_000, "\u6c34" * 10_000),
    ("emoji", "\U0001f525\U0001f468\u200d\U0001f469\u200d\U0001f467" * 40, "\U0001f6a8"),
    ("right to left", "\u05e9\u05dc\u05d5\u05dd \u202e evil", "\u0645\u0631\u062d\u0628\u0627\n\u202eabc"),
    ("encoded words", "=?utf-8?q?Bcc=3A_eve?=", "=?utf-8?b?QQ==?="),
    ("a dot alone", "t", ".\r\n.\r\n..\r\nQUIT\r\nMAIL FROM:<eve@example.org>"),
    ("a boundary", "--===============1==", "--===============1==\r\nContent-Type: text/html\r\n\r\n<script>"),
    ("a comma and quotes", '"a", <b@c>, d;', "b"),
]


@each("_name, title, body", HOSTILE)
def test_every_text_makes_one_well_formed_message(service, owner, mail_server, address, _name, title, body):
    mail = mailed(service, owner, mail_server, title, body)
    assert not mail.defects and not any(part.defects for part in mail.walk())
    assert [part.get_content_type() for part in mail.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    assert mail["bcc"] is None and mail["to"] == ADDRESS and len(mail.get_all("subject")) == 1
    assert "".join(mail["subject"].split()) == "".join(f"MCP - {title}".split())
    lines = body.replace("\r\n", "\n")
    assert plain(mail).startswith(lines)
    raw = mail_server.got[0][2]
    assert raw.isascii() and max(map(len, raw.split(b"\r\n"))) <= 998 and b"\n" not in raw.replace(b"\r\n", b"")
    assert "<script>" not in mail.get_body(("html",)).get_content()


def test_a_long_subject_keeps_its_spaces(service, owner, mail_server, address):
    title = "Größe der Datenbank überschritten: Bücherverzeichnis (größer als 5 GB), Löschung nötig für Müller"
    assert mailed(service, owner, mail_server, title)["subject"] == f"MCP - {title}"


def test_buttons_are_links_to_pages_that_press_nothing_when_they_are_opened(service, owner, mail_server, address):
    mail = mailed(service, owner, mail_server, priority=5, actions=[{"label": "Yes", "answer": "yes"}])
    assert mail["importance"] == "high"
    (line,) = [one for one in plain(mail).split("\n") if one.startswith("Yes: ")]
    path = line.removeprefix("Yes: http://127.0.0.1:8000")
    assert service.client.get(path).status_code == 200
    assert owner.get(f"/notifications/{owner.listed()[0]['id']}").json["notification"].get("answer") is None


def test_a_long_address_that_ends_the_mails_is_not_encoded():
    stop = f"https://{'long-name.' * 20}example.org/e/token/stop"
    sender = MailAddress("Bell", addr_spec="bell@example.org")
    raw = email._built(email.Letter("t", "b", [], stop), sender, ADDRESS, "<a@b>").as_bytes()
    assert f"\r\nList-Unsubscribe: <{stop}>\r\n".encode() in raw


def test_one_press_in_the_mail_program_ends_the_mails(service, owner, mail_server, address):
    mail = mailed(service, owner, mail_server)
    assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    path = mail["list-unsubscribe"].removeprefix("<http://127.0.0.1:8000").removesuffix(">")
    assert service.client.get(path).status_code == 200 and device(owner, address["id"])
    answer = service.client.post(path, data={"List-Unsubscribe": "One-Click"})
    assert answer.status_code == 200 and device(owner, address["id"]) is None


@each(
    "id_", ["first@example.org\r\nBcc: eve@example.org", "a@b\n", "a b@example.org", "a@b@c", "<a@b.c>", "a@", "@b"]
)
def test_what_is_no_plain_mail_address_is_refused(service, owner, id_):
    answer = owner.post("/devices", {"kind": "email", "address": id_})
    assert answer.status_code == 400
    assert answer.json["error"] == "address must be a mail address, such as ana@example.org."


def test_without_a_server_the_kind_is_refused_with_that_sentence(make_service, moved_clock):
    service = make_service()
    service.account()
    answer = service.caller().post("/devices", {"kind": "email", "address": ADDRESS})
    assert answer.status_code == 400
    assert answer.json["error"] == "This server sends no e-mail: SMTP_URL and SMTP_FROM are not set."


# The server


@each(
    "behaves, at, status, said",
    [
        ("451", "RCPT", "pending", "The mail server answered 451 (Not today)."),
        ("421", "greeting", "pending", "The mail server answered 421 (Not today)."),
        ("452", "DATA", "pending", "The mail server answered 452 (Not today)."),
        ("550", "RCPT", "failed", "The mail server answered 550 (Not today)."),
        ("554", "DATA", "failed", "The mail server answered 554 (Not today)."),
        ("553", "MAIL", "failed", "The mail server answered 553 (Not today)."),
        ("closes", "", "pending", "The mail server could not be reached: the connection was lost."),
        ("250", "DATA", "pending", "The mail server could not be reached: the connection was lost."),
        ("22", "greeting", "pending", "The mail server could not be reached: it does not speak SMTP."),
        ("hangs", "", "pending", "The mail server could not be reached: it did not answer in time."),
        ("drips", "", "pending", "The mail server could not be reached: it did not answer in time."),
    ],
)
def test_what_a_server_answers_is_retried_or_failed_and_shown(
    service, owner, mail_server, address, moved_clock, monkeypatch, behaves, at, status, said
):
    mail_server.behaves, mail_server.at = behaves, at
    mail_server.got.clear()
    assert owner.send().json["notification"]["status"] == "pending"
    with monkeypatch.context() as patch:
        if "in time" in said:
            patch.setattr(email, "MIN_TIME_S", 0.0)
            patch.setattr(retries, "SLOW_DEADLINE_S", 0.3)
        service.work()
    assert owner.listed()[0]["status"] == status
    assert device(owner, address["id"])["lastError"].startswith(said)
    mail_server.behaves = ""
    moved_clock.advance(31)
    service.work()
    assert len(mail_server.got) == (1 if status == "pending" else 0)
    assert (device(owner, address["id"])["lastError"] is None) == (status == "pending")


def settings(mail_server, user="", password="", is_tls=False, host="127.0.0.1"):
    return smtp.SmtpServer(is_tls, host, mail_server.port, user, password, MailAddress(addr_spec="bell@example.org"))


DIGEST = f"ü {hmac.digest('ä'.encode(), b'Password:', 'md5').hex()}"


@each("way, given", [("PLAIN", ["\0ü\0ä"]), ("LOGIN", ["ü", "ä"]), ("CRAM-MD5", [DIGEST])])
def test_a_connection_is_encrypted_where_the_server_offers_it(authority, monkeypatch, way, given):
    monkeypatch.setattr(smtp, "ca_file", lambda: authority.ca_file)
    mail_server = SmtpService(authority.context(), offers=("STARTTLS", f"AUTH {way}"))
    answer = smtp.send(settings(mail_server, "ü", "ä"), ADDRESS, b"Subject: a\r\n\r\nb\r\n", 5)
    assert answer.error is None and mail_server.was_encrypted == [True]
    assert [b64decode(one).decode() for one in mail_server.passwords] == given
    mail_server.close()


def test_the_last_way_to_sign_in_has_the_time_that_is_left(mail_server, monkeypatch):
    mail_server.offers, send, left = ("AUTH CRAM-MD5",), smtp.send, []
    monkeypatch.setattr(smtp, "send", lambda *given: left.append(given[3]) or send(*given))
    assert send(settings(mail_server, "u", "p"), None, b"", 5).error is None and 0 < left[0] < 5


def test_smtps_is_encrypted_from_the_first_byte(authority, monkeypatch):
    monkeypatch.setattr(smtp, "ca_file", lambda: authority.ca_file)
    mail_server = SmtpService(authority.context(), is_tls=True)
    answer = smtp.send(settings(mail_server, is_tls=True), ADDRESS, b"Subject: a\r\n\r\nb\r\n", 5)
    assert answer.error is None and mail_server.was_encrypted == [True]
    mail_server.close()


@pytest.mark.parametrize("is_tls", [True, False])
def test_a_certificate_that_is_not_trusted_gets_no_mail_and_no_password(authority, is_tls, monkeypatch):
    monkeypatch.setattr(smtp, "ca_file", certifi.where)
    mail_server = SmtpService(authority.context(), is_tls=is_tls, offers=("STARTTLS", "AUTH PLAIN"))
    assert smtp.send(settings(mail_server, "u", "p", is_tls), None, b"", 5).error is None  # on this machine, any is
    mail_server.passwords.clear()
    monkeypatch.setattr(smtp, "THIS_MACHINE", ())
    answer = smtp.send(settings(mail_server, "u", "p", is_tls), ADDRESS, b"Subject: a\r\n\r\nb\r\n", 5)
    assert (answer.outcome.value, answer.error) == (
        "configuration",
        "The mail server could not be reached: its certificate is not trusted.",
    )
    assert not mail_server.got and not mail_server.passwords
    mail_server.close()


def test_a_certificate_of_another_name_is_not_trusted(authority, monkeypatch):
    monkeypatch.setattr(smtp, "ca_file", lambda: authority.ca_file)
    mail_server = SmtpService(authority.context(), is_tls=True)
    answer = smtp.send(settings(mail_server, is_tls=True, host="::ffff:127.0.0.1"), ADDRESS, b"", 5)
    assert answer.error == "The mail server could not be reached: its certificate is not trusted."
    mail_server.close()


def test_a_password_is_not_sent_without_encryption_to_another_machine(mail_server, monkeypatch):
    monkeypatch.setattr(smtp, "THIS_MACHINE", ())
    mail_server.offers = ("AUTH PLAIN",)
    answer = smtp.send(settings(mail_server, "u", "p"), ADDRESS, b"Subject: a\r\n\r\nb\r\n", 5)
    assert answer.outcome.value == "configuration" and "STARTTLS" in answer.error and not mail_server.passwords
    assert smtp.send(settings(mail_server), ADDRESS, b"Subject: a\r\n\r\nb\r\n", 5).error is None  # none to lose
    mail_server.offers, mail_server.behaves, mail_server.at = ("STARTTLS",), "454", "STARTTLS"
    answer = smtp.send(settings(mail_server), ADDRESS, b"Subject: a\r\n\r\nb\r\n", 5)
    assert answer.outcome.value == "configuration" and len(mail_server.got) == 1  # what is offered must work
    mail_server.behaves, mail_server.at = "421", "EHLO"
    answer = smtp.send(settings(mail_server, "u", "p"), ADDRESS, b"", 5)
    assert (answer.outcome.value, answer.error) == ("transient", "The mail server answered 421 (Not today).")


def test_a_server_that_is_not_there_is_tried_again():
    mail_server = SmtpService()
    mail_server.close()
    answer = smtp.send(settings(mail_server), ADDRESS, b"", 5)
    said = "The mail server could not be reached: no connection could be made."
    assert (answer.outcome.value, answer.error) == ("transient", said)


def test_a_refused_password_is_the_operators_fault(mail_server):
    mail_server.offers, mail_server.behaves, mail_server.at = ("AUTH PLAIN",), "535", "AUTH"
    answer = smtp.send(settings(mail_server, "u", "p"), ADDRESS, b"", 5)
    assert (answer.outcome.value, answer.error) == (
        "configuration",
        "The mail server refused the name or password (535). Check SMTP_URL.",
    )
    mail_server.offers, mail_server.behaves, mail_server.at = (), "530", "MAIL"
    for to in (ADDRESS, None):  # a check sends no mail that the server could refuse
        answer = smtp.send(settings(mail_server, "u", "p"), to, b"", 5)
        assert answer.outcome.value == "configuration" and "does not accept passwords" in answer.error


def test_the_service_trusts_what_ssl_cert_file_names(make_service, authority, moved_clock):
    mail_server = SmtpService(authority.context(), is_tls=True)
    service = mail_service(make_service, mail_server, SSL_CERT_FILE=authority.ca_file)
    service.account(OWNER)
    add_mail_address(service.caller())
    service.work()
    assert len(mail_server.got) == 1 and isinstance(authority.context(), ssl.SSLContext)
    mail_server.close()
