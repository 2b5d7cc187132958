"""The push providers: payload, headers, what an answer means (CONTRACT 6).

`send` pushes to many devices at once and says of each what became of it. Must not know Flask, the database, or who
the user is. Cryptography is imported when it is first needed: it weighs 20 MB.
"""

import base64
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

import clock
import transport
from config import Settings
from errors import Refused, log_fault
from fields import required_text
from transport import Reply, Request

log = logging.getLogger("pocketbell")

KINDS = {"apns": "APNs", "fcm": "FCM", "webpush": "Web Push"}
WEBPUSH_MAX_BYTES = 3993  # clear text; 4,096 once encrypted
WEBPUSH_LIFE_S = 86_400
SIGNATURE_LIFE_S = 12 * 3600
SIGNATURE_RENEWED_S = 3600  # before its end
KEPT_SIGNATURES = 1_000
LEAST_BODY = 200  # characters of the body that a long title leaves room for
MAX_RETRY_AFTER_S = 48 * 3600
NO_CONTACT = (".localhost", ".local", ".invalid")

APNS_TOKEN = re.compile(r"[0-9A-Fa-f]{64,200}")
FCM_TOKEN = re.compile(r"[!-~]{1,4096}")
ENDPOINT = re.compile(
    r"(?P<origin>(?P<scheme>https?)://(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?P<port>:[0-9]+)?)/[!-~]*",
    re.I,
)
BASE64URL = re.compile(r"[A-Za-z0-9_-]+={0,2}")
REASON = re.compile(rb'"reason"\s*:\s*"([A-Za-z]{1,60})"')
NOT_PUSHED = {code: None for code in (*range(32), *range(127, 160)) if code != ord("\n")}


class Outcome(Enum):
    """What a provider's answer means for the device and the notification."""

    DELIVERED = "delivered"
    DEAD = "dead"  # the token is no more: remove the device
    REFUSED = "refused"  # this device will not get this one: failed, the device stays
    TRANSIENT = "transient"  # try again later
    CONFIGURATION = "configuration"  # try again later, and tell the owner


@dataclass(frozen=True)
class Message:
    """What to show. `id` makes a repeat replace the first on the screen; `path` is opened by a tap."""

    id: str
    title: str
    body: str
    path: str


@dataclass(frozen=True)
class Push:
    """One message to one device. `email` is the owner's, for a provider that has something to say."""

    kind: str
    token: str
    message: Message
    email: str
    p256dh: str | None = None
    auth: str | None = None
    origin: str | None = None


@dataclass(frozen=True)
class Answer:
    """What became of one push; `error` is a sentence for the owner unless it was delivered."""

    outcome: Outcome
    error: str | None = None
    retry_after_s: int | None = None


@dataclass(frozen=True)
class Subscription:
    """A browser's Web Push subscription, checked."""

    endpoint: str
    p256dh: str
    auth: str


class _State:
    """What `configure` was given, and what is kept between pushes."""

    settings: Settings
    vapid_key: Callable[[], str]
    signer: Any = None
    signatures: dict[tuple[str, str], tuple[str, int]] = {}


def configure(settings: Settings, vapid_key: Callable[[], str]) -> None:
    """Call before anything else. `vapid_key` answers with the text `new_vapid_key` made once for this service."""
    _State.settings, _State.vapid_key = settings, vapid_key
    _State.signer, _State.signatures = None, {}
    transport.trust(settings.ca_file)


# --- sending ------------------------------------------------------------------------------------------------


def send(pushes: list[Push], timeout_s: float) -> list[Answer]:
    """Push to all devices at once and answer for each, in order; waits for providers at most `timeout_s` seconds."""
    prepared = [_prepared(push) for push in pushes]
    requests = [request for request in prepared if isinstance(request, Request)]
    replies = iter(transport.send_all(requests, timeout_s) if requests else [])
    return [_read_webpush(next(replies)) if isinstance(one, Request) else one for one in prepared]


def _prepared(push: Push) -> Request | Answer:
    """One that cannot be built, by damaged data, must not take the others with it."""
    try:
        return _prepare(push)
    except ValueError as error:
        log_fault(log, "A push could not be built", error)
        return Answer(Outcome.REFUSED, "This push could not be built.")


