"""The buttons whose press a device sends to us, the answers, and their queries. Callers pass the time."""

import json
from typing import NamedTuple

import peewee

from models import Model
from store.database import run
from store.notifications import Notification
from store.rows import columns, reader
from wire.notification import Content


class PressedButton(NamedTuple):
    """A button that can be pressed: whose it is, on which device, and what its notification says."""

    account_seq: int
    notification_seq: int
    device_seq: int
    position: int | None  # None: it acknowledges
    content: Content


class GivenAnswer(NamedTuple):
    """The answer to a notification: its place among the actions, and the device it came from (None: the web app)."""

    position: int
    answered_at: int
    device_id: str | None
    device_name: str | None


class Button(Model):
    """A button of a notification on one device, found by the hash of the token in its address."""

    token_hash = peewee.BlobField(primary_key=True)
    notification = peewee.ForeignKeyField(Notification, column_name="notification_seq", on_delete="CASCADE")
    device_seq = peewee.IntegerField()
    position = peewee.IntegerField(null=True)
    expires_at = peewee.IntegerField()

    INSERT = (
        "INSERT INTO button (token_hash, notification_seq, device_seq, position, expires_at)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (token_hash) DO NOTHING"
    )
    PRESSED = (
        f"SELECT {columns(PressedButton, 'b', account_seq='n.account_seq', content=columns(Content, 'n'))}"
        " FROM button b JOIN notification n ON n.seq = b.notification_seq JOIN device d ON d.seq = b.device_seq"
        " WHERE b.token_hash = ? AND b.expires_at > ? AND d.removed_as IS NOT 'removed'"
    )
    READ_PRESSED = staticmethod(reader(PressedButton))

    @classmethod
    def add(
        cls, token_hash: bytes, notification_seq: int, device_seq: int, position: int | None, expires_at: int
    ) -> None:
        """A button of a notification on a device, unless it exists already; call inside `transaction()`."""
        run(cls.INSERT, (token_hash, notification_seq, device_seq, position, expires_at))

    @classmethod
    def pressed(cls, token_hash: bytes, now: int) -> PressedButton | None:
        """The button with this token, if it has not expired and the owner has not removed its device."""
        row = run(cls.PRESSED, (token_hash, now)).fetchone()
        return cls.READ_PRESSED(row) if row else None

    @classmethod
    def expired(cls, now: int, limit: int) -> list[tuple[int, int]]:
        """The notifications of at most `limit` buttons that have expired: the account of each, and its seq."""
        found = (
            "SELECT DISTINCT n.account_seq, n.seq FROM (SELECT notification_seq FROM button WHERE expires_at <= ?"
            " ORDER BY expires_at LIMIT ?) b JOIN notification n ON n.seq = b.notification_seq"
        )
        return list(run(found, (now, limit)).fetchall())

    @classmethod
    def prune(cls, notification_seqs: list[int], now: int) -> None:
        """Remove the buttons of these notifications that have expired; call inside `transaction()`."""
        run(
            "DELETE FROM button WHERE notification_seq IN (SELECT value FROM json_each(?)) AND expires_at <= ?",
            (json.dumps(notification_seqs), now),
        )


class ButtonAnswer(Model):
    """The first answer to a notification, which is the only one."""

    notification_seq = peewee.IntegerField(primary_key=True)
    position = peewee.IntegerField()
    answered_at = peewee.IntegerField()
    device_seq = peewee.IntegerField(null=True)

    class Meta:
        table_name = "answer"

    PUT_FIRST = (
        "INSERT INTO answer (notification_seq, position, answered_at, device_seq) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (notification_seq) DO NOTHING"
    )
    FIND = (
        f"SELECT {columns(GivenAnswer, 'r', device_id='d.id', device_name='d.name')}"
        " FROM answer r LEFT JOIN device d ON d.seq = r.device_seq WHERE r.notification_seq = ?"
    )
    READ_FOUND = staticmethod(reader(GivenAnswer))
    HAS_COME = (
        "SELECT EXISTS (SELECT 1 FROM answer WHERE notification_seq = n.seq) OR EXISTS (SELECT 1 FROM alarm"
        " WHERE notification_seq = n.seq AND acknowledged_at IS NOT NULL) FROM notification n WHERE seq = ?"
    )

    @classmethod
    def put_first(cls, notification_seq: int, position: int, device_seq: int | None, now: int) -> bool:
        """Keep the answer if it is the first; returns whether it is. Call inside `transaction()`."""
        return run(cls.PUT_FIRST, (notification_seq, position, now, device_seq)).rowcount > 0

    @classmethod
    def find(cls, notification_seq: int) -> GivenAnswer | None:
        """The answer to the notification, if there is one."""
        row = run(cls.FIND, (notification_seq,)).fetchone()
        return cls.READ_FOUND(row) if row else None

    @classmethod
    def has_come(cls, notification_seq: int) -> bool | None:
        """Whether the notification was answered or acknowledged; None if there is no such notification."""
        row = run(cls.HAS_COME, (notification_seq,)).fetchone()
        return row and bool(row[0])
