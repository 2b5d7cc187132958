"""The push providers. Each declares itself in a module of its own; the rest of the code iterates over this table."""

from typing import Any

from providers.apns import Apns
from providers.base import Provider
from providers.fcm import Fcm
from providers.webpush import WebPush

PROVIDERS: dict[str, type[Provider[Any]]] = {one.kind: one for one in (WebPush, Apns, Fcm)}
