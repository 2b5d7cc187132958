"""Who sends a notification, and which credential stands for whom.

Every request runs one of these queries: constant SQL that returns row types.
"""

from typing import NamedTuple, Protocol

from models import Account
from store.database import run
from store.rows import columns, reader


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
    def alert_seq(self) -> int | None:
        """The alert, if one sends."""


class Caller(NamedTuple):
    """The holder of an API key."""

    key_seq: int
    account_seq: int
    plan: str
    time_zone: str
    email: str

    @property
    def alert_seq(self) -> None:
        """A key is no alert."""


class Owner(NamedTuple):
    """An account's owner, who sends from the web app."""

    account_seq: int
    time_zone: str
    email: str

    @classmethod
    def of(cls, account: Account) -> "Owner":
        """The owner of that account."""
        return cls(account.seq, account.time_zone, account.email)

    @property
    def key_seq(self) -> None:
        """The owner has a session instead."""

    @property
    def alert_seq(self) -> None:
        """The owner is no alert."""


class Webhook(NamedTuple):
    """An alert as its webhook address leads to it, with what is needed of its account."""

    alert_seq: int
    name: str
    title_template: str | None
    body_template: str | None
    priority_template: str | None
    url_template: str | None
    tag_template: str | None
    resolved_when: str | None
    repeats_urgent: int
    frequency: str
    is_active: int
    last_triggered_at: int | None
    switched_on_at: int
    keeps_payload: int
    account_seq: int
    email: str
    time_zone: str
    quiet_hours: str | None  # also None for an alert that ignores them
    urgent_passes_quiet_hours: int

    @property
    def key_seq(self) -> None:
        """An event comes without a key."""


QUIET_HOURS_OF_ALERT = (
    "CASE l.ignores_quiet_hours WHEN 1 THEN NULL ELSE a.quiet_hours END"  # NULL also for an alert that ignores them
)
CALLER = (
    f"SELECT {columns(Caller, 'a', key_seq='k.seq', account_seq='a.seq')}"
    " FROM api_key k JOIN account a ON a.seq = k.account_seq WHERE k.key_hash = ? AND k.revoked_at IS NULL"
)
OF_ACCOUNT = {"account_seq": "a.seq", "email": "a.email", "time_zone": "a.time_zone"}
WEBHOOK = (
    f"SELECT {columns(Webhook, 'l', alert_seq='l.seq', quiet_hours=QUIET_HOURS_OF_ALERT, **OF_ACCOUNT)}"
    " FROM alert l JOIN account a ON a.seq = l.account_seq WHERE l.short_code = ?"
)
_read_caller, _read_webhook = reader(Caller), reader(Webhook)


def find_caller(key_hash: bytes) -> Caller | None:
    """The holder of a key that is not revoked."""
    row = run(CALLER, (key_hash,)).fetchone()
    return _read_caller(row) if row else None


def find_webhook(short_code: str) -> Webhook | None:
    """The alert that has this code now."""
    row = run(WEBHOOK, (short_code,)).fetchone()
    return _read_webhook(row) if row else None
