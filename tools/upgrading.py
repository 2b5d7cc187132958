"""Try an upgrade and its way back: `python -m tools.upgrading OLD NEW`, two commits.

Each version is a tree of its own with its own packages, as `make` installs them, on one data directory: the old one
stores, the new one goes on, and the old one goes on from the copy that the upgrade left. Needs PyPI.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from tests.support.server import Server, started

OWNER = "owner@example.org"


class Installed(Server):
    """The service of a version that is installed in a tree of its own."""

    bin = Path(".venv/bin")

    def __init__(self, tree: Path, data: Path) -> None:
        self.start = partial(started, folder=tree)
        super().__init__(data)

    def send(self, key: str, body: str) -> None:
        """Send a notification with this body."""
        answer = super().send(key, body=body)
        if answer.status != 200:
            raise SystemExit(f"A notification could not be sent with the key: {answer.text}")

    def expect(self, key: str, bodies: list[str]) -> None:
        """End the program unless these, the oldest first, are the bodies of the stored notifications."""
        listed = json.loads(self.get("/api/v1/notifications", key).text)["notifications"]
        if (seen := [one["body"] for one in reversed(listed)]) != bodies:
            raise SystemExit(f"The service has {seen} instead of {bodies}.")


def installed(repository: Path, commit: str, tree: Path) -> Path:
    """The tree, with this version in it, installed."""
    tree.mkdir()
    files = subprocess.run(["git", "archive", commit], cwd=repository, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=tree, input=files, check=True)
    subprocess.run(["make", "--silent", ".venv/installed"], cwd=tree, stdout=subprocess.DEVNULL, check=True)
    return tree


@contextmanager
def serving(tree: Path, data: Path) -> Iterator[Installed]:
    """Run the service of a tree; it must start, and end in peace."""
    service = Installed(tree, data)
    try:
        yield service.wait_until_ready()
    finally:
        status = service.terminate()
    if status:
        raise SystemExit(f"The service in {tree} ended with {status}: {service.log[-2000:]}")


def try_upgrade(repository: Path, before: str, after: str, scratch: Path) -> None:
    """Upgrade from one commit to the other and go back; ends the program with a sentence if anything is lost."""
    data = scratch / "data"
    old, new = installed(repository, before, scratch / "old"), installed(repository, after, scratch / "new")
    with serving(old, data) as service:
        service.flask("account", "create", OWNER)
        key = service.flask("key", "create", OWNER, "test").strip()
        service.send(key, "before the upgrade")
    was = _schema(data)
    with serving(new, data) as service:
        service.expect(key, ["before the upgrade"])
        service.send(key, "after it")
    now = _schema(data)
    print(f"Upgraded from {before} (schema {was}) to {after} (schema {now}): everything is there.")
    if was != now:
        _take_back(data, was)
    with serving(old, data) as service:
        service.expect(key, ["before the upgrade"] + ["after it"] * (was == now))
    print(f"Went back to {before}: it works on what was there before.")


def _schema(data: Path) -> int:
    with closing(sqlite3.connect(data / "pocketbell.db")) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _take_back(data: Path, schema: int) -> None:
    """Put the copy of before the upgrade in the database's place, as docs/deployment.md says."""
    newer = data / "newer"
    newer.mkdir()
    for path in data.glob("pocketbell.db*"):
        path.rename(newer / path.name)
    shutil.copy(newer / f"pocketbell.db.schema-{schema}", data / "pocketbell.db")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="pocketbell-upgrade-") as scratch:
        try_upgrade(Path(__file__).parents[1], sys.argv[1], sys.argv[2], Path(scratch))
