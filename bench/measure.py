"""What the benchmarks share: tables, accounts, texts, load over HTTP, CPU and memory of a process."""

import json
import os
import platform
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.support.processes import children, cpu_s

ROOT = Path(__file__).parents[1]
Slice = TypeVar("Slice")
PACKAGES = ("Flask", "Werkzeug", "Flask-Limiter", "limits", "peewee", "gunicorn")
WORDS = (  # noqa: SIM905
    "backup finished disk volume nightly server deploy build branch main failed recovered latency checkout queue"
    " worker restart memory usage above threshold certificate expires days invoice payment customer order shipped"
    " temperature kitchen door opened garage camera motion detected snapshot replica lag seconds cluster node pool"
).split()


# --- rows ---------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One row of the table. `ok` is None if it was not measured."""

    what: str
    must: str
    moonshot: str
    seen: str
    ok: bool | None
    reached: bool = False  # whether the moonshot was reached


def at_most(what: str, value: float, must: float, moonshot: float, unit: str = "", more: str = "") -> Row:
    """A figure with an upper limit."""
    seen = f"{_shown(value)}{unit}{'; ' + more if more else ''}"
    goals = (f"≤ {_shown(must)}{unit}", f"{_shown(moonshot)}{unit}")
    return Row(what, *goals, seen, value <= must, value <= moonshot)


def at_least(what: str, value: float, must: float, moonshot: float, more: str = "") -> Row:
    """A figure with a lower limit."""
    seen = f"{_shown(value)}{'; ' + more if more else ''}"
    goals = (f"≥ {_shown(must)}", _shown(moonshot))
    return Row(what, *goals, seen, value >= must, value >= moonshot)


def not_tried(what: str, must: str, moonshot: str, why: str) -> Row:
    """A figure that cannot be measured here."""
    return Row(what, must, moonshot, f"not tried: {why}", None)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _mark(row: Row) -> str:
    if row.ok is None:
        return "-"
    return "moonshot" if row.reached else "yes" if row.ok else "NO"


def print_table(rows: Iterable[Row]) -> None:
    """Print the table: what | must | moonshot | seen | ok."""
    lines = [("what", "must", "moonshot", "seen", "ok"), *((*row[:4], _mark(row)) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(3)]
    widths += [max(3, min(100, max(len(line[3]) for line in lines)))]
    for line in lines:
        print(" | ".join([*(f"{cell:{width}}" for cell, width in zip(line, widths, strict=False)), line[4]]))
    sys.stdout.flush()


def machine() -> str:
    """Describe the machine and the packages."""
    processor = next(
        (one.split(":")[1].strip() for one in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in one),
        platform.machine(),
    )
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{processor}, {os.cpu_count()} cores, {platform.platform()}\n"
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {packages}"
    )


def load_average() -> str:
    """The load average of the whole machine."""
    return " ".join(f"{one:.1f}" for one in os.getloadavg())


