"""The push providers. Each declares itself in a module of its own; the rest of the code iterates over this table."""

from typing import Any

from providers.apns import Apns
from providers.base import Provider
from providers.email import Email
from providers.fcm import Fcm
from providers.ntfy import Ntfy
from providers.webhook import Webhook
from providers.webpush import WebPush

PROVIDERS: dict[str, type[Provider[Any]]] = {one.kind: one for one in (WebPush, Apns, Fcm, Ntfy, Webhook, Email)}


def is_fetched(kind: str) -> bool:
    """Whether devices of this kind poll for notifications instead of being pushed to."""
    return kind in PROVIDERS and PROVIDERS[kind].is_fetched


def is_mailed(kind: str) -> bool:
    """Whether devices of this kind get mails, in the background alone."""
    return kind in PROVIDERS and PROVIDERS[kind].is_mailed
