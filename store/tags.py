"""Notifications by their tag."""

from store.rows import first_value

NEWEST = (
    "SELECT id FROM notification WHERE account_seq = ? AND tag = ? AND replaced_by IS NULL ORDER BY seq DESC LIMIT 1"
)


def newest_with(account_seq: int, tag: str) -> str | None:
    """The id of the account's newest notification with a tag, unless that was deleted."""
    found: str | None = first_value(NEWEST, (account_seq, tag))
    return found
