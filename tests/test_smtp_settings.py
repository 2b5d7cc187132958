"""SMTP_URL and SMTP_FROM: good values, and one without the other."""

from email.headerregistry import Address

import pytest

from config import SettingError, load
from tests.support.rows import each


def email(**environ):
    return load(environ).providers["email"]


def test_a_url_has_a_server_a_port_a_name_and_a_password():
    *found, _ = email(SMTP_URL="smtps://a%40b.c:p%2Fw%3A@mail.example.org:465", SMTP_FROM="Bell <bell@example.org>")
    assert found == [True, "mail.example.org", 465, "a@b.c", "p/w:", Address("Bell", addr_spec="bell@example.org")]


def test_the_usual_ports_go_without_saying_and_a_name_that_is_an_address_is_the_sender():
    found = email(SMTP_URL="smtps://a%40b.c:p@mail")
    assert (*found[2:5], found.sender.addr_spec) == (465, "a@b.c", "p", "a@b.c")
    assert email(SMTP_URL="smtp://mail", SMTP_FROM="a@b.c").port == 587


def test_without_either_there_is_no_email():
    assert email() is None


@each("environ", [{"SMTP_FROM": "a@b.c"}, {"SMTP_URL": "smtp://mail"}, {"SMTP_URL": "smtp://user:secret@mail"}])
def test_a_half_set_pair_is_refused(environ):
    with pytest.raises(SettingError) as refused:
        email(**environ)
    assert "is set, but" in str(refused.value) and "secret" not in str(refused.value)
