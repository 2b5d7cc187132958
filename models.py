"""The main tables of an account: the account itself, API keys, alerts and devices, each with its queries.

Queries of frequent requests are constant SQL that returns row types (store/rows.py), most others are Peewee's.
Callers pass the time. Must not know a clock, a setting, a request or the names on the wire.
"""

import hashlib
import threading
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from store.database import THESE, database, peewee, run, run_later, transaction
from store.engine import EVERYBODY
from store.rows import Change, Query, change_row, columns, counting, new_id


def sha256_of(secret: str) -> bytes:
    """The only form in which a key, link, session or token is kept: random secrets need no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


MAX_LISTED_REVOKED = 1_000  # keys


class Model(peewee.Model):
    """Base of all tables. `schema.sql` makes them, never Peewee; a test holds the two equal."""

    class Meta:
        database = database
        legacy_table_names = False

    @classmethod
    def first(cls, condition: str, *values: object) -> Self | None:
        """The row for which this constant condition holds, or None; at a quarter of the cost of Peewee's `get`."""
        return next(iter(cls.raw(f"SELECT * FROM {cls._meta.table_name} WHERE {condition}", *values)), None)

    @classmethod
    def purge(cls, seqs: list[int]) -> None:
        """Delete the rows with these numbers."""
        run(f"DELETE FROM {cls._meta.table_name} WHERE seq IN {THESE}", (seqs,))

    @classmethod
    def delete_some(cls, account_seq: int, limit: int) -> int:
        """Delete at most `limit` rows of the account, which is deleted; returns how many."""
        some = f"SELECT seq FROM {cls._meta.table_name} WHERE account_seq = ? LIMIT ?"
        return run(f"DELETE FROM {cls._meta.table_name} WHERE seq IN ({some})", (account_seq, limit)).rowcount

    @classmethod
    def end_expired(cls, account_seq: int, now: int) -> None:
        """Delete the rows of the account that have expired."""
        run(f"DELETE FROM {cls._meta.table_name} WHERE account_seq = ? AND expires_at <= ?", (account_seq, now))


Row = TypeVar("Row", bound=Model)


def _change(row: Row, **values: Any) -> Row:
    """Set these columns, and return the row."""
    for column, value in values.items():
        setattr(row, column, value)
    if values:
        row.save(only=list(values))
    return row


class Account(Model):
    """An owner, and the settings of the whole account."""

    seq = peewee.AutoField()
    email = peewee.TextField()
    password_hash = peewee.TextField(null=True)
    plan = peewee.TextField()
    time_zone = peewee.TextField()
    quiet_hours = peewee.TextField(null=True)
    created_at = peewee.IntegerField()
    theme = peewee.TextField(default="system")
    hides_first_steps = peewee.IntegerField(default=0)
    known_device_seq = peewee.IntegerField(default=0)
    ping_key = peewee.TextField(null=True)
    has_dense_rows = peewee.IntegerField(default=0)
    is_administrator = peewee.IntegerField(default=0)
    disabled_at = peewee.IntegerField(null=True)
    invited_until = peewee.IntegerField(null=True)
    last_seen_at = peewee.IntegerField(null=True)
    has_mutes = peewee.IntegerField(default=0)
    has_followers = peewee.IntegerField(default=0)
    last_quiet_hours = peewee.TextField(null=True)

    # The seq of a deleted account is never given to another: its limits, cursors and open requests would pass to it.
    last_seq = Query(
        int,
        "SELECT max(coalesce((SELECT max(seq) FROM account), 0),"
        " coalesce((SELECT CAST(value AS INTEGER) FROM server_note WHERE name = 'last_account'), 0))",
    ).one
    exists = Query(int, "SELECT EXISTS (SELECT 1 FROM account)").one  # any
    change = partial(change_row, "account")

    @classmethod
    def add(cls, email: str, now: int, **columns: str | int | None) -> "Account":
        """The new account; `peewee.IntegrityError` when the address is taken."""
        return cls.create(force_insert=True, seq=cls.last_seq() + 1, email=email, created_at=now, **columns)

    @classmethod
    def find(cls, email: str) -> "Account | None":
        """The account of an address in lower case."""
        return cls.first("email = ?", email)

    @classmethod
    def enabled(cls, email: str) -> "Account | None":
        """The account of an address in lower case, unless it is disabled."""
        return cls.first("email = ? AND disabled_at IS NULL", email)

    @classmethod
    def with_seq(cls, seq: int) -> "Account | None":
        """The account with that number."""
        return cls.first("seq = ?", seq)

    @classmethod
    def all(cls) -> list["Account"]:
        """Every account, newest first."""
        return list(cls.raw("SELECT * FROM account ORDER BY seq DESC"))


