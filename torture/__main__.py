"""`make torture`: the service under kills, full disks, floods and hostile clients, with one figure per row.

`make torture ONLY="kills disk"` runs only these parts. Everything happens on loopback, in a temporary directory.
"""

import importlib
import platform
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from torture.figure import Figure

PARTS = ("kills", "durability", "disk", "backups", "upgrades", "windows", "races")
PARTS += ("shares", "providers", "sockets", "readers", "pictures", "streams", "scale", "soak", "container", "frozen")


def main(wanted: list[str]) -> int:
    """Run the parts that are named, or all; 1 if a figure does not hold."""
    unknown = set(wanted) - set(PARTS)
    if unknown:
        print(f"Unknown part {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}.")
        return 2
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.platform()}", flush=True)
    return max([run(part) for part in wanted or PARTS], default=0)


def run(part: str) -> int:
    """Run a part and print its figures as they come."""
    began, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="pocketbell-torture-") as scratch:
        for figure in seen(part, Path(scratch)):
            mark = {True: "ok", False: "NOT MET", None: "not tried"}[figure.holds]
            failed += figure.holds is False
            print(f"{mark:9} | {part:10} | {figure.what} | must: {figure.must} | {figure.seen}", flush=True)
    print(f"          | {part:10} | took {time.monotonic() - began:.0f} s", flush=True)
    return int(failed > 0)


def seen(part: str, scratch: Path) -> Iterator[Figure]:
    """The part's figures. A measurement that raises counts as a figure that does not hold."""
    try:
        yield from importlib.import_module(f"torture.{part}").figures(scratch)
    except Exception:
        traceback.print_exc()
        yield Figure("the measurement itself", "finishes", "failed", False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
