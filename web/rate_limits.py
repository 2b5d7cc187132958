"""Every rate limit, and what each request counts against.

The hits are in a storage of our own (`web.moving_windows`; with Redis, `web.shared_windows`). Flask-Limiter decides
where a request counts against one quota and the refusal says no time to wait. Elsewhere the storage decides, in one
call for all quotas of a request. Must not know handlers or SQL.
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
    """So many hits of a kind within a moving window of minutes; the count goes on when a plan changes the limit.

    A 429 says the `words` and the time to wait, or without words what alert webhooks say.
    """

    __slots__ = ("length_s", "words")

    def __init__(self, kind: str, amount: int, minutes: int = 1, words: str = "") -> None:
        super().__init__(amount, minutes, namespace=kind)
        self.length_s, self.words = self.get_expiry(), words

    def key_for(self, *identifiers: bytes | str | int | float) -> str:
        """The key of whose hits are counted; it does not depend on the limit."""
        return "/".join(map(str, (self.namespace, *identifiers)))

    def claim(self, who: str | int, amount: int = 1) -> Claim:
        """So many hits, for the limiter to count together with others."""
        return f"{self.namespace}/{who}", self.amount, self.length_s, amount


DEFAULT_LISTED = 50  # notifications on a page of the history
MAX_LISTED = 100
MAX_METRICS = 100  # in one request
FULL_KEYS = 5  # keys of an account that may make all their requests at the same time
MAX_NEW_KEYS = 100  # an hour
TOO_MANY_KEYS = (
    f"Too many new API keys: keys of an account can make {MAX_NEW_KEYS} an hour."
    " Pages and command line have no such limit."
)
TOO_MANY_PRESSES = "Too many attempts. Try again in a minute."
TOO_MANY_ATTEMPTS = "Too many attempts. Try again in 15 minutes."

REST = {name: Quota("key", plan.rest_per_minute) for name, plan in PLANS.items()}  # of a key
ALL_KEYS = {name: Quota("keys", FULL_KEYS * quota.amount) for name, quota in REST.items()}  # of an account
CUSTOM_METRICS = {name: Quota("metrics", plan.metrics_per_hour, 60) for name, plan in PLANS.items()}  # of an account
NEW_KEYS = Quota("new-keys", MAX_NEW_KEYS, 60, TOO_MANY_KEYS)  # that an account's keys may make
ALERT_EVENTS = Quota("alert", 60)
FLOOD = Quota("flood", 500)
UNKNOWN_CODES = Quota("unknown-codes", 60)  # short codes and pings that lead nowhere, asked for by one sender
UNKNOWN_TOPICS = Quota("unknown-topics", 60)  # topics that are no device's, asked for by one sender
PINGS = Quota("ping", 60)  # of a heartbeat
PINGS_OF_NONE = Quota("ping-of-none", 60)  # of an account, with slugs that lead to no heartbeat or to several
BUTTONS = Quota("button", 60, 1, TOO_MANY_PRESSES)  # shown to or pressed by one sender, also unknown ones
SIGN_IN_TRIES = Quota("sign-in", 10, 15)  # wrong passwords for an account from one sender, or from a known browser
TRIES_OF_SENDER = Quota("sign-in-sender", 30, 15)  # from one sender, whatever the address
TRIES_OF_STRANGERS = Quota("sign-in-password", 100, 15)  # for an account, from all senders
TOO_MANY_IN_AN_HOUR = "Too many attempts. Try again in an hour."
NEW_PASSWORDS = Quota("new-password", 5, 60, TOO_MANY_IN_AN_HOUR)  # asked for by one sender, or for one address
SIGN_INS = Quota("sign-ins", 30, 15)  # with the right password, from one sender or from an account's known browsers
PHONE_CODES = Quota("phone-code", 30, 15, TOO_MANY_ATTEMPTS)  # sent by one sender, also wrong ones
NEW_PHONE_CODES = Quota("new-phone-code", 30, 15, TOO_MANY_ATTEMPTS)  # made for one account

_all_events: Claim  # of one event, for all alerts together; set by `reset`
_events_of_account: Quota  # half of that: one account never uses it up for the others; likewise
_windows: MovingWindows  # the limiter's storage; set by `configure`
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
    _all_events = Quota("all-events", ingest_per_minute).claim("")
    _events_of_account = Quota("events", (ingest_per_minute + 1) // 2)
    _windows.reset()
    _windows.shared = SharedWindows(*redis).count if redis else None


def count(quota: Quota, who: str | int) -> None:
    """Count a hit of this sender, account or heartbeat; `Refused` (429) beyond the limit."""
    if quota.words:
        _count_together(quota.words, quota.claim(who))
    elif not limiter.limiter.hit(quota, str(who)):
        raise Refused(429, TOO_MANY_EVENTS)


def _count_together(words: str, *claims: Claim) -> None:
    """Count all of the claims, or none: then `Refused` (429) with these words and the time to wait."""
    (counted,) = _windows.count(claims)
    if counted.refused is not None:
        raise Refused(429, words, _wait_s(counted))


def rest() -> None:
    """Count a request to any REST endpoint against its key and its account; `Refused` (429) beyond either limit."""
    caller = current().caller
    of_account = ALL_KEYS[caller.plan]
    claims = REST[caller.plan].claim(caller.key_seq), of_account.claim(caller.account_seq)
    refused = _count_for_caller(*claims).refused
    if refused is not None:
        of_all = f"Too many requests: all API keys of an account together may make {of_account.amount:,} a minute."
        raise Refused(429, of_all if refused else None)


def custom_metrics() -> None:
    """Count a request of the caller against its account's metrics requests per hour; `Refused` (429) beyond it."""
    item = CUSTOM_METRICS[current().caller.plan]
    counted = _count_for_caller(item.claim(current().caller.account_seq))
    if counted.refused is not None:
        words = f"Too many requests: {item.amount} metrics requests an hour are this plan's limit."
        raise Refused(429, words, _wait_s(counted))


