"""Each command of docs/ntfy-and-gotify.md runs against a real service, if its program is installed."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import app
from tests.support.rows import each
from tests.support.server import BIN, PATIENCE_S, ROOT, serving

PAGE = (ROOT / "docs/ntfy-and-gotify.md").read_text()
COMMANDS = [
    command
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
    for command in re.sub(r" \\\n\s*", " ", block).splitlines()
]
ARRIVES = {  # by the beginning of what is said
    "Backup successful": {"title": "mytopic", "body": "Backup successful 😀"},
    "Remote access": {"title": "Unauthorized access detected", "priority": 5},
    "There's someone": {
        "url": "https://home.nest.com/",
        "actions": [{"label": "Open portal", "url": "https://home.nest.com/"}],
    },
    "It's 30 minutes": {"title": "reminder"},
    "Webhook+triggered": {"title": "mywebhook", "body": "Webhook triggered", "priority": 4},
    "Downloading": {"tag": "my-download", "body": "Downloading file: 10 %"},
    "Disk space": {"title": "Low disk space", "priority": 4},
    "finished in 42 s": {"title": "Backup", "priority": 4},
    "?priority=high": {"title": "Backup", "body": "finished", "priority": 4},
    "sent by shoutrrr": {"title": "Backup", "body": "sent by shoutrrr", "priority": 3},
    "gotify://": {"title": "Backup", "body": "finished", "priority": 3},
    "my message": {"title": "my title", "priority": 3},
    "X-Gotify-Key": {"title": "Backup", "priority": 4, "url": "https://example.org"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("ntfy") / "data") as running:
        running.key = running.owner_key()
        yield running.wait_until_ready()


def program(command):
    """Where the program that a command begins with is, or None."""
    return shutil.which(command.partition(" ")[0], path=f"{BIN}:{os.environ.get('PATH', '')}")


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_of_the_page_sends_its_described_message(server, command, tmp_path):
    path = program(command) or pytest.skip(f"no {command.partition(' ')[0]}")
    (expected,) = (arrives for said, arrives in ARRIVES.items() if said in command)
    filled = command.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}").replace("sk_test_...", server.key)
    filled = filled.replace("curl ", "curl -sS --fail-with-body ")
    environ = {"PATH": f"{Path(path).parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["sh", "-c", filled], env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and done.stderr in ("", "Notification sent\n"), done.stdout + done.stderr
    (newest,) = json.loads(server.get("/api/v1/notifications?limit=1", server.key).text)["notifications"]
    newest["title"] = newest["title"].removeprefix("MCP - ")
    assert {name: newest.get(name) for name in expected} == expected


def test_a_message_of_several_kilobytes_fits_into_an_address(server):
    answer = server.get(f"/backups/publish?message={'x' * 8_000}", server.key)
    assert answer.status == 200 and json.loads(answer.text)["message"].startswith("xxx")


def test_every_command_of_a_page_is_checked():
    assert len(COMMANDS) == len(ARRIVES)


@each("segment", sorted((app.OWN_SEGMENTS | app.COMPATIBLE_SEGMENTS) - {"", "openapi.json"}))
def test_the_page_names_the_reserved_topics(segment):
    assert f"`{segment}`" in PAGE.split("A topic cannot be")[1].split("\n")[0]
