"""Every number of SPEC 8, and what each request counts against.

Flask-Limiter holds the counts, in a storage of our own (`web.moving_windows`), which is asked once for each request.
With Redis they are there (`web.shared_windows`).
Must not know handlers or SQL.
"""

import math
from typing import NamedTuple, cast

from flask import Flask
from flask_limiter import Limiter
from limits import RateLimitItemPerMinute

from core.plans import PLANS
from process import clock
from process.redis_client import RedisClient
from web.context import Window, current
from web.moving_windows import Claim, Counted, MovingWindows
from web.shared_windows import SharedWindows
from wire.errors import TOO_MANY_EVENTS, Refused


class Quota(RateLimitItemPerMinute):
    """A limit within a moving window of minutes; the count goes on when a plan changes the limit."""

    __slots__ = ("length_s",)

    def __init__(self, amount: int, minutes: int = 1) -> None:
        super().__init__(amount, minutes)
        self.length_s = self.get_expiry()

    def key_for(self, *identifiers: bytes | str | int | float) -> str:
        """The key of a count, for Flask-Limiter; it does not depend on the limit."""
        return "/".join(map(str, identifiers))


FULL_KEYS = 5  # keys of an account that may make all their requests at the same time
REST = {name: Quota(plan.rest_per_minute) for name, plan in PLANS.items()}  # of a key
ALL_KEYS = {name: Quota(FULL_KEYS * quota.amount) for name, quota in REST.items()}  # of an account
CUSTOM_METRICS = {name: Quota(plan.metrics_per_hour, 60) for name, plan in PLANS.items()}  # of an account
DEFAULT_LISTED = 50  # notifications on a page of the history
MAX_LISTED = 100
MAX_METRICS = 100  # in one request
NEW_KEYS = Quota(100, 60)  # that an account's keys may make
ALERT_EVENTS = Quota(60)
FLOOD = Quota(500)
UNKNOWN_CODES = Quota(60)  # asked for by one sender
UNKNOWN_TOPICS = Quota(60)  # likewise
PINGS = Quota(60)  # of a heartbeat; of an account, those that lead to none
BUTTONS = Quota(60)  # shown to or pressed by one sender
SIGN_IN_TRIES = Quota(10, 15)  # wrong passwords for an account from one sender, or from a known browser
TRIES_OF_SENDER = Quota(30, 15)  # from one sender, whatever the address
TRIES_OF_STRANGERS = Quota(100, 15)  # for an account, from all senders
PHONE_CODES = Quota(30, 15)  # sent by one sender, and made for one account
SIGN_INS = Quota(30, 15)  # with the right password, from one sender or from an account's known browsers
TOO_MANY_ATTEMPTS = "Too many attempts. Try again in 15 minutes."


_all_events: Claim  # of one event, for all alerts together; set by `reset`
_events_of_account: Quota  # half of that: one account never uses it up for the others; likewise
_windows: MovingWindows  # where the hits are counted; set by `configure`
limiter = Limiter(
    key_func=lambda: str(current().caller.key_seq), storage_uri="moving-windows://", strategy="moving-window"
)


def configure(app: Flask) -> None:
    """Register the limiter with the application, but none of its request hooks.

    They count by endpoint, miss 404 and 405, and cost more than all other work of a small request; instead, `rest`
    is called for every request to the REST API.
    """
    global _windows
    app.extensions["limiter"] = {limiter}
    limiter.init_app(app)
    _windows = cast(MovingWindows, limiter.limiter.storage)


