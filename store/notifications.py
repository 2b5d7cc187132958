"""The history: the table of notifications and its queries, the hot paths of the service. No wire name is here."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from store import notification_days, pictures
from store.database import THESE, run
from store.rows import Change, Query, add_row, as_column, bytes_of, columns, given_fields, new_id, overdue, size
from store.senders import AlertSender, Sender, Webhook
from wire.notification import MIN_PRIORITY, SHOWN_COLUMNS, Content, Recorded

BEGUN_AT = "coalesce(n.released_at, n.created_at)"  # when the delivery of the notification n began
STATUS = (  # of the notification n: one released in a digest has the digest's; one for later has no row in held
    "CASE n.status WHEN 'held' THEN coalesce((SELECT CASE WHEN h.digest_seq IS NULL THEN 'held' ELSE"
    " coalesce((SELECT status FROM notification WHERE seq = h.digest_seq), 'delivered') END"
    " FROM held h WHERE h.notification_seq = n.seq), 'held') ELSE n.status END"
)

# A delivery that was made, and is to be made again: a repeat by mail. It counts as made, whatever becomes of that.
AGAIN = "(status = 'pending' AND answered_at IS NOT NULL AND error IS NULL)"
HAS_IT = f"(status = 'delivered' OR {AGAIN})"  # a delivery whose device has the notification

# Whether the notification n has answers, none was chosen, and it was not replaced. The label of an answer cannot look
# like the name of a field: its quotation marks are escaped.
IS_OPEN_QUESTION = (
    "n.actions IS NOT NULL AND n.replaced_by IS NULL AND n.actions LIKE '%\"answer\":%'"
    " AND NOT EXISTS (SELECT 1 FROM answer WHERE notification_seq = n.seq)"
)
ALARM_STATE = "(SELECT state FROM alarm WHERE notification_seq = n.seq)"

# The texts beside title and body, whose bytes count, too.
TEXTS = ("missing", "url", "tag", "actions", "acknowledge", "tags", "image", "picture")

AGED_FROM = (  # when the notification n was made; one for later counts from when it is delivered
    "CASE WHEN n.deliver_at IS NULL THEN n.created_at"
    " ELSE coalesce(n.released_at, CASE n.status WHEN 'held' THEN n.deliver_at ELSE n.created_at END) END"
)


# A `Recorded` as it is selected, which spares a page a fifth: seq, id, status, created_at, title, body, and
# the other fields that are set and shown (of `Content.given`), or None.
ListedRow = tuple[int, str, str, int, str, str, dict[str, Any] | None]


def shown_status(status: str, devices: int, priority: int | None, has_others: bool) -> str:
    """The status as the owner reads it: without a device, a notification was stored and not delivered.

    `has_others`: there were devices that did not get it, in their quiet hours or for its priority.
    """
    if status != "delivered" or devices:
        return status
    return "stored, not pushed" if priority == MIN_PRIORITY or has_others else "stored, no device"


class HistoryPage(NamedTuple):
    """Rows, newest first; the seq before which the next page begins; whether there is no next page."""

    rows: list[ListedRow]
    before: int
    is_done: bool


class Entry(NamedTuple):
    """A notification as the web app shows it, with its sender and its outcome."""

    seq: int
    id: str
    status: str
    created_at: int
    content: Content
    api_key: str | None  # the key's name
    alert_seq: int | None
    alert_id: str | None  # the alert's id, name, icon and colour; None once it was deleted. The id only of his own
    alert: str | None
    icon: str | None
    color: str | None
    is_digest: int
    released_at: int | None
    delivered_as: int  # the notification whose deliveries and status are its own: itself, or its digest
    digest_seq: int | None  # the digest that released it, or the notification that replaced it while it was held
    in_digest: int | None  # whether that is a digest, in which it has a line
    accepted: int  # how many devices' providers took it
    devices: int  # how many were asked
    quiet: int  # how many were not, in their quiet hours
    least_priority: int | None  # that a device of that time takes, as it is set now; None if there was none
    replaced_by: str | None  # the id of the newer notification with its tag, unless that was deleted
    is_replaced: int
    alarm_state: str | None  # if it is to be acknowledged
    is_open_question: int  # whether it can be answered and was not, nor replaced
    shared_by: str | None  # the owner's address, of a follower's copy

    @property
    def shown_status(self) -> str:
        """The status as the owner reads it."""
        stood_for = self.digest_seq and not self.in_digest  # a newer one with its tag was delivered instead
        priority = MIN_PRIORITY if stood_for else self.content.priority
        has_others = bool(self.quiet) or self.least_priority is not None
        return shown_status(self.status, self.devices, priority, has_others)


class LatestOfAlert(NamedTuple):
    """The status of an alert's latest notification, and the variables that its event lacked."""

    alert_seq: int
    status: str
    missing: tuple[str, ...]


