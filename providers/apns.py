"""Apple's push service: requests, the provider token, what an answer says (CONTRACT 6).

One token for all threads, made anew after 40 minutes: Apple takes it for 60, and no new one within 20. PyJWT and
cryptography are imported when they are first needed. Must not know Flask, the database, or what an outcome leads to.
"""

import re
import threading
from typing import Any

from config import ApnsSettings
from process import clock
from providers.base import LIFE_S, Message, Push, Said, compact_json, fitted, parsed, shown
from providers.transport import Reply, Request

MAX_BYTES = 4_096
TOKEN_LIFE_S = 40 * 60
NO_NEW_TOKEN_S = 20 * 60.0
CLOCK_TOLERANCE_S = 60
TOKEN = re.compile(r"[0-9A-Fa-f]{64,200}")


class Apns:
    """The account at Apple that the settings name."""

    def __init__(self, settings: ApnsSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._key: Any = None
        self._token, self._made_at_s, self._dated_s = "", 0.0, 0.0
        self._renewed_at_s = -NO_NEW_TOKEN_S

    def origin(self, push: Push) -> str:
        """Apple's."""
        return self.settings.url

    def request(self, push: Push, left_s: float) -> Request:
        """The request that pushes."""
        headers = {
            "authorization": f"bearer {self._provider_token()}",
            "apns-topic": self.settings.topic,
            "apns-push-type": "alert",
            "apns-priority": "10",
            "apns-expiration": str(clock.now_ms() // 1000 + LIFE_S),
            "apns-collapse-id": push.message.id,
            "content-type": "application/json",
        }
        url = f"{self.settings.url}/3/device/{push.token}"
        return Request(url, headers, _payload(push.message), any_address=True, leads=True)

    def said(self, reply: Reply) -> Said:
        """Apple's reason."""
        return Said(reply.status, str(parsed(reply).get("reason", "")))

    def renew(self, used: Request) -> None:
        """Make another token, as Apple calls the one that was used too old; as often as Apple takes a new one."""
        with self._lock:
            now_s = clock.monotonic_s()
            is_ours = used.headers["authorization"] == f"bearer {self._token}"
            if is_ours and now_s - self._renewed_at_s >= NO_NEW_TOKEN_S:
                self._token, self._renewed_at_s = "", now_s

    def _provider_token(self) -> str:
        import jwt
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        with self._lock:
            now_s, wall_s = clock.monotonic_s(), clock.now_ms() / 1000
            age_s = now_s - self._made_at_s
            was_set = abs(wall_s - self._dated_s - age_s) > CLOCK_TOLERANCE_S  # the clock, since then
            if not self._token or was_set or age_s >= TOKEN_LIFE_S:
                self._key = self._key or load_pem_private_key(self.settings.key.encode(), None)
                claims = {"iss": self.settings.team_id, "iat": int(wall_s)}
                self._token = jwt.encode(claims, self._key, "ES256", {"kid": self.settings.key_id})
                self._made_at_s, self._dated_s = now_s, wall_s
            return self._token


def _payload(message: Message) -> bytes:
    def build(title: str, body: str) -> bytes:
        aps = {"alert": {"title": title, "body": body}, "sound": "default"}
        return compact_json({"aps": aps, "id": message.id, "path": message.path})

    return build(*fitted(shown(message.content.title), shown(message.content.body), build, MAX_BYTES))
