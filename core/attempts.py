"""An attempt to push: several pushes at once, and the consequence of each outcome for its delivery.

No transaction is open while providers are asked; the outcomes are written afterwards: delivered, failed, or pending
until the next attempt. Must not know requests, wire names or providers' formats.
"""

import base64
import hashlib
from collections.abc import Mapping

import push
from core import buttons, pictures
from core.backoff import GIVEN_UP_AFTER_MS, retry_s
from core.devices import drop_device
from models import ActiveDevice, Device
from process import clock, counters
from process.faults import log_fault
from providers import is_mailed
from providers.base import Answer, Message, Outcome, Push
from store import alarms, deliveries, engine
from store.database import give_back
from store.deliveries import Attempt
from wire.notification import Content

PUSH_DEADLINE_S = 4.5  # a whole request takes at most 5 s
LEASE_MS = 30_000  # longer than the deadline: a claimed attempt is made only once
EXPIRED = "It expired before this device had it."


def push_all(attempts: list[Attempt], deadline_s: float = PUSH_DEADLINE_S) -> list[Answer]:
    """Make these attempts; the providers' answers, in order."""
    answers = push_each([_push(attempt) for attempt in attempts], deadline_s)
    now = clock.now_ms()
    for attempt, answer in zip(attempts, answers, strict=True):
        if answer.outcome is Outcome.DELIVERED:
            counters.observe("push_delay_seconds", max(0, now - attempt.since) / 1000, attempt.device.kind)
    return answers


def push_each(pushes: list[Push], deadline_s: float = PUSH_DEADLINE_S) -> list[Answer]:
    """Push. A bug in pushing counts as a failed attempt, so that it is not repeated for ever."""
    give_back()  # a provider may take seconds
    engine.make_way()
    try:
        return push.send(pushes, deadline_s)
    except Exception as error:
        log_fault("Pushing failed", error)
        return [Answer(Outcome.TRANSIENT, "This push could not be made: the server's log has it.") for _ in pushes]


def _push(attempt: Attempt) -> Push:
    notification = attempt.notification
    tag = notification.content.tag
    slot = tag_slot(attempt.account_seq, tag) if tag else None
    path, shown = f"/app/notifications/{notification.id}", buttons.pushed(notification, attempt.device.id)
    picture = pictures.address_of(notification.id, notification.content)
    turn = "" if attempt.since == notification.created_at else f"-{attempt.since}"
    if attempt.attempts and is_mailed(attempt.device.kind):  # a repeat must not look like the mail before
        turn += f".{attempt.attempts}"
    message = Message(notification.id, notification.content, path, slot, shown, picture, turn)
    return push_to(attempt.device, message, attempt.email)


def tag_slot(account_seq: int, tag: str) -> str:
    """An account's tag as its devices know it: 32 characters of base64url.

    The hash must not change: notifications that devices show were tagged with it.
    """
    digest = hashlib.sha256(f"{account_seq} {tag}".encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()[:32]


def push_to(device: ActiveDevice, message: Message, email: str) -> Push:
    """The push of a message to a device; `email` is the owner's address."""
    preset = None if device.after_s is None else Device.preset_of(device.seq)
    return Push(device.kind, device.token, message, email, device.p256dh, device.auth, device.origin, preset)


def note_outcomes(attempts: list[Attempt], answers: list[Answer], now: int) -> dict[int, int]:
    """Write the outcome of each attempt; call inside `transaction()`.

    Returns the devices (by seq) whose provider was not asked, with the seconds for which to leave them alone.
    """
    left_alone: dict[int, int] = {}
    for attempt, answer in zip(attempts, answers, strict=True):
        if answer.was_tried or now > attempt.since + GIVEN_UP_AFTER_MS:
            _note_outcome(attempt, answer, now)
            continue
        wait_s = answer.retry_after_s or 1
        next_attempt_at = _until_expiry(attempt, now + wait_s * 1000)
        deliveries.set_due(attempt.notification.seq, [attempt.device], next_attempt_at)
        left_alone[attempt.device.seq] = wait_s
    outcomes = zip(attempts, answers, strict=True)
    shown = [one.notification for one, answer in outcomes if answer.outcome is Outcome.DELIVERED]
    alarms.note_pushed({one.seq for one in shown if one.content.acknowledge}, now)
    return left_alone


def _note_outcome(attempt: Attempt, answer: Answer, now: int) -> None:
    notification_seq, device_seq = attempt.notification.seq, attempt.device.seq
    status, next_attempt_at = _verdict(attempt, answer, now)
    is_same = Device.note_outcome(attempt.device.seq, attempt.device.token, answer.error, now)
    if answer.outcome is Outcome.DEAD and not is_same:
        status, next_attempt_at = "pending", now  # to the subscription that the browser has now
    deliveries.answer(notification_seq, device_seq, status, answer.error, next_attempt_at, now)
    if answer.outcome is Outcome.DEAD and is_same:
        drop_device(device_seq, "dead", now)


def note_device(device: ActiveDevice, answer: Answer, now: int) -> None:
    """Note a provider's answer about a device, and drop the device if it is dead; call inside `transaction()`."""
    if Device.note_outcome(device.seq, device.token, answer.error, now) and answer.outcome is Outcome.DEAD:
        drop_device(device.seq, "dead", now)


def _verdict(attempt: Attempt, answer: Answer, now: int) -> tuple[str, int | None]:
    """The delivery's status after an answer, and the time of the next attempt if it is pending."""
    if answer.outcome is Outcome.DELIVERED:
        return "delivered", None
    if answer.outcome in (Outcome.DEAD, Outcome.REFUSED):
        return "failed", None
    wait_s = retry_s(attempt.attempts) if answer.retry_after_s is None else max(1, answer.retry_after_s)
    next_attempt_at, given_up_at = now + wait_s * 1000, attempt.since + GIVEN_UP_AFTER_MS
    if answer.retry_after_s is not None and now < given_up_at:
        next_attempt_at = min(next_attempt_at, given_up_at)  # a last attempt, however long the provider asks to wait
    if next_attempt_at > given_up_at:
        return "failed", None
    return "pending", _until_expiry(attempt, next_attempt_at)


def _until_expiry(attempt: Attempt, at: int) -> int:
    """The time, or an earlier one at which the notification expires: then it is settled without an attempt."""
    expires_at = attempt.notification.content.expires_at
    return at if expires_at is None else min(at, expires_at)


def is_expired(content: Content, now: int) -> bool:
    """Whether it is too late to push this."""
    return content.expires_at is not None and content.expires_at <= now


def end_expired(contents: Mapping[int, Content], now: int) -> None:
    """Fail the pending deliveries of the expired notifications among these; call inside `transaction()`."""
    expired = [seq for seq, content in contents.items() if is_expired(content, now)]
    if expired:
        deliveries.end(seqs=expired, error=EXPIRED, now=now)
