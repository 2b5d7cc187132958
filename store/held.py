"""The table of held notifications and its queries. Callers pass the time and decide how long something is held."""

import json
from collections.abc import Iterable
from typing import NamedTuple

import peewee

from models import Account, Model
from store.database import AFTER_ALL, run
from store.notifications import NotificationRow
from store.rows import columns, reader
from store.senders import QUIET_HOURS_OF_ALERT, Webhook


class HeldOfAlert(NamedTuple):
    """An alert's held notifications: how many, when the first was held, and what decides until when."""

    account_seq: int
    alert_seq: int
    held_count: int
    first_held_at: int
    time_zone: str
    quiet_hours: str | None  # also None for an alert that ignores them
    frequency: str


class HeldText(NamedTuple):
    """The beginnings of what a held notification says."""

    title: str
    body: str


class Held(Model):
    """A notification that is held, or was until it was released in a digest."""

    notification_seq = peewee.IntegerField(primary_key=True)
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    alert_seq = peewee.IntegerField()
    created_at = peewee.IntegerField()
    digest_seq = peewee.IntegerField(null=True)

    INSERT = "INSERT INTO held (notification_seq, account_seq, alert_seq, created_at) VALUES (?, ?, ?, ?)"
    OF_ALERT = {
        "time_zone": "a.time_zone",
        "quiet_hours": QUIET_HOURS_OF_ALERT,
        "frequency": "coalesce(l.frequency, 'instant')",  # the alert may have been deleted
    }
    BY_ALERT = (
        f"SELECT {columns(HeldOfAlert, 'h', **OF_ALERT)} FROM"
        " (SELECT account_seq, alert_seq, count(*) AS held_count, min(created_at) AS first_held_at FROM held"
        "  WHERE digest_seq IS NULL AND account_seq BETWEEN ? AND ? GROUP BY account_seq, alert_seq) h"
        " JOIN account a ON a.seq = h.account_seq LEFT JOIN alert l ON l.seq = h.alert_seq"
    )
    READ_BY_ALERT = staticmethod(reader(HeldOfAlert))
    OLDEST = (
        "SELECT notification_seq FROM held WHERE digest_seq IS NULL AND account_seq = ?"
        " AND alert_seq IN (SELECT value FROM json_each(?)) ORDER BY notification_seq LIMIT ?"
    )
    TEXTS = (
        f"SELECT {columns(HeldText, 'n', title='substr(n.title, 1, :length)', body='substr(n.body, 1, :length)')}"
        " FROM notification n WHERE seq IN (SELECT value FROM json_each(:seqs)) ORDER BY seq"
    )
    READ_TEXT = staticmethod(reader(HeldText))
    DIGESTS_OF = (
        "SELECT DISTINCT digest_seq FROM held WHERE digest_seq IS NOT NULL"
        " AND notification_seq IN (SELECT value FROM json_each(?))"
    )
    PUT_IN_DIGEST = "UPDATE held SET digest_seq = ? WHERE notification_seq IN (SELECT value FROM json_each(?))"

    @classmethod
    def add(cls, notification: NotificationRow, webhook: Webhook) -> None:
        """Hold a notification whose status is `held`; call inside the transaction that makes it."""
        run(cls.INSERT, (notification.seq, webhook.account_seq, webhook.alert_seq, notification.created_at))

    @classmethod
    def by_alert(cls) -> list[HeldOfAlert]:
        """Every alert that has notifications held."""
        return list(map(cls.READ_BY_ALERT, run(cls.BY_ALERT, (0, AFTER_ALL))))

    @classmethod
    def count(cls) -> int:
        """How many notifications are held."""
        return int(run("SELECT count(*) FROM held WHERE digest_seq IS NULL").fetchone()[0])

    @classmethod
    def of_account(cls, account_seq: int) -> list[HeldOfAlert]:
        """Every alert of the account that has notifications held."""
        return list(map(cls.READ_BY_ALERT, run(cls.BY_ALERT, (account_seq, account_seq))))

    @classmethod
    def oldest(cls, account_seq: int, alert_seqs: Iterable[int], limit: int) -> list[int]:
        """The seqs of the oldest notifications held for these alerts, oldest first."""
        return [row[0] for row in run(cls.OLDEST, (account_seq, json.dumps(list(alert_seqs)), limit))]

    @classmethod
    def texts(cls, seqs: list[int], length: int) -> list[HeldText]:
        """The first `length` characters of the title and the body of these notifications, oldest first."""
        return list(map(cls.READ_TEXT, run(cls.TEXTS, {"length": length, "seqs": json.dumps(seqs)})))

    @classmethod
    def in_digest(cls, digest_seq: int, limit: int) -> list[int]:
        """The seqs of the notifications that were released in a digest, oldest first, at most `limit`."""
        rows = cls.select(cls.notification_seq).where(cls.digest_seq == digest_seq)
        return [row.notification_seq for row in rows.order_by(cls.notification_seq).limit(limit)]

    @classmethod
    def digests_of(cls, seqs: list[int]) -> list[int]:
        """The seqs of the digests that some of these notifications were released in."""
        return [row[0] for row in run(cls.DIGESTS_OF, (json.dumps(seqs),))]

    @classmethod
    def count_in_digest(cls, digest_seq: int) -> int:
        """How many notifications that were released in the digest are left."""
        return int(run("SELECT count(*) FROM held WHERE digest_seq = ?", (digest_seq,)).fetchone()[0])

    @classmethod
    def put_in_digest(cls, seqs: list[int], digest_seq: int) -> None:
        """Give these notifications the status of the digest from now on; call inside `transaction()`."""
        run(cls.PUT_IN_DIGEST, (digest_seq, json.dumps(seqs)))

    @classmethod
    def remove(cls, seq: int) -> None:
        """Delete the row of a notification that goes its own way; call inside `transaction()`."""
        run("DELETE FROM held WHERE notification_seq = ?", (seq,))
