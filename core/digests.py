"""Releasing held notifications: one as itself, several as a digest.

Each round decides again which are held. One transaction, which decides once more, releases all that an account gets
now and makes them due; then they are pushed and retried like any notification. Must not know requests.
"""

from collections import defaultdict
from collections.abc import Callable

from core import holding, local_time, recording
from core.devices import chosen, receivers
from core.digest_text import MAX_LINES, digest_of, given_priority
from core.holding import Holds
from core.pieces import ROWS, for_each_account, in_pieces
from process import clock
from process.faults import log_fault
from store import alarms, deliveries, held_notifications, notifications, scheduled
from store import mutes as stored_mutes
from store.database import transaction
from store.held_notifications import HeldGroup, HeldOne
from store.mutes import Mute
from wire.notification import MAX_HOPS

MAX_RELEASED = 100_000  # of an account at once: more would keep writers waiting; the rest is the next digest


def release_due(now: int) -> None:
    """Release the notifications that are no longer held, all of an account together."""
    held = defaultdict[int, list[HeldGroup]](list)
    for group in held_notifications.groups():
        held[group.account_seq].append(group)
    for account_seq, groups in held.items():
        try:
            if _free(groups, now):
                _release(account_seq, _free)
        except Exception as error:  # the other accounts must not wait for this one
            log_fault("An account's held notifications could not be released", error)


def _free(groups: list[HeldGroup], now: int) -> list[HeldGroup]:
    """Those of an account's groups that nothing holds at `now`."""
    mutes = mutes_of(groups)
    return [one for one in groups if not holding.is_held(one, one.priority, mutes, one.first_held_at, now)]


def release_now(account_seq: int) -> int:
    """Release all that is held for an account, as its owner asks; returns how many notifications."""
    return _release(account_seq, lambda groups, now: groups)


def end_expired(now: int) -> bool:
    """Fail what expired while it was held; returns whether more is left."""
    return in_pieces(
        lambda: for_each_account(held_notifications.expired(now, ROWS), lambda account_seq, seqs: _end(seqs, now))
    )


def _end(seqs: list[int], now: int) -> None:
    """Fail held notifications that have expired; call inside `transaction()`."""
    for seq in seqs:
        notifications.release("failed", now, seq)
    held_notifications.remove(seqs)
    alarms.end("expired", seqs)


def mutes_of(groups: list[HeldGroup]) -> list[Mute]:
    """The mutes of the account whose notifications these are."""
    return stored_mutes.of_account(groups[0].account_seq) if groups and groups[0].has_mutes else []


def releases(held: list[HeldGroup], now: int) -> list[int]:
    """The times (ms, in order, each once) at which an account's notifications will be released, as things stand."""
    times, ends, mutes = set[int](), defaultdict[Holds, set[int]](set), mutes_of(held)
    for group in held:
        frequency, holds = holding.what_holds(group, group.priority, mutes)
        ends[holds].add(local_time.collected_at(frequency, group.first_held_at, now))
    for holds, collected in ends.items():
        held_until = 0
        for end in sorted(collected):
            held_until = held_until if end < held_until else holds.until(end)[0]
            times.add(held_until)
    return sorted(times)


def _release(account_seq: int, wanted: Callable[[list[HeldGroup], int], list[HeldGroup]]) -> int:
    """Release the groups that `wanted` chooses of all that the account has then."""
    with transaction(account_seq):
        now = clock.now_ms()  # read inside, so that streams of other processes do not pass it over
        groups = wanted(held_notifications.of_account(account_seq), now)
        held = held_notifications.oldest(account_seq, groups, MAX_RELEASED)
        over = [one.notification_seq for one in held if one.expires_at is not None and one.expires_at <= now]
        _end(over, now)
        left = [one for one in held if one.notification_seq not in over] if over else held
        hops = held_notifications.hops_of([one.notification_seq for one in left])
        for is_looped in (False, True):  # a looped one must not keep the others from webhooks
            if some := [one for one in left if (hops.get(one.notification_seq, 0) >= MAX_HOPS) == is_looped]:
                _begin(account_seq, some, max(hops.get(one.notification_seq, 0) for one in some) or None, now)
    return len(left)


def _begin(account_seq: int, held: list[HeldOne], hops: int | None, now: int) -> None:
    """Begin the delivery of one held notification, or of several as a digest; call inside `transaction()`."""
    seqs, highest = [one.notification_seq for one in held], max(one.priority for one in held)
    priority = given_priority(highest)
    found = receivers(account_seq, priority, now)
    deliveries.forget_snoozed(seqs)
    if len(seqs) == 1:
        (pushed,) = seqs
        found = chosen(found, scheduled.chosen_devices(pushed))
        notifications.release(recording.first_status(found, priority), now, pushed)
        held_notifications.remove(seqs)
    else:
        content = digest_of(seqs[:MAX_LINES], len(seqs), highest)._replace(hops=hops)
        pushed = notifications.add_digest(account_seq, content, recording.first_status(found, priority), now)
        held_notifications.put_in_digest(seqs, pushed)
        alarms.begin(seqs=seqs, now=now)
    recording.begin(notifications.one(pushed), found, now, now)
