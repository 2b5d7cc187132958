"""Instructions of each kind of request, in bare Flask hellos: the same on a busy machine, so a tenth more is seen.

`counted()` runs this module under valgrind's callgrind, which it asks for a figure before and after some requests.
The difference of few and of thrice as many leaves out what asking costs.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import ROOT, Row, at_most

PYTHON = (3, 11)  # whose figures these are: each version has others
HEAD_ROOM = 1.1
USUAL = {  # the latest measured figure of each
    "send": 1.64,
    "webhook": 2.58,
    "list of 50": 3.43,
    "stats": 0.662,
    "search": 14.5,
    "metrics batch of 100": 13.4,
}
ROUNDS = (3, 5, 20)  # calls: to begin with, then few and many, whose difference counts
WARM_UP = 20
OUT = "callgrind"


def rows(seen: dict[str, float]) -> Iterator[Row]:
    """A row for each kind of request."""
    for name, usual in USUAL.items():
        what = f"{name}: instructions / bare hello"
        value = seen[name] / seen["hello"]
        more = f"{seen[name] / 1e6:.3f} million, hello {seen['hello'] / 1e6:.3f}; usual {usual:.3g}"
        yield at_most(what, value, usual * HEAD_ROOM, usual, more=more)


def can_count() -> bool:
    """Whether instructions can be counted here, and compared."""
    return sys.version_info[:2] == PYTHON and all(map(shutil.which, ("valgrind", "vgdb")))


def counted() -> dict[str, float]:
    """Instructions of one request of each kind; nothing where they cannot be counted."""
    if not can_count():
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={OUT}"]
        command = [*valgrind, sys.executable, "-m", "bench.instructions", scratch]
        environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=scratch, env=environ, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else {}


def ask(*command: str) -> None:
    """Let `vgdb` give the callgrind under which this process runs a command: it takes few instructions of our own."""
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    asking = ["vgdb", f"--pid={os.getpid()}", *command]
    os.waitpid(os.posix_spawnp("vgdb", asking, os.environ, file_actions=quiet), 0)


def total(dump: int) -> int:
    """The instructions between the dump before and this one; to read a dump takes as many as a request."""
    lines = Path(f"{OUT}.{dump}").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("totals:")).split()[1])


def main(scratch: Path) -> None:
    """Print the figures of all kinds as JSON."""
    from bench import layers, measure

    calls = layers.requests(measure.application(scratch))
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    gc.collect()
    gc.freeze()  # as the service does: to scan all that is loaded takes as long as ten requests, once in a while
    ask("instrumentation", "on")
    for call in calls.values():
        for number in ROUNDS:
            for _ in range(number):
                call()
            ask("dump")
    ask("instrumentation", "off")
    few, many = ROUNDS[1:]
    dumps = range(1, len(ROUNDS) * len(calls), len(ROUNDS))
    seen = ((total(first + 2) - total(first + 1)) / (many - few) for first in dumps)
    print(json.dumps(dict(zip(calls, seen, strict=True))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
