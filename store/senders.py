"""Senders of notifications, their credentials, and the devices that receive them.

Every request runs one of these queries: constant SQL that returns row types.
"""

from typing import Any, NamedTuple, Protocol

from models import Account, ActiveDevice
from store.database import run
from store.enabled import IS_ENABLED
from store.key_limits import SEND
from store.rows import Query, columns, reader

Subject = tuple[str, int]  # the kind of a sender, and its seq
OWNER: Subject = ("owner", 0)


class Sender(Protocol):
    """Who sends a notification: an API key's holder, an account's owner, or the webhook of an alert."""

    @property
    def account_seq(self) -> int:
        """The account that gets the notification."""

    @property
    def email(self) -> str:
        """The account's address."""

    @property
    def time_zone(self) -> str:
        """The account's time zone, an IANA name."""

    @property
    def key_seq(self) -> int | None:
        """The API key, if one sends."""

    @property
    def subject(self) -> Subject:
        """What a mute may name."""


class Caller(NamedTuple):
    """The holder of an API key."""

    key_seq: int
    account_seq: int
    plan: str
    time_zone: str
    email: str
    scope: str
    has_followers: int  # whether somebody may follow something of the account

    @property
    def subject(self) -> Subject:
        """The key."""
        return "key", self.key_seq


class Owner(NamedTuple):
    """An account's owner, who sends from the web app, or sent with a key what was to be sent later."""

    account_seq: int
    time_zone: str
    email: str
    key_seq: int | None = None

    @classmethod
    def of(cls, account: Account) -> "Owner":
        """The owner of that account."""
        return cls(account.seq, account.time_zone, account.email)

    @property
    def subject(self) -> Subject:
        """The key; a mute of everything names the owner, too."""
        return OWNER if self.key_seq is None else ("key", self.key_seq)


class SnoozedSender(NamedTuple):
    """The sender of a notification that was snoozed: at the end, quiet hours hold it as an event, whoever sent it."""

    account_seq: int
    email: str
    time_zone: str
    key_seq: int | None
    kind: str
    sender_seq: int
    quiet_hours: str | None  # also None for an alert that ignores them
    urgent_passes_quiet_hours: int
    frequency: str  # 'instant': its owner chose the time

    @property
    def subject(self) -> Subject:
        """What a mute may name."""
        return self.kind, self.sender_seq


class Watch:
    """A heartbeat or a rule on a metric as a sender: it has no key.

    Its notifications are not collected, and quiet hours also hold the urgent ones.
    """

    __slots__ = ()
    key_seq = None
    frequency = "instant"
    urgent_passes_quiet_hours = 0


class Webhook(NamedTuple):
    """An alert, found by its short code: whether it takes events, and its templates."""

    alert_seq: int
    name: str
    title_template: str | None
    body_template: str | None
    priority_template: str | None
    url_template: str | None
    tag_template: str | None
    image_template: str | None
    resolved_when: str | None
    repeats_urgent: int
    is_active: int
    last_triggered_at: int | None
    switched_on_at: int
    account_seq: int
    email: str
    time_zone: str
    has_followers: int  # whether somebody may follow something of the account

    @property
    def key_seq(self) -> None:
        """An event comes without a key."""

    @property
    def subject(self) -> Subject:
        """The alert."""
        return "alert", self.alert_seq


class AlertSender(NamedTuple):
    """An alert when an event is stored: the settings that decide whether and when it is delivered."""

    alert_seq: int
    is_active: int
    keeps_payload: int
    frequency: str
    urgent_passes_quiet_hours: int
    has_mute_button: int
    account_seq: int
    email: str
    time_zone: str
    quiet_hours: str | None  # also None for an alert that ignores them

    @property
    def key_seq(self) -> None:
        """An event comes without a key."""

    @property
    def subject(self) -> Subject:
        """The alert."""
        return "alert", self.alert_seq


