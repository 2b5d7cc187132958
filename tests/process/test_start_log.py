"""What the log says of a start: the version, that an older database was upgraded, or why it failed."""

import re
import sqlite3
from contextlib import closing

from config import VERSION
from store.engine import SCHEMA_VERSION
from tests.support.schemas import SCHEMAS
from tests.support.server import PATIENCE_S


def test_the_log_of_a_start_names_version_and_schema_and_warns_of_a_disk_that_is_wiped_and_a_guessable_secret(start):
    log = start(DYNO="web.1", SECRET_KEY="x").wait_until_ready().log
    assert f"Starting Pocketbell {VERSION} with schema {SCHEMA_VERSION}." in log and "Upgraded" not in log
    assert [line for line in log.splitlines() if '"critical"' in line and "wipes the disk" in line]
    assert "SECRET_KEY can be guessed" in log


def test_the_log_says_that_an_older_database_was_upgraded_and_where_its_copy_is(start, tmp_path):
    file = tmp_path / "data/pocketbell.db"
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as older:
        older.executescript(SCHEMAS[-1].read_text() + f"PRAGMA user_version = {len(SCHEMAS)};")
    log = start().wait_until_ready().log
    assert "wipes" not in log and "guessed" not in log
    (copy,) = re.findall(rf"Upgraded schema {len(SCHEMAS)} to {SCHEMA_VERSION} in \d+\.\d s; copy at ([^\"]+)\"", log)
    with closing(sqlite3.connect(copy)) as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (len(SCHEMAS),)


def test_a_directory_that_cannot_be_used_ends_a_start_and_is_named_with_its_settings(start):
    stopped = start(DATA_DIR="/dev/null/data")
    assert stopped.process.wait(PATIENCE_S) == 1
    said = "DATA_DIR or DATABASE_URL cannot be used: /dev/null/data: Not a directory."
    assert stopped.log.splitlines()[-1] == said
