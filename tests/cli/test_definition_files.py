"""`apply` makes an account as a file says, all or nothing; `export` prints such a file."""

import itertools
import os
import re
import signal
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import accounts, alerts, definition_files, presets
from core.definitions import ALERT, HEARTBEAT, KINDS, RULE, account_change, account_fields
from core.local_time import COLLECTED_MS
from process import clock
from store import database
from tests.support.accounts import OWNER
from tests.support.commands import said
from tests.support.forks import Fork
from tests.support.moving import run_command
from tests.support.rows import each
from tests.support.server import BIN, PATIENCE_S, ROOT, serving

FILE = """
[account]
timeZone = "Europe/Berlin"

[[alert]]
name = "Disk full"
title = "{{ host }}"

[[heartbeat]]
name = "Backup"
periodS = 3600

[[rule]]
project = "nas"
metric = "cpu"
when = "> 90"
"""
MADE = [
    "account: timeZone UTC → Europe/Berlin",
    "alert Disk full: make",
    "heartbeat Backup: make",
    "rule nas cpu > 90: make",
]
NOTHING = ["Nothing changes."]


@pytest.fixture
def apply(owned):
    """Apply a text to the owner's account, and return the lines that are printed."""

    def run(text, *options):
        result = owned("apply", OWNER, "-", *options, stdin=text)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout.splitlines()

    return run


def everything(email=OWNER):
    """All definitions of an account, and its settings."""
    account = accounts.find_account(email)
    found = {kind.name: [kind.fields_of(one) for one in kind.of_account(account.seq)] for kind in KINDS}
    return found, account_fields(account)


def test_a_file_makes_what_it_names_and_a_second_run_changes_nothing(apply):
    assert apply(FILE) == MADE
    there = everything()
    assert apply(FILE) == NOTHING and everything() == there
    assert [there[0]["heartbeat"][0][field] for field in ("name", "periodS", "graceS")] == ["Backup", 3600, 600]


def test_the_file_of_the_documentation_can_be_applied(apply):
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/command-line.md").read_text(), re.S)
    assert len(apply(shown)) == 4
    assert apply(shown) == NOTHING


def test_a_line_says_how_each_field_changes(apply):
    apply(FILE)
    changed = FILE.replace("periodS = 3600", 'cron = "0 3 * * *"\ngraceS = 900').replace(
        '"> 90"', '">90.0"\nforS = 300'
    )
    assert apply(changed.replace("{{ host }}", "x" * 60)) == [
        f"alert Disk full: title {{{{ host }}}} → {'x' * 49}…",
        "heartbeat Backup: periodS 3600 → none, graceS 600 → 900, cron none → 0 3 * * *",
        "rule nas cpu > 90: forS 0 → 300",
    ]
    assert apply(FILE.replace("{{ host }}", "") + 'forS = 0\n[[alert]]\nname = "B"\nisActive = false')[0] == (
        f"alert Disk full: title {'x' * 49}… → none"
    )
    assert apply('[[alert]]\nname = "B"\nisActive = true') == ["alert B: isActive false → true"]


def test_a_dry_run_prints_the_same_lines_and_changes_nothing(apply):
    before = everything()
    assert apply(FILE, "--dry-run") == MADE and everything() == before
    apply(FILE)
    assert apply("", "--dry-run", "--prune") == apply("", "--prune") != NOTHING


def test_what_the_file_does_not_name_stays_unless_pruned(apply):
    apply(FILE)
    other = '[[alert]]\nname = "Other"\n'
    assert apply(other) == ["alert Other: make"]
    assert apply(FILE) == NOTHING
    removed = ["alert Disk full: remove", "heartbeat Backup: remove", "rule nas cpu > 90: remove"]
    assert apply(other, "--prune") == removed
    assert apply(other, "--prune") == NOTHING
    assert everything()[1]["timeZone"] == "Europe/Berlin"


def test_a_field_that_the_file_does_not_name_stays(apply):
    apply('[[alert]]\nname = "Disk"\npreset = "grafana"\n')
    apply('[[alert]]\nname = "Disk"\nbody = "mine"\n')
    assert apply('[[alert]]\nname = "Disk"\npreset = "grafana"\nicon = "server"\n') == [
        f"alert Disk: icon {presets.BY_ID['grafana'].icon} → server"
    ]
    assert everything()[0]["alert"][0]["body"] == "mine"


def test_the_fields_beside_a_new_preset_win(apply):
    apply('[[alert]]\nname = "Disk"\ntitle = "mine"\n')
    file = '[[alert]]\nname = "Disk"\ntitle = "mine"\npreset = "grafana"\n'
    assert "title" not in apply(file)[0]
    assert apply(file) == NOTHING