def _prepare(push: Push) -> Request | Answer:
    """The request, or the answer if it cannot be made."""
    if push.kind != "webpush":
        return Answer(Outcome.CONFIGURATION, f"{KINDS[push.kind]} is not configured on this server.")
    permitted = _permission(push.token)
    if permitted is None:
        return Answer(Outcome.CONFIGURATION, "The push service of this subscription is not in WEBPUSH_HOSTS.")
    return _webpush_request(push, *permitted)


def shown(text: str) -> str:
    """The text as a push carries it: CR LF as LF, no other control characters."""
    return text.replace("\r\n", "\n").translate(NOT_PUSHED)


def fitted(title: str, body: str, build: Callable[[str, str], bytes], limit: int) -> bytes:
    """`build(title, body)` in at most `limit` bytes: the body, then the title, shortened on a character boundary."""
    if len(build(title, body)) > limit:
        title = _longest(title, lambda text: len(build(text, body[:LEAST_BODY])) <= limit)
        body = _longest(body, lambda text: len(build(title, text)) <= limit)
    return build(title, body)


def _longest(text: str, fits: Callable[[str], bool]) -> str:
    """The text, or as much of its beginning as fits with a `…`; escapes make sizes uneven, so by bisection."""
    if fits(text):
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle] + "…") else (low, middle - 1)
    return text[:low] + "…"


def compact_json(value: object) -> bytes:
    """UTF-8 JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def retry_after_s(headers: Mapping[str, str]) -> int | None:
    """`Retry-After` in seconds from now, given as a number or a date; None when it is neither."""
    value = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,9}", value):
        return min(int(value), MAX_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(0, round(at - clock.now_ms() / 1000)), MAX_RETRY_AFTER_S)


# --- Web Push (RFC 8030, 8188, 8291, 8292) ------------------------------------------------------------------


def new_vapid_key() -> str:
    """The text of a new P-256 private key: 32 bytes, base64url."""
    from cryptography.hazmat.primitives.asymmetric import ec

    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")


def public_vapid_key() -> str:
    """The public half, as browsers want it: an uncompressed point, base64url."""
    from cryptography.hazmat.primitives import serialization

    point = _signer().public_key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    return base64.urlsafe_b64encode(point).decode().rstrip("=")


def checked_subscription(value: Any) -> Subscription:
    """What a browser's `PushSubscription.toJSON()` holds; raises `Refused` (400) naming what is wrong with it."""
    if not isinstance(value, dict):
        raise Refused(400, "subscription must be an object: what PushSubscription.toJSON() gives.")
    endpoint, keys = required_text(value, "endpoint"), value.get("keys")
    if not isinstance(keys, dict):
        raise Refused(400, "subscription.keys must be an object with p256dh and auth.")
    if len(endpoint) > 2048 or _permission(endpoint) is None:
        raise Refused(400, "subscription.endpoint is not the address of a push service in WEBPUSH_HOSTS.")
    p256dh, auth = required_text(keys, "p256dh"), required_text(keys, "auth")
    if not _is_point(_decoded(p256dh)):
        raise Refused(400, "subscription.keys.p256dh is not an uncompressed P-256 public key in base64url.")
    if len(_decoded(auth)) != 16:
        raise Refused(400, "subscription.keys.auth is not 16 bytes in base64url.")
    return Subscription(endpoint, p256dh, auth)


def checked_token(kind: str, token: str) -> str:
    """An APNs or FCM device token; raises `Refused` (400) when it cannot be one."""
    if kind == "apns" and not APNS_TOKEN.fullmatch(token):
        raise Refused(400, "token must be 64 to 200 hexadecimal digits for APNs.")
    if kind == "fcm" and not FCM_TOKEN.fullmatch(token):
        raise Refused(400, "token must be 1 to 4,096 visible ASCII characters for FCM.")
    return token


def contact(email: str) -> str:
    """The VAPID subject: `BASE_URL` when it is https, else the owner's mail address."""
    base_url = _State.settings.base_url or ""
    return base_url if base_url.startswith("https://") else f"mailto:{email}"


