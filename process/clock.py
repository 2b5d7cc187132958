"""The only place that reads a clock.

`now_ms` is wall time for what is stored and shown; `monotonic_s` is for durations in this process
(quotas, heartbeat), which must not notice when the wall clock is set. Tests move both.
"""

import time

DAY_MS = 86_400_000


def now_ms() -> int:
    """Unix time in milliseconds, UTC."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds that only go forward; meaningless outside this process."""
    return time.monotonic()
