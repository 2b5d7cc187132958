"""The counters of notifications by account, of all time and by calendar day, which outlive the history.

Beside them: how many bytes an account has stored.
"""

from typing import NamedTuple

from store.database import run, run_later
from store.rows import Change, Query, columns, size


class Stats(NamedTuple):
    """An account's counters."""

    all_time: int
    month: int
    day: int
    alerts: int


QUARTER_HOUR = "created_at / 900000 * 900000"  # the start (ms) of the one in which a notification was made
COUNT = (
    "INSERT INTO notification_day (account_seq, day, notification_count, stored_bytes)"
    " VALUES (?, '', 1, ?), (?, ?, 1, 0) ON CONFLICT (account_seq, day) DO UPDATE"
    " SET notification_count = notification_day.notification_count + 1,"
    " stored_bytes = notification_day.stored_bytes + excluded.stored_bytes"
)
# Add to the account's stored bytes, or subtract.
add_bytes = Change(
    "INSERT INTO notification_day (account_seq, day, notification_count, stored_bytes) VALUES (?, '', 0, ?)"
    " ON CONFLICT (account_seq, day) DO UPDATE"
    " SET stored_bytes = notification_day.stored_bytes + excluded.stored_bytes"
).later
# Count the bytes of pictures that were added (or, if negative, removed); returns how many there are now.
add_picture_bytes = Query(  # the row is there: a picture comes with a notification, which was counted
    int,
    "UPDATE notification_day SET picture_bytes = picture_bytes + :bytes, stored_bytes = stored_bytes + :bytes"
    " WHERE account_seq = :account AND day = '' RETURNING picture_bytes",
).one
# How many bytes the account has stored, without its alerts' last payloads.
stored_bytes = Query(
    int, "SELECT coalesce(sum(stored_bytes), 0) FROM notification_day WHERE account_seq = ? AND day = ''"
).one
PAYLOAD_BYTES = (  # an alert's last payload is not noted in a row: each event replaces it
    f"SELECT account_seq, sum({size('payload')}) FROM alert_payload p JOIN alert l ON l.seq = p.alert_seq"
    " GROUP BY account_seq"
)
ADD_DAY = "INSERT INTO notification_day (account_seq, day, notification_count) VALUES (?, ?, ?)"
SINCE = "SELECT day, notification_count FROM notification_day WHERE account_seq = ? AND day >= ?"
OF_ALL_TIME = "SELECT notification_count FROM notification_day WHERE account_seq = :account AND day = ''"
OF_DAY = "SELECT notification_count FROM notification_day WHERE account_seq = :account AND day = :day"
OF_MONTH = (
    "SELECT sum(notification_count) FROM notification_day WHERE account_seq = :account"
    " AND day BETWEEN :first AND :last"
)
# Whether the account ever got a notification.
has_any = Query(
    int, "SELECT EXISTS (SELECT 1 FROM notification_day WHERE account_seq = ? AND notification_count > 0)"
).one
COUNTERS = {
    "all_time": f"coalesce(({OF_ALL_TIME}), 0)",
    "month": f"coalesce(({OF_MONTH}), 0)",
    "day": f"coalesce(({OF_DAY}), 0)",
    "alerts": "(SELECT count(*) FROM alert WHERE account_seq = :account)",
}
# The account's notifications since a time, with seqs beyond one up to another, by the quarter of an hour in which
# they were made: its start (ms), and how many.
count_by_quarter_hour = Query(
    tuple[int, int],
    f"SELECT {QUARTER_HOUR} AS start, count(*) FROM notification WHERE account_seq = ?"
    " AND created_at >= ? AND seq > ? AND seq <= ? AND is_digest = 0 GROUP BY start",
).all
STATS = Query(Stats, f"SELECT {columns(Stats, '', **COUNTERS)}")


def count(account_seq: int, day: str, stored_bytes: int) -> None:
    """Count one more on `day` (YYYY-MM-DD) and of all time."""
    run_later(COUNT, (account_seq, stored_bytes, account_seq, day))


def payload_bytes() -> dict[int, int]:
    """How many bytes the last payloads of the alerts have, by account."""
    return dict(run(PAYLOAD_BYTES))


def stats(account_seq: int, day: str) -> Stats:
    """The counters of an account, with those for the month and the day of `day` (YYYY-MM-DD)."""
    month = day[:7]
    return STATS.one(account=account_seq, first=f"{month}-01", last=f"{month}-31", day=day)


def replace_since(account_seq: int, first_day: str, counts: dict[str, int]) -> None:
    """Replace all rows from `first_day` on with those of `counts` (by day)."""
    run("DELETE FROM notification_day WHERE account_seq = ? AND day >= ?", (account_seq, first_day))
    for day, number in counts.items():
        if day >= first_day:
            run(ADD_DAY, (account_seq, day, number))


def since(account_seq: int, first_day: str) -> dict[str, int]:
    """How many on each day from `first_day` on that had any."""
    return dict(run(SINCE, (account_seq, first_day)))
