"""Every command of the page on quiet runs, and its five examples do what they say."""

import re
import shlex

import pytest

from tests.support.accounts import OWNER
from tests.support.heartbeats import Pinged
from tests.support.holding import shown
from tests.support.rules import Ruled
from tests.support.server import ROOT

PAGE = (ROOT / "docs/quiet.md").read_text()
BEGIN = "./pocketbell "


@pytest.fixture
def alert(service, owner, browser):
    return service.alert("--priority", "{{ p }}")


@pytest.fixture
def runs(service, owner, alert):
    """Runs the commands of a part of the page, which must all succeed."""
    Pinged(service, owner, "--period", "1h")
    Ruled(service, owner, "> 90")
    device = owner.get("/devices").json["devices"][0]["id"]
    mine = {"ALERT_ID": alert.id, "DEVICE_ID": device, "you@example.org": OWNER}

    def run(text, most=100):
        commands = [line.removeprefix(BEGIN) for line in text.splitlines() if line.startswith(BEGIN)][:most]
        for command in commands:
            for theirs, ours in mine.items():
                command = command.replace(theirs, ours)
            result = service.flask(*shlex.split(command))
            assert result.exit_code == 0, (command, result.output)
        return len(commands)

    return run


@pytest.fixture
def example(runs):
    """Runs the commands of an example by its number, or the first of them."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.partition("## Five examples")[2], re.S)
    assert len(blocks) == 5
    return lambda number, most=100: runs(blocks[number - 1], most)


def test_every_command_runs(runs):
    assert runs(PAGE) >= 15


def test_nights_are_later_at_weekends_and_urgent_rings(alert, example, until):
    example(1)
    for moment, of_normal in (
        ("2026-11-21T23:00", "delivered"),  # a Saturday
        ("2026-11-21T23:30", "held"),
        ("2026-11-22T08:59", "held"),
        ("2026-11-22T21:59", "delivered"),
        ("2026-11-22T22:00", "held"),
    ):
        until(moment)
        assert alert.post({"message": "a", "p": "normal"}).json["status"] == of_normal
        assert alert.post({"message": "b", "p": "urgent"}).json["status"] == "delivered"


def test_on_holiday_only_urgent_rings_and_no_digest_comes(alert, browser, example, works_at):
    example(5)
    assert alert.post({"message": "a", "p": 4}).json["status"] == "delivered"
    alert.post({"message": "b", "p": 5})
    works_at("2026-11-23T08:00")
    assert [body for _, body in shown(browser)] == ["b"]
