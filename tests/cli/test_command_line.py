"""The command line: CONTRACT 1. What each command prints, what it refuses, and that it takes effect at once."""

import json
import os
import re
import select
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import peewee
import pytest

import app as application
import push
from core import accounts

ROOT = Path(application.__file__).parent
FLASK = Path(sys.executable).with_name("flask")
OWNER = "owner@example.org"
PASSWORD = "correct horse battery"
FULL_KEY = re.compile(r"sk_test_[0-9a-f]{48}")
ID = re.compile(r"[0-9a-zA-Z_-]+")
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch):
    """The real hash takes a third of a second; how a password is hashed is not the matter here."""
    monkeypatch.setattr(accounts, "PASSWORD_METHOD", "scrypt:1024:8:1")


@pytest.fixture
def flask(service):
    """The command line beside the service in this process."""
    return service.flask


@pytest.fixture
def owned(service):
    """The command line of a service that has an account."""
    service.account(OWNER)
    return service.flask


def run_flask(data_dir, *args, stdin=b"", stdout=subprocess.PIPE, **environ):
    """The real `flask` in a process of its own, with nothing of this one's environment but PATH."""
    env = {"PATH": os.environ.get("PATH", ""), "DATA_DIR": str(data_dir), **environ}
    return subprocess.run(
        [FLASK, *args], input=stdin, stdout=stdout, stderr=subprocess.PIPE, env=env, cwd=ROOT, timeout=30
    )


def printed(result):
    """The one line on stdout of a command that went well."""
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    assert result.stdout == line + "\n"
    return line


def said(result):
    """The one line on stderr of a command that was refused."""
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    (line,) = result.stderr.splitlines()
    return line


def told(finished):
    """The one line on stderr of a process that was refused."""
    stderr = finished.stderr.decode(errors="replace")
    assert finished.returncode == 1, stderr
    assert "Traceback" not in stderr
    (line,) = stderr.splitlines()
    return line


def key_columns(flask, email=OWNER):
    """The lines of `key list`, as columns."""
    listed = flask("key", "list", email)
    assert (listed.exit_code, listed.stderr) == (0, "")
    return [line.split("\t") for line in listed.stdout.splitlines()]


@contextmanager
def on_a_terminal(data_dir, *args):
    """The real `flask` with a terminal of its own as input, output and controlling terminal."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [FLASK, *args],
        env={"PATH": os.environ.get("PATH", ""), "DATA_DIR": str(data_dir)},
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal, *texts, within_s=20):
    """What the terminal shows until each of the texts was there, one after the other."""
    shown, deadline = b"", time.monotonic() + within_s
    while not re.search(b".*?".join(re.escape(text) for text in texts), shown, re.DOTALL):
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)
    return shown


def sign_in(service, password, email=OWNER):
    """Post the sign-in form; 303 is a welcome."""
    client = service.app.test_client()
    page = client.get("/app/login").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    return client.post("/app/login", data={"email": email, "password": password, "csrf": csrf}).status_code


def stand_in_device(flask, push_service):
    """The owner's only device, added by command."""
    browser = push_service.browser()
    return browser, printed(flask("device", "add", OWNER, "webpush", json.dumps(browser.subscription)))


# --- account create -----------------------------------------------------------------------------------------


def test_account_create_prints_a_one_time_link_alone_when_there_is_no_password(flask):
    line = printed(flask("account", "create", OWNER))
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/app/setup/[\w-]{32,}", line)


def test_the_printed_link_opens_the_page_that_sets_the_password(service):
    link = printed(service.flask("account", "create", OWNER))
    page = service.client.get(link.removeprefix("http://127.0.0.1:8000"))
    assert page.status_code == 200 and 'type="password"' in page.text


def test_the_printed_link_begins_with_base_url(make_service, moved_clock):
    service = make_service(BASE_URL="https://bell.example.org")
    assert printed(service.flask("account", "create", OWNER)).startswith("https://bell.example.org/app/setup/")


