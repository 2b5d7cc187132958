"""Releasing held notifications: one as itself, several as a digest.

Each round decides again which are held. One transaction releases all that an account gets now and makes them due;
then they are pushed and retried like any notification. Must not know requests.
"""

import logging
from bisect import bisect_left
from collections import defaultdict

from core import delivery, holding, local_time
from core.devices import receivers
from core.value_text import cut
from process import clock
from process.faults import log_fault
from providers.base import shown
from store import alarms, held_notifications, notifications
from store.database import transaction
from store.held_notifications import HeldOfAlert, HeldText
from wire.json_text import json_bytes
from wire.notification import DEFAULT_PRIORITY, TITLE_PREFIX, Content

MAX_DIGEST_BYTES = 3_000  # of the lines as JSON: leaves room in a push for the rest of it
MIN_LINE_CHARACTERS = 24  # a shorter line would say too little
MAX_LINES = MAX_DIGEST_BYTES // MIN_LINE_CHARACTERS
MAX_RELEASED = 100_000  # of an account at once: more would keep writers waiting; the rest is the next digest

log = logging.getLogger("pocketbell")


def release_due(now: int) -> None:
    """Release the notifications that are no longer held, all of an account together."""
    held = defaultdict[int, list[HeldOfAlert]](list)
    for alert in held_notifications.by_alert():
        held[alert.account_seq].append(alert)
    for account_seq, alerts in held.items():
        try:
            released = [one for one in alerts if not holding.is_held(one, one.priority, one.first_held_at, now)]
            if released:
                _release(account_seq, released)
        except Exception as error:  # the other accounts must not wait for this one
            log_fault(log, "An account's held notifications could not be released", error)


def release_now(account_seq: int) -> int:
    """Release all that is held for an account, as its owner asks; returns how many notifications."""
    return _release(account_seq, held_notifications.of_account(account_seq))


def releases(held: list[HeldOfAlert], now: int) -> list[int]:
    """The times (ms, in order, each once) at which these alerts' notifications will be released, as things stand."""
    times, ends = set[int](), defaultdict[tuple[str | None, str], set[int]](set)
    for alert in held:
        frequency, window = holding.what_holds(alert, alert.priority)
        ends[window, alert.time_zone].add(local_time.collected_at(frequency, alert.first_held_at, now))
    for (window, zone), collected in ends.items():
        quiet_until = 0
        for end in sorted(collected):
            if window and end >= quiet_until and local_time.is_quiet(window, zone, end):
                quiet_until = local_time.next_change(window, zone, end)
            times.add(max(end, quiet_until))
    return sorted(times)


def _release(account_seq: int, alerts: list[HeldOfAlert]) -> int:
    with transaction(account_seq):
        held = held_notifications.oldest(account_seq, alerts, MAX_RELEASED)
        if not held:  # another process was faster
            return 0
        now = clock.now_ms()  # read inside, so that streams of other processes do not pass it over
        seqs, highest = [one.notification_seq for one in held], max(one.priority for one in held)
        priority = None if highest == DEFAULT_PRIORITY else highest
        found = receivers(account_seq, priority, now)
        status = delivery.first_status(found, priority)
        if len(seqs) == 1:
            pushed = seqs[0]
            notifications.release(pushed, status, now)
            held_notifications.remove(pushed)
        else:
            content = _content(seqs[:MAX_LINES], len(seqs))._replace(priority=priority)
            pushed = notifications.add_digest(account_seq, content, status, now)
            held_notifications.put_in_digest(seqs, pushed)
            alarms.begin(seqs, now)
        delivery.begin(notifications.one(pushed), found, now, now)
    return len(seqs)


def leave_out(account_seq: int, digest_seq: int) -> None:
    """Rewrite a digest without its deleted notifications, or delete it if empty; call inside `transaction()`."""
    left = held_notifications.count_lines(digest_seq)
    if left:
        lines = held_notifications.lines(digest_seq, MAX_LINES)
        notifications.rewrite(account_seq, digest_seq, _content(lines, left))
    else:
        held_notifications.settle_replaced([digest_seq])
        notifications.delete_all(account_seq, [digest_seq])


def _content(oldest: list[int], count: int) -> Content:
    """The text of a digest of `count` notifications, whose oldest have these seqs."""
    body = digest_body(held_notifications.texts(oldest, MAX_DIGEST_BYTES + 1), count)
    return Content(f"{count} notification{'' if count == 1 else 's'}", body).prefixed()


def digest_body(oldest: list[HeldText], count: int) -> str:
    """One line for each of `count` notifications, the oldest of which are given; shortened to fit a push.

    All lines are cut at the greatest width at which they fit together. If they do not fit at the least width, the
    last lines are replaced by one with their number.
    """
    lines = [_line(text) for text in oldest]
    widths = range(MIN_LINE_CHARACTERS, MAX_DIGEST_BYTES)
    # Whether the lines are too long goes from False to True as the width grows: a bisection finds the first True.
    too_wide = bisect_left(widths, True, key=lambda width: not _fits(_cut(lines, width)))
    lines = _cut(lines, widths[max(0, too_wide - 1)])
    if len(lines) == count and _fits(lines):
        return "\n".join(lines)
    while not _fits([*lines, _rest(lines, count)]):
        lines.pop()
    return "\n".join([*lines, _rest(lines, count)])


def _line(text: HeldText) -> str:
    title = " ".join(shown(text.title.removeprefix(TITLE_PREFIX)).split())
    body = " ".join(shown(text.body).split())
    return f"{title}: {body}" if body else title


def _cut(lines: list[str], width: int) -> list[str]:
    return [cut(line, width) for line in lines]


def _rest(lines: list[str], count: int) -> str:
    return f"… and {count - len(lines)} more"


def _fits(lines: list[str]) -> bool:
    return len(json_bytes("\n".join(lines))) <= MAX_DIGEST_BYTES
