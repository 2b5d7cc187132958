"""Try an upgrade and its way back: `python -m tools.upgrading OLD NEW`, two commits.

Each version is a tree of its own with its own packages, as `make` installs them, on one data directory: the old one
stores, the new one goes on, and the old one goes on from the copy that the upgrade left. Needs PyPI.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.support.server import NO_FILE, PATIENCE_S, free_port, wait_until

OWNER = "owner@example.org"


class Tree:
    """A version of the program, installed, that works on a data directory."""

    def __init__(self, repository: Path, commit: str, place: Path, data: Path) -> None:
        self.place, self.port, self.log = place, free_port(), place.with_suffix(".log")
        self.environ = {**os.environ, **NO_FILE, "DATA_DIR": str(data), "PORT": str(self.port)}
        place.mkdir()
        files = subprocess.run(["git", "archive", commit], cwd=repository, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=place, input=files, check=True)
        subprocess.run(["make", "--silent", ".venv/installed"], cwd=place, stdout=subprocess.DEVNULL, check=True)

    def run(self, *words: str, stdin: str = "") -> str:
        """What a command prints."""
        command = [".venv/bin/flask", *words]
        done = subprocess.run(
            command, cwd=self.place, env=self.environ, input=stdin, stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} failed in {self.place.name}.")
        return done.stdout.strip()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run the service; it must start, and end in peace."""
        command = [".venv/bin/gunicorn", "--config", "gunicorn.conf.py", "--no-control-socket", "app:app"]
        with self.log.open("ab") as log:
            process = subprocess.Popen(command, cwd=self.place, env=self.environ, stdout=log, stderr=log)
        try:
            wait_until(lambda: self._is_ready(process))
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(PATIENCE_S)
        if status:
            raise SystemExit(f"The service of {self.place.name} ended with {status}: {self.log.read_text()[-2000:]}")

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        if process.poll() is not None:
            raise SystemExit(f"The service of {self.place.name} does not start: {self.log.read_text()[-2000:]}")
        try:
            return bool(self.call("", "/healthz"))
        except OSError:
            return False

    def call(self, key: str, path: str, body: object = None) -> Any:
        """The answer to a request, as JSON."""
        sent = None if body is None else json.dumps(body).encode()
        request = Request(f"http://127.0.0.1:{self.port}{path}", sent, {"Authorization": f"Bearer {key}"})
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read())

    def bodies(self, key: str) -> list[str]:
        """The bodies of the stored notifications, the oldest first."""
        listed = self.call(key, "/api/v1/notifications")["notifications"]
        return [one["body"] for one in reversed(listed)]


def try_upgrade(repository: Path, before: str, after: str, scratch: Path) -> None:
    """Upgrade from one commit to the other and go back; ends the program with a sentence if anything is lost."""
    data = scratch / "data"
    old, new = (Tree(repository, commit, scratch / name, data) for name, commit in (("old", before), ("new", after)))
    old.run("account", "create", OWNER, "--password-stdin", stdin="correct horse battery staple")
    key = old.run("key", "create", OWNER, "test")
    with old.serving():
        _send(old, key, "before the upgrade")
    was = _schema(data)
    with new.serving():
        _expect(new, key, ["before the upgrade"])
        _send(new, key, "after it")
    now = _schema(data)
    print(f"Upgraded from {before} (schema {was}) to {after} (schema {now}): everything is there.")
    if was != now:
        _take_back(data, was)
    with old.serving():
        _expect(old, key, ["before the upgrade"] + ["after it"] * (was == now))
    print(f"Went back to {before}: it works on what was there before.")


def _send(tree: Tree, key: str, body: str) -> None:
    sent = tree.call(key, "/api/v1/notifications/send", {"title": "Test", "body": body})
    if not sent["ok"]:
        raise SystemExit(f"A notification could not be sent with the key: {sent}")


def _expect(tree: Tree, key: str, bodies: list[str]) -> None:
    if (seen := tree.bodies(key)) != bodies:
        raise SystemExit(f"{tree.place.name} has {seen} instead of {bodies}.")


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
