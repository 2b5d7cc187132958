"""Instructions of each kind of request, in bare Flask hellos: the same on a busy machine, so a tenth more is seen.

`counted()` runs this module under valgrind's callgrind, which it asks for a figure before and after some requests.
The difference of few and of thrice as many leaves out what asking costs.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import ROOT, Row, at_most

PYTHON = (3, 11)  # whose figures these are: each version has others
HEAD_ROOM = 1.1
USUAL = {  # the latest measured figure of each
    "send": 3.1,
    "webhook": 4.3,
    "list of 50": 5.1,
    "stats": 1.9,
    "search": 9.5,
    "metrics batch of 100": 7.8,
}
CALLS = 10
WARM_UP = 40
OUT = "callgrind"


def rows(seen: dict[str, float]) -> Iterator[Row]:
    """A row for each kind of request."""
    for name, usual in USUAL.items():
        what = f"{name}: instructions / bare hello"
        value = seen[name] / seen["hello"]
        more = f"{seen[name] / 1e6:.3f} million, hello {seen['hello'] / 1e6:.3f}; usual {usual:.3g}"
        yield at_most(what, value, usual * HEAD_ROOM, usual, more=more)


def counted() -> dict[str, float]:
    """Instructions of one request of each kind; nothing where they cannot be counted."""
    if sys.version_info[:2] != PYTHON or not all(map(shutil.which, ("valgrind", "vgdb"))):
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={OUT}"]
        command = [*valgrind, sys.executable, "-m", "bench.instructions", scratch]
        environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=scratch, env=environ, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout.splitlines()[-1])) if done.returncode == 0 else {}


class Callgrind:
    """The callgrind under which this process runs; it writes to the current directory."""

    def __init__(self) -> None:
        self.dumps = 0
        self.ask("instrumentation", "on")

    def ask(self, *command: str) -> None:
        """Let `vgdb` give callgrind a command, in the way that runs the fewest instructions of our own."""
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        asking = ["vgdb", f"--pid={os.getpid()}", *command]
        os.waitpid(os.posix_spawnp("vgdb", asking, os.environ, file_actions=quiet), 0)

    def since_last(self) -> int:
        """The instructions since the last time that this was asked."""
        self.dumps += 1
        self.ask("dump")
        lines = Path(f"{OUT}.{self.dumps}").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("totals:")).split()[1])

    def of(self, call: Callable[[], object], calls: int = CALLS) -> float:
        """The instructions of one call."""
        seen = []
        for number in (3, calls, 3 * calls):
            for _ in range(number):
                call()
            seen.append(self.since_last())
        return (seen[2] - seen[1]) / (2 * calls)


def main(scratch: Path) -> None:
    """Print the figures of all kinds as JSON."""
    from bench import layers, measure

    calls = layers.requests(measure.application(scratch))
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    callgrind = Callgrind()
    print(json.dumps({name: callgrind.of(call) for name, call in calls.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
