"""The background jobs and the threads that run them: one for what waits for providers, one for all else.

Each job is given the time. Must not know Flask or providers.
"""

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
STOPPED_WITHIN_S = 10.0

log = logging.getLogger("pocketbell")


class Job(NamedTuple):
    """What is run, in each round."""

    name: str
    run: Callable[[int], None]


DELIVERIES = (Job("retry what is pending", delivery.retry_due),)
RECORDS = (Job("write when keys were last used", lambda now: ApiKey.write_used()),)


def run_due(now: int, jobs: tuple[Job, ...] = DELIVERIES + RECORDS) -> None:
    """Run every job once. A job that fails is logged and does not keep the others from running."""
    for job in jobs:
        try:
            job.run(now)
        except Exception as error:
            log_fault(log, f"The background job failed: {job.name}", error)


class Lane:
    """One background thread with its jobs and its heartbeat; `wake` begins a round at once."""

    def __init__(self, jobs: tuple[Job, ...], wake: threading.Event) -> None:
        self.jobs, self.wake = jobs, wake
        self.last_beat_s: float | None = None
        self.stopping = False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; once only."""
        self.last_beat_s = clock.monotonic_s()
        self.thread.start()

    def stop(self) -> None:
        """End after the round that is running."""
        self.stopping = True
        self.wake.set()
        if self.thread.is_alive():
            self.thread.join(timeout=STOPPED_WITHIN_S)

    def is_alive(self) -> bool:
        """Whether a round ended within the last 30 seconds."""
        return self.last_beat_s is not None and clock.monotonic_s() - self.last_beat_s < HEARTBEAT_LIFE_S

    def _run(self) -> None:
        while not self.stopping:
            run_due(clock.now_ms(), self.jobs)
            self.last_beat_s = clock.monotonic_s()
            self.wake.wait(ROUND_S)
            self.wake.clear()


class Worker:
    """The background worker of a service process: its lanes."""

    def __init__(self) -> None:
        self.lanes = (Lane(DELIVERIES, delivery.due), Lane(RECORDS, threading.Event()))

    def start(self) -> None:
        """Begin. A worker is started once."""
        for lane in self.lanes:
            lane.start()

    def stop(self) -> None:
        """End, and write what is kept in memory."""
        for lane in self.lanes:
            lane.stop()
        ApiKey.write_used()

    def is_alive(self) -> bool:
        """Whether every lane is."""
        return all(lane.is_alive() for lane in self.lanes)


worker = Worker()
