"""The latest requests to each alert, as `core/recent_requests.py` writes them: one row for each alert."""

import peewee

from models import Alert, Model
from store.database import run


class AlertRequests(Model):
    """The requests of one alert."""

    alert = peewee.ForeignKeyField(Alert, column_name="alert_seq", primary_key=True, on_delete="CASCADE")
    requests = peewee.TextField()

    PUT = (  # nothing for an alert that was deleted meanwhile
        "INSERT INTO alert_requests (alert_seq, requests) SELECT seq, ? FROM alert WHERE seq = ?"
        " ON CONFLICT (alert_seq) DO UPDATE SET requests = excluded.requests"
    )

    @classmethod
    def put(cls, alert_seq: int, requests: str) -> None:
        """Replace what is kept (JSON text); call inside `transaction()`."""
        run(cls.PUT, (requests, alert_seq))

    @classmethod
    def find(cls, alert_seq: int) -> str | None:
        """What is kept of the alert."""
        row = run("SELECT requests FROM alert_requests WHERE alert_seq = ?", (alert_seq,)).fetchone()
        return row and str(row[0])
