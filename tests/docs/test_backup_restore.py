"""docs/backup.md: its commands, exactly as written, keep copies and bring everything back."""

import json
import os
import re
import shutil

import pytest

from store.sqlite_lock import note_of_service
from tests.support import postgresql
from tests.support.forks import ForkedProgram
from tests.support.server import ROOT, Server, wait_until
from tests.support.service import empty_database

PAGE = (ROOT / "docs/backup.md").read_text()
WRAPPER = re.search(r"<<'END'\n(.*?)^END$", (ROOT / "docs/deployment.md").read_text(), re.M | re.S)[1]
RESTORING = re.search(r"^## Restoring\n+```sh\n(.*?)^```", PAGE, re.M | re.S)[1].splitlines()
TO_POSTGRESQL, TO_SQLITE = (
    re.search(rf"^### Moving from {way}\n.*?```sh\n(.*?)^```", PAGE, re.M | re.S)[1].splitlines()
    for way in ("SQLite to PostgreSQL", "PostgreSQL to SQLite")
)
CRON = re.search(r"^[\d *]+ root (/usr/local/sbin/pocketbell backup .*)$", PAGE, re.M)[1].replace("\\%", "%")

START = "systemctl start pocketbell"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gunicorn runs on POSIX alone")


class Machine:
    """A machine in a directory, set up as docs/deployment.md says, for one user alone."""

    def __init__(self, directory, **environ):
        self.settings = directory / "env"
        self.data_dir, self.backups = directory / "data", directory / "backups"
        self.backups.mkdir()
        self.command = directory / "pocketbell"
        self.program = ForkedProgram(directory)
        self.settings.write_text("".join(f"{name}={value}\n" for name, value in environ.items()))
        self.places = {
            "/usr/local/sbin/pocketbell": self.command,
            "/var/lib/pocketbell": self.data_dir,
            "/var/backups/pocketbell": self.backups,
            "/etc/pocketbell.env": self.settings,
            "/opt/pocketbell": ROOT,
            "./pocketbell": self.program.path,
            "runuser -u pocketbell -- ": "",
            "-o pocketbell -g pocketbell ": "",
        }
        self.command.write_text(self.here(WRAPPER))
        self.command.chmod(0o755)
        self.server = None

    def here(self, text):
        for place, ours in self.places.items():
            text = text.replace(place, str(ours))
        return text

    def run(self, line):
        """One line of a page. Stopping is the worst that can happen: the old -wal stays."""
        if line == START:
            lines = (line.split("=", 1) for line in self.settings.read_text().splitlines())
            environ = {name: value.strip("'") for name, value in lines}
            self.server = Server(self.data_dir, **environ).wait_until_ready()
        elif line == "systemctl stop pocketbell":
            self.server.kill()
            wait_until(lambda: not note_of_service(self.data_dir / "pocketbell.db"))  # its worker has ended, too
        else:
            self.program.run_line(f"PATH={self.command.parent}:$PATH; {self.here(line)}")


@pytest.fixture
def machine(tmp_path, push_service):
    made = Machine(tmp_path, WEBPUSH_HOSTS=push_service.origin)
    yield made
    if made.server and made.server.process.poll() is None:
        made.server.kill()


PAGE_OF_HISTORY = "/api/v1/notifications?limit=1&cursor={}"


def subscribed(machine, push_service):
    """A key of the started service, its browser, three notifications' ids, and a cursor in the history."""
    machine.run(START)
    key, browser = machine.server.owner_key(), push_service.browser()
    machine.server.subscribe(key, browser)
    sent = [json.loads(machine.server.send(key).text)["notification"]["id"] for _ in range(3)]
    page = json.loads(machine.server.get(PAGE_OF_HISTORY.format(""), key).text)
    return key, browser, sent, PAGE_OF_HISTORY.format(page["pagination"]["nextCursor"])


def test_the_commands_of_the_page_bring_back_every_acknowledged_notification_and_the_devices_key(
    machine, push_service
):
    """Without its secret key, the restored service refuses old cursors and nothing else."""
    key, browser, sent, page = subscribed(machine, push_service)
    machine.run("/usr/local/sbin/pocketbell backup /var/backups/pocketbell/2026-11-21.db")
    assert machine.server.send(key, title="after the backup").status == 200
    before = browser.vapid_key
    without = [RESTORING[0], "rm -r /var/lib/pocketbell/before /var/lib/pocketbell/secret_key", *RESTORING[1:]]
    for lines, status in ((RESTORING, 200), (without, 400)):
        for line in lines:
            machine.run(line)
        assert machine.server.get(page, key).status == status
        assert set(machine.server.listed_ids(key)) == {*sent}
        assert (
            json.loads(machine.server.send(key, title=f"again {status}").text)["notification"]["status"]
            == "delivered"
        )
        assert browser.messages[-1]["notification"]["title"] == f"MCP - again {status}"
        assert browser.vapid_key == before
        assert machine.data_dir.joinpath("pocketbell.db").stat().st_mode & 0o777 == 0o600


def test_the_commands_of_the_page_move_everything_to_postgresql_and_back(machine, push_service):
    url = postgresql.new_database(f"page_{os.getpid()}")
    machine.places |= {"postgresql://bell:PASSWORD@db.example.org/bell": url}
    key, browser, sent, page = subscribed(machine, push_service)
    before = []
    for lines in (TO_POSTGRESQL, TO_SQLITE):
        before.append(browser.vapid_key)
        for line in lines:
            machine.run(line)
        assert machine.server.get(page, key).status == 200
        assert set(machine.server.listed_ids(key)) == {*sent}
        sent.append(json.loads(machine.server.send(key).text)["notification"]["id"])
        assert ("DATABASE_URL" in machine.settings.read_text()) == (lines is TO_POSTGRESQL)
        for path in machine.data_dir.glob("pocketbell.db*"):  # as the page says: the old file is deleted
            if lines is TO_POSTGRESQL:
                path.unlink()
    assert before == [browser.vapid_key] * 2


def test_the_nightly_line_keeps_the_newest_seven_copies(machine):
    machine.data_dir.mkdir()
    shutil.copy(empty_database(), machine.data_dir / "pocketbell.db")
    for day in range(1, 10):
        machine.backups.joinpath(f"2025-01-{day:02}.db").touch()
    machine.backups.joinpath("before-1a2b3c4.db").touch()
    machine.run(CRON)
    *old, newest = sorted(path.name for path in machine.backups.iterdir() if path.name[0] == "2")
    assert old == [f"2025-01-{day:02}.db" for day in range(4, 10)]
    assert machine.backups.joinpath(newest).stat().st_size and machine.backups.joinpath("before-1a2b3c4.db").exists()
