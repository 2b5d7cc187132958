"""How an owner gets in: sessions of browsers, one-time links, and codes for phones; their queries."""

import peewee

from models import Account, Model, sha256_of
from store.database import AFTER_ALL
from store.enabled import OF_ENABLED


class OneTimeLink(Model):
    """A link that opens the set-up page (no account) or the page that sets a password."""

    token_hash = peewee.BlobField(primary_key=True)
    account = peewee.ForeignKeyField(Account, column_name="account_seq", null=True)
    expires_at = peewee.IntegerField()

    @classmethod
    def put(cls, token_hash: bytes, account_seq: int | None, expires_at: int) -> None:
        """Add a link."""
        cls.create(token_hash=token_hash, account=account_seq, expires_at=expires_at)

    @classmethod
    def find(cls, token_hash: bytes, now: int) -> "OneTimeLink | None":
        """The link if it is still good, and its account enabled."""
        is_good = f"token_hash = ? AND expires_at > ? AND coalesce(account_seq, 0) {OF_ENABLED}"
        return cls.first(is_good, token_hash, now)

    @classmethod
    def void(cls, account_seq: int | None) -> None:
        """Void the links that set this account's password, or (None) the links to the set-up page."""
        same_purpose = cls.account.is_null() if account_seq is None else cls.account == account_seq
        cls.delete().where(same_purpose).execute()


class Session(Model):
    """A browser that is signed in."""

    token_hash = peewee.BlobField(primary_key=True)
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    account_seq: int  # Peewee keeps it under this name
    created_at = peewee.IntegerField()
    expires_at = peewee.IntegerField()
    name = peewee.TextField()
    last_seen_at = peewee.IntegerField()

    @property
    def id(self) -> str:
        """The session's id in forms: a part of its token's hash, which signs nobody in."""
        return bytes(self.token_hash).hex()[:32]

    @classmethod
    def add(cls, token_hash: bytes, account_seq: int, name: str, expires_at: int, now: int) -> None:
        """A new session of a browser called `name`."""
        times = {"created_at": now, "expires_at": expires_at, "last_seen_at": now}
        cls.create(token_hash=token_hash, account=account_seq, name=name, **times)

    @classmethod
    def find(cls, token_hash: bytes, now: int = 0) -> "Session | None":
        """The session, if it has not ended by `now` and the account is enabled."""
        return cls.first(f"token_hash = ? AND expires_at > ? AND account_seq {OF_ENABLED}", token_hash, now)

    @classmethod
    def of_account(cls, account_seq: int, now: int) -> list["Session"]:
        """The account's sessions that have not ended, last seen first."""
        mine = cls.select().where(cls.account == account_seq, cls.expires_at > now)
        return list(mine.order_by(cls.last_seen_at.desc(), cls.created_at.desc()))

    @classmethod
    def note_visit(cls, token_hash: bytes, expires_at: int, now: int) -> None:
        """Extend the session."""
        later = peewee.fn.max(cls.expires_at, expires_at)  # the clock may have been set back
        cls.update(last_seen_at=now, expires_at=later).where(cls.token_hash == token_hash).execute()

    @classmethod
    def end(cls, token_hash: bytes) -> None:
        """Sign this browser out."""
        cls.delete().where(cls.token_hash == token_hash).execute()

    @classmethod
    def end_oldest(cls, account_seq: int, kept: int) -> None:
        """Keep the `kept` sessions of the account that were seen last."""
        mine = cls.select(cls.token_hash).where(cls.account == account_seq)
        oldest = mine.order_by(cls.last_seen_at.desc(), cls.created_at.desc()).limit(AFTER_ALL).offset(kept)
        cls.delete().where(cls.token_hash.in_(oldest)).execute()

    @classmethod
    def end_all(cls, account_seq: int) -> None:
        """Sign the account out everywhere."""
        cls.delete().where(cls.account == account_seq).execute()


class PhoneLink(Model):
    """The code of a session that a phone signs in with, and that phone. Each change of state succeeds once."""

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
    def of_session(cls, session_token: str) -> "PhoneLink | None":
        """The last code that the browser with this session showed."""
        return cls.first("session_hash = ?", sha256_of(session_token))

    @classmethod
    def with_code(cls, code: str) -> "PhoneLink | None":
        """The code's row, whatever its state."""
        return cls.first("code_hash = ?", sha256_of(code))

    @classmethod
    def of_phone(cls, secret: str) -> "PhoneLink | None":
        """The row of the code with which the phone that keeps this secret asked."""
        return cls.first("phone_hash = ?", sha256_of(secret))

    @classmethod
    def change(cls, link: "PhoneLink", state: str, now: int, expires_at: int, **values: str | bytes) -> bool:
        """Change the state of a code, and more, if nobody has changed it meanwhile and it has not expired."""
        same = (cls.code_hash == link.code_hash) & (cls.state == link.state) & (cls.expires_at > now)
        return bool(cls.update(state=state, expires_at=expires_at, **values).where(same).execute())
