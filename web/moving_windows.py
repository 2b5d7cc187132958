"""Exact moving windows: how many hits each key had lately, and whether there is room for more.

A storage for Flask-Limiter. The times of a key's hits are in this process's memory, unless they are
shared. Unlike with the storage of `limits`, counting takes the same time however many keys there are, the clock is
never set back, and all that a request counts against is counted in one call. Must not know the limits.
"""

import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from limits.storage import MovingWindowSupport, Storage

from process import clock

MOST = 10**9  # more room than any window has

# What a request wants of one window: its key, limit, length in seconds, and how many hits. 0 hits only look, -1 takes
# one back.
Claim = tuple[str, int, int, int]
Claims = tuple[Claim, ...]  # they are counted together: all of them, or none


class Counted(NamedTuple):
    """The result of counting claims together: figures of the window that refused, or else has the least room left."""

    refused: int | None  # the place of the claim for which there was no room
    used: int  # hits within the window
    room: int  # for how many more hits there is room
    reset_in_s: float  # when the hit ends that must end before another one fits


class MovingWindows(Storage, MovingWindowSupport):
    """The times of each key's latest hits, oldest first, by the length of the window.

    When a key's window begins, the first of all keys are looked at: idle ones are forgotten, one that is not goes to
    the end.
    """

    STORAGE_SCHEME = ["moving-windows"]
    base_exceptions = MemoryError  # memory has none of its own

    def __init__(self, uri: str | None = None, **options: Any) -> None:
        super().__init__(uri, **options)
        self.hits: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)
        self.lock = threading.Lock()
        self.shared: Callable[[tuple[Claims, ...]], list[Counted] | None] | None = None  # counts for all processes

    def count(self, *groups: Claims) -> list[Counted]:
        """Count each group in turn, atomically: in Redis if it is used and answers, otherwise in memory."""
        if self.shared and (answers := self.shared(groups)) is not None:
            return answers
        answers, now = [], clock.monotonic_s()
        with self.lock:
            for claims in groups:  # a comprehension is another call
                answers.append(self._count_together(claims, now))
        return answers

    def _count_together(self, claims: Claims, now: float) -> Counted:
        windows: list[deque[float]] = []  # `list[…]()` would make a type first
        least, shown, refused = MOST, 0, None
        for claim in claims:
            key, limit, length_s, amount = claim
            hits = self.hits[length_s].get(key) or deque()
            expired = now - length_s
            while hits and hits[0] <= expired:
                hits.popleft()
            room = limit - len(hits) - amount
            if room < least:
                least, shown = room, len(windows)
            windows.append(hits)
            if amount >= 0 and room < (not amount):
                shown = refused = len(windows) - 1
                break
        else:
            for hits, claim in zip(windows, claims, strict=True):
                if hits and claim[3] == 1:
                    hits.append(now)
                else:
                    self._add(hits, claim, now)
        hits, (_, limit, length_s, _) = windows[shown], claims[shown]
        room = limit - len(hits)
        age = now - hits[0 if room > 0 else -room] if hits else 0.0
        return Counted(refused, len(hits), room if room > 0 else 0, length_s - age)

    def _add(self, hits: deque[float], claim: Claim, now: float) -> None:
        """Add the claim's hits, or take one back. If its window begins, up to two idle keys are forgotten."""
        key, _, length_s, amount = claim
        if amount <= 0:
            if amount and hits:
                hits.pop()
            return
        keys = self.hits[length_s]
        keys[key] = hits
        hits.extend((now,) * amount)
        for _ in range(2):
            oldest = next(iter(keys))
            its_hits = keys[oldest]
            if its_hits and its_hits[-1] > now - length_s:
                keys.move_to_end(oldest)
                break
            del keys[oldest]

    # The interface of `limits`.

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` hits unless that makes more than `limit` within `expiry` seconds."""
        (counted,) = self.count(((key, limit, expiry, amount),))
        return counted.refused is None

    def reset(self) -> None:
        """Forget everything."""
        with self.lock:
            self.hits.clear()

    def _not_here(self, *_: Any, **__: Any) -> NoReturn:
        """For what nobody asks of these windows."""
        raise NotImplementedError

    get = incr = get_expiry = get_moving_window = check = clear = _not_here