# --- recording ---


def record(sender: Sender, content: Content, status: str, day: str, now: int) -> Recorded:
    """Insert a notification of an account that exists, and count it on `day` (YYYY-MM-DD)."""
    id_, alert_seq = new_id(now), sender.alert_seq if isinstance(sender, (AlertSender, Webhook)) else None
    origin = {"api_key_seq": sender.key_seq, "alert_seq": alert_seq}
    seq, stored_bytes = _add(id_, sender.account_seq, content, status, now, origin)
    notification_days.count(sender.account_seq, day, stored_bytes)
    return tuple.__new__(Recorded, (seq, id_, status, now, content))  # in half the time


def _add(
    id_: str, account_seq: int, content: Content, status: str, now: int, more: dict[str, int | None]
) -> tuple[int, int]:
    """The seq of a new row, and the size of its texts.

    What is not set is left out of the statement: sqlite3 takes 2 µs to bind a None.
    """
    row: dict[str, Any] = {"id": id_, "account_seq": account_seq, "status": status, "created_at": now}
    row["title"], row["body"] = content.title, content.body
    if given := content.given:
        more = more | {name: as_column(value) for name, value in given.items()}
    for name, value in more.items():
        if value is not None:
            row[name] = value
    stored_bytes = len((content.title + content.body).encode())
    if given:
        stored_bytes += bytes_of([row.get(name) for name in TEXTS])
    return add_row("notification", row), stored_bytes


def add_digest(account_seq: int, content: Content, status: str, now: int) -> int:
    """The seq of a new digest, which is pushed like a notification."""
    seq, stored_bytes = _add(new_id(now), account_seq, content, status, now, {"is_digest": 1})
    notification_days.add_bytes(account_seq, stored_bytes)
    return seq


# Give a notification that was held its status without the digest, as of then.
release = Change("UPDATE notification SET status = ?, released_at = ? WHERE seq = ?")

# --- reading ---

PENDING_FROM = (
    "SELECT 1 FROM notification WHERE account_seq = :account AND status = 'pending' UNION ALL"
    " SELECT 1 FROM notification WHERE account_seq = :account AND status = 'held' AND deliver_at IS NOT NULL"
    " AND released_at IS NULL LIMIT 1 OFFSET :number"
)
GIVEN, READ_GIVEN = given_fields(Content, "n", SHOWN_COLUMNS)
ROW = f"SELECT seq, id, {STATUS}, created_at, title, body, {GIVEN} FROM notification n"
PAGE = (
    f"{ROW} WHERE account_seq = :account AND seq < :before"
    f" AND (created_at >= :since OR {AGED_FROM} >= :since) AND is_digest = 0 ORDER BY seq DESC LIMIT :limit"
)
LISTED = f"{ROW} WHERE seq IN {THESE} ORDER BY seq DESC"
# The notification with that seq, which must exist, with the status in its row.
one = Query(Recorded, f"SELECT {columns(Recorded, 'n')} FROM notification n WHERE seq = ?").one
DELIVERED_AS = "CASE n.status WHEN 'held' THEN coalesce(h.digest_seq, n.seq) ELSE n.seq END"
SOURCES = {
    "api_key": "k.name",
    "delivered_as": DELIVERED_AS,
    "digest_seq": "h.digest_seq",
    "in_digest": "(SELECT is_digest = 1 AND h.priority > 0 FROM notification WHERE seq = h.digest_seq)",
    "replaced_by": "(SELECT id FROM notification WHERE seq = n.replaced_by AND account_seq = n.account_seq)",
    "is_replaced": "n.replaced_by IS NOT NULL",
    "alarm_state": ALARM_STATE,
    "is_open_question": IS_OPEN_QUESTION,
    "shared_by": "o.email",
}
OF_ALERT = {"alert_id": "CASE WHEN c.what IS NULL THEN l.id END", "alert": "l.name"}
OF_ALERT |= {name: f"l.{name}" for name in ("icon", "color")}
DEVICES = f"(SELECT count(*) FROM delivery WHERE notification_seq = {DELIVERED_AS}"
OUTCOME = {"accepted": f"{DEVICES} AND {HAS_IT})", "devices": f"{DEVICES} AND status <> 'quiet')"}
OUTCOME["quiet"] = f"{DEVICES} AND status = 'quiet')"
BEGUN_HERE = "coalesce(n.released_at, (SELECT created_at FROM notification WHERE seq = h.digest_seq), n.created_at)"
OUTCOME["least_priority"] = (  # an address that is not confirmed was not either
    "(SELECT min(min_priority) FROM device WHERE account_seq = n.account_seq AND confirm_by IS NULL"
    f" AND created_at <= {BEGUN_HERE} AND (removed_at IS NULL OR removed_at > {BEGUN_HERE}))"
)
ENTRY = (
    f"SELECT {columns(Entry, 'n', status=STATUS, **SOURCES, **OF_ALERT, **OUTCOME)}"
    " FROM notification n LEFT JOIN notification_copy c ON c.notification_seq = n.seq"
    " LEFT JOIN account o ON o.seq = c.owner_seq"
    " LEFT JOIN api_key k ON k.seq = coalesce(n.api_key_seq, CASE c.what WHEN 'key' THEN c.subject_seq END)"
    " LEFT JOIN alert l ON l.seq = coalesce(n.alert_seq, CASE c.what WHEN 'alert' THEN c.subject_seq END)"
    " LEFT JOIN held h ON h.notification_seq = n.seq"
)
# These notifications as the web app lists them, newest first.
entries = Query(Entry, f"{ENTRY} WHERE n.seq IN {THESE} ORDER BY n.seq DESC").all
# Sent by this key; for NULL, all.
OF_KEY = "coalesce(api_key_seq, 0) = coalesce(CAST(? AS INTEGER), api_key_seq, 0)"
BY_ID = Query(Entry, f"{ENTRY} WHERE n.account_seq = ? AND n.id = ? AND {AGED_FROM} >= ? AND {OF_KEY}")
# When the newest notification of all accounts was made; None if there is none.
newest_at = Query(int, "SELECT created_at FROM notification ORDER BY seq DESC LIMIT 1").first
# The seq of the account's newest notification; 0 if there is none.
newest_seq = Query(int, "SELECT coalesce(max(seq), 0) FROM notification WHERE account_seq = ?").one
LATEST_OF_ALERTS = Query(
    LatestOfAlert,
    f"SELECT {columns(LatestOfAlert, 'n', alert_seq='l.seq', status=STATUS)} FROM alert l JOIN notification n"
    " ON n.seq = (SELECT max(seq) FROM notification WHERE alert_seq = l.seq) WHERE l.account_seq = ?",
)


