"""The table of what is held, and its queries. Callers pass the time; how long something is held is not known here."""

import json
from collections.abc import Iterable
from typing import NamedTuple

import peewee

from models import Account, Model, Webhook
from store.database import AFTER_ALL, run
from store.notifications import NotificationRow


class HeldOfAlert(NamedTuple):
    """That an alert has notifications held: how many, the first one's time and what decides until when."""

    account_seq: int
    alert_seq: int
    held_count: int
    first_held_at: int
    time_zone: str
    quiet_hours: str | None  # None too for an alert that ignores them
    frequency: str


class Held(Model):
    """A notification that is held, or was until it was released in a digest."""

    notification_seq = peewee.IntegerField(primary_key=True)
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    alert_seq = peewee.IntegerField()
    created_at = peewee.IntegerField()
    digest_seq = peewee.IntegerField(null=True)

    INSERT = "INSERT INTO held (notification_seq, account_seq, alert_seq, created_at) VALUES (?, ?, ?, ?)"
    BY_ALERT = (
        "SELECT h.account_seq, h.alert_seq, h.count, h.first, a.time_zone,"
        " iif(l.ignores_quiet_hours, NULL, a.quiet_hours), coalesce(l.frequency, 'instant')"
        " FROM (SELECT account_seq, alert_seq, count(*) AS count, min(created_at) AS first FROM held"
        "  WHERE digest_seq IS NULL AND account_seq BETWEEN ? AND ? GROUP BY account_seq, alert_seq) h"
        " JOIN account a ON a.seq = h.account_seq LEFT JOIN alert l ON l.seq = h.alert_seq"
    )
    OLDEST = (
        "SELECT notification_seq FROM held WHERE digest_seq IS NULL AND account_seq = ?"
        " AND alert_seq IN (SELECT value FROM json_each(?)) ORDER BY notification_seq LIMIT ?"
    )
    TEXTS = (
        "SELECT seq, id, substr(title, 1, :length), substr(body, 1, :length), status, created_at FROM notification"
        " WHERE seq IN (SELECT value FROM json_each(:seqs)) ORDER BY seq"
    )
    PUT_IN_DIGEST = "UPDATE held SET digest_seq = ? WHERE notification_seq IN (SELECT value FROM json_each(?))"

    @classmethod
    def add(cls, notification: NotificationRow, webhook: Webhook) -> None:
        """Hold a notification whose status is `held`; call inside the transaction that makes it."""
        run(cls.INSERT, (notification.seq, webhook.account_seq, webhook.alert_seq, notification.created_at))

    @classmethod
    def by_alert(cls) -> list[HeldOfAlert]:
        """Every alert that has notifications held."""
        return [HeldOfAlert(*row) for row in run(cls.BY_ALERT, (0, AFTER_ALL))]

    @classmethod
    def count(cls) -> int:
        """How many notifications are held."""
        return int(run("SELECT count(*) FROM held WHERE digest_seq IS NULL").fetchone()[0])

    @classmethod
    def of_account(cls, account_seq: int) -> list[HeldOfAlert]:
        """Every alert of the account that has notifications held."""
        return [HeldOfAlert(*row) for row in run(cls.BY_ALERT, (account_seq, account_seq))]

    @classmethod
    def oldest(cls, account_seq: int, alert_seqs: Iterable[int], limit: int) -> list[int]:
        """The seqs of the oldest notifications that are held of these alerts, oldest first."""
        return [row[0] for row in run(cls.OLDEST, (account_seq, json.dumps(list(alert_seqs)), limit))]

    @classmethod
    def texts(cls, seqs: list[int], length: int) -> list[NotificationRow]:
        """These notifications, with the first `length` characters of their texts."""
        return [NotificationRow(*row) for row in run(cls.TEXTS, {"length": length, "seqs": json.dumps(seqs)})]

    @classmethod
    def in_digest(cls, digest_seq: int, limit: int) -> list[int]:
        """The seqs of the notifications that were released in a digest, oldest first, at most `limit`."""
        rows = cls.select(cls.notification_seq).where(cls.digest_seq == digest_seq)
        return [row.notification_seq for row in rows.order_by(cls.notification_seq).limit(limit)]

    @classmethod
    def put_in_digest(cls, seqs: list[int], digest_seq: int) -> None:
        """Give these notifications the status of the digest from now on; call inside `transaction()`."""
        run(cls.PUT_IN_DIGEST, (digest_seq, json.dumps(seqs)))

    @classmethod
    def remove(cls, seq: int) -> None:
        """Forget that a notification was held; call inside `transaction()`."""
        run("DELETE FROM held WHERE notification_seq = ?", (seq,))
