"""`flask account`: create, list, set."""

import re

import pytest

from tests.support.accounts import OWNER, PASSWORD
from tests.support.commands import printed, said
from tests.support.pages import Visitor
from tests.support.rows import each

# --- account create -----------------------------------------------------------------------------------------


def test_account_create_prints_a_one_time_link_alone_when_there_is_no_password(flask):
    line = printed(flask("account", "create", OWNER))
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/app/setup/[\w-]{32,}", line)


def test_the_printed_link_begins_with_base_url(make_service, moved_clock):
    service = make_service(BASE_URL="https://bell.example.org")
    assert printed(service.flask("account", "create", OWNER)).startswith("https://bell.example.org/app/setup/")


def test_account_create_with_a_password_prints_one_line_and_no_link(flask):
    line = printed(flask("account", "create", OWNER, "--password-stdin", stdin=PASSWORD))
    assert OWNER in line and "/app/setup/" not in line and PASSWORD not in line


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_password_on_standard_input_signs_in_with_or_without_a_line_end(service, end):
    printed(service.flask("account", "create", OWNER, "--password-stdin", stdin=PASSWORD + end))
    assert Visitor(service).sign_in().status_code == 303


@each("password", ["", "\n", "elevenchars", "elevenchars\n", "elevenchars\r\n"])
def test_a_password_of_less_than_12_characters_is_refused_and_no_account_made(flask, password):
    assert "12 characters" in said(flask("account", "create", OWNER, "--password-stdin", stdin=password))
    assert flask("account", "list").stdout == ""


@pytest.mark.parametrize("lines", [f"{PASSWORD}\n{PASSWORD}\n", f"{PASSWORD}\n\n", f"{PASSWORD}\rmore"])
@pytest.mark.parametrize("command", ["create", "set"])
def test_a_password_of_several_lines_which_no_form_can_send_is_refused(service, command, lines):
    if command == "set":
        printed(service.flask("account", "create", OWNER, "--password-stdin", stdin="another good password"))
    refusal = said(service.flask("account", command, OWNER, "--password-stdin", stdin=lines))
    assert "several lines" in refusal and PASSWORD not in refusal
    assert service.flask("account", "list").stdout.count("\n") == (command == "set")
    assert command == "create" or Visitor(service).sign_in(password="another good password").status_code == 303


@pytest.mark.parametrize("options, plan", [((), "starter"), (("--plan", "scale"), "scale")])
def test_an_account_is_starter_unless_told_otherwise(service, options, plan):
    printed(service.flask("account", "create", OWNER, *options))
    assert service.caller(OWNER).get("/stats").json["stats"]["plan"] == plan


# --- account list, account set ------------------------------------------------------------------------------


def test_account_list_prints_a_line_for_each_account(flask):
    for email in ("a@example.org", "b@example.org", "c@example.org"):
        flask("account", "create", email)
    listed = flask("account", "list")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == [
        *("c@example.org", "b@example.org", "a@example.org")
    ]


def test_account_set_prints_one_line_with_the_new_settings(owned):
    line = printed(owned("account", "set", OWNER, "--plan", "pro", "--timezone", "Europe/Berlin"))
    assert OWNER in line and "pro" in line and "Europe/Berlin" in line


def test_a_new_password_takes_the_place_of_the_old_one(service):
    service.flask("account", "create", OWNER, "--password-stdin", stdin=PASSWORD)
    printed(service.flask("account", "set", OWNER, "--password-stdin", stdin="another good password"))
    assert Visitor(service).sign_in().status_code == 422
    assert Visitor(service).sign_in(password="another good password").status_code == 303


def test_a_password_that_is_too_short_changes_nothing(owned):
    assert "12 characters" in said(owned("account", "set", OWNER, "--plan", "pro", "--password-stdin", stdin="short"))
    assert "pro" not in owned("account", "list").stdout
