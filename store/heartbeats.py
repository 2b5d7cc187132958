"""The tables of heartbeats and their pings, and their queries. Callers pass the time."""

import json
from typing import Any, NamedTuple

import peewee

from models import Account, Model, new_id
from store.database import run
from store.rows import Query, columns, select_numbers
from store.senders import Watch


class BeatColumns(NamedTuple):
    """A heartbeat, and its account's settings that a notification needs."""

    seq: int
    id: str
    ping_id: str
    name: str
    period_s: int | None
    cron: str | None
    grace_s: int
    priority: int
    state: str
    last_ping_at: int | None
    deadline_at: int | None
    down_since: int | None
    created_at: int
    account_seq: int
    email: str
    time_zone: str
    quiet_hours: str | None


class Beat(BeatColumns, Watch):
    """A heartbeat as a sender of notifications."""

    __slots__ = ()


class Heartbeat(Model):
    """A job that is expected to ping."""

    seq = peewee.AutoField()
    id = peewee.TextField()
    ping_id = peewee.TextField()
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    name = peewee.TextField()
    period_s = peewee.IntegerField(null=True)
    cron = peewee.TextField(null=True)
    grace_s = peewee.IntegerField()
    priority = peewee.IntegerField()
    state = peewee.TextField()
    last_ping_at = peewee.IntegerField(null=True)
    deadline_at = peewee.IntegerField(null=True)
    down_since = peewee.IntegerField(null=True)
    created_at = peewee.IntegerField()

    BEATS = (
        f"SELECT {columns(Beat, 'h', email='a.email', time_zone='a.time_zone', quiet_hours='a.quiet_hours')}"
        " FROM heartbeat h JOIN account a ON a.seq = h.account_seq"
    )
    OF_ACCOUNT = Query(Beat, f"{BEATS} WHERE h.account_seq = ? ORDER BY h.seq DESC")
    FIND = Query(Beat, f"{BEATS} WHERE h.account_seq = ? AND (h.id = ? OR h.ping_id = ?)")
    PINGED = Query(Beat, f"{BEATS} WHERE h.ping_id = ?")
    ONE = Query(Beat, f"{BEATS} WHERE h.seq = ?")
    DUE = "SELECT account_seq, seq FROM heartbeat WHERE deadline_at <= ? ORDER BY deadline_at LIMIT ?"
    EXPECTED = Query(Beat, f"{BEATS} WHERE h.deadline_at IS NOT NULL")
    CHANGE_STATE = (
        "UPDATE heartbeat SET state = ?, deadline_at = ?, down_since = ?"
        " WHERE seq = ? AND state = ? AND deadline_at IS ?"
    )
    MOVE_DOWN_SINCE = (
        "UPDATE heartbeat SET down_since = down_since + ? WHERE down_since IS NOT NULL"
        " AND account_seq IN (SELECT value FROM json_each(?))"
    )
    NOTE_PING = "UPDATE heartbeat SET last_ping_at = ? WHERE seq = ?"

    @classmethod
    def add(cls, account_seq: int, values: dict[str, Any], now: int) -> str:
        """The id of a new heartbeat with these columns; call inside `transaction()`."""
        id_ = new_id(now)
        cls.create(id=id_, account=account_seq, created_at=now, **values)
        return id_

    @classmethod
    def change(cls, seq: int, **values: Any) -> None:
        """Set these columns; call inside `transaction()`."""
        if values:
            cls.update(**values).where(cls.seq == seq).execute()

    @classmethod
    def remove(cls, seq: int) -> None:
        """Delete it with its pings; call inside `transaction()`."""
        cls.delete().where(cls.seq == seq).execute()

    @classmethod
    def count(cls, account_seq: int) -> int:
        """How many the account has."""
        return cls.select().where(cls.account == account_seq).count()

    @classmethod
    def of_account(cls, account_seq: int) -> list[Beat]:
        """The account's heartbeats, newest first."""
        return cls.OF_ACCOUNT.all((account_seq,))

    @classmethod
    def find(cls, account_seq: int, id_: str) -> Beat | None:
        """The account's heartbeat with that id, or with that UUID in its address."""
        return cls.FIND.first((account_seq, id_, id_))

    @classmethod
    def pinged(cls, ping_id: str) -> Beat | None:
        """The heartbeat with that UUID in its address."""
        return cls.PINGED.first((ping_id,))

    @classmethod
    def one(cls, seq: int) -> Beat | None:
        """The heartbeat as it is now; None if it was deleted."""
        return cls.ONE.first((seq,))

    # --- states ---

    @classmethod
    def due(cls, now: int, limit: int) -> list[tuple[int, int]]:
        """At most `limit` whose deadline has passed, the longest passed first: the account's seq, and its own."""
        return run(cls.DUE, (now, limit)).fetchall()

    @classmethod
    def expected(cls) -> list[Beat]:
        """Those of all accounts that have a deadline."""
        return cls.EXPECTED.all()

    @classmethod
    def change_state(cls, beat: Beat, state: str, deadline_at: int | None, down_since: int | None = None) -> bool:
        """Change the state unless it has changed since `beat` was read; returns whether it did.

        Call inside the transaction that records what the change tells the owner.
        """
        values = (state, deadline_at, down_since, beat.seq, beat.state, beat.deadline_at)
        return run(cls.CHANGE_STATE, values).rowcount > 0

    @classmethod
    def account_seqs(cls) -> list[int]:
        """The accounts that have any."""
        return select_numbers("SELECT DISTINCT account_seq FROM heartbeat")

    @classmethod
    def move_down_since(cls, account_seqs: list[int], by_ms: int) -> None:
        """Move the times at which these accounts' heartbeats went down by `by_ms`; call inside `transaction()`."""
        run(cls.MOVE_DOWN_SINCE, (by_ms, json.dumps(account_seqs)))

    @classmethod
    def note_ping(cls, seq: int, now: int) -> None:
        """Keep when it pinged last; call inside `transaction()`."""
        run(cls.NOTE_PING, (now, seq))


