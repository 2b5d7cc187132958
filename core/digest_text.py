"""The text of a digest: one line for each of its notifications, shortened to fit a push.

Must not know when notifications are held or released.
"""

from bisect import bisect_left

from core.value_text import cut
from providers.base import shown
from store import deliveries, held_notifications, notifications
from store.held_notifications import HeldText
from wire.json_text import json_bytes
from wire.notification import DEFAULT_PRIORITY, TITLE_PREFIX, Content

MAX_DIGEST_BYTES = 3_000  # of the lines as JSON: leaves room in a push for the rest of it
MIN_LINE_CHARACTERS = 24  # a shorter line would say too little
MAX_LINES = MAX_DIGEST_BYTES // MIN_LINE_CHARACTERS


def digest_of(oldest: list[int], count: int, highest: int) -> Content:
    """The digest of `count` notifications, whose oldest have these seqs, with the highest of their priorities."""
    body = digest_body(held_notifications.texts(seqs=oldest, length=MAX_DIGEST_BYTES + 1), count)
    title = f"{count} notification{'' if count == 1 else 's'}"
    return Content(title, body, priority=given_priority(highest)).prefixed()


def given_priority(priority: int) -> int | None:
    """The priority as a sender gives it: None is the default."""
    return None if priority == DEFAULT_PRIORITY else priority


def leave_pending(account_seq: int, seqs: list[int], why: str, now: int) -> None:
    """Leave these notifications out of the digests that a device has still to get; call inside `transaction()`.

    Their deliveries are their own from then on. A digest that a device has stays, though nothing is left to push.
    """
    if not seqs:
        return
    deliveries.take_from_pending_digests(seqs)
    for digest_seq in held_notifications.leave_pending_digests(seqs):
        if _is_rewritten(account_seq, digest_seq):
            continue
        if deliveries.devices_with(digest_seq):
            deliveries.end(seqs=[digest_seq], error=why, now=now)
        else:
            _delete(account_seq, digest_seq)


def leave_out(account_seq: int, digest_seq: int) -> None:
    """Rewrite a digest that has lost notifications, or delete it if none is left; call inside `transaction()`."""
    if not _is_rewritten(account_seq, digest_seq):
        _delete(account_seq, digest_seq)


def _is_rewritten(account_seq: int, digest_seq: int) -> bool:
    """Give a digest the text and the priority of the lines that are left; returns whether there are any."""
    count, highest = held_notifications.left_in(digest_seq)
    if count:
        lines = held_notifications.lines(digest_seq, MAX_LINES)
        notifications.rewrite(account_seq, digest_seq, digest_of(lines, count, highest))
    return count > 0


def _delete(account_seq: int, digest_seq: int) -> None:
    held_notifications.settle_replaced([digest_seq])
    notifications.delete_all(account_seq, [digest_seq])


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
    while not _fits(all_lines := _with_rest(lines, count)):
        lines.pop()
    return "\n".join(all_lines)


def _line(text: HeldText) -> str:
    title = " ".join(shown(text.title.removeprefix(TITLE_PREFIX)).split())
    body = " ".join(shown(text.body).split())
    return f"{title}: {body}" if body else title


def _cut(lines: list[str], width: int) -> list[str]:
    return [cut(line, width) for line in lines]


def _with_rest(lines: list[str], count: int) -> list[str]:
    return [*lines, f"… and {count - len(lines)} more"] if len(lines) < count else lines


def _fits(lines: list[str]) -> bool:
    return len(json_bytes("\n".join(lines))) <= MAX_DIGEST_BYTES
