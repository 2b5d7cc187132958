"""Each alert's last payload and latest requests (core/recent_requests.py)."""

from typing import NamedTuple

from store.rows import Change, Query, columns


class KeptPayload(NamedTuple):
    """The last payload of an alert (JSON text, or None if it was too large), and when it came."""

    payload: str | None
    received_at: int


# Replace the kept payload of an alert by one that came then.
put_payload = Change(
    "INSERT INTO alert_payload (alert_seq, payload, received_at) VALUES (?, ?, ?) ON CONFLICT (alert_seq)"
    " DO UPDATE SET payload = excluded.payload, received_at = excluded.received_at"
).later
# The last payload of the alert, if it was kept.
find_payload = Query(
    KeptPayload, f"SELECT {columns(KeptPayload, 'p')} FROM alert_payload p WHERE alert_seq = ?"
).first
# Keep no payload of the alert.
forget_payload = Change("DELETE FROM alert_payload WHERE alert_seq = ?")
# Replace the requests (JSON text) of an alert, unless that was deleted meanwhile.
put_requests = Change(
    "INSERT INTO alert_requests (alert_seq, requests) SELECT seq, ? FROM alert WHERE seq = ?"
    " ON CONFLICT (alert_seq) DO UPDATE SET requests = excluded.requests"
)
# The alert's requests.
find_requests = Query(str, "SELECT requests FROM alert_requests WHERE alert_seq = ?").first
