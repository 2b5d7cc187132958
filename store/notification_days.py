"""The counters of notifications by account, of all time and by calendar day; they outlive the history."""

from typing import NamedTuple

import peewee

from models import Account, Model
from store.database import run, run_later
from store.rows import columns, reader


class Stats(NamedTuple):
    """An account's counters."""

    all_time: int
    month: int
    day: int
    alerts: int


class NotificationDay(Model):
    """How many notifications an account got on one calendar day of its time zone, or, as the day '', of all time."""

    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    day = peewee.TextField()
    notification_count = peewee.IntegerField()

    class Meta:
        primary_key = peewee.CompositeKey("account", "day")

    COUNT = (
        "INSERT INTO notification_day (account_seq, day, notification_count) VALUES (?, '', 1), (?, ?, 1)"
        " ON CONFLICT (account_seq, day) DO UPDATE SET notification_count = notification_day.notification_count + 1"
    )
    OF_ALL_TIME = "SELECT notification_count FROM notification_day WHERE account_seq = :account AND day = ''"
    OF_DAY = "SELECT notification_count FROM notification_day WHERE account_seq = :account AND day = :day"
    OF_MONTH = (
        "SELECT sum(notification_count) FROM notification_day WHERE account_seq = :account"
        " AND day BETWEEN :first AND :last"
    )
    COUNTERS = {
        "all_time": f"coalesce(({OF_ALL_TIME}), 0)",
        "month": f"coalesce(({OF_MONTH}), 0)",
        "day": f"coalesce(({OF_DAY}), 0)",
        "alerts": "(SELECT count(*) FROM alert WHERE account_seq = :account)",
    }
    STATS = f"SELECT {columns(Stats, '', **COUNTERS)}"
    READ_STATS = staticmethod(reader(Stats))

    @classmethod
    def count(cls, account_seq: int, day: str) -> None:
        """Count one more on `day` (YYYY-MM-DD) and of all time; call inside `transaction()`."""
        run_later(cls.COUNT, (account_seq, account_seq, day))

    @classmethod
    def stats(cls, account_seq: int, day: str) -> Stats:
        """The counters of an account, with those for the month and the day of `day` (YYYY-MM-DD)."""
        month = day[:7]
        values = {"account": account_seq, "first": f"{month}-01", "last": f"{month}-31", "day": day}
        return cls.READ_STATS(run(cls.STATS, values).fetchone())

    @classmethod
    def has_any(cls, account_seq: int) -> bool:
        """Whether the account ever got a notification."""
        return cls.first("account_seq = ?", account_seq) is not None

    @classmethod
    def replace_since(cls, account_seq: int, first_day: str, counts: dict[str, int]) -> None:
        """Replace all rows from `first_day` on with `counts` (by day); call inside `transaction()`."""
        cls.delete().where(cls.account == account_seq, cls.day >= first_day).execute()
        for day, count in counts.items():
            cls.create(account=account_seq, day=day, notification_count=count)

    @classmethod
    def since(cls, account_seq: int, first_day: str) -> dict[str, int]:
        """How many on each day from `first_day` on that had any."""
        rows = cls.select(cls.day, cls.notification_count).where(cls.account == account_seq, cls.day >= first_day)
        return {row.day: row.notification_count for row in rows}

    @classmethod
    def count_by_quarter_hour(cls, account_seq: int, since: int, after: int, until: int) -> list[tuple[int, int]]:
        """Count the notifications made since time `since`, with seqs beyond `after` up to `until`, by quarter hour.

        Returns the start (ms) of each quarter of an hour that has any, and how many.
        """
        counts = run(
            "SELECT created_at / 900000 * 900000 AS start, count(*) FROM notification WHERE account_seq = ?"
            " AND seq > ? AND seq <= ? AND created_at >= ? AND is_digest = 0 GROUP BY start",
            (account_seq, after, until, since),
        )
        return list(counts.fetchall())
