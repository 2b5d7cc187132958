"""SQLite, PostgreSQL with one process, PostgreSQL and Redis with two: what the same requests cost, in one run.

Slices of some seconds go to each in turn, so that whatever else the machine does meets all. PostgreSQL, Redis and the
client share the service's cores where there are few: the CPU of each is counted by itself, and the rate is what is
left of the machine.
"""

import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench import measure
from bench.client import Client, Load, requests_in
from bench.measure import Row
from tests.support.processes import children
from tests.support.server import Server
from torture.scale_servers import NAME, PostgreSql, missing

ROUNDS, SECONDS, CONNECTIONS = 5, 2, 16
INGEST = "1000000"
KINDS = ("send", "event", "list of 50", "stats")
SQLITE, ALONE, TOGETHER = "SQLite 1x32", "PostgreSQL 1x32", "PostgreSQL and Redis 2x16"


Slice = tuple[Load, float]  # and the CPU of PostgreSQL and Redis for a request, in µs


class Engine:
    """A service on one kind of database, with clients for each kind of request."""

    def __init__(self, scratch: Path, name: str, servers: Callable[[], list[int]], **environ: str) -> None:
        self.scratch, self.servers = scratch / f"engine-{name.replace(' ', '-')}", servers
        self.scratch.mkdir()
        self.service = Server(self.scratch / "data", INGEST_PER_MINUTE=INGEST, LOG_LEVEL="warning", **environ)

    def fill(self, place: Path | str) -> None:
        """Make accounts in its database, and the requests that are sent for them."""
        from store.database import ServerUrl

        wanted = requests_in(place if isinstance(place, Path) else ServerUrl(place, 2))
        pids = children(self.service.process.pid)
        self.clients = {kind: Client(self.service.port, wanted[kind], pids) for kind in KINDS}

    def slice(self, kind: str) -> Slice:
        """Send requests of one kind for some seconds."""
        servers = self.servers()
        before = measure.cpu_of(servers)
        load = self.clients[kind].run(CONNECTIONS, SECONDS)
        return load, (measure.cpu_of(servers) - before) / load.answered * 1e6


@contextmanager
def engines(scratch: Path) -> Iterator[dict[str, Engine]]:
    """The three, filled and running."""
    from tests.support.redis_server import RedisServer

    scratch.chmod(0o755)  # PostgreSQL's user must get through
    with ExitStack() as ends:
        redis = ends.enter_context(RedisServer())
        made = {SQLITE: Engine(scratch, SQLITE, list)}
        ends.enter_context(measure.running(made[SQLITE].service))
        made[SQLITE].fill(made[SQLITE].scratch / "data/pocketbell.db")
        for name, more in (
            (ALONE, {}),
            (TOGETHER, {"REDIS_URL": redis.url, "WEB_CONCURRENCY": "2", "THREADS": "16"}),
        ):
            postgres = PostgreSql(scratch / f"postgresql-{len(made)}")
            ends.callback(postgres.stop)
            others = [redis.process.pid] if more else []

            def servers(postgres: PostgreSql = postgres, others: list[int] = others) -> list[int]:
                master = int((postgres.data / "postmaster.pid").read_text().split()[0])
                return [master, *children(master), *others]

            made[name] = Engine(scratch, name, servers, DATABASE_URL=f"{postgres.url}/{NAME}", **more)
            ends.enter_context(measure.running(made[name].service))
            made[name].fill(f"{postgres.url}/{NAME}")
        yield made


def rows(scratch: Path) -> Iterator[Row]:
    """A row for each kind of request on each engine, compared with SQLite in the same round."""
    if lacks := missing():
        yield measure.not_tried("PostgreSQL and Redis", "installed", "", f"missing: {lacks}")
        return
    with engines(scratch) as made:
        for kind in KINDS:
            slices = {name: partial(engine.slice, kind) for name, engine in made.items()}
            yield from _compared(kind, measure.in_rounds(slices, ROUNDS))


def _compared(kind: str, seen: dict[str, list[Slice]]) -> Iterator[Row]:
    usual = seen[SQLITE]
    for name in (ALONE, TOGETHER):
        mine = seen[name]
        pairs = [(a, b) for (a, _), (b, _) in zip(mine, usual, strict=True)]
        cpu = measure.ratio([(a.cpu_us, b.cpu_us) for a, b in pairs])
        rate = measure.ratio([(a.per_s, b.per_s) for a, b in pairs])
        cpu_us, of_sqlite_us = (statistics.median(one.cpu_us for one, _ in slices) for slices in (mine, usual))
        per_s, of_sqlite_per_s = (statistics.median(one.per_s for one, _ in slices) for slices in (mine, usual))
        servers_us = statistics.median(of_servers for _, of_servers in mine)
        more = (
            f"{cpu_us:.0f} µs, SQLite {of_sqlite_us:.0f}; servers {servers_us:.0f} µs;"
            f" {per_s:,.0f}/s, SQLite {of_sqlite_per_s:,.0f}"
        )
        must, moonshot = (1.6, 1.4) if kind in ("send", "event") else (1.5, 1.2)
        yield measure.at_most(f"{kind}, {name}: service CPU / SQLite's", cpu, must, moonshot, more=more)
        if name == TOGETHER:
            must, moonshot = (0.9, 1.2) if kind in ("send", "event") else (1.5, 1.8)
            yield measure.at_least(f"{kind}, {name}: rate / SQLite's", rate, must, moonshot)


if __name__ == "__main__":
    sys.exit(measure.main("engines", rows))