def has_pending(account_seq: int, number: int) -> bool:
    """Whether the account has at least `number` notifications that are pending or to be sent later."""
    return run(PENDING_FROM, {"account": account_seq, "number": number - 1}).fetchone() is not None


def page(account_seq: int, before: int, since: int, limit: int) -> HistoryPage:
    """Up to `limit` rows older than seq `before` and not older than time `since`."""
    found = run(PAGE, {"account": account_seq, "before": before, "since": since, "limit": limit + 1}).fetchall()
    rows = _listed(found[:limit])
    return HistoryPage(rows, rows[-1][0] if rows else before, len(found) <= limit)


def listed(seqs: list[int]) -> list[ListedRow]:
    """These notifications, newest first."""
    return _listed(run(LISTED, (seqs,)).fetchall())


def _listed(rows: list[Any]) -> list[ListedRow]:
    return [row if row[6] is None else (*row[:6], READ_GIVEN(row[6])) for row in rows]


def find(account_seq: int, id_: str, since: int, own_key: int | None = None) -> Entry | None:
    """The notification or digest with that id, not older than `since`; with `own_key` only if that key sent it."""
    return BY_ID.first(account_seq, id_, since, own_key)


def latest_of_alerts(account_seq: int) -> dict[int, LatestOfAlert]:
    """The latest notification of each alert of the account that has made one, by the alert's seq."""
    return {latest.alert_seq: latest for latest in LATEST_OF_ALERTS.all(account_seq)}


# --- settling ---

ANY = "EXISTS (SELECT 1 FROM delivery WHERE notification_seq = seq AND status ="
SETTLED = (
    f"UPDATE notification AS n SET status = CASE WHEN priority = {MIN_PRIORITY} OR EXISTS (SELECT 1 FROM delivery"
    f" WHERE notification_seq = seq AND {HAS_IT}) THEN 'delivered' WHEN {ANY} 'pending') THEN 'pending'"
    f" WHEN NOT {ANY} 'failed') THEN 'delivered' WHEN replaced_by IS NULL AND EXISTS (SELECT 1 FROM snooze"
    " WHERE notification_seq = seq AND until > 0) THEN 'pending' ELSE 'failed' END"
)
# Derive the status from the deliveries; None if the notification was deleted.
settle = Query(str, f"{SETTLED} WHERE seq = ? RETURNING status").first
# A device has the notification now, whatever became of it on the others.
note_delivered = Change("UPDATE notification SET status = 'delivered' WHERE seq = ?").later
SETTLE_ALL = (  # after a release in a digest it has the digest's status, until a device took a repeat instead
    f"{SETTLED} WHERE seq IN {THESE}"
    f" AND (status <> 'held' OR ({STATUS} IN ('pending', 'failed') AND {ANY} 'delivered')))"
)


def settle_all(seqs: Iterable[int]) -> None:
    """Derive the statuses of many at once."""
    run(SETTLE_ALL, (list(seqs),))


