"""Whether a notification of an alert, a heartbeat or a rule is held: in quiet hours, for a digest, or both.

The same rule serves new events, held ones and the pages (docs/alerts.md). A plain send never is; `deliverAt` is the
rule of core/scheduled.py. Pure.
"""

from core import local_time
from store.heartbeats import Beat
from store.held_notifications import HeldOfAlert
from store.metric_rules import Rule
from store.senders import AlertSender
from wire.notification import DEFAULT_PRIORITY, MAX_PRIORITY, MIN_PRIORITY

AT_ONCE = "instant"  # the frequency that collects nothing

Holder = AlertSender | HeldOfAlert | Beat | Rule  # the settings of an alert, a heartbeat or a rule, and its account


def what_holds(alert: Holder, priority: int | None) -> tuple[str, str | None]:
    """The frequency and the quiet hours that hold a notification of this priority (None: the default).

    Quiet hours and frequency hold the priorities normal and low; only quiet hours hold high, and urgent unless it may
    pass. The lowest priority is not pushed, so it is not held.
    """
    number = priority or DEFAULT_PRIORITY
    passes = number == MIN_PRIORITY or (number == MAX_PRIORITY and alert.urgent_passes_quiet_hours)
    is_collected = MIN_PRIORITY < number <= DEFAULT_PRIORITY
    return alert.frequency if is_collected else AT_ONCE, None if passes else alert.quiet_hours


def held_until(alert: Holder, priority: int | None, now: int) -> tuple[int, str]:
    """When a notification that is held now will be released by the present settings, and the reason until then."""
    frequency, quiet_hours = what_holds(alert, priority)
    at = local_time.collected_at(frequency, now, now)
    if quiet_hours and local_time.is_quiet(quiet_hours, alert.time_zone, at):
        return local_time.next_change(quiet_hours, alert.time_zone, at), "quiet hours"
    return at, "digest"


def is_held(alert: Holder, priority: int | None, first_held_at: int, now: int) -> bool:
    """Whether it is held at `now`, if the first notification of its digest came at `first_held_at`."""
    if alert.frequency == AT_ONCE and not alert.quiet_hours:  # as with most alerts
        return False
    frequency, quiet_hours = what_holds(alert, priority)
    is_collecting = local_time.is_collecting(frequency, first_held_at, now)
    return is_collecting or local_time.is_quiet(quiet_hours, alert.time_zone, now)
