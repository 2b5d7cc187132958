"""The Idempotency-Keys of requests to send, and their queries. Callers pass the time."""

import json
from typing import NamedTuple

import peewee

from models import Account, Model
from store.database import run, run_later
from store.notifications import NotificationRow
from store.rows import columns, reader


class EarlierRequest(NamedTuple):
    """The first request that came with an Idempotency-Key."""

    request_hash: bytes
    notification_id: str
    is_answered: int
    status: str  # that was answered; until then the notification's, or 'failed' if that was deleted
    created_at: int


class IdempotencyKey(Model):
    """An Idempotency-Key and the notification it led to, which may be deleted before it (CONTRACT 3)."""

    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    key = peewee.TextField()
    request_hash = peewee.BlobField()
    notification_id = peewee.TextField()
    answered_status = peewee.TextField(null=True)
    created_at = peewee.IntegerField()

    class Meta:
        primary_key = peewee.CompositeKey("account", "key")

    STORED = "(SELECT status FROM notification WHERE id = i.notification_id)"
    ANSWER = {
        "is_answered": "i.answered_status IS NOT NULL",
        "status": f"coalesce(i.answered_status, {STORED}, 'failed')",
    }
    EARLIER = (
        f"SELECT {columns(EarlierRequest, 'i', **ANSWER)} FROM idempotency_key i"
        " WHERE account_seq = ? AND key = ? AND created_at > ?"
    )
    READ_EARLIER = staticmethod(reader(EarlierRequest))

    @classmethod
    def find(cls, account_seq: int, key: str, since: int) -> EarlierRequest | None:
        """The first request with that key, if it came after `since`."""
        row = run(cls.EARLIER, (account_seq, key, since)).fetchone()
        return cls.READ_EARLIER(row) if row else None

    @classmethod
    def put(
        cls, account_seq: int, key: str, request_hash: bytes, notification: NotificationRow, answered: str | None
    ) -> None:
        """Keep the key with its notification, and the answered status if it is known; replaces an expired key."""
        run_later(
            "INSERT INTO idempotency_key"
            " (account_seq, key, request_hash, notification_id, answered_status, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (account_seq, key) DO UPDATE SET"
            " request_hash = excluded.request_hash, notification_id = excluded.notification_id,"
            " answered_status = excluded.answered_status, created_at = excluded.created_at",
            (account_seq, key, request_hash, notification.id, answered, notification.created_at),
        )

    @classmethod
    def note_answer(cls, account_seq: int, key: str, status: str) -> None:
        """Keep the status of the first answer, for replays."""
        run_later(
            "UPDATE idempotency_key SET answered_status = ?"
            " WHERE account_seq = ? AND key = ? AND answered_status IS NULL",
            (status, account_seq, key),
        )

    @classmethod
    def expired(cls, before: int, limit: int) -> list[tuple[int, str]]:
        """At most `limit` keys that came before `before`, each after its account."""
        oldest = "SELECT account_seq, key FROM idempotency_key WHERE created_at <= ? ORDER BY created_at LIMIT ?"
        return list(run(oldest, (before, limit)).fetchall())

    @classmethod
    def prune(cls, account_seq: int, keys: list[str], before: int) -> None:
        """Remove those of these keys that came before `before`; call inside `transaction()`."""
        run(
            "DELETE FROM idempotency_key WHERE account_seq = ?"
            " AND key IN (SELECT CAST(value AS TEXT) FROM json_each(?)) AND created_at <= ?",
            (account_seq, json.dumps(keys), before),
        )

    @classmethod
    def delete_some(cls, account_seq: int, limit: int) -> int:
        """Delete at most `limit` keys of the account; returns how many."""
        some = "SELECT key FROM idempotency_key WHERE account_seq = ? LIMIT ?"
        delete = f"DELETE FROM idempotency_key WHERE account_seq = ? AND key IN ({some})"
        return run(delete, (account_seq, account_seq, limit)).rowcount
