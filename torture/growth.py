"""Growth: a simulated year of metrics at each plan's hourly limit, and 500,000 revoked keys.

The year is simulated in this process with the product's own functions, and the plans' numbers divided by a factor.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.server import NO_FILE, ROOT
from torture.client import asked, cpu_s, ms, percentile, started, worker_pid
from torture.figure import Figure
from torture.load import write

FACTORS = {"starter": 100, "pro": 1_000, "scale": 10_000}
REVOKED, MADE = 500_000, 50
YEAR = """
import os, sys
from core import accounts
from process import clock
import config
from store import database
from core import scheduler
from core import pruning
from core import plans
from web import rate_limits
from store.database import EVERYBODY, run, transaction
from store.custom_metrics import MetricSeries
plan, factor = sys.argv[1], int(sys.argv[2])
database.open_database(config.load(os.environ).database)
now = [1_795_255_200_000]
clock.now_ms = lambda: now[0]
clock.monotonic_s = lambda: now[0] / 1000
limits = plans.PLANS[plan]
plans.PLANS[plan] = limits._replace(metric_values=limits.metric_values // factor)
hourly = limits.metrics_per_hour * rate_limits.MAX_METRICS // factor
with transaction(EVERYBODY):
    account = accounts.create_account("owner@example.org", plan, "UTC", clock.now_ms())
most = 0
for hour in range(365 * 24):
    with transaction(EVERYBODY):
        seqs = MetricSeries.seqs(account.seq, "p", {f"m{hour % 50}", f"day {hour // 24}"})
        for seq in seqs.values():
            run("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                " INSERT INTO metric (series_seq, metric_name, value, unit, timestamp, metadata)"
                " SELECT ?, 'M', i, 'ms', ? + i, NULL FROM n",
                (max(1, hourly // 2), seq, clock.now_ms()))
    now[0] += 3_600_000
    while pruning.prune(clock.now_ms()) or pruning.prune_metrics(clock.now_ms()):
        pass
    if hour % 24 == 0:
        most = max(most, run("SELECT count(*) FROM metric").fetchone()[0])
series = run("SELECT count(*) FROM metric_series").fetchone()[0]
print(most, plans.PLANS[plan].metric_values, hourly, series)
"""


def figures(scratch: Path) -> Iterator[Figure]:
    """The year of each plan, then the keys."""
    for plan, factor in FACTORS.items():
        yield _year(scratch / plan, plan, factor)
    yield from _keys(scratch)


def _year(data_dir: Path, plan: str, factor: int) -> Figure:
    environ = {**NO_FILE, "DATA_DIR": str(data_dir)}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", YEAR, plan, str(factor)], env=environ, cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    most, allowed, hourly, series = map(int, done.stdout.split())
    megabytes = sum(file.stat().st_size for file in data_dir.iterdir()) / 1e6
    what = f"a year of metrics at the limit of {plan}, divided by {factor:,}: {hourly:,} values an hour"
    told = f"at most {most:,}, {series} metrics, a file of {megabytes:.0f} MB, after {time.monotonic() - began:.0f} s"
    return Figure(what, f"about {allowed:,} values at most", told, most <= allowed + 2 * hourly)


def _keys(scratch: Path) -> Iterator[Figure]:
    with started(scratch, "keys") as server:
        key = server.owner_key()
        keys = (
            f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {REVOKED})"
            " INSERT INTO api_key (id, account_seq, name, preview, key_hash, created_at, revoked_at)"
            " SELECT printf('%032x', i), 1, 'n', 'sk_test_01234567', randomblob(32), 1, 9e15 FROM n"
        )
        write(server.data_dir / "pocketbell.db", keys)
        pid, took = worker_pid(server), list[float]()
        before = cpu_s(pid)
        for number in range(MADE):
            answer = asked(server.port, "POST", "/api/v1/api-keys/generate", {"name": f"k{number}"}, key)
            took.append(answer.took_s if answer.status == 201 else 60.0)
        cpu = (cpu_s(pid) - before) / MADE
    what = f"creating an API key with {REVOKED:,} revoked ones"
    yield Figure(what, "< 10 ms of CPU", f"{ms(cpu)}, p50 {ms(percentile(took, 0.5))}", cpu < 0.01)
