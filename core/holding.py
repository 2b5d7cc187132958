"""Until when a notification is held: by quiet hours, by the frequency of its alert, by mutes.

The same rule serves new notifications, held ones and the pages (docs/quiet.md). `deliverAt` is the rule of
core/scheduled.py. Pure: whether something holds is decided again each time, and no end is stored.
"""

from collections.abc import Collection
from typing import NamedTuple

from core import local_time
from store.followers import Follower
from store.heartbeats import Beat
from store.held_notifications import ALERT, HeldGroup
from store.metric_rules import Rule
from store.mutes import ALL, HOLD, Mute
from store.senders import AlertSender, Sender, SnoozedSender, Subject
from wire.notification import DEFAULT_PRIORITY, MAX_PRIORITY, MIN_PRIORITY

AT_ONCE = "instant"  # the frequency that collects nothing
# What quiet hours and frequencies hold; others only mutes do.
HELD_SENDERS = (AlertSender, HeldGroup, Beat, Rule, Follower, SnoozedSender)
PUSH, KEEP = "push", "keep"  # beside HOLD: what becomes of a notification; KEEP: it is only for the history
MAX_ENDS = 100  # of windows and mutes in turn: they may follow each other without a gap

Mutes = Collection[Mute]


class Holds(NamedTuple):
    """What holds a notification, beside the frequency that collects it."""

    quiet_hours: str | None
    mutes: tuple[Mute, ...]
    time_zone: str

    def are_in_force(self, at: int) -> bool:
        """Whether any of them holds at this time (ms)."""
        is_quiet = local_time.is_quiet(self.quiet_hours, self.time_zone, at)
        return is_quiet or any(ends_at(mute, at) is not None for mute in self.mutes)

    def ends(self, at: int) -> tuple[int, str] | None:
        """When the first of those that hold at this time (ms) ends, and its name; None if none does."""
        if self.quiet_hours and local_time.is_quiet(self.quiet_hours, self.time_zone, at):
            return local_time.next_change(self.quiet_hours, self.time_zone, at), "quiet hours"
        return next(((end, "muted") for mute in self.mutes if (end := ends_at(mute, at)) is not None), None)

    def until(self, at: int) -> tuple[int, str]:
        """The first time from `at` on at which nothing holds, and the name of what held last; "" if nothing did."""
        why = ""
        for _ in range(MAX_ENDS):
            end = self.ends(at)
            if end is None:
                break
            at, why = end
        return at, why


def ends_at(mute: Mute, at: int) -> int | None:
    """When a mute that is in force at this time (ms) ends; None if it is not in force.

    A clock that was set back a little ends none, and one that was set back far ends it, unless it comes again.
    """
    if mute.until is not None:
        return mute.until if abs(at - mute.created_at) < mute.until - mute.created_at else None
    begin, end = window(mute, at)
    return end if begin <= at else None


def window(mute: Mute, at: int) -> tuple[int, int]:
    """When a mute that is in force, or comes again, begins and ends (ms); of those to come the next at that time."""
    if mute.cron is None or mute.for_s is None:
        return mute.created_at, mute.until or 0
    begin = local_time.next_run(mute.cron, mute.time_zone, at - mute.for_s * 1000)
    return begin, begin + mute.for_s * 1000


def is_maintained(subject: Subject, mutes: Mutes, at: int) -> bool:
    """Whether a heartbeat or a rule is within a mute that comes again."""
    return any(mute.cron and _names(mute, subject) and ends_at(mute, at) is not None for mute in mutes)


def fate(sender: Sender, priority: int | None, mutes: Mutes, now: int) -> str:
    """PUSH, HOLD or KEEP: what becomes of a notification of this priority (None: the default) that comes now.

    A mute that keeps it to the history is stronger than quiet hours, and weaker than a mute that holds.
    """
    if not mutes and not (isinstance(sender, HELD_SENDERS) and (sender.quiet_hours or sender.frequency != AT_ONCE)):
        return PUSH  # as with most
    muting = [mute for mute in _that_name(sender.subject, priority, mutes) if ends_at(mute, now) is not None]
    if any(mute.mode == HOLD for mute in muting):
        return HOLD
    if muting:
        return KEEP
    return HOLD if is_held(sender, priority, (), now, now) else PUSH


def is_held(sender: Sender | HeldGroup, priority: int | None, mutes: Mutes, first_held_at: int, now: int) -> bool:
    """Whether it is held at `now`, if the first notification of its digest came at `first_held_at`."""
    frequency, holds = what_holds(sender, priority, mutes)
    return local_time.collected_at(frequency, first_held_at, now) > now or holds.are_in_force(now)


def what_holds(sender: Sender | HeldGroup, priority: int | None, mutes: Mutes) -> tuple[str, Holds]:
    """The frequency, and what else holds a notification of this priority (None: the default).

    Quiet hours and frequency hold the priorities normal and low; only quiet hours hold high, and urgent unless it may
    pass. The lowest priority is not pushed, so it is not held.
    """
    number = priority or DEFAULT_PRIORITY
    holding = tuple(mute for mute in _that_name(sender.subject, priority, mutes) if mute.mode == HOLD)
    if not isinstance(sender, HELD_SENDERS):
        return AT_ONCE, Holds(None, holding, sender.time_zone)
    passes = number == MIN_PRIORITY or (number == MAX_PRIORITY and sender.urgent_passes_quiet_hours)
    is_collected = MIN_PRIORITY < number <= DEFAULT_PRIORITY
    quiet_hours = None if passes else sender.quiet_hours
    return sender.frequency if is_collected else AT_ONCE, Holds(quiet_hours, holding, sender.time_zone)


def _that_name(subject: Subject, priority: int | None, mutes: Mutes) -> list[Mute]:
    """Those of the mutes that name the sender, without those that a notification of this priority passes."""
    if priority == MIN_PRIORITY:
        return []
    return [mute for mute in mutes if _names(mute, subject) and not (priority == MAX_PRIORITY and mute.urgent_passes)]


def _names(mute: Mute, subject: Subject) -> bool:
    return mute.what == ALL or mute.subject == subject


def held_until(
    sender: Sender, priority: int | None, mutes: Mutes, held: Collection[HeldGroup], now: int
) -> tuple[int, str]:
    """When a notification that comes now and is held will be released as things stand, and the reason until then.

    `held` are the account's: it joins those of its sender and priority.
    """
    frequency, holds = what_holds(sender, priority, mutes)
    place = (ALERT, sender.subject[1], max(priority or DEFAULT_PRIORITY, DEFAULT_PRIORITY))
    joined = (one.first_held_at for one in held if (one.kind, one.sender_seq, one.priority) == place)
    end = local_time.collected_at(frequency, next(joined, now), now)
    until, why = holds.until(end)
    return until, why or "digest"
