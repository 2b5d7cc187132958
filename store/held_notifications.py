"""The table of held notifications and its queries. Callers decide how long something is held.

Those of a sender and a priority are a group: they are released together.
"""

from collections.abc import Iterable
from typing import NamedTuple

from store.database import AFTER_ALL, THESE, run
from store.enabled import IS_ENABLED, OF_ENABLED
from store.rows import Change, Query, columns, overdue
from store.senders import QUIET_HOURS_OF_ALERT, Sender, SnoozedSender, Subject
from wire.notification import DEFAULT_PRIORITY, MIN_PRIORITY, Recorded

# Of senders, by `held.kind`. The last two are of what was snoozed, which quiet hours hold, too, and no frequency: the
# last one, of an alert if there is a `sender_seq`, else of the owner.
KINDS = ("alert", "key", "heartbeat", "rule", "owner", "key", "owner")
ALERT, KEY, OWNER = (KINDS.index(kind) for kind in ("alert", "key", "owner"))
SNOOZED = len(KINDS) - 1
OF_SNOOZED = {kind: place for place, kind in enumerate(KINDS)} | {"alert": SNOOZED}


class HeldGroup(NamedTuple):
    """A sender's held notifications of a priority: their number, the first one's time, what holds them."""

    account_seq: int
    kind: int
    sender_seq: int  # 0, or that of a deleted alert: the quiet hours alone hold them
    priority: int  # the default also for lower ones: they are collected together
    held_count: int
    first_held_at: int
    time_zone: str
    quiet_hours: str | None  # also None for what they do not hold
    urgent_passes_quiet_hours: int
    frequency: str
    has_mutes: int  # whether the account may have mutes

    @property
    def subject(self) -> Subject:
        """What a mute may name."""
        kind = ALERT if self.kind == SNOOZED and self.sender_seq else self.kind
        return KINDS[kind], self.sender_seq


class HeldOne(NamedTuple):
    """A held notification."""

    notification_seq: int
    priority: int
    expires_at: int | None


class HeldText(NamedTuple):
    """The beginnings of a held notification's texts."""

    title: str
    body: str


def _collected_with(priority: int) -> range:
    return range(MIN_PRIORITY if priority == DEFAULT_PRIORITY else priority, priority + 1)


INSERT = (  # one that takes the place of others has waited as long as they have
    "INSERT INTO held (notification_seq, account_seq, kind, sender_seq, created_at, priority, expires_at)"
    " VALUES (:seq, :account, :kind, :sender, (SELECT coalesce(min(created_at), :now) FROM held"
    " WHERE digest_seq = :seq AND kind = :kind AND sender_seq = :sender), :priority, :expires_at)"
)
FOLLOWING = f"h.kind NOT IN ({KEY}, {OWNER})"  # the quiet hours
OF_GROUP = {
    "time_zone": "a.time_zone",
    "has_mutes": "a.has_mutes",
    "quiet_hours": f"CASE WHEN {FOLLOWING} THEN {QUIET_HOURS_OF_ALERT} END",
    "urgent_passes_quiet_hours": "coalesce(l.urgent_passes_quiet_hours, 0)",  # the alert may have been deleted
    "frequency": f"CASE h.kind WHEN {ALERT} THEN coalesce(l.frequency, 'instant') ELSE 'instant' END",
}
# The innermost query reads an index in its order. Priorities that are collected together are joined after it.
BY_PRIORITY = (
    "SELECT account_seq, kind, sender_seq, priority, count(*) AS held_count, min(created_at) AS first_held_at"
    " FROM held WHERE digest_seq IS NULL AND account_seq BETWEEN ? AND ?"
    " GROUP BY account_seq, kind, sender_seq, priority"
)
GROUPS = Query(
    HeldGroup,
    f"SELECT {columns(HeldGroup, 'h', **OF_GROUP)} FROM (SELECT account_seq, kind, sender_seq,"
    f" max(priority, {DEFAULT_PRIORITY}) AS priority, sum(held_count) AS held_count,"
    f" min(first_held_at) AS first_held_at FROM ({BY_PRIORITY}) p GROUP BY 1, 2, 3, 4) h"
    f" JOIN account a ON a.seq = h.account_seq AND {IS_ENABLED}"
    f" LEFT JOIN alert l ON h.kind IN ({ALERT}, {SNOOZED}) AND l.seq = h.sender_seq",
)
OLDEST = Query(
    HeldOne,
    f"SELECT {columns(HeldOne, 'h')} FROM held h WHERE digest_seq IS NULL AND account_seq = ?"
    f" AND account_seq {OF_ENABLED}"
    " AND (kind, sender_seq, priority) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),"
    " json_extract(value, '$[2]') FROM json_each(?))"
    " ORDER BY notification_seq LIMIT ?",
)
LENGTH = "CAST(:length AS INTEGER)"
# The first `length` characters of the title and the body of these notifications, oldest first.
texts = Query(
    HeldText,
    f"SELECT {columns(HeldText, 'n', title=f'substr(n.title, 1, {LENGTH})', body=f'substr(n.body, 1, {LENGTH})')}"
    " FROM notification n WHERE seq IN (SELECT value FROM json_each(:seqs)) ORDER BY seq",
).all
IN_DIGESTS = (
    f"FROM held h JOIN notification d ON d.seq = h.digest_seq WHERE d.is_digest = 1 AND h.notification_seq IN {THESE}"
)
# The seqs of the digests that some of these notifications were released in.
digests_of = Query(int, f"SELECT DISTINCT d.seq {IN_DIGESTS}").all
IN_PENDING_DIGEST = (
    f"SELECT h.notification_seq, h.digest_seq {IN_DIGESTS}"
    " AND EXISTS (SELECT 1 FROM delivery WHERE notification_seq = h.digest_seq AND status = 'pending')"
)
# Which of these notifications (their seqs) are digests.
digests_among = Query(int, f"SELECT seq FROM notification WHERE is_digest = 1 AND seq IN {THESE}").all
# The kind, the sender and the priority of a held notification's group; None if it is in none.
group_of = Query(
    tuple[int, int, int],
    f"SELECT kind, sender_seq, max(priority, {DEFAULT_PRIORITY}) FROM held"
    " WHERE notification_seq = ? AND digest_seq IS NULL",
).first
LINES = "FROM held WHERE digest_seq = ? AND priority > 0"
# The first notifications (their seqs) with a line in a digest, oldest first.
lines = Query(int, f"SELECT notification_seq {LINES} ORDER BY notification_seq LIMIT ?").all
# How many notifications with a line in a digest are left, and the highest of their priorities (else 0).
left_in = Query(tuple[int, int], f"SELECT count(*), coalesce(max(priority), 0) {LINES}").one
PUT_IN_DIGEST = f"UPDATE held SET digest_seq = ? WHERE notification_seq IN {THESE}"
MOVE = f"UPDATE held SET digest_seq = ? WHERE digest_seq IN {THESE}"
PUT_BEHIND = f"UPDATE held SET digest_seq = ?, priority = 0 WHERE digest_seq IS NULL AND notification_seq IN {THESE}"
REPLACED_BY = Query(int, f"SELECT notification_seq FROM held WHERE priority = 0 AND digest_seq IN {THESE}")
# How many notifications are held.
count = Query(int, "SELECT count(*) FROM held WHERE digest_seq IS NULL").one
SETTLE = (
    "UPDATE notification SET status ="
    " (SELECT CASE t.status WHEN 'delivered' THEN 'delivered' ELSE 'failed' END FROM held h"
    " JOIN notification t ON t.seq = h.digest_seq WHERE h.notification_seq = notification.seq)"
    f" WHERE seq IN {THESE} AND status = 'held'"  # it may have one, since a repeat
)
# Stop holding a notification that was pushed before and then snoozed, if it is held.
leave_snoozed = Change(
    "DELETE FROM held WHERE notification_seq = ? AND digest_seq IS NULL"
    " AND EXISTS (SELECT 1 FROM snooze WHERE snooze.notification_seq = held.notification_seq)"
)
# Delete the rows of these notifications, which go their own ways.
remove = Change(f"DELETE FROM held WHERE notification_seq IN {THESE}")

