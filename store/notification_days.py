"""The counters of notifications by account and calendar day, and their queries; they outlive the history."""

from typing import NamedTuple

import peewee

from models import Account, Model
from store.database import run
from store.rows import columns, reader


class Stats(NamedTuple):
    """An account's counters."""

    all_time: int
    month: int
    day: int
    alerts: int


class NotificationDay(Model):
    """How many notifications an account got on one calendar day of its time zone."""

    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    day = peewee.TextField()
    notification_count = peewee.IntegerField()

    class Meta:
        primary_key = peewee.CompositeKey("account", "day")

    COUNT = (
        "INSERT INTO notification_day (account_seq, day, notification_count) VALUES (?, ?, 1)"
        " ON CONFLICT (account_seq, day) DO UPDATE SET notification_count = notification_day.notification_count + 1"
        " RETURNING notification_count"
    )
    OF_MONTH = (
        "(SELECT coalesce(sum(notification_count), 0) FROM notification_day"
        " WHERE account_seq = a.seq AND day BETWEEN :month || '-01' AND :month || '-31')"
    )
    OF_DAY = (
        "(SELECT coalesce(sum(notification_count), 0) FROM notification_day WHERE account_seq = a.seq AND day = :day)"
    )
    ALERTS = "(SELECT count(*) FROM alert WHERE account_seq = a.seq)"
    COUNTERS = {"all_time": "notification_count", "month": OF_MONTH, "day": OF_DAY, "alerts": ALERTS}
    STATS = f"SELECT {columns(Stats, 'a', **COUNTERS)} FROM account a WHERE seq = :account"
    READ_STATS = staticmethod(reader(Stats))

    @classmethod
    def count(cls, account_seq: int, day: str) -> int:
        """Count one more on `day` (YYYY-MM-DD); returns how many that makes. Call inside `transaction()`."""
        return int(run(cls.COUNT, (account_seq, day)).fetchone()[0])

    @classmethod
    def stats(cls, account_seq: int, day: str) -> Stats:
        """The counters of an account, with those for the month and the day of `day` (YYYY-MM-DD)."""
        values = {"account": account_seq, "month": day[:7], "day": day}
        return cls.READ_STATS(run(cls.STATS, values).fetchone())

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
