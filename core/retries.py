"""Retrying pending deliveries in the background: claiming due attempts, leaving silent devices alone, giving up.

An attempt is claimed with a lease, so that no other process makes it, and is due again when the lease ends: so a
crash between the record and the outcome loses nothing. Must not know requests or providers' formats.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import partial

import push
from core import channels
from core.attempts import EXPIRED, LEASE_MS, PUSH_DEADLINE_S, end_expired, is_expired, note_outcomes, push_all
from core.backoff import GIVEN_UP_AFTER_MS
from core.batches import Batches
from core.digest_text import MAX_LINES
from core.local_time import is_quiet
from core.pieces import ROWS, for_each_account, in_pieces
from models import Account
from process import clock
from providers import PROVIDERS, is_fetched
from providers.base import Answer, Outcome
from store import deliveries, held_notifications, notifications
from store.database import after_commit, transaction
from store.deliveries import Attempt, DueDevice

RETRIES_OF_AN_ACCOUNT = 10  # in one batch
BACKLOG_PAUSE_S = 10.0
SLOW_DEADLINE_S = 20.0  # of what no request waits for; shorter than the lease
GIVEN_UP_EVERY_S = 60.0
NOT_FETCHED = "The ntfy app did not fetch it within 24 hours."

Admitted = Callable[[int, list[Attempt]], list[Attempt]]

batches = Batches("retry", "A batch of retries failed")
# Apart from the others, so that no phone of the account waits for a slow service.
slow_batches = Batches("slow", "A batch of retries to slow services failed", batches.due)

_left_alone_until_s: dict[int, float] = {}  # by device: its backlog rests until then


# --- batches ------------------------------------------------------------------------------------------------


def retry_due(now: int) -> None:
    """Make the attempts that are due, also after a crash between a record and its outcome."""
    start_due(now, batches, push.asked() - push.slow(), awake)
    start_due(now, slow_batches, push.slow(), awake, SLOW_DEADLINE_S)


def start_due(
    now: int, batches: Batches, kinds: Collection[str], admitted: Admitted, deadline_s: float = PUSH_DEADLINE_S
) -> None:
    """Start the batches of attempts that are due on devices of these kinds; each takes at most `deadline_s` seconds.

    `admitted` chooses those of an account's attempts that are made, in the transaction that claims them.
    """
    due = _due(now, batches, kinds) if batches.room > 0 else {}
    for account_seq, batch in due.items():
        work = partial(_retry, account_seq, batch, now, admitted, deadline_s)
        batches.start(account_seq, work, len(batch) == RETRIES_OF_AN_ACCOUNT)


def _due(now: int, batches: Batches, kinds: Collection[str]) -> dict[int, list[tuple[int, int]]]:
    """The next attempts (notification, device) of as many accounts as have room, the longest due first.

    Accounts take turns, and so do the devices of one: a long backlog does not keep the others waiting.
    """
    device_seqs = defaultdict[int, list[int]](list)
    for device in deliveries.due_devices(now):
        if device.kind in kinds and device.account_seq not in batches.busy and not _is_left_alone(device.seq):
            device_seqs[device.account_seq].append(device.seq)
    chosen = dict[int, list[tuple[int, int]]]()
    for account_seq in sorted(device_seqs, key=lambda seq: batches.turns.get(seq, 0))[: batches.room]:
        oldest = [
            (place, notification_seq, device_seq)
            for device_seq in device_seqs[account_seq]
            for place, notification_seq in enumerate(deliveries.oldest_due(device_seq, now, RETRIES_OF_AN_ACCOUNT))
        ]
        first = sorted(oldest)[:RETRIES_OF_AN_ACCOUNT]
        chosen[account_seq] = [(notification, device) for _, notification, device in first]
    return chosen


def _retry(
    account_seq: int, batch: list[tuple[int, int]], due_by: int, admitted: Admitted, deadline_s: float
) -> None:
    """Claim these attempts of an account, make those that have not expired, and settle all their notifications."""
    with transaction(account_seq):
        attempts = admitted(account_seq, deliveries.claim(batch, due_by, due_by + LEASE_MS))
    if not attempts:
        return
    began_at = clock.now_ms()
    contents = {attempt.notification.seq: attempt.notification.content for attempt in attempts}
    made = [attempt for attempt in attempts if not is_expired(attempt.notification.content, began_at)]
    lines = {seq: held_notifications.lines(seq, MAX_LINES) for seq in held_notifications.digests_among([*contents])}
    answers = push_all(made, deadline_s)
    with transaction(account_seq):
        now = clock.now_ms()
        left_alone = note_outcomes(made, answers, now)
        notifications.settle_all(_accept_former_lines(lines, made, answers, now))
        end_expired(contents, now)
        if channels.fall_back(contents, now):
            after_commit(batches.due.set)
        notifications.settle_all(contents)
    leave_alone(left_alone)
    if len(attempts) == RETRIES_OF_AN_ACCOUNT:
        leave_alone(dict.fromkeys(_unsettled_devices(made, answers), BACKLOG_PAUSE_S))


def awake(account_seq: int, attempts: list[Attempt]) -> list[Attempt]:
    """The attempts without those to devices in their quiet hours, which are not made; call inside `transaction()`."""
    account = Account.with_seq(account_seq) if any(attempt.device.quiet_hours for attempt in attempts) else None
    if account is None:
        return attempts
    now, left, quiet = clock.now_ms(), list[Attempt](), list[Attempt]()
    for attempt in attempts:
        (quiet if is_quiet(attempt.device.quiet_hours, account.time_zone, now) else left).append(attempt)
    for attempt in quiet:
        deliveries.silence(seqs=[attempt.notification.seq], device=attempt.device.seq, error=None, now=now)
    silenced = {attempt.notification.seq for attempt in quiet}
    channels.fall_back(silenced, now)
    notifications.settle_all(silenced)
    return left


def _accept_former_lines(
    lines: Mapping[int, list[int]], attempts: list[Attempt], answers: list[Answer], now: int
) -> list[int]:
    """Note what devices took in a digest, though it left that during the push; returns those notifications."""
    former = list[int]()
    for attempt, answer in zip(attempts, answers, strict=True):
        before = lines.get(attempt.notification.seq, []) if answer.outcome is Outcome.DELIVERED else []
        left = set(before).difference(held_notifications.lines(attempt.notification.seq, MAX_LINES) if before else [])
        for seq in left:
            deliveries.accept(attempt.device.seq, now, seq)
        former += left
    return former


# --- devices that are left alone ----------------------------------------------------------------------------


def leave_alone(waits_s: Mapping[int, float]) -> None:
    """Leave the backlogs of these devices alone for a while; `waits_s` has the seconds by the device's seq."""
    for device_seq, wait_s in waits_s.items():
        _left_alone_until_s[device_seq] = clock.monotonic_s() + wait_s


