"""The web app's queries about many notifications at once: which are alike, and who sent them."""

from typing import NamedTuple

from store.database import THESE
from store.notifications import ALARM_STATE, IS_OPEN_QUESTION, STATUS
from store.rows import Query, columns
from wire.notification import DEFAULT_PRIORITY

MAX_COUNTED = 5_000  # the newest rows, which are read to count some of them


class Outline(NamedTuple):
    """The columns that decide whether a notification and its neighbours are one row."""

    seq: int
    id: str
    created_at: int
    title: str
    priority: int  # the default one if none was sent
    api_key_seq: int | None
    alert_seq: int | None
    status: str
    is_waiting: int  # for an answer, or to be acknowledged


class Sent(NamedTuple):
    """How many notifications a key, an alert or (with neither) the owner has sent."""

    api_key_seq: int | None
    alert_seq: int | None
    sent: int
    failed: int


OUTLINE = {
    "priority": f"coalesce(n.priority, {DEFAULT_PRIORITY})",
    "status": STATUS,
    "is_waiting": f"({IS_OPEN_QUESTION} OR {ALARM_STATE} IS 'waiting')",
}
# These notifications, newest first.
outlines = Query(
    Outline,
    f"SELECT {columns(Outline, 'n', **OUTLINE)} FROM notification n WHERE seq IN {THESE} ORDER BY seq DESC",
).all
# How many of the newest `MAX_COUNTED` each sender has sent since that time, most first.
by_sender = Query(
    Sent,
    "SELECT api_key_seq, alert_seq, count(*), count(CASE WHEN shown = 'failed' THEN 1 END) FROM"
    f" (SELECT api_key_seq, alert_seq, created_at, {STATUS} AS shown FROM notification n WHERE account_seq = ?"
    f" AND is_digest = 0 ORDER BY seq DESC LIMIT {MAX_COUNTED}) newest WHERE created_at >= ?"
    " GROUP BY api_key_seq, alert_seq ORDER BY 3 DESC, 2, 1",
).all
