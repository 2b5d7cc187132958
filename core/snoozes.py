"""Snoozes: a notification is pushed again at a time that its owner chose, unless it is done with by then.

Then it is delivered as if it came at that time: mutes and quiet hours hold it as an event. Must not know requests.
"""

from typing import Any

from core import digest_text, scheduled
from core.attempts import is_expired
from core.backoff import Backoff
from core.buttons import LIFE_MS
from core.plans import history_begin
from process import clock
from store import alarms, buttons, deliveries, held_notifications, notifications
from store import snoozes as stored
from store.database import transaction
from store.notifications import Entry
from store.senders import find_receivers, find_snoozed_sender
from wire.errors import Refused
from wire.notification import MIN_PRIORITY
from wire.validation import checked_seconds, only_known

MIN_FOR_S, MAX_FOR_S = 60, 604_800
SNOOZED = "It was snoozed before this device had it."

_backoff = Backoff("A snoozed notification could not be pushed again")


def checked(sent: dict[str, Any]) -> int:
    """For how many seconds a request snoozes; `Refused` (400) names a wrong field."""
    for_s = only_known(sent, "forS").get("forS")
    if for_s is None:
        raise Refused(400, "forS is required.", field="forS")
    return checked_seconds(for_s, "forS", MIN_FOR_S, MAX_FOR_S)


def snooze(account_seq: int, plan: str, notification_id: str, until: int, now: int) -> None:
    """Push a notification again at a time (ms), and not before; a snooze replaces an earlier one.

    `Refused` (404) when the account has none with that id, (409) if nothing is left to push, (400) if by then
    nothing would be.
    """
    with transaction(account_seq):
        entry = notifications.find(account_seq, notification_id, history_begin(plan, now))
        if entry is None or entry.is_digest:
            raise Refused(404)
        if reason := why_not(entry):
            raise Refused(409, reason)
        if is_expired(entry.content, until):
            raise Refused(400, "The notification expires before that.", field="forS")
        if notifications.find(account_seq, notification_id, history_begin(plan, until)) is None:
            raise Refused(400, "The notification is too old by then: the history no longer has it.", field="forS")
        stored.put(entry.seq, account_seq, until)
        alarms.pause(entry.seq)
        if entry.digest_seq is not None:
            digest_text.leave_pending(account_seq, [entry.seq], SNOOZED, now)
            notifications.settle_all([entry.seq])
        # if no device has it, it is `pending` until the end of the snooze
        deliveries.end(seqs=[entry.seq], error=SNOOZED, now=now)


def snoozed_until(entry: Entry) -> int | None:
    """When a notification is pushed again (ms); None if it is not snoozed, or is done with."""
    return None if _is_done(entry) else stored.until(entry.seq)


def why_not(entry: Entry) -> str | None:
    """Why a notification is not to be pushed again, as a sentence; None if it may be."""
    if entry.status == "held":
        return "This notification is held: it was not pushed yet."
    if entry.content.priority == MIN_PRIORITY:
        return "Notifications of priority 1 are not pushed."
    return "This notification was answered, acknowledged or replaced already." if _is_done(entry) else None


def _is_done(entry: Entry) -> bool:
    return bool(entry.is_replaced or buttons.is_answered(entry.seq))


def release_due(now: int) -> bool:
    """Push what was snoozed until now again, of the accounts in turn; returns whether more is left."""
    return _backoff.each(now, stored.due, _release)


def _release(seq: int, _: int) -> None:
    """Deliver it again unless it is done with, or another process was faster; call inside `transaction()`."""
    now = clock.now_ms()
    if not stored.end(seq, now):
        return
    notification = notifications.one(seq)
    is_late = is_expired(notification.content, now)
    if is_late or notifications.is_replaced(seq) or buttons.is_answered(seq):
        if notification.status == "pending":
            notifications.settle(seq)
        if is_late:
            alarms.end("expired", [seq])
        return
    stored.count(seq)
    held_notifications.remove([seq])  # from now on it has not the status of its digest
    alarms.begin_anew(seq)
    buttons.extend(seq=seq, until=now + LIFE_MS)
    sender = find_snoozed_sender(seq)
    scheduled.deliver(notification._replace(created_at=now), sender, find_receivers(sender.account_seq), now)
