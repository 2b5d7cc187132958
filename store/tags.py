"""Notifications by their tag."""

from store.database import run

NEWEST = (
    "SELECT id FROM notification WHERE account_seq = ? AND tag = ? AND replaced_by IS NULL ORDER BY seq DESC LIMIT 1"
)


def newest_with(account_seq: int, tag: str) -> str | None:
    """The id of the account's newest notification with a tag, unless that was deleted."""
    row = run(NEWEST, (account_seq, tag)).fetchone()
    return row[0] if row else None
