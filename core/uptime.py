"""A heartbeat's uptime, run times and outcomes, computed from its kept pings and changes of state.

Must not know requests.
"""

from collections import Counter, defaultdict
from itertools import pairwise
from statistics import quantiles
from typing import NamedTuple

from process.clock import DAY_MS
from store import heartbeats
from store.heartbeats import Beat, KeptPing

COUNTED_MS = 30 * DAY_MS
SLOTS = 30
FEW_RUNS = 4  # fewer have no usual run time

Moments = list[tuple[str, int]]  # kinds of pings, or states, and their times, oldest first


class Record(NamedTuple):
    """A heartbeat's uptime, run times and outcomes, oldest first. Times are ms."""

    uptime: float | None  # time up, as a share of the time up or down; None if there was neither
    run_times: list[int | None]  # of each ping; None if no start came before it
    outcomes: list[str]  # `success`, `late`, `fail`, `start` or `log` for each ping; `late` for a missing one
    late_by: list[int | None]  # of each ping; None if it is not late

    @property
    def slots(self) -> list[str]:
        """The latest outcomes of runs, newest last."""
        return [one for one in self.outcomes if one not in ("start", "log")][-SLOTS:]

    @property
    def run_time(self) -> int | None:
        """The latest run time."""
        return next((one for one in reversed(self.run_times) if one is not None), None)

    @property
    def usual_run_times(self) -> tuple[int, int] | None:
        """The first and the third quartile of the run times; None after few runs."""
        known = [one for one in self.run_times if one is not None]
        if len(known) < FEW_RUNS:
            return None
        low, _, high = quantiles(known, n=4, method="inclusive")
        return round(low), round(high)


def records(account_seq: int, beats: list[Beat], now: int) -> dict[int, Record]:
    """The records of these heartbeats of the account, by seq, with one query."""
    pings, changes = defaultdict[int, Moments](list), defaultdict[int, Moments](list)
    for seq, word, at, is_change, _ in heartbeats.moments(account=account_seq):
        (changes if is_change else pings)[seq].append((word, at))
    return {one.seq: record(one.state, pings[one.seq], changes[one.seq], now, one.grace_s * 1000) for one in beats}


def record_of(beat: Beat, pings: list[KeptPing], now: int) -> Record:
    """The record of a heartbeat with these pings, newest first."""
    moments = [(ping.kind, ping.received_at) for ping in reversed(pings)]
    return record(beat.state, moments, heartbeats.changes(beat.seq), now, beat.grace_s * 1000)


def record(state: str, pings: Moments, changes: Moments, now: int, grace_ms: int) -> Record:
    """The record of a heartbeat that is in this state.

    A success is late if the heartbeat was down until then because a ping was missing: it was expected a grace period
    before that.
    """
    missed, is_missing = _missed(changes, {at for kind, at in pings if kind == "fail"})
    late_by = [at - missed[at] + grace_ms if kind == "success" and at in missed else None for kind, at in pings]
    outcomes = ["late" if by is not None else kind for (kind, _), by in zip(pings, late_by, strict=True)]
    newest = next((kind for kind in reversed(outcomes) if kind not in ("start", "log")), "")
    if state == "late" or (state == "down" and is_missing and newest != "fail"):
        outcomes.append("late")
    return Record(_uptime(changes, now), _run_times(pings), outcomes, late_by)


def _uptime(changes: Moments, now: int) -> float | None:
    """Time in other states does not count. A clock that was set back shortens a state to nothing."""
    lasted, reached = Counter[str](), max(now - COUNTED_MS, changes[0][1] if changes else 0)
    for (state, _), (_, until) in pairwise([*changes, ("", now)]):
        end = max(reached, min(until, now))
        lasted[state] += end - reached
        reached = end
    counted = lasted["up"] + lasted["down"]
    return lasted["up"] / counted if counted else None


def _run_times(pings: Moments) -> list[int | None]:
    """Of several starts, the latest counts."""
    run_times, began_at = list[int | None](), None
    for kind, at in pings:
        is_end = kind in ("success", "fail")
        run_times.append(at - began_at if is_end and began_at is not None and at >= began_at else None)
        began_at = at if kind == "start" else None if is_end else began_at
    return run_times


def _missed(changes: Moments, failed_at: set[int]) -> tuple[dict[int, int], bool]:
    """When it went down by the time at which it came up after a missing ping; and whether one is missing now."""
    missed, down_at, before = dict[int, int](), None, ""
    for state, at in changes:
        if state == "down" and before != "paused":  # else it was down when it was paused
            down_at = None if at in failed_at else at
        elif state == "up":
            if down_at is not None:
                missed[at] = down_at
            down_at = None
        before = state
    return missed, down_at is not None
