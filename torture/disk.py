"""A full disk, a file that may not grow, a read-only file, and one that another process locks."""

import os
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.server import OWNER, Server
from torture.figure import Figure
from torture.load import Answer, HealthWatch, counted, happen, send, stored_id, together
from torture.service import FILE, Seeded, integrity, rows, seed, started, worker_pid

ERRORS, AFTERWARDS = 40, 20
MAX_SENDS = 2_000
MIN_S, PAUSE_S = 3.0, 0.01
FILE_LIMIT = 600_000
ANSWERED_WITHIN_S, HEALTH_WITHIN_S, RECOVERED_WITHIN_S = 4.0, 0.25, 1.0
LOCKED_S, TOGETHER = 10, 12
LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
print("released", flush=True)
"""


def figures(scratch: Path) -> Iterator[Figure]:
    """Each fault on its own service and directory."""
    yield from _full_disk(scratch / "full")
    yield from _file_limit(scratch / "limit")
    yield from _immutable(scratch / "immutable")
    yield from _modes(scratch / "modes")
    yield _start_on_read_only(scratch / "start")
    yield from _locked(scratch / "locked")


class Trouble:
    """Records what the service answers while it cannot write, and what is stored afterwards."""

    def __init__(self, what: str, server: Server, account: Seeded) -> None:
        self.what, self.server, self.account = what, server, account
        self.answers: list[Answer] = []
        self.health, self.pid = HealthWatch(server), worker_pid(server)

    def send(self, body: str = "b" * 9_000) -> Answer:
        """Send a notification, or every third time an event."""
        is_event = len(self.answers) % 3 == 2
        code = self.account.codes[len(self.answers) % len(self.account.codes)]
        answer = happen(self.server, code, body) if is_event else send(self.server, self.account.keys[0], body=body)
        self.answers.append(answer)
        return answer

    def until_errors(self) -> None:
        """Send until 40 failed, for at least two seconds."""
        end = time.monotonic() + MIN_S
        with self.health:
            while (len(self.failing) < ERRORS or time.monotonic() < end) and len(self.answers) < MAX_SENDS:
                self.send()
                time.sleep(PAUSE_S)

    @property
    def failing(self) -> list[Answer]:
        """The answers other than 200."""
        return [one for one in self.answers if one.status != 200]

    @property
    def wrong(self) -> list[Answer]:
        """Those of them that are not an error in its shape, or late."""
        return [one for one in self.failing if not one.is_error_in_shape or one.seconds > ANSWERED_WITHIN_S]

    def told(self) -> Iterator[Figure]:
        """The rows about the answers during the fault."""
        slowest = max((one.seconds for one in self.failing), default=0)
        seen = f"statuses {counted(one.status for one in self.answers)}; the slowest failing one took {slowest:.2f} s"
        must = "every failing answer JSON 5xx within 4 s, some of them"
        yield Figure(self.what, must, seen, bool(self.failing) and not self.wrong)
        yield Figure(self.what, "healthz within 250 ms", self.health.told, max(self.health.times) < HEALTH_WITHIN_S)

    def recovered(self) -> Iterator[Figure]:
        """What is stored after the fault ended, without and with a restart."""
        in_turn = [self.send("b").status for _ in range(AFTERWARDS)]
        before = len(self.answers)
        together([lambda: self.send("b")] * (2 * TOGETHER))
        at_once = [one.status for one in self.answers[before:]]
        same = worker_pid(self.server) == self.pid
        seen = f"in turn {counted(in_turn)}; at once {counted(at_once)}; {'the same' if same else 'another'} process"
        must = f"{AFTERWARDS} in turn and {2 * TOGETHER} at once stored afterwards without a restart"
        yield Figure(self.what, must, seen, same and {*in_turn, *at_once} == {200})
        kept = {stored_id(one) for one in self.answers if one.status == 200}
        self.server.kill()
        ids = {row[0] for row in rows(self.server.data_dir / FILE, "SELECT id FROM notification")}
        said = integrity(self.server.data_dir / FILE)
        seen = f"{len(kept - ids)} of {len(kept)} lost, integrity {said}"
        yield Figure(self.what, "0 acknowledged lost, integrity ok", seen, kept <= ids and said == "ok")


@contextmanager
def _serving(what: str, data_dir: Path, **options: object) -> Iterator[Trouble]:
    (account,) = seed(data_dir, [OWNER], hooks=40)
    with started(data_dir, **options) as server:
        yield Trouble(what, server, account)


def _run(*command: str) -> str:
    """Run a command; returns its error, or an empty text."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return done.stderr.strip() or f"{command[0]}: {done.returncode}" if done.returncode else ""


