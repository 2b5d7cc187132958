"""Sends on a slow disk: each fsync takes 2 ms longer, as on a cheap cloud volume (`slowdisk.c`, needs a C compiler).

Three services run at the same time: the product; the product without the write, which still checks the key, the rate
limit and the JSON and reads the devices; and the product with a commit for each request, one after the other
(`variant.py`).
"""

import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import measure
from bench.client import Client, Load, requests_in
from bench.measure import Row, ratio
from tests.support.server import Server

CLIENTS = 32
ROUNDS = 4
SECONDS = 2
DELAY_US = "2000"
UNSTORED = "(5) durable send / without the write, 32 clients, +2 ms"
ONE_COMMIT = "(5) durable send / one commit a request, 32 clients, +2 ms"


def rows(scratch: Path) -> Iterator[Row]:
    """The product's requests per second, compared with both others."""
    shim = compiled(scratch)
    if shim is None:
        yield measure.not_tried(UNSTORED, "≥ 0.7", "0.9", "no C compiler")
        yield measure.not_tried(ONE_COMMIT, "≥ 4", "6", "no C compiler")
        return
    seen = loads(scratch, {"LD_PRELOAD": str(shim), "SLOW_DISK_US": DELAY_US})
    rate = {name: statistics.median(one.per_s for one in loads) for name, loads in seen.items()}
    tail = {name: statistics.median(one.p99_ms for one in loads) for name, loads in seen.items()}
    pairs = {name: [(a.per_s, b.per_s) for a, b in zip(seen["product"], seen[name], strict=True)] for name in seen}
    more = f"{rate['product']:,.0f}/s, p99 {tail['product']:.0f} ms; "
    unstored = f"{more}without {rate['unstored']:,.0f}/s, p99 {tail['unstored']:.0f} ms"
    one_commit = f"{more}one commit each {rate['one-commit']:,.0f}/s, p99 {tail['one-commit']:.0f} ms"
    yield measure.at_least(UNSTORED, ratio(pairs["unstored"]), 0.7, 0.9, more=unstored)
    yield measure.at_least(ONE_COMMIT, ratio(pairs["one-commit"]), 4, 6, more=one_commit)


def compiled(scratch: Path) -> Path | None:
    """The compiled library that slows fsync down, or None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    target = scratch / "slowdisk.so"
    source = Path(__file__).with_name("slowdisk.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", target, source, "-ldl"], check=True)
    return target


def loads(scratch: Path, slow: dict[str, str]) -> dict[str, list[Load]]:
    """Measure all three in slices, in alternating order, so that changes of the machine's load affect all alike."""
    servers = {"product": Server(scratch / "product", **slow)}
    for name in ("unstored", "one-commit"):
        servers[name] = Server(scratch / name, under=(sys.executable, "-m", "bench.variant", name), **slow)
    with measure.running(*servers.values()):
        sends = {name: requests_in(server.data_dir / "pocketbell.db")["send"] for name, server in servers.items()}
        clients = {name: Client(server.port, sends[name]) for name, server in servers.items()}
        slices = {name: partial(client.run, CLIENTS, SECONDS) for name, client in clients.items()}
        return measure.in_rounds(slices, ROUNDS)


if __name__ == "__main__":
    sys.exit(measure.main("disk", rows))