def test_account_create_with_a_password_prints_one_line_and_no_link(flask):
    line = printed(flask("account", "create", OWNER, "--password-stdin", stdin=PASSWORD))
    assert OWNER in line and "/app/setup/" not in line and PASSWORD not in line


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_password_on_standard_input_signs_in_with_or_without_a_line_end(service, end):
    printed(service.flask("account", "create", OWNER, "--password-stdin", stdin=PASSWORD + end))
    assert sign_in(service, PASSWORD) == 303


@pytest.mark.parametrize("password", ["", "\n", "elevenchars", "elevenchars\n", "elevenchars\r\n"])
def test_a_password_of_less_than_12_characters_is_refused_and_no_account_made(flask, password):
    assert "12 characters" in said(flask("account", "create", OWNER, "--password-stdin", stdin=password))
    assert flask("account", "list").stdout == ""


def test_a_password_of_12_characters_that_are_not_ascii_is_enough(flask):
    printed(flask("account", "create", OWNER, "--password-stdin", stdin="pässwörter12"))


def test_a_password_that_is_not_utf_8_is_refused(flask):
    assert "UTF-8" in said(flask("account", "create", OWNER, "--password-stdin", stdin=b"correct horse \xff\xfe"))


def test_a_refusal_never_repeats_the_password(flask):
    said_line = said(flask("account", "create", OWNER, "--password-stdin", stdin="hunter2"))
    assert "hunter2" not in said_line


@pytest.mark.parametrize("command", [("create", OWNER), ("set", OWNER)])
def test_a_password_is_never_an_argument(owned, command):
    result = owned("account", *command, "--password", PASSWORD)
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("plan", ["starter", "pro", "scale"])
def test_an_account_has_the_plan_it_was_made_with(service, plan):
    printed(service.flask("account", "create", OWNER, "--plan", plan))
    assert service.caller(OWNER).get("/stats").json["stats"]["plan"] == plan


def test_an_account_is_starter_unless_told_otherwise(service):
    printed(service.flask("account", "create", OWNER))
    assert service.caller(OWNER).get("/stats").json["stats"]["plan"] == "starter"


@pytest.mark.parametrize("again", [OWNER, "Owner@Example.ORG", f" {OWNER} "])
def test_a_second_account_with_the_same_address_is_refused(owned, again):
    assert OWNER in said(owned("account", "create", again))
    assert len(owned("account", "list").stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "email", ["", " ", "owner", "@", "a@", "@b", "a b@c", "a@b@c", "a@b\nc", "x" * 250 + "@a.org"]
)
def test_what_is_no_address_makes_no_account(flask, email):
    said(flask("account", "create", email))
    assert flask("account", "list").stdout == ""


# --- account list, account set ------------------------------------------------------------------------------


def test_account_list_prints_a_line_for_each_account(flask):
    for email in ("a@example.org", "b@example.org", "c@example.org"):
        flask("account", "create", email)
    listed = flask("account", "list")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == [
        *("c@example.org", "b@example.org", "a@example.org")
    ]


def test_account_list_of_no_accounts_prints_nothing(flask):
    result = flask("account", "list")
    assert (result.exit_code, result.output) == (0, "")


def test_account_set_prints_one_line_with_what_holds_now(owned):
    line = printed(owned("account", "set", OWNER, "--plan", "pro", "--timezone", "Europe/Berlin"))
    assert OWNER in line and "pro" in line and "Europe/Berlin" in line


def test_account_set_changes_only_what_is_named(owned):
    owned("account", "set", OWNER, "--plan", "pro", "--timezone", "Asia/Tokyo")
    line = printed(owned("account", "set", OWNER, "--plan", "scale"))
    assert "scale" in line and "Asia/Tokyo" in line


def test_a_changed_plan_holds_from_the_next_request_on(service, owned):
    caller = service.caller(OWNER)
    assert caller.get("/stats").headers["X-RateLimit-Limit"] == "100"
    owned("account", "set", OWNER, "--plan", "pro")
    assert caller.get("/stats").headers["X-RateLimit-Limit"] == "1000"


