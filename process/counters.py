"""Counts and times of what this process did since its start, for `GET /metrics`; with Redis, of all processes.

Must not know what is counted.
"""

import json
import threading
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

from process.redis_client import RedisClient

LIFE_S = 30 * 86_400  # of counts in Redis when no process adds to them

# KEYS: the counts. ARGV: their life in seconds, then for each count its name, the number to add and the least that it
# must be afterwards, since Redis may have been emptied. Returns all counts.
ADD = """
for i = 2, #ARGV, 3 do
  if redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) < tonumber(ARGV[i + 2]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2])
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return redis.call('HGETALL', KEYS[1])
"""
BOUNDS_S = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)  # the upper ends of a histogram's buckets
BUCKETS = (*map(str, BOUNDS_S), "+Inf")
SUM = "sum"  # beside the buckets: the sum of the times in microseconds

_counts: Counter[tuple[str, ...]] = Counter()  # all that this process counted; with Redis, what that has not got yet
_shared: Counter[tuple[str, ...]] = Counter()  # what Redis said last
_redis: RedisClient | None = None
_lock = threading.Lock()
_sharing = threading.Lock()


def count(what: str, *labels: str) -> None:
    """Count one more of `what`. Labels must take few values, and none that a stranger can choose."""
    with _lock:
        _counts[what, *labels] += 1


def observe(what: str, took_s: float, label: str) -> None:
    """Count one more of `what`, with how long it took."""
    with _lock:
        _counts[what, label, BUCKETS[bisect_left(BOUNDS_S, took_s)]] += 1
        _counts[what, label, SUM] += int(took_s * 1_000_000)


def histograms(what: str) -> dict[str, tuple[list[tuple[str, int]], float]]:
    """By label, each bucket with how many took at most so long, and the sum of all times in seconds."""
    found = counted(what)
    made = dict[str, tuple[list[tuple[str, int]], float]]()
    for label in sorted({label for label, _ in found}):
        buckets = list(zip(BUCKETS, accumulate(found.get((label, one), 0) for one in BUCKETS), strict=True))
        made[label] = buckets, found.get((label, SUM), 0) / 1_000_000
    return made


def counted(what: str) -> dict[tuple[str, ...], int]:
    """How many of `what` were counted, by labels; while Redis is away, as far as this process knows."""
    with _lock:
        return {key[1:]: number for key, number in (_shared + _counts).items() if key[0] == what}


def share() -> None:
    """Add to Redis what this process counted since the last call, and learn what all processes counted.

    After a time limit it is added again, although it may have arrived: a second may count double. Counts that an
    emptied Redis lost are restored, so that no counter decreases.
    """
    global _counts, _shared
    if (redis := _redis) is None:
        return
    with _sharing:
        with _lock:
            told = _counts.copy()
        least = _shared + told
        parts = [part for key in least for part in (json.dumps(key), told[key], least[key])]
        answer = redis.run(ADD, [redis.key("counts")], [LIFE_S, *parts])
        if answer is None:
            return
        pairs = zip(answer[::2], answer[1::2], strict=True)
        with _lock:
            _counts -= told
            _shared = Counter({tuple(json.loads(name)): int(number) for name, number in pairs})


def reset(redis: RedisClient | None = None) -> None:
    """Forget the counts of this process (another database was opened), and share them from now on, or not."""
    global _redis
    with _sharing, _lock:
        _redis = redis
        _counts.clear()
        _shared.clear()
