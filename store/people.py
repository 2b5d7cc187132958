"""The accounts beside each other: how administrators list them, and what ends one.

Nothing here reads what an account has received.
"""

from typing import NamedTuple

from models import Account
from store import followers, server_notes
from store.database import run
from store.rows import Query, columns


class Person(NamedTuple):
    """An account as administrators see it."""

    seq: int
    email: str
    plan: str
    created_at: int
    is_administrator: int
    disabled_at: int | None
    invited_until: int | None
    last_seen_at: int | None
    devices: int  # how many it has


DEVICES = "(SELECT count(*) FROM device d WHERE d.account_seq = a.seq AND d.removed_at IS NULL)"
# Every account, the oldest first.
all_of_them = Query(Person, f"SELECT {columns(Person, 'a', devices=DEVICES)} FROM account a ORDER BY a.seq").all
# The enabled administrators but this one: of each, whether there is a password to sign in with.
other_administrators = Query(
    int,
    "SELECT CASE WHEN password_hash IS NULL THEN 0 ELSE 1 END FROM account"
    " WHERE is_administrator = 1 AND disabled_at IS NULL AND seq <> ?",
).all
# What leads into an account, or makes something happen there.
WAYS_IN = (
    "session",
    "one_time_link",
    "mail",
    "mail_limit",
    "mute",
    "silent_change",
    "alert",
    "heartbeat",
    "metric_rule",
)


def end_access(seq: int) -> None:
    """Void all credentials of the account, its devices, alerts and watches."""
    Account.change(seq, password_hash=None, ping_key=None, is_administrator=0)
    for table in WAYS_IN:
        run(f"DELETE FROM {table} WHERE account_seq = ?", (seq,))
    followers.forget_account(seq)
    run("UPDATE api_key SET revoked_at = created_at WHERE account_seq = ? AND revoked_at IS NULL", (seq,))
    run("UPDATE device SET removed_at = created_at, removed_as = 'removed', token = '' WHERE account_seq = ?", (seq,))


def delete_rest(seq: int) -> None:
    """Delete an account to which only its counters refer."""
    server_notes.put("last_account", str(Account.last_seq()))
    run("DELETE FROM notification_day WHERE account_seq = ?", (seq,))
    run("DELETE FROM account WHERE seq = ?", (seq,))
