"""The background jobs and their threads: one each for retries, records, timed work and removals.

Each job gets the current time. Must not know Flask or providers.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from core import (
    alarms,
    api_keys,
    batches,
    channels,
    devices,
    digests,
    health_ping,
    heartbeat_checks,
    mails,
    maintenance,
    new_passwords,
    ntfy_wakeup,
    proxies,
    pruning,
    recent_requests,
    retries,
    scheduled,
    snoozes,
    storage,
)
from models import ApiKey
from process import clock, counters
from process.faults import log_fault
from store.database import WriteFailed, answers, give_back, writes_fail
from store.server_notes import try_writing

ROUND_S = 1.0
HEARTBEAT_LIFE_S = 30.0
MAX_REMOVAL_S = 3600.0  # a round may read all that very large accounts have
STOPPED_WITHIN_S = 10.0
PRUNED_EVERY_S = 3600.0
PINGED_EVERY_S = 60.0


class Job(NamedTuple):
    """Runs in each round, or every `every_s` seconds; again in the next round if it returns that more is left."""

    name: str
    run: Callable[[int], bool | None]
    every_s: float = 0.0


def look_after_writes(now: int) -> None:
    """After a failed write, try another one in each round: /healthz reports the fault until one succeeds."""
    if writes_fail():
        with contextlib.suppress(WriteFailed):  # it was logged when it first failed
            try_writing()


DELIVERIES = (
    Job("use fallbacks", lambda now: channels.fall_back_due(now, retries.batches.busy)),
    Job("retry pending deliveries", retries.retry_due),
    Job("mail links for new passwords", new_passwords.mail_links),
    Job("send mails", mails.send_due),
)
TIMED = (
    Job("release scheduled sends", scheduled.release_due),
    Job("push what was snoozed again", snoozes.release_due),
    Job("check heartbeats and rules", heartbeat_checks.check_due),  # follows the clock, before repeats end by it
    Job("repeat until acknowledged", alarms.repeat_due),
)
RECORDS = (
    Job("look after writes", look_after_writes),
    Job("tell what changed during a maintenance", maintenance.tell_ended),
    Job("release held notifications", digests.release_due),
    Job("settle expired notifications", retries.settle_expired),
    Job("end what expired while it was held", digests.end_expired),
    Job("give up deliveries", retries.give_up, retries.GIVEN_UP_EVERY_S),
    Job("settle deliveries to removed devices", devices.settle_left_behind),
    Job("look at keys that expire", api_keys.look_at_ends),
    Job("write when each key was last used", lambda now: ApiKey.write_used()),
    Job("write the recent requests of alerts", recent_requests.write),
    Job("share counts", lambda now: counters.share()),
    Job("find accounts at their limit of storage", storage.look, storage.LOOKED_EVERY_S),
    Job("note unlisted proxies", proxies.write_note, 60.0),
)
REMOVALS = (
    Job("prune the history", pruning.prune, PRUNED_EVERY_S),
    Job("prune metrics", pruning.prune_metrics, PRUNED_EVERY_S),
)


def run_due(now: int, jobs: Iterable[Job] = RECORDS + TIMED + DELIVERIES + REMOVALS) -> list[Job]:
    """Run every job once, and return the jobs with more to do. A failure is logged and stops no other job."""
    unfinished = []
    for job in jobs:
        try:
            if job.run(now):
                unfinished.append(job)
        except Exception as error:
            log_fault(f"The background job failed: {job.name}", error)
    return unfinished


class Lane:
    """One background thread with its jobs and its heartbeat; setting `wake` begins a round at once."""

    def __init__(self, jobs: tuple[Job, ...], wake: threading.Event, beat_life_s: float = HEARTBEAT_LIFE_S) -> None:
        self.beat_life_s = beat_life_s
        self.next_run_s = dict.fromkeys(jobs, 0.0)
        self.wake = wake
        self.last_beat_s: float | None = None
        self.stopping = False
        self.thread: threading.Thread | None = None  # made in `start`: a thread does not survive a fork before it

    def start(self) -> None:
        """Begin; once only."""
        self.last_beat_s = clock.monotonic_s()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self, within_s: float = STOPPED_WITHIN_S) -> None:
        """End after the current round; wait at most `within_s` seconds for that."""
        self.stopping = True
        self.wake.set()
        if self.thread:
            self.thread.join(timeout=within_s)

    def is_alive(self) -> bool:
        """Whether a round has ended lately."""
        return self.last_beat_s is not None and clock.monotonic_s() - self.last_beat_s < self.beat_life_s

    def _run(self) -> None:
        while not self.stopping:
            self._round()
            give_back()
            self.last_beat_s = clock.monotonic_s()
            self.wake.wait(ROUND_S)
            self.wake.clear()

    def _round(self) -> None:
        now_s = clock.monotonic_s()
        jobs = [job for job, at in self.next_run_s.items() if at <= now_s]
        unfinished = run_due(clock.now_ms(), jobs)
        self.next_run_s |= {job: 0.0 if job in unfinished else now_s + job.every_s for job in jobs}


class Scheduler:
    """The background threads of a process: the lanes, and `pinger`, which may wait long for another server."""

    def __init__(self) -> None:
        self.lanes = (
            Lane(DELIVERIES, retries.batches.due),
            Lane(RECORDS, threading.Event()),
            Lane(TIMED, alarms.batches.due),
            Lane(REMOVALS, threading.Event(), MAX_REMOVAL_S),
        )
        self.pinger = Lane((Job("call HEARTBEAT_URL", ping_if_healthy, PINGED_EVERY_S),), threading.Event())

    def start(self) -> None:
        """Begin; once only."""
        for lane in self.lanes:
            lane.start()
        if health_ping.is_wanted():
            self.pinger.start()

    def stop(self) -> None:
        """End, and write the state that is only in memory."""
        self.pinger.stop(within_s=0)  # the other side may never answer
        for lane in self.lanes:
            lane.stop()
        for kind in batches.ALL:
            kind.finish()
        ntfy_wakeup.stop()
        ApiKey.write_used()
        recent_requests.write_all()
        counters.share()

    def lag_s(self) -> float:
        """For how long the slowest lane has not ended a round; 0 before the first."""
        beats = [lane.last_beat_s for lane in self.lanes if lane.last_beat_s is not None]
        return clock.monotonic_s() - min(beats) if beats else 0.0

    def is_alive(self) -> bool:
        """Whether every lane is alive."""
        return all(lane.is_alive() for lane in self.lanes)


def is_healthy() -> bool:
    """Whether the database answers and every background thread is alive."""
    return answers() and background.is_alive()


def ping_if_healthy(now: int) -> None:
    """Call HEARTBEAT_URL while this service is healthy: the absence of calls tells the other side that it is not."""
    if is_healthy():
        health_ping.ping()


background = Scheduler()
