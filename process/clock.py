"""The only module that reads a clock.

`now_ms` is wall time, for what is stored and shown. `monotonic_s` is for durations within this process (quotas,
pauses, the worker's heartbeat), which must not change when somebody sets the wall clock. Tests move both.
"""

import time

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000

began_at = 0  # when this process began to serve (ms)


def begin() -> None:
    """Note that this process begins to serve."""
    global began_at
    began_at = now_ms()


def now_ms() -> int:
    """Unix time in milliseconds, UTC."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds that never go back; only their differences mean something, and only in this process."""
    return time.monotonic()
