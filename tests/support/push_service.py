"""A stand-in Web Push service: speaks RFC 8030 on loopback, verifies what it gets and decrypts it.

It answers 400 to any push that a real service would refuse, so a test that sees `delivered` has seen a valid push.
"""

import base64
import json
import os
import threading
import time
from dataclasses import dataclass

import http_ece
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02

from tests.support.server import PATIENCE_S
from tests.support.stand_in_server import StandIn, StandInHandler

URGENCIES = ("very-low", "low", "normal", "high")


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unbase64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Browser:
    """A subscription: its keys, and what it has received."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.private_key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.messages: list[dict] = []
        self.pushes: list[dict[str, str]] = []  # headers of every push the service SAW, whatever it answered
        self.claims: list[dict] = []
        self.answers: list[Answer] = []

    @property
    def subscription(self) -> dict:
        point = self.private_key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        return {"endpoint": self.endpoint, "keys": {"p256dh": base64url(point), "auth": base64url(self.auth)}}

    @property
    def vapid_key(self) -> str:
        """The service's public key in the latest push."""
        return self.pushes[-1]["authorization"].partition("k=")[2]

    def then(
        self,
        status: int,
        body: bytes = b"",
        after_s: float = 0.0,
        after: threading.Event | None = None,
        **headers: str,
    ) -> "Browser":
        """Answer the next push like this, once the event `after` is set; 0 drops the connection without an answer."""
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        self.answers.append(Answer(status, body, after_s, named, after))
        return self


@dataclass
class Answer:
    status: int = 201
    body: bytes = b""
    after_s: float = 0.0
    headers: dict[str, str] | None = None
    after: threading.Event | None = None


class PushService(StandIn):
    def __init__(self) -> None:
        self.browsers: dict[str, Browser] = {}
        self.serve(_Handler)

    def browser(self) -> Browser:
        """A new subscription at this service."""
        browser = Browser(f"{self.origin}/push/{len(self.browsers)}")
        self.browsers[browser.endpoint.removeprefix(self.origin)] = browser
        return browser

    def forget(self) -> None:
        self.browsers.clear()

    def receive(self, browser: Browser, headers: dict[str, str], body: bytes) -> str | None:
        """Verify and keep one push, and return what is wrong with it."""
        if headers.get("content-encoding") != "aes128gcm" or len(body) > 4096:
            return "encoding or size"
        if not headers.get("ttl", "").isdigit() or headers.get("urgency") not in URGENCIES:
            return "TTL or urgency"
        topic = headers.get("topic", "")
        if len(topic) > 32 or not topic.replace("-", "").replace("_", "").isalnum():
            return "topic"
        wrong = self._check_vapid(browser, headers.get("authorization", ""))
        if wrong:
            return wrong
        text = http_ece.decrypt(body, private_key=browser.private_key, auth_secret=browser.auth, version="aes128gcm")
        browser.messages.append(json.loads(text))
        return None

    def _check_vapid(self, browser: Browser, authorization: str) -> str | None:
        if not authorization.startswith("vapid t=") or not Vapid02.verify(authorization):
            return "VAPID signature"
        token = authorization.removeprefix("vapid t=").split(",")[0]
        header, claims = (json.loads(unbase64url(part)) for part in token.split(".")[:2])
        browser.claims.append(claims)
        if header["alg"] != "ES256" or claims["aud"] != self.origin:
            return "VAPID audience"
        if not claims["sub"].startswith(("mailto:", "https://")):
            return "VAPID subject"
        return None


class _Handler(StandInHandler):
    service: PushService
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        browser = self.service.browsers.get(self.path)
        if browser is None:
            return self.respond(404)
        browser.pushes.append({name.lower(): value for name, value in self.headers.items()})
        answer = browser.answers.pop(0) if browser.answers else Answer()
        time.sleep(answer.after_s)
        if answer.after:
            answer.after.wait(PATIENCE_S)
        if answer.status == 0:
            self.close_connection = True
            return None
        wrong = self.service.receive(browser, browser.pushes[-1], body) if answer.status in (200, 201, 202) else None
        answer = Answer(400, wrong.encode()) if wrong else answer
        return self.respond(answer.status, answer.body, **answer.headers or {})
