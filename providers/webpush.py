"""Web Push: its settings, requests and answers (RFC 8030, RFC 8292).

Must not know Flask, the database, or the consequences of an outcome.
"""

import base64
import json
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from process import clock
from providers.base import Answer, Meaning, Message, Outcome, Provider, Push, Unavailable, fitted, one_line
from providers.transport import Request
from providers.web_addresses import HOSTS_IN_WORDS, Hosts, address_of, hosts
from settings.variables import Variable
from wire.errors import Refused
from wire.json_text import json_bytes
from wire.notification import LOW_PRIORITY, MAX_PRIORITY
from wire.validation import required_text

if TYPE_CHECKING:  # large packages are imported when they are first needed
    from providers.webpush_crypto import VapidKey

MAX_BYTES = 3_993  # of clear text: 4,096 once encrypted
MAX_ENDPOINT_CHARACTERS = 2_048
SIGNATURE_KEPT_S, MIN_SIGNATURE_LIFE_S = 11 * 3600, 3600
MAX_KEPT_SIGNATURES = 1_000
MAX_KEPT_ENDPOINTS = 1_000  # whose permission is kept: each push asks for it three times
DEFAULT_HOSTS = "fcm.googleapis.com,*.push.apple.com,*.push.services.mozilla.com,*.notify.windows.com"
COMPANIES = {  # by the end of their hosts
    "fcm.googleapis.com": "Google",
    ".push.apple.com": "Apple",
    ".push.services.mozilla.com": "Mozilla",
    ".notify.windows.com": "Microsoft",
}
NOT_PUBLIC_HOSTS = (".localhost", ".local", ".invalid")  # Apple refuses contacts that end like this

BASE64URL = re.compile(r"[A-Za-z0-9_-]+={0,2}")