def reset(ingest_per_minute: int, redis: tuple[RedisClient, str] | None = None) -> None:
    """Count anew, with this limit of events a minute for all alerts together; with `redis`, go on with all others.

    The second part of `redis` is a secret that other processes on the same database have, too.
    """
    global _all_events, _events_of_account
    _all_events, _events_of_account = _claim(Quota(ingest_per_minute), "events"), Quota((ingest_per_minute + 1) // 2)
    _windows.reset()
    _windows.shared = SharedWindows(*redis) if redis else None


def _claim(item: Quota, key: str, amount: int = 1) -> Claim:
    return tuple.__new__(Claim, (key, item.amount, item.length_s, amount))  # `Claim(…)` takes twice as long


def _count(*claims: Claim) -> Counted:
    """Count all of the claims, or none."""
    return _windows.count(claims)[0]


def rest() -> None:
    """Count a request to any REST endpoint against its key and its account; `Refused` (429) beyond either limit."""
    caller = current().caller
    of_account = _claim(ALL_KEYS[caller.plan], f"keys/{caller.account_seq}")
    refused = _count_for_caller(_claim(REST[caller.plan], f"key/{caller.key_seq}"), of_account).refused
    if refused is not None:
        of_all = f"Too many requests: all API keys of an account together may make {of_account.limit:,} a minute."
        raise Refused(429, of_all if refused else None)


def custom_metrics() -> None:
    """Count a request of the caller against its account's metrics requests per hour; `Refused` (429) beyond it."""
    item = CUSTOM_METRICS[current().caller.plan]
    counted = _count_for_caller(_claim(item, f"metrics/{current().caller.account_seq}"))
    if counted.refused is not None:
        words = f"Too many requests: {item.amount} metrics requests an hour are this plan's limit."
        raise Refused(429, words, _wait_s(counted))


def new_key() -> None:
    """Count a key that the caller makes against its account; `Refused` (429) beyond the limit."""
    counted = _count(_claim(NEW_KEYS, f"new-keys/{current().caller.account_seq}"))
    if counted.refused is not None:
        words = f"Too many new API keys: keys of an account can make {NEW_KEYS.amount} an hour."
        raise Refused(429, f"{words} Pages and command line have no such limit.", _wait_s(counted))


def _count_for_caller(*claims: Claim) -> Counted:
    """Count a request that has a caller. The answer says the first claim's limit and the least room of all."""
    (counted,) = _windows.count(claims)
    reset_at = math.ceil(clock.now_ms() / 1000 + counted.reset_in_s)
    current().window = tuple.__new__(Window, (claims[0].limit, counted.room, reset_at))
    return counted


def _wait_s(counted: Counted) -> int:
    return max(1, math.ceil(counted.reset_in_s))


# --- alert webhooks (SPEC 8, CONTRACT 4) --------------------------------------------------------------------


def count_unknown_code(sender: str) -> None:
    """Count a code that leads nowhere against its sender; `Refused` (429) beyond the budget."""
    if _count(_claim(UNKNOWN_CODES, f"unknown-codes/{sender}")).refused is not None:
        raise Refused(429, TOO_MANY_EVENTS)


def count_unknown_topic(sender: str) -> None:
    """Count a topic that is no device's against its sender; `Refused` (429) beyond the budget."""
    if _count(_claim(UNKNOWN_TOPICS, f"unknown-topics/{sender}")).refused is not None:
        raise Refused(429, TOO_MANY_EVENTS)


def event(
    account_seq: int, alert_seq: int, switched_on_at: int | None, guesser: str | None
) -> tuple[bool, Refused | None]:
    """Count an event against its alert, all alerts of its account, and all together; a refused one (429) in none.

    Returns whether the alert is flooded, and the refusal. Every event to an active alert counts towards a flood,
    since it was `switched_on_at`; None for an inactive one. A `guesser`, the sender of an event to an alert that is
    seldom used, is refused if it tried too many unknown codes, and nothing is counted: it must not learn that a guess
    was right.
    """
    guessed = (_claim(UNKNOWN_CODES, f"unknown-codes/{guesser}", amount=0),) if guesser else ()
    of_account = _claim(_events_of_account, f"events/{account_seq}")
    limits = (*guessed, _claim(ALERT_EVENTS, f"alert/{alert_seq}"), of_account, _all_events)
    if switched_on_at is None:
        is_flood, counted = False, _count(*limits)
    else:
        most = FLOOD.amount - 1  # the request that makes it a flood is not counted
        flood = Claim(f"flood/{alert_seq}/{switched_on_at}", most, FLOOD.length_s)
        towards, counted = _windows.count((*guessed, flood), limits)
        is_flood = towards.refused == len(guessed)
    if counted.refused is None:
        return is_flood, None
    words = (
        "its sender asked for many unknown addresses",
        f"more than {ALERT_EVENTS.amount} a minute",
        "too many for all alerts of this account",
        "too many for all alerts together",
    )
    return is_flood, Refused(429, TOO_MANY_EVENTS, owner_message=words[counted.refused - len(limits)])


# --- heartbeats (CONTRACT 10) -------------------------------------------------------------------------------


def ping(beat_seq: int) -> None:
    """Count a ping against its heartbeat; `Refused` (429) beyond the limit."""
    _count_ping(f"ping/{beat_seq}")


def ping_of_none(account_seq: int) -> None:
    """Count a ping with a slug that leads to no heartbeat, or to several, against its account."""
    _count_ping(f"ping-of-none/{account_seq}")


def _count_ping(key: str) -> None:
    if _count(_claim(PINGS, key)).refused is not None:
        raise Refused(429, TOO_MANY_EVENTS)


# --- buttons (CONTRACT 8) -----------------------------------------------------------------------------------


def button(sender: str) -> None:
    """Count a button that is shown or pressed, also an unknown one, against its sender; `Refused` (429) beyond it."""
    counted = _count(_claim(BUTTONS, f"button/{sender}"))
    if counted.refused is not None:
        raise Refused(429, "Too many attempts. Try again in a minute.", _wait_s(counted))


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
    def quotas(self) -> list[tuple[Quota, str]]:
        """Each quota that the visitor's wrong passwords count against, with its key."""
        if self.known_browser:
            return [(SIGN_IN_TRIES, f"sign-in-browser/{self.known_browser}")]
        return [
            (SIGN_IN_TRIES, f"sign-in/{self.sender} {self.password}"),
            (TRIES_OF_SENDER, f"sign-in-sender/{self.sender}"),
            (TRIES_OF_STRANGERS, f"sign-in-password/{self.password}"),
        ]

    @property
    def sign_ins(self) -> tuple[Quota, str]:
        """The quota that right passwords count against, with its key."""
        if self.known_browser:
            return SIGN_INS, f"sign-ins-known/{self.password}"
        return SIGN_INS, f"sign-ins/{self.sender}"


def check_sign_in(visitor: Visitor) -> None:
    """`Refused` (429) after too many wrong passwords, or more right ones than a person needs."""
    _try_sign_in(visitor, 0)


def begin_sign_in(visitor: Visitor) -> None:
    """As `check_sign_in`, and count the try before its password's hash is computed, as wrong and as right.

    So no more tries than there are run at the same time, in whatever process. `end_sign_in` must follow.
    """
    _try_sign_in(visitor, 1)


def _try_sign_in(visitor: Visitor, amount: int) -> None:
    counted = _count(*(_claim(item, key, amount) for item, key in (*visitor.quotas, visitor.sign_ins)))
    if counted.refused is not None:
        raise Refused(429, TOO_MANY_ATTEMPTS, _wait_s(counted))


def end_sign_in(visitor: Visitor, is_right: bool | None) -> None:
    """Take back what the password turned out not to be, wrong or right; or both, if that could not be found out."""
    taken_back = [] if is_right is False else visitor.quotas
    if not is_right:
        taken_back = [*taken_back, visitor.sign_ins]
    _count(*(_claim(item, key, -1) for item, key in taken_back))


def phone_code(sender: str) -> None:
    """Count a code to sign in with, also a wrong one, against its sender; `Refused` (429) beyond the limit."""
    _count_code(f"phone-code/{sender}")


def new_phone_code(account_seq: int) -> None:
    """Count a new code against its account; `Refused` (429) beyond the limit."""
    _count_code(f"new-phone-code/{account_seq}")


def _count_code(key: str) -> None:
    counted = _count(_claim(PHONE_CODES, key))
    if counted.refused is not None:
        raise Refused(429, TOO_MANY_ATTEMPTS, _wait_s(counted))


# --- what is used of the limits -----------------------------------------------------------------------------


def rest_used(plan: str, *key_seqs: int) -> int:
    """How many requests that one of the keys made within the last minute which made most."""
    looks = ((_claim(REST[plan], f"key/{seq}", amount=0),) for seq in key_seqs)
    return max((min(REST[plan].amount, one.used) for one in _windows.count(*looks)), default=0)


def custom_metrics_used(plan: str, account_seq: int) -> int:
    """How many metrics requests the account made within the last hour."""
    item = CUSTOM_METRICS[plan]
    return min(item.amount, _count(_claim(item, f"metrics/{account_seq}", amount=0)).used)