@pytest.mark.parametrize("zone", ["Mars/Base", "europe/nowhere", "../etc/passwd", "UTC\nUTC", "x" * 5000])
def test_an_unknown_time_zone_is_refused_and_the_plan_beside_it_not_taken(owned, zone):
    said(owned("account", "set", OWNER, "--plan", "pro", "--timezone", zone))
    assert "pro" not in owned("account", "list").stdout


def test_a_new_password_takes_the_place_of_the_old_one(service):
    service.flask("account", "create", OWNER, "--password-stdin", stdin=PASSWORD)
    printed(service.flask("account", "set", OWNER, "--password-stdin", stdin="another good password"))
    assert (sign_in(service, PASSWORD), sign_in(service, "another good password")) == (422, 303)


def test_a_password_that_is_too_short_changes_nothing(owned):
    assert "12 characters" in said(owned("account", "set", OWNER, "--plan", "pro", "--password-stdin", stdin="short"))
    assert "pro" not in owned("account", "list").stdout


# --- key ----------------------------------------------------------------------------------------------------


def test_key_create_prints_the_full_key_alone(owned):
    assert FULL_KEY.fullmatch(printed(owned("key", "create", OWNER, "backup script")))


def test_a_created_key_works_at_once(service, owned):
    full_key = printed(owned("key", "create", OWNER, "backup script"))
    answer = service.client.get("/api/v1/stats", headers={"Authorization": f"Bearer {full_key}"})
    assert answer.status_code == 200


def test_key_list_prints_id_preview_name_created_last_used_revoked(service, owned, moved_clock):
    caller = service.caller(OWNER, "backup script")
    (made,) = caller.get("/api-keys").json["apiKeys"]
    ((key_id, preview, name, created, last_used, revoked),) = key_columns(owned)
    assert (key_id, preview, name) == (made["id"], caller.key[:16], "backup script")
    assert (created, last_used, revoked) == ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z", "-")


def test_a_key_that_was_never_used_has_a_dash_for_last_used(owned):
    owned("key", "create", OWNER, "unused")
    ((*_, created, last_used, revoked),) = key_columns(owned)
    assert TIME.fullmatch(created) and (last_used, revoked) == ("-", "-")


def test_key_list_keeps_revoked_keys_with_the_time(owned, moved_clock):
    owned("key", "create", OWNER, "old")
    ((key_id, *_),) = key_columns(owned)
    moved_clock.advance(60)
    owned("key", "revoke", OWNER, key_id)
    ((*_, revoked),) = key_columns(owned)
    assert revoked == "2026-11-21T10:01:00Z"


def test_key_list_is_newest_first_a_line_each(owned):
    for name in ("first", "second", "third"):
        owned("key", "create", OWNER, name)
    assert [columns[2] for columns in key_columns(owned)] == ["third", "second", "first"]


def test_key_list_never_shows_a_full_key(owned):
    full_key = printed(owned("key", "create", OWNER, "secret"))
    assert full_key[16:] not in owned("key", "list", OWNER).stdout


def test_key_list_shows_no_other_accounts_keys(service, owned):
    service.account("other@example.org")
    owned("key", "create", "other@example.org", "theirs")
    assert key_columns(owned) == []


def test_key_revoke_prints_one_line_and_the_key_stops_working_at_once(service, owned):
    caller = service.caller(OWNER)
    ((key_id, *_),) = key_columns(owned)
    printed(owned("key", "revoke", OWNER, key_id))
    assert caller.get("/stats").status_code == 401


def test_a_second_revoke_keeps_the_first_time(owned, moved_clock):
    owned("key", "create", OWNER, "old")
    ((key_id, *_),) = key_columns(owned)
    owned("key", "revoke", OWNER, key_id)
    before = key_columns(owned)
    moved_clock.advance(60)
    printed(owned("key", "revoke", OWNER, key_id))
    assert key_columns(owned) == before


