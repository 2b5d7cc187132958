"""What every list prints: tabs in a pipe, a table on a terminal, JSON with the names of REST."""

import fcntl
import json
import os
import struct
import termios

import pytest

from cli import base
from tests.support.accounts import OWNER
from tests.support.commands import UNRULY
from tests.support.rows import each

LISTS = ("key", "alert", "heartbeat", "rule", "device")


@pytest.fixture
def terminal(monkeypatch):
    """Make stdout a terminal of so many columns."""
    return lambda columns: monkeypatch.setattr(base, "_terminal_width", lambda: columns)


def document(result):
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def table(result):
    assert result.exit_code == 0
    return result.stdout.splitlines()


# --- JSON ---------------------------------------------------------------------------------------------------


@each("noun, address, name", [("key", "/api-keys", "apiKeys"), ("device", "/devices", "devices")])
def test_json_output_equals_rests(full, service, noun, address, name):
    service.caller(OWNER, "used").get(address)  # it is used before REST and the command look
    listed = service.caller(OWNER, "another").get(address).json[name]
    assert document(full(noun, "list", OWNER, "--json"))[-len(listed) :] == listed[-len(listed) :]


def test_json_of_an_alert_includes_its_holds_and_address(full, service):
    (alert,) = service.caller(OWNER).get("/alerts").json["alerts"]
    (listed,) = document(full("alert", "list", OWNER, "--json"))
    address = full("alert", "list", OWNER).stdout.rstrip().split("\t")[-1]
    assert listed == {**alert, "frequency": "1h", "quietHours": "urgent", "address": address}


def test_json_of_a_heartbeat_says_also_its_address(full, service):
    (watch,) = service.caller(OWNER).get("/watches").json["watches"]
    (listed,) = document(full("heartbeat", "list", OWNER, "--json"))
    address = full("heartbeat", "list", OWNER).stdout.rstrip().split("\t")[-1]
    assert listed == {**watch, "address": address}


def test_json_of_a_rule_says_also_whose_it_is(full, service):
    (rule,) = service.caller(OWNER).get("/watches").json["rules"]
    assert document(full("rule", "list", "--json")) == [{**rule, "email": OWNER}]


def test_json_of_accounts_has_times_in_milliseconds(full):
    account = {"email": OWNER, "plan": "starter", "timeZone": "UTC"}
    created = {"createdAt": 1795255200000, "quietHours": "22:00-07:00"}
    people = {"isAdministrator": True, "state": "enabled"}
    assert document(full("account", "list", "--json")) == [account | created | people]


@each("noun", LISTS)
def test_json_of_nothing_is_an_empty_array(owned, noun):
    assert owned(noun, "list", OWNER, "--json").stdout == "[]\n"


@each("name", [*UNRULY, "a\x7fb", "a\x9b31mb", "漢字 😀"])
def test_json_has_every_name_and_no_character_that_a_terminal_would_obey(owned, name):
    owned("key", "create", OWNER, name)
    result = owned("key", "list", OWNER, "--json")
    assert result.stdout.isascii() and result.stdout.replace("\n", "").isprintable()
    assert document(result)[0]["name"] == name


# --- in a pipe ----------------------------------------------------------------------------------------------


@each("noun", LISTS)
def test_a_pipe_gets_no_headings(full, noun):
    (line,) = full(noun, "list", OWNER).stdout.splitlines()
    assert "\t" in line and "NAME" not in line


# --- on a terminal ------------------------------------------------------------------------------------------


def test_a_terminal_gets_headings_over_fitted_columns(full, terminal):
    service_line = full("account", "list").stdout.rstrip().split("\t")
    terminal(100)
    heading, line = table(full("account", "list"))
    assert heading.split("  ")[0] == "EMAIL" and "  CREATED               QUIET HOURS  ROLE" in heading
    assert [cell.strip() for cell in line.split("  ") if cell] == service_line
    assert all(heading.index(word) == line.index(cell) for word, cell in [("PLAN", "starter"), ("TIME ZONE", "UTC")])


@each("noun", LISTS)
@each("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(full, terminal, noun, columns):
    terminal(columns)
    lines = table(full(noun, "list", OWNER))
    assert max(map(len, lines)) <= columns


@each("noun", LISTS)
def test_an_id_is_whole_however_narrow_the_terminal_is(full, terminal, noun):
    terminal(None)
    whole = full(noun, "list", OWNER).stdout.split("\t")[0]
    terminal(10)
    assert table(full(noun, "list", OWNER)) == ["ID", whole]


def test_an_address_is_whole_or_not_there(full, terminal):
    address = full("heartbeat", "list", OWNER).stdout.rstrip().split("\t")[-1]
    terminal(200)
    assert address in full("heartbeat", "list", OWNER).stdout
    terminal(80)
    result = full("heartbeat", "list", OWNER)
    assert "http" not in result.stdout
    assert "no room for LAST PING, DEADLINE, ADDRESS; a pipe" in result.stderr


def test_stored_values_are_not_named_as_left_out(full, terminal):
    terminal(300)
    assert [full(noun, "list", OWNER).stderr for noun in LISTS] == [""] * len(LISTS)


def test_a_long_name_is_shortened_and_not_the_rest(owned, terminal):
    owned("key", "create", OWNER, "x" * 100)
    terminal(150)
    heading, line = table(owned("key", "list", OWNER))
    assert len(line) <= 150 and "xxxxx…  20" in line and "REVOKED" in heading


def test_characters_of_double_width_keep_the_columns_in_line(owned, terminal):
    for name in ("漢字", "e\u0301a", "plain"):
        owned("key", "create", OWNER, name)
    terminal(200)
    heading, *lines = table(owned("key", "list", OWNER))
    at = heading.index("CREATED")
    assert [line.index("20", 52) for line in lines] == [at, at + 1, at - 2]  # newest first; 漢字 has two cells each


@each("name", UNRULY)
def test_a_control_character_never_reaches_the_terminal(owned, terminal, name):
    owned("key", "create", OWNER, name)
    terminal(200)
    count, result = len(document(owned("key", "list", OWNER, "--json"))), owned("key", "list", OWNER)
    assert len(table(result)) == 1 + count and result.stdout.replace("\n", "").isprintable()


@each("noun", LISTS)
def test_a_terminal_is_told_that_a_list_is_empty(owned, terminal, noun):
    terminal(80)
    assert owned(noun, "list", OWNER).stdout == f"There are no {noun}s.\n"


def test_a_terminal_is_as_wide_as_it_says(monkeypatch):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 97, 0, 0))
    monkeypatch.delenv("COLUMNS", raising=False)
    with os.fdopen(theirs, "w") as stdout, os.fdopen(ours), monkeypatch.context() as patched:
        patched.setattr("sys.stdout", stdout)
        patched.setattr("sys.__stdout__", stdout)
        assert base._terminal_width() == 97
