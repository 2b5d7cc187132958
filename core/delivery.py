"""The life of one notification: recorded, held or pushed, retried until it is settled (CONTRACT 3, Status).

The row is committed first; while providers are asked no transaction is open; then the outcome is written. What is
held is released by `digests`. Must not know requests, wire names or what a provider's answer looks like.
"""

import hashlib
import json
import logging
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from typing import NamedTuple

import push
from core import local_time
from core.devices import drop_device
from core.pieces import ROWS, in_pieces
from models import Account, ActiveDevice, Alert, AlertPayload, Caller, Device, Owner, ServerKey, Webhook, new_id
from process import clock
from process.clock import DAY_MS
from process.counters import count
from providers.base import Answer, Message, Outcome, Push
from providers.webpush import new_vapid_key
from store.database import WriteFailed, transaction
from store.held import Held
from store.notifications import (
    Delivery,
    DueDelivery,
    DueDevice,
    IdempotencyKey,
    Notification,
    NotificationRow,
    Text,
    shown_status,
)
from wire.errors import TOO_MANY_EVENTS, Refused, log_fault

TITLE_PREFIX = "MCP - "  # SPEC 1
TEST_BODY = "This device gets your notifications."
PUSH_DEADLINE_S = 4.5  # with what comes before and after, a request is never held longer than 5 s
CLOCK_STEP_MS = 2_000  # that the wall clock was set back by; less is its usual correcting
LEASE_MS = 30_000  # a claimed attempt is nobody else's for so long; longer than the deadline
FIRST_RETRY_S = 30
LONGEST_RETRY_S = 3600
GIVEN_UP_AFTER_MS = DAY_MS
IDEMPOTENCY_LIFE_MS = DAY_MS
RETRIES_OF_AN_ACCOUNT = 10  # in one batch
RETRYING_ACCOUNTS = 8  # at the same time
BACKLOG_REST_S = 10.0
MAX_PENDING = 100_000  # notifications of an account
FULL_BELIEVED_S = 1.0
MANY_A_DAY = 100_000  # notifications of an account: its owner is told
THREADS_LEFT_FREE = 8

log = logging.getLogger("pocketbell")
due = threading.Event()  # set when there is something for the worker that must not wait for its next round


class Sent(NamedTuple):
    """A notification as its sender is told of it, and how many devices it was to go to at once.

    `replayed` when an earlier request with the same key made it.
    """

    notification: NotificationRow
    devices: int = 0
    replayed: bool = False

    @property
    def shown_status(self) -> str:
        """The status as the owner reads it."""
        return shown_status(self.notification.status, self.devices)