class Receivers(NamedTuple):
    """The receivers of an account's notifications, and whether the sender may send."""

    devices: list[ActiveDevice]  # to push to; at first all that the account has
    last_was_dead: bool  # whether there is none because the last one was removed as dead by its provider's word
    today: int  # how many notifications the account got on the day that was asked for
    has_mutes: int  # whether the account may have mutes
    stored_bytes: int  # of the account, without its alerts' last payloads
    may_send: bool = True  # whether the account is enabled, and the key that sends is neither revoked nor expired
    quiet: tuple[ActiveDevice, ...] = ()  # those that would be pushed to, but are in their quiet hours
    fallbacks: tuple[ActiveDevice, ...] = ()  # channels that get it only if nothing else has it by then
    is_below_some: bool = False  # whether its priority is too low for some of the devices
    is_kept: bool = False  # whether a mute keeps it to the history, also from devices that are added later


QUIET_HOURS_OF_ALERT = (
    "CASE l.ignores_quiet_hours WHEN 1 THEN NULL ELSE a.quiet_hours END"  # NULL also for an alert that ignores them
)
IS_LIVE = "k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)"  # a key, now
# The holder of a key that is neither revoked nor expired.
find_caller = Query(
    Caller,
    f"SELECT {columns(Caller, 'a', key_seq='k.seq', account_seq='a.seq', scope='k.scope')}"
    f" FROM api_key k JOIN account a ON a.seq = k.account_seq WHERE k.key_hash = ? AND {IS_LIVE} AND {IS_ENABLED}",
).first
OF_ACCOUNT = {"account_seq": "a.seq", "email": "a.email", "time_zone": "a.time_zone"}
# The alert that has this code now, of an account that is enabled.
find_webhook = Query(
    Webhook,
    f"SELECT {columns(Webhook, 'l', alert_seq='l.seq', has_followers='a.has_followers', **OF_ACCOUNT)}"
    f" FROM alert l JOIN account a ON a.seq = l.account_seq WHERE l.short_code = ? AND {IS_ENABLED}",
).first
COPY = "LEFT JOIN notification_copy c ON c.notification_seq = n.seq"  # it has its sender, another account's
KEY = "coalesce(n.api_key_seq, CASE c.what WHEN 'key' THEN c.subject_seq END)"
# The sender of a stored notification, which must exist and come from no alert.
find_sender = Query(
    Owner,
    f"SELECT {columns(Owner, 'n', key_seq=KEY, **OF_ACCOUNT)}"
    f" FROM notification n JOIN account a ON a.seq = n.account_seq {COPY} WHERE n.seq = ?",
).one
SNOOZED_PARTS = {
    "key_seq": "n.api_key_seq",
    "kind": (
        "CASE WHEN c.what IS NOT NULL THEN c.what"
        " WHEN n.alert_seq IS NOT NULL THEN 'alert' WHEN n.api_key_seq IS NOT NULL THEN 'key'"
        " WHEN b.seq IS NOT NULL THEN 'heartbeat' WHEN r.seq IS NOT NULL THEN 'rule' ELSE 'owner' END"
    ),
    "sender_seq": "coalesce(c.subject_seq, n.alert_seq, n.api_key_seq, b.seq, r.seq, 0)",
    "quiet_hours": QUIET_HOURS_OF_ALERT,
    "urgent_passes_quiet_hours": "coalesce(l.urgent_passes_quiet_hours, 0)",  # the alert may have been deleted
    "frequency": "'instant'",
}
BY_NEITHER = "n.account_seq AND n.api_key_seq IS NULL AND n.alert_seq IS NULL"
# The sender of a notification that was snoozed, which must exist.
find_snoozed_sender = Query(  # a heartbeat or a rule is known by the tag of what it tells
    SnoozedSender,
    f"SELECT {columns(SnoozedSender, 'n', **SNOOZED_PARTS, **OF_ACCOUNT)}"
    f" FROM notification n JOIN account a ON a.seq = n.account_seq {COPY}"
    " LEFT JOIN alert l ON l.seq = coalesce(n.alert_seq, CASE c.what WHEN 'alert' THEN c.subject_seq END)"
    f" LEFT JOIN heartbeat b ON b.account_seq = {BY_NEITHER} AND n.tag = 'heartbeat ' || b.id"
    f" LEFT JOIN metric_rule r ON r.account_seq = {BY_NEITHER} AND n.tag = 'rule ' || r.id WHERE n.seq = ?",
).one
LAST_REMOVED_AS = (
    "SELECT removed_as FROM device WHERE account_seq = a.seq AND removed_at IS NOT NULL"
    " ORDER BY removed_at DESC, seq DESC LIMIT 1"
)
OF_RECEIVERS = (
    f"{columns(ActiveDevice, 'd')}, CASE WHEN d.seq IS NULL THEN ({LAST_REMOVED_AS}) END,"
    " (SELECT notification_count FROM notification_day WHERE account_seq = a.seq AND day = ?), a.has_mutes,"
    " (SELECT stored_bytes FROM notification_day WHERE account_seq = a.seq AND day = '')"
)
DEVICES = "LEFT JOIN device d ON d.account_seq = a.seq AND d.removed_at IS NULL AND d.confirm_by IS NULL"
RECEIVERS = (  # one look for all that is asked before a notification is stored
    f"SELECT {OF_RECEIVERS}, k.seq FROM account a"
    f" LEFT JOIN api_key k ON k.seq = ? AND {IS_LIVE} {DEVICES} WHERE a.seq = ? AND {IS_ENABLED}"
)
RECEIVERS_OF_ALERT = (
    f"SELECT {OF_RECEIVERS},"
    f" {columns(AlertSender, 'l', alert_seq='l.seq', quiet_hours=QUIET_HOURS_OF_ALERT, **OF_ACCOUNT)}"
    f" FROM alert l JOIN account a ON a.seq = l.account_seq {DEVICES} WHERE l.short_code = ? AND {IS_ENABLED}"
)
PLACE_OF_MORE = len(ActiveDevice._fields) + 4  # of the first column after those of `OF_RECEIVERS`
_read_device, _read_alert = reader(ActiveDevice), reader(AlertSender)


