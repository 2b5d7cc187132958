"""Notifications that repeat until they are acknowledged: how they begin, are pushed again, and end.

A repeat is claimed with a lease, as a retry is: so one of several processes makes it, and after a crash it is made
when the lease has ended. A repeat that fails is not retried: the next one is its retry. Must not know requests.
"""

from collections import defaultdict
from functools import partial
from typing import NamedTuple

from core import buttons, digest_text, fetching, long_poll
from core.attempts import LEASE_MS, is_expired, note_device, push_all
from core.batches import Batches
from core.devices import receivers
from models import ActiveDevice
from process import clock
from providers.base import Answer, Outcome
from store import alarms as stored
from store import copies, deliveries, held_notifications, notifications, snoozes
from store.alarms import Alarm, ClaimedAlarm, DueAlarm
from store.database import after_commit, transaction
from store.deliveries import Attempt
from wire.errors import Refused, existing
from wire.notification import LOW_PRIORITY, Content

MAX_WAITING = 20  # notifications of an account that are not acknowledged
MAX_REPEATS = 50  # of a notification
ALARMS_OF_AN_ACCOUNT = 5  # in one batch

batches = Batches("repeat", "A batch of repeats failed")


# --- beginning and ending -----------------------------------------------------------------------------------


def check_room(account_seq: int, content: Content) -> None:
    """`Refused` (429) if the account has as many notifications waiting to be acknowledged as it may have."""
    if within_room(account_seq, content) is not content:
        raise Refused(429, f"{MAX_WAITING} notifications are not acknowledged yet: acknowledge or delete one first.")


def within_room(account_seq: int, content: Content) -> Content:
    """The content, which does not repeat if too many of the account's notifications do already."""
    has_room = not content.acknowledge or stored.count_waiting(account_seq, content.tag) < MAX_WAITING
    return content if has_room else content._replace(acknowledge=())


def acknowledge(account_seq: int, notification_seq: int, device_seq: int | None, now: int) -> None:
    """Note that the account's owner has seen it, on this device or (None) elsewhere, and end its repeats and retries.

    It counts for all who have it. The first time is kept; the background threads push "Acknowledged" to the other
    devices. Call in `copies.writing()`.
    """
    for seq, owner_seq in copies.group(seqs=[notification_seq]):
        by = None if owner_seq == account_seq else account_seq
        if stored.acknowledge(account=owner_seq, seq=seq, device=device_seq, by=by, now=now):
            end_pushes(owner_seq, seq, "It was acknowledged before this device had it.", now)
            after_commit(batches.due.set)
            after_commit(long_poll.note_change)


def end_pushes(account_seq: int, seq: int, why: str, now: int) -> None:
    """Stop pushing a notification that is done with, even if it is held after a snooze; call inside `transaction()`.

    It may be in a digest. What was never pushed, because it is held or to be sent later, still is, once.
    """
    digest_text.leave_pending(account_seq, [seq], why, now)
    deliveries.end(seqs=[seq], error=why, now=now)
    snoozes.cancel(seq)
    if held_notifications.leave_snoozed(seq) or notifications.one(seq).status == "pending":
        notifications.settle(seq)


def acknowledge_notification(account_seq: int, notification_id: str, now: int, own_key: int | None = None) -> None:
    """Acknowledge a notification, as its owner or a program asks; nothing happens the second time.

    `Refused` (404) when the account has none with that id, or `own_key` did not send it.
    """
    with copies.writing(account_seq, notifications.find_seqs(account_seq, [notification_id], own_key)):
        seq = existing(notifications.find_seq(account_seq, notification_id, own_key))
        stored.add_silent(now, [one.seq for one in copies.group(seqs=[seq])])
        acknowledge(account_seq, seq, None, now)


def acknowledge_several(account_seq: int, notification_ids: list[str], now: int) -> int:
    """Acknowledge the notifications in this list that still wait for it; returns their number."""
    with copies.writing(account_seq, notifications.find_seqs(account_seq, notification_ids)):
        found = [(seq, stored.find(seq)) for seq in notifications.find_seqs(account_seq, notification_ids)]
        waiting = [seq for seq, alarm in found if alarm and alarm.state in ("waiting", "expired")]
        for seq in waiting:
            acknowledge(account_seq, seq, None, now)
    return len(waiting)


# --- pushing ------------------------------------------------------------------------------------------------


class _Turn(NamedTuple):
    """An alarm that was claimed: when its push was due, when its lease ends, and the attempts."""

    alarm: ClaimedAlarm
    due_at: int
    lease: int
    attempts: list[Attempt]
    later: list[ActiveDevice]  # the devices that fetch, or get mails: to them the repeat is another message

    @property
    def seq(self) -> int:
        """That of the notification."""
        return self.alarm.notification.seq

    @property
    def is_repeat(self) -> bool:
        """Whether the notification itself is pushed, and not "Acknowledged"."""
        return self.alarm.state == "waiting"


def repeat_due(now: int) -> None:
    """Push notifications that are not acknowledged again, and "Acknowledged" for the others, once."""
    found = defaultdict[int, list[DueAlarm]](list)
    for alarm in stored.due(now):
        if alarm.account_seq not in batches.busy:
            found[alarm.account_seq].append(alarm)
    for account_seq, alarms in list(found.items())[: batches.room]:
        batch = alarms[:ALARMS_OF_AN_ACCOUNT]
        batches.start(account_seq, partial(_push_due, account_seq, batch), len(alarms) > len(batch))


