"""The deliveries of notifications to devices, and the queries of first attempts and retries."""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from models import ActiveDevice
from store.database import THESE, run, run_later, transaction
from store.enabled import IS_ENABLED, OF_ENABLED
from store.notifications import AGAIN, BEGUN_AT, HAS_IT
from store.rows import Change, Query, columns
from wire.notification import Recorded


class DeliveryDevice(NamedTuple):
    """The columns of a device that a delivery is shown with."""

    id: str
    kind: str
    token: str
    name: str
    removed_at: int | None


class Delivery(NamedTuple):
    """The delivery of one notification to one device."""

    device: DeliveryDevice
    status: str
    attempts: int
    next_attempt_at: int | None
    answered_at: int | None
    error: str | None


class Attempt(NamedTuple):
    """An attempt to push a notification to a device, which nobody else makes at the same time."""

    account_seq: int
    email: str  # the account's
    notification: Recorded
    device: ActiveDevice
    since: int  # when the first attempt was due
    attempts: int  # made before this one


class DueDevice(NamedTuple):
    """A device with an attempt that is due."""

    seq: int
    account_seq: int
    kind: str


SHOWN_STATUS = f"CASE WHEN {AGAIN} THEN 'delivered' ELSE status END"
# The notification's deliveries, in the order in which their devices were added.
of_notification = Query(
    Delivery,
    f"SELECT {columns(Delivery, 'p', device=columns(DeliveryDevice, 'd'), status=SHOWN_STATUS)} FROM delivery p"
    " JOIN device d ON d.seq = p.device_seq"
    " WHERE p.notification_seq = ? ORDER BY d.seq",
).all
# The devices (their seqs) that have the notification.
devices_with = Query(int, f"SELECT device_seq FROM delivery WHERE notification_seq = ? AND {HAS_IT}").all
# The title of the newest notification that a device has, of the account's newest 500.
latest_on = Query(
    str,
    "SELECT n.title FROM (SELECT seq, title FROM notification WHERE account_seq = ?"
    " ORDER BY seq DESC LIMIT 500) n JOIN delivery p ON p.notification_seq = n.seq AND p.device_seq = ?"
    f" AND {HAS_IT} ORDER BY n.seq DESC LIMIT 1",
).first
INSERT = (
    "INSERT INTO delivery (notification_seq, device_seq, status, attempts, next_attempt_at)"
    " VALUES (?, ?, 'pending', 0, ?)"
)
ANOTHER = ", (?, ?, 'pending', 0, ?)"  # row; an account has no more than MAX_DEVICES
IF_MISSING = " ON CONFLICT (notification_seq, device_seq) DO NOTHING"
INSERT_QUIET = INSERT.replace("'pending'", "'quiet'").replace("next_attempt_at", "answered_at")
# A pending delivery of a notification to a device, due then, also if that has it: it stays so, and is tried once.
begin_anew = Change(
    f"{INSERT} ON CONFLICT (notification_seq, device_seq) DO UPDATE SET status = 'pending',"
    " next_attempt_at = excluded.next_attempt_at"
)
WAITING = (  # the devices that have anything pending: one look-up in the index for each, however much that is
    "WITH RECURSIVE waiting (seq) AS (SELECT min(device_seq) FROM delivery WHERE status = 'pending' UNION ALL"
    " SELECT (SELECT min(device_seq) FROM delivery WHERE status = 'pending' AND device_seq > waiting.seq)"
    " FROM waiting WHERE seq IS NOT NULL)"
)
NEXT_DUE = "(SELECT min(next_attempt_at) FROM delivery WHERE status = 'pending' AND device_seq = waiting.seq)"
# When the first pending delivery is due; None if there is none.
next_due_at = Query(int, f"{WAITING} SELECT min({NEXT_DUE}) FROM waiting").first
# How many deliveries are pending.
count_pending = Query(int, "SELECT count(*) FROM delivery WHERE status = 'pending'").one
# The devices for which an attempt is due, the longest due first.
due_devices = Query(
    DueDevice,
    f"{WAITING} SELECT {columns(DueDevice, 'due')} FROM (SELECT d.seq, d.account_seq, d.kind, {NEXT_DUE} AS due_at"
    " FROM waiting JOIN device d ON d.seq = waiting.seq"
    f" WHERE d.removed_at IS NULL AND d.account_seq {OF_ENABLED}) due"
    " WHERE due_at <= ? ORDER BY due_at",
).all
# Some notifications (their seqs) that are due on the device by then, the longest due first.
oldest_due = Query(
    int,
    "SELECT notification_seq FROM delivery WHERE status = 'pending' AND device_seq = ? AND next_attempt_at <= ?"
    " ORDER BY next_attempt_at LIMIT ?",
).all
# The removed devices with pending deliveries: account, seq, and whether `dead` or `removed`.
left_behind = Query(
    tuple[int, int, str],
    f"{WAITING} SELECT d.account_seq, d.seq, d.removed_as FROM waiting JOIN device d ON d.seq = waiting.seq"
    " WHERE d.removed_at IS NOT NULL",
).all
WAITING_DEVICES = f"{WAITING} SELECT d.account_seq, d.seq FROM waiting JOIN device d ON d.seq = waiting.seq"
CLAIM = (
    "UPDATE delivery SET next_attempt_at = ? WHERE notification_seq = ? AND device_seq = ?"
    " AND status = 'pending' AND next_attempt_at <= ?"
)
PARTS = {"notification": columns(Recorded, "n"), "device": columns(ActiveDevice, "d")}
ATTEMPT = Query(
    Attempt,
    f"SELECT {columns(Attempt, 'p', account_seq='a.seq', email='a.email', since=BEGUN_AT, **PARTS)}"
    " FROM delivery p JOIN notification n ON n.seq = p.notification_seq JOIN account a ON a.seq = n.account_seq"
    f" JOIN device d ON d.seq = p.device_seq WHERE p.notification_seq = ? AND p.device_seq = ? AND {IS_ENABLED}",
)
BRING_FORWARD = (
    "UPDATE delivery SET next_attempt_at = next_attempt_at - ? WHERE status = 'pending' AND device_seq = ?"
)
SET_DUE = (
    "UPDATE delivery SET next_attempt_at = ? WHERE notification_seq = ? AND status = 'pending'"
    f" AND device_seq IN {THESE}"
)