def own_key(sender: Sender) -> int | None:
    """The API key (its seq) of a sender that reaches only the notifications which that key sent; else None."""
    return sender.key_seq if isinstance(sender, Caller) and sender.scope == SEND else None


def find_receivers(account_seq: int, key_seq: int | None = None, day: str | None = None, now: int = 0) -> Receivers:
    """The receivers of a notification sent by this API key or (None) in another way.

    `day` (YYYY-MM-DD) is the one whose notifications are wanted.
    """
    found = run(RECEIVERS, (day, key_seq or 0, now, account_seq)).fetchall()
    if not found:
        return Receivers([], False, 0, 0, 0, may_send=False)
    return _receivers(found, key_seq is None or found[0][PLACE_OF_MORE] is not None)


def find_receivers_of_alert(short_code: str, day: str | None = None) -> tuple[AlertSender, Receivers] | None:
    """The alert that has this code now, and its receivers; `day` as above."""
    found = run(RECEIVERS_OF_ALERT, (day, short_code)).fetchall()
    return (_read_alert(found[0][PLACE_OF_MORE:]), _receivers(found)) if found else None


def _receivers(found: list[Any], may_send: bool = True) -> Receivers:
    first = found[0]
    removed_as, today, has_mutes, stored_bytes = first[PLACE_OF_MORE - 4 : PLACE_OF_MORE]
    devices = [_read_device(row[: len(ActiveDevice._fields)]) for row in found] if first[0] else []
    return Receivers(devices, removed_as == "dead", today or 0, has_mutes, stored_bytes or 0, may_send)