def test_pruned_definitions_make_room_for_new_ones(apply, monkeypatch):
    monkeypatch.setattr(alerts, "MAX_ALERTS", 1)
    apply('[[alert]]\nname = "Old"\n')
    assert apply('[[alert]]\nname = "New"\n', "--prune") == ["alert Old: remove", "alert New: make"]


def paused_after_a_flood():
    (alert,) = ALERT.of_account(1)
    with database.transaction(1):
        alert.change(is_active=0, paused_at=5)


def test_a_file_that_switches_an_alert_on_does_not_end_its_pause_after_a_flood(apply):
    apply(file := '[[alert]]\nname = "Disk"\nisActive = true\n')
    paused_after_a_flood()
    assert apply(file) == NOTHING
    assert apply(file + 'icon = "server"\n') == ["alert Disk: icon bell → server"]
    assert (ALERT.of_account(1)[0].is_active, ALERT.of_account(1)[0].paused_at) == (0, 5)


def test_an_export_of_an_alert_that_is_paused_after_a_flood_has_what_its_owner_set_and_a_file_switches_it_off(
    apply, owned
):
    apply('[[alert]]\nname = "Disk"\n')
    paused_after_a_flood()
    exported = owned("export", OWNER).stdout
    assert "isActive = true" in exported and apply(exported) == NOTHING
    assert ALERT.of_account(1)[0].paused_at == 5
    off = '[[alert]]\nname = "Disk"\nisActive = false\n'
    assert (apply(off), apply(off)) == (["alert Disk: isActive true → false"], NOTHING)
    assert ALERT.of_account(1)[0].paused_at is None
    assert apply(off.replace("false", "true")) == ["alert Disk: isActive false → true"]


# A wrong file

WRONG = {
    "name = 1": "Line 1, name: This is not known: a file has [[alert]], [[heartbeat]], [[rule]] and [account].",
    "\n[[alerts]]\nname = 'x'": "Line 2, alerts: This is not known",
    "[alert]\nname = 'x'": "Line 1, alert: This must be a table: [[alert]].",
    "alert = [1]": "Line 1, alert: This must be a table: [[alert]].",
    "[[account]]": "Line 1, account: This must be a table: [account].",
    "[account]\n\nzone = 'UTC'": "Line 3, account: zone is not known: only timeZone, quietHours can be set.",
    "[account]\ntimeZone = 'Mars'": "Line 2, account: ",
    "[[alert]]\nname = 'a'\n[[alert]]\n# none\nicon = 'server'": "Line 3, alert: name is required.",
    "[[alert]]\nname = 'a'\nbdoy = 'x'": "Line 3, alert: bdoy is not known: only name, icon, ",
    "[[alert]]\nbody = '''\n[[alert]]\nname = 1\n'''\nname = 1": "Line 6, alert: name must be a string.",
    "[[alert]]\nname = 'a'\ntitle = '{{ a | no }}'": "Line 3, alert: title",
    '[[alert]]\nname = "\\u0000"': "Line 2, alert: name is not valid text.",
    "[[alert]]\nname = 'a'\n[alert.more]\nx = 1": "Line 3, alert: more is not known",
    "alert = [{name = 'a'}, {name = 2}]": "Line 1, alert: name must be a string.",
    "[[alert]]\nname = 'a'\n[[alert]]\nname = ' a '": "Line 4, alert: alert a is in line 1 already.",
    "[[heartbeat]]\nname = 'a'": "Line 1, heartbeat: periodS: Set a period or a cron expression.",
    "[[heartbeat]]\nname = 'a'\nperiodS = 60\ncron = '* * * * *'": "Line 3, heartbeat: periodS: Set either",
    "[[heartbeat]]\nname = 'a'\nperiodS = 60\npriority = 2026-01-01": "Line 4, heartbeat: priority must be",
    "[[rule]]\nproject = 'a'\nmetric = 'b'": "Line 1, rule: when is required.",
    "[[rule]]\nproject = 'a'\nmetric = 'b'\nwhen = 'silent 1d'\nforS = 60": "Line 5, rule: forS",
    "[[alert]]\nname = ": "This is not TOML: Invalid value (at line 2, column 8).",
    "[[alert]]\nname = 1\nname = 2": "This is not TOML: Cannot overwrite a value (at line 3, column 9).",
    "[[alert]]\nname = 'a' x": "This is not TOML: Expected newline or end of document after a statement (at line 2, ",
    f"[[alert]]\nname = 'a'\n{'k' * 200} = 1": f"Line 3, alert: {'k' * 100} is not known",
    "alert = [\n  {name = 'a'},\n  {name = 2},\n]": "Line 3, alert: name must be a string.",
    "[[alert]]\nname = 'a'\nbad = [\n\n": "This is not TOML: Invalid value (at line 3, the last one).",
    f"x = {'[' * 5_000}": "Arrays or tables are too deep within each other.",
    f"x = {'9' * 5_000}": "This is not TOML: Exceeds the limit",
}


