"""The last payload of each alert, to write its templates with, and its queries. Callers pass the time."""

import peewee

from models import Alert, Model
from store.database import run_later


class AlertPayload(Model):
    """The last payload that came to an alert."""

    alert = peewee.ForeignKeyField(Alert, column_name="alert_seq", primary_key=True, on_delete="CASCADE")
    payload = peewee.TextField(null=True)
    received_at = peewee.IntegerField()

    PUT = (
        "INSERT INTO alert_payload (alert_seq, payload, received_at) VALUES (?, ?, ?) ON CONFLICT (alert_seq)"
        " DO UPDATE SET payload = excluded.payload, received_at = excluded.received_at"
    )

    @classmethod
    def put(cls, alert_seq: int, payload: str | None, now: int) -> None:
        """Replace the kept payload (JSON text, or None if it was too large); call inside `transaction()`."""
        run_later(cls.PUT, (alert_seq, payload, now))

    @classmethod
    def find(cls, alert_seq: int) -> "AlertPayload | None":
        """The last payload of the alert, if it was kept."""
        return cls.first("alert_seq = ?", alert_seq)

    @classmethod
    def forget(cls, alert_seq: int) -> None:
        """Keep nothing of the alert; call inside `transaction()`."""
        cls.delete().where(cls.alert == alert_seq).execute()
