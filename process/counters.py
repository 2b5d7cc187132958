"""Counts of what has happened since this process started, for `GET /metrics`; or with Redis, in all processes.

Must not know what is counted.
"""

import json
import threading
from collections import Counter

from process.redis_client import RedisClient

LIFE_S = 30 * 86_400  # of counts in Redis when no process adds to them

# KEYS: the counts. ARGV: their life in seconds, then names and what is added to each. Returns all of them.
ADD = """
for i = 2, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return redis.call('HGETALL', KEYS[1])
"""

_counts: Counter[tuple[str, ...]] = Counter()  # all that this process counted; with Redis, what that has not got yet
_shared: Counter[tuple[str, ...]] = Counter()  # what Redis said last
_redis: RedisClient | None = None
_lock = threading.Lock()
_sharing = threading.Lock()


def count(what: str, *labels: str) -> None:
    """Count one more of `what`. Labels must take few values, and none that a stranger can choose."""
    with _lock:
        _counts[what, *labels] += 1


def counted(what: str) -> dict[tuple[str, ...], int]:
    """How many of `what` were counted, by labels; while Redis is away, as far as this process knows."""
    with _lock:
        return {key[1:]: number for key, number in (_shared + _counts).items() if key[0] == what}


def share() -> None:
    """Add to Redis what this process counted since the last call, and learn what all processes counted.

    After a time limit it is added again, although it may have arrived: a second may count double.
    """
    global _counts, _shared
    if _redis is None:
        return
    with _sharing:
        with _lock:
            told, _counts = _counts, Counter()
        added = [part for key, number in told.items() for part in (json.dumps(key), number)]
        answer = _redis.run(ADD, [_redis.key("counts")], [LIFE_S, *added])
        with _lock:
            if answer is None:
                _counts += told
            else:
                numbers = dict(zip(answer[::2], map(int, answer[1::2]), strict=True))
                _shared = Counter({tuple(json.loads(key)): number for key, number in numbers.items()})


def reset(redis: RedisClient | None = None) -> None:
    """Forget the counts of this process (another database was opened), and share them from now on, or not."""
    global _redis
    with _sharing, _lock:
        _redis = redis
        _counts.clear()
        _shared.clear()