@each("text, sentence", WRONG.items())
def test_a_wrong_file_changes_nothing_and_the_error_names_field_and_line(owned, text, sentence):
    before = everything()
    result = owned("apply", OWNER, "-", "--prune", stdin=text)
    assert said(result).startswith(f"Error: {sentence}")
    good = 'alert = [{name = "Good"}]\n' if text.startswith(("[[h", "[[r")) else ""
    said(owned("apply", OWNER, "-", "--prune", stdin=good + text))
    assert everything() == before


def test_beyond_a_limit_nothing_is_made_and_the_error_names_the_line(owned):
    text = "".join(f"[[heartbeat]]\nname = '{n}'\nperiodS = 60\n" for n in range(101))
    assert said(owned("apply", OWNER, "-", stdin=text)) == (
        "Error: Line 301, heartbeat: You already have 100 heartbeats. Delete one first."
    )
    assert everything()[0]["heartbeat"] == []


def test_of_two_alerts_that_have_the_name_none_is_changed_or_exported(owned):
    for _ in range(2):
        owned("alert", "create", OWNER, "Disk")
    sentence = "2 alerts have this name. Delete or change one."
    assert said(owned("apply", OWNER, "-", stdin="[[alert]]\nname = 'Disk'")) == f"Error: Line 2, alert: {sentence}"
    assert said(owned("export", OWNER)) == f"Error: alert Disk: {sentence}"


def test_a_file_is_read_as_utf8_with_or_without_a_mark_and_with_any_line_ends(owned, tmp_path):
    file = tmp_path / "alerts.toml"
    file.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())
    assert owned("apply", OWNER, file).stdout.splitlines() == MADE
    file.write_bytes(b"name = '\xff'")
    assert said(owned("apply", OWNER, file)) == "Error: The file is not UTF-8."
    assert said(owned("apply", OWNER, "-", stdin=b"\xff")) == "Error: The file on standard input is not UTF-8."
    assert said(owned("apply", OWNER, tmp_path / "none")).startswith("Error: No such file or directory")
    assert said(owned("apply", "nobody@example.org", file)).startswith("Error: There is no account")


# All or none


def test_fifty_of_each_kind_are_made_at_once_and_a_second_run_changes_nothing(apply):
    text = "".join(
        f"[[alert]]\nname = '{n}'\n[[heartbeat]]\nname = '{n}'\nperiodS = 60\n"
        f"[[rule]]\nproject = '{n}'\nmetric = 'm'\nwhen = '> 1'\n"
        for n in range(50)
    )
    assert len(apply(text)) == 150
    assert apply(text) == NOTHING


