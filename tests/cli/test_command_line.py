"""What every command has in common, `flask backup`, and commands in processes of their own."""

import os
import re
import select
import signal
import sqlite3
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import peewee
import pytest

import config
from app import create_app
from core import accounts
from store import database
from store.database import WriteFailed
from tests.support.accounts import OWNER, PASSWORD
from tests.support.commands import FULL_KEY, key_columns, printed, said
from tests.support.forks import Fork
from tests.support.moving import run_command
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.server import NO_FILE, PATIENCE_S, finished

FLASK = Path(sys.executable).with_name("flask")


def environment(data_dir, **environ):
    """What a process of its own needs, with only PATH from this one's environment."""
    return {**NO_FILE, "DATA_DIR": str(data_dir), **environ}


def run_in_fork(data_dir, *args, stdin=os.devnull, stdout="", **environ):
    """Run `flask` in a process of its own that need not import it.

    `stdin` and `stdout` are paths of files, or None for a stream that is closed. Without `stdout`, the result has it.
    """

    def start(command, environ, kept, errors):
        kept.touch()
        return Fork(command, environ, kept if stdout == "" else stdout, errors, stdin)

    return finished(start, [FLASK, *args], environment(data_dir, **environ))


def told(done):
    """The only line on stderr of a process that was refused."""
    stderr = done.stderr.decode(errors="replace")
    assert done.returncode == 1, stderr
    assert "Traceback" not in stderr
    (line,) = stderr.splitlines()
    return line


def hash_cheaply():
    accounts.PASSWORD_METHOD = "scrypt:128:1:1"


@contextmanager
def on_a_terminal(data_dir, *args):
    """Run `flask` with a new terminal as its input, output and controlling terminal."""
    import pty

    ours, theirs = pty.openpty()
    terminal = os.ttyname(theirs)
    process = Fork([FLASK, *args], environment(data_dir), terminal, terminal, terminal, before=hash_cheaply)
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)


def read_until(terminal, *texts):
    """Read from the terminal until these texts have appeared one after the other, and return all of it."""
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    while not re.search(b".*?".join(re.escape(text) for text in texts), shown, re.DOTALL):
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)
    return shown


# --- what every command has in common -----------------------------------------------------------------------


@each(
    "command",
    [
        ("key", "create", OWNER, "name"),
        ("alert", "create", OWNER, "name"),
        ("heartbeat", "create", OWNER, "name", "--period", "1h"),
        ("send", OWNER, "title", "body"),
        ("account", "set", OWNER, "--plan", "pro"),
        ("account", "create", "another@example.org"),
        ("doctor",),
    ],
)
def test_a_command_begins_a_transaction_again_while_a_busy_service_holds_the_database(owned, monkeypatch, command):
    begin, left = database._engine.transaction, list(range(1, database.MAX_TRIES))

    def busy(*account_seqs, **more):
        if left:
            left.pop()
            raise WriteFailed("database is locked")
        return begin(*account_seqs, **more)

    with monkeypatch.context() as patched:
        patched.setattr(database._engine, "transaction", busy)
        result = owned(*command)
    assert (left, "locked" in result.output) == ([], False), result.output


@sqlite_only
def test_a_database_that_another_program_keeps_locked_is_an_error_in_one_line(service, owned, monkeypatch):
    monkeypatch.setattr("store.sqlite_connection.BUSY_TIMEOUT_MS", 1)
    database.close()  # what is opened now waits as briefly as that
    other = sqlite3.connect(service.settings.database)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert "locked" in said(owned("key", "create", OWNER, "name"))
    finally:
        other.close()


# --- backup -------------------------------------------------------------------------------------------------


@sqlite_only
def test_backup_prints_one_line_and_writes_the_file(owned, tmp_path):
    assert "copy.db" in printed(owned("backup", tmp_path / "copy.db"))
    copy = sqlite3.connect(tmp_path / "copy.db")
    assert copy.execute("SELECT email FROM account").fetchall() == [(OWNER,)]


@sqlite_only
def test_backup_overwrites_nothing(owned, tmp_path):
    (tmp_path / "precious.db").write_text("precious")
    assert "exists" in said(owned("backup", tmp_path / "precious.db"))
    assert (tmp_path / "precious.db").read_text() == "precious"


