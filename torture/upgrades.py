"""kill -9 in the middle of the upgrade from every earlier schema, and a normal start after it."""

import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from store.database import SCHEMA_VERSION
from tests.support.schemas import SCHEMAS, as_of_now, rows_of
from tests.support.server import ROOT, serving
from torture.figure import Figure
from torture.load import counted
from torture.service import FILE, integrity, rows

KILLS, MANY = 10, 5_000
OPEN = """
import pathlib
import sys
import time
from store import database
print("imported", flush=True)
begun = time.monotonic()
database.open_database(pathlib.Path(sys.argv[1]))
print(time.monotonic() - begun, flush=True)
"""
MORE_ROWS = """
WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 100 + :many)
INSERT INTO notification (seq, id, account_seq, api_key_seq, alert_seq, title, body, status, created_at)
 SELECT i, 'n' || i, 1 + i % 2, 1, iif(i % 3, 1, NULL), 'MCP - ' || i, hex(zeroblob(300)), 'delivered', i FROM n
---
INSERT INTO delivery (notification_seq, device_seq, status, attempts)
 SELECT seq, 1 + seq % 2, 'delivered', 1 FROM notification WHERE seq >= 100
---
INSERT INTO idempotency_key (account_seq, key, request_hash, notification_seq, answered_status, created_at)
 SELECT account_seq, 'k' || seq, x'01', seq, 'delivered', seq FROM notification WHERE seq >= 100
---
INSERT INTO api_key (seq, id, account_seq, name, preview, key_hash, created_at)
 SELECT seq, 'k' || seq, 1, 'n', 'p', CAST(seq AS BLOB), seq FROM notification WHERE seq BETWEEN 100 AND 1100
"""
METRICS_UP_TO_SCHEMA_5 = """
INSERT INTO metric (seq, account_seq, project_id, metric_id, metric_name, value, timestamp)
 SELECT seq, account_seq, 'p', 'm' || (seq % 7), 'M', seq, seq FROM notification WHERE seq >= 100
"""
METRICS = """
INSERT INTO metric_series (seq, account_seq, project_id, metric_id)
 SELECT DISTINCT 100 + 10 * account_seq + seq % 7, account_seq, 'p', 'm' || (seq % 7)
 FROM notification WHERE seq >= 100
---
INSERT INTO metric (seq, series_seq, metric_name, value, timestamp)
 SELECT seq, 100 + 10 * account_seq + seq % 7, 'M', seq, seq FROM notification WHERE seq >= 100
"""

Rows = dict[str, list[Any]]


def figures(scratch: Path) -> Iterator[Figure]:
    """Each schema by itself."""
    chance = random.Random(9)
    for schema in SCHEMAS:
        yield from _killed(scratch, schema, chance)


def _old_database(file: Path, schema: Path) -> Rows:
    """Make the file as that version would have left it, in WAL mode; its rows."""
    number = int(schema.stem)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(schema.read_text() + rows_of(number))
        metrics, more = METRICS_UP_TO_SCHEMA_5 if number <= 5 else METRICS, MORE_ROWS
        if number > 16:
            more = more.replace("request_hash, notification_seq", "request_hash, notification_id")
            more = more.replace("x'01', seq", "x'01', id")
        for statement in f"{more}---{metrics}".split("---"):
            connection.execute(statement, {"many": MANY} if ":many" in statement else {})
        connection.execute(f"PRAGMA user_version = {number}")
        connection.commit()
    return _rows(file)


def _rows(file: Path) -> Rows:
    """The rows, by a statement that reads a table's columns."""
    kept = "type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'rule_arrival'"  # which is no more, and was empty
    tables = rows(file, f"SELECT name FROM sqlite_schema WHERE {kept}")
    statements = []
    for (name,) in tables:
        columns = ", ".join(row[1] for row in rows(file, f"PRAGMA table_info({name})"))
        statements.append(f"SELECT {columns} FROM {name} ORDER BY {columns}")
    return {statement: rows(file, statement) for statement in statements}


def _opening(file: Path) -> subprocess.Popen:
    """A process that has imported everything, and begins to open and upgrade the file."""
    process = subprocess.Popen(
        [sys.executable, "-c", OPEN, str(file)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    return process


def _killed(scratch: Path, schema: Path, chance: random.Random) -> Iterator[Figure]:
    number, old = int(schema.stem), scratch / f"{schema.stem}.db"
    before = _old_database(old, schema)
    lasting = max(_duration(scratch / f"{schema.stem}-whole-{number}", old) for number in range(3))
    found, lost, wrong, left, late = list[int](), 0, list[str](), list[str](), 0
    for kill in range(KILLS):
        file = _copied(scratch / f"{schema.stem}-{kill}", old)
        process = _opening(file)
        time.sleep(lasting * (kill + chance.random()) / KILLS)
        late += process.poll() is not None
        process.kill()
        process.wait()
        found.append(rows(file, "PRAGMA user_version")[0][0])
        status = _opening(file).wait(60)
        version = rows(file, "PRAGMA user_version")[0][0]
        lost += any(rows(file, as_of_now(statement)) != were for statement, were in before.items())
        said = integrity(file)
        wrong += [f"{status}/{version}/{said}"] * ((status, version, said) != (0, SCHEMA_VERSION, "ok"))
        unfinished, bad = _beside(file)
        left += unfinished
        wrong += bad
    what = f"kill -9 of the upgrade from schema {number} at {KILLS} moments of {lasting * 1000:.0f} ms"
    total = sum(map(len, before.values()))
    seen = f"{lost} of {KILLS} files differ, {total} rows each; schemas found {counted(found)}, {late} had ended"
    yield Figure(what, "all rows kept after a normal start", seen, not lost and late < KILLS)
    seen = f"wrong {counted(wrong)}; {_serves(scratch / f'{schema.stem}-0')}"
    must = f"integrity ok, schema {SCHEMA_VERSION}, copies whole, the service starts"
    yield Figure(what, must, seen, not wrong and seen.endswith("healthz 200"))
    seen = f"{len(left)} unfinished copies, {sum(map(int, left))} bytes"
    yield Figure(what, "beside it at most one unfinished copy a kill", seen, len(left) <= KILLS)


def _copied(directory: Path, old: Path) -> Path:
    directory.mkdir(mode=0o700)
    return Path(shutil.copy(old, directory / FILE))


def _duration(directory: Path, old: Path) -> float:
    """The duration of an upgrade that is not killed."""
    process = _opening(_copied(directory, old))
    return float(process.communicate(timeout=60)[0])


def _beside(file: Path) -> tuple[list[str], list[str]]:
    """The sizes of unfinished copies beside the database, and what is wrong with finished ones."""
    hidden = file.parent.glob(f".{file.name}.*")
    unfinished = [str(path.stat().st_size) for path in hidden if not path.name.endswith("-journal")]
    wrong = []
    for path in file.parent.glob(f"{file.name}.schema-*"):
        version, said = rows(path, "PRAGMA user_version")[0][0], integrity(path)
        if f"{file.name}.schema-{version}" != path.name or said != "ok":
            wrong.append(f"copy {path.name} has schema {version}, integrity {said}")
    return unfinished, wrong


def _serves(data_dir: Path) -> str:
    """Whether the service works on the upgraded file."""
    with serving(data_dir) as server:
        try:
            return f"healthz {server.wait_until_ready().get('/healthz').status}"
        except AssertionError:
            return f"it does not start: {server.log.splitlines()[-1:]}"