def _count_for_caller(*claims: Claim) -> Counted:
    """Count a request that has a caller. The answer says the first claim's limit and the least room of all."""
    (counted,) = _windows.count(claims)
    reset_at = math.ceil(clock.now_ms() / 1000 + counted.reset_in_s)
    current().window = Window(claims[0][1], counted.room, reset_at)
    return counted


def _wait_s(counted: Counted) -> int:
    return max(1, math.ceil(counted.reset_in_s))


def event(
    account_seq: int, alert_seq: int, switched_on_at: int | None, guesser: str | None
) -> tuple[bool, Refused | None]:
    """Count an event against its alert, all alerts of its account, and all together; a refused one (429) in none.

    Returns whether the alert is flooded, and the refusal. Every event to an active alert counts towards a flood,
    since it was `switched_on_at`; None for an inactive one. A `guesser`, the sender of an event to an alert that is
    seldom used, is refused if it tried too many unknown codes, and nothing is counted: it must not learn that a guess
    was right.
    """
    guessed = (UNKNOWN_CODES.claim(guesser, amount=0),) if guesser else ()
    of_account = _events_of_account.claim(account_seq)
    limits = (*guessed, ALERT_EVENTS.claim(alert_seq), of_account, _all_events)
    if switched_on_at is None:
        is_flood, (counted,) = False, _windows.count(limits)
    else:
        most = FLOOD.amount - 1  # the request that makes it a flood is not counted
        flood = FLOOD.key_for(alert_seq, switched_on_at), most, FLOOD.length_s, 1
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


def used(quota: Quota, *whos: int) -> int:
    """The hits of the busiest of these keys or accounts within the quota's window."""
    looks = ((quota.claim(who, amount=0),) for who in whos)
    return max((min(quota.amount, one.used) for one in _windows.count(*looks)), default=0)


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
        """Each quota that the visitor's wrong passwords count against, with the key to count under."""
        if self.known_browser:
            return [(SIGN_IN_TRIES, f"browser {self.known_browser}")]
        return [
            (SIGN_IN_TRIES, f"{self.sender} {self.password}"),
            (TRIES_OF_SENDER, self.sender),
            (TRIES_OF_STRANGERS, self.password),
        ]

    @property
    def sign_ins(self) -> tuple[Quota, str]:
        """The quota that right passwords count against, with the key to count under."""
        return SIGN_INS, f"known {self.password}" if self.known_browser else self.sender


def check_sign_in(visitor: Visitor, amount: int = 0) -> None:
    """`Refused` (429) after too many wrong passwords, or more right ones than a person needs.

    With 1, count the try before its password's hash is computed, as wrong and as right, so that tries at the same
    time, in whatever process, stay within the limits. `end_sign_in` must follow.
    """
    quotas = (*visitor.quotas, visitor.sign_ins)
    _count_together(TOO_MANY_ATTEMPTS, *(quota.claim(who, amount) for quota, who in quotas))


def end_sign_in(visitor: Visitor, is_right: bool | None) -> None:
    """Undo the provisional count as wrong or as right, or both if an error left that open."""
    of_wrong = () if is_right is False else visitor.quotas
    of_right = () if is_right else (visitor.sign_ins,)
    _windows.count(tuple(quota.claim(who, -1) for quota, who in (*of_wrong, *of_right)))
