"""Each alert's last payload and latest requests (core/recent_requests.py)."""

from typing import NamedTuple

from store.database import run, run_later
from store.rows import Query, columns


class KeptPayload(NamedTuple):
    """The last payload of an alert (JSON text, or None if it was too large), and when it came."""

    payload: str | None
    received_at: int


PUT_PAYLOAD = (
    "INSERT INTO alert_payload (alert_seq, payload, received_at) VALUES (?, ?, ?) ON CONFLICT (alert_seq)"
    " DO UPDATE SET payload = excluded.payload, received_at = excluded.received_at"
)
# The last payload of the alert, if it was kept.
find_payload = Query(
    KeptPayload, f"SELECT {columns(KeptPayload, 'p')} FROM alert_payload p WHERE alert_seq = ?"
).first
PUT_REQUESTS = (  # nothing for an alert that was deleted meanwhile
    "INSERT INTO alert_requests (alert_seq, requests) SELECT seq, ? FROM alert WHERE seq = ?"
    " ON CONFLICT (alert_seq) DO UPDATE SET requests = excluded.requests"
)
# The alert's requests.
find_requests = Query(str, "SELECT requests FROM alert_requests WHERE alert_seq = ?").first


def put_payload(alert_seq: int, payload: str | None, now: int) -> None:
    """Replace the kept payload."""
    run_later(PUT_PAYLOAD, (alert_seq, payload, now))


def forget_payload(alert_seq: int) -> None:
    """Keep no payload of the alert."""
    run("DELETE FROM alert_payload WHERE alert_seq = ?", (alert_seq,))


def put_requests(alert_seq: int, requests: str) -> None:
    """Replace the alert's requests (JSON text)."""
    run(PUT_REQUESTS, (requests, alert_seq))
