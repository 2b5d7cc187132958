"""The scopes of API keys, and the queries about keys that expire."""

from typing import NamedTuple

from store.database import THESE
from store.enabled import OF_ENABLED
from store.rows import Change, Query, columns, overdue

FULL, SEND, READ = "full", "send", "read"


class Ending(NamedTuple):
    """A key that expires soon."""

    seq: int
    account_seq: int
    name: str
    preview: str
    expires_at: int


# Keys that expire within `before` ms, and were made for longer, of which their owners were not told.
untold = Query(
    Ending,
    f"SELECT {columns(Ending, 'k')} FROM api_key k WHERE revoked_at IS NULL AND is_end_told = 0"
    " AND expires_at > :now AND expires_at <= :now + :before AND expires_at - created_at > :before"
    f" AND account_seq {OF_ENABLED}"
    " ORDER BY expires_at LIMIT :limit",
).all
# The account's keys that expire soon, of which the owner was told.
told = Query(
    Ending,
    f"SELECT {columns(Ending, 'k')} FROM api_key k WHERE account_seq = ? AND revoked_at IS NULL AND is_end_told = 1"
    " AND expires_at > ? ORDER BY expires_at",
).all
# When the key (its seq) expires; None if it never does.
expires_at = Query(int, "SELECT expires_at FROM api_key WHERE seq = ?").first
# Note that the owner of a key is told, unless that was noted before.
note_told = Change("UPDATE api_key SET is_end_told = 1 WHERE seq = ? AND is_end_told = 0 AND revoked_at IS NULL")
# Revoke these keys as of the time at which they expired.
revoke = Change(f"UPDATE api_key SET revoked_at = expires_at WHERE seq IN {THESE} AND revoked_at IS NULL")

expired = overdue("api_key", "expires_at", only="revoked_at IS NULL")