def main(name: str, rows: Callable[[Path], Iterator[Row]], memory: bool = False) -> int:
    """Measure one part in a temporary directory and print its table; 1 if a limit is missed."""
    for variable in ("DATA_DIR", "DATABASE_URL", "PORT"):
        os.environ.pop(variable, None)
    print(f"--- {name} ---\n{machine()}", flush=True)
    before, began = load_average(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pocketbell-bench-", dir=_memory() if memory else None) as scratch:
        measured = list(rows(Path(scratch)))
    print(f"load {before} before, {load_average()} after; took {time.monotonic() - began:.0f} s\n")
    print_table(measured)
    print(flush=True)
    return int(any(row.ok is False for row in measured))


def _memory() -> str | None:
    """A directory in memory, if there is one, for parts that do not measure the disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# --- figures ------------------------------------------------------------------------------------------------


def percentile(values: Sequence[float], part: float) -> float:
    """The percentile `part` (0 to 1) of the values."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def low_cpu_us(works: Mapping[str, Callable[[], Any]], batches: int, calls: int) -> dict[str, float]:
    """This process's CPU per call in µs for each function: the 10th percentile of interleaved batches."""
    seen: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        for _ in range(max(3, calls // 4)):
            work()
    for number in range(batches):
        order = list(works.items())
        for name, work in order if number % 2 else order[::-1]:
            began = time.process_time_ns()
            for _ in range(calls):
                work()
            seen[name].append((time.process_time_ns() - began) / calls / 1000)
    return {name: percentile(values, 0.1) for name, values in seen.items()}


def in_rounds(slices: Mapping[Any, Callable[[], Slice]], rounds: int) -> dict[Any, list[Slice]]:
    """What each of these gives in each round; every second round is in reverse order.

    All run once before, because the first requests are slower.
    """
    for take in slices.values():
        take()
    seen: dict[Any, list[Slice]] = {name: [] for name in slices}
    for number in range(rounds):
        for name in list(slices)[:: 1 if number % 2 else -1]:
            seen[name].append(slices[name]())
    return seen


def ratio(rounds: Sequence[tuple[float, float]]) -> float:
    """The median of the ratios of the pairs."""
    return statistics.median(a / b for a, b in rounds)


# --- processes ----------------------------------------------------------------------------------------------


def worker_of(master: int) -> int:
    """The process id of gunicorn's single worker."""
    worker: int
    (worker,) = children(master)
    return worker


def cpu_of(pids: Iterable[int]) -> float:
    """The CPU seconds of those of these processes that still run."""
    return float(sum(cpu_s(pid) for pid in pids if Path(f"/proc/{pid}").exists()))


def keep_with_service(pid: int) -> None:
    """Pin a process, its threads and its future children to the core that the service uses."""
    _keep_on(pid, max(os.sched_getaffinity(0)))


def keep_off_service(pid: int) -> None:
    """Pin a process to another core than the service's, if there is one."""
    _keep_on(pid, min(os.sched_getaffinity(0)))


def _keep_on(pid: int, core: int) -> None:
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})


# --- the service in this process ----------------------------------------------------------------------------


def application(scratch: Path) -> Any:
    """The WSGI application on a new database in `scratch`. An account has no ceiling: it stands for many."""
    os.environ["DATA_DIR"] = str(scratch / "data")
    import app
    from web import rate_limits

    app.app.open()
    rate_limits.ALL_KEYS["scale"] = rate_limits.Quota("keys", 10**6)
    return app.app


def wsgi(app: Any, method: str, path: str, key: str = "", body: bytes = b"", cookie: str = "") -> Callable[[], bytes]:
    """A function that sends one request to the application, and raises if the response is not a 200."""
    from werkzeug.test import EnvironBuilder

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= {"Cookie": cookie} if cookie else {}
    environ = EnvironBuilder(path=path, method=method, headers=[*headers.items()], data=body).get_environ()
    environ["REMOTE_ADDR"] = "127.0.0.1"

    def call() -> bytes:
        answered: list[str] = []
        answer = app({**environ, "wsgi.input": BytesIO(body)}, lambda status, headers, *_: answered.append(status))
        content = b"".join(answer)
        if hasattr(answer, "close"):
            answer.close()
        if not answered[0].startswith("200"):
            raise AssertionError(f"{method} {path}: {answered[0]} {content[:200]!r}")
        return content

    return call


def in_turn(calls: Sequence[Callable[[], bytes]]) -> Callable[[], bytes]:
    """A function that calls the next of these each time."""
    turn = cycle(calls)
    return lambda: next(turn)()


# --- people and texts ---------------------------------------------------------------------------------------


class Person(NamedTuple):
    """An account with its keys."""

    seq: int
    email: str
    keys: list[str]


def people(number: int, keys_each: int, name: str = "person") -> list[Person]:
    """Create accounts with keys in the open database."""
    from core import accounts
    from process import clock
    from store.database import EVERYBODY, transaction

    made = []
    for place in range(number):
        with transaction(EVERYBODY):
            account = accounts.create_account(f"{name}{place}@example.org", "scale", "UTC", clock.now_ms())
        with transaction(account.seq):
            keys = [accounts.create_key(account.seq, "bench", clock.now_ms())[1] for _ in range(keys_each)]
        made.append(Person(account.seq, account.email, keys))
    return made


TITLE_TEMPLATE = '{{ title }} on {{ host.name | default: "unknown" }}'
BODY_TEMPLATE = "{{ alerts.0.labels.severity | upcase }}: {{ message | truncate: 120 }} ({{ value | round: 1 }})"
EVENT = json.dumps(
    {
        "title": "Disk nearly full",
        "message": "The volume /srv is at 91 percent, and grows by 2 percent a day",
        "host": {"name": "db-3.example.org", "zone": "eu-1"},
        "value": 91.2345,
        "alerts": [{"labels": {"alertname": "DiskFull", "severity": "warning"}, "startsAt": "2026-11-21T10:00:00Z"}],
    }
)
METRICS = json.dumps(
    {
        "projectId": "shop",
        "metrics": [
            {
                "metricId": f"requests-{place % 10}",
                "metricName": f"Requests {place % 10}",
                "value": place * 1.25,
                "unit": "1/s",
            }
            for place in range(100)
        ],
    }
)
MESSAGE = json.dumps({"title": "Backup finished", "body": "The nightly backup of db-3 took 12 minutes. " * 4})


def alert_codes(account_seq: int, number: int) -> list[str]:
    """The short codes of new alerts with templates."""
    from core import alerts
    from process import clock
    from store.database import transaction

    settings = {"name": "Disk", "title_template": TITLE_TEMPLATE, "body_template": BODY_TEMPLATE}
    with transaction(account_seq):
        return [alerts.create_alert(account_seq, settings, clock.now_ms()).short_code for _ in range(number)]


def record(person: Person, number: int) -> None:
    """Record notifications of an account with the product's own function."""
    from process import clock
    from store import notifications
    from store.database import transaction
    from store.senders import Owner
    from wire.notification import Content

    owner, chance = Owner(person.seq, "UTC", person.email), random.Random(person.seq)
    with transaction(person.seq):
        for _ in range(number):
            content = Content(f"MCP - {sentence(chance, 4)}", sentence(chance, 26))
            notifications.record(owner, content, "delivered", "2026-11-21", clock.now_ms())


def sentence(chance: random.Random, words: int) -> str:
    """A sentence like those in real notifications."""
    return " ".join(chance.choices(WORDS, k=words)).capitalize()


# --- servers ------------------------------------------------------------------------------------------------


@contextmanager
def running(*servers: Any) -> Iterator[None]:
    """Terminate these servers at the end, even after an exception."""
    try:
        for server in servers:
            server.wait_until_ready()
        yield
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.kill()
