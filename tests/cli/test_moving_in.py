"""Moving in from ntfy, Gotify and Healthchecks: what becomes of their users, applications and checks."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.support.accounts import OTHER, OWNER
from tests.support.commands import FULL_KEY, key_columns, said
from tests.support.rows import each
from tests.support.times import NOW

NTFY = """
CREATE TABLE user (id TEXT PRIMARY KEY, tier_id TEXT, user TEXT NOT NULL, pass TEXT NOT NULL, role TEXT NOT NULL,
 prefs JSON NOT NULL DEFAULT '{}', sync_topic TEXT NOT NULL, created INT NOT NULL, deleted INT);
CREATE TABLE user_access (user_id TEXT NOT NULL, topic TEXT NOT NULL, read INT NOT NULL, write INT NOT NULL,
 owner_user_id INT, PRIMARY KEY (user_id, topic));
CREATE TABLE user_token (user_id TEXT NOT NULL, token TEXT NOT NULL, label TEXT NOT NULL, last_access INT NOT NULL,
 last_origin TEXT NOT NULL, expires INT NOT NULL, PRIMARY KEY (user_id, token));
INSERT INTO user (id, user, pass, role, sync_topic, created) VALUES
 ('u_everyone', '*', '', 'anonymous', '', 1), ('u_1', 'phil', '$2a$10$x', 'admin', 'st_1', 1),
 ('u_2', 'ben', '$2a$10$x', 'user', 'st_2', 1), ('u_3', 'screen', '$2a$10$x', 'user', 'st_3', 1);
INSERT INTO user_access (user_id, topic, read, write) VALUES
 ('u_everyone', 'announcements', 1, 0), ('u_2', 'back\\_ups', 1, 1), ('u_2', 'up%', 0, 1), ('u_3', 'doorbell', 1, 0);
"""
TOKENS = [("u_1", "tk_1", "backup", 0), ("u_1", "tk_2", "", 0), ("u_1", "tk_3", "", NOW // 1000 + 9)]
TOKENS += [("u_2", "tk_4", "deploy", NOW // 1000 + 86_400), ("u_2", "tk_5", "old", NOW // 1000 - 1)]
GOTIFY = """
CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, pass BLOB, admin NUMERIC);
CREATE TABLE applications (id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT, user_id INTEGER, name TEXT,
 description TEXT, internal NUMERIC, image TEXT, default_priority INTEGER);
CREATE TABLE clients (id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT, user_id INTEGER, name TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, application_id INTEGER, message TEXT);
INSERT INTO users (name, admin) VALUES ('admin', 1);
INSERT INTO applications (token, user_id, name, description, internal, image, default_priority) VALUES
 ('AbackupsXXXXXXX', 1, 'Backups', 'of the nas', 0, '', 0), ('AbackupsYYYYYYY', 1, 'Backups', '', 0, '', 7),
 ('AinternalXXXXXX', 1, 'A plugin', '', 1, '', 0);
