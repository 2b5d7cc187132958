"""The table of notifications that are pushed again at a time that their owner chose."""

from store.enabled import OF_ENABLED
from store.rows import Change, Query

# Snooze a notification of an account until then, in place of an earlier snooze of it.
put = Change(
    "INSERT INTO snooze (notification_seq, account_seq, until) VALUES (?, ?, ?)"
    " ON CONFLICT (notification_seq) DO UPDATE SET until = excluded.until"
)
# End the snooze of a notification if its time has come; 1 if this process did.
end = Change("UPDATE snooze SET until = NULL WHERE notification_seq = ? AND until <= ?")
# End a snooze, if there is one, of what is done with.
cancel = Change("UPDATE snooze SET until = NULL WHERE notification_seq = ?")
# Note that the notification is pushed again.
count = Change("UPDATE snooze SET times = times + 1 WHERE notification_seq = ?")
# When a notification is to be pushed again; None if it is not snoozed.
until = Query(int, "SELECT until FROM snooze WHERE notification_seq = ?").first
# Some notifications (after their accounts' seqs) to be pushed again now, of the accounts in turn.
due = Query(  # of each account its first, then of each its second
    tuple[int, int],
    "SELECT account_seq, notification_seq FROM (SELECT account_seq, notification_seq, until,"
    " row_number() OVER (PARTITION BY account_seq ORDER BY until, notification_seq) AS place"
    f" FROM snooze WHERE until <= ? AND account_seq {OF_ENABLED}) s ORDER BY place, until LIMIT ?",
).all
