"""The service's own mails, how many mails an account got lately, and mail addresses as devices: their queries."""

from typing import NamedTuple

from models import Device
from store.database import run, transaction
from store.enabled import OF_ENABLED
from store.rows import Change, Query, add_row, columns, overdue


class OwnMail(NamedTuple):
    """A mail of the service that is to be sent, to a device's address or the account's."""

    seq: int
    kind: str
    device_seq: int | None
    detail: str
    created_at: int
    attempts: int  # made before this one
    address: str  # '' if the device was removed
    origin: str | None  # at which the device's owner has the web app open
    token: str | None  # of the device's pages


class Limit(NamedTuple):
    """How many mails an account got lately, and how many it did not get since the limit was reached."""

    sent: tuple[int, ...]  # when, in ms
    more: int


OF_DEVICE = {"address": "CASE WHEN m.device_seq IS NULL THEN a.email ELSE coalesce(d.token, '') END"}
OF_DEVICE |= {"origin": "d.origin", "token": "d.auth"}
ONE = Query(
    OwnMail,
    f"SELECT {columns(OwnMail, 'm', **OF_DEVICE)} FROM mail m JOIN account a ON a.seq = m.account_seq"
    " LEFT JOIN device d ON d.seq = m.device_seq WHERE m.seq = ?",
)
CLAIM = "UPDATE mail SET next_attempt_at = ? WHERE seq = ? AND next_attempt_at <= ?"
# Try a mail again then, after another attempt.
put_off = Change("UPDATE mail SET next_attempt_at = ?, attempts = attempts + 1 WHERE seq = ?")
# Remove the mails to a device.
remove_of_device = Change("DELETE FROM mail WHERE device_seq = ?")
LIMIT = Query(Limit, f"SELECT {columns(Limit, 'l')} FROM mail_limit l WHERE account_seq = ?")
PUT_LIMIT = (
    "INSERT INTO mail_limit (account_seq, sent, more, device_seq, until) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (account_seq) DO UPDATE SET sent = excluded.sent, more = excluded.more,"
    " device_seq = coalesce(excluded.device_seq, mail_limit.device_seq), until = excluded.until"
)
# The accounts (their seqs) that are to be told now how many mails they did not get.
limits_over = Query(int, f"SELECT account_seq FROM mail_limit WHERE until <= ? AND account_seq {OF_ENABLED}").all
# The device that is told how many more mails the account did not get.
told_device = Query(int, "SELECT device_seq FROM mail_limit WHERE account_seq = ?").first

due = overdue("mail", "next_attempt_at", only=f"account_seq {OF_ENABLED}")
remove = Change("DELETE FROM mail WHERE seq = ?")  # which was sent, or never will be


def add(account_seq: int, kind: str, device_seq: int | None, detail: str, now: int) -> None:
    """Add a mail, which is due now."""
    row = {"account_seq": account_seq, "kind": kind, "device_seq": device_seq, "detail": detail, "created_at": now}
    add_row("mail", row | {"attempts": 0, "next_attempt_at": now})


def claim(seq: int, now: int, lease_until: int) -> OwnMail | None:
    """Take a mail with a lease: nobody else does before `lease_until`. None if another process has."""
    return ONE.first(seq) if run(CLAIM, (lease_until, seq, now)).rowcount else None


def bring_forward(by_ms: int) -> None:
    """Make the times of all mails earlier, and those at which accounts are told how many more there were."""
    for (account_seq,) in run("SELECT account_seq FROM mail UNION SELECT account_seq FROM mail_limit").fetchall():
        with transaction(account_seq):
            run("UPDATE mail SET next_attempt_at = next_attempt_at - ? WHERE account_seq = ?", (by_ms, account_seq))
            run("UPDATE mail_limit SET until = until - ? WHERE account_seq = ?", (by_ms, account_seq))


# --- the limit ---


def limit(account_seq: int) -> Limit:
    """What an account got lately."""
    return LIMIT.first(account_seq) or Limit((), 0)


def put_limit(account_seq: int, found: Limit, device_seq: int | None, until: int | None) -> None:
    """Keep it; at `until` the device is told how many more there were."""
    run(PUT_LIMIT, (account_seq, list(found.sent), found.more, device_seq, until))


# --- devices ---


def device_with_token(token: str) -> Device | None:
    """The device whose mails have this token in their links, of an account that is enabled."""
    return Device.first(f"auth = ? AND kind = 'email' AND removed_at IS NULL AND account_seq {OF_ENABLED}", token)
