"""Adding and removing the devices of an account, by whatever door (CONTRACT 3, 6). Must not know requests."""

import secrets
from functools import partial
from typing import Any, NamedTuple

import push
from core.pieces import ROWS, in_pieces
from models import Device, sha256_of
from store.database import AFTER_ALL, transaction
from store.deliveries import Delivery
from store.notifications import Notification
from wire.errors import Refused
from wire.validation import checked_name, optional_text, required_text

MAX_DEVICES = 20


def add_device(account_seq: int, registration: dict[str, Any], now: int, key_seq: int | None = None) -> Device:
    """Add a device, or answer with the one that has this token already.

    `registration` holds kind, name (optional) and token, or subscription for Web Push. `key_seq` is the API key that
    adds it. `Refused` (400) names what is wrong.
    """
    kind = required_text(registration, "kind")
    if kind not in push.KINDS:
        raise Refused(400, "kind must be apns, fcm or webpush.")
    name = optional_text(registration, "name")
    values = _address(kind, registration)
    if name is not None:
        values["name"] = checked_name(name)
    with transaction():
        known = Device.with_token(account_seq, kind, values["token"])
        if known and key_seq not in (None, known.api_key_seq):
            return known  # another's: it stays as it is
        if known:
            return _changed(known, **values)
        return _added(account_seq, kind, {"name": push.KINDS[kind], "api_key": key_seq, **values}, now)


def _added(account_seq: int, kind: str, values: dict[str, Any], now: int) -> Device:
    if Device.count(account_seq) >= MAX_DEVICES:
        raise Refused(400, f"There are {MAX_DEVICES} devices already: remove one first.")
    return Device.add(account_seq, kind, values, now)


class Browser(NamedTuple):
    """A browser of an owner, as its page describes it.

    `token` is what it was given when it was told of before, `origin` where it has the web app open.
    """

    subscription: Any
    token: str | None
    name: str
    origin: str


def sync_browser(account_seq: int, browser: Browser, only_known: bool, now: int) -> tuple[Device, str | None]:
    """Bring the browser's device up to date, or add one; with a new token for it unless its own fits.

    With `only_known`, at a mere visit, `Refused` (404) instead of adding: a device that was removed stays so.
    """
    values = _address("webpush", {"subscription": browser.subscription})
    seen = {"origin": browser.origin, "last_seen_at": now}
    with transaction():
        device = Device.with_resync_token(sha256_of(browser.token)) if browser.token else None
        has_token = device is not None and device.account_seq == account_seq
        if not has_token:
            device = Device.with_token(account_seq, "webpush", values["token"])
        if device is None and only_known:
            raise Refused(404)
        if device is None:
            device = _added(account_seq, "webpush", {"name": browser.name, **values}, now)
        else:
            if other := _other(device, values):
                drop_device(other.seq, "removed", now)
            _move(device, values)
        token = None if has_token else secrets.token_urlsafe(32)
        if token:
            seen["resync_token_hash"] = sha256_of(token)
        return _changed(device, **seen), token


def resync(device: Device, subscription: Any, now: int) -> None:
    """Give the device the new subscription that its service worker sends.

    `Refused` (401) when the device is gone, (409) when another one has that subscription.
    """
    values = _address("webpush", {"subscription": subscription})
    with transaction():
        if Device.find(device.account_seq, device.id) is None:
            raise Refused(401, "The device was removed.")
        if _other(device, values):
            raise Refused(409, "Another device has this subscription.")
        _move(device, values)


def _other(device: Device, values: dict[str, Any]) -> Device | None:
    """Another device of the account that has this subscription."""
    holder = Device.with_token(device.account_seq, "webpush", values["token"])
    return holder if holder and holder.seq != device.seq else None


def _move(device: Device, values: dict[str, Any]) -> None:
    """Let the device have this subscription; call inside `transaction()`."""
    if device.token != values["token"]:
        values = {**values, "last_error": None, "last_error_at": None}
    _changed(device, **values)


def rename_device(account_seq: int, device_id: str, name: str) -> None:
    """Give a device another name; `Refused` (400) for a bad name, (404) when there is none such."""
    checked = checked_name(name)
    with transaction():
        device = Device.find(account_seq, device_id)
        if device is None:
            raise Refused(404)
        _changed(device, name=checked)


def _changed(device: Device, **values: Any) -> Device:
    device.change(**values)
    return device


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
    """Take a device out, `dead` or `removed`, and settle what was pending on it; call inside `transaction()`.

    If that is much, the rest is left to `settle_left_behind`.
    """
    Device.remove(seq, removed_as, now)
    _settle_some(seq, removed_as, now)


def settle_left_behind(now: int) -> bool:
    """Settle what is pending still on removed devices, in pieces; answers with whether something is left."""
    left = [in_pieces(partial(_settle_piece, seq, removed_as, now)) for seq, removed_as in Delivery.left_behind()]
    return any(left)


def _settle_piece(seq: int, removed_as: str, now: int) -> bool:
    with transaction():
        return _settle_some(seq, removed_as, now)


def _settle_some(seq: int, removed_as: str, now: int) -> bool:
    """Settle some notifications that are pending on a removed device; whether there may be more."""
    pending = Delivery.oldest_due(seq, AFTER_ALL, ROWS)
    if removed_as == "dead":
        Delivery.fail(seq, pending, "The device was removed before it could be reached.", now)
    else:
        Delivery.forget(seq, pending)
    Notification.settle_all(pending)
    return len(pending) == ROWS
