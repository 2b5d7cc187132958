"""Polling devices (the ntfy app): their deliveries and receipts.

A delivery to such a device is pending until the device has fetched it; no attempt is made, and `retries` gives it up
after a day. Must not know requests or ntfy's format.
"""

from collections.abc import Collection, Iterable

from core import mail_limits, mails, ntfy_wakeup
from core.backoff import GIVEN_UP_AFTER_MS
from models import ActiveDevice, Device
from process.counters import count
from providers import is_fetched, is_mailed
from store import deliveries, notifications
from store.database import after_commit, transaction
from store.topics import FetchingDevice


def pushed_to(devices: Iterable[ActiveDevice]) -> list[ActiveDevice]:
    """The devices that notifications are pushed to at once: all but those that poll, or get mails."""
    return [device for device in devices if not is_fetched(device.kind) and not is_mailed(device.kind)]


def add_deliveries(
    notification_seq: int, devices: list[ActiveDevice], due_at: int, expires_at: int | None, now: int
) -> None:
    """Add a pending delivery to each device; call inside `transaction()`.

    Pushes are due at `due_at`, mails now; a polling device's delivery is given up after a day, or when it expires.
    """
    pushed = pushed_to(devices)
    deliveries.add(notification_seq, pushed, due_at)
    if len(pushed) < len(devices):
        mailed = [device for device in devices if is_mailed(device.kind)]
        deliveries.add(notification_seq, mailed, now)
        if mailed:
            after_commit(mails.batches.due.set)
        given_up_at = now + GIVEN_UP_AFTER_MS
        fetched = [device for device in devices if is_fetched(device.kind)]
        deliveries.add(notification_seq, fetched, min(given_up_at, expires_at or given_up_at))
        ntfy_wakeup.wake_later(notification_seq, fetched)


def deliver_again(
    account_seq: int, notification_seq: int, devices: list[ActiveDevice], expires_at: int | None, now: int
) -> None:
    """Deliver a repeat to these devices, which poll or get mails, new ones included; call inside `transaction()`."""
    given_up_at = now + GIVEN_UP_AFTER_MS
    fetched = [device for device in devices if is_fetched(device.kind)]
    deliveries.add(notification_seq, fetched, min(given_up_at, expires_at or given_up_at))
    ntfy_wakeup.wake_later(notification_seq, fetched)
    for device in devices:
        if is_mailed(device.kind) and mail_limits.take(account_seq, device.seq, now):
            deliveries.begin_anew(notification_seq, device.seq, now)
            after_commit(mails.batches.due.set)


def note_fetched(taken: Collection[tuple[FetchingDevice, int]], now: int) -> None:
    """Mark notifications (by seq) as delivered to these devices."""
    with transaction(*{device.account_seq for device, _ in taken}):
        for device, seq in taken:
            deliveries.answer(seq, device.seq, "delivered", None, None, now)
            count("pushes", device.kind, "delivered")
        for device in {device for device, _ in taken}:
            Device.note_fetched(now, device.seq)
        notifications.settle_all({seq for _, seq in taken})
