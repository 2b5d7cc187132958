"""The notifications that are to be sent later: whose are due, and which."""

import json

from store.database import run
from store.enabled import OF_ENABLED
from store.rows import Change, Query

# PostgreSQL takes the index by account for these orders alone: else, where one account has nearly all that is
# scheduled, it looks for another account's among them.
SCHEDULED = "FROM notification WHERE status = 'held' AND deliver_at IS NOT NULL AND released_at IS NULL"
BY_ACCOUNT = "ORDER BY account_seq, deliver_at LIMIT"
# Whether there is a notification whose `deliver_at` has come; else None.
is_due = Query(int, f"SELECT 1 {SCHEDULED} AND deliver_at <= ? ORDER BY deliver_at LIMIT 1").first
# The seq of the first account beyond `after` that has such notifications `now`.
next_account = Query(
    int,
    "WITH RECURSIVE next (seq) AS"
    f" (SELECT (SELECT account_seq {SCHEDULED} AND account_seq > :after {BY_ACCOUNT} 1) UNION ALL"
    f" SELECT (SELECT account_seq {SCHEDULED} AND account_seq > next.seq {BY_ACCOUNT} 1) FROM next"
    " WHERE seq IS NOT NULL) SELECT seq FROM next"
    f" WHERE (SELECT deliver_at {SCHEDULED} AND account_seq >= next.seq {BY_ACCOUNT} 1) <= :now"
    f" AND seq {OF_ENABLED} LIMIT 1",
).first
# The `account`'s first such notifications (their seqs).
due = Query(
    int,
    f"SELECT seq {SCHEDULED} AND (account_seq, deliver_at) >= (:account, 0)"
    f" AND (account_seq, deliver_at) <= (:account, :now) AND account_seq {OF_ENABLED} {BY_ACCOUNT} :limit",
).all
# Deliver a notification to the devices with the ids in a list alone when it is due.
choose_devices = Change("UPDATE notification SET device_ids = ? WHERE seq = ?")


def chosen_devices(seq: int) -> list[str] | None:
    """The ids of the devices chosen for the notification; None: all."""
    (chosen,) = run("SELECT device_ids FROM notification WHERE seq = ?", (seq,)).fetchone()
    return None if chosen is None else json.loads(chosen)
