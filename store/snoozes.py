"""The table of notifications that are pushed again at a time that their owner chose."""

from store.database import run
from store.enabled import OF_ENABLED
from store.rows import Query

PUT = (
    "INSERT INTO snooze (notification_seq, account_seq, until) VALUES (?, ?, ?)"
    " ON CONFLICT (notification_seq) DO UPDATE SET until = excluded.until"
)
END = "UPDATE snooze SET until = NULL WHERE notification_seq = ? AND until <= ?"

# When a notification is to be pushed again; None if it is not snoozed.
until = Query(int, "SELECT until FROM snooze WHERE notification_seq = ?").first
# Some notifications (after their accounts' seqs) to be pushed again now, of the accounts in turn.
due = Query(  # of each account its first, then of each its second
    tuple[int, int],
    "SELECT account_seq, notification_seq FROM (SELECT account_seq, notification_seq, until,"
    " row_number() OVER (PARTITION BY account_seq ORDER BY until, notification_seq) AS place"
    f" FROM snooze WHERE until <= ? AND account_seq {OF_ENABLED}) s ORDER BY place, until LIMIT ?",
).all


def put(notification_seq: int, account_seq: int, until: int) -> None:
    """Snooze a notification, in place of an earlier snooze of it."""
    run(PUT, (notification_seq, account_seq, until))


def end(notification_seq: int, now: int) -> bool:
    """End a snooze whose time has come; whether this process did."""
    return run(END, (notification_seq, now)).rowcount > 0


def cancel(notification_seq: int) -> None:
    """End a snooze, if there is one, of what is done with."""
    run("UPDATE snooze SET until = NULL WHERE notification_seq = ?", (notification_seq,))


def count(notification_seq: int) -> None:
    """Note that the notification is pushed again."""
    run("UPDATE snooze SET times = times + 1 WHERE notification_seq = ?", (notification_seq,))
