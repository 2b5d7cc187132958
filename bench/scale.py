"""A history of a million rows (`--rows 1000000`): pages, search, counters, the web app, pruning, memory.

One account has that many rows, another has 10,000 in the same database; figures compare the first with the second.
Requests are calls of the application in this process, and times are its CPU, except for pruning (wall time) and
memory (the service under gunicorn).
"""

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench import measure, stand_in
from bench.client import Client, Request
from bench.fill import COMMON, RARE, Share, fill, fill_metrics
from bench.measure import Person, Row, in_turn, low_cpu_us, percentile, worker_of, wsgi
from process.clock import DAY_MS

SMALL = 10_000
PRUNED = 100_000
PUSHES = 10_000
PAGE = 50
SEARCH_PAGES = 6
ABSENT = "xylophonist"
DEEP = "SELECT seq FROM notification WHERE account_seq = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"


class World:
    """The filled database: a large account, a small one, one with 100,000 rows, one with 100."""

    def __init__(self, app: Any, rows: int) -> None:
        self.app, self.rows, self.pruned = app, rows, min(PRUNED, rows // 5)
        self.large, self.small, self.owner, self.newcomer = measure.people(4, 40)
        self.alerts = {one.seq: _alerts(one, 10) for one in (self.large, self.small, self.owner, self.newcomer)}
        every, first = ({one: [*ids.values()][:most] for one, ids in self.alerts.items()} for most in (10, 1))
        self.took_s = fill(
            [
                Share(self.large, rows, self.pruned, every[self.large.seq]),
                Share(self.small, SMALL, 0, every[self.small.seq]),
                Share(self.owner, min(100_000, rows), 0, every[self.owner.seq]),
                Share(self.newcomer, 100, 0, first[self.newcomer.seq]),  # enough to fill a page of the alert too
            ]
        )

    def get(self, person: Person, path: str) -> Callable[[], bytes]:
        """Send a GET to the API with the account's keys in turn, so that none exceeds its rate limit."""
        return in_turn([wsgi(self.app, "GET", path, key) for key in person.keys])

    def post(self, person: Person, path: str, body: str) -> Callable[[], bytes]:
        """Send a POST to the API with the account's keys in turn."""
        return in_turn([wsgi(self.app, "POST", path, key, body.encode()) for key in person.keys])

    def visit(self, person: Person, path: str) -> Callable[[], bytes]:
        """Ask for a page of the web app, signed in."""
        return wsgi(self.app, "GET", path, cookie=_cookie(self.app, person))

    def page(self, person: Person, before: int) -> Callable[[], bytes]:
        """A page of the history before a seq."""
        from web import rest

        cursor = rest._cursors.sign(f"{person.seq}.{before}").decode()
        return self.get(person, f"/api/v1/notifications?limit={PAGE}&cursor={cursor}")


def _alerts(person: Person, number: int) -> dict[str, int]:
    """The seqs of new alerts, by id."""
    from models import Alert

    measure.alert_codes(person.seq, number)
    return {alert.id: alert.seq for alert in Alert.of_account(person.seq)}


def rows(scratch: Path, number: int) -> Iterator[Row]:
    """All rows, one after the other on the same database."""
    import_app = measure.application(scratch)
    world = World(import_app, number)
    size_mb = (scratch / "data" / "pocketbell.db").stat().st_size / 1e6
    yield Row("(filled)", "", "", f"{number:,} rows in {world.took_s:.0f} s, {size_mb:,.0f} MB", None)
    yield from page_rows(world)
    yield search_row(world)
    yield stats_row(world)
    yield web_row(world)
    yield chart_row(world)
    yield prune_row(world)
    yield memory_row(scratch, world)


# --- reading ------------------------------------------------------------------------------------------------


def page_rows(world: World) -> Iterator[Row]:
    """A page far back compared with the first, and the first of the large account compared with the small one's."""
    from store.database import run

    deep = min(10_000, world.rows // PAGE - 10)
    begins = {page: run(DEEP, (world.large.seq, (page - 1) * PAGE - 1)).fetchone()[0] for page in (2, deep)}
    path = f"/api/v1/notifications?limit={PAGE}"
    works = {"large": world.get(world.large, path), "small": world.get(world.small, path)}
    works |= {str(page): world.page(world.large, before) for page, before in begins.items()}
    for work in works.values():
        assert len(json.loads(work())["notifications"]) == PAGE
    cpu = low_cpu_us(works, 60, 20)
    more = f"{cpu[str(deep)]:.0f} µs, {cpu['large']:.0f} µs; page 2, with a cursor too, {cpu['2']:.0f} µs"
    yield measure.at_most(f"(7) page {deep:,} / page 1", cpu[str(deep)] / cpu["large"], 1.2, 1.0, more=more)
    more = f"{cpu['large']:.0f} µs, {cpu['small']:.0f} µs"
    what = f"(7) page 1 at {world.rows:,} / at {SMALL:,}"
    yield measure.at_most(what, cpu["large"] / cpu["small"], 1.5, 1.1, more=more)


def search_row(world: World) -> Row:
    """The first pages of searches for common, rare, absent and short terms, in both accounts."""
    terms = {"common": COMMON, "rare": "zebraquux", "middling": "quetzalcoatl", "absent": ABSENT}
    terms |= {"1 character": "x", "2 characters": "zq"}
    seen = {
        f"{kind} {RARE.get(term, '')}".strip(): search_ms(world, world.large, term) for kind, term in terms.items()
    }
    seen |= {
        f"{kind} in the small account": search_ms(world, world.small, terms[kind]) for kind in ("common", "absent")
    }
    median = {name: statistics.median(times) for name, times in seen.items()}
    more = ", ".join(f"{name} {ms:.1f}" for name, ms in median.items())
    return measure.at_most("(8) search, CPU of a page: the worst", max(median.values()), 15, 5, " ms", more)


def search_ms(world: World, person: Person, term: str) -> list[float]:
    """CPU of each of the first pages: the minimum of three tries."""
    times, cursor = [], ""
    for page in range(SEARCH_PAGES):
        key, tries = person.keys[page % len(person.keys)], []
        call = wsgi(world.app, "GET", f"/api/v1/notifications?search={term}&cursor={cursor}", key)
        for _ in range(3):
            began = time.process_time_ns()
            answer = call()
            tries.append((time.process_time_ns() - began) / 1e6)
        times.append(min(tries))
        pagination = json.loads(answer)["pagination"]
        cursor = pagination["nextCursor"]
        if pagination["isDone"]:
            break
    return times


def stats_row(world: World) -> Row:
    """The counters of the large account compared with the small one's."""
    works = {name: world.get(one, "/api/v1/stats") for name, one in (("N", world.large), ("small", world.small))}
    cpu = low_cpu_us(works, 60, 40)
    more = f"{cpu['N']:.0f} µs, {cpu['small']:.0f} µs"
    return measure.at_most(
        f"(10) stats at {world.rows:,} / at {SMALL:,}", cpu["N"] / cpu["small"], 1.1, 1.0, more=more
    )


def web_row(world: World) -> Row:
    """The web app's pages for an account with 100,000 notifications, compared with 100."""
    kinds = {
        "home": "/app/",
        "history": "/app/notifications",
        "history of an alert": "/app/notifications?alert={}",
        "alerts": "/app/alerts",
        "an alert": "/app/alerts/{}",
    }
    ratios = {}
    for kind, path in kinds.items():
        works = {}
        for name, person in (("many", world.owner), ("few", world.newcomer)):
            alert_id = next(iter(world.alerts[person.seq]))
            works[name] = world.visit(person, path.format(alert_id))
        cpu = low_cpu_us(works, 20, 3)
        ratios[kind] = (cpu["many"] / cpu["few"], cpu["many"] / 1000, cpu["few"] / 1000)
    more = ", ".join(f"{kind} {a:.2f} ({b:.1f} ms, {c:.1f})" for kind, (a, b, c) in ratios.items())
    worst = max(one[0] for one in ratios.values())
    return measure.at_most("(16) pages at 100,000 notifications / at 100: the worst", worst, 2, 1.2, more=more)


def chart_row(world: World) -> Row:
    """The page of a metric with twice as many values in a year as a chart has, compared with just as many."""
    from store.custom_metrics import MAX_CHARTED

    cookie, works = _cookie(world.app, world.newcomer), {}
    for name, number in (("twice", 2 * MAX_CHARTED), ("most", MAX_CHARTED)):
        fill_metrics([world.newcomer], [name], number, 364 * DAY_MS // number)
        path = f"/app/metrics/one?project=bench&metric={name}&range=1+y"
        works[name] = wsgi(world.app, "GET", path, cookie=cookie)
        assert f"{min(number, MAX_CHARTED):,} values" in works[name]().decode()
    cpu = low_cpu_us(works, 3, 1)
    more = f"{cpu['twice'] / 1000:.0f} ms, {cpu['most'] / 1000:.0f} ms"
    what = f"a metric's page at {2 * MAX_CHARTED:,} values / at {MAX_CHARTED:,}"
    return measure.at_most(what, cpu["twice"] / cpu["most"], 1.2, 1.05, more=more)


def _cookie(app: Any, person: Person) -> str:
    """The cookie of a signed-in browser."""
    from core import accounts
    from models import Account
    from process import clock

    with app.test_request_context("/app/"):
        account = Account.find(person.email)
        assert account
        token = accounts.start_session(account, "bench", clock.now_ms())
        signed = app.session_interface.get_signing_serializer(app).dumps({"token": token, "csrf": "x" * 22})
        return f"{app.session_interface.get_cookie_name(app)}={signed}"


# --- pruning and memory -------------------------------------------------------------------------------------


def prune_row(world: World) -> Row:
    """Wall time of sends by four senders, each pausing 5 ms between sends, alone and while old rows are removed.

    They are removed as the worker does it, in pieces, but without its waiting between two rounds.
    """
    alone = _send_ms(world, lambda: time.sleep(3))
    _, times = prune(world)
    more = (
        f"p50 {percentile(times, 0.5):.1f}, {len(times)} sends; alone p99 {percentile(alone, 0.99):.1f},"
        f" p50 {percentile(alone, 0.5):.1f}"
    )
    p99 = percentile(times, 0.99)
    return measure.at_most(f"(15) sends' p99 while {world.pruned:,} rows are pruned", p99, 50, 25, " ms", more)


def prune(world: World) -> tuple[float, list[float]]:
    """Remove what the large account's plan no longer keeps: the seconds that took, and the ms of sends meanwhile."""
    from core import pruning
    from models import Account
    from process import clock
    from store.database import EVERYBODY, run, transaction

    took_s = 0.0
    with transaction(EVERYBODY):
        Account.change(world.large.seq, plan="pro")

    def remove() -> None:
        nonlocal took_s
        began = time.monotonic()
        while pruning.prune(clock.now_ms()):
            pass
        took_s = time.monotonic() - began

    before = run("SELECT count(*) FROM notification").fetchone()[0]
    times = _send_ms(world, remove)
    left = run("SELECT count(*) FROM notification").fetchone()[0] - len(times)
    assert before - left == world.pruned, (before, left)
    return took_s, times


def _send_ms(world: World, until_done: Callable[[], None]) -> list[float]:
    """The latencies of sends while something else runs, over enough accounts that no rate limit refuses one."""
    persons = measure.people(4, 20, name=f"sender{time.monotonic_ns()}-")
    times: list[float] = []
    ends = threading.Event()

    def send(person: Person) -> None:
        call = world.post(person, "/api/v1/notifications/send", measure.MESSAGE)
        while not ends.is_set():
            began = time.monotonic()
            call()
            times.append((time.monotonic() - began) * 1000)
            time.sleep(0.005)

    threads = [threading.Thread(target=send, args=(person,)) for person in persons]
    for thread in threads:
        thread.start()
    until_done()
    ends.set()
    for thread in threads:
        thread.join()
    return times


def memory_row(scratch: Path, world: World) -> Row:
    """The worker's memory after it read and searched the large account and sent 10,000 Web Pushes."""
    from bench import push
    from tests.support.processes import memory_mb
    from tests.support.server import Server

    requests = [
        Request("GET", f"/api/v1/notifications?limit=100{more}", key)
        for key in world.large.keys
        for more in ("", f"&search={ABSENT}")
    ]
    came = 0
    with stand_in.running(scratch, delay_ms=0) as service:
        server = Server(scratch / "data", **push.pushing_to(service))
        with measure.running(server):
            worker = worker_of(server.process.pid)
            idle = memory_mb(worker)
            Client(server.port, requests).run(32, 5)
            read = memory_mb(worker)
            client = Client(server.port, push.sending(push.with_devices(server, service, 40)))
            while came < min(PUSHES, world.rows // 10):
                load = client.run(push.AT_ONCE, 5)
                came += load.answered - load.pending
            after = memory_mb(worker)
    more = f"{came:,} pushes; idle {idle:.0f}, after reads by 32 clients {read:.0f}"
    return measure.at_most(f"(13) memory after {world.rows:,} rows and pushes", after, 100, 80, " MB", more)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.scale")
    parser.add_argument("--rows", type=int, default=1_000_000)
    sys.exit(measure.main("scale", partial(rows, number=parser.parse_args().rows)))
