"""The servers of `torture.scale`: a PostgreSQL with a standby, a Redis, and two services of two workers each."""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any

import psycopg

from tests.support import postgresql
from tests.support.processes import children
from tests.support.redis_server import RedisServer
from tests.support.server import Server, free_port, wait_until
from torture.load import asked

NAME = "pocketbell"


def missing() -> str:
    """The programs that are not installed here."""
    lacks = [name for name in ("initdb", "pg_ctl", "pg_basebackup") if not postgresql.program(name)]
    lacks += [] if shutil.which("redis-server") else ["redis-server"]
    return ", ".join(lacks)


class PostgreSql:
    """A server in a directory of its own, which this process starts, stops and halts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o755)
        self.directory, self.data, self.standby_port = directory, directory / "data", free_port()
        self.url = postgresql.start(directory, settings=())
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {NAME}")

    @property
    def url_of_both(self) -> str:
        """The address of this one and its standby, as an operator gives it to the service."""
        return f"{self.url},127.0.0.1:{self.standby_port}/{NAME}?target_session_attrs=read-write"

    def rows(self, statement: str) -> list[Any]:
        """Run a statement behind the services' backs."""
        with psycopg.connect(f"{self.url}/{NAME}", autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def stop(self) -> None:
        """End it at once, as a machine does that fails."""
        postgresql._command("pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def start(self) -> None:
        """Start it again."""
        postgresql._command("pg_ctl", "-D", self.data, "-l", self.directory / "log", "-w", "start")

    def signal(self, number: int) -> None:
        """Send a signal to the server and to all its processes."""
        master = int((self.data / "postmaster.pid").read_text().split()[0])
        for pid in (master, *children(master)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def set_read_only(self, is_on: str) -> None:
        """Set the server read-only, or writable again, as hosts do when its disk is full."""
        self.rows(f"ALTER SYSTEM SET default_transaction_read_only = {is_on}")
        self.rows("SELECT pg_reload_conf()")

    def with_standby(self) -> "PostgreSql":
        """A standby that has everything which this one acknowledges from now on."""
        standby = copy(self)
        standby.url = f"postgresql://{postgresql.USER}@127.0.0.1:{self.standby_port}"
        standby.directory = self.directory.with_name("standby")
        standby.data = standby.directory / "data"
        standby.directory.mkdir(mode=0o755)
        if os.getuid() == 0:
            shutil.chown(standby.directory, postgresql.USER)
        postgresql._command("pg_basebackup", "-R", "-c", "fast", "-D", standby.data, "-d", f"{self.url}/postgres")
        with (standby.data / "postgresql.conf").open("a") as settings:
            settings.write(f"port = {self.standby_port}\n")
        standby.start()
        self.rows("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.rows("SELECT pg_reload_conf()")
        wait_until(lambda: self.rows("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
        return standby

    def promote(self) -> None:
        """Make the standby the server that takes writes."""
        postgresql._command("pg_ctl", "-D", self.data, "-w", "promote")


class Site:
    """Two services, each of two workers unless `environ` says otherwise, with one database and one Redis."""

    def __init__(self, scratch: Path, postgres: PostgreSql, redis: RedisServer, **environ: str) -> None:
        self.scratch, self.postgres, self.redis = scratch, postgres, redis
        self.environ = {"DATABASE_URL": postgres.url_of_both, "REDIS_URL": redis.url, "WEB_CONCURRENCY": "2"}
        self.environ |= {"LOG_LEVEL": "info", **environ}
        self.logs: list[Path] = []
        self.services: list[Server] = []

    def start(self, *places: int) -> None:
        """Start both, or these again."""
        for place in places or (0, 1):
            server = Server(self.scratch / f"data-{place}", **self.environ)
            self.logs.append(server.log_path)
            self.services[place : place + 1] = [server]
        for place in places or (0, 1):
            self.services[place].wait_until_ready()

    def any(self) -> Server:
        """One of both."""
        return random.choice(self.services)

    def workers(self) -> list[int]:
        """The process ids of all workers."""
        return [pid for server in self.services for pid in children(server.process.pid)]

    def kill_worker(self) -> None:
        """Kill a worker with -9: its master starts another."""
        os.kill(random.choice(self.workers()), signal.SIGKILL)

    def kill_master(self) -> None:
        """Kill a master with -9 and start the service again: the old workers end when they notice."""
        place = random.randrange(2)
        os.kill(self.services[place].process.pid, signal.SIGKILL)
        self.services[place].process.wait()
        self.start(place)

    def wait_until_well(self) -> float:
        """Wait until both services say that they are well; how long that took."""
        began = time.monotonic()
        for server in self.services:
            wait_until(lambda server=server: asked(server, "GET", "/healthz", timeout=5).status == 200, 30)
        return time.monotonic() - began

    def kill(self) -> None:
        """Kill both."""
        for server in self.services:
            with suppress(ProcessLookupError):
                server.kill()

    def log(self) -> str:
        """What all services logged."""
        return "".join(path.read_text(errors="replace") for path in self.logs)


@contextmanager
def site(scratch: Path, **environ: str) -> Iterator[Site]:
    """Everything started; all of it ends with the block."""
    scratch.chmod(0o755)  # PostgreSQL's user must get through
    with ExitStack() as stack:
        stack.callback(_stop_databases, scratch)
        postgres = PostgreSql(scratch / "postgresql")
        made = Site(scratch, postgres, stack.enter_context(RedisServer()), **environ)
        stack.callback(made.kill)
        yield made


def _stop_databases(scratch: Path) -> None:
    """Stop those that still run."""
    for directory in (scratch / "postgresql", scratch / "standby"):
        if (directory / "data/postmaster.pid").exists():
            with suppress(AssertionError):
                postgresql._command("pg_ctl", "-D", directory / "data", "-m", "immediate", "stop")
