"""The background jobs and their threads: one for what waits for providers, one for removals, one for all else.

Each job is given the time. Must not know Flask or providers.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from core import delivery, devices, digests, proxies, pruning
from models import ApiKey
from process import clock
from store.database import WriteFailed, try_writing, writes_fail
from wire.errors import log_fault

ROUND_S = 1.0
HEARTBEAT_LIFE_S = 30.0
LONGEST_REMOVAL_S = 3600.0  # of a round that looks through all that very large accounts have
STOPPED_WITHIN_S = 10.0
PRUNED_EVERY_S = 3600.0

log = logging.getLogger("pocketbell")


class Job(NamedTuple):
    """What is run in each round, or every so many seconds; in the next round if it answers that there is more."""

    name: str
    run: Callable[[int], bool | None]
    every_s: float = 0.0


def look_after_writes(now: int) -> None:
    """Find out when writes that failed succeed again: /healthz tells of it."""
    if writes_fail():
        with contextlib.suppress(WriteFailed):  # it was logged when it began
            try_writing()


DELIVERIES = (
    Job("keep with the clock", delivery.keep_with_clock),
    Job("retry what is pending", delivery.retry_due),
)
RECORDS = (
    Job("look after writes", look_after_writes),
    Job("write the pauses of flooded alerts", delivery.write_pauses),
    Job("release what is held no longer", digests.release_due),
    Job("settle what removed devices left behind", devices.settle_left_behind),
    Job("write when keys were last used", lambda now: ApiKey.write_used()),
    Job("note who speaks like a proxy", proxies.write_note, 60.0),
)
REMOVALS = (
    Job("give up what no provider takes", delivery.give_up_unconfigured, PRUNED_EVERY_S),
    Job("remove what is too old or too much", pruning.prune, PRUNED_EVERY_S),
)


def run_due(now: int, jobs: Iterable[Job] = RECORDS + DELIVERIES + REMOVALS) -> list[Job]:
    """Run every job once, and answer with those that have more to do.

    A job that fails is logged and does not keep the others from running.
    """
    unfinished = []
    for job in jobs:
        try:
            if job.run(now):
                unfinished.append(job)
        except Exception as error:
            log_fault(log, f"The background job failed: {job.name}", error)
    return unfinished


class Lane:
    """One background thread with its jobs and its heartbeat; `wake` begins a round at once."""

    def __init__(self, jobs: tuple[Job, ...], wake: threading.Event, beat_life_s: float = HEARTBEAT_LIFE_S) -> None:
        self.beat_life_s = beat_life_s
        self.next_run_s = dict.fromkeys(jobs, 0.0)
        self.wake = wake
        self.last_beat_s: float | None = None
        self.stopping = False
        self.thread: threading.Thread | None = None  # made in `start`: a fork before it would leave a broken one

    def start(self) -> None:
        """Begin; once only."""
        self.last_beat_s = clock.monotonic_s()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """End after the round that is running."""
        self.stopping = True
        self.wake.set()
        if self.thread:
            self.thread.join(timeout=STOPPED_WITHIN_S)

    def is_alive(self) -> bool:
        """Whether a round ended lately."""
        return self.last_beat_s is not None and clock.monotonic_s() - self.last_beat_s < self.beat_life_s

    def _run(self) -> None:
        while not self.stopping:
            self._round()
            self.last_beat_s = clock.monotonic_s()
            self.wake.wait(ROUND_S)
            self.wake.clear()

    def _round(self) -> None:
        now_s = clock.monotonic_s()
        jobs = [job for job, at in self.next_run_s.items() if at <= now_s]
        unfinished = run_due(clock.now_ms(), jobs)
        self.next_run_s |= {job: 0.0 if job in unfinished else now_s + job.every_s for job in jobs}


class Worker:
    """The background worker of a service process: its lanes."""

    def __init__(self) -> None:
        self.lanes = (
            Lane(DELIVERIES, delivery.due),
            Lane(RECORDS, threading.Event()),
            Lane(REMOVALS, threading.Event(), LONGEST_REMOVAL_S),
        )

    def start(self) -> None:
        """Begin. A worker is started once."""
        for lane in self.lanes:
            lane.start()

    def stop(self) -> None:
        """End, and write what is kept in memory."""
        for lane in self.lanes:
            lane.stop()
        delivery.finish_retries()
        ApiKey.write_used()

    def lag_s(self) -> float:
        """How long ago the slowest lane ended a round; 0 before the first."""
        beats = [lane.last_beat_s for lane in self.lanes if lane.last_beat_s is not None]
        return clock.monotonic_s() - min(beats) if beats else 0.0

    def is_alive(self) -> bool:
        """Whether every lane is."""
        return all(lane.is_alive() for lane in self.lanes)


worker = Worker()
