"""Channels: chats, e-mail and other services beside the phones (docs/channels.md), and when they get a notification.

A channel gets everything at once, or is a fallback: it gets what no other device or channel of the account has after
some time. A waiting fallback has a row, and no delivery until it is decided here that it gets one; row and delivery
change in one transaction, so a crash or another process makes neither two deliveries nor none. Must not know requests
or providers' formats.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from core import buttons, durations
from core.pieces import ROWS, in_pieces
from models import Device
from store import deliveries, fallbacks, notifications
from store.database import transaction
from store.fallbacks import Waiting
from store.senders import Receivers
from wire.errors import Refused
from wire.notification import HIGH_PRIORITY
from wire.validation import checked_seconds, optional_text

ALWAYS, FALLBACK = "always", "fallback"
MAX_WAIT_MS = 30_000  # for the outcome of attempts that are under way
MIN_AFTER_S, DEFAULT_AFTER_S, MAX_AFTER_S = 60, 300, 3_600
DEFAULTS = {"after_s": DEFAULT_AFTER_S, "min_priority": HIGH_PRIORITY}  # the columns of a channel that says no more


def role(after_s: int) -> str:
    """The role of a channel with this value."""
    return FALLBACK if after_s else ALWAYS


def in_words(after_s: int) -> str:
    """What a channel with this value gets."""
    if not after_s:
        return "everything at once"
    return f"what nothing else has after {durations.in_words(after_s)}"


def checked_after_s(sent: dict[str, Any], before: int | None) -> int:
    """What `role` and `afterS`, of which one at least is sent, make of a channel's `after_s` (of a new one: None)."""
    wanted, after_s = optional_text(sent, "role"), sent.get("afterS")
    if wanted not in (None, ALWAYS, FALLBACK):
        raise Refused(400, f'role must be "{ALWAYS}" or "{FALLBACK}".', field="role")
    if after_s is not None:
        checked_seconds(after_s, "afterS", MIN_AFTER_S, MAX_AFTER_S)
    if wanted == ALWAYS or (wanted is None and before == 0):
        return 0
    return after_s or before or DEFAULT_AFTER_S


def divided(found: Receivers) -> Receivers:
    """The receivers, of whose devices the fallbacks are set apart.

    If there are only fallbacks, none has to wait for another device: the first of them get it at once.
    """
    waiting = [device for device in found.devices if device.after_s]
    if not waiting:
        return found
    least_s = min(device.after_s or 0 for device in waiting)
    first = [device for device in found.devices if not device.after_s] or [
        device for device in waiting if device.after_s == least_s
    ]
    return found._replace(devices=first, fallbacks=tuple(device for device in waiting if device not in first))


def fall_back(notification_seqs: Iterable[int], now: int) -> bool:
    """Decide which waiting fallbacks get these notifications now, and which never will; whether any get one now.

    One gets it if nothing has it when its time has come, or as soon as all others refused it. Call in
    `transaction()`, before the notifications are settled.
    """
    waiting = defaultdict[int, list[Waiting]](list)
    for one in fallbacks.waiting(now=now, seqs=list(notification_seqs)):
        waiting[one.notification_seq].append(one)
    chosen = [one for some in waiting.values() for one in _chosen(some, now)]
    over = [one for some in waiting.values() for one in some if one.is_over]
    fallbacks.remove(over + chosen)
    for one in chosen:
        _begin(one, now)
    return bool(chosen)


def _chosen(waiting: list[Waiting], now: int) -> list[Waiting]:
    """Those of one notification's fallbacks that get it now."""
    left = [one for one in waiting if not one.is_over]
    due = [one for one in left if one.due_at <= now]
    if due or not left or left[0].is_tried:
        return due
    first_at = min(one.due_at for one in left)
    return [one for one in left if one.due_at == first_at]


def _begin(one: Waiting, now: int) -> None:
    devices = [device for device in Device.active(one.account_seq) if device.seq == one.device_seq]
    deliveries.add(one.notification_seq, devices, now)
    buttons.add(notifications.one(one.notification_seq), devices, now)


def fall_back_due(now: int, busy: Collection[int]) -> None:
    """Decide about the fallbacks whose time has come.

    Those of a `busy` account, for which attempts are under way, wait for the outcomes, though not for long.
    """
    for account_seq, due_at in fallbacks.due_accounts(now):
        if account_seq not in busy or due_at + MAX_WAIT_MS <= now:
            in_pieces(partial(_decide_some, account_seq, now))


def _decide_some(account_seq: int, now: int) -> bool:
    with transaction(account_seq):
        seqs = fallbacks.due(account_seq, now, ROWS)
        fall_back(seqs, now)
        notifications.settle_all(seqs)
    return len(seqs) == ROWS
