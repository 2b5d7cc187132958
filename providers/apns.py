"""Apple's push service, APNs: its settings, requests, provider token and answers.

All threads share one provider token, renewed after 40 minutes: Apple accepts a token for 60, and no new one within
20. PyJWT and cryptography are imported when they are first needed. Must not know Flask, the database, or the
consequences of an outcome.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from process import clock
from providers.base import Meaning, Message, Outcome, Provider, Push, Server, fitted, private_key
from providers.transport import Request
from settings.variables import SettingError, Variable, between, http_origin, matching, text_of_file, value_or_file
from wire.json_text import json_bytes
from wire.notification import HIGH_PRIORITY, LOW_PRIORITY, MAX_PRIORITY

MAX_BYTES = 4_096
TOKEN_LIFE_S = 40 * 60
MIN_RENEWAL_S = 20 * 60.0  # Apple refuses a token that follows another sooner
CLOCK_TOLERANCE_S = 60
CRITICAL_SOUND = {"critical": 1, "name": "default", "volume": 1.0}  # without it, a muted phone stays silent
APPLE_ID = r"[A-Za-z0-9]{10}"


@dataclass(frozen=True)
class ApnsSettings:
    """The account at Apple: `key` is the PEM text of its private key."""

    url: str
    is_critical: bool  # urgent notifications are critical alerts, which Apple must have allowed the app
    key: str = field(repr=False)
    key_id: str
    team_id: str
    topic: str


def _p8_key(value: str) -> str:
    pem = value.replace("\\n", "\n")  # some platforms keep a variable on one line
    if getattr(getattr(private_key(pem), "curve", None), "name", None) != "secp256r1":
        raise ValueError
    return pem


KEY = Variable("APNS_KEY", None, _p8_key, "the PEM text of Apple's .p8 key", secret=True)
KEY_FILE = Variable("APNS_KEY_FILE", None, text_of_file, "the path of Apple's .p8 key")


class Apns(Provider[ApnsSettings]):
    """APNs with the account that the settings name."""

    kind = "apns"
    name = "APNs"
    service = "Apple's push service"
    hint = "Check the APNS_ settings."
    company = "Apple"
    answers = (
        Meaning("200", Outcome.DELIVERED),
        Meaning("410", Outcome.DEAD),
        Meaning("400", Outcome.TRANSIENT, "IdleTimeout"),
        Meaning("400", Outcome.CONFIGURATION, "DeviceTokenNotForTopic|TopicDisallowed|MissingTopic|BadTopic"),
        Meaning("403", Outcome.EXPIRED, "ExpiredProviderToken"),
        Meaning("404", Outcome.CONFIGURATION),
    )
    variables = (
        KEY,
        KEY_FILE,
        Variable("APNS_KEY_ID", None, matching(APPLE_ID), "the key's id, ten letters and digits"),
        Variable("APNS_TEAM_ID", None, matching(APPLE_ID), "Apple's team id, ten letters and digits"),
        Variable(
            "APNS_TOPIC", None, matching(r"[A-Za-z0-9.-]{1,255}"), "the app's bundle id, such as org.example.bell"
        ),
        Variable(
            "APNS_URL", "https://api.push.apple.com", http_origin, "an origin, such as https://api.push.apple.com"
        ),
        Variable("APNS_CRITICAL", "0", between(0, 1), "1 for an app that Apple allows critical alerts, or 0"),
    )
    token_form = r"[0-9A-Fa-f]{64,200}", "64 to 200 hexadecimal digits"
    nobody = "00" * 32

    def __init__(self, settings: ApnsSettings | None, server: Server) -> None:
        super().__init__(settings, server)
        self._lock = threading.Lock()
        self._key: Any = None
        self._token, self._made_at_s, self._dated_s = "", 0.0, 0.0
        self._renewed_at_s = -MIN_RENEWAL_S

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> ApnsSettings | None:
        """The account, from the APNS_ variables: all of them or none."""
        needed = {name: values[name] for name in ("APNS_KEY_ID", "APNS_TEAM_ID", "APNS_TOPIC")}
        parts = {"APNS_KEY": value_or_file(values, KEY, KEY_FILE)} | needed
        missing = [name for name, value in parts.items() if value is None]
        if len(missing) == len(parts):
            return None
        if missing:
            wanted = " and ".join(missing).replace("APNS_KEY ", "APNS_KEY (or APNS_KEY_FILE) ")
            raise SettingError(f"APNs is configured in part: {wanted} must be set, too.")
        return ApnsSettings(values["APNS_URL"], values["APNS_CRITICAL"] == 1, *parts.values())

    def checked_address(self, registration: Mapping[str, Any]) -> dict[str, Any]:
        """The device token in lower case, since its hexadecimal digits may be written either way."""
        return {"token": super().checked_address(registration)["token"].lower()}

    def request(self, push: Push, left_s: float) -> Request:
        """The request that pushes."""
        now = clock.now_ms()
        headers = {
            "authorization": f"bearer {self._provider_token()}",
            "apns-topic": self.settings.topic,
            "apns-push-type": "alert",
            "apns-priority": "5" if push.message.priority <= LOW_PRIORITY else "10",
            "apns-expiration": str(now // 1000 + push.message.life_s(now)),
            "apns-collapse-id": push.message.slot,
            "content-type": "application/json",
        }
        url = f"{self.settings.url}/3/device/{push.token}"
        return Request(url, headers, self._payload(push.message), any_address=True, leads=True)

    def renew(self, used: Request) -> None:
        """Drop the provider token unless another thread has replaced it, or Apple would not accept a new one yet."""
        with self._lock:
            now_s = clock.monotonic_s()
            is_current = used.headers["authorization"] == f"bearer {self._token}"
            if is_current and now_s - self._renewed_at_s >= MIN_RENEWAL_S:
                self._token, self._renewed_at_s = "", now_s

    def _provider_token(self) -> str:
        with self._lock:
            now_s, wall_s = clock.monotonic_s(), clock.now_ms() / 1000
            age_s = now_s - self._made_at_s
            # Apple compares the token's date with its own clock, so a token from before ours was set is wrong.
            clock_was_set = abs(wall_s - self._dated_s - age_s) > CLOCK_TOLERANCE_S
            if not self._token or clock_was_set or age_s >= TOKEN_LIFE_S:
                self._token = self._new_token(int(wall_s))
                self._made_at_s, self._dated_s = now_s, wall_s
            return self._token

    def _new_token(self, dated_s: int) -> str:
        import jwt

        self._key = self._key or private_key(self.settings.key)
        claims = {"iss": self.settings.team_id, "iat": dated_s}
        return jwt.encode(claims, self._key, "ES256", {"kid": self.settings.key_id})

    def _payload(self, message: Message) -> bytes:
        more = self._urgency(message.priority)
        beside = message.for_apps(self.server.public_url)
        if image := message.image(self.server.public_url):
            beside["image"] = image
            more["mutable-content"] = 1  # Apple lets the owner's app fetch the picture before it is shown

        def build(title: str, body: str) -> bytes:
            aps = {"alert": {"title": title, "body": body}, "sound": "default", **more}
            return json_bytes({"aps": aps, **beside})

        return fitted(message.content, build, MAX_BYTES)[2]

    def _urgency(self, priority: int) -> dict[str, Any]:
        """The members of `aps` that say how urgent it is."""
        if priority <= LOW_PRIORITY:
            return {"interruption-level": "passive"}
        if priority == MAX_PRIORITY and self.settings.is_critical:
            return {"interruption-level": "critical", "sound": CRITICAL_SOUND}
        return {"interruption-level": "time-sensitive"} if priority >= HIGH_PRIORITY else {}
