"""The cryptography of Web Push: message encryption (RFC 8291, RFC 8188) and the server's signature (RFC 8292).

Curve, key derivation, cipher and signature come from cryptography and PyJWT; here they are combined by the RFCs.
Imported when it is first needed: the packages weigh 10 MB. Must not know requests, endpoints or messages.
"""

import base64
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE, ECDH, HASH = ec.SECP256R1(), ec.ECDH(), SHA256()
POINT_BYTES, SECRET_BYTES, SALT_BYTES = 65, 16, 16
RECORD_BYTES = 4_096  # in the head (RFC 8188): one record holds the whole message
LAST_RECORD = b"\x02"


class BrowserKeys(NamedTuple):
    """The keys of a browser's subscription, with which its messages are encrypted."""

    public: ec.EllipticCurvePublicKey
    point: bytes  # the same key, as the browser gave it
    secret: bytes


def browser_keys(point: bytes, secret: bytes) -> BrowserKeys:
    """The keys in a subscription's `p256dh` and `auth`; raises `ValueError` if the first is no uncompressed point."""
    if len(point) != POINT_BYTES:
        raise ValueError("not an uncompressed point")
    return BrowserKeys(ec.EllipticCurvePublicKey.from_encoded_point(CURVE, point), point, secret)


def encrypted(text: bytes, browser: BrowserKeys) -> bytes:
    """The text as the body of a push that only this browser can read, 103 bytes longer."""
    return sealed(text, browser, ec.generate_private_key(CURVE), os.urandom(SALT_BYTES))


def sealed(text: bytes, browser: BrowserKeys, key: ec.EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """The encrypted message, made with this key and salt; each message needs new ones."""
    point, shared = _point(key), key.exchange(ECDH, browser.public)
    input_key = _derived(shared, browser.secret, b"WebPush: info\0" + browser.point + point)
    content_key = _derived(input_key, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(input_key, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD_BYTES.to_bytes(4, "big") + bytes([POINT_BYTES]) + point
    return head + AESGCM(content_key).encrypt(nonce, text + LAST_RECORD, None)


class VapidKey:
    """The key pair that names this server to push services, from `new_vapid_key`; other text is a `ValueError`."""

    def __init__(self, text: str) -> None:
        number = int.from_bytes(base64.urlsafe_b64decode(text + "="), "big")  # its 43 characters lack one
        self._private = ec.derive_private_key(number, CURVE)
        self.public = _base64url(_point(self._private))  # as browsers take it

    def authorization(self, claims: Mapping[str, Any]) -> str:
        """The header that signs these claims."""
        return f"vapid t={jwt.encode(dict(claims), self._private, 'ES256')},k={self.public}"


def new_vapid_key() -> str:
    """The text of a new private key: 32 bytes, base64url."""
    return _base64url(ec.generate_private_key(CURVE).private_numbers().private_value.to_bytes(32, "big"))


def _derived(key: bytes, salt: bytes, info: bytes, length: int = 32) -> bytes:
    """HKDF with SHA-256 (RFC 5869)."""
    return HKDF(HASH, length, salt, info).derive(key)


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
