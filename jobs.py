"""The background jobs and the threads that run them: one for what waits for providers, one for all else.

Each job is given the time. Must not know Flask or providers.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

import clock
import delivery
import digests
from database import WriteFailed, transaction, try_writing, writes_fail
from errors import log_fault
from history import IdempotencyKey, Notification
from models import Account, ApiKey
from quotas import history_begin

ROUND_S = 1.0
HEARTBEAT_LIFE_S = 30.0
STOPPED_WITHIN_S = 10.0
PRUNED_EVERY_S = 3600.0
PRUNED_AT_ONCE = 500  # rows: more would keep writers waiting

log = logging.getLogger("pocketbell")


class Job(NamedTuple):
    """What is run in each round, or every so many seconds; in the next round if it answers that there is more."""

    name: str
    run: Callable[[int], bool | None]
    every_s: float = 0.0


def prune_history(now: int) -> bool:
    """Remove notifications older than their account's plan keeps, some at a time (CONTRACT 3, history)."""
    removed = 0
    for account in Account.all():
        with transaction():
            before = history_begin(account.plan, now)
            removed += Notification.prune(account.seq, before, PRUNED_AT_ONCE)
    return removed > 0


def look_after_writes(now: int) -> None:
    """Find out when writes that failed succeed again: /healthz tells of it."""
    if writes_fail():
        with contextlib.suppress(WriteFailed):  # it was logged when it began
            try_writing()


def prune_idempotency_keys(now: int) -> bool:
    """Remove Idempotency-Keys that are good no longer, some at a time."""
    with transaction():
        return IdempotencyKey.prune(now - delivery.IDEMPOTENCY_LIFE_MS, PRUNED_AT_ONCE) > 0


DELIVERIES = (
    Job("keep with the clock", delivery.keep_with_clock),
    Job("retry what is pending", delivery.retry_due),
)
RECORDS = (
    Job("look after writes", look_after_writes),
    Job("release what is held no longer", digests.release_due),
    Job("write when keys were last used", lambda now: ApiKey.write_used()),
    Job("prune the history", prune_history, PRUNED_EVERY_S),
    Job("prune the idempotency keys", prune_idempotency_keys, PRUNED_EVERY_S),
)


def run_due(now: int, jobs: Iterable[Job] = RECORDS + DELIVERIES) -> list[Job]:
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

    def __init__(self, jobs: tuple[Job, ...], wake: threading.Event) -> None:
        self.next_run_s = dict.fromkeys(jobs, 0.0)
        self.wake = wake
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
        self.lanes = (Lane(DELIVERIES, delivery.due), Lane(RECORDS, threading.Event()))

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