def _full_disk(directory: Path) -> Iterator[Figure]:
    """A file system in memory that fills up, and then grows."""
    what, data_dir = "full disk (tmpfs of 4 MB)", directory / "data"
    data_dir.mkdir(parents=True)
    if fault := _run("mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(data_dir)):
        yield Figure(what, "JSON 5xx, nothing acknowledged lost", fault, None)
        return
    try:
        with _serving(what, data_dir) as trouble:
            trouble.until_errors()
            yield from trouble.told()
            _run("mount", "-o", "remount,size=64m", str(data_dir))
            yield from trouble.recovered()
    finally:
        _unmount(data_dir)


def _unmount(data_dir: Path) -> None:
    """Unmount; killed processes may take a moment to release it."""
    for _ in range(50):
        if not _run("umount", str(data_dir)):
            return
        time.sleep(0.1)
    _run("umount", "--lazy", str(data_dir))


def _file_limit(directory: Path) -> Iterator[Figure]:
    """A limit on the length of files, as set by `ulimit -f`, lifted from outside."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, hard))

    with _serving(f"file size limit ({FILE_LIMIT} bytes)", directory / "data", before=limit) as trouble:
        trouble.until_errors()
        yield from trouble.told()
        resource.prlimit(worker_pid(trouble.server), resource.RLIMIT_FSIZE, (hard, hard))
        yield from trouble.recovered()


def _immutable(directory: Path) -> Iterator[Figure]:
    """Files that refuse writes even from processes that have them open, as after a disk error."""
    with _serving("database not writable under a running service (chattr +i)", directory / "data") as trouble:
        files = [str(trouble.server.data_dir / f"{FILE}{end}") for end in ("", "-wal")]
        stored = [trouble.send("b").status for _ in range(5)]
        if fault := _run("chattr", "+i", *files):
            yield Figure(trouble.what, "JSON 5xx within 4 s, recovers", fault, None)
            return
        try:
            trouble.until_errors()
            together([lambda: trouble.send("b")] * (2 * TOGETHER))
        finally:
            _run("chattr", "-i", *files)
        if stored != [200] * 5:
            raise RuntimeError("it did not work before")
        yield from trouble.told()
        yield from trouble.recovered()


def _plain() -> tuple[str, ...]:
    """A prefix that runs a command without root's power to ignore file modes; empty if we are not root."""
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


def _modes(directory: Path) -> Iterator[Figure]:
    """File modes that are removed and restored while threads open their first connections."""
    what, data_dir = "database made mode 0444 under a running service, and 0600 again", directory / "data"
    if _plain() and (fault := _run(*_plain(), "true")):
        yield Figure(what, "recovers without a restart", fault, None)
        return
    with _serving(what, data_dir, under=_plain()) as trouble:
        _set_modes(data_dir, 0o444)
        with trouble.health:
            together([lambda: trouble.send("b")] * (2 * TOGETHER))
        _set_modes(data_dir, 0o600)
        yield from _of_modes(trouble)
        yield from trouble.recovered()


def _of_modes(trouble: Trouble) -> Iterator[Figure]:
    """Rows without the demand for failing answers: threads with an open connection may go on writing."""
    seen = f"statuses {counted(one.status for one in trouble.answers)}"
    yield Figure(trouble.what, "every answer a 200 or JSON 5xx within 4 s", seen, not trouble.wrong)


def _set_modes(data_dir: Path, mode: int) -> None:
    for path in data_dir.glob(f"{FILE}*"):
        path.chmod(mode)


def _start_on_read_only(directory: Path) -> Figure:
    """A start that cannot write its file."""
    what, must = "start on a read-only database", "exit status not 0, one clear line"
    if _plain() and (fault := _run(*_plain(), "true")):
        return Figure(what, must, fault, None)
    data_dir = directory / "data"
    seed(data_dir, [OWNER])
    _set_modes(data_dir, stat.S_IRUSR)
    data_dir.chmod(0o500)
    server = Server(data_dir, under=_plain())
    try:
        status = server.process.wait(15)
    except subprocess.TimeoutExpired:
        server.kill()
        return Figure(what, must, "it runs", False)
    lines = [line for line in server.log.splitlines() if not line.startswith("{")]
    clear = len(lines) == 1 and FILE in lines[0] and "Traceback" not in lines[0]
    return Figure(what, must, f"status {status}, {len(lines)} line(s): {lines[-1:]}", status != 0 and clear)


def _locked(directory: Path) -> Iterator[Figure]:
    """Another process holds the write lock: two waves of requests, and one at the moment it is released."""
    what = f"write lock held outside for {LOCKED_S} s"
    with _serving(what, directory / "data") as trouble:
        file = str(trouble.server.data_dir / FILE)
        holder = subprocess.Popen(
            [sys.executable, "-c", LOCK, file, str(LOCKED_S)], stdout=subprocess.PIPE, text=True, cwd="/"
        )
        holder.stdout.readline()
        with trouble.health:
            for _ in range(2):
                _wave(trouble)
            holder.stdout.readline()
            released = time.monotonic()
            first = trouble.send("b")
        holder.wait(10)
        waves = trouble.answers[:-1]
        trouble.answers = waves
        yield from trouble.told()
        seen = f"{len(waves)} answered, {len(trouble.failing)} of them not stored"
        yield Figure(what, "every request of the waves refused", seen, len(trouble.failing) == 4 * TOGETHER)
        took = first.began + first.seconds - released
        seen = f"status {first.status} {took * 1000:.0f} ms after the release"
        yield Figure(what, "first send stored within 1 s", seen, first.status == 200 and took < RECOVERED_WITHIN_S)
        yield from trouble.recovered()


def _wave(trouble: Trouble) -> None:
    """Send 12 notifications and 12 events at once."""
    server, account, answers = trouble.server, trouble.account, list[Answer]()
    works = [lambda: answers.append(send(server, account.keys[0]))] * TOGETHER
    works += [lambda code=code: answers.append(happen(server, code)) for code in account.codes[:TOGETHER]]
    together(works)
    trouble.answers += answers