class WebPush(Provider[Hosts]):
    """The push services of browsers, as far as WEBPUSH_HOSTS names them: its settings."""

    kind = "webpush"
    name = "Web Push"
    service = "The push service"
    hint = "Check BASE_URL and the server's clock."
    answers = (
        Meaning("200|201|202|204", Outcome.DELIVERED),
        Meaning("404|410", Outcome.DEAD),
    )
    variables = (Variable("WEBPUSH_HOSTS", DEFAULT_HOSTS, hosts, HOSTS_IN_WORDS),)

    @classmethod
    def taken_by(cls, token: str) -> str:
        """The company whose push service has this endpoint, if it is one of the default hosts."""
        address = address_of(token)
        host = address.host if address else ""
        return next((company for end, company in COMPANIES.items() if host.endswith(end)), cls.company)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Hosts:
        """The hosts of WEBPUSH_HOSTS; it has a default, so Web Push is always configured."""
        return tuple(values["WEBPUSH_HOSTS"])

    @classmethod
    def registration(cls, text: str) -> dict[str, Any]:
        """A subscription as JSON text."""
        try:
            return {"subscription": json.loads(text)}
        except (ValueError, RecursionError):
            raise Refused(400, "The subscription is not JSON. Use the output of PushSubscription.toJSON().") from None

    def checked_address(self, registration: Mapping[str, Any]) -> dict[str, Any]:
        """The endpoint and keys of `subscription`, the result of a browser's `PushSubscription.toJSON()`."""
        from providers.webpush_crypto import SECRET_BYTES, browser_keys

        value = registration.get("subscription")
        if not isinstance(value, dict):
            raise Refused(400, "subscription must be an object: what PushSubscription.toJSON() gives.")
        endpoint, keys = required_text(value, "endpoint", "subscription."), value.get("keys")
        if not isinstance(keys, dict):
            raise Refused(400, "subscription.keys must be an object with p256dh and auth.")
        if len(endpoint) > MAX_ENDPOINT_CHARACTERS or _permission(endpoint, self.settings) is None:
            raise Refused(400, "subscription.endpoint is not the address of a push service in WEBPUSH_HOSTS.")
        p256dh, auth = (required_text(keys, name, "subscription.keys.") for name in ("p256dh", "auth"))
        if len(_decoded(auth)) != SECRET_BYTES:
            raise Refused(400, "subscription.keys.auth is not 16 bytes in base64url.")
        try:
            browser_keys(_decoded(p256dh), _decoded(auth))
        except ValueError:
            what = "subscription.keys.p256dh is not an uncompressed P-256 public key in base64url."
            raise Refused(400, what) from None
        return {"token": endpoint, "p256dh": p256dh, "auth": auth}

    def origin(self, push: Push) -> str:
        """The push service's; raises `Unavailable` if WEBPUSH_HOSTS does not name it."""
        return self._permitted(push)[0]

    def request(self, push: Push, left_s: float) -> Request:
        """The request that pushes; raises `Unavailable` if WEBPUSH_HOSTS does not name the push service."""
        from providers.webpush_crypto import browser_keys, encrypted

        origin, any_address = self._permitted(push)
        payload = _payload(push.message, push.origin or self.server.public_url)
        body = encrypted(payload, browser_keys(_decoded(push.p256dh or ""), _decoded(push.auth or "")))
        headers = {
            "Authorization": self._authorization(origin, push.email),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(push.message.life_s(clock.now_ms())),
            "Topic": push.message.slot,
            "Urgency": "low" if push.message.priority <= LOW_PRIORITY else "high",
        }
        return Request(push.token, headers, body, any_address)

    def public_key(self) -> str:
        """The public half of the VAPID key, as browsers take it: an uncompressed point in base64url."""
        return self._vapid_key.public

    def warning(self, email: str) -> str | None:
        """A sentence if Apple refuses the contact that goes with this owner's pushes, and so all of them."""
        subject = self._contact(email)
        host = subject.rpartition("@")[2] if "@" in subject else subject.removeprefix("https://").split(":")[0]
        if host != "localhost" and not host.endswith(NOT_PUBLIC_HOSTS):
            return None
        return "Notifications will not reach Apple devices until BASE_URL is your public https address."

    def ready(self) -> str:
        """The VAPID key can be read, or was made just now."""
        self.public_key()
        return "its key pair exists."

    def _contact(self, email: str) -> str:
        """The VAPID subject: the public address when it is https, else the owner's mail address."""
        url = self.server.public_url
        return url if url.startswith("https://") else f"mailto:{email}"

    def _permitted(self, push: Push) -> tuple[str, bool]:
        permitted = _permission(push.token, self.settings)
        if permitted is None:
            what = "The push service of this subscription is not in WEBPUSH_HOSTS."
            raise Unavailable(Answer(Outcome.CONFIGURATION, what))
        return permitted

    def _authorization(self, origin: str, email: str) -> str:
        """The VAPID header for an origin, good for at least an hour."""
        renewed_at_s = (clock.now_ms() // 1000 // SIGNATURE_KEPT_S + 1) * SIGNATURE_KEPT_S
        return _signed(self._vapid_key, origin, self._contact(email), renewed_at_s + MIN_SIGNATURE_LIFE_S)

    @cached_property
    def _vapid_key(self) -> "VapidKey":
        from providers.webpush_crypto import VapidKey

        return VapidKey(self.server.vapid_key())


@lru_cache(MAX_KEPT_SIGNATURES)
def _signed(key: "VapidKey", origin: str, contact: str, expires_at_s: int) -> str:
    """The header that says who pushes to this origin: it is kept, since signing is slow."""
    return key.authorization({"aud": origin, "exp": expires_at_s, "sub": contact})


@lru_cache(MAX_KEPT_ENDPOINTS)
def _permission(endpoint: str, hosts: Hosts) -> tuple[str, bool] | None:
    """The endpoint's origin and whether any address is permitted; None if none of the hosts is the endpoint's."""
    address = address_of(endpoint)
    if address is None or not address.is_named_by(hosts):
        return None
    is_listed = address.origin in hosts
    return (address.origin, is_listed) if is_listed or address.origin == f"https://{address.host}" else None


def _payload(message: Message, origin: str) -> bytes:
    """The declarative form: Safari shows it by itself, elsewhere the service worker (static/sw.js) reads it."""
    fixed: dict[str, Any] = {"navigate": message.url or origin + message.path, "tag": message.slot}
    if message.content.tag:
        fixed["data"] = {"tag": message.content.tag}
    if message.buttons:
        fixed["actions"] = [
            {"action": button.action, "title": one_line(button.label), "navigate": address}
            for button, address in message.addressed_buttons(origin)
        ]
    if image := message.image(origin):
        fixed["image"] = image
    if message.priority <= LOW_PRIORITY:
        fixed["silent"] = True
    if message.priority == MAX_PRIORITY:
        fixed["requireInteraction"] = True

    # Safari ignores tags: a push with one lets the service worker show it, which closes the earlier ones.
    declared = {"web_push": 8030, "mutable": True} if message.content.tag else {"web_push": 8030}

    def build(title: str, body: str) -> bytes:
        return json_bytes({**declared, "notification": {"title": title, "body": body, **fixed}})

    return fitted(message.content, build, MAX_BYTES)[2]


def _decoded(value: str) -> bytes:
    """The bytes in base64url, padded or not; empty when it is not base64url."""
    try:
        return base64.urlsafe_b64decode(value + "==") if BASE64URL.fullmatch(value) else b""
    except ValueError:
        return b""
