"""CPU of each kind of request within one process, without HTTP, as a ratio to a bare Flask hello.

`--quick` is the gate against regressions. It does not depend on the disk, the network or other load: where there is
valgrind, it counts instructions (`instructions.py`), which fail at a tenth more; else only this process's CPU, which
fails at three tenths more. It keeps the database in memory if there is /dev/shm.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench import instructions, measure
from bench.hello import app as bare
from bench.measure import Person, Row, in_turn, low_cpu_us, wsgi

HEAD_ROOM = 1.3
USUAL = {  # the latest measured CPU of each in hellos, and what would be good
    "send": (2.8, 2.3),
    "webhook": (5.2, 4.0),
    "list of 50": (2.5, 2.3),
    "stats": (0.9, 0.8),
    "search": (10.9, 8.0),
    "metrics batch of 100": (9.7, 8.0),
}
LIVE_KEYS = 20_000


def requests(app: Any) -> dict[str, Callable[[], bytes]]:
    """Each kind of request, spread over enough keys and alerts that no rate limit refuses one."""
    persons = measure.people(10, 20)
    reader = persons[0]
    measure.record(reader, 500)
    codes = [code for person in persons for code in measure.alert_codes(person.seq, 40)]
    keys = [key for person in persons[1:] for key in person.keys]

    def of_reader(path: str) -> Callable[[], bytes]:
        return in_turn([wsgi(app, "GET", path, key) for key in reader.keys])

    message, event, batch = measure.MESSAGE.encode(), measure.EVENT.encode(), measure.METRICS.encode()
    return {
        "hello": wsgi(bare, "GET", "/"),
        "send": in_turn([wsgi(app, "POST", "/api/v1/notifications/send", key, message) for key in keys]),
        "webhook": in_turn([wsgi(app, "POST", f"/p/{code}", body=event) for code in codes]),
        "list of 50": of_reader("/api/v1/notifications"),
        "stats": of_reader("/api/v1/stats"),
        "search": of_reader("/api/v1/notifications?search=certificate"),
        "metrics batch of 100": in_turn([wsgi(app, "POST", "/api/webhooks/custom", key, batch) for key in keys]),
    }


def rows(scratch: Path, quick: bool = False) -> Iterator[Row]:
    """A row for each kind of request, and one for the rate limiter."""
    app = measure.application(scratch)
    calls = requests(app)
    _check_answers(calls)
    seen = instructions.counted() if quick else {}
    yield from instructions.rows(seen) if seen else cpu_rows(calls, quick)
    yield limiter_row(app, measure.people(1, 0, name="counted")[0], 1.2 * HEAD_ROOM if quick else 1.2)


def cpu_rows(calls: dict[str, Callable[[], bytes]], quick: bool) -> Iterator[Row]:
    """A row for each kind of request, with its CPU."""
    cpu = low_cpu_us(calls, 30 if quick else 80, 40)
    for name, (usual, aimed) in USUAL.items():
        seen = f"{cpu[name]:.0f} µs, hello {cpu['hello']:.0f}"
        value = cpu[name] / cpu["hello"]
        yield measure.at_most(f"{name}: CPU / bare hello", value, usual * HEAD_ROOM, aimed, more=seen)
    if not quick:
        what = "(4) metrics stored per CPU second, without the HTTP server"
        yield measure.at_least(what, 1e8 / cpu["metrics batch of 100"], 50_000, 80_000)


def _check_answers(calls: dict[str, Callable[[], bytes]]) -> None:
    """Check that the requests do what they should."""
    assert len(json.loads(calls["list of 50"]())["notifications"]) == 50
    assert len(json.loads(calls["search"]())["notifications"]) == 50
    assert json.loads(calls["metrics batch of 100"]())["metricsStored"] == 100
    assert json.loads(calls["send"]())["notification"]["status"] == "delivered"
    assert json.loads(calls["webhook"]())["status"] == "delivered"


def limiter_row(app: Any, person: Person, must: float) -> Row:
    """CPU of counting a request when 20,000 keys were used within the minute, compared with 20."""
    from web import context, rate_limits

    storage: Any = rate_limits.limiter.limiter.storage
    stores = {}
    for keys in (20, LIVE_KEYS):
        storage.reset()
        for key in range(keys):
            for _ in range(5):
                rate_limits.limiter.limiter.hit(rate_limits.REST["scale"], str(key))
        stores[keys] = dict(storage.hits)
    begun = context.begin({}, app.config["SETTINGS"])
    works = {str(keys): partial(_count, storage, stores[keys], _callers(person, keys)) for keys in stores}
    cpu = low_cpu_us(works, 80, 200)
    context.end(begun)
    storage.reset()
    few, many = cpu["20"], cpu[str(LIVE_KEYS)]
    return measure.at_most(
        "(11) counting at 20,000 live keys / at 20", many / few, must, 1.05, more=f"{many:.1f} µs, {few:.1f} µs"
    )


def _callers(person: Person, keys: int) -> Iterator[Any]:
    """Cycle through the keys for ever, in steps that do not follow the order of memory."""
    caller = SimpleNamespace(key_seq=0, account_seq=person.seq, plan="scale")
    while True:
        caller.key_seq = (caller.key_seq + 7919) % keys
        yield caller


def _count(storage: Any, hits: dict[int, Any], callers: Iterator[Any]) -> None:
    """Count a REST request as the product does, with these keys in the storage."""
    from web import context, rate_limits

    storage.hits.update(hits)
    context.current().caller = next(callers)
    rate_limits.rest()


if __name__ == "__main__":
    sys.exit(measure.main("layers", partial(rows, quick="--quick" in sys.argv[1:]), memory=True))