def contact_warning(email: str) -> str | None:
    """A sentence when the contact that goes with this owner's pushes is one that Apple refuses."""
    subject = contact(email)
    host = subject.rpartition("@")[2] if "@" in subject else subject.removeprefix("https://").split(":")[0]
    if host != "localhost" and not host.endswith(NO_CONTACT):
        return None
    return f"Apple refuses Web Push from the contact {subject}: set BASE_URL to the public https address."


def _permission(endpoint: str) -> tuple[str, bool] | None:
    """The endpoint's origin and whether any address is permitted for it; None when WEBPUSH_HOSTS does not name it."""
    match = ENDPOINT.fullmatch(endpoint)
    if match is None:
        return None
    origin, host = match["origin"].lower(), match["host"].lower()
    allowed = _State.settings.webpush_hosts
    if origin in allowed:
        return origin, True
    if match["scheme"].lower() != "https" or match["port"] not in (None, ":443"):
        return None
    for entry in allowed:
        if host == entry or (entry.startswith("*.") and host.endswith(entry[1:])):
            return f"https://{host}", False
    return None


def _webpush_request(push: Push, origin: str, any_address: bool) -> Request:
    import http_ece
    from cryptography.hazmat.primitives.asymmetric import ec

    body = http_ece.encrypt(
        _webpush_payload(push.message, push.origin or _State.settings.public_url),
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_decoded(push.p256dh or ""),
        auth_secret=_decoded(push.auth or ""),
        version="aes128gcm",
    )
    headers = {
        "Authorization": _authorization(origin, push.email),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(WEBPUSH_LIFE_S),
        "Topic": push.message.id,
        "Urgency": "high",
    }
    return Request(push.token, headers, body, any_address)


def _webpush_payload(message: Message, origin: str) -> bytes:
    """The declarative form, which the service worker reads too."""
    fixed = {"navigate": origin + message.path, "tag": message.id}

    def build(title: str, body: str) -> bytes:
        return compact_json({"web_push": 8030, "notification": {"title": title, "body": body, **fixed}})

    return fitted(shown(message.title), shown(message.body), build, WEBPUSH_MAX_BYTES)


def _authorization(origin: str, email: str) -> str:
    """The VAPID header for an origin, kept and renewed an hour before its end."""
    now_s = clock.now_ms() // 1000
    kept = _State.signatures.get((origin, email))
    if kept and now_s < kept[1] - SIGNATURE_RENEWED_S and kept[1] - now_s <= SIGNATURE_LIFE_S:
        return kept[0]
    expires_at = now_s + SIGNATURE_LIFE_S
    claims = {"aud": origin, "exp": expires_at, "sub": contact(email)}
    header: str = _signer().sign(claims)["Authorization"]
    if len(_State.signatures) >= KEPT_SIGNATURES:
        _State.signatures.clear()
    _State.signatures[origin, email] = (header, expires_at)
    return header


def _signer() -> Any:
    if _State.signer is None:
        from py_vapid import Vapid02

        signer = Vapid02.from_raw(_State.vapid_key().encode())
        signer.conf = {"no-strict": True}  # its idea of a contact has no port
        _State.signer = signer
    return _State.signer


def _read_webpush(reply: Reply) -> Answer:
    if reply.failure:
        return Answer(Outcome.TRANSIENT, f"The push service could not be reached: {reply.failure}.")
    error = f"The push service answered {reply.status}{_reason(reply)}."
    match reply.status:
        case 200 | 201 | 202 | 204:
            return Answer(Outcome.DELIVERED)
        case 404 | 410:
            return Answer(Outcome.DEAD, "The browser's subscription has ended.")
        case 401 | 403:
            return Answer(Outcome.CONFIGURATION, error)
        case status if status < 400 or status >= 500 or status in (408, 425, 429):
            return Answer(Outcome.TRANSIENT, error, retry_after_s(reply.headers))
        case _:
            return Answer(Outcome.REFUSED, error)


def _reason(reply: Reply) -> str:
    """The provider's own word, when it has the form of one."""
    match = REASON.search(reply.body)
    return f" ({match[1].decode()})" if match else ""


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
