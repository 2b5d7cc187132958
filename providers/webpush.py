"""Web Push: requests, encryption, the VAPID signature, what an answer says (RFC 8030, 8188, 8291, 8292; CONTRACT 6).

Must not know Flask, the database, or what an outcome leads to. Cryptography is imported when it is first needed: it
weighs 20 MB.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from config import Settings
from process import clock
from providers.base import LIFE_S, Answer, Message, Outcome, Push, Said, Unavailable, compact_json, fitted, shown
from providers.transport import Reply, Request
from wire.errors import Refused
from wire.validation import required_text

MAX_BYTES = 3_993  # clear text; 4,096 once encrypted
SIGNATURE_LIFE_S = 12 * 3600
SIGNATURE_RENEWED_S = 3600  # before its end
KEPT_SIGNATURES = 1_000
NO_CONTACT = (".localhost", ".local", ".invalid")

ENDPOINT = re.compile(
    r"(?P<origin>(?P<scheme>https?)://(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?P<port>:[0-9]+)?)/[!-~]*",
    re.I,
)
BASE64URL = re.compile(r"[A-Za-z0-9_-]+={0,2}")
REASON = re.compile(rb'"reason"\s*:\s*"([A-Za-z]{1,60})"')


@dataclass(frozen=True)
class Subscription:
    """A browser's Web Push subscription, checked."""

    endpoint: str
    p256dh: str
    auth: str


