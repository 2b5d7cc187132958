"""The fallbacks that wait for a notification, and their queries."""

from collections.abc import Iterable
from typing import NamedTuple

from models import ActiveDevice
from store.database import run, transaction
from store.enabled import OF_ENABLED
from store.notifications import HAS_IT
from store.rows import Query, columns


class Waiting(NamedTuple):
    """A fallback that waits for a notification."""

    notification_seq: int
    device_seq: int
    account_seq: int
    due_at: int
    is_over: bool  # whether it will not get it: another device has it, it has expired, or the like
    is_tried: bool  # whether another device is still being tried


INSERT = (  # again after a snooze
    "INSERT INTO fallback (notification_seq, device_seq, account_seq, due_at)"
    " SELECT seq, ?, account_seq, ? FROM notification WHERE seq = ?"
    " ON CONFLICT (notification_seq, device_seq) DO UPDATE SET due_at = excluded.due_at"
)
OTHER = "EXISTS (SELECT 1 FROM delivery WHERE notification_seq = f.notification_seq AND"
IS_OVER = (
    "(n.replaced_by IS NOT NULL OR d.removed_at IS NOT NULL OR n.status = 'held'"
    f" OR (n.expires_at IS NOT NULL AND n.expires_at <= :now) OR {OTHER} {HAS_IT})"
    " OR EXISTS (SELECT 1 FROM alarm WHERE notification_seq = n.seq AND state IN ('acknowledged', 'cancelled'))"
    " OR EXISTS (SELECT 1 FROM answer WHERE notification_seq = n.seq)"
    " OR EXISTS (SELECT 1 FROM snooze WHERE notification_seq = n.seq AND until IS NOT NULL))"
)
# The fallbacks that wait for these notifications (`seqs`).
waiting = Query(
    Waiting,
    f"SELECT {columns(Waiting, 'f', is_over=IS_OVER, is_tried=f'''{OTHER} status = 'pending')''')} FROM fallback f"
    " JOIN notification n ON n.seq = f.notification_seq JOIN device d ON d.seq = f.device_seq"
    " WHERE f.notification_seq IN (SELECT value FROM json_each(:seqs)) ORDER BY f.notification_seq, f.device_seq",
).all
# The accounts with a fallback whose time has come, and since when the first one's has.
due_accounts = Query(
    tuple[int, int],
    f"SELECT account_seq, min(due_at) FROM fallback WHERE due_at <= ? AND account_seq {OF_ENABLED}"
    " GROUP BY account_seq",
).all
# Some notifications (their seqs) of the account for which a fallback's time has come.
due = Query(int, "SELECT DISTINCT notification_seq FROM fallback WHERE account_seq = ? AND due_at <= ? LIMIT ?").all


def add(notification_seq: int, devices: Iterable[ActiveDevice], now: int) -> None:
    """Let these fallbacks wait, each for its time."""
    for device in devices:
        run(INSERT, (device.seq, now + 1000 * (device.after_s or 0), notification_seq))


def remove(some: Iterable[Waiting]) -> None:
    """Let these wait no longer."""
    for one in some:
        run(
            "DELETE FROM fallback WHERE notification_seq = ? AND device_seq = ?",
            (one.notification_seq, one.device_seq),
        )


def bring_forward(by_ms: int) -> None:
    """Make the times of all fallbacks earlier, one account after the other."""
    for (account_seq,) in run("SELECT DISTINCT account_seq FROM fallback").fetchall():
        with transaction(account_seq):
            run("UPDATE fallback SET due_at = due_at - ? WHERE account_seq = ?", (by_ms, account_seq))
