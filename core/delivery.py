"""The life of one notification: recorded or held, attempted within the request, settled.

The row is committed first, then the devices are pushed to with no transaction open, then the outcome is written.
`retries` repeats pending attempts; `digests` releases held notifications. Must not know requests, wire names or
providers' formats.
"""

from collections.abc import Collection
from typing import NamedTuple

from core import (
    alarms,
    buttons,
    channels,
    fetching,
    idempotency,
    local_time,
    pictures,
    push_slots,
    retries,
    storage,
    streams,
)
from core.attempts import LEASE_MS, end_expired, note_device, note_outcomes, push_all, push_each, push_to
from core.devices import chosen
from core.idempotency import IdempotentRequest
from core.recording import copy, put, receivers_of, to_push_now
from models import Account, ActiveDevice, Alert, Device
from process import clock
from process.counters import count
from process.faults import log_fault
from providers.base import Answer, Message, Outcome
from store import alert_events, copies, deliveries, idempotency_keys, notifications, scheduled, server_notes
from store.database import WriteFailed, after_commit, transaction
from store.deliveries import Attempt
from store.notifications import shown_status
from store.rows import new_id
from store.senders import Receivers, Sender, Webhook, find_receivers_of_alert, own_key
from wire.errors import TOO_MANY_EVENTS, Refused, existing
from wire.notification import Content, Recorded, check_times

TEST_BODY = "This device gets your notifications."
NOBODY = Receivers([], False, 0, 0, 0)


class Sent(NamedTuple):
    """A notification as it is answered to its sender."""

    notification: Recorded
    devices: int = 0  # to which it was pushed at once
    replayed: bool = False  # an earlier request with the same Idempotency-Key made it
    has_others: bool = False  # whether devices did not get it: in their quiet hours, or for its priority

    @property
    def shown_status(self) -> str:
        """The status as the owner reads it."""
        priority = self.notification.content.priority
        return shown_status(self.notification.status, self.devices, priority, self.has_others)


def vapid_key() -> str:
    """The Web Push private key of this service, made when it is first needed."""
    kept = server_notes.find_key("vapid")
    if kept is None:
        from providers.webpush_crypto import new_vapid_key

        kept = server_notes.put_first_key("vapid", new_vapid_key())
    return kept


# --- delivering ---------------------------------------------------------------------------------------------


def deliver(
    sender: Sender,
    content: Content,
    idempotency_key: str | None = None,
    picture: bytes | None = None,
    device_ids: Collection[str] | None = None,
) -> Sent:
    """Record a notification, with the prefix before its title, and push it. It is stored before the answer.

    `picture` is the one that the content describes. It goes to all devices, or to those with `device_ids`.
    With an Idempotency-Key that the account used within 24 hours, nothing is sent, and the earlier notification is
    returned: `Refused` (400) if that request was different, (409) while it still runs. `Refused` (401) if the
    sender's key was revoked: a body may arrive long after the request's head.
    """
    content = content.prefixed()
    if idempotency_key is None:
        return _record_and_attempt(sender, content, None, picture, device_ids)
    if own := own_key(sender):
        idempotency_key = f"{own} {idempotency_key}"  # no key has a space
    request = IdempotentRequest(sender.account_seq, idempotency_key, idempotency.request_hash(content, picture))
    return _record_and_attempt(sender, content, request, picture)


def _record_and_attempt(
    sender: Sender,
    content: Content,
    request: IdempotentRequest | None,
    picture: bytes | None,
    device_ids: Collection[str] | None = None,
) -> Sent:
    begin, accounts = transaction if picture is None else pictures.storing, copies.accounts_for(sender)
    with begin(*accounts, lazy=True):
        found = receivers_of(sender, clock.now_ms())
        now = clock.now_ms()  # read when its turn has come, so that times follow the order of the rows
        if earlier := request and idempotency.earlier(request, content, now):
            return Sent(earlier, replayed=True)
        storage.check(sender.account_seq, found.stored_bytes)
        check_times(content, now)
        alarms.check_room(sender.account_seq, content)
        is_later = content.deliver_at is not None
        pushed = None if is_later else to_push_now(sender, content.priority, found, now)
        if pushed and device_ids is not None:
            pushed = chosen(pushed, device_ids)
        if (is_later or (pushed and pushed.devices)) and storage.has_full_backlog(sender.account_seq):
            raise Refused(429, f"{storage.MAX_PENDING:,} notifications are pending or to be sent later already.")
        notification = put(sender, content, found, pushed, now + LEASE_MS, now)
        if device_ids is not None and not pushed:
            scheduled.choose_devices(sorted(device_ids), notification.seq)
        if picture is not None:
            pictures.keep(sender, notification, picture)
        if len(accounts) > 1:
            copy(sender, notification, now, picture)
        if request:
            is_asked = pushed is not None and bool(fetching.pushed_to(pushed.devices))
            idempotency_keys.put(*request, notification, None if is_asked else notification.status)
    return _attempt("send", sender, notification, pushed or NOBODY, request)


