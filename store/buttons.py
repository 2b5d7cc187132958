"""The buttons whose press a device sends to us, the answers, and their queries."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from store.database import THESE, run_later
from store.enabled import OF_ENABLED
from store.engine import inserting
from store.notifications import IS_OPEN_QUESTION
from store.rows import Change, Query, columns
from wire.notification import Content


class PressedButton(NamedTuple):
    """A button that can be pressed: its account, notification and device, and what the notification says."""

    account_seq: int
    notification_seq: int
    device_seq: int
    position: int | None  # None: it acknowledges
    content: Content
    alert_seq: int | None  # the notification's, or that of which a follower has a copy


class GivenAnswer(NamedTuple):
    """The answer to a notification: its place among the actions, and the device it came from (None: the web app)."""

    position: int
    answered_at: int
    device_id: str | None  # also None for a device of another account
    device_name: str | None
    by: str | None  # the address of the account that answered, if it was another one


class OpenQuestion(NamedTuple):
    """A notification with answers of which none was chosen."""

    id: str
    title: str
    created_at: int


COLUMNS = ("token_hash", "notification_seq", "device_seq", "position", "expires_at")
OF_COPY = "(SELECT subject_seq FROM notification_copy WHERE notification_seq = n.seq AND what = 'alert')"
OF_NOTIFICATION = {"content": columns(Content, "n"), "alert_seq": f"coalesce(n.alert_seq, {OF_COPY})"}
# The button with this token, if it has not expired and the owner has not removed its device.
pressed = Query(
    PressedButton,
    f"SELECT {columns(PressedButton, 'b', account_seq='n.account_seq', **OF_NOTIFICATION)}"
    " FROM button b JOIN notification n ON n.seq = b.notification_seq JOIN device d ON d.seq = b.device_seq"
    f" WHERE b.token_hash = ? AND b.expires_at > ? AND d.removed_as IS NOT 'removed' AND n.account_seq {OF_ENABLED}",
).first
# The notifications of some buttons that have expired: the account of each, and its seq.
expired = Query(
    tuple[int, int],
    "SELECT DISTINCT n.account_seq, n.seq FROM (SELECT notification_seq FROM button WHERE expires_at <= ?"
    " ORDER BY expires_at LIMIT ?) b JOIN notification n ON n.seq = b.notification_seq",
).all
# Remove the buttons of these notifications that have expired by then.
prune = Change(f"DELETE FROM button WHERE notification_seq IN {THESE} AND expires_at <= ?")
# Let a notification's buttons work `until` then at least.
extend = Change("UPDATE button SET expires_at = :until WHERE notification_seq = :seq AND expires_at < :until")
# Keep the answer if it is the first: its place, when it came, the device and, if it was another one, the account.
put_first_answer = Change(
    "INSERT INTO answer (notification_seq, position, answered_at, device_seq, by_account_seq) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (notification_seq) DO NOTHING"
)
OF_DEVICE = {"device_id": "CASE WHEN r.by_account_seq IS NULL THEN d.id END", "device_name": "d.name"}
# The answer to the notification, if there is one.
answer_to = Query(
    GivenAnswer,
    f"SELECT {columns(GivenAnswer, 'r', **OF_DEVICE, by='o.email')} FROM answer r LEFT JOIN device d"
    " ON d.seq = r.device_seq LEFT JOIN account o ON o.seq = r.by_account_seq WHERE r.notification_seq = ?",
).first
# The oldest questions since then that wait for an answer, without alarms that wait or are acknowledged.
open_questions = Query(
    OpenQuestion,
    f"SELECT {columns(OpenQuestion, 'n')} FROM notification n WHERE n.account_seq = :account"
    f" AND n.created_at >= :since AND {IS_OPEN_QUESTION}"
    " AND (n.deliver_at IS NULL OR n.status <> 'held') AND (n.expires_at IS NULL OR n.expires_at > :now)"
    " AND NOT EXISTS (SELECT 1 FROM alarm WHERE notification_seq = n.seq AND state IN ('waiting', 'acknowledged'))"
    " ORDER BY n.created_at LIMIT :limit",
).all
# Whether the notification was answered or acknowledged; None if there is no such notification.
is_answered = Query(
    int,
    "SELECT EXISTS (SELECT 1 FROM answer WHERE notification_seq = n.seq) OR EXISTS (SELECT 1 FROM alarm"
    " WHERE notification_seq = n.seq AND acknowledged_at IS NOT NULL) FROM notification n WHERE seq = ?",
).first


def add(rows: Sequence[tuple[bytes, int, int, int | None, int]]) -> None:
    """Add buttons, with the values of `COLUMNS`, as far as they do not exist."""
    if rows:
        statement = f"{inserting('button', COLUMNS, len(rows))} ON CONFLICT (token_hash) DO NOTHING"
        run_later(statement, tuple(chain.from_iterable(rows)))