class ApiKey(Model):
    """An API key; only its hash is kept."""

    seq = peewee.AutoField()
    id = peewee.TextField()
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    name = peewee.TextField()
    preview = peewee.TextField()
    key_hash = peewee.BlobField()
    created_at = peewee.IntegerField()
    last_used_at = peewee.IntegerField(null=True)
    revoked_at = peewee.IntegerField(null=True)
    scope = peewee.TextField(default="full")
    expires_at = peewee.IntegerField(null=True)
    is_end_told = peewee.IntegerField(default=0)

    count_live = counting("api_key", "revoked_at IS NULL")
    # Whether the account has a key with that name that is not revoked.
    is_taken = Query(
        int, "SELECT EXISTS (SELECT 1 FROM api_key WHERE account_seq = ? AND name = ? AND revoked_at IS NULL)"
    ).one
    name_of = Query(str, "SELECT name FROM api_key WHERE seq = ?").one
    _used: dict[int, int] = {}  # seq → time of the last use, not yet written
    _used_lock = threading.Lock()

    @classmethod
    def add(cls, account_seq: int, name: str, full_key: str, now: int, **columns: Any) -> "ApiKey":
        """A new key; only its beginning and its hash are kept."""
        kept = {"preview": full_key[:16], "key_hash": sha256_of(full_key), **columns}
        return cls.create(id=new_id(now), account=account_seq, name=name, created_at=now, **kept)

    @classmethod
    def mark_used(cls, seq: int, now: int) -> None:
        """Remember a use in memory until `write_used` writes it."""
        cls._used[seq] = now

    @classmethod
    def write_used(cls) -> None:
        """Write the uses remembered since the last call, in one transaction."""
        with cls._used_lock:
            used = dict(cls._used)
            if not used:
                return
            with transaction(EVERYBODY):  # of many accounts: all processes write these rows in the same order
                for seq, at in sorted(used.items()):
                    run_later("UPDATE api_key SET last_used_at = ? WHERE seq = ?", (at, seq))
            for seq, at in used.items():
                if cls._used.get(seq) == at:
                    del cls._used[seq]

    @classmethod
    def of_account(cls, account_seq: int) -> list["ApiKey"]:
        """The account's keys, newest first, with unwritten uses; of the revoked ones, the newest 1,000."""
        mine = cls.select().where(cls.account == account_seq).order_by(cls.seq.desc())
        live, revoked = mine.where(cls.revoked_at.is_null()), mine.where(cls.revoked_at.is_null(False))
        keys = sorted([*live, *revoked.limit(MAX_LISTED_REVOKED)], key=lambda key: -key.seq)
        for key in keys:
            key.last_used_at = cls._used.get(key.seq, key.last_used_at)
        return keys

    @classmethod
    def revoke(cls, account_seq: int, key_id: str, now: int) -> bool:
        """Revoke a key for good; an earlier time stays. False when the account has no such key."""
        mine = (cls.account == account_seq) & (cls.id == key_id)
        cls.update(revoked_at=now).where(mine, cls.revoked_at.is_null()).execute()
        return bool(cls.select().where(mine).exists())

    # The seqs of keys revoked `before` a time and not `used` since another one that added no device.
    purgeable = Query(
        int,
        "SELECT seq FROM api_key k WHERE account_seq = :account AND revoked_at IS NOT NULL AND revoked_at < :before"
        " AND coalesce(last_used_at, 0) < :used AND NOT EXISTS (SELECT 1 FROM device WHERE api_key_seq = k.seq)"
        " LIMIT :limit",
    ).all


