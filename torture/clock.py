"""A clock that is a year ahead at one start and right at the next. The history must survive."""

import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.server import Server
from torture.figure import Figure
from torture.load import fill, rows, seed
from torture.windows import SHIFTED

ROWS, AHEAD_S, WATCHED_S = 900, 366 * 86_400, 8.0


def figures(scratch: Path) -> Iterator[Figure]:
    """Start with the clock ahead, kill, start with the right time; then the same with a clean stop."""
    data_dir, library, clock_file = scratch / "data", scratch / "lib", scratch / "clock"
    library.mkdir()
    (library / "sitecustomize.py").write_text(SHIFTED)
    (account,) = seed(data_dir, ["owner@example.org"])
    file = data_dir / "pocketbell.db"
    fill(file, account.seq, ROWS)
    kept = list[int]()
    for ahead_s, is_killed in ((AHEAD_S, True), (0, True), (AHEAD_S, False), (0, False)):
        clock_file.write_text(str(ahead_s))
        server = Server(data_dir, PYTHONPATH=str(library), CLOCK_FILE=str(clock_file)).wait_until_ready()
        time.sleep(WATCHED_S)
        if is_killed:
            server.kill()
        else:
            server.terminate()
        kept.append(rows(file, "SELECT count(*) FROM notification")[0][0])
    what = f"starts with the clock {AHEAD_S // 86_400} days ahead, and right again, twice"
    yield Figure(what, f"{ROWS} rows each time", ", ".join(map(str, kept)), kept == [ROWS] * 4)
