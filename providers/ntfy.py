"""The ntfy app: its devices poll for their notifications at a secret address.

Nothing is pushed to them. `NTFY_UPSTREAM` wakes the app on an iPhone, which keeps no connection open. Must not know
Flask, the database, or how a notification is fetched.
"""

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from providers.base import Answer, Meaning, Outcome, Provider, Push
from providers.transport import Request
from settings.variables import Variable, http_origin

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX = "pb"
RANDOM_LETTERS = 40


class Ntfy(Provider[str]):
    """The apps of ntfy, which subscribe to a secret topic. The setting is the server that wakes iPhones, or ""."""

    kind = "ntfy"
    name = "ntfy app"
    service = "The ntfy app"
    hint = "Check NTFY_UPSTREAM."
    company = "the ntfy app"
    unreachable = "The ntfy app's addresses are switched off on this server (COMPATIBILITY)."
    answers = (Meaning("2..", Outcome.DELIVERED),)
    is_fetched = True
    variables = (
        Variable(
            "NTFY_UPSTREAM",
            None,
            http_origin,
            "the address of an ntfy server that wakes iPhones, such as https://ntfy.sh, without a path",
        ),
    )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> str | None:
        """The upstream server, which is optional; None where the app's addresses are switched off."""
        return values["NTFY_UPSTREAM"] or "" if values["COMPATIBILITY"] else None

    def checked_address(self, registration: Mapping[str, Any]) -> dict[str, Any]:
        """A new topic, in clear this once, and the two hashes that are kept of it."""
        topic = PREFIX + "".join(secrets.choice(LETTERS) for _ in range(RANDOM_LETTERS))
        address = f"{self.server.public_url}/{topic}"
        return {"topic": topic, "token": _hexadecimal(topic), "poll_hash": _hexadecimal(address)}

    def request(self, push: Push, left_s: float) -> Request | Answer:
        """Nothing is pushed: the app polls."""
        return Answer(Outcome.TRANSIENT, "The ntfy app fetches its notifications: send a test from Home.", 60, False)

    def waking(self, poll_hash: str, message_id: str) -> Request | None:
        """An empty message to the upstream server, which has Apple wake the app; it learns no text."""
        if not self.is_configured or not self.settings:
            return None
        url = f"{self.settings}/{poll_hash}"
        return Request(url, {"x-poll-id": message_id}, b"", any_address=True)  # the owner has listed it

    def ready(self) -> str:
        """The sentence of `doctor`."""
        return super().ready() if self.settings else "it is ready. Without NTFY_UPSTREAM no iPhone is woken."


def _hexadecimal(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