def test_another_accounts_key_cannot_be_revoked(service, owned):
    service.account("other@example.org")
    theirs = service.caller("other@example.org")
    ((key_id, *_),) = key_columns(owned, "other@example.org")
    said(owned("key", "revoke", OWNER, key_id))
    assert theirs.get("/stats").status_code == 200


@pytest.mark.parametrize("name", ["", "   ", "\n", "x" * 101])
def test_a_key_name_has_1_to_100_characters_after_trimming(owned, name):
    assert "name" in said(owned("key", "create", OWNER, name))
    assert key_columns(owned) == []


@pytest.mark.parametrize("name, kept", [("  trimmed ", "trimmed"), ("x" * 100, "x" * 100), ("漢字 😀", "漢字 😀")])
def test_a_key_name_is_kept_trimmed(owned, name, kept):
    printed(owned("key", "create", OWNER, name))
    assert key_columns(owned)[0][2] == kept


UNRULY = ["a\nb", "a\r\nb", "a\tb", "a\x1b[31mb", "a\u2028b", "a\x85b", "a\x0bb", "a\u202eb"]


@pytest.mark.parametrize("name", UNRULY)
def test_a_key_name_with_control_characters_cannot_break_a_line(owned, name):
    printed(owned("key", "create", OWNER, name))
    (columns,) = key_columns(owned)
    assert len(columns) == 6 and columns[2].isprintable()


# --- device -------------------------------------------------------------------------------------------------


def test_device_add_prints_the_id_alone_and_list_begins_with_it(owned, push_service):
    _, device_id = stand_in_device(owned, push_service)
    assert ID.fullmatch(device_id)
    assert printed(owned("device", "list", OWNER)).split("\t")[:2] == [device_id, "webpush"]


def test_a_device_added_by_command_gets_the_next_notification(service, owned, push_service):
    browser, _ = stand_in_device(owned, push_service)
    service.caller(OWNER).send("Disk", "full")
    assert [message["notification"]["title"] for message in browser.messages] == ["MCP - Disk"]


def test_device_remove_prints_one_line_and_nothing_is_pushed_any_more(service, owned, push_service):
    browser, device_id = stand_in_device(owned, push_service)
    printed(owned("device", "remove", OWNER, device_id))
    service.caller(OWNER).send()
    assert (browser.pushes, owned("device", "list", OWNER).stdout) == ([], "")


@pytest.mark.parametrize("kind, name", [("apns", "APNs"), ("fcm", "FCM")])
def test_a_device_of_a_kind_that_is_not_configured_is_added_with_a_warning(owned, kind, name):
    added = owned("device", "add", OWNER, kind, "0a" * 32)
    assert (added.exit_code, added.stdout.splitlines()) == (
        0,
        [printed(owned("device", "list", OWNER)).split("\t")[0]],
    )
    warning = f"Warning: {name} is not configured on this server: this device gets nothing until it is."
    assert added.stderr.splitlines() == [warning]


@pytest.fixture
def every_kind(monkeypatch):
    """As if APNs and FCM were configured."""
    monkeypatch.setattr(push, "configured", lambda: set(push.PROVIDERS))


@pytest.mark.parametrize("kind, token", [("apns", "0a" * 32), ("apns", "AF" * 100), ("fcm", "dQw4:APA91bF-x_y")])
def test_a_device_of_each_kind_can_be_added_with_a_name(owned, every_kind, kind, token):
    device_id = printed(owned("device", "add", OWNER, kind, token, "--name", "Phone"))
    assert printed(owned("device", "list", OWNER)).split("\t")[:3] == [device_id, kind, "Phone"]


def test_adding_the_same_token_again_prints_the_same_id(owned, every_kind):
    first = printed(owned("device", "add", OWNER, "fcm", "token:1"))
    assert printed(owned("device", "add", OWNER, "fcm", "token:1")) == first


