"""The notifications that repeat until they are acknowledged, and their queries. Callers pass the time."""

import json
from collections.abc import Iterable
from typing import NamedTuple

import peewee

from models import Account, Device, Model
from store.database import AFTER_ALL, run, transaction
from store.notifications import NotificationRow
from store.rows import Query, columns, select_number


class DueAlarm(NamedTuple):
    """An alarm with a push that is due, and since when."""

    notification_seq: int
    account_seq: int
    next_at: int


class ClaimedAlarm(NamedTuple):
    """An alarm whose push nobody else makes at the same time."""

    account_seq: int
    email: str  # the account's
    notification: NotificationRow  # with the status in its row
    state: str
    ends_at: int
    repeats: int
    device_seq: int | None  # where it was acknowledged, and that device's name
    device: str | None


class Alarm(Model):
    """A notification that is pushed again until it is acknowledged, and its state."""

    notification_seq = peewee.IntegerField(primary_key=True)
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    state = peewee.TextField()
    ends_at = peewee.IntegerField(null=True)
    next_at = peewee.IntegerField(null=True)
    repeats = peewee.IntegerField()
    acknowledged_at = peewee.IntegerField(null=True)
    device_seq = peewee.IntegerField(null=True)

    INSERT = "INSERT INTO alarm (notification_seq, account_seq, state, repeats) VALUES (?, ?, 'waiting', 0)"
    COUNT_WAITING = (
        "SELECT count(*) FROM alarm a JOIN notification n ON n.seq = a.notification_seq"
        " WHERE a.account_seq = ? AND a.state = 'waiting' AND (n.tag IS NULL OR n.tag IS NOT ?)"
    )
    IS_REPLACED = "(SELECT replaced_by FROM notification n WHERE n.seq = notification_seq) IS NOT NULL"
    BEGIN = (
        "UPDATE alarm SET ends_at = :now + 1000 * json_extract(n.acknowledge, '$[1]'),"
        " next_at = min(:now + 1000 * json_extract(n.acknowledge, '$[0]'),"
        f" :now + 1000 * json_extract(n.acknowledge, '$[1]') + 1, coalesce(n.expires_at, {AFTER_ALL}))"
        " FROM notification n"
        " WHERE n.seq = alarm.notification_seq AND alarm.state = 'waiting' AND alarm.ends_at IS NULL"
        " AND alarm.notification_seq IN (SELECT value FROM json_each(:seqs))"
    )
    DUE = Query(DueAlarm, f"SELECT {columns(DueAlarm, 'a')} FROM alarm a WHERE next_at <= ? ORDER BY next_at")
    CLAIM = "UPDATE alarm SET next_at = ? WHERE notification_seq = ? AND next_at = ?"
    PARTS = {"notification": columns(NotificationRow, "n"), "device": "d.name"}
    CLAIMED = Query(
        ClaimedAlarm,
        f"SELECT {columns(ClaimedAlarm, 'l', email='a.email', **PARTS)} FROM alarm l"
        " JOIN notification n ON n.seq = l.notification_seq JOIN account a ON a.seq = l.account_seq"
        " LEFT JOIN device d ON d.seq = l.device_seq WHERE l.notification_seq = ?",
    )
    NOTE_REPEAT = (  # an acknowledgement during the repeat is pushed after it
        "UPDATE alarm SET repeats = repeats + :pushed, next_at = CASE"
        f" WHEN state = 'acknowledged' AND NOT {IS_REPLACED} THEN :now"
        " WHEN state = 'waiting' AND next_at = :lease THEN :next_at ELSE next_at END WHERE notification_seq = :seq"
    )
    ACKNOWLEDGE = (  # a held or replaced notification is on no screen
        "UPDATE alarm SET state = 'acknowledged', acknowledged_at = :now, device_seq = :device,"
        f" next_at = CASE WHEN ends_at IS NULL OR {IS_REPLACED} THEN NULL ELSE :now END"
        " WHERE account_seq = :account AND notification_seq = :seq AND state IN ('waiting', 'expired')"
    )
    END = (  # "Acknowledged" is not pushed either
        "UPDATE alarm SET state = CASE state WHEN 'waiting' THEN ? ELSE state END, next_at = NULL"
        " WHERE notification_seq IN (SELECT value FROM json_each(?))"
    )
    NOTE_PUSHED = (
        "UPDATE alarm SET next_at = ? WHERE notification_seq IN (SELECT value FROM json_each(?))"
        f" AND state = 'acknowledged' AND ends_at IS NOT NULL AND NOT {IS_REPLACED}"
    )
    DONE = "UPDATE alarm SET next_at = NULL WHERE notification_seq = ? AND next_at = ?"
    BRING_FORWARD = (
        "UPDATE alarm SET next_at = next_at - :by, ends_at = ends_at - :by"
        " WHERE next_at IS NOT NULL AND account_seq = :account"
    )

    @classmethod
    def add(cls, notification_seq: int, account_seq: int) -> None:
        """A notification that is not acknowledged yet, and has not begun to repeat; call inside `transaction()`."""
        run(cls.INSERT, (notification_seq, account_seq))

    @classmethod
    def count_waiting(cls, account_seq: int, tag: str | None) -> int:
        """Count the account's waiting alarms, without those that a notification with this tag would replace."""
        return select_number(cls.COUNT_WAITING, (account_seq, tag)) or 0

    @classmethod
    def begin(cls, notification_seqs: Iterable[int], now: int) -> None:
        """Let those of these notifications repeat that are to and have not begun; call inside `transaction()`."""
        run(cls.BEGIN, {"now": now, "seqs": json.dumps(list(notification_seqs))})

    @classmethod
    def find(cls, notification_seq: int) -> "Alarm | None":
        """The alarm of a notification that repeats, or did."""
        return cls.get_or_none(cls.notification_seq == notification_seq)

    @classmethod
    def device_of(cls, notification_seq: int) -> Device | None:
        """The device on which the notification was acknowledged, if it was on one."""
        joined = Device.select().join(cls, on=cls.device_seq == Device.seq)
        found: Device | None = joined.where(cls.notification_seq == notification_seq).first()
        return found

    # --- pushing ---

    @classmethod
    def due(cls, now: int) -> list[DueAlarm]:
        """The alarms with a push that is due, the longest due first."""
        return cls.DUE.all((now,))

    @classmethod
    def claim(cls, due: Iterable[DueAlarm], lease_until: int) -> list[tuple[ClaimedAlarm, int]]:
        """Take these alarms with a lease: nobody else does before `lease_until`. Each with when it was due.

        Without those that another process took, or whose state changed, since they were found to be due. Call inside
        `transaction()`.
        """
        taken = [one for one in due if run(cls.CLAIM, (lease_until, one.notification_seq, one.next_at)).rowcount]
        return [(cls.CLAIMED.one((one.notification_seq,)), one.next_at) for one in taken]

    @classmethod
    def note_repeat(cls, notification_seq: int, is_pushed: bool, lease: int, next_at: int, now: int) -> None:
        """Count a repeat if it was pushed, and set when the next is due unless the alarm changed meanwhile."""
        values = {"pushed": int(is_pushed), "lease": lease, "next_at": next_at, "now": now, "seq": notification_seq}
        run(cls.NOTE_REPEAT, values)

    @classmethod
    def note_pushed(cls, notification_seqs: Iterable[int], now: int) -> None:
        """Push "Acknowledged" after a push of the notification that was under way when it was acknowledged."""
        if seqs := list(notification_seqs):
            run(cls.NOTE_PUSHED, (now, json.dumps(seqs)))

    @classmethod
    def note_done(cls, notification_seq: int, lease: int) -> None:
        """Nothing more is to be pushed, unless the alarm changed during the lease."""
        run(cls.DONE, (notification_seq, lease))

    @classmethod
    def bring_forward(cls, by_ms: int) -> None:
        """Make all that is to be pushed due earlier, one account after the other."""
        for (account_seq,) in run("SELECT DISTINCT account_seq FROM alarm WHERE next_at IS NOT NULL").fetchall():
            with transaction(account_seq):
                run(cls.BRING_FORWARD, {"by": by_ms, "account": account_seq})

    # --- ending ---

    @classmethod
    def acknowledge(cls, account_seq: int, notification_seq: int, device_seq: int | None, now: int) -> bool:
        """Record the first acknowledgement, even of an expired alarm; call inside `transaction()`.

        Returns whether it was the first. What was cancelled stays so.
        """
        values = {"account": account_seq, "seq": notification_seq, "device": device_seq, "now": now}
        return run(cls.ACKNOWLEDGE, values).rowcount > 0

    @classmethod
    def end(cls, notification_seqs: Iterable[int], state: str) -> None:
        """Stop pushing these, and give the waiting ones this state; call inside `transaction()`."""
        run(cls.END, (state, json.dumps(list(notification_seqs))))
