"""Pausing an alert whose address is flooded, and telling its owner."""

from core import recording
from models import Alert
from process import clock
from process.faults import log_fault
from store.database import WriteFailed, transaction
from store.senders import Webhook
from wire.notification import Content


def pause(webhook: Webhook, requests: int) -> None:
    """Make the alert inactive after so many requests within a minute, and tell its owner.

    If that cannot be written, the next request of the flood tries again.
    """
    title = f"Alert paused: {webhook.name}"
    body = f"It got {requests} requests within a minute and was switched off. Switch it on when they have stopped."
    try:
        with transaction(webhook.account_seq):
            now = clock.now_ms()
            if Alert.pause(now, webhook.alert_seq, webhook.switched_on_at):
                recording.tell(webhook, Content(title, body), now)
    except WriteFailed as error:
        log_fault("The pause of a flooded alert could not be written", error)