def test_an_error_in_the_middle_undoes_everything(owned, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    before = everything()
    monkeypatch.setattr(definition_files.Kind, "create", fails_third(definition_files.Kind.create, fail))
    assert isinstance(owned("apply", OWNER, "-", stdin=FILE).exception, ZeroDivisionError)
    assert everything() == before


def fails_third(call, fail):
    """The function, which fails as `fail` does when it is called for the third time."""
    calls = []

    def called(*arguments):
        calls.append(arguments)
        return fail(*arguments) if len(calls) == 3 else call(*arguments)

    return called


def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def killed_in_the_middle():
    definition_files.Kind.create = fails_third(definition_files.Kind.create, kill)


def test_beside_the_service_a_kill_leaves_nothing_and_what_was_applied_counts_at_once(tmp_path):
    (file := tmp_path / "alerts.toml").write_text(FILE)
    with serving(tmp_path / "data") as server:
        server.wait_until_ready().owner_key()
        streams = tmp_path / "stdout", tmp_path / "stderr"
        command = [BIN / "flask", "apply", OWNER, file]
        died = Fork(command, server.environ, *streams, before=killed_in_the_middle)
        assert died.wait(PATIENCE_S) == -signal.SIGKILL
        with server.beside():
            assert everything() == ({kind.name: [] for kind in KINDS}, {"timeZone": "UTC", "quietHours": "off"})
        assert run_command(server.data_dir, "apply", OWNER, file).stdout.splitlines() == MADE
        with server.beside():
            paths = [f"/p/{ALERT.of_account(1)[0].short_code}", f"/ping/{HEARTBEAT.of_account(1)[0].ping_id}"]
        assert [server.request("POST", path, "{}").status for path in paths] == [200, 200]
        run_command(server.data_dir, "apply", OWNER, file)
        assert [server.request("POST", path, "{}").status for path in paths] == [200, 200]
        file.write_text("")
        run_command(server.data_dir, "apply", OWNER, file, "--prune")
        assert [server.request("POST", path, "{}").status for path in paths] == [404, 404]


# export

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NAMES = TEXTS.map(str.strip).filter(bool)
TEMPLATES = st.none() | TEXTS.map(lambda text: text.replace("{{", "").strip()).filter(bool)
ALERTS = st.fixed_dictionaries(
    {
        "icon": st.sampled_from(sorted(alerts.ICONS)),
        "color": st.from_regex(alerts.COLOR, fullmatch=True),
        "isActive": st.booleans(),
        **dict.fromkeys(("title", "body", "link", "tag"), TEMPLATES),
        "priority": st.sampled_from([None, "high", "5", "{{ level }}"]),
        "resolvedWhen": st.sampled_from([None, "status = ok", 'text = "a\\"b"']),
        "frequency": st.sampled_from(sorted(COLLECTED_MS)),
        "quietHours": st.sampled_from(sorted(alerts.QUIET_HOURS)),
        "repeatUrgent": st.booleans(),
        "muteButton": st.booleans(),
        "preset": st.sampled_from([None, *presets.BY_ID]),
    }
)
PERIODS = st.fixed_dictionaries({"periodS": st.integers(60, 366 * 86_400)}) | st.just({"cron": "0 3 * * 1-5"})
HEARTBEATS = st.tuples(PERIODS, st.integers(60, 31 * 86_400), st.integers(1, 5)).map(
    lambda drawn: {**drawn[0], "graceS": drawn[1], "priority": drawn[2]}
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WHENS = st.builds("{} {!r}".format, st.sampled_from([">", "<=", "=", "!="]), NUMBERS)
RULES = st.fixed_dictionaries({"project": NAMES, "metric": NAMES, "when": WHENS, "forS": st.integers(0, 3_600)})
SILENT_RULES = st.fixed_dictionaries({"project": NAMES, "metric": NAMES, "when": st.just("silent 1d 1h")})
SETTINGS = st.fixed_dictionaries(
    {"timeZone": st.sampled_from(["UTC", "Asia/Kolkata"]), "quietHours": st.sampled_from(["off", "sa 22:00-07:00"])}
)
ACCOUNTS = st.fixed_dictionaries(
    {
        "alert": st.dictionaries(NAMES, ALERTS, max_size=4),
        "heartbeat": st.dictionaries(NAMES, HEARTBEATS, max_size=4),
        "rule": st.lists(RULES | SILENT_RULES, max_size=4),
        "account": SETTINGS,
    }
)
number = itertools.count()


@given(ACCOUNTS)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
def test_what_is_exported_changes_nothing_there_and_makes_another_account_the_same(service, drawn):
    one, other = (accounts.find_account(service.account(f"{next(number)}@example.org")) for _ in range(2))
    now = clock.now_ms()
    named = [[{"name": name, **fields} for name, fields in drawn[kind].items()] for kind in ("alert", "heartbeat")]
    for kind, wanted in zip((ALERT, HEARTBEAT, RULE), (*named, drawn["rule"]), strict=True):
        for fields in wanted:
            kind.put(one, kind.checked(fields), now)
    account_change(one, drawn["account"], now)()
    text = definition_files.text_of(accounts.find_account(one.email))
    assert (
        definition_files.apply(accounts.find_account(one.email), definition_files.File(text), now, prune=True) == []
    )
    definition_files.apply(other, definition_files.File(text), now)
    assert everything(one.email) == everything(other.email)
    assert definition_files.text_of(accounts.find_account(other.email)) == text


def test_an_export_is_a_file_for_apply_without_ids_addresses_and_states(apply, owned):
    apply(FILE + '[[alert]]\nname = "🔔 \\"x\\"\\u001b"\nbody = "a\\n{{ b | default: \\"c\\" }}"\n')
    exported = owned("export", OWNER).stdout
    assert tomllib.loads(exported)["alert"][1]["name"] == '🔔 "x"\x1b'
    assert "body = '''\na\n{{ b | default: \"c\" }}'''\n" in exported
    (beat,), alert = HEARTBEAT.of_account(1), ALERT.of_account(1)[0]
    assert [kept for kept in (beat.id, beat.ping_id, alert.id, alert.short_code, "state") if kept in exported] == []
    assert apply(exported, "--prune") == NOTHING