expired = overdue("notification", "expires_at", only="status = 'pending'")
# Those of these notifications that have expired.
expired_of = Query(int, f"SELECT seq FROM notification WHERE seq IN {THESE} AND expires_at <= ?").all


# --- replacing ---

REPLACE = (
    "UPDATE notification SET replaced_by = ? WHERE account_seq = ? AND tag = ? AND replaced_by IS NULL"
    f" AND seq < ? AND {OF_KEY} RETURNING seq, status"
)


def replace_earlier(account_seq: int, tag: str, seq: int, own_key: int | None = None) -> list[tuple[int, str]]:
    """Mark the account's earlier notifications with a tag as replaced by the newest.

    With `own_key` only those that this key sent. Answers with the seq and the status of each. There is at most one,
    unless two were held.
    """
    return run(REPLACE, (seq, account_seq, tag, seq, own_key)).fetchall()


# The id of the account's newest notification with a tag, unless that was deleted; of one key, or (None) of all.
newest_with_tag = Query(
    str,
    "SELECT id FROM notification WHERE account_seq = ? AND tag = ? AND replaced_by IS NULL"
    f" AND {OF_KEY} ORDER BY seq DESC LIMIT 1",
).first


# Settle those of these notifications that were to be sent later as failed.
end_scheduled = Change(
    f"UPDATE notification SET status = 'failed' WHERE seq IN {THESE} AND status = 'held'"
    " AND deliver_at IS NOT NULL AND released_at IS NULL"
)

# Whether a newer notification with its tag has been recorded.
is_replaced = Query(int, "SELECT replaced_by IS NOT NULL FROM notification WHERE seq = ?").first
# The seqs of the account's newest notifications with a tag that this one replaced.
replaced_with = Query(
    int,
    "SELECT seq FROM notification WHERE account_seq = ? AND tag = ? AND replaced_by = ? ORDER BY seq DESC LIMIT ?",
).all


# --- pruning and deleting ---

# Of the `account`'s oldest beyond the seq `after`, `limit` at most, those made before a time: the seq of each, and
# whether it may be removed: it is neither held nor pending, nor delivered later than that.
oldest = Query(
    tuple[int, int],
    "SELECT seq, is_done FROM (SELECT seq, created_at,"
    f" {AGED_FROM} < :before AND {STATUS} NOT IN ('held', 'pending') AS is_done FROM notification n"
    " WHERE account_seq = :account AND seq > :after ORDER BY seq LIMIT :limit) oldest WHERE created_at < :before",
).all
SIZE = size("title", "body", *TEXTS)
SIZE_OF = f"SELECT {SIZE} FROM notification WHERE seq = ?"
REWRITE = f"UPDATE notification SET title = ?, body = ?, priority = ? WHERE seq = ? RETURNING {SIZE}"
TITLES = (
    "SELECT id, title FROM notification WHERE account_seq = ?"
    " AND id IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
)
# The seq of the account's notification with an id, unless it is a digest; of one key, or (None) of all.
find_seq = Query(
    int, f"SELECT seq FROM notification WHERE account_seq = ? AND id = ? AND is_digest = 0 AND {OF_KEY}"
).first
# The account's first seqs beyond one, of notifications made before a time.
before = Query(
    int, "SELECT seq FROM notification WHERE account_seq = ? AND seq > ? AND created_at < ? ORDER BY seq LIMIT ?"
).all
# How many of these are notifications and not digests.
count_without_digests = Query(int, f"SELECT count(*) FROM notification WHERE seq IN {THESE} AND is_digest = 0").one
DELETE_ALL = f"DELETE FROM notification WHERE seq IN {THESE} RETURNING {SIZE}"


def titles(account_seq: int, ids: list[str]) -> dict[str, str]:
    """The titles of those of these notifications that the account has, by id."""
    return dict(run(TITLES, (account_seq, ids)))


def find_seqs(account_seq: int, ids: list[str], own_key: int | None = None) -> list[int]:
    """The seqs of those of these notifications that the account has, newest first; of no digests."""
    found = {find_seq(account_seq, id_, own_key) for id_ in ids}
    return sorted((seq for seq in found if seq), reverse=True)


def rewrite(account_seq: int, seq: int, content: Content) -> None:
    """Give a digest another text."""
    (before,) = run(SIZE_OF, (seq,)).fetchone()
    (after,) = run(REWRITE, (content.title, content.body, content.priority, seq)).fetchone()
    notification_days.add_bytes(account_seq, after - before)


def delete_all(account_seq: int, seqs: list[int]) -> None:
    """Delete these notifications of the account, their deliveries and pictures."""
    pictures.remove(account_seq, seqs)
    freed = run(DELETE_ALL, (seqs,)).fetchall()
    notification_days.add_bytes(account_seq, -sum(row[0] for row in freed))
