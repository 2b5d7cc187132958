"""Releasing what quiet hours or a frequency held: as itself, or many as one digest (CONTRACT 4).

Whether something is held still is asked anew in each round. One transaction takes all that an account gets now out of
`held` and makes it due; pushing and retrying are those of any notification. Must not know requests.
"""

import logging
from bisect import bisect_left
from collections import defaultdict

from core import delivery, local_time
from core.message_templates import cut
from models import Device
from providers.base import compact_json, shown
from store.database import transaction
from store.held import Held, HeldOfAlert
from store.notifications import Delivery, Notification, NotificationRow
from wire.errors import log_fault

DIGEST_BYTES = 3_000  # of its lines as JSON: fits in a push with what else belongs to it
LEAST_LINE = 24  # characters of a line that is worth showing
MOST_LINES = DIGEST_BYTES // LEAST_LINE
RELEASED_AT_ONCE = 100_000  # of an account: more would keep writers waiting; the rest is the next digest

log = logging.getLogger("pocketbell")


def release_due(now: int) -> None:
    """Release what nothing holds any more, all of an account together."""
    held = defaultdict[int, list[HeldOfAlert]](list)
    for alert in Held.by_alert():
        held[alert.account_seq].append(alert)
    for account_seq, alerts in held.items():
        try:
            released = [alert.alert_seq for alert in alerts if not _is_held(alert, now)]
            if released:
                _release(account_seq, released, now)
                delivery.due.set()
        except Exception as error:  # the other accounts' must not wait for that
            log_fault(log, "What is held of an account could not be released", error)


def release_now(account_seq: int, now: int) -> int:
    """Release what is held of an account, as its owner asks; answers with how many notifications."""
    released = _release(account_seq, [alert.alert_seq for alert in Held.of_account(account_seq)], now)
    delivery.due.set()
    return released


def releases(held: list[HeldOfAlert], now: int) -> list[int]:
    """When these alerts' notifications will be released, as things stand: each time once, in ms, in order."""
    times = set[int]()
    for window, zone in {(alert.quiet_hours, alert.time_zone) for alert in held}:
        quiet_until = 0
        for end in sorted({_collected_at(alert, now) for alert in held if alert.quiet_hours == window}):
            if window and end >= quiet_until and local_time.is_quiet(window, zone, end):
                quiet_until = local_time.next_change(window, zone, end)
            times.add(max(end, quiet_until))
    return sorted(times)


def _collected_at(alert: HeldOfAlert, now: int) -> int:
    return local_time.collected_at(alert.frequency, alert.first_held_at, now)


def _is_held(alert: HeldOfAlert, now: int) -> bool:
    return local_time.is_held(alert.frequency, alert.first_held_at, alert.quiet_hours, alert.time_zone, now)


def _release(account_seq: int, alert_seqs: list[int], now: int) -> int:
    with transaction():
        seqs = Held.oldest(account_seq, alert_seqs, RELEASED_AT_ONCE)
        if not seqs:  # another process was faster
            return 0
        devices = Device.active(account_seq)
        status = delivery.first_status(account_seq, devices)
        if len(seqs) == 1:
            pushed = seqs[0]
            Notification.release(pushed, status, now)
            Held.remove(pushed)
        else:
            title = f"{delivery.TITLE_PREFIX}{len(seqs)} notifications"
            body = digest_body(Held.texts(seqs[:MOST_LINES], DIGEST_BYTES + 1), len(seqs))
            pushed = Notification.add_digest(account_seq, title, body, status, now)
            Held.put_in_digest(seqs, pushed)
        Delivery.add(pushed, devices, now)
    return len(seqs)


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
    title = " ".join(shown(notification.title.removeprefix(delivery.TITLE_PREFIX)).split())
    body = " ".join(shown(notification.body).split())
    return f"{title}: {body}" if body else title


def _cut(lines: list[str], width: int) -> list[str]:
    return [cut(line, width) for line in lines]


def _rest(lines: list[str], count: int) -> str:
    return f"… and {count - len(lines)} more"


def _fits(lines: list[str]) -> bool:
    return len(compact_json("\n".join(lines))) <= DIGEST_BYTES
