"""The notifications that repeat until they are acknowledged, and their queries."""

from collections.abc import Iterable
from typing import NamedTuple

from store.database import AFTER_ALL, THESE, run, transaction
from store.enabled import IS_ENABLED, OF_ENABLED
from store.notifications import STATUS
from store.rows import Change, Query, columns
from wire.notification import Recorded


class DueAlarm(NamedTuple):
    """An alarm with a push that is due, and since when."""

    notification_seq: int
    account_seq: int
    next_at: int


class Alarm(NamedTuple):
    """The state of a notification that repeats until it is acknowledged, or did, or was acknowledged."""

    state: str
    ends_at: int | None
    repeats: int
    acknowledged_at: int | None
    device: str | None  # the name of the device on which it was acknowledged, if any
    by: str | None  # the address of the account that acknowledged it, if it was another one


class WaitingAlarm(NamedTuple):
    """A notification that repeats because nobody has acknowledged it."""

    id: str
    title: str
    body: str
    created_at: int
    repeats: int


class ClaimedAlarm(NamedTuple):
    """An alarm whose push nobody else makes at the same time."""

    account_seq: int
    email: str  # the account's
    notification: Recorded  # with the status in its row
    state: str
    ends_at: int
    repeats: int
    device_seq: int | None  # where it was acknowledged, and that device's name
    device: str | None
    by: str | None  # the address of the account that did, if it was another one


