"""Exact moving windows: how many hits each key had lately, and whether there is room for more.

They are kept in this process's memory, unless they are shared: the times of a key's hits, oldest first.
Flask-Limiter's own memory storage walks every key each 10 ms. This one takes the same time however many keys there
are, and uses a clock that is never set back. All that a request counts against is counted in one call. Must not know
the limits.
"""

import threading
from collections import OrderedDict, defaultdict, deque
from typing import NamedTuple, Protocol

from limits.storage import MovingWindowSupport, Storage

from process import clock


class Claim(NamedTuple):
    """What a request wants of one window: `amount` hits; with 0 it only looks, with -1 it takes its hit back."""

    key: str
    limit: int
    length_s: int
    amount: int = 1


Claims = tuple[Claim, ...]  # they are counted together: all of them, or none


class Counted(NamedTuple):
    """What came of claims that were counted together.

    The figures are those of the window that had no room for a hit, or else of the first one.
    """

    refused: int | None  # the place of the claim for which there was no room
    used: int  # hits within the window
    reset_in_s: float  # when the hit ends that must end before another one fits


class Shared(Protocol):
    """Windows that other processes count in, too."""

    def count(self, groups: tuple[Claims, ...]) -> list[Counted] | None:
        """As `MovingWindows.count`; None if that cannot be done now."""


class MovingWindows(Storage, MovingWindowSupport):
    """The times of each key's latest hits, oldest first, by the length of the window.

    Keys are in order of their latest hits, so that idle ones come first.
    """

    STORAGE_SCHEME = ["moving-windows"]

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: float | str | bool) -> None:
        super().__init__(uri, wrap_exceptions, **options)
        self.hits: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)
        self.lock = threading.Lock()
        self.shared: Shared | None = None

    def count(self, *groups: Claims) -> list[Counted]:
        """Count each group, one after the other, while nobody else counts: in what is shared, or else here."""
        if self.shared and (answers := self.shared.count(groups)) is not None:
            return answers
        now = clock.monotonic_s()
        with self.lock:
            return [self._count_together(claims, now) for claims in groups]

    def _count_together(self, claims: Claims, now: float) -> Counted:
        windows: list[tuple[Claim, deque[float]]] = []  # `list[…]()` would make a type first
        shown, refused = 0, None
        for claim in claims:
            key, limit, length_s, amount = claim
            hits = self.hits[length_s].get(key) or deque()
            expired = now - length_s
            while hits and hits[0] <= expired:
                hits.popleft()
            windows.append((claim, hits))
            if amount >= 0 and len(hits) + (amount or 1) > limit:
                shown = refused = len(windows) - 1
                break
        else:
            for claim, hits in windows:
                if claim.amount:
                    self._add(hits, claim, now)
        (_, limit, length_s, _), hits = windows[shown]
        age = now - hits[max(0, len(hits) - limit)] if hits else 0.0
        return Counted(refused, len(hits), length_s - age)

    def _add(self, hits: deque[float], claim: Claim, now: float) -> None:
        """Add the claim's hits and keep them, or take one back; forgets up to two idle keys on the way."""
        key, _, length_s, amount = claim
        if amount < 0:
            if hits:
                hits.pop()
            return
        keys = self.hits[length_s]
        if not hits:  # it may have been forgotten
            keys[key] = hits
        keys.move_to_end(key)
        if amount == 1:
            hits.append(now)
        else:  # takes twice as long
            hits.extend((now,) * amount)
        for _ in range(2):
            oldest = next(iter(keys))
            if oldest == key:
                break
            its_hits = keys[oldest]
            if its_hits and its_hits[-1] > now - length_s:
                break
            del keys[oldest]

    # What Flask-Limiter's strategy calls.

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` hits unless that makes more than `limit` within `expiry` seconds."""
        (counted,) = self.count((Claim(key, limit, expiry, amount),))
        return counted.refused is None

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """The wall time of the hit that must expire before another fits, or now; and how many hits there are."""
        (counted,) = self.count((Claim(key, limit, expiry, 0),))
        return clock.now_ms() / 1000 + counted.reset_in_s - expiry, counted.used

    @property
    def base_exceptions(self) -> type[Exception]:
        """Nothing here raises an exception of its own."""
        return MemoryError

    def get(self, key: str) -> int:
        """How many hits of the key are kept."""
        return sum(len(keys.get(key, ())) for keys in self.hits.values())

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
        """Forget everything; returns the number of keys."""
        with self.lock:
            forgotten = sum(map(len, self.hits.values()))
            self.hits.clear()
        return forgotten

    def clear(self, key: str) -> None:
        """Forget one key."""
        with self.lock:
            for keys in self.hits.values():
                keys.pop(key, None)
