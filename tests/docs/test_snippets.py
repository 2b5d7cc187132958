"""Every command of the README and of the pages on the API and on alerts runs, and answers as the page says."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from core import accounts
from models import Alert
from store.database import run
from tests.support.accounts import OWNER
from tests.support.moving import run_command
from tests.support.rows import each
from tests.support.server import PATIENCE_S, ROOT, serving

PAGES = ("README.md", "docs/alerts.md", "docs/api.md")  # the last one mutes everything
OURS = "./pocketbell "  # tests/cli/test_program.py is about this program itself
NOT_RUN = ("git clone ADDRESS", "BELL=http")  # the gate begins with a clone; the tests have values of their own


def blocks(page):
    """Each block of shell commands on a page, with the block that shows its output, if there is one."""
    text = (ROOT / page).read_text()
    found = re.findall(r"^```sh\n(.*?)^```\n(?:\n```(?:json)?\n(.*?)^```\n)?", text, re.M | re.S)
    return [(commands, shown) for commands, shown in found if not commands.startswith(NOT_RUN)]


class Reader:
    """Somebody who copies the commands, and puts in their own key, ids and addresses."""

    def __init__(self, server, push_service, folder):
        self.server, bell = server, f"http://127.0.0.1:{server.port}"
        self.environ = {**os.environ, **server.environ, "BELL": bell, "KEY": server.key}
        self.subscription = push_service.browser().subscription
        self.mine = {"you@example.org": OWNER, "/backups": str(folder)}
        self.mine |= {"http://127.0.0.1:8000": bell, "sk_test_...": server.key}

    def first_alert(self):
        """The id of the alert that `alert list` shows first."""
        with self.server.beside():
            return next(iter(Alert.of_account(accounts.find_account(OWNER).seq))).id

    def run(self, commands):
        """What they print, as lines."""
        for theirs, mine in self.mine.items():
            commands = commands.replace(theirs, mine)
        commands = re.sub(r'"subscription": \{.*?\}\}', f'"subscription": {json.dumps(self.subscription)}', commands)
        commands = commands.replace(f"create {OWNER}   ", "create another@example.org   ")  # the owner is there
        printed = ""
        for command in re.sub(r"\\\n\s*", " ", commands).splitlines():
            for name in ("DEVICE_ID", "NOTIFICATION_ID"):
                if name in command:
                    ids = re.findall(r'"id":"([0-9a-f]{32})"', printed)
                    command = command.replace(name, ids[0])
            if "ALERT_ID" in command:
                command = command.replace("ALERT_ID", self.first_alert())
            run = self.ours if command.startswith(OURS) else self.shell
            said = run(command.replace("curl ", "curl -sS "))
            printed += said if said.endswith("\n") else said + "\n"
        if address := re.search(r"/p/(\w{7})$", printed.strip()):
            self.mine["/p/ZAjjMos"] = address[0]
        return printed.splitlines()

    def shell(self, command):
        """What the shell prints."""
        done = subprocess.run(
            ["sh", "-eu", "-c", command],
            cwd=ROOT, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), command
        return done.stdout

    def ours(self, command):
        """What our command prints with the arguments that the shell finds in this line."""
        arguments = self.shell(command.replace(OURS, "printf '%s\\0' ", 1)).split("\0")[:-1]
        done = run_command(self.server.data_dir, *arguments, **self.server.environ)
        assert (done.exit_code, done.stderr.replace("Password:", "").strip()) == (0, ""), command
        return done.stdout


@pytest.fixture(scope="module")
def server(push_server, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("snippets") / "data", WEBPUSH_HOSTS=push_server.origin) as running:
        running.key = running.wait_until_ready().owner_key()
        yield running


@pytest.fixture
def reader(server, push_service, tmp_path):
    return Reader(server, push_service, tmp_path)


def form(line):
    """The line without what changes each time: ids, times, keys, codes and ports."""
    line = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", line)
    line = re.sub(r"\b[0-9a-f]{32}\b|sk_test_[0-9a-f]{48}|/p/\w{7}", "…", line)
    return re.sub(r"\d{13}", "0", line)


@each("page", PAGES)
def test_a_pages_commands_print_their_shown_output(page, reader):
    for commands, shown in blocks(page):
        printed = reader.run(commands)
        for line in printed:
            if line.startswith("{"):
                answer = json.loads(line)
                assert answer.get("ok", answer.get("success", answer.get("jsonrpc"))), line
        if shown:
            assert [form(line) for line in printed][-1] == form(shown.strip()), commands


def test_the_pages_have_commands():
    assert [len(blocks(page)) for page in PAGES] == [4, 4, 11]


def test_the_copy_of_the_readme_is_a_database(reader):
    (line,) = reader.run(next(commands for commands, _ in blocks("README.md") if "./pocketbell backup" in commands))
    shown = re.search(r"It prints `(.*?)`", (ROOT / "README.md").read_text())[1]
    wrote = re.compile(r"Wrote (\S+\.db) \((\d+) bytes\)\.")
    file, size = wrote.fullmatch(line).groups()
    assert Path(file).stat().st_size == int(size) and wrote.fullmatch(shown)


def test_a_job_with_a_log_of_any_length_pings_as_the_page_says(server, reader, tmp_path):
    (job := tmp_path / "backup.sh").write_text(
        "#!/bin/sh\nhead -c 2000000 /dev/zero | tr '\\0' x\necho the end\nexit 3"
    )
    job.chmod(0o755)
    commands = next(commands for commands, _ in blocks("docs/watches.md") if "backup.sh" in commands)
    reader.environ["URL"] = reader.ours(f"{OURS}heartbeat create {OWNER} Backup --period 1h").strip()
    reader.shell(f"set +e; cd {tmp_path}\n" + commands[commands.index("./backup.sh") :])
    with server.beside():
        ((exit_code, body),) = run("SELECT exit_code, body FROM ping").fetchall()
    assert exit_code == 3 and body.endswith("xthe end\n")
