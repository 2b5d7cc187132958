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
from tests.support.forks import Fork
from tests.support.server import BIN, PATIENCE_S, ROOT, finished, serving

PAGES = ("README.md", "docs/api.md", "docs/alerts.md")
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
        self.server, self.folder = server, folder
        self.environ = {**os.environ, **server.environ, "BELL": f"http://127.0.0.1:{server.port}"}
        self.subscription = push_service.browser().subscription
        self.mine = {"you@example.org": OWNER, "/backups": str(folder)}
        self.mine |= {"http://127.0.0.1:8000": self.environ["BELL"], "sk_test_...": server.owner_key()}
        self.environ["KEY"] = self.mine["sk_test_..."]

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
            run = self.fork if command.startswith(OURS) else self.shell
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

    def fork(self, command):
        """What our command prints with the arguments that the shell finds in this line."""
        arguments = self.shell(command.replace(OURS, "printf '%s\\0' ", 1)).split("\0")[:-1]
        done = finished(Fork, [BIN / "flask", *arguments], self.environ)
        assert (done.returncode, done.stderr.replace(b"Password:", b"").strip()) == (0, b""), command
        return done.stdout.decode()


def form(line):
    """The line without what changes each time: ids, times, keys, codes and ports."""
    line = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", line)
    line = re.sub(r"\b[0-9a-f]{32}\b|sk_test_[0-9a-f]{48}|/p/\w{7}", "…", line)
    return re.sub(r"\d{13}", "0", line)


@pytest.mark.parametrize("page", PAGES)
def test_a_pages_commands_print_their_shown_output(page, push_service, tmp_path):
    with serving(tmp_path / "data", WEBPUSH_HOSTS=push_service.origin) as server:
        server.wait_until_ready()
        reader = Reader(server, push_service, tmp_path)
        for commands, shown in blocks(page):
            printed = reader.run(commands)
            for line in printed:
                if line.startswith("{"):
                    answer = json.loads(line)
                    assert answer.get("ok", answer.get("success", answer.get("jsonrpc"))), line
            if shown:
                assert [form(line) for line in printed][-1] == form(shown.strip()), commands


def test_the_pages_have_commands():
    assert [len(blocks(page)) for page in PAGES] == [4, 11, 4]


def test_the_copy_of_the_readme_is_a_database(push_service, tmp_path):
    with serving(tmp_path / "data") as server:
        server.wait_until_ready()
        found = next(commands for commands, _ in blocks("README.md") if "./pocketbell backup" in commands)
        (line,) = Reader(server, push_service, tmp_path).run(found)
    file, size = re.fullmatch(r"Wrote (\S+\.db) \((\d+) bytes\)\.", line).groups()
    assert Path(file).stat().st_size == int(size)
    shown = re.search(r"It prints `(.*?)`", (ROOT / "README.md").read_text())[1]
    assert re.fullmatch(r"Wrote (\S+\.db) \((\d+) bytes\)\.", shown)


def test_a_job_with_a_log_of_any_length_pings_as_the_page_says(push_service, tmp_path):
    (job := tmp_path / "backup.sh").write_text(
        "#!/bin/sh\nhead -c 2000000 /dev/zero | tr '\\0' x\necho the end\nexit 3"
    )
    job.chmod(0o755)
    commands = next(commands for commands, _ in blocks("docs/watches.md") if "backup.sh" in commands)
    with serving(tmp_path / "data") as server:
        server.wait_until_ready()
        reader = Reader(server, push_service, tmp_path)
        reader.environ["URL"] = server.flask("heartbeat", "create", OWNER, "Backup", "--period", "1h").strip()
        reader.shell(f"set +e; cd {tmp_path}\n" + commands[commands.index("./backup.sh") :])
        with server.beside():
            ((exit_code, body),) = run("SELECT exit_code, body FROM ping").fetchall()
    assert exit_code == 3 and body.endswith("xthe end\n")