WRONG_ADDRESSES = [
    *(("apns", token) for token in ("", "0a" * 31, "0a" * 101, "zz" * 32, "0a" * 32 + "\n")),
    *(("fcm", token) for token in ("", " ", "tök", "a\nb", "x" * 5000)),
    *(("webpush", text) for text in ("", "{", "[]", "null", "1", '"x"', "{}", "[" * 100_000, '{"endpoint": 1}')),
    ("webpush", '{"endpoint": "http://127.0.0.1:1/x", "keys": {"p256dh": "a", "auth": "b"}}'),
    ("webpush", '{"endpoint": "\\ud800", "keys": {"p256dh": "a", "auth": "b"}}'),
    ("webpush", '{"endpoint": "https://fcm.googleapis.com/x", "keys": []}'),
]


@pytest.mark.parametrize("kind, token", WRONG_ADDRESSES, ids=range(len(WRONG_ADDRESSES)))
def test_what_is_no_address_of_that_kind_is_refused_in_one_line(owned, kind, token):
    said(owned("device", "add", OWNER, kind, token))
    assert owned("device", "list", OWNER).stdout == ""


@pytest.mark.parametrize("name", UNRULY[:3])
def test_a_device_name_with_control_characters_cannot_break_a_line(owned, every_kind, name):
    printed(owned("device", "add", OWNER, "fcm", "token:1", "--name", name))
    line = printed(owned("device", "list", OWNER))
    assert line.split("\t")[2].isprintable()


def test_a_refused_device_token_is_not_repeated(owned):
    assert "s3cret" not in said(owned("device", "add", OWNER, "apns", "s3cret-token"))


def test_another_accounts_device_cannot_be_removed(service, owned, push_service):
    _, device_id = stand_in_device(owned, push_service)
    service.account("other@example.org")
    said(owned("device", "remove", "other@example.org", device_id))
    assert printed(owned("device", "list", OWNER)).startswith(device_id)


# --- what every command has in common -----------------------------------------------------------------------


OF_AN_ACCOUNT = [
    ("account", "set", "EMAIL", "--plan", "pro"),
    ("key", "create", "EMAIL", "name"),
    ("key", "list", "EMAIL"),
    ("key", "revoke", "EMAIL", "id"),
    ("device", "add", "EMAIL", "fcm", "token"),
    ("device", "list", "EMAIL"),
    ("device", "remove", "EMAIL", "id"),
]
COMMAND_NAMES = [" ".join(command[:2]) for command in OF_AN_ACCOUNT]


@pytest.mark.parametrize("command", OF_AN_ACCOUNT, ids=COMMAND_NAMES)
@pytest.mark.parametrize("email", ["nobody@example.org", "a\nb@example.org"])
def test_an_unknown_account_is_an_error_in_one_line(owned, command, email):
    said(owned(*(email if part == "EMAIL" else part for part in command)))


@pytest.mark.parametrize("command", OF_AN_ACCOUNT, ids=COMMAND_NAMES)
def test_an_address_that_is_not_utf_8_is_an_error_in_one_line(owned, command):
    email = os.fsdecode(b"\xffowner@example.org")  # as Python sees such an argument
    said(owned(*(email if part == "EMAIL" else part for part in command)))


@pytest.mark.parametrize("command", [("key", "revoke"), ("device", "remove")])
@pytest.mark.parametrize("unknown", ["x", "", "a\nb", "a" * 10_000, os.fsdecode(b"\xff")])
def test_an_unknown_id_is_an_error_in_one_line(owned, command, unknown):
    said(owned(*command, OWNER, unknown))


@pytest.mark.parametrize("command", [("key", "create", OWNER), ("device", "add", OWNER, "fcm", "token:1", "--name")])
def test_a_name_that_is_not_utf_8_is_an_error_in_one_line(owned, command):
    said(owned(*command, os.fsdecode(b"caf\xe9")))


