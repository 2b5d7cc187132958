"""Forms of 1 MB from strangers on 24 connections, with and without nginx in front, and what others notice."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deploy.test_deployment import PATH, Proxy
from tests.support.server import Server, wait_until
from torture.client import account, asked, counted, ms, started
from torture.figure import Figure
from torture.flood import Flood, Others, alone

CONNECTIONS = 24
LASTING_S = 15.0
SIZE = 1_000_000
MAX_P99_S = 0.25
MAX_GROWTH_MB = 60.0
NAME = "push.example.org"
FORM = "application/x-www-form-urlencoded"


def figures(scratch: Path) -> Iterator[Figure]:
    """Straight to the service, then through nginx."""
    with started(scratch, "direct") as server:
        yield from _flooded("no proxy", server, server.port, False)
    if shutil.which("nginx", path=PATH) is None:
        yield Figure("forms of 1 MB, through nginx", "others see nothing of them", "there is no nginx", None)
        return
    with started(scratch, "behind") as server, _nginx(scratch / "nginx", server) as proxy:
        yield from _flooded("nginx in front", server, proxy.https_port, True)


@contextmanager
def _nginx(directory: Path, server: Server) -> Iterator[Proxy]:
    directory.mkdir()
    proxy = Proxy("nginx", directory, server.port)
    try:
        wait_until(proxy.is_ready)
        yield proxy
    finally:
        proxy.close()


def _flooded(how: str, server: Server, port: int, is_tls: bool) -> Iterator[Figure]:
    """Many short fields, with and without a cookie of ours, to both addresses."""
    key = account(server, "owner@example.org")
    page = asked(server.port, "GET", "/app/login")
    cookie = page.header("Set-Cookie").partition(";")[0]
    form = "&".join(map(str, range(150_000)))[:SIZE]
    kinds = ({}, {"Cookie": cookie})
    requests = [
        (path, {"Host": NAME, "Content-Type": FORM, **kind}, form)
        for path in ("/app/login", "/app/setup/x")
        for kind in kinds
    ]
    before = alone(server, key)
    flood = Flood(port, CONNECTIONS, requests, is_tls)
    with Others(server, key) as others, flood.going_on() as answers:
        time.sleep(LASTING_S)
    what = f"{CONNECTIONS} connections with forms of 1 MB to /app/login and /app/setup/x, {how}"
    fives = sum(count for status, count in answers.items() if status >= 500)
    told = f"forms: {counted(answers.elements())}; sends: {counted(others.statuses.elements())}"
    yield Figure(what, "no 5xx, and every send stored", told, not fives and others.all_stored)
    told = f"{others.told}; {before}"
    yield Figure(what, f"others' sends below {ms(MAX_P99_S)} at p99", told, others.p99_s < MAX_P99_S)
    told = f"+ {others.grown_mb:.0f} MB on {others.before_mb:.0f}"
    yield Figure(what, f"less than {MAX_GROWTH_MB:.0f} MB of memory", told, others.grown_mb < MAX_GROWTH_MB)
