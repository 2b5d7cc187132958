"""Adding and removing the devices of an account, by whatever door (CONTRACT 3, 6). Must not know requests."""

from typing import Any

import push
from database import transaction
from errors import Refused
from fields import checked_name, optional_text, required_text
from history import Delivery, Notification
from models import Device, new_id

MAX_DEVICES = 20


def add_device(
    account_seq: int,
    registration: dict[str, Any],
    now: int,
    key_seq: int | None = None,
    origin: str | None = None,
    only_known: bool = False,
) -> Device:
    """Add a device, or answer with the one that has this token already.

    `registration` holds kind, name (optional) and token, or subscription for Web Push. `key_seq` is the API key that
    adds it, `origin` where the dashboard was when a browser subscribed. `Refused` (400) names what is wrong, or
    (404) says that the device is not there, when it is to be `only_known`.
    """
    kind = required_text(registration, "kind")
    if kind not in push.KINDS:
        raise Refused(400, "kind must be apns, fcm or webpush.")
    name = optional_text(registration, "name")
    address = _address(kind, registration)
    if origin:
        address["origin"] = origin
    if name is not None:
        address["name"] = checked_name(name)
    with transaction():
        known = Device.with_token(account_seq, kind, address["token"])
        if known and key_seq not in (None, known.api_key_seq):
            return known  # another's: it stays as it is
        if known:
            Device.update(**address).where(Device.seq == known.seq).execute()
            return Device.get_by_id(known.seq)
        if only_known:
            raise Refused(404)
        if Device.count(account_seq) >= MAX_DEVICES:
            raise Refused(400, f"There are {MAX_DEVICES} devices already: remove one first.")
        values = {"name": push.KINDS[kind], "api_key": key_seq, **address}
        return Device.create(id=new_id(now), account=account_seq, kind=kind, created_at=now, **values)


def _address(kind: str, registration: dict[str, Any]) -> dict[str, Any]:
    if kind != "webpush":
        return {"token": push.checked_token(kind, required_text(registration, "token"))}
    subscription = push.checked_subscription(registration.get("subscription"))
    return {"token": subscription.endpoint, "p256dh": subscription.p256dh, "auth": subscription.auth}


def remove_device(account_seq: int, device_id: str, now: int, key_seq: int | None = None) -> None:
    """Remove a device for its owner, or for the API key that added it; `Refused` (404) when there is none such."""
    with transaction():
        device = Device.find(account_seq, device_id)
        if device is None or (key_seq is not None and device.api_key_seq != key_seq):
            raise Refused(404)
        drop_device(device.seq, "removed", now)


def drop_device(seq: int, removed_as: str, now: int) -> None:
    """Take a device out, `dead` or `removed`, and settle what was pending on it; call inside `transaction()`."""
    Device.remove(seq, removed_as, now)
    for notification_seq in Delivery.end_pending(seq, keep=removed_as == "dead", now=now):
        Notification.settle(notification_seq)
