"""The buttons that a notification has on a device: their tokens, and how they are pushed.

A press sends the button's token, which is derived (core/derived_tokens.py), so that a retry or a repeat pushes the
same one. Must not know requests or the effect of a press.
"""

from collections.abc import Iterable

from core import derived_tokens
from models import ActiveDevice, sha256_of
from process.clock import DAY_MS
from providers.base import PushedButton
from store import buttons as stored
from wire.notification import Content, Recorded

ACKNOWLEDGE = "Acknowledge"
MUTE = {"label": "Mute 1 h", "mute": "1h"}  # its alert, as the last button; a program cannot send such a one
LIFE_MS = 7 * DAY_MS


def token_of(notification_id: str, device_id: str, position: int | None) -> str:
    """The token of a button on a device. `position` is None for "Acknowledge"."""
    return derived_tokens.token_of("buttons", f"{notification_id} {device_id} {position}")


def add(notification: Recorded, devices: Iterable[ActiveDevice], now: int) -> None:
    """Store tokens for its buttons on these devices, as far as they have none yet; call inside `transaction()`."""
    positions, seq = _with_tokens(notification.content), notification.seq
    stored.add(
        [
            (sha256_of(token_of(notification.id, device.id, place)), seq, device.seq, place, now + LIFE_MS)
            for device in devices
            for place in positions
        ]
    )


def pushed(notification: Recorded, device_id: str) -> tuple[PushedButton, ...]:
    """The notification's buttons on a device, in the order in which they are shown."""
    content = notification.content
    if not content.actions and not content.acknowledge:
        return ()
    tokens = {place: token_of(notification.id, device_id, place) for place in _with_tokens(content)}
    first = (PushedButton("acknowledge", ACKNOWLEDGE, token=tokens[None]),) if content.acknowledge else ()
    return first + tuple(
        PushedButton(str(place), action["label"], action.get("url"), tokens.get(place))
        for place, action in enumerate(content.actions)
    )


def _with_tokens(content: Content) -> list[int | None]:
    """The positions of the buttons whose press this service receives."""
    first: list[int | None] = [None] if content.acknowledge else []
    return first + [place for place, action in enumerate(content.actions) if "url" not in action]