WRONG_USAGE = [
    ("account", "create"),
    ("account", "create", OWNER, "extra"),
    ("account", "create", OWNER, "--plan", "gold"),
    ("account", "create", OWNER, "--nonsense"),
    ("account", "set"),
    ("account", "set", OWNER, "--plan", "Pro"),
    ("account", "delete", OWNER),
    ("key", "create", OWNER),
    ("key", "revoke", OWNER),
    ("key", "list"),
    ("device", "add", OWNER, "sms", "123"),
    ("device", "add", OWNER, "fcm"),
    ("device", "remove", OWNER),
    ("backup",),
    ("backup", "a", "b"),
]


@pytest.mark.parametrize("command", WRONG_USAGE, ids=[" ".join(command) for command in WRONG_USAGE])
def test_wrong_usage_ends_with_status_2_and_prints_nothing_on_stdout(owned, command):
    result = owned(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


def test_a_database_that_another_program_keeps_locked_is_an_error_in_one_line(service, owned):
    other = sqlite3.connect(service.settings.database)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert "locked" in said(owned("key", "create", OWNER, "name"))
    finally:
        other.close()


# --- backup -------------------------------------------------------------------------------------------------


def test_backup_prints_one_line_and_writes_the_file(owned, tmp_path):
    assert "copy.db" in printed(owned("backup", tmp_path / "copy.db"))
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("SELECT email FROM account").fetchall() == [(OWNER,)]


def test_backup_overwrites_nothing(owned, tmp_path):
    (tmp_path / "precious.db").write_text("precious")
    assert "exists" in said(owned("backup", tmp_path / "precious.db"))
    assert (tmp_path / "precious.db").read_text() == "precious"


@pytest.mark.parametrize("target", ["missing/copy.db", "file/copy.db", ".", "", "..", "x" * 300, "missing/.."])
def test_a_backup_that_cannot_be_written_is_an_error_in_one_line(owned, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    said(owned("backup", target))


@pytest.mark.parametrize("name", ["a\nb.db", "missing\n/b.db", os.fsdecode(b"caf\xe9.db")], ids=range(3))
def test_a_file_name_of_any_characters_cannot_break_the_line_of_backup(owned, tmp_path, name):
    result = owned("backup", tmp_path / name)
    assert len((result.stdout + result.stderr).splitlines()) == 1, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_failed_backup_leaves_nothing_behind(owned, tmp_path):
    before = sorted(tmp_path.iterdir())
    said(owned("backup", tmp_path / "missing" / "copy.db"))
    assert sorted(tmp_path.iterdir()) == before


# --- in a process of its own --------------------------------------------------------------------------------


def test_a_key_made_and_revoked_by_another_process_counts_at_once(service, owned):
    made = run_flask(service.data_dir, "key", "create", OWNER, "elsewhere")
    full_key = made.stdout.decode().strip()
    assert (made.returncode, made.stderr) == (0, b"") and FULL_KEY.fullmatch(full_key)
    headers = {"Authorization": f"Bearer {full_key}"}
    assert service.client.get("/api/v1/stats", headers=headers).status_code == 200
    revoked = run_flask(service.data_dir, "key", "revoke", OWNER, key_columns(owned)[0][0])
    assert (revoked.returncode, len(revoked.stdout.splitlines())) == (0, 1)
    assert service.client.get("/api/v1/stats", headers=headers).status_code == 401


def test_the_first_command_of_all_makes_the_database(tmp_path):
    made = run_flask(tmp_path / "new", "account", "create", OWNER)
    assert (made.returncode, made.stderr) == (0, b"")
    assert made.stdout.startswith(b"http://127.0.0.1:8000/app/setup/")
    assert (tmp_path / "new" / "pocketbell.db").is_file()


WITHOUT_DATA = [
    *(("account", *arguments) for arguments in (("list",), ("set", OWNER, "--plan", "pro"))),
    *(("key", *arguments) for arguments in (("create", OWNER, "x"), ("list", OWNER), ("revoke", OWNER, "1"))),
    *(("alert", *arguments) for arguments in (("create", OWNER, "x"), ("list", OWNER), ("delete", OWNER, "1"))),
    *(("device", *arguments) for arguments in (("add", OWNER, "apns", "ab" * 32), ("list", OWNER))),
    ("backup", "/dev/null"),
    ("doctor",),
]


@pytest.mark.parametrize("command", WITHOUT_DATA, ids=lambda command: " ".join(command[:2]))
def test_a_command_where_there_is_no_data_says_so_and_makes_none(tmp_path, command):
    said = told(run_flask(tmp_path / "typo", *command))
    assert f"There is no Pocketbell data in {tmp_path / 'typo'}" in said and "DATA_DIR" in said
    assert list(tmp_path.iterdir()) == []


def test_a_command_beside_an_empty_file_leaves_it_empty(tmp_path):
    (tmp_path / "bell.db").touch()
    elsewhere = {"DATABASE_URL": f"sqlite:///{tmp_path}/bell.db"}
    said = told(run_flask(tmp_path / "data", "account", "list", **elsewhere))
    assert f"There is no Pocketbell data in {tmp_path}" in said and "DATABASE_URL" in said
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [("bell.db", 0)]


@pytest.mark.parametrize(
    "command", ["--help", "account --help", "account create --help", "key list --help", "routes"]
)
def test_what_needs_no_data_makes_none(tmp_path, command):
    done = run_flask(tmp_path / "typo", *command.split())
    assert (done.returncode, done.stderr) == (0, b"") and list(tmp_path.iterdir()) == []


def test_the_application_makes_its_database_with_the_first_request_under_any_server(tmp_path):
    script = "import app, os; print(os.listdir('.')); print(app.app.test_client().get('/app/login').status_code)"
    environ = {"DATA_DIR": "data", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n200\n", "")
    assert (tmp_path / "data" / "pocketbell.db").is_file()


def test_bytes_that_are_not_utf_8_cause_no_traceback_as_argument_or_input(tmp_path):
    told(run_flask(tmp_path, b"account", b"create", b"own\xffer@example.org"))
    told(run_flask(tmp_path, b"account", b"set", b"own\xffer@example.org", b"--plan", b"pro"))
    told(run_flask(tmp_path, "account", "create", OWNER, "--password-stdin", stdin=b"\xff\xfe" * 10))


def test_a_backup_to_a_name_that_is_not_utf_8_causes_no_traceback(tmp_path):
    done = run_flask(tmp_path / "data", b"backup", os.fsencode(tmp_path) + b"/caf\xe9.db")
    assert b"Traceback" not in done.stderr
    assert len((done.stdout + done.stderr).splitlines()) == 1


def test_an_output_that_cannot_show_a_name_causes_no_traceback(service, owned):
    owned("key", "create", OWNER, "漢字")
    done = run_flask(service.data_dir, "key", "list", OWNER, PYTHONIOENCODING="ascii")
    assert b"Traceback" not in done.stderr
    assert len((done.stdout + done.stderr).splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("command", [("key", "create", OWNER, "x"), ("backup", "FILE")], ids=["key create", "backup"])
def test_an_output_that_takes_nothing_is_an_error_without_a_traceback(service, owned, tmp_path, command):
    args = [str(tmp_path / "copy.db") if part == "FILE" else part for part in command]
    with Path("/dev/full").open("wb") as full:
        done = run_flask(service.data_dir, *args, stdout=full)
    assert done.returncode != 0 and b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="terminals are POSIX's")
def test_on_a_terminal_the_password_is_asked_for_twice_and_not_shown(tmp_path):
    seen = b""
    with on_a_terminal(tmp_path, "account", "create", OWNER) as (process, terminal):
        for _ in ("once", "and again"):
            seen += read_until(terminal, b": ")
            os.write(terminal, f"{PASSWORD}\n".encode())
        seen += read_until(terminal, OWNER.encode(), b"\n")
        assert process.wait(timeout=20) == 0
    assert PASSWORD.encode() not in seen and b"/app/setup/" not in seen


def test_a_wrong_setting_stops_a_command_with_one_line(tmp_path):
    assert "THREADS" in told(run_flask(tmp_path, "account", "list", THREADS="many"))


def garbage(path):
    path.write_bytes(b"This is no database. " * 500)


def damaged(path):
    """A database whose tables are overwritten behind its first page."""
    assert run_flask(path.parent, "account", "create", OWNER).returncode == 0
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


def directory(path):
    path.mkdir()


def of_another_program(path):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipe (name TEXT)")
    other.commit()
    other.close()


def of_the_future(path):
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 999999")
    other.close()


@pytest.mark.parametrize("unusable", [garbage, damaged, directory, of_another_program, of_the_future])
def test_a_database_file_that_cannot_be_used_is_an_error_in_one_line(tmp_path, unusable):
    unusable(tmp_path / "pocketbell.db")
    told(run_flask(tmp_path, "account", "list"))


@pytest.mark.parametrize("data_dir", ["file", "file/below"])
def test_a_data_directory_that_cannot_be_made_is_an_error_in_one_line(tmp_path, data_dir):
    (tmp_path / "file").write_text("")
    assert str(tmp_path) in told(run_flask(tmp_path / data_dir, "account", "list"))


def test_a_database_in_a_directory_that_cannot_be_written_is_an_error_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    told(run_flask(tmp_path, "account", "list", DATABASE_URL=f"sqlite:///{tmp_path}/file/below/bell.db"))


def test_a_full_disk_is_an_error_in_one_line_and_no_key_is_printed(service, owned):
    def no_more_space():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    pytest.importorskip("resource")
    done = subprocess.run(
        [FLASK, "key", "create", OWNER, "name"],
        env={"PATH": os.environ.get("PATH", ""), "DATA_DIR": str(service.data_dir)},
        cwd=ROOT,
        preexec_fn=no_more_space,
        capture_output=True,
        timeout=30,
    )
    assert done.stdout == b""
    told(done)


def test_commands_started_at_the_same_time_all_do_their_work(service, owned):
    env = {"PATH": os.environ.get("PATH", ""), "DATA_DIR": str(service.data_dir)}
    commands = [
        subprocess.Popen([FLASK, "key", "create", OWNER, f"key {n}"], env=env, cwd=ROOT, stdout=subprocess.PIPE)
        for n in range(3)
    ]
    deadline = time.monotonic() + 30
    printed_keys = [command.communicate(timeout=deadline - time.monotonic())[0].decode() for command in commands]
    assert all(FULL_KEY.fullmatch(full_key.strip()) for full_key in printed_keys)
    assert sorted(columns[2] for columns in key_columns(owned)) == ["key 0", "key 1", "key 2"]


def test_a_reader_that_goes_away_is_no_error(service, owned):
    listed = f"{Path(sys.executable).with_name('flask')} account list | true"
    env = {"PATH": os.environ.get("PATH", ""), "DATA_DIR": str(service.data_dir)}
    done = subprocess.run(["sh", "-c", listed], cwd=ROOT, env=env, capture_output=True, timeout=30)
    assert done.stderr == b""


@pytest.mark.parametrize(
    "closed, arguments", [("<&-", "account create a@example.org --password-stdin"), (">&-", "account list")]
)
def test_a_closed_standard_stream_causes_no_traceback(service, closed, arguments):
    env = {"PATH": os.environ.get("PATH", ""), "DATA_DIR": str(service.data_dir)}
    done = subprocess.run(
        ["sh", "-c", f"{FLASK} {arguments} {closed}"], cwd=ROOT, env=env, capture_output=True, timeout=30
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == (1 if closed == "<&-" else 0)


def test_what_a_write_failed_for_is_said_though_undoing_it_failed_too(owned, monkeypatch):
    def fail(*_, **__):
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise peewee.OperationalError("cannot rollback - no transaction is active") from None

    monkeypatch.setattr(accounts, "create_key", fail)
    assert "No space left on device" in said(owned("key", "create", OWNER, "name"))
