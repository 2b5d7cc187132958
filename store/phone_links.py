"""Codes that signed-in browsers show for a phone to sign in with; their queries."""

import peewee

from models import Model
from store.sessions import Session


class PhoneLink(Model):
    """The code of one session, and the phone that used it. Each change of state succeeds once."""

    session = peewee.ForeignKeyField(Session, column_name="session_hash", primary_key=True, on_delete="CASCADE")
    session_hash: bytes  # Peewee keeps it under this name
    code_hash = peewee.BlobField()
    state = peewee.TextField()
    expires_at = peewee.IntegerField()
    phone_hash = peewee.BlobField(null=True)
    phone_name = peewee.TextField(default="")
    phone_address = peewee.TextField(default="")
    number = peewee.TextField(default="")

    @classmethod
    def put(cls, session_hash: bytes, code_hash: bytes, expires_at: int) -> None:
        """Replace the code that this session shows."""
        cls.delete().where(cls.session == session_hash).execute()
        cls.create(session=session_hash, code_hash=code_hash, state="shown", expires_at=expires_at)

    @classmethod
    def of_session(cls, session_hash: bytes) -> "PhoneLink | None":
        """The last code that this session showed."""
        return cls.first("session_hash = ?", session_hash)

    @classmethod
    def with_code(cls, code_hash: bytes) -> "PhoneLink | None":
        """The code's row, whatever its state."""
        return cls.first("code_hash = ?", code_hash)

    @classmethod
    def of_phone(cls, phone_hash: bytes) -> "PhoneLink | None":
        """The row of the code with which this phone asked."""
        return cls.first("phone_hash = ?", phone_hash)

    @classmethod
    def change(cls, link: "PhoneLink", state: str, now: int, expires_at: int, **values: str | bytes) -> bool:
        """Change the state of a code, and more, if nobody has changed it meanwhile and it has not expired."""
        same = (cls.code_hash == link.code_hash) & (cls.state == link.state) & (cls.expires_at > now)
        return bool(cls.update(state=state, expires_at=expires_at, **values).where(same).execute())
