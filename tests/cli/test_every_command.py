"""What every command on an account has in common: its account, its ids, its arguments, the text in them."""

import os

import click
import pytest

import cli
from tests.support.accounts import OTHER, OWNER
from tests.support.commands import UNRULY, said
from tests.support.rows import each

NOT_UTF_8 = os.fsdecode(b"caf\xe9")  # as Python sees such an argument
COMMANDS = [
    *("account set EMAIL --plan pro", "account delete EMAIL --yes"),
    *("account disable EMAIL", "account enable EMAIL"),
    *("key create EMAIL NAME", "key list EMAIL", "key revoke EMAIL ID"),
    *("alert create EMAIL NAME", "alert list EMAIL", "alert show EMAIL ID", "alert set EMAIL ID --title T"),
    *("alert rotate EMAIL ID", "alert delete EMAIL ID"),
    *("heartbeat create EMAIL NAME --period 1h", "heartbeat list EMAIL", "heartbeat set EMAIL ID --period 1h"),
    *("heartbeat pause EMAIL ID", "heartbeat resume EMAIL ID", "heartbeat delete EMAIL ID", "heartbeat key EMAIL"),
    *("rule create EMAIL NAME cpu >90", "rule list EMAIL", "rule delete EMAIL ID"),
    *("device add EMAIL apns " + "cd" * 32 + " --name NAME", "device list EMAIL", "device remove EMAIL ID"),
    "device set EMAIL ID --min-priority 4",
    *("history delete EMAIL --before 2026-01-01", "metric delete EMAIL web", "send EMAIL title body"),
    *("import-ntfy EMAIL x", "import-gotify EMAIL x", "import-healthchecks EMAIL x"),
    *("apply EMAIL -", "export EMAIL", "mute EMAIL all 1h", "unmute EMAIL all", "mutes EMAIL"),
    *("follow invite EMAIL alert:NAME x@example.org", "follow followers EMAIL alert:NAME"),
    "follow remove EMAIL alert:NAME ID",
    *("follow list EMAIL", "follow accept EMAIL ID", "follow decline EMAIL ID", "follow leave EMAIL ID"),
]
LISTS = [command for command in COMMANDS if " list " in command]
OF_AN_ID = [command for command in COMMANDS if " ID" in command]
NAMED = [command for command in COMMANDS if " NAME" in command]


def filled(command, email=OWNER, id_="x", name="N"):
    """The arguments of a command."""
    values = {"EMAIL": email, "ID": id_, "NAME": name}
    return [values.get(part, part) for part in command.split()]


def leaves(group, *path):
    """The names of all commands on an account, with their groups'."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        elif path != ("account",) or name not in ("create", "invite", "list"):
            yield " ".join((*path, name))


def listed(flask):
    """What all lists print."""
    return {command: flask(*filled(command)).stdout for command in LISTS}


@pytest.fixture
def full(full):
    """The same, and an invitation to it."""
    full("account", "create", "ana@example.org")
    full("alert", "create", "ana@example.org", "Theirs")
    full("follow", "invite", "ana@example.org", "alert:Theirs", OWNER)
    return full


@pytest.fixture
def other(service, full):
    """The command line with another account, which has nothing."""
    service.account(OTHER)
    return full


def test_the_commands_are_all_that_there_are():
    named = {command.partition(" EMAIL")[0] for command in COMMANDS}
    assert named == set(leaves(cli.pocketbell)) - {"backup", "import", "doctor", "serve", "man"}


@each("command", COMMANDS)
def test_an_unknown_account_is_an_error_in_one_line(owned, command):
    for email in ("nobody@example.org", "a\nb@example.org", NOT_UTF_8):
        said(owned(*filled(command, email)))


@pytest.fixture
def unchanged(full):
    """The command line, after whose commands all lists must be as before."""
    before = listed(full)
    yield full
    assert listed(full) == before


@each("command", OF_AN_ID)
def test_an_unknown_id_is_an_error_in_one_line_and_changes_nothing(unchanged, command):
    for unknown in ("x", "", "a\nb", "%", "a" * 10_000, "a\x00b", NOT_UTF_8):
        said(unchanged(*filled(command, id_=unknown)))


@each("command", OF_AN_ID)
def test_an_id_of_another_account_is_an_unknown_one(other, command):
    before = listed(other)
    id_ = before[f"{command.split()[0]} list EMAIL"].split("\t")[0]
    theirs, unknown = said(other(*filled(command, OTHER, id_))), "f" * len(id_)
    assert theirs == said(other(*filled(command, OTHER, unknown))).replace(unknown, id_)
    assert listed(other) == before


@each("command", LISTS)
def test_a_list_has_nothing_of_other_accounts(other, command):
    assert other(*filled(command, OTHER)).output == ""


@each("command", COMMANDS)
def test_wrong_usage_ends_with_status_2_and_prints_nothing_on_stdout(unchanged, command):
    words = filled(command)
    extra = [*words, "extra"] if not command.startswith("metric") else [*words, "extra", "extra"]
    for wrong in ([*words, "--nonsense"], extra, words[: words.index(OWNER)]):
        if wrong != ["rule", "list"]:  # of all accounts
            result = unchanged(*wrong)
            assert (result.exit_code, result.stdout) == (2, ""), wrong
            assert "Traceback" not in result.stderr


@each(
    "wrong",
    [
        *("account create EMAIL --plan gold", "account delete EMAIL", "account set EMAIL --plan Pro", "backup"),
        *("backup a b", "device add EMAIL sms 123", "alert create EMAIL NAME --frequency 2h", "key revoke EMAIL"),
        *("account create EMAIL --password P", "account set EMAIL --password P"),  # never an argument
        "device set EMAIL x --min-priority 9",
    ],
)
def test_other_wrong_usage_does_so_too(owned, wrong):
    result = owned(*filled(wrong))
    assert (result.exit_code, result.stdout) == (2, "")


@each("command", NAMED)
def test_a_name_breaks_no_line_of_a_list_and_is_a_text_of_1_to_100_characters(full, command):
    names = UNRULY[:3]
    for name in names:
        assert full(*filled(command, name=name)).exit_code == 0
    for name in (NOT_UTF_8, "", " ", "\n", "x" * 101):
        said(full(*filled(command, name=name)))
    shown = listed(full)[f"{command.split()[0]} list EMAIL"]
    assert len(shown.splitlines()) == 1 + (1 if command.startswith("device") else len(names))
    assert len({line.count("\t") for line in shown.splitlines()}) == 1
    assert shown.replace("\t", "").replace("\n", "").isprintable()
