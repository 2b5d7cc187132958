"""The history's tables: notifications, what became of them on each device, idempotency keys; their queries.

The hot paths of the service: constant SQL that answers with tuples. Callers pass the time; nothing here reads a
clock, a setting or a request, and no wire name appears here.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import peewee

from models import Account, ActiveDevice, Caller, Device, Model, Owner, Webhook, new_id
from store.database import AFTER_ALL, run, transaction

SEARCH_COST = 2_500_000  # of one page of a search: in characters that are folded, of ASCII
ROW_COST = 800  # of a row whose text is searched, besides its characters
MAX_FIND = 16  # characters that `in` looks for in linear time, nearly
PASSED_COST = 400  # of a row that the other conditions exclude
STATUS = (  # of the notification n: one that was released in a digest has the digest's
    "CASE n.status WHEN 'held' THEN (SELECT CASE WHEN h.digest_seq IS NULL THEN 'held' ELSE"
    " coalesce((SELECT status FROM notification WHERE seq = h.digest_seq), 'delivered') END"
    " FROM held h WHERE h.notification_seq = n.seq) ELSE n.status END"
)


class NotificationRow(NamedTuple):
    """A notification as it is listed."""

    seq: int
    id: str
    title: str
    body: str
    status: str
    created_at: int


class Text(NamedTuple):
    """What a notification says; `missing` are the variables that its template wanted and its event lacked."""

    title: str
    body: str
    missing: tuple[str, ...] = ()


def shown_status(status: str, devices: int) -> str:
    """The status as the owner reads it: what no device was asked for is stored and was delivered to nobody."""
    return "stored, no device" if status == "delivered" and not devices else status


class Stats(NamedTuple):
    """An account's counters."""

    all_time: int
    month: int
    day: int
    alerts: int


class Page(NamedTuple):
    """Rows, newest first; the seq before which the next page begins; whether there is no next page."""

    rows: list[NotificationRow]
    before: int
    is_done: bool


class Wanted(NamedTuple):
    """What a search looks for, all of it: text in title or body, a status, an alert's, from before a time."""

    term: str = ""
    status: str | None = None
    alert_seq: int | None = None
    until: int = AFTER_ALL


class Entry(NamedTuple):
    """A notification as the web app shows it in a list: with where it came from and what became of it."""

    seq: int
    id: str
    title: str
    body: str
    status: str
    created_at: int
    missing: str | None  # JSON array
    api_key: str | None  # the key's name
    alert_seq: int | None
    alert_id: str | None  # the alert's id, name, icon and colour; None once it was deleted
    alert: str | None
    icon: str | None
    color: str | None
    is_digest: int
    released_at: int | None
    digest_seq: int | None  # the digest that it was released in
    accepted: int  # how many devices' providers took it
    devices: int  # how many were asked

    @property
    def shown_status(self) -> str:
        """The status as the owner reads it."""
        return shown_status(self.status, self.devices)

    @property
    def missing_variables(self) -> list[str]:
        """The variables that the event lacked."""
        return list(json.loads(self.missing)) if self.missing else []


def fold(text: str) -> str:
    """The form in which texts are compared by a search: case does not count (Unicode)."""
    return text.casefold()


def _contains(needle: str) -> Callable[[str], bool]:
    """Whether a folded text holds `needle`, in time that is linear in the text.

    `in` takes up to 40 times as long for a long needle that repeats itself; a regular expression never does.
    """
    if len(needle) <= MAX_FIND:
        return lambda text: needle in text
    search = re.compile(re.escape(needle)).search
    return lambda text: search(text) is not None


def _folding_cost(text: str) -> int:
    """In characters of ASCII; others take about ten times as long."""
    return len(text) if text.isascii() else 10 * len(text)