def _push_due(account_seq: int, alarms: list[DueAlarm]) -> None:
    turns = _claimed(account_seq, alarms)
    answers = iter(push_all([attempt for turn in turns for attempt in turn.attempts]))
    answered = [(turn, [(attempt, next(answers)) for attempt in turn.attempts]) for turn in turns]
    with transaction(account_seq):
        now = clock.now_ms()
        for turn, outcomes in answered:
            _note(turn, outcomes, now)


def _claimed(account_seq: int, alarms: list[DueAlarm]) -> list[_Turn]:
    """The alarms that this process may push now; alarms whose time is over expire instead."""
    with transaction(account_seq):
        now = clock.now_ms()
        lease = now + LEASE_MS
        turns = [_turn(alarm, due_at, lease, now) for alarm, due_at in stored.claim(alarms, lease)]
        over = [turn.seq for turn in turns if _is_over(turn, now)]
        stored.end("expired", over)
    return [turn for turn in turns if turn.seq not in over]


def _turn(alarm: ClaimedAlarm, due_at: int, lease: int, now: int) -> _Turn:
    notification, is_repeat = alarm.notification, alarm.state == "waiting"
    devices = _awake(alarm, now)
    if not is_repeat:
        body = acknowledged_on(alarm.device, alarm.by)
        seen = notification.content._replace(body=body, priority=LOW_PRIORITY, actions=(), acknowledge=())
        notification = notification._replace(content=seen)
        shown_on = {*deliveries.devices_with(notification.seq)} - {alarm.device_seq}
        devices = [device for device in devices if device.seq in shown_on]
    buttons.add(notification, devices, now)  # a device may be new, or got the notification in a digest
    pushed = fetching.pushed_to(devices)
    attempts = [Attempt(alarm.account_seq, alarm.email, notification, device, due_at, 0) for device in pushed]
    return _Turn(alarm, due_at, lease, attempts, [device for device in devices if device not in pushed])


def _awake(alarm: ClaimedAlarm, now: int) -> list[ActiveDevice]:
    """The devices to push to now: without fallbacks, those in quiet hours, and those that it was kept from before."""
    found = receivers(alarm.account_seq, alarm.notification.content.priority, now).devices
    left_out = deliveries.quiet_on(seq=alarm.notification.seq)
    return [device for device in found if not device.after_s and device.seq not in left_out]


def lasts_s(content: Content) -> int:
    """The most seconds for which a notification repeats."""
    every_s, for_s = content.acknowledge
    return min(for_s, MAX_REPEATS * every_s)


def stops_at(alarm: Alarm, content: Content, now: int) -> int:
    """When a repeating notification stops if nobody acknowledges it, in ms, to within one interval."""
    last_at = now + (MAX_REPEATS - alarm.repeats) * content.acknowledge[0] * 1000
    return min(at for at in (last_at, alarm.ends_at, content.expires_at) if at is not None)


def acknowledged_on(device: str | None, by: str | None) -> str:
    """The sentence for the other devices: who acknowledged it, if that was another account, and on which device."""
    return f"Acknowledged{f' by {by}' if by else ''}{f' on {device}' if device else ''}."


def _is_over(turn: _Turn, now: int) -> bool:
    """Whether it is too late for this push: for a repeat also when the service was away until after the end."""
    if is_expired(turn.alarm.notification.content, now):
        return True
    return turn.is_repeat and max(turn.due_at, now - LEASE_MS) > turn.alarm.ends_at


def _note(turn: _Turn, outcomes: list[tuple[Attempt, Answer]], now: int) -> None:
    """Note the outcomes of the pushes, and when the next is due; call inside `transaction()`."""
    tried = [(attempt.device, answer) for attempt, answer in outcomes if answer.was_tried]
    for device, answer in tried:
        note_device(device, answer, now)
    if not turn.is_repeat:
        stored.note_done(turn.seq, turn.lease)
        return
    accepted = [device for device, answer in tried if answer.outcome is Outcome.DELIVERED]
    for device in accepted:
        deliveries.accept(device.seq, now, turn.seq)
    if accepted:
        notifications.settle_all([turn.seq])
    alarm = turn.alarm
    fetching.deliver_again(alarm.account_seq, turn.seq, turn.later, alarm.notification.content.expires_at, now)
    is_made = bool(tried or turn.later)
    stored.note_repeat(seq=turn.seq, pushed=int(is_made), lease=turn.lease, next_at=_next_at(turn, now), now=now)
    if turn.alarm.repeats + is_made >= MAX_REPEATS:
        stored.end("expired", [turn.seq])


def _next_at(turn: _Turn, now: int) -> int:
    """When the next repeat is due, or the time at which it ends."""
    content = turn.alarm.notification.content
    every_ms = content.acknowledge[0] * 1000
    next_at = turn.due_at + every_ms
    if next_at <= now:
        next_at = now + every_ms
    ends_at = turn.alarm.ends_at + 1
    return min(next_at, ends_at if content.expires_at is None else min(ends_at, content.expires_at))
