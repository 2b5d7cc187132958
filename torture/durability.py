"""Checks with strace that every acknowledgement comes after the disk has what it acknowledges.

Each send has a unique title. We look for it in the writes to the WAL, and compare the kernel's order of the next
fdatasync of the WAL and the bytes of the answer.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.processes import children
from tests.support.server import OWNER, Server, wait_until
from torture.figure import Figure
from torture.load import send
from torture.service import seed

ALONE, TOGETHER, THREADS = 100, 50, 8
CALLS = "pwrite64,write,fdatasync,fsync,sendto,sendmsg,writev"
MARK = re.compile(r"durable-\d{4}-mark")
LINE = re.compile(r"(\d+)\s+(.*)", re.DOTALL)
BEGINNING = re.compile(r"(\w+)\(\d+<([^>]*)>")
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>")
UNFINISHED = "<unfinished ...>"
ANSWER = '"HTTP/1.1 200 '


class Trace:
    """The calls of all threads in order, reduced to which titles were written, synced and acknowledged.

    `early` lists acknowledgements by threads whose writes to the WAL were not synced, or with a title in no write.
    """

    def __init__(self) -> None:
        self.begun: dict[str, str] = {}  # by thread: the call that has not returned
        self.unsynced: dict[str, bool] = {}  # by thread: whether it wrote to the WAL since its last sync
        self.written: dict[str, set[str]] = {}  # by thread: the titles in its writes
        self.durable: set[str] = set()
        self.acknowledged: list[str] = []
        self.early: list[str] = []
        self.syncs = 0

    def read(self, file: Path) -> "Trace":
        """Read strace's output."""
        with file.open(errors="replace") as lines:
            for line in lines:
                thread, call = LINE.match(line).groups()
                self._line(thread, call)
        return self

    def _line(self, thread: str, call: str) -> None:
        if resumed := RESUMED.match(call):
            beginning = self.begun.pop(thread, "")
            if beginning and resumed[1] in ("fdatasync", "fsync"):
                self._returned(thread, beginning, call)
        elif call.rstrip().endswith(UNFINISHED):
            self.begun[thread] = call
            self._entered(thread, call)
        else:
            self._entered(thread, call)
            self._returned(thread, call, call)

    def _entered(self, thread: str, call: str) -> None:
        """Writes and answers count from their beginning."""
        begin = BEGINNING.match(call)
        if begin is None:
            return
        name, path = begin.groups()
        if name in ("pwrite64", "write", "writev") and path.endswith("-wal"):
            self.unsynced[thread] = True
            self.written.setdefault(thread, set()).update(MARK.findall(call))
        elif "socket" in path.lower() or "TCP" in path:
            marks = MARK.findall(call)
            self.acknowledged += marks
            self.early += [mark for mark in marks if mark not in self.durable]
            if ANSWER in call and self.unsynced.get(thread):
                self.early.append("an answer's head")

    def _returned(self, thread: str, beginning: str, end: str) -> None:
        """A sync counts when it has succeeded."""
        begin = BEGINNING.match(beginning)
        is_sync = begin and begin[1] in ("fdatasync", "fsync") and begin[2].endswith("-wal")
        if is_sync and end.rstrip().endswith("= 0"):
            self.syncs += 1
            self.unsynced[thread] = False
            self.durable |= self.written.pop(thread, set())


def figures(scratch: Path) -> Iterator[Figure]:
    """100 sends one after the other, then 50 from 8 threads, under strace."""
    what = f"strace of {ALONE} sends in turn and {TOGETHER} from {THREADS} threads"
    must = "every acknowledgement after the sync of its write"
    reason = _cannot(scratch)
    if reason:
        yield Figure(what, must, reason, None)
        return
    data_dir, output = scratch / "data", scratch / "calls"
    (account,) = seed(data_dir, [OWNER])
    under = ("strace", "-f", "-y", "-q", "-s", "8300", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(output))
    server = Server(data_dir, under=under)
    try:
        wait_until(server.is_ready, 60)
        wanted = _sends(server, account.keys[0])
    finally:
        _stop(server)
    trace = Trace().read(output)
    acknowledged, early = set(trace.acknowledged), set(trace.early)
    told = f"{len(wanted)} answered 200, {len(acknowledged & wanted)} of them seen in the trace, {trace.syncs} syncs"
    complete = len(wanted) == ALONE + TOGETHER and wanted <= acknowledged
    yield Figure(what, f"all {ALONE + TOGETHER} acknowledged and found", told, complete)
    told = f"{len(early)} before their sync, {len(wanted & trace.durable)} of {len(wanted)} synced before"
    yield Figure(what, must, told, complete and not early)


def _cannot(scratch: Path) -> str:
    """Why strace cannot be used here; empty if it can."""
    if not shutil.which("strace"):
        return "strace is not installed"
    done = subprocess.run(
        ["strace", "-f", "-o", str(scratch / "probe"), sys.executable, "-c", ""], capture_output=True, text=True
    )
    return f"strace cannot trace here: {done.stderr.strip().splitlines()[-1]}" if done.returncode else ""


def _sends(server: Server, key: str) -> set[str]:
    """The titles that were answered with 200."""
    answered = set[str]()

    def one(number: int) -> None:
        if send(server, key, title := f"durable-{number:04}-mark").status == 200:
            answered.add(title)

    for number in range(ALONE):
        one(number)
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(one, range(ALONE, ALONE + TOGETHER)))
    return answered


def _stop(server: Server) -> None:
    """Terminate gunicorn, the first child of strace, so that strace writes the rest and exits."""
    for child in children(server.process.pid):
        os.kill(child, signal.SIGTERM)
    server.process.wait(60)
