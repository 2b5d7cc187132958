"""The devices of an account, and which of them receive a notification. Must not know requests."""

import secrets
from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

import push
from core import channels, mail_limits, week_windows
from core.local_time import is_quiet
from core.pieces import ROWS, in_pieces
from models import Account, Device, sha256_of
from process.clock import DAY_MS
from providers import PROVIDERS, is_fetched
from providers.webpush import WebPush
from store import deliveries, mails, notifications
from store.database import AFTER_ALL, transaction
from store.senders import Receivers, find_receivers
from wire.errors import Refused
from wire.notification import DEFAULT_PRIORITY, MIN_PRIORITY, checked_priority
from wire.validation import checked_name, either, optional_text, required_text

MAX_DEVICES = 20
CONFIRMED_WITHIN_MS = 7 * DAY_MS
ADDRESS = ("kind", "token", "subscription", "address", "url", "preset")  # the fields of a registration
SETTINGS = ("name", "minPriority", "quietHours", "role", "afterS")  # those that can be changed, too
BROWSER = WebPush.kind


def receivers(account_seq: int, priority: int | None, now: int) -> Receivers:
    """The account's devices that a notification of this priority (None: the default) is pushed to now."""
    found = find_receivers(account_seq)
    account = Account.with_seq(account_seq) if any(device.quiet_hours for device in found.devices) else None
    return awake(found, priority, account.time_zone if account else "", now)


def awake(found: Receivers, priority: int | None, time_zone: str, now: int) -> Receivers:
    """The receivers to which a notification of this priority (None: the default) is pushed now."""
    number = priority or DEFAULT_PRIORITY
    devices = [device for device in found.devices if number >= device.min_priority]
    if number == MIN_PRIORITY:  # it is only for the history and for apps that fetch
        devices = [device for device in devices if is_fetched(device.kind)]
    is_below_some = len(devices) < len(found.devices)
    quiet = [device for device in devices if device.quiet_hours and is_quiet(device.quiet_hours, time_zone, now)]
    left = [device for device in devices if device not in quiet]
    return channels.divided(found._replace(devices=left, quiet=tuple(quiet), is_below_some=is_below_some))


def chosen(found: Receivers, device_ids: Collection[str] | None) -> Receivers:
    """The receivers with only the devices that have these ids (None: all)."""
    if device_ids is None:
        return found
    parts = ((*found.devices, *found.fallbacks), found.quiet)
    devices, quiet = ([one for one in some if one.id in device_ids] for some in parts)
    return channels.divided(found._replace(devices=devices, quiet=tuple(quiet), fallbacks=()))


def add_device(
    account_seq: int, registration: dict[str, Any], now: int, key_seq: int | None = None, origin: str | None = None
) -> Device:
    """Add a device, or update the account's device with this token.

    `registration` holds a kind, the address (a token, or a subscription for Web Push) and, optionally, what
    `change_device` takes. `key_seq` is the API key that adds it; `origin` is where its owner has the web app open.
    `Refused` (400) names a wrong value.
    """
    kind = required_text(registration, "kind")
    if kind not in PROVIDERS:
        raise Refused(400, f"kind must be {either(sorted(PROVIDERS))}.", field="kind")
    values, said = push.provider_of(kind).checked_address(registration), _settings(registration)
    topic, provider = values.pop("topic", None), PROVIDERS[kind]
    values |= {"origin": origin} if origin else {}
    with transaction(account_seq):
        known = Device.with_token(account_seq, kind, values["token"])
        if known and key_seq not in (None, known.api_key_seq):
            return known  # this key did not add it, so it may not change it
        said |= _role(kind, registration, known.after_s if known else None)
        if known:
            if provider.is_channel and known.preset == values.get("preset"):
                values.pop("auth", None)  # a webhook keeps its secret, and mails their links
            changed = known.change(**values, **said)
            changed.secret = values.get("auth") if provider.is_channel else None
            if changed.confirm_by is not None:
                ask_to_confirm(changed, now)
            return changed
        defaults = {"name": provider.name_of(values), **(channels.DEFAULTS if provider.is_channel else {})}
        added = _added(account_seq, kind, {**defaults, "api_key": key_seq, **values, **said}, now)
        added.topic, added.secret = topic, values.get("auth") if values.get("preset") else None
        if provider.is_mailed:
            ask_to_confirm(added, now)
        return added


def ask_to_confirm(device: Device, now: int) -> None:
    """Mail the link that confirms this address; call inside `transaction()`. `Refused` (429) after too many mails."""
    mail_limits.check(device.account_seq, now)
    device.change(confirm_by=now + CONFIRMED_WITHIN_MS)
    mails.add(device.account_seq, "confirm", device.seq, "", now)


def _added(account_seq: int, kind: str, values: dict[str, Any], now: int) -> Device:
    if Device.count(account_seq) >= MAX_DEVICES:
        raise Refused(400, f"There are {MAX_DEVICES} devices already: remove one first.")
    return Device.add(account_seq, kind, values, now)


class Browser(NamedTuple):
    """A browser of an owner, as its page describes it."""

    subscription: Any
    token: str | None  # that it was given at an earlier visit
    name: str
    origin: str  # where it has the web app open


