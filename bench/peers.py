"""Sends to ntfy and Gotify beside Pocketbell, on the same disk: `NTFY=… GOTIFY=… python -m bench.peers`.

Both variables name a program that you have. Each server has one user with one token; Pocketbell, whose limits cannot
be lifted, has two hundred keys. Nobody listens, so that what is measured is taking a message and keeping it. All
servers run at the same time, and slices of some seconds go to each in turn. The client has a core of its own, if
there is more than one. What answers before the message is on the disk is shown, and not compared with.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench import measure
from bench.client import JSON, Client, Load, Request, requests_in
from bench.measure import Row, worker_of
from tests.support.server import Server, free_port, wait_until

ROUNDS, SECONDS = 5, 2
TRACED_S = 4  # strace makes each request much slower
CLIENTS = (1, 8, 32)
OURS = "Pocketbell"
NTFY, NTFY_WAL, NTFY_TUNED = "ntfy", "ntfy (WAL)", "ntfy (as its page on tuning says)"
GOTIFY, GOTIFY_WAL = "Gotify", "Gotify (WAL)"
EARLY = (NTFY_TUNED,)  # these answer before the message is on the disk
TEXT = json.loads(measure.MESSAGE)
TOKEN = re.compile(r"\btk_\w+")
COUNTED = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*\b(?:fsync|fdatasync)$", re.M)
NTFY_SETTINGS = {  # its own defaults but for the files, without which it keeps everything in memory, and the limits
    "cache-file": "cache.db",
    "auth-file": "auth.db",
    "auth-default-access": "deny-all",
    "visitor-request-limit-exempt-hosts": "127.0.0.1/32",
}
# Both use the same driver, which makes `synchronous` NORMAL with WAL: then a power cut loses what was acknowledged.
WAL = "?_journal_mode=WAL&_synchronous=FULL"
TUNED = {
    "cache-startup-queries": "pragma journal_mode = WAL; pragma synchronous = normal; pragma temp_store = memory;"
    " pragma busy_timeout = 15000; vacuum;",
    "cache-batch-size": 25,
    "cache-batch-timeout": "1s",
}


def syncs(client: Client, scratch: Path, clients: int) -> float | None:
    """How often a server waits for the disk for each message while strace slows it; None if that cannot be seen."""
    strace, counts = shutil.which("strace"), scratch / "strace"
    if strace is None:
        return None
    command = [strace, "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(counts)]
    command += [word for pid in client.pids for word in ("-p", str(pid))]
    tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    wait_until(lambda: tracer.poll() is not None or all(map(is_traced, client.pids)))
    if tracer.poll() is not None:
        return None
    load = client.run(clients, TRACED_S)
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    return counted_syncs(counts.read_text()) / (load.answered * (1 - load.failed))


def memory_mb(pids: Sequence[int]) -> float:
    """The memory of these processes, what they share counted once."""
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    return sum(int(found[1]) for text in rollups if (found := re.search(r"^Pss:\s+(\d+)", text, re.M))) / 1024


def is_traced(pid: int) -> bool:
    """Whether a debugger is attached to the process."""
    return "\nTracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def counted_syncs(table: str) -> int:
    """The number of syncs in strace's summary."""
    return sum(map(int, COUNTED.findall(table)))


# --- the servers --------------------------------------------------------------------------------------------


@contextmanager
def pocketbell(scratch: Path) -> Iterator[Client]:
    """Pocketbell, as it is."""
    service = Server(scratch / "pocketbell")
    with measure.running(service):
        requests = requests_in(service.data_dir / "pocketbell.db")["send"]
        pids = [service.process.pid, worker_of(service.process.pid)]
        for pid in pids:  # if another service runs here, it may have chosen the client's core
            measure.keep_with_service(pid)
        yield Client(service.port, requests, pids)