class Alert(Model):
    """A notification template with a webhook address."""

    seq = peewee.AutoField()
    id = peewee.TextField()
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    short_code = peewee.TextField()
    name = peewee.TextField()
    icon = peewee.TextField(default="bell")
    color = peewee.TextField(default="#3B82F6")
    title_template = peewee.TextField(null=True)
    body_template = peewee.TextField(null=True)
    frequency = peewee.TextField(default="instant")
    ignores_quiet_hours = peewee.IntegerField(default=0)
    is_active = peewee.IntegerField(default=1)
    notification_count = peewee.IntegerField(default=0)
    last_triggered_at = peewee.IntegerField(null=True)
    created_at = peewee.IntegerField()
    switched_on_at = peewee.IntegerField()
    paused_at = peewee.IntegerField(null=True)
    preset = peewee.TextField(null=True)
    keeps_payload = peewee.IntegerField(default=1)
    priority_template = peewee.TextField(null=True)
    url_template = peewee.TextField(null=True)
    tag_template = peewee.TextField(null=True)
    resolved_when = peewee.TextField(null=True)
    repeats_urgent = peewee.IntegerField(default=0)
    urgent_passes_quiet_hours = peewee.IntegerField(default=0)
    image_template = peewee.TextField(null=True)
    has_mute_button = peewee.IntegerField(default=0)

    count, change = counting("alert"), _change
    remove = Change("DELETE FROM alert WHERE seq = ?")  # its notifications stay
    # Count an event that made a notification then.
    note_event = Change(
        "UPDATE alert SET notification_count = notification_count + 1, last_triggered_at = ? WHERE seq = ?"
    ).later
    # Make an active alert inactive as of then, unless it was switched on again since it was at that time.
    pause = Change(
        "UPDATE alert SET is_active = 0, paused_at = ? WHERE seq = ? AND is_active = 1 AND switched_on_at = ?"
    )

    @classmethod
    def of_account(cls, account_seq: int) -> list["Alert"]:
        """Newest first."""
        return list(cls.select().where(cls.account == account_seq).order_by(cls.seq.desc()))

    @classmethod
    def named(cls, account_seq: int, name: str) -> list["Alert"]:
        """Those with this name."""
        return list(cls.select().where(cls.account == account_seq, cls.name == name))

    @classmethod
    def find(cls, account_seq: int, alert_id: str) -> "Alert | None":
        """An alert of the account."""
        return cls.first("account_seq = ? AND id = ?", account_seq, alert_id)

    @classmethod
    def add(cls, account_seq: int, settings: dict[str, Any], now: int) -> "Alert":
        """A new alert with these columns."""
        return cls.create(id=new_id(now), account=account_seq, created_at=now, switched_on_at=now, **settings)


class ActiveDevice(NamedTuple):
    """The columns of a device that a push needs. It is not removed."""

    seq: int
    id: str
    kind: str
    token: str
    p256dh: str | None
    auth: str | None
    origin: str | None
    min_priority: int  # lower ones are not pushed to it
    quiet_hours: str | None
    after_s: int | None  # of a channel: 0, or after how many seconds it gets what no other device has


