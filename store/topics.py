"""Devices that fetch their notifications: found by topic, with the notifications stored for each.

A notification is stored for a device that has a delivery of it.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from store.database import THESE
from store.enabled import OF_ENABLED
from store.notifications import BEGUN_AT
from store.rows import Query, columns
from wire.notification import Recorded

NEWEST = 2_000  # notifications of an account in which a device's earlier ones are looked for


class FetchingDevice(NamedTuple):
    """A device that fetches, found by its topic."""

    seq: int
    id: str
    account_seq: int
    kind: str


class Found(NamedTuple):
    """A notification that is stored for a device, and when it last began to be delivered there.

    A repeat of it begins anew, and so does what is shown once it was acknowledged elsewhere.
    """

    seq: int
    id: str
    begun_at: int
    is_pending: int
    is_repeating: int
    repeats: int  # with those at the end of a snooze
    is_acknowledged: int  # on another device, in the web app or by a program
    acknowledged_on: str | None  # the device's name
    acknowledged_by: str | None  # the address of the account, if it was another one

    @property
    def version(self) -> str:
        """Tells the messages of one notification apart; empty for the first."""
        return "a" if self.is_acknowledged else str(self.repeats or "")


class Sleeper(NamedTuple):
    """A device that must be woken to fetch a notification."""

    kind: str
    poll_hash: str
    id: str  # the notification's
    priority: int | None


PENDING = "p.status = 'pending'"
ELSEWHERE = "(r.state = 'acknowledged' AND r.device_seq IS NOT p.device_seq)"
DEVICE = f"SELECT {columns(FetchingDevice, 'd')} FROM device d"
# The device whose topic has this hash.
device_of_topic = Query(
    FetchingDevice,
    f"{DEVICE} WHERE kind = 'ntfy' AND token = ? AND removed_at IS NULL AND account_seq {OF_ENABLED}",
).first
PRESENT = Query(
    int, f"SELECT seq FROM device WHERE seq IN {THESE} AND removed_at IS NULL AND account_seq {OF_ENABLED}"
)
OF_FOUND = {
    "begun_at": f"max({BEGUN_AT}, CASE WHEN {ELSEWHERE} THEN r.acknowledged_at ELSE 0 END) AS begun_at",
    "is_pending": f"{PENDING} AS is_pending",
    "is_repeating": "CASE r.state WHEN 'waiting' THEN 1 ELSE 0 END AS is_repeating",
    "repeats": "coalesce(r.repeats, 0) + coalesce((SELECT times FROM snooze WHERE notification_seq = n.seq), 0)",
    "is_acknowledged": f"CASE WHEN {ELSEWHERE} THEN 1 ELSE 0 END",
    "acknowledged_on": "(SELECT name FROM device WHERE seq = r.device_seq)",
    "acknowledged_by": "(SELECT email FROM account WHERE seq = r.by_account_seq)",
}
HAS_IT = (
    f"SELECT {columns(Found, 'n', **OF_FOUND)} FROM notification n"
    " JOIN delivery p ON p.notification_seq = n.seq AND p.device_seq = :device"
    " LEFT JOIN alarm r ON r.notification_seq = n.seq"
)
WAITING = "SELECT notification_seq FROM alarm WHERE account_seq = :account AND state = 'waiting'"
# The device no longer gets notifications that were replaced or came too late, or what came in its quiet hours; and
# none while it is held after a snooze.
STILL = (
    "p.status <> 'failed' AND p.status <> 'quiet' AND n.replaced_by IS NULL"
    " AND (n.expires_at IS NULL OR n.expires_at > :now)"
    " AND NOT EXISTS (SELECT 1 FROM held WHERE notification_seq = n.seq AND digest_seq IS NULL)"
)
STORED = Query(
    Found,
    f"SELECT * FROM ({HAS_IT} WHERE n.seq IN"
    " (SELECT seq FROM notification WHERE account_seq = :account AND seq > :after"
    " UNION SELECT seq FROM notification WHERE account_seq = :account AND released_at >= :since"
    " UNION SELECT * FROM (SELECT notification_seq FROM delivery WHERE device_seq = :device AND status = 'pending'"
    f" ORDER BY next_attempt_at LIMIT :pending) p UNION {WAITING})"
    f" AND {STILL}) f WHERE begun_at >= :since OR (:pending > 0 AND (is_pending OR is_repeating > 0))"
    " ORDER BY begun_at, seq",
)
BEGUN_SINCE = Query(
    Found,  # whatever the clock says: it may have been set back
    f"{HAS_IT} WHERE n.seq IN (SELECT seq FROM notification WHERE account_seq = :account AND seq > :after"
    " UNION SELECT seq FROM notification WHERE account_seq = :account AND released_at >= :since"
    " UNION SELECT notification_seq FROM alarm WHERE account_seq = :account AND acknowledged_at >= :since"
    f" UNION {WAITING} UNION SELECT value FROM json_each(:also))"
    f" AND {STILL} ORDER BY begun_at, n.seq",
)
OF_ID = Query(Found, f"{HAS_IT} WHERE n.account_seq = :account AND n.id = :id AND {STILL}")
ONE = Query(
    Recorded,
    f"SELECT {columns(Recorded, 'n')} FROM notification n"
    f" JOIN delivery p ON p.notification_seq = n.seq AND p.device_seq = :device WHERE n.seq = :seq AND {STILL}",
)
# The seq beyond which the account's newest notifications are that are looked at; None if these are all.
before_newest = Query(
    int, f"SELECT seq FROM notification WHERE account_seq = ? ORDER BY seq DESC LIMIT 1 OFFSET {NEWEST}"
).first
# When the delivery of a notification of the account began, and its seq; None if there is none with that id.
beginning = Query(
    tuple[int, int], f"SELECT {BEGUN_AT}, seq FROM notification n WHERE account_seq = ? AND id = ?"
).first
# Those of these devices that have a delivery of the notification.
sleepers = Query(
    Sleeper,
    f"SELECT {columns(Sleeper, 'd', id='n.id', priority='n.priority')} FROM delivery p"
    " JOIN device d ON d.seq = p.device_seq JOIN notification n ON n.seq = p.notification_seq"
    f" WHERE p.notification_seq = ? AND d.poll_hash IS NOT NULL AND d.seq IN {THESE}",
).all


def present(device_seqs: Iterable[int]) -> set[int]:
    """Those of these devices that are not removed, of accounts that are enabled."""
    return set(PRESENT.all(list(device_seqs)))


def stored(device: FetchingDevice, since: int, after: int, pending: int, now: int) -> list[Found]:
    """The notifications for the device, oldest first: begun at `since` or later, and up to `pending` waiting ones.

    Repeating ones are included, whenever they began. Of those that neither wait nor were held, only the ones with a
    seq beyond `after` count.
    """
    return STORED.all(**_of(device, now, after=after, since=since, pending=pending))


def begun(device: FetchingDevice, since: int, after: int, also: Iterable[int], now: int) -> list[Found]:
    """The notifications for the device with a seq beyond `after`, or released or acknowledged at `since` or later.

    Repeating ones are included, and those with the seqs `also`.
    """
    return BEGUN_SINCE.all(**_of(device, now, after=after, since=since, also=list(also)))


def with_id(device: FetchingDevice, id_: str, now: int) -> list[Found]:
    """The notification with that id, if it is stored for the device."""
    return OF_ID.all(**_of(device, now, id=id_))


def one(device: FetchingDevice, seq: int, now: int) -> Recorded | None:
    """The notification, unless it was deleted, replaced or has expired since it was found."""
    return ONE.first(device=device.seq, seq=seq, now=now)


def _of(device: FetchingDevice, now: int, **more: object) -> dict[str, Any]:
    return {"device": device.seq, "account": device.account_seq, "now": now, **more}