expired = overdue("held", "expires_at", "notification_seq", "digest_seq IS NULL")  # while they are held


def add(notification: Recorded, sender: Sender) -> None:
    """Hold a notification whose status is `held`; call inside the transaction that makes it."""
    content, (kind, sender_seq) = notification.content, sender.subject
    number = OF_SNOOZED[kind] if isinstance(sender, SnoozedSender) else KINDS.index(kind)
    row = {"seq": notification.seq, "account": sender.account_seq, "kind": number, "sender": sender_seq}
    row |= {"now": notification.created_at, "priority": content.priority or DEFAULT_PRIORITY}
    run(INSERT, row | {"expires_at": content.expires_at})


def groups() -> list[HeldGroup]:
    """Every sender that has notifications held, by their priorities."""
    return GROUPS.all(0, AFTER_ALL)


def of_account(account_seq: int) -> list[HeldGroup]:
    """Every sender of the account that has notifications held, by their priorities."""
    return GROUPS.all(account_seq, account_seq)


def oldest(account_seq: int, groups: Iterable[HeldGroup], limit: int) -> list[HeldOne]:
    """The oldest notifications held in these groups, oldest first."""
    wanted = [(one.kind, one.sender_seq, priority) for one in groups for priority in _collected_with(one.priority)]
    return OLDEST.all(account_seq, wanted, limit)


def put_in_digest(seqs: list[int], digest_seq: int) -> None:
    """Let these, and those that they replaced, have the status of the digest."""
    run(PUT_IN_DIGEST, (digest_seq, seqs))
    run(MOVE, (digest_seq, seqs))


def put_behind(seqs: list[int], newer_seq: int) -> None:
    """Let a newer notification with their tag stand for the held ones among these, and for what they replaced.

    They have its status from now on, and no line in its digest.
    """
    run(PUT_BEHIND, (newer_seq, seqs))
    run(MOVE, (newer_seq, seqs))


def settle_replaced(newer_seqs: list[int]) -> None:
    """Give the notifications for which these stand a status of their own."""
    _settle(REPLACED_BY.all(newer_seqs))


def leave_pending_digests(seqs: list[int]) -> set[int]:
    """Take these notifications out of the digests that a device has still to get; returns those digests.

    They have a status of their own from then on.
    """
    found = run(IN_PENDING_DIGEST, (seqs,)).fetchall()
    _settle([seq for seq, _ in found])
    return {digest_seq for _, digest_seq in found}


def _settle(seqs: list[int]) -> None:
    run(SETTLE, (seqs,))
    remove(seqs)


HOPS = f"SELECT seq, hops FROM notification WHERE hops IS NOT NULL AND seq IN {THESE}"


def hops_of(seqs: list[int]) -> dict[int, int]:
    """How many services each of these came through, if any."""
    return dict(run(HOPS, (seqs,)).fetchall())
