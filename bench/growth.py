"""What ten million notifications and a hundred million metric values cost, compared with a tenth of them.

Each size is filled and measured in a process of its own. One account owns nearly all notifications; the values belong
to as many accounts as it takes, each with ten metrics that get a value a minute. Times are CPU of calls of the
application in the process, except for pruning, sends meanwhile, backups and starts (wall time).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench import measure, scale
from bench.fill import COMMON, fill_metrics
from bench.measure import ROOT, Person, Row, low_cpu_us, percentile
from process.clock import MINUTE_MS

PART = 10  # the smaller one has a tenth
VALUES_EACH = 10  # metric values for each notification
SERIES, PER_SERIES = 10, 500_000  # of an account; nearly a year of a value a minute
STARTS = 5
MUST, MOONSHOT = 1.5, 1.1


# --- one size -----------------------------------------------------------------------------------------------


def figures(scratch: Path, rows: int) -> dict[str, float]:
    """All figures of a database with so many notifications and ten times as many metric values."""
    app = measure.application(scratch)
    began = time.monotonic()
    world = scale.World(app, rows)
    values = rows * VALUES_EACH
    owners = measure.people(max(1, values // (SERIES * PER_SERIES)), 40, name="gauges")
    metrics = [f"metric-{number}" for number in range(SERIES)]
    fill_metrics(owners, metrics, values // len(owners) // SERIES, MINUTE_MS)
    data = scratch / "data" / "pocketbell.db"
    seen = {"filled in s": time.monotonic() - began, "MB": data.stat().st_size / 1e6}
    seen |= low_cpu_us(reading(world, owners[0]), 20, 5)
    terms = (COMMON, "zebraquux", scale.ABSENT, "zq")
    seen["search, the worst page"] = max(max(scale.search_ms(world, world.large, term)) for term in terms) * 1000
    seen["looking for values that are too old, for each million"] = counting_us() * 1e6 / values
    seen["pruning, for each removed row"], seen["p99 of sends while rows are pruned"] = pruning_us(world)
    seen["a backup, for each million rows"] = backup_us(scratch, rows * (1 + VALUES_EACH))
    return seen | starting(scratch)


def reading(world: scale.World, owner: Person) -> dict[str, Callable[[], Any]]:
    """The requests that read, and those that write once."""
    from store.database import run

    path = f"/api/v1/notifications?limit={scale.PAGE}"
    deep = run(scale.DEEP, (world.large.seq, world.rows // 2)).fetchone()[0]
    works = {
        "a page of 50": world.get(world.large, path),
        "a page of 50, half-way back": world.page(world.large, deep),
        "stats": world.get(world.large, "/api/v1/stats"),
        "a send": world.post(world.large, "/api/v1/notifications/send", measure.MESSAGE),
        "a batch of 100 values": world.post(owner, "/api/webhooks/custom", measure.METRICS),
    }
    alert_id = next(iter(world.alerts[world.large.seq]))
    pages = {
        "Home": "/app/",
        "History": "/app/notifications",
        "an alert": f"/app/alerts/{alert_id}",
    }
    works |= {name: world.visit(world.large, page) for name, page in pages.items()}
    metric = "/app/metrics/one?project=bench&metric=metric-1&range="
    of_owner = {
        "Metrics": "/app/metrics",
        "a metric, 24 hours": f"{metric}24 h",
        "a metric, 30 days": f"{metric}30 d",
    }
    return works | {name: world.visit(owner, page.replace(" ", "%20")) for name, page in of_owner.items()}


def counting_us() -> float:
    """CPU of what the worker does each hour for metrics when nothing is too old."""
    from core import pruning
    from process import clock

    began = time.process_time_ns()
    pruning.prune_metrics(clock.now_ms())
    return (time.process_time_ns() - began) / 1000


def pruning_us(world: scale.World) -> tuple[float, float]:
    """Wall time of pruning for each row that it removes, and the p99 of sends meanwhile."""
    took_s, times = scale.prune(world)
    return took_s / world.pruned * 1e6, percentile(times, 0.99) * 1000


def backup_us(scratch: Path, rows: int) -> float:
    """Wall time of `flask backup` for each million rows."""
    began = time.monotonic()
    target = scratch / "backup.db"
    subprocess.run([sys.executable, "-m", "flask", "backup", str(target)], cwd=ROOT, check=True, capture_output=True)
    took_s = time.monotonic() - began
    target.unlink()
    return took_s / rows * 1e12


def starting(scratch: Path) -> dict[str, float]:
    """The time until the service is ready, and its memory then."""
    from tests.support.processes import memory_mb
    from tests.support.server import Server

    times, memory = [], []
    for _ in range(STARTS):
        began = time.monotonic()
        server = Server(scratch / "data")
        with measure.running(server):
            times.append(time.monotonic() - began)
            memory.append(memory_mb(measure.worker_of(server.process.pid)))
    return {"a start": min(times) * 1e6, "memory after a start": min(memory) * 1000}


# --- both ---------------------------------------------------------------------------------------------------


def rows(scratch: Path, number: int) -> Iterator[Row]:
    """Each figure of the larger one compared with the smaller one's."""
    few, many = (_measured(scratch, one) for one in (number // PART, number))
    filled = (f"{one.pop('filled in s'):.0f} s, {one.pop('MB'):,.0f} MB" for one in (few, many))
    yield Row(f"(filled with {number // PART:,} and {number:,})", "", "", "; ".join(filled), None)
    for name, value in many.items():
        more = f"{value / 1000:,.2f} {'MB' if name.startswith('memory') else 'ms'}, {few[name] / 1000:,.2f}"
        yield measure.at_most(
            f"{name}: {number:,} / {number // PART:,}", value / few[name], MUST, MOONSHOT, more=more
        )


def _measured(scratch: Path, number: int) -> dict[str, float]:
    """The figures of one size, made by a process of its own."""
    with tempfile.TemporaryDirectory(dir=scratch) as own:
        command = [sys.executable, "-m", "bench.growth", "--rows", str(number), "--only", own]
        out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    seen: dict[str, float] = json.loads(out.splitlines()[-1])
    return seen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.growth")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", metavar="DIRECTORY", help="print the figures of this size, made in that directory")
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(figures(Path(asked.only), asked.rows)))
    else:
        sys.exit(measure.main("growth", partial(rows, number=asked.rows)))