def sync_browser(account_seq: int, browser: Browser, only_known: bool, now: int) -> tuple[Device, str | None]:
    """Update the browser's device or add one; returns it, with a new token unless the browser has a valid one.

    With `only_known`, for a mere visit, raises `Refused` (404) instead of adding: a removed device stays removed.
    """
    values = push.provider_of(BROWSER).checked_address({"subscription": browser.subscription})
    seen = {"origin": browser.origin, "last_seen_at": now}
    with transaction(account_seq):
        device = Device.with_resync_token(sha256_of(browser.token)) if browser.token else None
        has_token = device is not None and device.account_seq == account_seq
        if not has_token:
            device = Device.with_token(account_seq, BROWSER, values["token"])
        if device is None and only_known:
            raise Refused(404)
        if device is None:
            device = _added(account_seq, BROWSER, {"name": browser.name, **values}, now)
        else:
            if other := _other(device, values):
                drop_device(other.seq, "removed", now)
            _move(device, values)
        token = None if has_token else secrets.token_urlsafe(32)
        if token:
            seen["resync_token_hash"] = sha256_of(token)
        return device.change(**seen), token


def resync(device: Device, subscription: Any) -> None:
    """Give the device its worker's new subscription; `Refused`: (401) if it was removed, (409) if another has it."""
    values = push.provider_of(BROWSER).checked_address({"subscription": subscription})
    with transaction(device.account_seq):
        if Device.find(device.account_seq, device.id) is None:
            raise Refused(401, "The device was removed.")
        if _other(device, values):
            raise Refused(409, "Another device has this subscription.")
        _move(device, values)


def _other(device: Device, values: dict[str, Any]) -> Device | None:
    """Another device of the account that has this subscription."""
    holder = Device.with_token(device.account_seq, BROWSER, values["token"])
    return holder if holder and holder.seq != device.seq else None


def _move(device: Device, values: dict[str, Any]) -> None:
    """Give the device this subscription; call inside `transaction()`. A new endpoint clears the old one's error."""
    if device.token != values["token"]:
        values = {**values, "last_error": None, "last_error_at": None}
    device.change(**values)


def change_device(account_seq: int, device_id: str, settings: dict[str, Any], key_seq: int | None = None) -> Device:
    """Change the name, the least priority to push, the quiet hours and a channel's role, as far as they are sent.

    For its owner, or for the API key that added it. `Refused`: (400) names a wrong value, (404) without the device.
    """
    values = _settings(settings)
    with transaction(account_seq):
        device = _find(account_seq, device_id, key_seq)
        return device.change(**values, **_role(device.kind, settings, device.after_s))


def _role(kind: str, sent: dict[str, Any], before: int | None) -> dict[str, Any]:
    """The column of a role that was sent; only a channel has one."""
    named = next((name for name in ("role", "afterS") if sent.get(name) is not None), None)
    if named is None:
        return {}
    if not PROVIDERS[kind].is_channel:
        raise Refused(400, f"{named} is for channels: a {PROVIDERS[kind].name} device gets everything at once.")
    return {"after_s": channels.checked_after_s(sent, before)}


def _settings(sent: dict[str, Any]) -> dict[str, Any]:
    """The columns of what was sent, except the address."""
    values, name = dict[str, Any](), optional_text(sent, "name")
    if name is not None:
        values["name"] = checked_name(name)
    if sent.get("minPriority") is not None:
        values["min_priority"] = checked_priority(sent["minPriority"], "minPriority")
    if sent.get("quietHours") is not None:
        hours = week_windows.checked_setting(sent["quietHours"], "quietHours")
        values["quiet_hours"] = None if hours == week_windows.OFF else hours
    return values


def _find(account_seq: int, device_id: str, key_seq: int | None) -> Device:
    """The account's device, for its owner or for the API key that added it; `Refused` (404) if there is none."""
    device = Device.find(account_seq, device_id)
    if device is None or key_seq not in (None, device.api_key_seq):
        raise Refused(404)
    return device


def remove_device(account_seq: int, device_id: str, now: int, key_seq: int | None = None) -> None:
    """Remove a device for its owner, or for the API key that added it; raises `Refused` (404) if there is none."""
    with transaction(account_seq):
        drop_device(_find(account_seq, device_id, key_seq).seq, "removed", now)


def drop_device(seq: int, removed_as: str, now: int) -> None:
    """Mark a device as `dead` or `removed`, and settle its pending deliveries; call inside `transaction()`.

    One piece is settled here; `settle_left_behind` takes the rest.
    """
    Device.remove(seq, removed_as, now)
    mails.remove_of_device(seq)
    _settle_some(seq, removed_as, now)


def settle_left_behind(now: int) -> bool:
    """Settle pending deliveries to removed devices, in pieces; returns whether any are left."""
    left = [in_pieces(partial(_settle_piece, *device, now)) for device in deliveries.left_behind()]
    return any(left)


def _settle_piece(account_seq: int, seq: int, removed_as: str, now: int) -> bool:
    with transaction(account_seq):
        return _settle_some(seq, removed_as, now)


def _settle_some(seq: int, removed_as: str, now: int) -> bool:
    """Settle some of the notifications that are pending on a removed device; returns whether there may be more."""
    pending = deliveries.oldest_due(seq, AFTER_ALL, ROWS)
    if removed_as == "dead":
        error = "The device was removed before it could be reached."
        deliveries.fail(device=seq, seqs=pending, error=error, now=now)
    else:
        deliveries.forget(seq, pending)
    channels.fall_back(pending, now)
    notifications.settle_all(pending)
    return len(pending) == ROWS