class Device(Model):
    """A device that gets pushes. A removed device keeps its row, without the token, for the history."""

    seq = peewee.AutoField()
    id = peewee.TextField()
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    account_seq: int  # Peewee's own, beside the field above
    kind = peewee.TextField()
    token = peewee.TextField()
    p256dh = peewee.TextField(null=True)
    auth = peewee.TextField(null=True)
    origin = peewee.TextField(null=True)
    name = peewee.TextField()
    api_key = peewee.ForeignKeyField(ApiKey, column_name="api_key_seq", null=True)
    api_key_seq: int | None  # Peewee's own, beside the field above
    created_at = peewee.IntegerField()
    last_delivered_at = peewee.IntegerField(null=True)
    last_error = peewee.TextField(null=True)
    removed_at = peewee.IntegerField(null=True)
    removed_as = peewee.TextField(null=True)
    last_error_at = peewee.IntegerField(null=True)
    last_seen_at = peewee.IntegerField(null=True)
    resync_token_hash = peewee.BlobField(null=True)
    min_priority = peewee.IntegerField(default=1)
    poll_hash = peewee.TextField(null=True)
    quiet_hours = peewee.TextField(null=True)
    after_s = peewee.IntegerField(null=True)
    preset = peewee.TextField(null=True)
    confirm_by = peewee.IntegerField(null=True)
    topic: str | None = None  # in clear, of a device that was just added and fetches; it is kept nowhere
    secret: str | None = None  # of a webhook that was just added and whose requests are signed

    count, change = counting("device", "removed_at IS NULL"), _change
    NOTE_FETCHED = "UPDATE device SET last_delivered_at = ?, last_error = NULL, last_error_at = NULL WHERE seq = ?"
    note_fetched = Change(NOTE_FETCHED)  # that it fetched its notifications
    NOTE_DELIVERED = f"{NOTE_FETCHED} AND token = ?"
    NOTE_ERROR = "UPDATE device SET last_error = ?, last_error_at = ? WHERE seq = ? AND token = ?"
    # The account's devices that are not removed, to push to.
    active = Query(
        ActiveDevice,
        f"SELECT {columns(ActiveDevice, 'd')} FROM device d WHERE account_seq = ? AND removed_at IS NULL"
        " AND confirm_by IS NULL",
    ).all

    # The preset of a webhook. A column of each receiver would make every send dearer.
    preset_of = Query(str, "SELECT preset FROM device WHERE seq = ?").first

    @classmethod
    def add(cls, account_seq: int, kind: str, values: dict[str, Any], now: int) -> "Device":
        """A new device with these columns."""
        return cls.create(id=new_id(now), account=account_seq, kind=kind, created_at=now, **values)

    @classmethod
    def of_account(cls, account_seq: int) -> list["Device"]:
        """The account's devices that are not removed, newest first, with the keys that added them."""
        present = cls.select(cls, ApiKey).join(ApiKey, peewee.JOIN.LEFT_OUTER)
        return list(present.where(cls.account == account_seq, cls.removed_at.is_null()).order_by(cls.seq.desc()))

    @classmethod
    def find(cls, account_seq: int, device_id: str) -> "Device | None":
        """A device of the account that is not removed."""
        return cls.first("account_seq = ? AND id = ? AND removed_at IS NULL", account_seq, device_id)

    @classmethod
    def with_token(cls, account_seq: int, kind: str, token: str) -> "Device | None":
        """The account's device that has this token."""
        is_it = "account_seq = ? AND kind = ? AND token = ? AND removed_at IS NULL"
        return cls.first(is_it, account_seq, kind, token)

    @classmethod
    def with_resync_token(cls, token_hash: bytes) -> "Device | None":
        """The device whose service worker has the token with that hash."""
        return cls.first("resync_token_hash = ? AND removed_at IS NULL", token_hash)

    @classmethod
    def void_resync_tokens(cls, account_seq: int) -> None:
        """Void the tokens of all service workers of the account, until its owner signs in there again."""
        cls.update(resync_token_hash=None).where(cls.account == account_seq).execute()

    @classmethod
    def count_all(cls, kind: str | None = None) -> int:
        """How many devices (of that kind) all accounts have, without removed ones."""
        of_kind = (cls.kind == kind,) if kind else ()
        return cls.select().where(cls.removed_at.is_null(), *of_kind).count()

    @classmethod
    def remove(cls, seq: int, removed_as: str, now: int) -> None:
        """Mark a device as `dead` or `removed`, and forget its token."""
        forgotten = {"token": "", "poll_hash": None, "p256dh": None, "auth": None, "resync_token_hash": None}
        here = (cls.seq == seq) & cls.removed_at.is_null()
        cls.update(**forgotten, removed_at=now, removed_as=removed_as).where(here).execute()

    @classmethod
    def note_outcome(cls, seq: int, token: str, error: str | None, now: int | None) -> bool:
        """Keep the provider's last answer about the device with this token; without an error it accepted a push.

        `now` is None if that was no delivery: the link that confirms an address, before which there was none.
        False if an error was about an old token: the device has another one now, or is gone.
        """
        if error is None:
            run_later(cls.NOTE_DELIVERED, (now, seq, token))
            return True
        return run(cls.NOTE_ERROR, (error, now, seq, token)).rowcount > 0

    # The seqs of devices removed `before` a time and the oldest notification, without the last removed one.
    purgeable = Query(
        int,
        "SELECT seq FROM device WHERE account_seq = :account AND removed_at < :before"
        " AND removed_at < coalesce((SELECT created_at FROM notification WHERE account_seq = :account ORDER BY seq"
        " LIMIT 1), :before) AND seq <> (SELECT seq FROM device WHERE account_seq = :account"
        " AND removed_at IS NOT NULL ORDER BY removed_at DESC, seq DESC LIMIT 1) LIMIT :limit",
    ).all
