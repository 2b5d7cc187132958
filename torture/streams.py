"""The ntfy app's streams: kill -9 of either end in 20 rounds, and 32 open ones beside other requests."""

import random
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from process.streams import MAX_STREAMS, MAX_STREAMS_OF_KEY, MAX_STREAMS_OF_OWNER
from tests.support.ntfy_app import Listener, add_topic
from tests.support.server import OWNER, Server, wait_until
from torture.client import cpu_s, logged_faults, memory_mb, percentile, started, worker_pid
from torture.client import ms as in_ms
from torture.figure import Figure
from torture.load import Seeded, rows, seed, send, stored_id, timed

ROUNDS = 20
REQUESTS, TURNS = 400, 8  # of REST, with and without streams
KEYS = 10  # so many that none reaches its limit
RESTED_S = 20.0
MAX_MORE_MB, MAX_SHARE = 20.0, 0.01
WITHIN_S = 60.0
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing throws away what was not read


class App(threading.Thread):
    """The app on a phone: it listens, and comes back with the id of the last message that it has."""

    def __init__(self, server: Server, topic: str) -> None:
        super().__init__(daemon=True)
        self.listener = Listener(server, topic, since="none")
        self.server, self.is_over, self.again = server, False, 0

    def run(self) -> None:
        """Listen until the end of the measurement."""
        while not self.is_over:
            try:
                while self.listener.message():
                    pass
            except (OSError, ValueError):
                pass  # one of the ends was killed
            self._come_back()

    def _come_back(self) -> None:
        while not self.is_over:
            try:
                self.listener.server = self.server
                self.listener.connect(self.listener.last_id or "all")
                self.again += 1
                return
            except (OSError, ValueError, IndexError):
                time.sleep(0.02)

    def die(self) -> None:
        """Lose the connection as a killed app does: what it had not read is gone."""
        self.listener.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.listener.connection.shutdown(socket.SHUT_RDWR)


class Sender(threading.Thread):
    """Sends as fast as it is answered, and keeps the ids that it was answered."""

    def __init__(self, server: Server, key: str) -> None:
        super().__init__(daemon=True)
        self.server, self.key, self.ids, self.is_over = server, key, list[str](), False

    def run(self) -> None:
        """Send until the end of the round."""
        while not self.is_over:
            try:
                answer = send(self.server, self.key, "t", secrets.token_hex(8))
            except Exception:
                return  # killed during this request
            if answer.status == 200:
                self.ids.append(stored_id(answer) or "")


def figures(scratch: Path) -> Iterator[Figure]:
    """Kill, then measure."""
    yield from _killed(scratch / "data")
    yield from _open(scratch)


def _killed(data_dir: Path) -> Iterator[Figure]:
    (account,) = seed(data_dir, [OWNER])
    server, sent, chance = Server(data_dir).wait_until_ready(), list[str](), random.Random(9)
    app = App(server, add_topic(server, account.keys[0])["topic"])
    app.start()
    try:
        for number in range(ROUNDS):
            server = _round(server, account, app, sent, chance.uniform(0.1, 0.5), number % 2 == 0)
        last = stored_id(send(server, account.keys[0], "t", "last")) or ""
        sent.append(last)
        wait_until(lambda: last in app.listener.kept, WITHIN_S)
        wait_until(lambda: not _pending(data_dir), WITHIN_S)
        yield from _compared(data_dir, app, sent)
        yield logged_faults(server)
    finally:
        app.is_over = True
        server.kill()


def _round(server: Server, account: Seeded, app: App, sent: list[str], lasting_s: float, ours: bool) -> Server:
    """Send, and kill the service or the app in the middle; returns the service that goes on."""
    sender = Sender(server, account.keys[0])
    sender.start()
    time.sleep(lasting_s)
    if ours:
        server.kill()
        server = Server(server.data_dir).wait_until_ready()
        app.server = server
    else:
        app.die()
    sender.is_over = True
    sender.join(20)
    sent += sender.ids
    return server


def _pending(data_dir: Path) -> int:
    return int(rows(data_dir / "pocketbell.db", "SELECT count(*) FROM delivery WHERE status = 'pending'")[0][0])


def _compared(data_dir: Path, app: App, sent: list[str]) -> Iterator[Figure]:
    what, kept = f"kill -9 of either end in {ROUNDS} rounds", app.listener.kept
    lost = set(sent) - kept.keys()
    stored = {row[0] for row in rows(data_dir / "pocketbell.db", "SELECT id FROM notification")}
    told = f"{len(lost)} of {len(sent)} lost, {app.again} connections"
    yield Figure(what, "0 acknowledged notifications lost", told, not lost and len(sent) > ROUNDS)
    bodies = {message["message"] for message in kept.values()}  # each send has one of its own
    again = f"{len(app.listener.doubled)} came again with an id that the app drops"
    told = f"{len(kept) - len(bodies)} of {len(kept)}; {again}"
    yield Figure(what, "0 shown twice", told, len(kept) == len(bodies))
    strange = kept.keys() - stored
    yield Figure(what, "0 that are not in the history", f"{len(strange)} of {len(kept)}", not strange)
    yield Figure(what, "0 pending at the end", f"{_pending(data_dir)} pending", not _pending(data_dir))


def _open(scratch: Path) -> Iterator[Figure]:
    """32 open streams: what they cost. A busy machine is slow at times: so requests with and without take turns."""
    with started(scratch, "open") as server:
        worker, what = worker_pid(server), f"{MAX_STREAMS} open streams"
        owners = [server.owner_key(email=f"{name}@example.org") for name in "abc"]
        keys = [server.new_key(owners[0], f"key {number}") for number in range(KEYS)]
        devices = [
            add_topic(server, owners[number * MAX_STREAMS_OF_KEY // MAX_STREAMS_OF_OWNER])
            for number in range(MAX_STREAMS // MAX_STREAMS_OF_KEY)
        ]
        topics = [device["topic"] for device in devices for _ in range(MAX_STREAMS_OF_KEY)]
        without_s, with_s = [_asked(server, keys)], list[float]()
        memory_before = memory_mb(worker)
        listeners = _listening(server, topics)
        more = memory_mb(worker) - memory_before
        yield Figure(what, f"at most {MAX_MORE_MB:.0f} MB more memory", f"{more:.1f} MB", more < MAX_MORE_MB)
        begun, used = time.monotonic(), cpu_s(worker)
        time.sleep(RESTED_S)
        share = (cpu_s(worker) - used) / (time.monotonic() - begun)
        yield Figure(what, "at most 1 % of a core at rest", f"{share:.2%}", share < MAX_SHARE)
        for _ in range(TURNS):
            with_s.append(_asked(server, keys))
            for listener in listeners:
                listener.close()
            without_s.append(_asked(server, keys))
            listeners = _listening(server, topics)
        told = f"{in_ms(min(with_s))} with, {in_ms(min(without_s))} without, the best of {TURNS} turns"
        yield Figure(
            what, "REST's p99 at most a half and 1 ms more", told, min(with_s) < min(without_s) * 1.5 + 0.001
        )
        yield logged_faults(server)


def _listening(server: Server, topics: list[str]) -> list[Listener]:
    """An open stream of each topic."""
    listeners = [Listener(server, topic) for topic in topics]
    for listener in listeners:
        listener.event()
    return listeners


def _asked(server: Server, keys: list[str]) -> float:
    """The p99 of requests, in s."""
    answers = [timed(server, "GET", "/api/v1/stats", key=keys[number % len(keys)]) for number in range(REQUESTS)]
    return percentile((answer.seconds for answer in answers if answer.status == 200), 0.99)