@contextmanager
def ntfy(scratch: Path, name: str, program: str, **settings: Any) -> Iterator[Client]:
    """An ntfy with these settings."""
    directory, port = scratch / re.sub(r"\W+", "-", name), free_port()
    directory.mkdir()
    url = f"http://127.0.0.1:{port}"
    config = NTFY_SETTINGS | {"base-url": url, "listen-http": f"127.0.0.1:{port}"} | settings
    (directory / "server.yml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in config.items()))

    def command(verb: str, *words: str) -> list[str]:
        return [program, verb, "--config", "server.yml", *words]

    with _running(command("serve"), directory, port, "/v1/health", {}) as process:
        _said(command("user", "add", "bell"), directory, NTFY_PASSWORD="correct horse")
        _said(command("access", "bell", "*", "rw"), directory)
        token = TOKEN.search(_said(command("token", "add", "bell"), directory))
        requests = [Request("POST", "/bell?title=Backup+finished", token[0] if token else "", TEXT["body"])]
        yield Client(port, requests, [process.pid], may_fail=True)


@contextmanager
def gotify(scratch: Path, name: str, program: str, database: str) -> Iterator[Client]:
    """A Gotify with SQLite."""
    directory, port = scratch / re.sub(r"\W+", "-", name), free_port()
    directory.mkdir()
    listens = {"GOTIFY_SERVER_PORT": str(port), "GOTIFY_SERVER_LISTENADDR": "127.0.0.1"}
    environ = listens | {"GOTIFY_DATABASE_CONNECTION": database}
    with _running([program, "serve"], directory, port, "/health", environ) as process:
        basic = {"Authorization": f"Basic {b64encode(b'admin:admin').decode()}"}
        made = _asked(port, "POST", "/application", json.dumps({"name": "bell"}), basic)
        message = json.dumps({"title": TEXT["title"], "message": TEXT["body"], "priority": 5})
        request = Request("POST", "/message", json.loads(made)["token"], message, JSON)
        yield Client(port, [request], [process.pid], may_fail=True)


@contextmanager
def _running(command: list[str], directory: Path, port: int, path: str, environ: dict[str, str]) -> Iterator[Any]:
    """A server that is started in its directory, and killed at the end."""
    with (directory / "log").open("wb") as log:
        known = {"PATH": os.environ.get("PATH", ""), "HOME": str(directory)}
        process = subprocess.Popen(
            command, cwd=directory, env=known | environ, stdout=log, stderr=log, start_new_session=True
        )
    try:

        def is_ready() -> bool:
            assert process.poll() is None, (directory / "log").read_text()
            with suppress(OSError):
                return bool(_asked(port, "GET", path))
            return False

        wait_until(is_ready)
        yield process
    finally:
        process.kill()
        process.wait()


def _asked(port: int, method: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body or None, {"Content-Type": JSON} | (headers or {}))
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, text
    return text


def _said(command: list[str], directory: Path, **environ: str) -> str:
    done = subprocess.run(command, cwd=directory, env=os.environ | environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@contextmanager
def servers(scratch: Path, of_ntfy: str | None, of_gotify: str | None) -> Iterator[dict[str, Client]]:
    """A client for each whose program is given, running."""
    with ExitStack() as ends:
        made = {OURS: ends.enter_context(pocketbell(scratch))}
        for name, settings in ((NTFY, {}), (NTFY_WAL, {"cache-file": f"file:cache.db{WAL}"}), (NTFY_TUNED, TUNED)):
            if of_ntfy:
                made[name] = ends.enter_context(ntfy(scratch, name, of_ntfy, **settings))
        for name, database in ((GOTIFY, "data/gotify.db"), (GOTIFY_WAL, f"data/gotify.db{WAL}")):
            if of_gotify:
                made[name] = ends.enter_context(gotify(scratch, name, of_gotify, database))
        yield made


# --- rows ---------------------------------------------------------------------------------------------------


def rows(scratch: Path) -> Iterator[Row]:
    """What each server does at each number of clients, and how Pocketbell compares."""
    programs = {name: os.environ.get(name) for name in ("NTFY", "GOTIFY")}
    for name, program in programs.items():
        if not program:
            yield measure.not_tried(f"sends/s / {name.capitalize()}'s", "", "", f"{name} is not set")
    if not any(programs.values()):
        return
    with servers(scratch, programs["NTFY"], programs["GOTIFY"]) as made:
        for clients in CLIENTS:
            slices = {name: partial(client.run, clients, SECONDS) for name, client in made.items()}
            seen = measure.in_rounds(slices, ROUNDS)
            for name, client in made.items():
                yield figures(name, clients, seen[name], syncs(client, scratch, clients), memory_mb(client.pids))
            yield from compared(clients, seen)


def figures(name: str, clients: int, seen: list[Load], syncs: float | None, memory_mb: float) -> Row:
    """A row without a limit: what was measured of one server."""
    per_s, cpu_us, p50_ms, p99_ms, failed, *_ = (statistics.median(values) for values in zip(*seen, strict=True))
    told = [f"{per_s:,.0f} sends/s", f"{cpu_us:,.0f} µs CPU each", f"p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f}"]
    told += [f"{memory_mb:.0f} MB", "syncs not counted" if syncs is None else f"{syncs:.2f} syncs a message"]
    told += [f"{failed:.1%} refused"] * (failed > 0) + ["answers before the write"] * (name in EARLY)
    return Row(f"{name}, {_clients(clients)}", "", "", "; ".join(told), None)


def compared(clients: int, seen: dict[str, list[Load]]) -> Iterator[Row]:
    """Pocketbell against each that keeps what it has acknowledged: rounds in which both were measured."""
    for name in seen:
        if name == OURS or name in EARLY or clients not in (1, 32):
            continue
        pairs = list(zip(seen[OURS], seen[name], strict=True))
        rate = measure.ratio([(ours.per_s, theirs.per_s) for ours, theirs in pairs])
        must, moonshot = (1.3, 2.0) if clients == 1 else (2.5, 4.0)
        yield measure.at_least(f"sends/s / {name}'s, {_clients(clients)}", rate, must, moonshot)
        if clients == 32:
            cpu = measure.ratio([(ours.cpu_us, theirs.cpu_us) for ours, theirs in pairs])
            yield measure.at_most(f"CPU of a send / {name}'s, {_clients(clients)}", cpu, 0.7, 0.5)


def _clients(number: int) -> str:
    return f"{number} client{'s' * (number > 1)}"


if __name__ == "__main__":
    sys.exit(measure.main("peers", rows))