@each("target", ["missing/copy.db", "file/copy.db", ".", "", "..", "x" * 300, "missing/.."])
def test_a_backup_that_cannot_be_written_is_an_error_in_one_line_and_leaves_nothing_behind(
    owned, tmp_path, monkeypatch, target
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.iterdir())
    said(owned("backup", target))
    assert sorted(tmp_path.iterdir()) == before


@sqlite_only
def test_a_backup_where_nothing_can_be_written_names_the_directory(owned):
    sentence = "Error: Cannot write to /proc: No such file or directory."
    assert said(owned("backup", "/proc/copy.db")) == sentence


@pytest.mark.parametrize("target", ["", ".", "inner", "inner/.."])
def test_a_backup_to_a_directory_asks_for_a_file(owned, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    directory = (tmp_path / target).resolve()
    assert said(owned("backup", target)) == f"Error: {directory} is a directory: name the file to write."


@pytest.mark.parametrize("name", ["a\nb.db", "missing\n/b.db", os.fsdecode(b"caf\xe9.db")], ids=range(3))
def test_a_file_name_of_any_characters_cannot_break_the_line_of_backup(owned, tmp_path, name):
    result = owned("backup", tmp_path / name)
    assert len((result.stdout + result.stderr).splitlines()) == 1, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


# --- in a process of its own --------------------------------------------------------------------------------


def test_a_key_made_and_revoked_by_another_process_counts_at_once(service, owned):
    made = run_in_fork(service.data_dir, "key", "create", OWNER, "elsewhere", **service.where)
    full_key = made.stdout.decode().strip()
    assert (made.returncode, made.stderr) == (0, b"") and FULL_KEY.fullmatch(full_key)
    headers = {"Authorization": f"Bearer {full_key}"}
    assert service.client.get("/api/v1/stats", headers=headers).status_code == 200
    revoked = run_in_fork(service.data_dir, "key", "revoke", OWNER, key_columns(owned)[0][0], **service.where)
    assert (revoked.returncode, len(revoked.stdout.splitlines())) == (0, 1)
    assert service.client.get("/api/v1/stats", headers=headers).status_code == 401


def test_the_first_command_of_all_makes_the_database(tmp_path):
    made = run_in_fork(tmp_path / "new", "account", "create", OWNER)
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


@each("command", WITHOUT_DATA)
def test_a_command_where_there_is_no_data_says_so_and_makes_none(tmp_path, command):
    sentence = said(run_command(tmp_path / "typo", *command))
    assert f"There is no Pocketbell data in {tmp_path / 'typo'}" in sentence and "DATA_DIR" in sentence
    assert list(tmp_path.iterdir()) == []


def test_a_command_beside_an_empty_file_leaves_it_empty(tmp_path):
    (tmp_path / "bell.db").touch()
    elsewhere = {"DATABASE_URL": f"sqlite:///{tmp_path}/bell.db"}
    sentence = said(run_command(tmp_path / "data", "account", "list", **elsewhere))
    assert f"There is no Pocketbell data in {tmp_path}" in sentence and "DATABASE_URL" in sentence
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [("bell.db", 0)]


def test_flasks_own_commands_make_no_data(tmp_path):
    done = run_in_fork(tmp_path / "typo", "routes")
    assert (done.returncode, done.stderr) == (0, b"") and list(tmp_path.iterdir()) == []


@each("command", ["--help", "account --help", "account create --help", "key list --help"])
def test_a_command_that_needs_no_database_makes_none(tmp_path, command):
    result = run_command(tmp_path / "typo", *command.split())
    assert (result.exit_code, result.stderr) == (0, "") and list(tmp_path.iterdir()) == []


def test_the_application_makes_its_database_with_the_first_request_under_any_server(tmp_path):
    application = create_app(config.load({"DATA_DIR": str(tmp_path / "data")}))
    assert list(tmp_path.iterdir()) == []
    assert application.test_client().get("/app/login").status_code == 200
    assert (tmp_path / "data" / "pocketbell.db").is_file()


def test_bytes_that_are_not_utf_8_cause_no_traceback_as_argument_or_input(tmp_path):
    for command in (["create"], ["set", "--plan", "pro"]):
        told(run_in_fork(tmp_path, "account", *command, os.fsdecode(b"own\xffer@example.org")))
    (tmp_path / "password").write_bytes(b"\xff\xfe" * 10)
    create = ("account", "create", OWNER, "--password-stdin")
    assert "is not UTF-8" in told(run_in_fork(tmp_path, *create, stdin=tmp_path / "password"))


@each("charset", ["ascii", "latin-1"])
def test_an_output_that_cannot_show_a_name_causes_no_traceback(service, owned, charset):
    owned("key", "create", OWNER, "漢字")
    listed = service.app.test_cli_runner(charset=charset).invoke(args=["key", "list", OWNER])
    assert listed.exception is None or isinstance(listed.exception, SystemExit)
    assert len(listed.output.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_takes_nothing_is_an_error_without_a_traceback(service, owned):
    told(run_in_fork(service.data_dir, "key", "create", OWNER, "x", stdout="/dev/full", **service.where))


@pytest.mark.skipif(os.name != "posix", reason="terminals are POSIX's")
def test_on_a_terminal_the_password_is_asked_for_twice_and_not_shown(tmp_path):
    seen = b""
    with on_a_terminal(tmp_path, "account", "create", OWNER) as (process, terminal):
        for _ in ("once", "and again"):
            seen += read_until(terminal, b": ")
            os.write(terminal, f"{PASSWORD}\n".encode())
        seen += read_until(terminal, OWNER.encode(), b"\n")
        assert process.wait(timeout=PATIENCE_S) == 0
    assert PASSWORD.encode() not in seen and b"/app/setup/" not in seen


def test_the_doctor_names_every_wrong_setting_in_one_run(tmp_path):
    done = run_in_fork(tmp_path, "doctor", THREADS="many", LOG_LEVEL="loud", PORT="http")
    assert (done.returncode, done.stdout) == (1, b"")
    assert [line.split()[0] for line in done.stderr.decode().splitlines()] == ["PORT", "THREADS", "LOG_LEVEL"]


def garbage(path):
    path.write_bytes(b"This is no database. " * 500)


def damaged(path):
    """A database whose tables are overwritten behind its first page."""
    assert run_command(path.parent, "account", "create", OWNER).exit_code == 0
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


def directory(path):
    path.mkdir()


@pytest.mark.parametrize("unusable", [garbage, damaged, directory])
def test_a_database_file_that_cannot_be_used_is_an_error_in_one_line(tmp_path, unusable):
    unusable(tmp_path / "pocketbell.db")
    result = run_command(tmp_path, "account", "list")
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert len(result.output.splitlines()) == 1, result.output


def test_a_place_that_cannot_be_used_is_named_with_its_settings():
    result = run_command(Path("/dev/null/data"), "account", "create", OWNER)
    place = "/dev/null/data/pocketbell.db: Not a directory"
    assert said(result) == f"Error: DATA_DIR or DATABASE_URL cannot be used: {place}."


@sqlite_only
def test_a_full_disk_is_an_error_in_one_line_and_no_key_is_printed(owned):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        refused = owned("key", "create", OWNER, "name")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said(refused)


def test_commands_started_at_the_same_time_all_do_their_work(service, owned, tmp_path):
    env = environment(service.data_dir, **service.where)
    outputs = [tmp_path / f"output {n}" for n in range(2)]
    commands = [
        Fork([FLASK, "key", "create", OWNER, f"key {n}"], env, output, tmp_path / "errors")
        for n, output in enumerate(outputs)
    ]
    assert [command.wait(PATIENCE_S) for command in commands] == [0, 0]
    assert all(FULL_KEY.fullmatch(output.read_text().strip()) for output in outputs)
    assert sorted(columns[2] for columns in key_columns(owned)) == ["key 0", "key 1"]


def test_a_reader_that_goes_away_is_no_error(service, owned, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    env = environment(service.data_dir, **service.where)
    process = Fork([FLASK, "account", "list"], env, tmp_path / "pipe", tmp_path / "errors")
    os.close(reader)
    process.wait(PATIENCE_S)
    assert (tmp_path / "errors").read_bytes() == b""


def test_a_closed_standard_stream_causes_no_traceback(service, owned):
    listed = run_in_fork(service.data_dir, "account", "list", stdout=None, **service.where)
    assert (listed.returncode, listed.stderr) == (0, b"")
    create = ("account", "create", "a@example.org", "--password-stdin")
    assert "standard input is closed" in told(run_in_fork(service.data_dir, *create, stdin=None, **service.where))


def test_a_failed_write_is_explained_though_its_rollback_failed_too(owned, monkeypatch):
    def fail(*_, **__):
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise peewee.OperationalError("cannot rollback - no transaction is active") from None

    monkeypatch.setattr(accounts, "create_key", fail)
    assert "No space left on device" in said(owned("key", "create", OWNER, "name"))
