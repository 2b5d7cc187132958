"""Releasing what quiet hours or a frequency held: as itself, or many as one digest (CONTRACT 4).

Whether something is held still is asked anew in each round. One transaction takes all that an account gets now out of
`held` and makes it due; pushing and retrying are those of any notification. Must not know requests or providers.
"""

from bisect import bisect_left
from collections import defaultdict

import delivery
import push
import quiet
from database import transaction
from history import Delivery, Notification, NotificationRow
from models import Device

DIGEST_BYTES = 3_000  # of its lines as JSON: every provider takes that much, and what else belongs to a push
LEAST_LINE = 24  # characters of a line that is worth showing
MOST_LINES = DIGEST_BYTES // LEAST_LINE


def release_due(now: int) -> None:
    """Release what nothing holds any more, all of an account together."""
    released = defaultdict[int, list[int]](list)
    for alert in Notification.held():
        if not quiet.is_held(alert.frequency, alert.first_held_at, alert.quiet_hours, alert.time_zone, now):
            released[alert.account_seq].append(alert.alert_seq)
    for account_seq, alert_seqs in released.items():
        _release(account_seq, alert_seqs, now)
    if released:
        delivery.due.set()


def _release(account_seq: int, alert_seqs: list[int], now: int) -> None:
    with transaction():
        count = Notification.count_held(account_seq, alert_seqs)
        if not count:  # another process was faster
            return
        devices = Device.active(account_seq)
        status = delivery.first_status(account_seq, devices)
        oldest = Notification.oldest_held(account_seq, alert_seqs, MOST_LINES, DIGEST_BYTES)
        digest_seq = None
        if devices and count > 1:
            title = f"{delivery.TITLE_PREFIX}{count} notifications"
            digest_seq = Notification.add_digest(account_seq, title, digest_body(oldest, count), now)
        Notification.release(account_seq, alert_seqs, status, digest_seq, now)
        Delivery.add(digest_seq or oldest[0].seq, devices, now)


def digest_body(oldest: list[NotificationRow], count: int) -> str:
    """One line for each of `count` notifications, of which the oldest are given; shortened to fit a push."""
    lines = [_line(notification) for notification in oldest]
    widths = range(LEAST_LINE, DIGEST_BYTES)
    too_wide = bisect_left(widths, True, key=lambda width: not _fits(_cut(lines, width)))
    lines = _cut(lines, widths[max(0, too_wide - 1)])
    if len(lines) == count and _fits(lines):
        return "\n".join(lines)
    while not _fits([*lines, _rest(lines, count)]):
        lines.pop()
    return "\n".join([*lines, _rest(lines, count)])


def _line(notification: NotificationRow) -> str:
    title = " ".join(notification.title.removeprefix(delivery.TITLE_PREFIX).split())
    body = " ".join(notification.body.split())
    return f"{title}: {body}" if body else title


def _cut(lines: list[str], width: int) -> list[str]:
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines]


def _rest(lines: list[str], count: int) -> str:
    return f"… and {count - len(lines)} more"


def _fits(lines: list[str]) -> bool:
    return len(push.compact_json("\n".join(lines))) <= DIGEST_BYTES
