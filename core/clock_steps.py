"""Due times are brought forward when the wall clock is set back, or they would come too late by the same amount.

All processes of a machine see the step; the first to note it moves the times. With several machines, a step of one
makes the times that the others wrote early, and none late. Must not know requests.
"""

import json

from process import clock
from process.clock import MINUTE_MS
from store import alarms, deliveries, fallbacks, mails, server_notes
from store.database import EVERYBODY, transaction

STEP_MS = 2_000  # a smaller step is the clock's usual correction
SEEN_WITHIN_S = 60.0  # by all processes of the machine
MAX_MACHINES = 20
NOTE = "clock steps"
LAST_ALIVE = "watched"  # the note of when a process was alive last (core/heartbeat_checks.py)

_difference_ms: int | None = None  # wall clock minus monotonic clock at the last look


def follow(now: int) -> None:
    """Bring attempts, repeats, fallbacks and mails forward if the wall clock was set back since the last look.

    The first look counts from when the service was last alive, a minute or more. If it was set forward later, repeats
    end later: nobody has heard them meanwhile.
    """
    global _difference_ms
    now_s = clock.monotonic_s()
    difference_ms = now - int(now_s * 1000)
    by_ms = 0
    if _difference_ms is None:
        set_back_ms = int(server_notes.find(LAST_ALIVE) or 0) - now
        by_ms = set_back_ms if set_back_ms > MINUTE_MS else 0
    elif abs(_difference_ms - difference_ms) > STEP_MS:
        by_ms = _noted(_difference_ms, difference_ms, now_s)
    if by_ms > STEP_MS:
        deliveries.bring_forward(by_ms)
        fallbacks.bring_forward(by_ms)
        mails.bring_forward(by_ms)
    if abs(by_ms) > STEP_MS:
        alarms.follow_clock(by_ms)
    _difference_ms = difference_ms


def _noted(before_ms: int, difference_ms: int, now_s: float) -> int:
    """Note the step, and return by how much the clock was set back since another process of the machine noted one."""
    machine = clock.machine()
    with transaction(EVERYBODY):
        noted = json.loads(server_notes.find(NOTE) or "{}")
        known_ms, known_s = noted.pop(machine, (before_ms, 0.0))
        if not 0 <= now_s - known_s < SEEN_WITHIN_S:
            known_ms = before_ms
        newest = [*noted.items(), (machine, (difference_ms, now_s))][-MAX_MACHINES:]
        server_notes.put(NOTE, json.dumps(dict(newest)))
    return int(known_ms) - difference_ms