def deliver_event(
    webhook: Webhook,
    short_code: str,
    content: Content,
    payload: str | None = None,
    picture: bytes | None = None,
    is_replay: bool = False,
) -> Sent | None:
    """Record the notification that an event made, with the prefix, and hold it or push it.

    `payload` (None if it is too large) is kept as the alert's last one if the owner wants that; a replay leaves that
    one as it is. `picture` is the one that the content describes. Returns None if the alert is inactive. `Refused`
    (404) if the code was rotated or the alert deleted: a body may arrive long after the request's head.
    """
    begin, accounts = transaction if picture is None else pictures.storing, copies.accounts_for(webhook)
    with begin(*accounts, lazy=True):
        looked_up = find_receivers_of_alert(short_code, local_time.local_day(clock.now_ms(), webhook.time_zone))
        if looked_up is None or looked_up[0].account_seq != webhook.account_seq:
            raise Refused(404)
        (alert, found), now = looked_up, clock.now_ms()
        if not alert.is_active:
            return None
        storage.check(alert.account_seq, found.stored_bytes)
        Alert.note_event(now, alert.alert_seq)
        content = alarms.within_room(alert.account_seq, content).prefixed()
        if alert.has_mute_button:
            content = content._replace(actions=(*content.actions, buttons.MUTE))
        pushed = to_push_now(alert, content.priority, found, now)
        if pushed and pushed.devices and storage.has_full_backlog(alert.account_seq):
            raise Refused(429, TOO_MANY_EVENTS, owner_message=f"{storage.MAX_PENDING:,} notifications wait already")
        notification = put(alert, content, found, pushed, now + LEASE_MS, now)
        if alert.keeps_payload and not is_replay:
            alert_events.put_payload(alert.alert_seq, payload, now)
        if picture is not None:
            pictures.keep(alert, notification, picture)
        if len(accounts) > 1:
            copy(alert, notification, now, picture)
    return _attempt("alert", alert, notification, pushed or NOBODY)


# --- attempting and settling --------------------------------------------------------------------------------


def _attempt(
    source: str,
    sender: Sender,
    notification: Recorded,
    found: Receivers,
    request: IdempotentRequest | None = None,
) -> Sent:
    """Push the notification to these receivers, if there are any, and return it as it is then.

    The answer to `request` is kept, to be replayed.
    """
    pushed = fetching.pushed_to(found.devices) if found.devices else []
    if len(pushed) < len(found.devices):
        streams.hub.wake(sender.account_seq)
    if pushed:
        notification = notification._replace(status=_push_and_settle(sender, notification, pushed, request))
    count("notifications", source, notification.status)
    return Sent(notification, len(found.devices), False, bool(found.quiet) or found.is_below_some)


def _push_and_settle(
    sender: Sender, notification: Recorded, devices: list[ActiveDevice], request: IdempotentRequest | None
) -> str:
    """Push within the request if a slot is free, else leave it to the retries at once; returns the status."""
    with push_slots.slot(sender.account_seq) as granted:
        goes_out = granted and not (notification.content.tag and notifications.is_replaced(notification.seq))
        account_seq, email, since = sender.account_seq, sender.email, notification.created_at
        attempts = [Attempt(account_seq, email, notification, device, since, 0) for device in devices if goes_out]
        answers = push_all(attempts)
    try:
        return _settle(sender.account_seq, notification, devices, attempts, answers, request)
    except WriteFailed as error:  # the row is stored; it is retried when the lease expires
        log_fault("The outcome of a push could not be written", error)
        return "pending"


def _settle(
    account_seq: int,
    notification: Recorded,
    devices: list[ActiveDevice],
    attempts: list[Attempt],
    answers: list[Answer],
    request: IdempotentRequest | None,
) -> str:
    """Write the outcomes and return the notification's status; without attempts, make the deliveries due."""
    with transaction(account_seq, lazy=True):
        now = clock.now_ms()
        left_alone = note_outcomes(attempts, answers, now)
        if not attempts:
            deliveries.set_due(notification.seq, devices, now)
        end_expired({notification.seq: notification.content}, now)
        if any(answer.outcome is Outcome.DELIVERED for answer in answers):
            status = "delivered"
            notifications.note_delivered(notification.seq)
        else:
            if channels.fall_back([notification.seq], now):
                after_commit(retries.batches.due.set)
            status = notifications.settle(notification.seq) or "failed"  # if it was deleted, nothing more is tried
        if request:
            idempotency_keys.note_answer(status, request.account_seq, request.key)
    retries.leave_alone(left_alone)
    if not attempts:
        retries.batches.due.set()
    return status


def try_device(account: Account, device_id: str) -> Answer:
    """Push a test to one device and return its provider's answer; the test is not in the history.

    `Refused` (404) when the account has no such device, (429) when its other pushes take all slots.
    """
    device = existing(next((one for one in Device.active(account.seq) if one.id == device_id), None))
    content = Content("Test", TEST_BODY).prefixed()
    message = Message(new_id(clock.now_ms()), content, "/app/devices")
    with push_slots.slot(account.seq) as granted:
        if not granted:
            raise Refused(429, "Other notifications are being sent at the moment. Try again in a few seconds.")
        (answer,) = push_each([push_to(device, message, account.email)])
    if answer.was_tried:
        with transaction(account.seq):
            note_device(device, answer, clock.now_ms())
    return answer
