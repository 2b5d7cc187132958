"""The latest requests to each alert, as `core/recent_requests.py` writes them: one row for each alert."""

from store.database import run
from store.rows import select_text

PUT = (  # nothing for an alert that was deleted meanwhile
    "INSERT INTO alert_requests (alert_seq, requests) SELECT seq, ? FROM alert WHERE seq = ?"
    " ON CONFLICT (alert_seq) DO UPDATE SET requests = excluded.requests"
)
FIND = "SELECT requests FROM alert_requests WHERE alert_seq = ?"


def put(alert_seq: int, requests: str) -> None:
    """Replace the alert's requests (JSON text); call inside `transaction()`."""
    run(PUT, (requests, alert_seq))


def find(alert_seq: int) -> str | None:
    """The alert's requests."""
    return select_text(FIND, (alert_seq,))