INSERT INTO clients (token, user_id, name) VALUES ('CphoneXXXXXXXXX', 1, 'Pixel');
INSERT INTO messages (application_id, message) VALUES (1, 'done'), (1, 'done');
"""
UUID = "0b4d2c9e-6f1a-4c55-9a53-3c1f2f0a7d11"
CHECK = {"name": "Backup", "slug": "backup", "tags": "", "desc": "", "grace": 600, "status": "up", "methods": ""}
CHECK |= {"filter_subject": False, "filter_body": False, "channels": "", "uuid": UUID, "timeout": 3600}


def database(file, script, statement="", rows=()):
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(script)
        connection.executemany(statement, rows) if rows else None
    return str(file)


@pytest.fixture
def ntfy(tmp_path):
    insert = "INSERT INTO user_token VALUES (?, ?, ?, 0, '', ?)"
    return database(tmp_path / "user.db", NTFY, insert, TOKENS)


@pytest.fixture
def gotify(tmp_path):
    return database(tmp_path / "gotify.db", GOTIFY)


@pytest.fixture
def checks(tmp_path):
    """Write the answer of Healthchecks with these checks, and return its path."""

    def write(*changes):
        file = tmp_path / "checks.json"
        found = [{name: value for name, value in (CHECK | one).items() if value is not None} for one in changes]
        file.write_text(json.dumps({"checks": found}))
        return str(file)

    return write


def imported(flask, *command):
    """The lines that the command prints, as columns; a key and an address are replaced by their kind."""
    done = flask(*command)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return [FULL_KEY.sub("KEY", line).split("\t") for line in done.stdout.splitlines()]


def test_users_and_tokens_of_ntfy_become_keys(owned, service, ntfy):
    assert imported(owned, "import-ntfy", OWNER, ntfy) == [
        ["key", "ntfy phil", "KEY", "for user phil with the password"],
        ["key", "ntfy phil backup", "KEY", "for user phil, token “backup”"],
        ["key", "ntfy phil token", "KEY", "for user phil, token “”"],
        ["key", "ntfy ben", "KEY", "for user ben with the password"],
        ["key", "ntfy ben deploy", "KEY", "for user ben, token “deploy”"],
        ["key", "ntfy screen", "KEY", "for user screen with the password"],
        ["left", "user phil: a session of ntfy's web app"],
        ["left", "user ben: the token “old” has expired"],
        ["left", "user ben: the limit to the topics back_ups, up*; a key may send to every topic"],
        ["left", "user screen: the limit to the topics doorbell; a key may send to every topic"],
        ["left", "access without signing in: every sender needs a key"],
    ]
    scopes = {columns[2]: columns[6:] for columns in key_columns(owned)}
    assert scopes["ntfy phil"] == ["send", "-"] and scopes["ntfy screen"] == ["read", "-"]
    assert scopes["ntfy ben deploy"][1].startswith("20")


def test_a_key_that_was_made_publishes_to_the_topic_as_before(service, owned, ntfy):
    key = FULL_KEY.search(owned("import-ntfy", OWNER, ntfy).stdout)[0]
    sent = service.client.post("/backups", data="finished", headers={"Authorization": f"Bearer {key}"})
    assert sent.status_code == 200


def test_applications_of_gotify_become_keys_with_names_of_their_own(owned, service, gotify):
    assert imported(owned, "import-gotify", OWNER, gotify) == [
        ["key", "Gotify Backups", "KEY", "for application Backups"],
        ["key", "Gotify Backups 2", "KEY", "for application Backups"],
        ["left", "application Backups: the default priority 7; messages without one are normal"],
        ["left", "application A plugin: it belongs to a plugin"],
        ["left", "client Pixel: add the phone or browser as a device"],
        ["left", "2 messages: the history begins anew"],
    ]


def test_applications_of_several_users_are_told_apart(owned, service, gotify, tmp_path):
    columns = "user_id, name, internal, default_priority"
    more = f"INSERT INTO applications ({columns}) VALUES (2, 'Backups', 0, 0)"
    database(gotify, f"INSERT INTO users (name) VALUES ('mia'); {more}")
    names = [line[1] for line in imported(owned, "import-gotify", OWNER, gotify) if line[0] == "key"]
    assert names == ["Gotify admin Backups", "Gotify admin Backups 2", "Gotify mia Backups"]


def test_checks_become_heartbeats_that_keep_their_uuids(owned, service, checks):
    other = UUID.replace("0b4d", "1b4d")
    cron = {"name": "Report", "uuid": other, "timeout": None, "schedule": "15 5 * * *", "tz": "UTC", "grace": 30}
    file = checks({}, cron | {"status": "paused"})
    address = f"{service.settings.public_url}/ping/"
    assert imported(owned, "import-healthchecks", OWNER, file) == [
        ["heartbeat", "Backup", f"{address}{UUID}", "1h, grace 600s"],
        ["heartbeat", "Report", f"{address}{other}", "15 5 * * *, grace 60s, paused"],
    ]
    assert service.client.get(f"/ping/{UUID}").status_code == 200
    states = {line.split("\t")[1]: line for line in owned("heartbeat", "list", OWNER).stdout.splitlines()}
    assert "paused" in states["Report"] and "up" in states["Backup"]


@each(
    "change, left",
    [
        ({"tags": "a b", "desc": "d", "channels": "x"}, "integrations, tags, description"),
        ({"filter_body": True}, "filters by keyword: every ping counts"),
        ({"methods": "POST"}, "the limit to POST: other methods count as pings, too"),
        (
            {"timeout": None, "schedule": "0 3 * * *", "tz": "Europe/Riga"},
            "the time zone Europe/Riga; its schedule counts in the account's, UTC",
        ),
        ({"timeout": None, "schedule": "Mon *-*-* 12:00", "tz": "UTC"}, "its schedule “Mon *-*-* 12:00” is no cron"),
        ({"uuid": None, "unique_key": "a6c7b0"}, "its UUID, which a read-only API key does not show"),
    ],
)
def test_what_a_heartbeat_cannot_do_is_said(owned, service, checks, change, left):
    lines = imported(owned, "import-healthchecks", OWNER, checks(change))
    assert lines[-1][1].startswith(f"check Backup: {left}") and lines[-1][0] == "left"
    assert len(lines) == (1 if "no cron" in left else 2)


def test_a_check_without_a_name_is_named_by_its_uuid(owned, service, checks):
    assert imported(owned, "import-healthchecks", OWNER, checks({"name": ""}))[0][1] == "Check 0b4d2c9e"


def test_a_second_import_makes_only_what_is_missing(owned, service, checks, gotify):
    for command in (("import-healthchecks", OWNER, checks({})), ("import-gotify", OWNER, gotify)):
        imported(owned, *command)
        again = [line for line in imported(owned, *command) if line[0] != "left"]
        assert again and all(line[2] == "-" and "already" in line[3] for line in again)


def test_a_dry_run_prints_the_same_and_makes_nothing(owned, service, checks, gotify):
    lines = imported(owned, "import-gotify", OWNER, gotify, "--dry-run")
    assert [line[2] for line in lines if line[0] == "key"] == ["(not made)"] * 2
    assert imported(owned, "import-healthchecks", OWNER, checks({}), "--dry-run")[0][2] == "(not made)"
    assert key_columns(owned) == [] and owned("heartbeat", "list", OWNER).stdout == ""


def test_all_is_made_or_nothing(owned, service, checks):
    service.account(OTHER)
    imported(owned, "import-healthchecks", OTHER, checks({}))
    file = checks({"uuid": UUID.replace("0b", "1b")}, {"name": "Taken"})
    assert said(owned("import-healthchecks", OWNER, file)) == (
        f"Error: check Taken: There is a heartbeat with the UUID {UUID} already."
    )
    many = checks(*({"name": f"{n}", "uuid": f"{n:08}{UUID[8:]}"} for n in range(101)))
    assert "check 100: You already have 100 heartbeats" in said(owned("import-healthchecks", OWNER, many))
    long = checks({"uuid": UUID.replace("0b", "1b")}, {"name": "Yearly", "timeout": 367 * 86_400})
    assert "check Yearly: " in said(owned("import-healthchecks", OWNER, long))
    assert owned("heartbeat", "list", OWNER).stdout == ""


@each(
    "text, sentence",
    [
        ("{", "JSON"),
        ("[]", "must be a JSON object"),
        ('{"checks": 1}', "there is no list of checks"),
        ('{"checks": [{"name": "a"}, 1]}', "there is no list of checks"),
        ('{"checks": [{"name": "a"}]}', "checks[0] is not a check as Healthchecks' API v3 describes it."),
        (
            '{"checks": [{"name": "a", "uuid": 1, "grace": 1, "timeout": 1, "status": ""}]}',
            "checks[0] is not a check",
        ),
        ('{"checks": [{"name": 1, "grace": 1, "timeout": 1}]}', "checks[0] is not a check"),
    ],
)
def test_another_answer_than_that_of_healthchecks_is_refused(owned, service, tmp_path, text, sentence):
    (tmp_path / "file").write_text(text)
    assert sentence in said(owned("import-healthchecks", OWNER, str(tmp_path / "file")))


OTHERS = [("import-ntfy", "an auth-file of ntfy", "user"), ("import-gotify", "a database of Gotify", "users")]


@each("command, kind, table", OTHERS)
def test_a_file_of_something_else_is_refused(owned, tmp_path, command, kind, table):
    file = tmp_path / "file"
    file.unlink(missing_ok=True)
    assert "No such file" in said(owned(command, OWNER, str(file)))
    file.write_text("no database")
    assert said(owned(command, OWNER, str(file))) == f"Error: {file} is not an SQLite file."
    file.write_bytes(b"SQLite format 3\0" + b"x" * 100)
    assert f"{file} cannot be read: " in said(owned(command, OWNER, str(file)))
    file.unlink()
    database(file, "CREATE TABLE other (id)")
    unknown = f"Error: {file} is not {kind} of a version that is known: it lacks "
    assert said(owned(command, OWNER, str(file))) == f"{unknown}the table {table}."
    database(file, f"CREATE TABLE {table} (user)")
    assert said(owned(command, OWNER, str(file))) == f"{unknown}the column id of the table {table}."


@each("change", ["UPDATE user SET user = x'ff' WHERE id = 'u_1'", "UPDATE user_token SET expires = 'never'"])
def test_values_that_ntfy_does_not_write_are_refused(owned, service, ntfy, change):
    database(ntfy, change)
    assert "has another kind of value" in said(owned("import-ntfy", OWNER, ntfy))
    assert key_columns(owned) == []
