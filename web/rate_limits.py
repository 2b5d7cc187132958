"""Every number of SPEC 8, and the counting: exact moving windows in this process's memory.

Flask-Limiter counts, on a storage of our own: its own memory storage walks every key each 10 ms. Ours takes the same
time however many keys there are, and uses a clock that is never set back. Must not know handlers or SQL.
"""

import math
import threading
from collections import OrderedDict, defaultdict, deque
from typing import NamedTuple

from flask import Flask
from flask_limiter import Limiter
from limits import RateLimitItemPerMinute
from limits.storage import MovingWindowSupport, Storage

from core.plans import PLANS
from process import clock
from web.context import Window, current
from wire.errors import TOO_MANY_EVENTS, Refused


class Quota(RateLimitItemPerMinute):
    """A limit within a moving window of minutes; the count goes on when a plan changes the limit."""

    def key_for(self, *identifiers: bytes | str | int | float) -> str:
        """The key of a count, which does not depend on the limit."""
        return "/".join(map(str, identifiers))


REST = {name: Quota(plan.rest_per_minute) for name, plan in PLANS.items()}  # of a key
CUSTOM_METRICS = {name: Quota(plan.metrics_per_hour, 60) for name, plan in PLANS.items()}  # of an account
DEFAULT_LISTED = 50  # notifications on a page of the history
MAX_LISTED = 100
MAX_METRICS = 100  # in one request
ALERT_EVENTS = Quota(60)
FLOOD = Quota(500)
UNKNOWN_CODES = Quota(60)  # asked for by one sender
UNKNOWN_TOPICS = Quota(60)  # likewise
PINGS = Quota(60)  # of a heartbeat
BUTTONS = Quota(60)  # shown to or pressed by one sender
SIGN_IN_TRIES = Quota(10, 15)  # wrong passwords for an account from one sender, or from a known browser
TRIES_OF_SENDER = Quota(30, 15)  # from one sender, whatever the address
TRIES_OF_STRANGERS = Quota(100, 15)  # for an account, from all senders
SIGN_INS = Quota(30, 15)  # with the right password, from one sender or from an account's known browsers


class MovingWindows(Storage, MovingWindowSupport):
    """The times of each key's latest hits, oldest first, by the length of the window.

    Keys are in order of use, so that idle ones come first.
    """

    STORAGE_SCHEME = ["moving-windows"]

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: float | str | bool) -> None:
        super().__init__(uri, wrap_exceptions, **options)
        self.hits: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)
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
        """The wall time of the hit that must expire before another fits, or now; and how many hits there are."""
        now = clock.monotonic_s()
        with self.lock:
            hits = self._current(key, expiry, now) if key in self.hits[expiry] else ()
            age = now - hits[max(0, len(hits) - limit)] if hits else 0.0
            return clock.now_ms() / 1000 - age, len(hits)

    def _current(self, key: str, expiry: int, now: float) -> deque[float]:
        """The key's hits within the window; forgets up to two idle keys on the way."""
        keys = self.hits[expiry]
        hits = keys.setdefault(key, deque())
        keys.move_to_end(key)
        while hits and hits[0] <= now - expiry:
            hits.popleft()
        for _ in range(2):
            oldest, its_hits = next(iter(keys.items()))
            if oldest != key and (not its_hits or its_hits[-1] <= now - expiry):
                del keys[oldest]
        return hits

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


_ingest_lock = threading.Lock()
_all_events: Quota  # set by `reset`
limiter = Limiter(
    key_func=lambda: str(current().caller.key_seq), storage_uri="moving-windows://", strategy="moving-window"
)


def configure(app: Flask) -> None:
    """Register the limiter with the application, but none of its request hooks.

    They count by endpoint, miss 404 and 405, and cost more than all other work of a small request; instead, `rest`
    is called for every request to the REST API.
    """
    app.extensions["limiter"] = {limiter}
    limiter.init_app(app)


def reset(ingest_per_minute: int) -> None:
    """Start with empty counters and this limit of events a minute for all alerts together."""
    global _all_events
    _all_events = Quota(ingest_per_minute)
    limiter.limiter.storage.reset()


def rest() -> None:
    """Count a request of the caller against its key's limit over all REST endpoints; `Refused` (429) beyond it."""
    caller = current().caller
    if not _count(REST[caller.plan], "key", caller.key_seq):
        raise Refused(429)


def custom_metrics() -> None:
    """Count a request of the caller against its account's metrics requests per hour; `Refused` (429) beyond it."""
    item = CUSTOM_METRICS[current().caller.plan]
    if not _count(item, "metrics", current().caller.account_seq):
        wait_s = _wait_s(item, "metrics", str(current().caller.account_seq))
        raise Refused(
            429, f"Too many requests: {item.amount} metrics requests an hour are this plan's limit.", wait_s
        )


def _count(item: Quota, kind: str, seq: int) -> bool:
    """Count a request that has a caller, and keep what the answer says of the quota; whether it is within it."""
    key = (kind, str(seq))
    allowed = limiter.limiter.hit(item, *key)
    reset_at, remaining = limiter.limiter.get_window_stats(item, *key)
    current().window = Window(item.amount, max(0, remaining), math.ceil(reset_at))
    return allowed


def _wait_s(item: Quota, *key: str) -> int:
    next_try, _ = limiter.limiter.get_window_stats(item, *key)
    return max(1, math.ceil(next_try - clock.now_ms() / 1000))


