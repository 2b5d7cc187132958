"""Every number of SPEC 8, and the counting: exact moving windows in this process's memory.

Flask-Limiter counts, on a storage of our own: the one that comes with it walks every key each 10 ms. Counting
costs the same however many keys there are, and uses a clock that is never set back. Must not know handlers or SQL.
"""

import math
import threading
from collections import OrderedDict, deque
from typing import NamedTuple

from flask import Flask, g
from flask_limiter import Limiter
from limits import RateLimitItemPerMinute
from limits.storage import MovingWindowSupport, Storage

import clock
from errors import Refused


class Quota(RateLimitItemPerMinute):
    """So many in any so many minutes; counted on when the number changes with the plan."""

    def key_for(self, *identifiers: bytes | str | int | float) -> str:
        """What is counted, whatever the number."""
        return "/".join(map(str, identifiers))


class Plan(NamedTuple):
    """What an account's plan allows (CONTRACT 2)."""

    rest: Quota
    history_days: int


PLANS = {
    "starter": Plan(Quota(100), 30),
    "pro": Plan(Quota(1000), 365),
    "scale": Plan(Quota(1000), 1095),
}
LIST_DEFAULT = 50
LIST_MAXIMUM = 100
SIGN_IN_TRIES = Quota(10, 15)  # for each e-mail address


class MovingWindows(Storage, MovingWindowSupport):
    """The times of each key's latest hits, oldest first; keys in order of use, so that idle ones are in front."""

    STORAGE_SCHEME = ["moving-windows"]
    IDLE_S = 3600.0

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: float | str | bool) -> None:
        super().__init__(uri, wrap_exceptions, **options)
        self.hits: OrderedDict[str, deque[float]] = OrderedDict()
        self.lock = threading.Lock()

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` hits unless that makes more than `limit` within `expiry` seconds."""
        now = clock.monotonic_s()
        with self.lock:
            hits = self._current(key, expiry, now)
            if len(hits) + amount > limit:
                return False
            hits.extend([now] * amount)
            return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """The wall time of the oldest hit in the window (now, if there is none) and how many there are."""
        now = clock.monotonic_s()
        with self.lock:
            hits = self._current(key, expiry, now) if key in self.hits else ()
            age = now - hits[0] if hits else 0.0
            return clock.now_ms() / 1000 - age, len(hits)

    def _current(self, key: str, expiry: int, now: float) -> deque[float]:
        """The key's hits within the window; drops at most two idle keys on the way."""
        hits = self.hits.setdefault(key, deque())
        self.hits.move_to_end(key)
        while hits and hits[0] <= now - expiry:
            hits.popleft()
        for _ in range(2):
            oldest, its_hits = next(iter(self.hits.items()))
            if oldest != key and (not its_hits or its_hits[-1] <= now - self.IDLE_S):
                del self.hits[oldest]
        return hits

    @property
    def base_exceptions(self) -> type[Exception]:
        """Nothing here fails in a way of its own."""
        return MemoryError

    def get(self, key: str) -> int:
        """How many hits are kept."""
        return len(self.hits.get(key, ()))

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Fixed windows are not offered."""
        raise NotImplementedError

    def get_expiry(self, key: str) -> float:
        """Fixed windows are not offered."""
        raise NotImplementedError

    def check(self) -> bool:
        """Memory is always there."""
        return True

    def reset(self) -> int:
        """Forget everything; answers with how many keys that were."""
        with self.lock:
            forgotten = len(self.hits)
            self.hits.clear()
        return forgotten

    def clear(self, key: str) -> None:
        """Forget one key."""
        with self.lock:
            self.hits.pop(key, None)


class Window(NamedTuple):
    """What an authenticated answer says of the quota (CONTRACT 3, X-RateLimit-*)."""

    limit: int
    remaining: int
    reset_s: int


limiter = Limiter(key_func=lambda: str(g.caller.key_seq), storage_uri="moving-windows://", strategy="moving-window")


def configure(app: Flask) -> None:
    """Start with empty counters.

    Of Flask-Limiter's own request hooks none is registered: they count by endpoint, miss 404 and 405, and cost more
    than all other work of a small request; `rest` is called for every request of the surface instead.
    """
    app.extensions["limiter"] = {limiter}
    limiter.init_app(app)
    limiter.limiter.storage.reset()


def rest() -> None:
    """Count a request of `g.caller` against its key's limit over all REST endpoints; `Refused` (429) beyond it."""
    item, key = PLANS[g.caller.plan].rest, str(g.caller.key_seq)
    allowed = limiter.limiter.hit(item, "key", key)
    reset_at, remaining = limiter.limiter.get_window_stats(item, "key", key)
    g.window = Window(item.amount, max(0, remaining), math.ceil(reset_at))
    if not allowed:
        raise Refused(429)


def check_sign_in(email: str) -> None:
    """`Refused` (429) after too many wrong passwords for one address."""
    if not limiter.limiter.test(SIGN_IN_TRIES, "sign-in", email):
        next_try, _ = limiter.limiter.get_window_stats(SIGN_IN_TRIES, "sign-in", email)
        wait_s = math.ceil(next_try - clock.now_ms() / 1000)
        raise Refused(429, "Too many tries: wait a quarter of an hour, then try again.", wait_s)


def count_wrong_password(email: str) -> None:
    """Wrong ones alone count, and only once a hash was computed: that bounds how many addresses are kept."""
    limiter.limiter.hit(SIGN_IN_TRIES, "sign-in", email)