# Add an alarm, of a notification and its account, that waits and has not begun to repeat.
add = Change("INSERT INTO alarm (notification_seq, account_seq, state, repeats) VALUES (?, ?, 'waiting', 0)")
# Add an alarm that never rings to each of these notifications without one, so that it can be acknowledged.
add_silent = Change(  # a held notification is on no screen
    "INSERT INTO alarm (notification_seq, account_seq, state, ends_at, repeats)"
    f" SELECT seq, account_seq, 'expired', CASE {STATUS} WHEN 'held' THEN NULL ELSE CAST(? AS BIGINT) END, 0"
    f" FROM notification n WHERE seq IN {THESE} AND NOT EXISTS (SELECT 1 FROM alarm WHERE notification_seq = seq)"
)
# The number of the account's waiting alarms, without those that a notification with this tag would replace.
count_waiting = Query(
    int,
    "SELECT count(*) FROM alarm a JOIN notification n ON n.seq = a.notification_seq"
    " WHERE a.account_seq = ? AND a.state = 'waiting' AND (n.tag IS NULL OR n.tag IS NOT ?)",
).one
IS_REPLACED = "(SELECT replaced_by FROM notification n WHERE n.seq = notification_seq) IS NOT NULL"
# Start the repeats of the waiting notifications among these `seqs`.
begin = Change(
    "UPDATE alarm SET ends_at = :now + 1000 * json_extract(n.acknowledge, '$[1]'),"
    " next_at = min(:now + 1000 * json_extract(n.acknowledge, '$[0]'),"
    f" :now + 1000 * json_extract(n.acknowledge, '$[1]') + 1, coalesce(n.expires_at, {AFTER_ALL}))"
    " FROM notification n"
    " WHERE n.seq = alarm.notification_seq AND alarm.state = 'waiting' AND alarm.ends_at IS NULL"
    " AND alarm.notification_seq IN (SELECT value FROM json_each(:seqs))"
)
# The alarm of a notification that repeats, or did, or was acknowledged.
find = Query(
    Alarm,
    f"SELECT {columns(Alarm, 'a', device='d.name', by='o.email')} FROM alarm a LEFT JOIN device d"
    " ON d.seq = a.device_seq LEFT JOIN account o ON o.seq = a.by_account_seq WHERE a.notification_seq = ?",
).first
# The account's notifications that repeat now, the oldest first; without those that are snoozed.
waiting = Query(
    WaitingAlarm,
    f"SELECT {columns(WaitingAlarm, 'n', repeats='a.repeats')} FROM alarm a"
    " JOIN notification n ON n.seq = a.notification_seq"
    " WHERE a.account_seq = ? AND a.state = 'waiting' AND a.ends_at IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM snooze WHERE notification_seq = n.seq AND until IS NOT NULL) ORDER BY n.seq",
).all
# The alarms with a push that is due, the longest due first.
due = Query(
    DueAlarm,
    f"SELECT {columns(DueAlarm, 'a')} FROM alarm a WHERE next_at <= ? AND account_seq {OF_ENABLED} ORDER BY next_at",
).all
CLAIM = "UPDATE alarm SET next_at = ? WHERE notification_seq = ? AND next_at = ?"
PARTS = {"notification": columns(Recorded, "n"), "device": "d.name", "by": "o.email"}
CLAIMED = Query(
    ClaimedAlarm,
    f"SELECT {columns(ClaimedAlarm, 'l', email='a.email', **PARTS)} FROM alarm l"
    " JOIN notification n ON n.seq = l.notification_seq JOIN account a ON a.seq = l.account_seq"
    " LEFT JOIN account o ON o.seq = l.by_account_seq"
    f" LEFT JOIN device d ON d.seq = l.device_seq WHERE l.notification_seq = ? AND {IS_ENABLED}",
)
# Count a repeat if it was `pushed`, and set when the next is due unless the alarm changed meanwhile.
note_repeat = Change(  # an acknowledgement during the repeat is pushed after it
    "UPDATE alarm SET repeats = repeats + :pushed, next_at = CASE"
    f" WHEN state = 'acknowledged' AND NOT {IS_REPLACED} THEN :now"
    " WHEN state = 'waiting' AND next_at = :lease THEN :next_at ELSE next_at END WHERE notification_seq = :seq"
)
# Record the first acknowledgement, even of an expired alarm; `by` is another account that acknowledged it. One that
# was cancelled stays so.
acknowledge = Change(  # a held or replaced notification is on no screen
    "UPDATE alarm SET state = 'acknowledged', acknowledged_at = :now, device_seq = :device,"
    " by_account_seq = :by,"
    f" next_at = CASE WHEN ends_at IS NULL OR {IS_REPLACED} THEN NULL ELSE :now END"
    " WHERE account_seq = :account AND notification_seq = :seq AND state IN ('waiting', 'expired')"
)
# Give the waiting ones this state, and stop pushing these notifications, also that they were acknowledged.
end = Change(
    "UPDATE alarm SET state = CASE state WHEN 'waiting' THEN ? ELSE state END, next_at = NULL"
    f" WHERE notification_seq IN {THESE}"
)
NOTE_PUSHED = (
    f"UPDATE alarm SET next_at = ? WHERE notification_seq IN {THESE}"
    f" AND state = 'acknowledged' AND ends_at IS NOT NULL AND NOT {IS_REPLACED}"
)
# Push nothing more of a notification, unless its alarm changed during this lease.
note_done = Change("UPDATE alarm SET next_at = NULL WHERE notification_seq = ? AND next_at = ?")
# Push no more repeats of a waiting notification until `begin`.
pause = Change("UPDATE alarm SET next_at = NULL WHERE notification_seq = ? AND state = 'waiting'")
# Let `begin` start the repeats of a waiting notification afresh.
begin_anew = Change("UPDATE alarm SET ends_at = NULL WHERE notification_seq = ? AND state = 'waiting'")
FOLLOW_CLOCK = (
    "UPDATE alarm SET next_at = next_at - :sooner, ends_at = ends_at - :by"
    " WHERE next_at IS NOT NULL AND account_seq = :account"
)


def claim(due: Iterable[DueAlarm], lease_until: int) -> list[tuple[ClaimedAlarm, int]]:
    """Take these alarms with a lease: nobody else does before `lease_until`. Returns each with its due time.

    Without those that another process took, or whose state changed, since they were found to be due.
    """
    taken = [one for one in due if run(CLAIM, (lease_until, one.notification_seq, one.next_at)).rowcount]
    found = [(CLAIMED.first(one.notification_seq), one.next_at) for one in taken]
    return [(alarm, due_at) for alarm, due_at in found if alarm]  # the account may be disabled


def note_pushed(notification_seqs: Iterable[int], now: int) -> None:
    """Push "Acknowledged" after a push of the notification that was under way when it was acknowledged."""
    if seqs := list(notification_seqs):
        run(NOTE_PUSHED, (now, seqs))


def follow_clock(by_ms: int) -> None:
    """Make all pushes due earlier if the clock was set back by so much, and end with it, one account after the other.

    If it was set forward (below 0), they end later.
    """
    for (account_seq,) in run("SELECT DISTINCT account_seq FROM alarm WHERE next_at IS NOT NULL").fetchall():
        with transaction(account_seq):
            run(FOLLOW_CLOCK, {"by": by_ms, "sooner": max(0, by_ms), "account": account_seq})
