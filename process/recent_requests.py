"""The latest requests to each alert with their answers, in this process's memory; with Redis, those to all.

Nothing of a payload is among them. Must not know handlers or SQL.
"""

import threading
from collections import OrderedDict, deque
from typing import NamedTuple

from process.redis_client import RedisClient, script

MAX_KEPT = 30  # of each alert
MAX_ALERTS = 1_000
MAX_TOLD = 16  # alerts whose requests Redis gets at once, so that nobody waits for that
LIFE_S = 7 * 86_400  # of an alert's requests in Redis after the last one

# KEYS: the requests of each alert, newest first, as "at status times words". ARGV: life in seconds, how many are
# kept, then the place of the alert among the keys and a request to it, oldest first.
ADD = script("""
local function parts(request) return string.match(request, '^(%d+) (%d+) (%d+) (.*)$') end

for i = 3, #ARGV, 2 do
  local key, request = KEYS[tonumber(ARGV[i])], ARGV[i + 1]
  local at, status, times, words = parts(request)
  local last_at, last_status, last_times, last_words = parts(redis.call('LINDEX', key, 0) or '')
  if status == last_status and status ~= '200' and words == last_words then
    redis.call('LPOP', key)
    request = string.format('%.0f %s %.0f %s', math.max(at, last_at), status, times + last_times, words)
  end
  redis.call('LPUSH', key, request)
  redis.call('LTRIM', key, 0, ARGV[2] - 1)
  redis.call('EXPIRE', key, ARGV[1])
end
return 1
""")
READ = script("return redis.call('LRANGE', KEYS[1], 0, -1)")


class Seen(NamedTuple):
    """A request to an alert, or several alike in a row: when the last came, the HTTP status, why, and how many."""

    at: int
    status: int
    words: str
    times: int


_Requests = OrderedDict[int, deque[Seen]]  # of each alert, newest first; the alert used last is the last

_seen: _Requests = OrderedDict()
_unshared: _Requests = OrderedDict()  # what Redis has not got yet
_redis: RedisClient | None = None
_lock = threading.Lock()
_sharing = threading.Lock()


def note(alert_seq: int, status: int, words: str, now: int) -> None:
    """Remember a request's answer; equal refusals in a row become one entry."""
    with _lock:
        for requests in (_seen, _unshared) if _redis else (_seen,):
            _add(requests, alert_seq, Seen(now, status, words, 1))


def _add(requests: _Requests, alert_seq: int, seen: Seen) -> None:
    kept = requests.setdefault(alert_seq, deque(maxlen=MAX_KEPT))
    requests.move_to_end(alert_seq)
    if len(requests) > MAX_ALERTS:
        requests.popitem(last=False)
    if kept and kept[0].status == seen.status != 200 and kept[0].words == seen.words:
        seen = seen._replace(times=seen.times + kept.popleft().times)
    kept.appendleft(seen)


def of_alert(alert_seq: int) -> list[Seen]:
    """The latest requests to an alert, newest first: since this process started, if Redis does not know of others."""
    if _redis and share() and (kept := _redis.run(READ, [_redis.key("requests", alert_seq)], [])) is not None:
        parts = (one.decode().split(" ", 3) for one in kept)
        return [Seen(int(at), int(status), words, int(times)) for at, status, times, words in parts]
    with _lock:
        return list(_seen.get(alert_seq, ()))


def share() -> bool:
    """Tell Redis of the requests since the last call; whether it knows of all now."""
    if _redis is None:
        return False
    with _sharing:
        for _ in range(0, len(_unshared), MAX_TOLD):
            with _lock:
                told = [_unshared.popitem(last=False) for _ in range(min(MAX_TOLD, len(_unshared)))]
            if not _tell(_redis, told):
                _keep_for_later(told)
                return False
    return True


def _tell(redis: RedisClient, told: list[tuple[int, deque[Seen]]]) -> bool:
    requests = [
        part
        for place, (_, kept) in enumerate(told, 1)
        for seen in reversed(kept)
        for part in (place, f"{seen.at} {seen.status} {seen.times} {seen.words}")
    ]
    keys = [redis.key("requests", alert_seq) for alert_seq, _ in told]
    return redis.run(ADD, keys, [LIFE_S, MAX_KEPT, *requests]) is not None


def _keep_for_later(told: list[tuple[int, deque[Seen]]]) -> None:
    with _lock:
        for alert_seq, kept in told:
            later = _unshared.pop(alert_seq, ())
            for seen in (*reversed(kept), *reversed(later)):
                _add(_unshared, alert_seq, seen)


def reset(redis: RedisClient | None = None) -> None:
    """Forget all requests of this process (another database was opened), and share them from now on, or not."""
    global _redis
    with _sharing, _lock:
        _redis = redis
        _seen.clear()
        _unshared.clear()