class Slots:
    """How many threads may be pushing: of all, and of them for one account (CONTRACT 3)."""

    def __init__(self, threads: int) -> None:
        self.free = max(1, threads - THREADS_LEFT_FREE)
        self.per_account = max(1, threads // 4)
        self.taken: dict[int, int] = {}
        self.lock = threading.Lock()

    @contextmanager
    def one(self, account_seq: int) -> Iterator[bool]:
        """Whether this thread may push for the account now; if so, the slot is held until the block ends."""
        with self.lock:
            taken = self.taken.get(account_seq, 0)
            granted = self.free > 0 and taken < self.per_account
            if granted:
                self.free, self.taken[account_seq] = self.free - 1, taken + 1
        try:
            yield granted
        finally:
            if granted:
                self._give_back(account_seq)

    def _give_back(self, account_seq: int) -> None:
        with self.lock:
            self.free += 1
            self.taken[account_seq] -= 1
            if not self.taken[account_seq]:
                del self.taken[account_seq]


_slots = Slots(32)
_retry_threads = ThreadPoolExecutor(RETRYING_ACCOUNTS, thread_name_prefix="retry")
_retrying: set[int] = set()  # accounts that have a batch under way
_batches: list[Future[None]] = []
_rest_ends_s: dict[int, float] = {}  # by device, until when the worker takes up nothing of its backlog
_wall_clock_ms: int | None = None  # before the monotonic one, at the last look
_full_until_s: dict[int, float] = {}  # by account with a full backlog, until when that is believed
_unwritten_pauses: dict[int, tuple[Webhook, int]] = {}  # by alert: floods whose pause could not be written
_running_keys: set[tuple[int, str]] = set()
_running_keys_lock = threading.Lock()


def configure(threads: int) -> None:
    """Share out this process's request threads, and begin with new ones for retries."""
    global _slots, _retry_threads, _wall_clock_ms
    _slots, _wall_clock_ms = Slots(threads), None
    for memory in (_rest_ends_s, _full_until_s, _unwritten_pauses):
        memory.clear()
    _retry_threads.shutdown()  # their connections are to what was open before
    _retry_threads = ThreadPoolExecutor(RETRYING_ACCOUNTS, thread_name_prefix="retry")


def vapid_key() -> str:
    """The Web Push private key of this service, made when it is first needed."""
    return ServerKey.find("vapid") or ServerKey.put_first("vapid", new_vapid_key())


# --- sending ------------------------------------------------------------------------------------------------


def send(caller: Caller | Owner, title: str, body: str, idempotency_key: str | None = None) -> Sent:
    """Record a notification and push it. What is answered is stored, whatever happens next.

    The title gets its prefix here. With an Idempotency-Key that the account used within 24 hours: the earlier
    notification, nothing sent; `Refused` (400) if the request was another one, (409) while the first still runs.
    """
    text = Text(TITLE_PREFIX + title, body)
    if idempotency_key is None:
        return _send(caller, text, None)
    request = IdempotentRequest(idempotency_key, hashlib.sha256(json.dumps(text[:2]).encode()).digest())
    with _only_once_at_a_time(caller.account_seq, idempotency_key):
        return _send(caller, text, request)


class IdempotentRequest(NamedTuple):
    """An Idempotency-Key and the hash of what came with it."""

    key: str
    request_hash: bytes


@contextmanager
def _only_once_at_a_time(account_seq: int, key: str) -> Iterator[None]:
    with _running_keys_lock:
        if (account_seq, key) in _running_keys:
            raise Refused(409)
        _running_keys.add((account_seq, key))
    try:
        yield
    finally:
        with _running_keys_lock:
            _running_keys.discard((account_seq, key))


def _send(caller: Caller | Owner, text: Text, request: IdempotentRequest | None) -> Sent:
    with transaction():
        now = clock.now_ms()  # inside, so that times follow the order of the rows
        earlier = request and _earlier(caller.account_seq, request, now)
        if earlier:
            return Sent(earlier, replayed=True)
        devices = Device.active(caller.account_seq)
        if devices and _has_full_backlog(caller.account_seq):
            raise Refused(429, f"There are {MAX_PENDING:,} pending notifications already: no device gets them.")
        status = first_status(caller.account_seq, devices)
        notification = _store(caller, text, status, devices, now + LEASE_MS, now)
        if request:
            answered = None if devices else notification.status
            IdempotencyKey.put(caller.account_seq, request.key, request.request_hash, notification, answered)
    return _pushed("send", caller, notification, devices)


def _earlier(account_seq: int, request: IdempotentRequest, now: int) -> NotificationRow | None:
    earlier = IdempotencyKey.find(account_seq, request.key, now - IDEMPOTENCY_LIFE_MS)
    if earlier is None:
        return None
    if earlier.request_hash != request.request_hash:
        raise Refused(400, "This Idempotency-Key came with another title or body before: take a new one.")
    notification = Notification.one(earlier.notification_seq)
    return notification._replace(status=earlier.answered_status or notification.status)


def _has_full_backlog(account_seq: int) -> bool:
    """Whether the account has as many pending notifications as it may have; call inside `transaction()`.

    To count so many takes a while: once they are too many, that is believed for a second.
    """
    full_until_s = _full_until_s.get(account_seq, 0.0)
    if clock.monotonic_s() < full_until_s:
        return True
    is_full = Notification.has_pending(account_seq, MAX_PENDING)
    if is_full:
        _full_until_s[account_seq] = clock.monotonic_s() + FULL_BELIEVED_S
    else:
        _full_until_s.pop(account_seq, None)
    return is_full


def _store(
    sender: Caller | Owner | Webhook, text: Text, status: str, devices: list[ActiveDevice], due_at: int, now: int
) -> NotificationRow:
    """A new notification that is to go to these devices, by the worker at `due_at` unless somebody is faster."""
    recorded = Notification.record(sender, text, status, local_time.local_day(now, sender.time_zone), now)
    if recorded is None:
        raise Refused(401)  # the account was deleted since the request began
    notification, of_day = recorded
    Delivery.add(notification.seq, devices, due_at)
    if of_day == MANY_A_DAY:
        _tell_owner_of_many(sender, now)
    return notification


def _tell_owner_of_many(sender: Caller | Owner | Webhook, now: int) -> None:
    """Tell the owner, once a day, that the history grows faster than anybody can read."""
    title = f"{TITLE_PREFIX}{MANY_A_DAY:,} notifications today"
    body = "Look in the history for the key or the alert that sends so many, and revoke it or switch it off."
    devices = Device.active(sender.account_seq)
    owner = Owner(sender.account_seq, sender.time_zone, sender.email)
    _store(owner, Text(title, body), first_status(sender.account_seq, devices), devices, now, now)
    due.set()


def first_status(account_seq: int, devices: list[ActiveDevice]) -> str:
    """The status of a notification before any of the account's active devices was asked."""
    if devices:
        return "pending"
    return "failed" if Device.last_was_dead(account_seq) else "delivered"


def receive(short_code: str, text: Text, payload: str | None) -> Sent | None:
    """Record the notification that an event made, prefix added, and hold it or push it (CONTRACT 4).

    `payload` (None: it is too large) is kept as the alert's last if its owner wants that. None if the alert is
    inactive by now, `Refused` (404) if the code leads nowhere any more: the event's body may have come long after its
    address.
    """
    with transaction():
        webhook, now = Alert.find_webhook(short_code), clock.now_ms()
        taken = _take(webhook, text, now)
        if taken and taken.webhook.keeps_payload:
            AlertPayload.put(taken.webhook.alert_seq, payload, now)
    return _pushed("alert", *taken) if taken else None


def replay(account_seq: int, alert_id: str, text: Text) -> Sent | None:
    """The same for what came before, whatever the alert's code is by now; nothing is kept of it again."""
    with transaction():
        alert = Alert.find(account_seq, alert_id)
        taken = _take(Alert.find_webhook(alert.short_code) if alert else None, text, clock.now_ms())
    return _pushed("alert", *taken) if taken else None


class _Taken(NamedTuple):
    """An event's notification as it was stored, and the devices it is to be pushed to now."""

    webhook: Webhook
    notification: NotificationRow
    devices: list[ActiveDevice]


def _take(webhook: Webhook | None, text: Text, now: int) -> _Taken | None:
    """Store the notification, or None if the alert is inactive; call inside `transaction()`."""
    if webhook is None:
        raise Refused(404)
    if not webhook.is_active:
        return None
    Alert.note_event(webhook.alert_seq, now)
    held = local_time.is_held(webhook.frequency, now, webhook.quiet_hours, webhook.time_zone, now)
    devices = [] if held else Device.active(webhook.account_seq)
    if devices and _has_full_backlog(webhook.account_seq):
        raise Refused(429, TOO_MANY_EVENTS, owner_message=f"{MAX_PENDING:,} notifications are pending already")
    status = "held" if held else first_status(webhook.account_seq, devices)
    prefixed = text._replace(title=TITLE_PREFIX + text.title)
    notification = _store(webhook, prefixed, status, devices, now + LEASE_MS, now)
    if held:
        Held.add(notification, webhook)
    return _Taken(webhook, notification, devices)


def _pushed(
    source: str, sender: Caller | Owner | Webhook, notification: NotificationRow, devices: list[ActiveDevice]
) -> Sent:
    """The notification as it is when all devices to be asked now were asked, if there are any."""
    if devices:
        notification = notification._replace(status=_attempt_now(sender, notification, devices))
    count("notifications", source, notification.status)
    return Sent(notification, len(devices))


def pause_flooded(webhook: Webhook, requests: int) -> None:
    """Make the alert inactive, and tell its owner once, quiet hours or not (SPEC 3, flood).

    If that cannot be written, the worker does it as soon as it can.
    """
    if webhook.alert_seq in _unwritten_pauses:
        return
    try:
        _pause(webhook, requests)
    except WriteFailed as error:
        log_fault(log, "The pause of a flooded alert could not be written", error)
        _unwritten_pauses[webhook.alert_seq] = (webhook, requests)


def write_pauses(now: int) -> None:
    """Write the pauses that could not be written when the floods came."""
    for alert_seq, (webhook, requests) in list(_unwritten_pauses.items()):
        with suppress(WriteFailed):
            _pause(webhook, requests)
            del _unwritten_pauses[alert_seq]


def _pause(webhook: Webhook, requests: int) -> None:
    with transaction():
        now = clock.now_ms()
        if not Alert.pause(webhook.alert_seq, webhook.switched_on_at, now):
            return
        title = f"{TITLE_PREFIX}Alert paused: {webhook.name}"
        body = (
            f"It got {requests} requests within a minute and is switched off. Switch it on again when that has ended."
        )
        devices = Device.active(webhook.account_seq)
        _store(webhook, Text(title, body), first_status(webhook.account_seq, devices), devices, now, now)
    due.set()  # the request that was one too many does not wait for it


def _attempt_now(sender: Caller | Owner | Webhook, notification: NotificationRow, devices: list[ActiveDevice]) -> str:
    """Push within the request, if a slot is free; else leave it to the worker, at once."""
    with _slots.one(sender.account_seq) as granted:
        since = notification.created_at
        account = (sender.account_seq, sender.email)
        attempts = [DueDelivery(*account, notification, one, since, 0) for one in devices] if granted else []
        answers = _answers([_push(attempt) for attempt in attempts])
    try:
        with transaction():
            if granted:
                _record(attempts, answers, clock.now_ms())
            else:
                Delivery.make_due(notification.seq, clock.now_ms())
            status = Notification.settle(notification.seq) or notification.status
            IdempotencyKey.note_answer(notification.seq, status)
    except WriteFailed as error:  # stored it is: when its lease ends, the worker finds out
        log_fault(log, "The outcome of a push could not be written", error)
        return "pending"
    if not granted:
        due.set()
    return status


def _answers(pushes: list[Push]) -> list[Answer]:
    """What came of pushing; a fault of ours counts as an attempt, so that it is not repeated for ever."""
    try:
        return push.send(pushes, PUSH_DEADLINE_S)
    except Exception as error:
        log_fault(log, "Pushing failed", error)
        return [Answer(Outcome.TRANSIENT, "This push could not be made: the server's log has it.") for _ in pushes]


def _push(attempt: DueDelivery) -> Push:
    notification = attempt.notification
    path = f"/app/notifications/{notification.id}"
    message = Message(notification.id, notification.title, notification.body, path)
    return _to(attempt.device, message, attempt.account_email)


def _to(device: ActiveDevice, message: Message, email: str) -> Push:
    return Push(device.kind, device.token, message, email, device.p256dh, device.auth, device.origin)


# --- trying a device ----------------------------------------------------------------------------------------


def try_device(account: Account, device_id: str) -> Answer:
    """Push a test to one device and answer with what its provider said; it is in no history.

    `Refused` (404) when the account has no such device, (429) when its other pushes take all threads.
    """
    device = next((one for one in Device.active(account.seq) if one.id == device_id), None)
    if device is None:
        raise Refused(404)
    message = Message(new_id(clock.now_ms()), f"{TITLE_PREFIX}Test", TEST_BODY, "/app/devices")
    with _slots.one(account.seq) as granted:
        if not granted:
            raise Refused(429, "Other notifications are being pushed at the moment: try again in a few seconds.")
        (answer,) = _answers([_to(device, message, account.email)])
    if answer.was_tried:
        with transaction():
            now = clock.now_ms()
            if Device.note_outcome(device, answer.error, now) and answer.outcome is Outcome.DEAD:
                drop_device(device.seq, "dead", now)
    return answer


# --- outcomes and retries -----------------------------------------------------------------------------------


def retry_due(now: int) -> None:
    """Try again what is due, also what a crash left between its record and its outcome.

    Each account's attempts are a batch in a thread of its own, so that nobody waits for another's provider.
    """
    _batches[:] = [batch for batch in _batches if not batch.done()]
    room = RETRYING_ACCOUNTS - len(_retrying)
    due_now = _due(now, room) if room > 0 else []
    if not due_now:
        return
    attempts = Delivery.claim(due_now, now, now + LEASE_MS)
    for account_seq, batch in groupby(attempts, key=lambda attempt: attempt.account_seq):
        _retrying.add(account_seq)
        _batches.append(_retry_threads.submit(_retry, account_seq, list(batch)))


def _due(now: int, accounts: int) -> list[tuple[int, int]]:
    """The next attempts (notification, device) of at most so many accounts: of each account's devices in turn."""
    device_seqs, kinds = defaultdict[int, list[int]](list), push.configured()
    for device in Delivery.due_devices(now):
        if device.kind in kinds and device.account_seq not in _retrying and not _rests(device.seq):
            device_seqs[device.account_seq].append(device.seq)
    chosen = list[tuple[int, int]]()
    for seqs in list(device_seqs.values())[:accounts]:
        oldest = [
            (place, notification_seq, device_seq)
            for device_seq in seqs
            for place, notification_seq in enumerate(Delivery.oldest_due(device_seq, now, RETRIES_OF_AN_ACCOUNT))
        ]
        chosen += [(notification, device) for _, notification, device in sorted(oldest)[:RETRIES_OF_AN_ACCOUNT]]
    return chosen


def _rests(device_seq: int) -> bool:
    """Whether the device is left alone at the moment."""
    ends_s = _rest_ends_s.get(device_seq)
    if ends_s is not None and ends_s <= clock.monotonic_s():
        _rest_ends_s.pop(device_seq, None)
        return False
    return ends_s is not None


def _let_rest(device_seq: int, seconds: float) -> None:
    """Take up nothing more of the device's backlog for so long; what is due on it may be much."""
    _rest_ends_s[device_seq] = clock.monotonic_s() + seconds


def give_up_unconfigured(now: int) -> bool:
    """Fail what waited for a day for a provider that is not configured; answers with whether more is left."""
    kinds, due_by = push.configured(), now - GIVEN_UP_AFTER_MS
    due_devices = [device for device in Delivery.due_devices(due_by) if device.kind not in kinds]
    left = [in_pieces(partial(_give_up_some, device, due_by, now)) for device in due_devices]
    return any(left)


def _give_up_some(device: DueDevice, due_by: int, now: int) -> bool:
    with transaction():
        seqs = Delivery.oldest_due(device.seq, due_by, ROWS)
        Delivery.fail(device.seq, seqs, push.not_configured(device.kind), now)
        Notification.settle_all(seqs)
    return len(seqs) == ROWS


def keep_with_clock(now: int) -> None:
    """When the wall clock was set back, bring forward by as much what would be tried again only then."""
    global _wall_clock_ms
    before, _wall_clock_ms = _wall_clock_ms, now - int(clock.monotonic_s() * 1000)
    if before is not None and before - _wall_clock_ms > CLOCK_STEP_MS:
        Delivery.bring_forward(before - _wall_clock_ms)


def finish_retries() -> None:
    """Wait until the batches that are under way have ended."""
    wait(_batches)


def _retry(account_seq: int, attempts: list[DueDelivery]) -> None:
    try:
        answers = _answers([_push(attempt) for attempt in attempts])
        with transaction():
            _record(attempts, answers, clock.now_ms())
            Notification.settle_all({attempt.notification.seq for attempt in attempts})
        if len(attempts) == RETRIES_OF_AN_ACCOUNT:
            _rest_after(attempts, answers)
    except Exception as error:  # when their leases end, they are due again
        log_fault(log, "A batch of retries failed", error)
    finally:
        was_full = len(_retrying) >= RETRYING_ACCOUNTS
        _retrying.discard(account_seq)
        if was_full or len(attempts) == RETRIES_OF_AN_ACCOUNT:
            due.set()  # there may be more


def _rest_after(attempts: list[DueDelivery], answers: list[Answer]) -> None:
    """Let those devices of a full batch rest that got nothing of it: their backlog would get nothing either."""
    settled = (Outcome.DELIVERED, Outcome.REFUSED, Outcome.DEAD)
    seqs = {attempt.device.seq for attempt in attempts}
    for attempt, answer in zip(attempts, answers, strict=True):
        if answer.outcome in settled:
            seqs.discard(attempt.device.seq)
    for seq in seqs:
        _let_rest(seq, BACKLOG_REST_S)


def _record(attempts: list[DueDelivery], answers: list[Answer], now: int) -> None:
    for attempt, answer in zip(attempts, answers, strict=True):
        notification_seq, device_seq = attempt.notification.seq, attempt.device.seq
        if not answer.was_tried and now <= attempt.since + GIVEN_UP_AFTER_MS:
            wait_s = answer.retry_after_s or 1
            Delivery.put_off(notification_seq, device_seq, now + wait_s * 1000)
            _let_rest(device_seq, wait_s)
            continue
        status, next_attempt_at = _verdict(attempt, answer, now)
        is_same = Device.note_outcome(attempt.device, answer.error, now)
        if answer.outcome is Outcome.DEAD and not is_same:
            status, next_attempt_at = "pending", now  # to the subscription that the browser has now
        Delivery.answer(notification_seq, device_seq, status, answer.error, next_attempt_at, now)
        if answer.outcome is Outcome.DEAD and is_same:
            drop_device(device_seq, "dead", now)


def _verdict(attempt: DueDelivery, answer: Answer, now: int) -> tuple[str, int | None]:
    """The delivery's status after an answer, and when to try again."""
    if answer.outcome is Outcome.DELIVERED:
        return "delivered", None
    if answer.outcome in (Outcome.DEAD, Outcome.REFUSED):
        return "failed", None
    next_attempt_at, given_up_at = now + _wait_s(attempt.attempts, answer) * 1000, attempt.since + GIVEN_UP_AFTER_MS
    if answer.retry_after_s is not None and now < given_up_at:
        next_attempt_at = min(next_attempt_at, given_up_at)  # once more, however long the provider asks to wait
    if next_attempt_at > given_up_at:
        return "failed", None
    return "pending", next_attempt_at


def _wait_s(attempts_before: int, answer: Answer) -> int:
    """30 s, 1 min, 2 min … at most 1 h, or what the provider asks for."""
    if answer.retry_after_s is not None:
        return max(1, answer.retry_after_s)
    return int(min(FIRST_RETRY_S * 2 ** min(attempts_before, 10), LONGEST_RETRY_S))
