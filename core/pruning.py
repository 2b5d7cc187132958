"""Retention: removing old rows and excess values in the background.

It works in pieces, and only while the clock can be believed. Must not know requests.
"""

import json
import logging
from collections.abc import Callable, Iterator
from functools import partial

from core import idempotency, pictures
from core.pieces import ROWS, for_each_account, in_pieces
from core.plans import PLANS, history_begin
from models import Account, ApiKey, Device
from process import clock
from process.clock import DAY_MS
from store import buttons, custom_metrics, followers, idempotency_keys, mutes, notifications, server_notes
from store.database import transaction

KEPT_AFTER_END_MS = 90 * DAY_MS  # revoked keys and removed devices
MAX_EXCESS = 100_000  # values beyond the plan's limit that are found at once: their times are sorted in memory
JUMP_MS = DAY_MS  # a greater jump of the clock is not believed at once
NOTE = "clock"  # the last time that was believed, and a later one that is doubted, or null

log = logging.getLogger("pocketbell")

_looked: tuple[int, float] | None = None  # the last believed time, and the monotonic one then
_passed: dict[int, int] = {}  # by account: the seq up to which a removal under way has looked at the history


def prune(now: int) -> bool:
    """Remove old rows except for values of metrics, for a while; returns whether more are left."""
    if not believes_clock(now):
        return False
    left = [
        in_pieces(partial(job, now)) for job in (_prune_idempotency_keys, _prune_buttons, pictures.remove_expired)
    ]
    for account in Account.all():
        left += [
            job(account, now) for job in (_prune_history, _prune_mutes, _prune_followers, _purge_keys, _purge_devices)
        ]
    return any(left)


def prune_metrics(now: int) -> bool:
    """Remove values of metrics that are too old or too many, for a while; returns whether more are left.

    It is separate from `prune`, whose rounds may follow each other every second: each would count all values again.
    """
    if not believes_clock(now):
        return False
    left = [_prune_metrics(account, now) for account in Account.all()]
    return any(left)


# --- the clock ----------------------------------------------------------------------------------------------


def believes_clock(now: int) -> bool:
    """Whether rows that are too old at `now` may be removed: a clock a year ahead must not erase a year of history.

    A jump forward of more than a day, also between two starts, is believed a day later.
    """
    global _looked
    note, newest, now_s = server_notes.find(NOTE), notifications.newest_at(), clock.monotonic_s()
    believed, doubted = json.loads(note) if note else (now if newest is None else newest, None)
    then, then_s = _looked or (believed, now_s)
    is_near = now <= then + (now_s - then_s) * 1000 + JUMP_MS
    if is_near or (doubted is not None and now >= doubted + DAY_MS):
        server_notes.put(NOTE, json.dumps([now, None]))
        _looked = now, now_s
        return True
    if doubted is None or now < doubted:
        days = (now - believed) // DAY_MS
        log.warning("The clock jumped %d days ahead: no old data is removed for a day.", days)
        server_notes.put(NOTE, json.dumps([believed, now]))
    return False


# --- the pieces ---------------------------------------------------------------------------------------------


def _prune_history(account: Account, now: int) -> bool:
    """Remove notifications that are older than the plan keeps them; a held or pending one only when it is done.

    Rows that may not be removed yet are passed over: there may be more of them than a round can look at.
    """
    before = history_begin(account.plan, now)

    def piece() -> bool:
        after = _passed.get(account.seq, 0)
        oldest = notifications.oldest(account=account.seq, after=after, before=before, limit=ROWS)
        if done := [seq for seq, is_done in oldest if is_done]:
            with transaction(account.seq):
                notifications.delete_all(account.seq, done)
        if oldest:
            _passed[account.seq] = oldest[-1][0]
        else:
            _passed.pop(account.seq, None)
        return bool(oldest)

    return in_pieces(piece)


def _prune_idempotency_keys(now: int) -> bool:
    """Remove Idempotency-Keys that have expired."""
    before = now - idempotency.LIFE_MS
    found = idempotency_keys.expired(before, ROWS)
    return for_each_account(found, lambda account_seq, keys: idempotency_keys.prune(account_seq, keys, before))


def _prune_buttons(now: int) -> bool:
    """Remove buttons whose tokens have expired."""
    return for_each_account(buttons.expired(now, ROWS), lambda _, seqs: buttons.prune(seqs, now))


def _prune_mutes(account: Account, now: int) -> bool:
    """Remove mutes that have ended, and note if none is left."""
    if not account.has_mutes:
        return False
    seqs = mutes.ended(account.seq, now, ROWS)
    with transaction(account.seq):
        mutes.remove(account.seq, seqs)
    return len(seqs) == ROWS


def _prune_followers(account: Account, now: int) -> bool:
    """Remove invitations that have expired, and the followers of keys that have ended."""
    if account.has_followers:
        with transaction(account.seq):
            followers.prune(account.seq, now - followers.INVITATION_LIFE_MS)
    return False


def _prune_metrics(account: Account, now: int) -> bool:
    """Remove values that are older than the plan keeps them, and the oldest of too many."""
    begin, kept = history_begin(account.plan, now), PLANS[account.plan].metric_values
    excess = custom_metrics.count(account=account.seq, since=begin) - kept
    before = begin, 0
    if excess > 0:
        before = custom_metrics.oldest(account=account.seq, since=begin, place=min(excess, MAX_EXCESS))
    places = _older(account.seq, before)
    return in_pieces(lambda: next(places, False)) or excess > MAX_EXCESS


def _older(account_seq: int, before: tuple[int, int]) -> Iterator[bool]:
    """Remove some values older than `before` at each step; yields whether there may be more.

    Each search continues where the last one ended, outside the transaction: there may be a million metrics.
    """
    begin, is_more = ("", ""), True
    while is_more:
        found = custom_metrics.older(account_seq, before, begin, ROWS)
        with transaction(account_seq):
            custom_metrics.remove(account_seq, found)
        is_more = len(found) == ROWS
        begin = found[-1][:2] if found else begin
        yield is_more


def _purge_keys(account: Account, now: int) -> bool:
    """Remove keys that were revoked long ago and that no notification in the history names."""
    begin = history_begin(account.plan, now)
    find = partial(ApiKey.purgeable, account=account.seq, before=now - KEPT_AFTER_END_MS, used=begin)
    return _purge(account.seq, find, ApiKey.purge)


def _purge_devices(account: Account, now: int) -> bool:
    """Remove the rows of devices removed long ago that the history does not name.

    The last removed device stays: its state decides the status of new notifications (`recording.first_status`).
    """
    find = partial(Device.purgeable, account=account.seq, before=now - KEPT_AFTER_END_MS)
    return _purge(account.seq, find, Device.purge)


def _purge(account_seq: int, find: Callable[..., list[int]], remove: Callable[[list[int]], None]) -> bool:
    """Find some rows, outside the transaction as it may take long, and remove them."""

    def piece() -> bool:
        seqs = find(limit=ROWS)
        if seqs:
            with transaction(account_seq):
                remove(seqs)
        return len(seqs) == ROWS

    return in_pieces(piece)
