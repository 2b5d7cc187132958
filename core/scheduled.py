"""Scheduled sends: a notification with `deliverAt` has the status held until then.

It has no row in `held`: neither quiet hours nor digests hold it. Mutes do once its time has come, and core/digests.py
releases it then. Must not know requests.
"""

from core import recording
from core.attempts import is_expired
from core.devices import chosen
from core.pieces import in_pieces
from process import clock
from store import alarms, deliveries, held_notifications, notifications
from store import scheduled as queries
from store.database import transaction
from store.senders import Receivers, Sender, find_receivers, find_sender
from wire.notification import Recorded

RELEASED_AT_ONCE = 100
WRITERS_WAIT_S = 0.02  # for a piece: each has a delivery to every device, and as many buttons

_last = 0  # the account (its seq) of which the last piece was released


def release_due(now: int) -> bool:
    """Release due scheduled sends, a piece of each account in turn, for the retries; whether more are left."""
    return bool(queries.is_due(now)) and in_pieces(_release_some)


def _release_some() -> bool:
    """Release a piece of the next account that has any; returns whether one had."""
    global _last
    now = clock.now_ms()
    account_seq = queries.next_account(after=_last, now=now) or queries.next_account(after=0, now=now)
    if account_seq is None:
        return False
    _last = account_seq
    with transaction(account_seq):
        now, ends_s = clock.now_ms(), clock.monotonic_s() + WRITERS_WAIT_S
        for place, seq in enumerate(queries.due(account=account_seq, now=now, limit=RELEASED_AT_ONCE)):
            if place and clock.monotonic_s() >= ends_s:
                break
            _release(seq, account_seq, now)
    return True


def _release(seq: int, account_seq: int, now: int) -> None:
    notification = notifications.one(seq)
    if is_expired(notification.content, now):  # the service was away
        notifications.release("failed", now, seq)
        alarms.end("expired", [seq])
        return
    deliver(notification, find_sender(seq), find_receivers(account_seq), now)


def deliver(notification: Recorded, sender: Sender, there: Receivers, now: int) -> None:
    """Begin the delivery of a stored notification to the chosen devices, or to all that are `there`, or hold it.

    Call inside `transaction()`.
    """
    seq, priority = notification.seq, notification.content.priority
    pushed = recording.to_push_now(sender, priority, there, now)
    if pushed is None:
        notifications.release("held", now, seq)
        held_notifications.add(notification, sender)
        return
    deliveries.forget_snoozed([seq])
    found = chosen(pushed, queries.chosen_devices(seq))
    notifications.release(recording.first_status(found, priority), now, seq)
    recording.begin(notification, found, now, now)
