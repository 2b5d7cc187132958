"""The pictures that came with notifications, and their queries."""

from typing import NamedTuple

from store import notification_days
from store.database import THESE, run
from store.enabled import OF_ENABLED
from store.rows import Query, columns, overdue, size


class StoredPicture(NamedTuple):
    """A picture as it is served."""

    content_type: str
    data: bytes


ADD = (
    "INSERT INTO picture (notification_seq, account_seq, token_hash, content_type, size, expires_at, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
# The picture at the address with this token, unless it has expired.
find = Query(
    StoredPicture,
    f"SELECT {columns(StoredPicture, 'p')} FROM picture p"
    f" WHERE token_hash = ? AND expires_at > ? AND account_seq {OF_ENABLED}",
).first
# The notifications (their seqs) of the account's oldest pictures, and how many bytes each picture has.
oldest = Query(
    tuple[int, int],
    "SELECT notification_seq, size FROM picture WHERE account_seq = ? ORDER BY notification_seq LIMIT ?",
).all
REMOVE = f"DELETE FROM picture WHERE notification_seq IN {THESE} RETURNING size"
NOTED_BYTES = Query(int, f"SELECT coalesce(sum({size('picture')}), 0) FROM notification WHERE seq IN {THESE}")
FORGET = f"UPDATE notification SET picture = NULL WHERE seq IN {THESE}"
REMOVE_ALL = (  # from a copy of the database
    "UPDATE notification_day SET stored_bytes = stored_bytes - picture_bytes - coalesce((SELECT"
    f" sum({size('picture')}) FROM notification n WHERE n.account_seq = notification_day.account_seq), 0),"
    " picture_bytes = 0 WHERE day = ''",
    "UPDATE notification SET picture = NULL WHERE picture IS NOT NULL",
    "DELETE FROM picture",
)

expired = overdue("picture", "expires_at", "notification_seq")


def add(notification_seq: int, account_seq: int, token_hash: bytes, picture: StoredPicture, expires_at: int) -> int:
    """Keep the picture of a notification; returns how many bytes the account's pictures have now."""
    bytes_ = len(picture.data)
    run(ADD, (notification_seq, account_seq, token_hash, picture.content_type, bytes_, expires_at, picture.data))
    return notification_days.add_picture_bytes(account=account_seq, bytes=bytes_)


def remove(account_seq: int, seqs: list[int]) -> None:
    """Remove the pictures that these notifications (their seqs) of the account have."""
    removed = run(REMOVE, (seqs,)).fetchall()
    if removed:
        notification_days.add_bytes(account_seq, -NOTED_BYTES.one(seqs))
        run(FORGET, (seqs,))
        notification_days.add_picture_bytes(account=account_seq, bytes=-sum(row[0] for row in removed))