# The columns of a delivery that ends. What the device has, it has, whatever became of the repeat.
ENDED = (
    f"next_attempt_at = NULL, answered_at = CASE WHEN {AGAIN} THEN answered_at ELSE :now END,"
    f" error = CASE WHEN {AGAIN} THEN NULL ELSE :error END, status = CASE WHEN {AGAIN} THEN 'delivered' ELSE"
)
LISTED = "notification_seq IN (SELECT value FROM json_each(:seqs))"
# Settle all pending deliveries of these notifications (`seqs`) as failed.
end = Change(f"UPDATE delivery SET {ENDED} 'failed' END WHERE {LISTED} AND status = 'pending'")
# Delete the deliveries of those of these notifications that were snoozed: they are delivered anew.
forget_snoozed = Change(
    "DELETE FROM delivery WHERE notification_seq IN (SELECT notification_seq FROM snooze"
    f" WHERE notification_seq IN {THESE})"
)
# Copy the deliveries of digests that a device has still to get to these of their notifications.
take_from_pending_digests = Change(
    "INSERT INTO delivery (notification_seq, device_seq, status, attempts, next_attempt_at, answered_at, error)"
    " SELECT h.notification_seq, p.device_seq, p.status, p.attempts, p.next_attempt_at, p.answered_at, p.error"
    " FROM held h JOIN notification d ON d.seq = h.digest_seq AND d.is_digest = 1"
    " JOIN delivery p ON p.notification_seq = h.digest_seq"
    f" WHERE h.notification_seq IN {THESE}"
    " AND EXISTS (SELECT 1 FROM delivery WHERE notification_seq = h.digest_seq AND status = 'pending')"
    " ON CONFLICT (notification_seq, device_seq) DO NOTHING"
)
# The devices (their seqs) that the notification `seq`, or its digest, was not pushed to: they were to stay quiet.
quiet_on = Query(
    int,
    "SELECT device_seq FROM delivery WHERE status = 'quiet' AND notification_seq IN"
    " (:seq, (SELECT digest_seq FROM held WHERE notification_seq = :seq))",
).all
OF_DEVICE = f"WHERE device_seq = :device AND {LISTED}"
# Settle these deliveries as failed.
fail = Change(f"UPDATE delivery SET {ENDED} 'failed' END {OF_DEVICE}")
# Make those of these deliveries that are pending ones that are not made.
silence = Change(f"UPDATE delivery SET {ENDED} 'quiet' END {OF_DEVICE} AND status = 'pending'")
KEEP = f"UPDATE delivery SET status = 'delivered', next_attempt_at = NULL {OF_DEVICE} AND {AGAIN}"
FORGET = f"DELETE FROM delivery {OF_DEVICE} AND status = 'pending'"
ANSWER = (
    f"UPDATE delivery SET status = CASE WHEN {AGAIN} THEN 'delivered' ELSE ? END, attempts = attempts + 1,"
    f" next_attempt_at = CASE WHEN {AGAIN} THEN NULL ELSE CAST(? AS BIGINT) END,"
    f" answered_at = CASE WHEN {AGAIN} THEN answered_at ELSE ? END, error = CASE WHEN {AGAIN} THEN NULL ELSE ? END"
    " WHERE notification_seq = ? AND device_seq = ? AND status = 'pending'"
)
# A device has, since then, a notification, whatever became of earlier attempts. It counts even if its owner removed
# the device meanwhile. Nothing is written if the notification was deleted, or if the device had it already.
accept = Change(
    "INSERT INTO delivery (notification_seq, device_seq, status, attempts, answered_at)"
    " SELECT seq, ?, 'delivered', 1, ? FROM notification WHERE seq = ?"
    " ON CONFLICT (notification_seq, device_seq) DO UPDATE SET status = excluded.status,"
    " attempts = delivery.attempts + 1, next_attempt_at = NULL, answered_at = excluded.answered_at, error = NULL"
    " WHERE delivery.status <> excluded.status"
).later