# --- alert webhooks (SPEC 8, CONTRACT 4) --------------------------------------------------------------------


def count_unknown_code(sender: str) -> None:
    """Count a code that leads nowhere against its sender; `Refused` (429) beyond the budget."""
    if not limiter.limiter.hit(UNKNOWN_CODES, "unknown-codes", sender):
        raise Refused(429, TOO_MANY_EVENTS)


def count_seldom_used_code(sender: str) -> None:
    """`Refused` (429) for a sender that tried too many unknown codes: it must not learn that a guess was right."""
    if not limiter.limiter.test(UNKNOWN_CODES, "unknown-codes", sender):
        raise Refused(429, TOO_MANY_EVENTS, owner_message="its sender asked for many unknown addresses")


def count_unknown_topic(sender: str) -> None:
    """Count a topic that is no device's against its sender; `Refused` (429) beyond the budget."""
    if not limiter.limiter.hit(UNKNOWN_TOPICS, "unknown-topics", sender):
        raise Refused(429, TOO_MANY_EVENTS)


def count_towards_flood(alert_seq: int, switched_on_at: int) -> bool:
    """Count any request to an active alert; whether its requests since it was switched on are a flood."""
    key = ("flood", str(alert_seq), str(switched_on_at))
    return not limiter.limiter.hit(Quota(FLOOD.amount - 1), *key)  # the request that makes it a flood


def event(alert_seq: int) -> None:
    """Count an event against its alert and against all alerts together; one that is refused (429) counts nowhere."""
    with _ingest_lock:
        within = limiter.limiter.test(ALERT_EVENTS, "alert", str(alert_seq))
        if not within:
            raise Refused(429, TOO_MANY_EVENTS, owner_message=f"more than {ALERT_EVENTS.amount} a minute")
        if not limiter.limiter.hit(_all_events, "events"):
            raise Refused(429, TOO_MANY_EVENTS, owner_message="too many for all alerts together")
        limiter.limiter.hit(ALERT_EVENTS, "alert", str(alert_seq))


# --- heartbeats (CONTRACT 10) -------------------------------------------------------------------------------


def ping(beat_seq: int) -> None:
    """Count a ping against its heartbeat; `Refused` (429) beyond the limit."""
    if not limiter.limiter.hit(PINGS, "ping", str(beat_seq)):
        raise Refused(429, TOO_MANY_EVENTS)


# --- buttons (CONTRACT 8) -----------------------------------------------------------------------------------


def button(sender: str) -> None:
    """Count a button that is shown or pressed, also an unknown one, against its sender; `Refused` (429) beyond it."""
    if not limiter.limiter.hit(BUTTONS, "button", sender):
        wait_s = _wait_s(BUTTONS, "button", sender)
        raise Refused(429, "Too many tries: wait a minute, then try again.", wait_s)


# --- signing in ---------------------------------------------------------------------------------------------


class Visitor(NamedTuple):
    """Who tries to sign in: to which password, from where, and with which known browser.

    A known browser has tries of its own, so that strangers cannot use up its owner's. After a change of password, all
    tries begin anew.
    """

    password: str  # `accounts.password_mark`
    sender: str
    known_browser: str | None

    @property
    def quotas(self) -> list[tuple[Quota, str, str]]:
        """Each quota that the visitor's wrong passwords count against, with its key."""
        if self.known_browser:
            return [(SIGN_IN_TRIES, "sign-in-browser", self.known_browser)]
        return [
            (SIGN_IN_TRIES, "sign-in", f"{self.sender} {self.password}"),
            (TRIES_OF_SENDER, "sign-in-sender", self.sender),
            (TRIES_OF_STRANGERS, "sign-in-password", self.password),
        ]

    @property
    def sign_ins(self) -> tuple[Quota, str, str]:
        """The quota that right passwords count against, with its key."""
        if self.known_browser:
            return SIGN_INS, "sign-ins-known", self.password
        return SIGN_INS, "sign-ins", self.sender


def check_sign_in(visitor: Visitor) -> None:
    """`Refused` (429) after too many wrong passwords, or more right ones than a person needs."""
    for item, *key in (*visitor.quotas, visitor.sign_ins):
        if not limiter.limiter.test(item, *key):
            raise Refused(429, "Too many tries: wait a quarter of an hour, then try again.", _wait_s(item, *key))


def count_sign_in(visitor: Visitor) -> None:
    """Count a right password: its hash took time that others waited for."""
    item, *key = visitor.sign_ins
    limiter.limiter.hit(item, *key)


def count_wrong_password(visitor: Visitor) -> None:
    """Count a wrong password once its hash was computed: that bounds how many addresses are kept."""
    for item, *key in visitor.quotas:
        limiter.limiter.hit(item, *key)


# --- what is used of the limits -----------------------------------------------------------------------------


def rest_used(plan: str, key_seq: int) -> int:
    """How many requests the key made within the last minute."""
    return _used(REST[plan], "key", str(key_seq))


def custom_metrics_used(plan: str, account_seq: int) -> int:
    """How many metrics requests the account made within the last hour."""
    return _used(CUSTOM_METRICS[plan], "metrics", str(account_seq))


def _used(item: Quota, *key: str) -> int:
    return item.amount - max(0, limiter.limiter.get_window_stats(item, *key).remaining)
