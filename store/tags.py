"""Notifications by their tag."""

from store.rows import select_text

NEWEST = (
    "SELECT id FROM notification WHERE account_seq = ? AND tag = ? AND replaced_by IS NULL ORDER BY seq DESC LIMIT 1"
)


def newest_with(account_seq: int, tag: str) -> str | None:
    """The id of the account's newest notification with a tag, unless that was deleted."""
    return select_text(NEWEST, (account_seq, tag))