def add(notification_seq: int, devices: Iterable[ActiveDevice], next_attempt_at: int) -> None:
    """A pending delivery to each device that has none, due at `next_attempt_at` unless an outcome comes first."""
    rows = [(notification_seq, device.seq, next_attempt_at) for device in devices]
    if rows:
        run_later(INSERT + ANOTHER * (len(rows) - 1) + IF_MISSING, tuple(chain.from_iterable(rows)))


def add_quiet(notification_seq: int, devices: Iterable[ActiveDevice], now: int) -> None:
    """A delivery to each of these devices, which is not made."""
    for device in devices:
        run(INSERT_QUIET, (notification_seq, device.seq, now))


def claim(due: Iterable[tuple[int, int]], now: int, lease_until: int) -> list[Attempt]:
    """Take these attempts (notification, device) with a lease: nobody else does before `lease_until`.

    Without those that another process took or that were settled meanwhile, and those of a disabled account.
    """
    taken = [one for one in due if run(CLAIM, (lease_until, *one, now)).rowcount]
    found = [ATTEMPT.first(*one) for one in taken]
    return [attempt for attempt in found if attempt]


def answer(
    notification_seq: int, device_seq: int, status: str, error: str | None, next_attempt_at: int | None, now: int
) -> None:
    """Record the outcome of one attempt.

    A delivery that was settled meanwhile, as one that is replaced, stays as it is unless the device has it now.
    """
    if status == "delivered":
        accept(device_seq, now, notification_seq)
    else:
        run_later(ANSWER, (status, next_attempt_at, now, error, notification_seq, device_seq))


def bring_forward(by_ms: int) -> None:
    """Make all pending deliveries due earlier, one device after the other."""
    for account_seq, device_seq in run(WAITING_DEVICES).fetchall():
        with transaction(account_seq):
            run(BRING_FORWARD, (by_ms, device_seq))


def set_due(notification_seq: int, devices: Iterable[ActiveDevice], due_at: int) -> None:
    """Make the notification's pending deliveries to these devices due then."""
    run(SET_DUE, (due_at, notification_seq, [device.seq for device in devices]))


def forget(device_seq: int, notification_seqs: list[int]) -> None:
    """Delete these pending deliveries, as if the device had never been asked; what it has, it has."""
    values = {"device": device_seq, "seqs": notification_seqs}
    run(KEEP, values)
    run(FORGET, values)