def owner_of(ping_key: str) -> Account | None:
    """The account with that ping key."""
    return Account.first("ping_key = ?", ping_key)


class KeptPing(NamedTuple):
    """A ping that is kept."""

    kind: str
    exit_code: int | None
    body: str
    received_at: int


ADD_PING = "INSERT INTO ping (heartbeat_seq, kind, exit_code, body, received_at) VALUES (?, ?, ?, ?, ?)"
FORGET_PINGS = (
    "DELETE FROM ping WHERE heartbeat_seq = :heartbeat AND seq <="
    " (SELECT seq FROM ping WHERE heartbeat_seq = :heartbeat ORDER BY seq DESC LIMIT 1 OFFSET :kept)"
)
NEWEST_PINGS = Query(
    KeptPing, f"SELECT {columns(KeptPing, 'p')} FROM ping p WHERE heartbeat_seq = ? ORDER BY seq DESC"
)
KINDS_OF_PINGS = (
    "SELECT p.heartbeat_seq, p.kind FROM ping p JOIN heartbeat h ON h.seq = p.heartbeat_seq"
    " WHERE h.account_seq = ? ORDER BY p.seq"
)


def keep_ping(heartbeat_seq: int, ping: KeptPing, kept: int) -> None:
    """Keep a ping, and of the earlier ones so many that there are `kept`; call inside `transaction()`."""
    run(ADD_PING, (heartbeat_seq, ping.kind, ping.exit_code, ping.body, ping.received_at))
    run(FORGET_PINGS, {"heartbeat": heartbeat_seq, "kept": kept})


def newest_pings(heartbeat_seq: int) -> list[KeptPing]:
    """The kept pings of a heartbeat, newest first."""
    return NEWEST_PINGS.all((heartbeat_seq,))


def kinds_of_pings(account_seq: int) -> list[tuple[int, str]]:
    """The kinds of all kept pings of the account, oldest first, each with its heartbeat's seq."""
    return run(KINDS_OF_PINGS, (account_seq,)).fetchall()
