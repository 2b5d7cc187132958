"""The background jobs and the thread that runs them. Each job is given the time; must not know Flask or providers."""

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

import clock
import delivery
from errors import log_fault
from models import ApiKey

ROUND_S = 1.0
HEARTBEAT_LIFE_S = 30.0

log = logging.getLogger("pocketbell")


class Job(NamedTuple):
    """What is run, in each round."""

    name: str
    run: Callable[[int], None]


JOBS = (
    Job("retry what is pending", delivery.retry_due),
    Job("write when keys were last used", lambda now: ApiKey.write_used()),
)


def run_due(now: int) -> None:
    """Run every job once. A job that fails is logged and does not keep the others from running."""
    for job in JOBS:
        try:
            job.run(now)
        except Exception as error:
            log_fault(log, f"The background job failed: {job.name}", error)


class Worker:
    """The one background thread of a service process, and its heartbeat."""

    def __init__(self) -> None:
        self.last_beat_s: float | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def start(self) -> None:
        """Begin. A worker is started once."""
        self.last_beat_s = clock.monotonic_s()
        self.thread.start()

    def stop(self) -> None:
        """End after the round that is running, and write what is kept in memory."""
        self.stopping.set()
        delivery.due.set()
        if self.thread.is_alive():
            self.thread.join(timeout=10)
        ApiKey.write_used()

    def is_alive(self) -> bool:
        """Whether a round ended within the last 30 seconds."""
        return self.last_beat_s is not None and clock.monotonic_s() - self.last_beat_s < HEARTBEAT_LIFE_S

    def _run(self) -> None:
        while not self.stopping.is_set():
            run_due(clock.now_ms())
            self.last_beat_s = clock.monotonic_s()
            delivery.due.wait(ROUND_S)
            delivery.due.clear()


worker = Worker()