def _is_left_alone(device_seq: int) -> bool:
    if clock.monotonic_s() < _left_alone_until_s.get(device_seq, 0.0):
        return True
    _left_alone_until_s.pop(device_seq, None)
    return False


def _unsettled_devices(attempts: list[Attempt], answers: list[Answer]) -> set[int]:
    """The devices of a full batch for which no attempt was settled: more attempts would fare no better."""
    settled = (Outcome.DELIVERED, Outcome.REFUSED, Outcome.DEAD)
    answered = zip(attempts, answers, strict=True)
    with_any = {attempt.device.seq for attempt, answer in answered if answer.outcome in settled}
    return {attempt.device.seq for attempt in attempts} - with_any


# --- giving up ----------------------------------------------------------------------------------------------


def give_up(now: int) -> bool:
    """Fail deliveries that no attempt is made for; returns whether more are left.

    They were not fetched within a day or before they expired, or waited a day for a provider that is not configured.
    """
    kinds, day_ago = push.configured(), now - GIVEN_UP_AFTER_MS
    over = [(one, now, NOT_FETCHED) for one in deliveries.due_devices(now) if is_fetched(one.kind)]
    without = [one for one in deliveries.due_devices(day_ago) if one.kind not in kinds]
    over += [(one, day_ago, PROVIDERS[one.kind].not_configured()) for one in without]
    return any(in_pieces(partial(_give_up_some, *one, now)) for one in over)  # at most one long backlog a round


def _give_up_some(device: DueDevice, due_by: int, why: str, now: int) -> bool:
    with transaction(device.account_seq):
        seqs = deliveries.oldest_due(device.seq, due_by, ROWS)
        expired = notifications.expired_of(seqs, now)
        deliveries.fail(device=device.seq, seqs=expired, error=EXPIRED, now=now)
        left = [seq for seq in seqs if seq not in expired]
        deliveries.fail(device=device.seq, seqs=left, error=why, now=now)
        channels.fall_back(seqs, now)
        notifications.settle_all(seqs)
    return len(seqs) == ROWS


def settle_expired(now: int) -> bool:
    """Fail notifications that expired before any device had them; returns whether more are left."""

    def settle(_: int, seqs: list[int]) -> None:
        deliveries.end(seqs=seqs, error=EXPIRED, now=now)
        notifications.settle_all(seqs)

    return in_pieces(lambda: for_each_account(notifications.expired(now, ROWS), settle))
