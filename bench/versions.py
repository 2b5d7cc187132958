"""Two versions of the service in turn: `python -m bench.versions CHECKOUT`, the folder of the one to compare with.

Both run at the same time with this virtual environment, each on its own database. Slices of some seconds go to each
in turn, so that other load slows both. A row says before → after, and the median of the rounds' ratios.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench import measure
from bench.client import Client, Load, requests_of
from bench.measure import ROOT, Row
from bench.peers import memory_mb
from tests.support.server import Server

ROUNDS, SECONDS = 5, 2
ACCOUNTS, KEYS, ALERTS = 40, 5, 40  # so many that no limit refuses a request
LIMITS = {"rate": 0.85, "cpu": 1.15, "p99": 1.25}  # how much worse the new version may be

LOADS = (("send", 1), ("send", 32), ("event", 32), ("list of 50", 1), ("stats", 1))  # of so many clients
FILL = f"""
import json, sys
from pathlib import Path
from bench import measure
from store import database
database.open_database(Path(sys.argv[1]) / "pocketbell.db")
people = measure.people({ACCOUNTS}, {KEYS})
codes = [code for person in people for code in measure.alert_codes(person.seq, {ALERTS})]
for person in people:
    measure.record(person, 60)
print(json.dumps([[key for person in people for key in person.keys], codes]))
"""


def in_checkout(checkout: Path, script: str, *arguments: str) -> str:
    """Run Python in a checkout with its own modules, and return the last line that it printed."""
    environ = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=checkout, env=environ, stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode().splitlines()[-1]


@contextmanager
def version(scratch: Path, name: str, checkout: Path) -> Iterator[dict[str, Client]]:
    """A running version: a client for each kind of request."""
    data = scratch / name
    data.mkdir(mode=0o700)
    made = requests_of(*json.loads(in_checkout(checkout, FILL, str(data))))
    server = Server(data, under=("env", "-C", str(checkout)), INGEST_PER_MINUTE="1000000")
    with measure.running(server):
        pids = [server.process.pid, measure.worker_of(server.process.pid)]
        for pid in pids:  # the services choose different cores, and the client has one of its own
            measure.keep_with_service(pid)
        yield {kind: Client(server.port, of_kind, pids, may_fail=True) for kind, of_kind in made.items()}


def rows(scratch: Path, other: Path) -> Iterator[Row]:
    """The rows of every load, of memory and of instructions."""
    with ExitStack() as ends:
        before = ends.enter_context(version(scratch, "before", other))
        after = ends.enter_context(version(scratch, "after", ROOT))
        for kind, clients in LOADS:
            slices = {id(one): partial(one[kind].run, clients, SECONDS) for one in (before, after)}
            seen = measure.in_rounds(slices, ROUNDS)
            yield from _compared(kind, clients, list(zip(*seen.values(), strict=True)))
        old, new = (memory_mb(one["send"].pids) for one in (before, after))
        yield measure.at_most("memory after all of it", new / old, 1.05, 1.0, more=f"{old:.0f} → {new:.0f} MB")
    yield from _instructions(other)


def _compared(kind: str, clients: int, pairs: Sequence[tuple[Load, Load]]) -> Iterator[Row]:
    name = f"{kind}, {clients} client{'s' * (clients > 1)}"
    sides = list(zip(*pairs, strict=True))

    def shown(field: str) -> str:
        return " → ".join(f"{statistics.median(getattr(one, field) for one in side):,.1f}" for side in sides)

    def ratio(field: str) -> float:
        return measure.ratio([(getattr(new, field), getattr(old, field)) for old, new in pairs])

    more = f"{shown('per_s')}/s; refused {shown('failed')}"
    yield measure.at_least(f"{name}: rate", ratio("per_s"), LIMITS["rate"], 1.0, more=more)
    cpu = LIMITS["cpu"] if clients > 1 else 1.0
    yield measure.at_most(f"{name}: CPU", ratio("cpu_us"), cpu, 0.9, more=f"{shown('cpu_us')} µs")
    yield measure.at_most(f"{name}: p99", ratio("p99_ms"), LIMITS["p99"], 1.0, more=f"{shown('p99_ms')} ms")


def _instructions(other: Path) -> Iterator[Row]:
    """Instructions of each kind of request, where valgrind can count them."""
    script = "import json; from bench import instructions; print(json.dumps(instructions.counted()))"
    old, new = (json.loads(in_checkout(checkout, script)) for checkout in (other, ROOT))
    for kind in old:
        shown = f"{old[kind] / 1e3:,.0f} → {new[kind] / 1e3:,.0f} thousand"
        yield measure.at_most(f"{kind}: instructions", new[kind] / old[kind], 1.01, 0.9, more=shown)


if __name__ == "__main__":
    checkout = Path(sys.argv.pop(1)).resolve()
    sys.exit(measure.main("versions", lambda scratch: rows(scratch, checkout)))