class Notification(Model):
    """One entry of the history."""

    seq = peewee.AutoField()
    id = peewee.TextField()
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    api_key_seq = peewee.IntegerField(null=True)
    alert_seq = peewee.IntegerField(null=True)
    title = peewee.TextField()
    body = peewee.TextField()
    status = peewee.TextField()
    created_at = peewee.IntegerField()
    released_at = peewee.IntegerField(null=True)
    is_digest = peewee.IntegerField()
    missing = peewee.TextField(null=True)

    INSERT = (
        "INSERT INTO notification"
        " (id, account_seq, api_key_seq, alert_seq, title, body, status, created_at, is_digest, missing)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    COUNT = "UPDATE account SET notification_count = notification_count + 1 WHERE seq = ?"
    COUNT_DAY = (
        "INSERT INTO notification_day (account_seq, day, notification_count) VALUES (?, ?, 1)"
        " ON CONFLICT DO UPDATE SET notification_count = notification_count + 1 RETURNING notification_count"
    )
    PENDING_FROM = "SELECT 1 FROM notification WHERE account_seq = ? AND status = 'pending' LIMIT 1 OFFSET ?"
    PAGE = (
        f"SELECT seq, id, title, body, {STATUS}, created_at FROM notification n"
        " WHERE account_seq = ? AND seq < ? AND created_at >= ? AND NOT is_digest ORDER BY seq DESC LIMIT ?"
    )
    SEARCHED = (  # the texts of those that are not wanted are left out
        "SELECT seq, id, iif(wanted, title, NULL), body, status, created_at FROM (SELECT seq, id, title, body,"
        f" {STATUS} AS status, created_at, coalesce({STATUS} = :status, 1) AS wanted FROM notification n"
        " WHERE {} AND seq < :before AND created_at >= :since AND created_at < :until AND NOT is_digest"
        " ORDER BY seq DESC LIMIT :rows)"
    )
    SEARCHED_OF_ACCOUNT = SEARCHED.format("account_seq = :account")
    SEARCHED_OF_ALERT = SEARCHED.format("alert_seq = :alert_seq AND +account_seq = :account")  # by the alert's index
    SEARCHED_OF_FEW = SEARCHED.format("account_seq = :account AND n.status IN ('failed', 'held')")  # by theirs
    ENTRY = (
        f"SELECT n.seq, n.id, n.title, n.body, {STATUS}, n.created_at, n.missing, k.name, n.alert_seq,"
        " l.id, l.name, l.icon, l.color, n.is_digest, n.released_at, h.digest_seq,"
        " coalesce(sum(d.status = 'delivered'), 0), count(d.status)"
        " FROM notification n LEFT JOIN api_key k ON k.seq = n.api_key_seq"
        " LEFT JOIN alert l ON l.seq = n.alert_seq LEFT JOIN held h ON h.notification_seq = n.seq"
        " LEFT JOIN delivery d ON d.notification_seq = coalesce(h.digest_seq, n.seq)"
    )
    ENTRIES = f"{ENTRY} WHERE n.seq IN (SELECT value FROM json_each(?)) GROUP BY n.seq ORDER BY n.seq DESC"
    BY_ID = f"{ENTRY} WHERE n.account_seq = ? AND n.id = ? AND n.created_at >= ? GROUP BY n.seq"
    ONE = "SELECT seq, id, title, body, status, created_at FROM notification WHERE seq = ?"
    STATS = (
        "SELECT notification_count,"
        " (SELECT coalesce(sum(notification_count), 0) FROM notification_day"
        "  WHERE account_seq = a.seq AND day BETWEEN :month || '-01' AND :month || '-31'),"
        " (SELECT coalesce(sum(notification_count), 0) FROM notification_day"
        "  WHERE account_seq = a.seq AND day = :day),"
        " (SELECT count(*) FROM alert WHERE account_seq = a.seq)"
        " FROM account a WHERE seq = :account"
    )
    SETTLED = (
        "UPDATE notification SET status = CASE"
        " WHEN 'delivered' IN (SELECT status FROM delivery WHERE notification_seq = seq) THEN 'delivered'"
        " WHEN 'pending' IN (SELECT status FROM delivery WHERE notification_seq = seq) THEN 'pending'"
        " WHEN 'failed' IN (SELECT status FROM delivery WHERE notification_seq = seq) THEN 'failed'"
        " ELSE 'delivered' END"
    )
    SETTLE = f"{SETTLED} WHERE seq = ? RETURNING status"
    SETTLE_ALL = f"{SETTLED} WHERE seq IN (SELECT value FROM json_each(?))"

    @classmethod
    def record(
        cls, sender: Caller | Owner | Webhook, text: Text, status: str, day: str, now: int
    ) -> tuple[NotificationRow, int] | None:
        """Insert a notification and count it; call inside `transaction()`.

        Answers with how many the account has got on `day` (YYYY-MM-DD) with it, too. None if the account is gone.
        """
        if not run(cls.COUNT, (sender.account_seq,)).rowcount:
            return None
        id_, (title, body, missing) = new_id(now), text
        lacked = json.dumps(missing) if missing else None
        values = (id_, sender.account_seq, sender.key_seq, sender.alert_seq, title, body, status, now, 0, lacked)
        seq = run(cls.INSERT, values).lastrowid or 0
        (of_day,) = run(cls.COUNT_DAY, (sender.account_seq, day)).fetchone()
        return NotificationRow(seq, id_, title, body, status, now), of_day

    @classmethod
    def has_pending(cls, account_seq: int, number: int) -> bool:
        """Whether the account has so many pending notifications, or more."""
        return run(cls.PENDING_FROM, (account_seq, number - 1)).fetchone() is not None

    @classmethod
    def one(cls, seq: int) -> NotificationRow:
        """The notification with that seq, which must exist."""
        return NotificationRow(*run(cls.ONE, (seq,)).fetchone())

    @classmethod
    def page(cls, account_seq: int, before: int, since: int, limit: int) -> Page:
        """Up to `limit` rows older than seq `before` and not older than time `since`."""
        found = run(cls.PAGE, (account_seq, before, since, limit + 1)).fetchall()
        rows = list(map(NotificationRow._make, found[:limit]))
        return Page(rows, rows[-1].seq if rows else before, len(found) <= limit)

    @classmethod
    def search(cls, account_seq: int, before: int, since: int, limit: int, wanted: Wanted) -> Page:
        """Like `page`, of rows that are `wanted`. Looks at a bounded number of rows: a page may be short."""
        is_in, rows, looked_at, cost = _contains(fold(wanted.term)), list[NotificationRow](), 0, 0
        values = {"account": account_seq, "before": before, "since": since, "rows": SEARCH_COST // PASSED_COST}
        for row in run(cls._searched(wanted), {**values, **wanted._asdict()}):
            cost += PASSED_COST if row[2] is None else ROW_COST + _folding_cost(row[2]) + _folding_cost(row[3])
            if row[2] is not None and (is_in(fold(row[2])) or is_in(fold(row[3]))):
                if len(rows) == limit:
                    return Page(rows, rows[-1].seq, False)
                rows.append(NotificationRow(*row))
            before, looked_at = row[0], looked_at + 1
            if cost > SEARCH_COST:
                return Page(rows, before, False)
        return Page(rows, before, looked_at < values["rows"])

    @classmethod
    def _searched(cls, wanted: Wanted) -> str:
        """The statement that looks at the fewest rows."""
        if wanted.alert_seq is not None:
            return cls.SEARCHED_OF_ALERT
        return cls.SEARCHED_OF_FEW if wanted.status in ("failed", "held") else cls.SEARCHED_OF_ACCOUNT

    @classmethod
    def entries(cls, seqs: list[int]) -> list[Entry]:
        """These notifications as the web app lists them, newest first."""
        return [Entry(*row) for row in run(cls.ENTRIES, (json.dumps(seqs),))]

    @classmethod
    def find(cls, account_seq: int, id_: str, since: int) -> Entry | None:
        """The account's notification or digest with that id, if it is not older than time `since`."""
        row = run(cls.BY_ID, (account_seq, id_, since)).fetchone()
        return Entry(*row) if row else None

    LATEST_OF_ALERTS = (
        f"SELECT l.seq, {STATUS}, n.missing FROM alert l JOIN notification n"
        " ON n.seq = (SELECT max(seq) FROM notification WHERE alert_seq = l.seq) WHERE l.account_seq = ?"
    )

    @classmethod
    def latest_of_alerts(cls, account_seq: int) -> dict[int, tuple[str, str | None]]:
        """By alert, the status of its latest notification and what that one's event lacked."""
        return {seq: (status, missing) for seq, status, missing in run(cls.LATEST_OF_ALERTS, (account_seq,))}

    @classmethod
    def newest_at(cls) -> int | None:
        """When the newest of all notifications was made."""
        row = run("SELECT created_at FROM notification ORDER BY seq DESC LIMIT 1").fetchone()
        return row and int(row[0])

    @classmethod
    def newest_between(cls, since: int, until: int) -> int:
        """The greatest seq of all notifications made from `since` until before `until`; 0 if there are none."""
        sql = "SELECT max(seq) FROM notification WHERE id >= ? AND id < ?"
        return run(sql, (f"{since:012x}", f"{until:012x}")).fetchone()[0] or 0

    @classmethod
    def stats(cls, account_seq: int, day: str) -> Stats:
        """The counters, for the month and the day of `day` (YYYY-MM-DD)."""
        return Stats(*run(cls.STATS, {"account": account_seq, "month": day[:7], "day": day}).fetchone())

    @classmethod
    def newest_seq(cls, account_seq: int) -> int:
        """The seq of the account's newest notification; 0 if there is none."""
        return run("SELECT max(seq) FROM notification WHERE account_seq = ?", (account_seq,)).fetchone()[0] or 0

    @classmethod
    def count_by_quarter_hour(cls, account_seq: int, since: int, after: int, until: int) -> list[tuple[int, int]]:
        """(start in ms, how many) of each quarter of an hour since `since`, of rows after one seq, until another."""
        counts = run(
            "SELECT created_at / 900000 * 900000 AS start, count(*) FROM notification WHERE account_seq = ?"
            " AND seq > ? AND seq <= ? AND created_at >= ? AND NOT is_digest GROUP BY start",
            (account_seq, after, until, since),
        )
        return list(counts.fetchall())

    @classmethod
    def settle(cls, seq: int) -> str | None:
        """Derive the status from what became of the notification on each device; None if it was deleted."""
        row = run(cls.SETTLE, (seq,)).fetchone()
        return row and str(row[0])

    @classmethod
    def settle_all(cls, seqs: Iterable[int]) -> None:
        """The same for many at once; call inside `transaction()`."""
        run(cls.SETTLE_ALL, (json.dumps(list(seqs)),))

    @classmethod
    def add_digest(cls, account_seq: int, title: str, body: str, status: str, now: int) -> int:
        """The seq of a new digest, which is pushed like a notification; call inside `transaction()`."""
        values = (new_id(now), account_seq, None, None, title, body, status, now, 1, None)
        return run(cls.INSERT, values).lastrowid or 0

    @classmethod
    def release(cls, seq: int, status: str, now: int) -> None:
        """Let a notification that was held go its own way; call inside `transaction()`."""
        run("UPDATE notification SET status = ?, released_at = ? WHERE seq = ?", (status, now, seq))

    # --- pruning ---

    PRUNE = (
        "DELETE FROM notification WHERE seq IN (SELECT seq FROM (SELECT seq, created_at,"
        f" {STATUS} AS status FROM notification n WHERE account_seq = ? ORDER BY seq LIMIT ?)"
        " WHERE created_at < ? AND status NOT IN ('held', 'pending'))"
    )

    @classmethod
    def prune(cls, account_seq: int, before: int, limit: int) -> int:
        """Remove those that are done and older than `before`, of the `limit` oldest; answers with how many."""
        return run(cls.PRUNE, (account_seq, limit, before)).rowcount

    # --- deleting ---

    DELETE = "DELETE FROM notification WHERE account_seq = ? AND id = ? AND NOT is_digest"
    BEFORE = "SELECT seq FROM notification WHERE account_seq = ? AND seq > ? AND created_at < ? ORDER BY seq LIMIT ?"
    DELETE_ALL = "DELETE FROM notification WHERE seq IN (SELECT value FROM json_each(?))"

    @classmethod
    def delete_one(cls, account_seq: int, id_: str) -> bool:
        """Delete a notification and all that belongs to it; False when the account has none with that id."""
        return run(cls.DELETE, (account_seq, id_)).rowcount > 0

    @classmethod
    def before(cls, account_seq: int, after: int, created_before: int, limit: int) -> list[int]:
        """The seqs of the account's notifications after that one made before a time, in order, at most `limit`."""
        return [row[0] for row in run(cls.BEFORE, (account_seq, after, created_before, limit))]

    @classmethod
    def delete_all(cls, seqs: list[int]) -> None:
        """Delete these notifications and all that belongs to them; call inside `transaction()`."""
        run(cls.DELETE_ALL, (json.dumps(seqs),))


class DueDelivery(NamedTuple):
    """A claimed attempt: the notification, the device, since when and how often it was tried before."""

    account_seq: int
    account_email: str
    notification: NotificationRow
    device: ActiveDevice
    since: int
    attempts: int


class DueDevice(NamedTuple):
    """A device for which something is due, and since when."""

    seq: int
    account_seq: int
    kind: str
    due_at: int


class Delivery(Model):
    """What became of one notification on one device."""

    notification = peewee.ForeignKeyField(Notification, column_name="notification_seq", on_delete="CASCADE")
    device_seq = peewee.IntegerField()
    status = peewee.TextField()
    attempts = peewee.IntegerField()
    next_attempt_at = peewee.IntegerField(null=True)
    answered_at = peewee.IntegerField(null=True)
    error = peewee.TextField(null=True)

    class Meta:
        primary_key = peewee.CompositeKey("notification", "device_seq")

    INSERT = (
        "INSERT INTO delivery (notification_seq, device_seq, status, attempts, next_attempt_at)"
        " VALUES (?, ?, 'pending', 0, ?)"
    )
    WAITING = (  # the devices that have anything pending: one look into the index for each, however much that is
        "WITH RECURSIVE waiting (seq) AS (SELECT min(device_seq) FROM delivery WHERE status = 'pending' UNION ALL"
        " SELECT (SELECT min(device_seq) FROM delivery WHERE status = 'pending' AND device_seq > waiting.seq)"
        " FROM waiting WHERE seq IS NOT NULL)"
    )
    NEXT_DUE = "(SELECT min(next_attempt_at) FROM delivery WHERE status = 'pending' AND device_seq = waiting.seq)"
    DUE_DEVICES = (
        f"{WAITING} SELECT d.seq, d.account_seq, d.kind, {NEXT_DUE} AS due_at"
        " FROM waiting JOIN device d ON d.seq = waiting.seq"
        " WHERE d.removed_at IS NULL AND due_at <= ? ORDER BY due_at"
    )
    OLDEST_DUE = (
        "SELECT notification_seq FROM delivery WHERE status = 'pending' AND device_seq = ? AND next_attempt_at <= ?"
        " ORDER BY next_attempt_at LIMIT ?"
    )
    LEFT_BEHIND = (
        f"{WAITING} SELECT d.seq, d.removed_as FROM waiting JOIN device d ON d.seq = waiting.seq"
        " WHERE d.removed_at IS NOT NULL"
    )
    CLAIM = (
        "UPDATE delivery SET next_attempt_at = ? WHERE notification_seq = ? AND device_seq = ?"
        " AND status = 'pending' AND next_attempt_at <= ? RETURNING attempts"
    )
    CLAIMED = (
        "SELECT a.seq, a.email, n.seq, n.id, n.title, n.body, n.status, n.created_at,"
        " d.seq, d.id, d.kind, d.token, d.p256dh, d.auth, d.origin, coalesce(n.released_at, n.created_at)"
        " FROM notification n JOIN account a ON a.seq = n.account_seq, device d WHERE n.seq = ? AND d.seq = ?"
    )
    BRING_FORWARD = (
        "UPDATE delivery SET next_attempt_at = next_attempt_at - ? WHERE status = 'pending' AND device_seq = ?"
    )
    MAKE_DUE = "UPDATE delivery SET next_attempt_at = ? WHERE notification_seq = ? AND status = 'pending'"
    FAIL = (
        "UPDATE delivery SET status = 'failed', next_attempt_at = NULL, answered_at = ?, error = ?"
        " WHERE device_seq = ? AND notification_seq IN (SELECT value FROM json_each(?))"
    )
    FORGET = "DELETE FROM delivery WHERE device_seq = ? AND notification_seq IN (SELECT value FROM json_each(?))"
    ANSWER = (
        "UPDATE delivery SET status = ?, attempts = attempts + 1, next_attempt_at = ?, answered_at = ?, error = ?"
        " WHERE notification_seq = ? AND device_seq = ? AND status = 'pending'"
    )

    @classmethod
    def of_notification(cls, notification_seq: int) -> list["Delivery"]:
        """What became of it on each device, with the devices, in the order in which they were added."""
        joined = cls.select(cls, Device).join(Device, on=cls.device_seq == Device.seq, attr="device")
        rows = joined.where(cls.notification == notification_seq)
        return list(rows.order_by(Device.seq))

    @classmethod
    def add(cls, notification_seq: int, devices: Iterable[ActiveDevice], next_attempt_at: int) -> None:
        """One pending row a device, due at `next_attempt_at` unless an answer comes first."""
        for device in devices:
            run(cls.INSERT, (notification_seq, device.seq, next_attempt_at))

    @classmethod
    def due_devices(cls, now: int) -> list[DueDevice]:
        """The devices for which an attempt is due, the one that has waited longest first."""
        return [DueDevice(*row) for row in run(cls.DUE_DEVICES, (now,))]

    @classmethod
    def oldest_due(cls, device_seq: int, due_by: int, limit: int) -> list[int]:
        """The notifications that were to be pushed to the device by `due_by`, oldest first, at most `limit`."""
        return [row[0] for row in run(cls.OLDEST_DUE, (device_seq, due_by, limit))]

    @classmethod
    def claim(cls, due: Iterable[tuple[int, int]], now: int, lease_until: int) -> list[DueDelivery]:
        """Take these attempts (notification, device), so that nobody else does before `lease_until`."""
        with transaction():
            claims = [cls._claim(notification, device, now, lease_until) for notification, device in due]
        return [claimed for claimed in claims if claimed]

    @classmethod
    def _claim(cls, notification_seq: int, device_seq: int, now: int, lease_until: int) -> DueDelivery | None:
        """The attempt, unless another process took it or it was settled meanwhile."""
        claimed = run(cls.CLAIM, (lease_until, notification_seq, device_seq, now)).fetchone()
        if claimed is None:
            return None
        row: Sequence[Any] = run(cls.CLAIMED, (notification_seq, device_seq)).fetchone()
        return DueDelivery(row[0], row[1], NotificationRow(*row[2:8]), ActiveDevice(*row[8:15]), row[15], claimed[0])

    @classmethod
    def answer(
        cls,
        notification_seq: int,
        device_seq: int,
        status: str,
        error: str | None,
        next_attempt_at: int | None,
        now: int,
    ) -> None:
        """Record one attempt's outcome; a delivery that is settled already stays as it is."""
        values = (status, next_attempt_at, now, error, notification_seq, device_seq)
        run(cls.ANSWER, values)

    @classmethod
    def put_off(cls, notification_seq: int, device_seq: int, next_attempt_at: int) -> None:
        """Let an attempt that was not made be due later."""
        run(
            "UPDATE delivery SET next_attempt_at = ?"
            " WHERE notification_seq = ? AND device_seq = ? AND status = 'pending'",
            (next_attempt_at, notification_seq, device_seq),
        )

    @classmethod
    def count_pending(cls) -> int:
        """How many are to be tried again."""
        return int(run("SELECT count(*) FROM delivery WHERE status = 'pending'").fetchone()[0])

    @classmethod
    def next_due_at(cls) -> int | None:
        """When the first of them is due."""
        row = run(f"{cls.WAITING} SELECT min({cls.NEXT_DUE}) FROM waiting").fetchone()
        return None if row[0] is None else int(row[0])

    @classmethod
    def bring_forward(cls, by_ms: int) -> None:
        """Let all that is pending be due earlier, one device after the other."""
        for (device_seq,) in run(f"{cls.WAITING} SELECT seq FROM waiting WHERE seq IS NOT NULL").fetchall():
            with transaction():
                run(cls.BRING_FORWARD, (by_ms, device_seq))

    @classmethod
    def make_due(cls, notification_seq: int, now: int) -> None:
        """Let the worker take the notification's attempts at once."""
        run(cls.MAKE_DUE, (now, notification_seq))

    @classmethod
    def left_behind(cls) -> list[tuple[int, str]]:
        """The removed devices on which something is pending still, and what each was removed as."""
        return run(cls.LEFT_BEHIND).fetchall()

    @classmethod
    def fail(cls, device_seq: int, notification_seqs: list[int], error: str, now: int) -> None:
        """End these attempts as failed; call inside `transaction()`."""
        run(cls.FAIL, (now, error, device_seq, json.dumps(notification_seqs)))

    @classmethod
    def forget(cls, device_seq: int, notification_seqs: list[int]) -> None:
        """End these attempts as if the device had never been asked; call inside `transaction()`."""
        run(cls.FORGET, (device_seq, json.dumps(notification_seqs)))


class Earlier(NamedTuple):
    """The first request that came with an Idempotency-Key."""

    request_hash: bytes
    notification_seq: int
    answered_status: str | None


class IdempotencyKey(Model):
    """An Idempotency-Key and the notification it led to (CONTRACT 3)."""

    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    key = peewee.TextField()
    request_hash = peewee.BlobField()
    notification = peewee.ForeignKeyField(Notification, column_name="notification_seq", on_delete="CASCADE")
    answered_status = peewee.TextField(null=True)
    created_at = peewee.IntegerField()

    class Meta:
        primary_key = peewee.CompositeKey("account", "key")

    @classmethod
    def find(cls, account_seq: int, key: str, since: int) -> Earlier | None:
        """The first request with that key, if it was not before `since`."""
        row = run(
            "SELECT request_hash, notification_seq, answered_status FROM idempotency_key"
            " WHERE account_seq = ? AND key = ? AND created_at > ?",
            (account_seq, key, since),
        ).fetchone()
        return Earlier(*row) if row else None

    @classmethod
    def put(
        cls, account_seq: int, key: str, request_hash: bytes, notification: NotificationRow, answered: str | None
    ) -> None:
        """Keep the key with its notification, and the status answered if known, in the place of one that ran out."""
        run(
            "INSERT OR REPLACE INTO idempotency_key"
            " (account_seq, key, request_hash, notification_seq, answered_status, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (account_seq, key, request_hash, notification.seq, answered, notification.created_at),
        )

    @classmethod
    def note_answer(cls, notification_seq: int, status: str) -> None:
        """Keep the status that the first answer carries."""
        run(
            "UPDATE idempotency_key SET answered_status = ? WHERE notification_seq = ? AND answered_status IS NULL",
            (status, notification_seq),
        )

    @classmethod
    def prune(cls, before: int, limit: int) -> int:
        """Remove up to `limit` keys that came before `before`; answers with how many."""
        return run(
            "DELETE FROM idempotency_key WHERE notification_seq IN"  # has an index; the two columns of the key scan
            " (SELECT notification_seq FROM idempotency_key WHERE created_at <= ? LIMIT ?)",
            (before, limit),
        ).rowcount
