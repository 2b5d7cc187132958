"""The Idempotency-Keys of requests to send, and their queries."""

from typing import NamedTuple

from store.database import run, run_later
from store.rows import Change, Query, columns
from wire.notification import Recorded


class EarlierRequest(NamedTuple):
    """The first request that came with an Idempotency-Key."""

    request_hash: bytes
    notification_id: str
    is_answered: int
    status: str  # that was answered; until then the notification's, or 'failed' if that was deleted
    created_at: int


OF_ANSWER = {
    "is_answered": "i.answered_status IS NOT NULL",
    "status": "coalesce(i.answered_status, (SELECT status FROM notification WHERE id = i.notification_id), 'failed')",
}
# The first request with that key, if it came after that time.
find = Query(
    EarlierRequest,
    f"SELECT {columns(EarlierRequest, 'i', **OF_ANSWER)} FROM idempotency_key i"
    " WHERE account_seq = ? AND key = ? AND created_at > ?",
).first
PUT = (
    "INSERT INTO idempotency_key (account_seq, key, request_hash, notification_id, answered_status, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (account_seq, key) DO UPDATE SET"
    " request_hash = excluded.request_hash, notification_id = excluded.notification_id,"
    " answered_status = excluded.answered_status, created_at = excluded.created_at"
)
# Keep the status of the first answer to the account's key, for replays.
note_answer = Change(
    "UPDATE idempotency_key SET answered_status = ? WHERE account_seq = ? AND key = ? AND answered_status IS NULL"
).later
# Some keys that came before that time, each after its account.
expired = Query(
    tuple[int, str], "SELECT account_seq, key FROM idempotency_key WHERE created_at <= ? ORDER BY created_at LIMIT ?"
).all
# Remove those of the account's keys in a list that came before that time.
prune = Change(
    "DELETE FROM idempotency_key WHERE account_seq = ?"
    " AND key IN (SELECT CAST(value AS TEXT) FROM json_each(?)) AND created_at <= ?"
)
DELETE_SOME = (
    "DELETE FROM idempotency_key WHERE account_seq = :account"
    " AND key IN (SELECT key FROM idempotency_key WHERE account_seq = :account LIMIT :limit)"
)


def put(account_seq: int, key: str, request_hash: bytes, notification: Recorded, answered: str | None) -> None:
    """Keep the key with its notification, and the answered status if it is known; replaces an expired key."""
    run_later(PUT, (account_seq, key, request_hash, notification.id, answered, notification.created_at))


def delete_some(account_seq: int, limit: int) -> int:
    """Delete at most `limit` keys of the account; returns how many."""
    return run(DELETE_SOME, {"account": account_seq, "limit": limit}).rowcount