class WebPush:
    """The push services that WEBPUSH_HOSTS names. `vapid_key` answers with what `new_vapid_key` made once."""

    def __init__(self, settings: Settings, vapid_key: Callable[[], str]) -> None:
        self.settings, self._vapid_key = settings, vapid_key
        self._kept_signer: Any = None
        self._signatures: dict[tuple[str, str], tuple[str, int]] = {}

    def origin(self, push: Push) -> str:
        """The push service's; `Unavailable` when it may not be asked."""
        return self._permitted(push)[0]

    def request(self, push: Push, left_s: float) -> Request:
        """The request that pushes; `Unavailable` when its service may not be asked."""
        import http_ece
        from cryptography.hazmat.primitives.asymmetric import ec

        origin, any_address = self._permitted(push)
        body = http_ece.encrypt(
            _payload(push.message, push.origin or self.settings.public_url),
            private_key=ec.generate_private_key(ec.SECP256R1()),
            dh=_decoded(push.p256dh or ""),
            auth_secret=_decoded(push.auth or ""),
            version="aes128gcm",
        )
        headers = {
            "Authorization": self._authorization(origin, push.email),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(LIFE_S),
            "Topic": push.message.id,
            "Urgency": "high",
        }
        return Request(push.token, headers, body, any_address)

    def said(self, reply: Reply) -> Said:
        """The service's own word, when it has the form of one."""
        match = REASON.search(reply.body)
        return Said(reply.status, match[1].decode() if match else "")

    def renew(self, used: Request) -> None:
        """Signatures are never too old."""

    def public_key(self) -> str:
        """The public half of the VAPID key, as browsers want it: an uncompressed point, base64url."""
        from cryptography.hazmat.primitives import serialization

        point = self._signer().public_key.public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        return base64.urlsafe_b64encode(point).decode().rstrip("=")

    def checked_subscription(self, value: Any) -> Subscription:
        """What a browser's `PushSubscription.toJSON()` holds; raises `Refused` (400) naming what is wrong with it."""
        if not isinstance(value, dict):
            raise Refused(400, "subscription must be an object: what PushSubscription.toJSON() gives.")
        endpoint, keys = required_text(value, "endpoint"), value.get("keys")
        if not isinstance(keys, dict):
            raise Refused(400, "subscription.keys must be an object with p256dh and auth.")
        if len(endpoint) > 2048 or self._permission(endpoint) is None:
            raise Refused(400, "subscription.endpoint is not the address of a push service in WEBPUSH_HOSTS.")
        p256dh, auth = required_text(keys, "p256dh"), required_text(keys, "auth")
        if not _is_point(_decoded(p256dh)):
            raise Refused(400, "subscription.keys.p256dh is not an uncompressed P-256 public key in base64url.")
        if len(_decoded(auth)) != 16:
            raise Refused(400, "subscription.keys.auth is not 16 bytes in base64url.")
        return Subscription(endpoint, p256dh, auth)

    def contact_warning(self, email: str) -> str | None:
        """A sentence when the contact that goes with this owner's pushes is one that Apple refuses."""
        subject = self._contact(email)
        host = subject.rpartition("@")[2] if "@" in subject else subject.removeprefix("https://").split(":")[0]
        if host != "localhost" and not host.endswith(NO_CONTACT):
            return None
        return f"Apple refuses Web Push from the contact {subject}: set BASE_URL to the public https address."

    def _contact(self, email: str) -> str:
        """The VAPID subject: `BASE_URL` when it is https, else the owner's mail address."""
        base_url = self.settings.base_url or ""
        return base_url if base_url.startswith("https://") else f"mailto:{email}"

    def _permitted(self, push: Push) -> tuple[str, bool]:
        permitted = self._permission(push.token)
        if permitted is None:
            what = "The push service of this subscription is not in WEBPUSH_HOSTS."
            raise Unavailable(Answer(Outcome.CONFIGURATION, what))
        return permitted

    def _permission(self, endpoint: str) -> tuple[str, bool] | None:
        """The endpoint's origin and whether any address is permitted; None if WEBPUSH_HOSTS does not name it."""
        match = ENDPOINT.fullmatch(endpoint)
        if match is None:
            return None
        origin, host = match["origin"].lower(), match["host"].lower()
        allowed = self.settings.webpush_hosts
        if origin in allowed:
            return origin, True
        if match["scheme"].lower() != "https" or match["port"] not in (None, ":443"):
            return None
        for entry in allowed:
            if host == entry or (entry.startswith("*.") and host.endswith(entry[1:])):
                return f"https://{host}", False
        return None

    def _authorization(self, origin: str, email: str) -> str:
        """The VAPID header for an origin, kept and renewed an hour before its end."""
        now_s = clock.now_ms() // 1000
        kept = self._signatures.get((origin, email))
        if kept and now_s < kept[1] - SIGNATURE_RENEWED_S and kept[1] - now_s <= SIGNATURE_LIFE_S:
            return kept[0]
        expires_at = now_s + SIGNATURE_LIFE_S
        claims = {"aud": origin, "exp": expires_at, "sub": self._contact(email)}
        header: str = self._signer().sign(claims)["Authorization"]
        if len(self._signatures) >= KEPT_SIGNATURES:
            self._signatures.clear()
        self._signatures[origin, email] = (header, expires_at)
        return header

    def _signer(self) -> Any:
        if self._kept_signer is None:
            from py_vapid import Vapid02

            signer = Vapid02.from_raw(self._vapid_key().encode())
            signer.conf = {"no-strict": True}  # its idea of a contact has no port
            self._kept_signer = signer
        return self._kept_signer


def new_vapid_key() -> str:
    """The text of a new P-256 private key: 32 bytes, base64url."""
    from cryptography.hazmat.primitives.asymmetric import ec

    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")


def _payload(message: Message, origin: str) -> bytes:
    """The declarative form, which the service worker reads too."""
    fixed = {"navigate": origin + message.path, "tag": message.id}

    def build(title: str, body: str) -> bytes:
        return compact_json({"web_push": 8030, "notification": {"title": title, "body": body, **fixed}})

    return build(*fitted(shown(message.content.title), shown(message.content.body), build, MAX_BYTES))


def _decoded(value: str) -> bytes:
    """base64url, padded or not; empty when it is not that."""
    if not BASE64URL.fullmatch(value):
        return b""
    try:
        return base64.urlsafe_b64decode(value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4))
    except ValueError:
        return b""


def _is_point(data: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)
    except ValueError:
        return False
    return len(data) == 65
