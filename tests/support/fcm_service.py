"""A stand-in for FCM (HTTP v1) and Google's OAuth: HTTPS on loopback, as strict as they are, with scripted answers.

A push that FCM would refuse is refused whatever was scripted, so a test that sees its answer has seen a valid push.
"""

import functools
import json
import re
import secrets
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.certificates import Certificates, key_pem
from tests.support.stand_in_server import StandIn, StandInHandler

MAX_BYTES = 4096
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GOOGLE = "https://oauth2.googleapis.com/token"  # google-auth names it whatever the account's token_uri is
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
BAD_TOKEN = "The registration token is not a valid FCM registration token"
CODES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
CODES |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
SHOWN = (200, 0, "hang")  # the phone may have shown these: a client that repeats one makes a duplicate
PAGE = b"<!DOCTYPE html>\n<html lang=en><title>Error</title><p>That's an error."
SEND = re.compile("/v1/projects/([^/]+)/messages:send")
TTL = re.compile(r"([0-9]{1,9})(\.[0-9]{1,9})?s")
RESERVED = re.compile(r"from$|message_type$|google\.|gcm\.notification\.").match
ANDROID = {"collapse_key", "priority", "ttl", "restricted_package_name", "data", "notification", "fcm_options"}
ANDROID |= {"direct_boot_ok", "bandwidth_constrained_ok", "restricted_satellite_ok"}
MESSAGE = {"token", "data", "notification", "android", "webpush", "apns", "fcm_options"}


@dataclass
class Answer:
    status: int | str = 200
    body: bytes = b""
    after_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


def failure(status: int | str, message: str = "", error_code: str = "", reason: str = "", wrong: str = "") -> Answer:
    """Google's error: `error_code` is FCM's own, `reason` of the credentials, `wrong` names a field in BadRequest."""
    details: list[dict] = []
    if error_code:
        details.append({"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": error_code})
    if reason:
        info = {"reason": reason, "domain": "googleapis.com", "metadata": {"service": "fcm.googleapis.com"}}
        details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo"} | info)
    if wrong:
        violations = [{"field": wrong, "description": f"Invalid value at '{wrong}'"}]
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations})
    error = {"code": status, "message": message or f"Scripted {status}", "status": CODES.get(status, "UNKNOWN")}
    return Answer(status, json.dumps({"error": error | ({"details": details} if details else {})}).encode())


@dataclass
class Phone:
    """A device: what it has received, and how its next pushes are answered."""

    token: str
    messages: list[dict] = field(default_factory=list)  # those answered with 200
    pushes: list[dict[str, str]] = field(default_factory=list)  # headers of every push SEEN, whatever the answer
    answers: list[Answer] = field(default_factory=list)

    def then(
        self,
        status: int | str,
        error_code: str = "",
        message: str = "",
        wrong: str = "",
        reason: str = "",
        html: bool = False,
        after_s: float = 0.0,
        **headers: str,
    ) -> "Phone":
        """Answer the next push like this; 0 closes the connection without an answer, "hang" never answers."""
        answer = failure(status, message, error_code, reason, wrong)
        if html:
            answer.body = PAGE
        answer.after_s, answer.headers = after_s, {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append(answer)
        return self


class FcmService(StandIn):
    project, client_email = "pocketbell", "sender@pocketbell.iam.gserviceaccount.com"

    def __init__(self, certificates: Certificates) -> None:
        self.lock = threading.Lock()
        self.forget()
        self.serve(_Handler, certificates.context("http/1.1"))
        self.url = f"{self.origin}/v1/projects/{self.project}/messages:send"

    def forget(self) -> None:
        """Start afresh with the same key; connections stay open."""
        self.phones: dict[str, Phone] = {}
        self.access: dict[str, float] = {}  # access tokens issued, and when each ends
        self.expires_in = 3599
        self.oauth_answers: list[Answer] = []
        self.shown: Counter[tuple[str, str]] = Counter()  # by device and id, what the phone may have shown
        self.oauth_calls = 0
        self.after_s = 0.0  # latency of every answer

    def service_account(self) -> dict[str, str]:
        """The contents of the JSON file that Google's console hands out."""
        return {
            "type": "service_account",
            "project_id": self.project,
            "private_key_id": "1f" * 20,
            "private_key": key_pem(_key()).decode(),
            "client_email": self.client_email,
            "client_id": "100000000000000000001",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": f"{self.origin}/token",
            "universe_domain": "googleapis.com",
        }

    def phone(self) -> Phone:
        """A new device."""
        phone = Phone(f"{secrets.token_urlsafe(16)}:APA91b{secrets.token_urlsafe(100)}")
        self.phones[phone.token] = phone
        return phone

    def oauth_then(self, status: int | str, error: str = "", after_s: float = 0.0) -> None:
        """Answer the next request for an access token like this: `error` is for example "invalid_grant"."""
        self.oauth_answers.append(Answer(status, _json(error=error, error_description="Scripted"), after_s))

    def expire(self) -> None:
        """End all access tokens."""
        self.access = dict.fromkeys(self.access, 0.0)

    @property
    def duplicates(self) -> int:
        """How many pushes were repeated although the phone may already have shown them."""
        return sum(times - 1 for times in self.shown.values())

    def issue(self, form: dict[str, list[str]]) -> Answer:
        """Answer a request for an access token."""
        with self.lock:
            self.oauth_calls += 1
            wrong = self._check_assertion(form)
            if wrong:
                return Answer(400, _json(error=wrong[0], error_description=wrong[1]))
            answer = self.oauth_answers.pop(0) if self.oauth_answers else Answer()
            if answer.status == 200:
                token = f"ya29.{secrets.token_urlsafe(64)}"
                self.access[token] = time.time() + self.expires_in
                answer.body = _json(access_token=token, expires_in=self.expires_in, token_type="Bearer")
            return answer

    def _check_assertion(self, form: dict[str, list[str]]) -> tuple[str, str] | None:
        if form.get("grant_type") != [GRANT] or len(form.get("assertion", ())) != 1:
            return "unsupported_grant_type", "Invalid grant_type"
        options = {"require": ["iss", "aud", "iat", "exp"], "verify_iat": False, "verify_exp": False}
        audience, issuer = [f"{self.origin}/token", GOOGLE], self.client_email
        try:
            public_key, assertion = _key().public_key(), form["assertion"][0]
            claims = jwt.decode(assertion, public_key, ["RS256"], options, audience=audience, issuer=issuer)
        except jwt.InvalidTokenError as error:
            return "invalid_grant", f"Invalid JWT: {error}"
        now = time.time()
        if not all(type(claims[name]) is int for name in ("iat", "exp")):
            return "invalid_grant", "Invalid JWT: iat and exp must be numbers"
        if not now - 3600 <= claims["iat"] <= now + 60 or not now <= claims["exp"] <= claims["iat"] + 3600:
            return "invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes)"
        if SCOPE not in claims.get("scope", "").split():
            return "invalid_scope", "Invalid OAuth scope or ID token audience provided."
        return None

    def receive(self, project: str, headers: dict[str, str], body: bytes) -> Answer:
        """Verify and keep one push, and return the answer to it."""
        with self.lock:
            message, wrong = _parse(body)
            phone = self.phones.get(message.get("token", ""))
            number = message.get("data", {}).get("id") or body.decode(errors="replace")
            if phone:
                phone.pushes.append(headers)
            refusal = self._check_access(project, headers.get("authorization", ""))
            if not headers.get("content-type", "").startswith("application/json"):
                wrong = "body"
            if refusal or wrong:
                return refusal or failure(400, f"Invalid value at '{wrong}'", wrong=wrong)
            if len(_json(data=message.get("data"), notification=message.get("notification"))) > MAX_BYTES:
                return failure(400, "Android message is too big", "INVALID_ARGUMENT")
            if phone is None:
                return failure(400, BAD_TOKEN, "INVALID_ARGUMENT")
            answer = phone.answers.pop(0) if phone.answers else Answer()
            if answer.status in SHOWN:
                self.shown[phone.token, number] += 1
            if answer.status == 200:
                phone.messages.append(message)
                answer.body = _json(name=f"projects/{self.project}/messages/{secrets.token_hex(8)}")
            return answer

    def _check_access(self, project: str, authorization: str) -> Answer | None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return failure(
                401, "Request is missing required authentication credential.", reason="CREDENTIALS_MISSING"
            )
        if self.access.get(token, 0.0) <= time.time():
            reason = "ACCESS_TOKEN_EXPIRED" if token in self.access else "ACCESS_TOKEN_TYPE_UNSUPPORTED"
            return failure(401, "Request had invalid authentication credentials.", reason=reason)
        if project != self.project:
            return failure(403, "Permission 'cloudmessaging.messages.create' denied", reason="IAM_PERMISSION_DENIED")
        return None


def _parse(body: bytes) -> tuple[dict, str]:
    """The message, and the field that FCM would refuse."""
    try:
        sent = json.loads(body)
        message = sent["message"]
        data, notification, android = (message.get(name, {}) for name in ("data", "notification", "android"))
        ttl = TTL.fullmatch(android.get("ttl", "0s"))
        right = {
            "": sent.keys() <= {"message", "validate_only"} and not sent.get("validate_only"),
            "message": message.keys() <= MESSAGE,
            "message.token": isinstance(message["token"], str),
            "message.data": all(isinstance(value, str) for value in data.values()) and not any(map(RESERVED, data)),
            "message.notification": notification.keys() <= {"title", "body", "image"},
            "message.notification.body": all(isinstance(value, str) for value in notification.values()),
            "message.android": android.keys() <= ANDROID,
            "message.android.priority": android.get("priority", "NORMAL") in ("NORMAL", "HIGH"),
            "message.android.ttl": ttl and int(ttl[1]) <= 2_419_200,
            "message.android.collapse_key": isinstance(android.get("collapse_key", ""), str),
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}, "message"
    return message, next((name or "body" for name in right if not right[name]), "")


def _json(**members: object) -> bytes:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


@functools.cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


class _Handler(StandInHandler):
    service: FcmService
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one piece
    disable_nagle_algorithm = True

    def do_POST(self) -> None:  # noqa: N802
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers["content-length"]))
        send = SEND.fullmatch(self.path)
        if send:
            answer = self.service.receive(send[1], headers, body)
        elif self.path == "/token":
            answer = self.service.issue(parse_qs(body.decode()))
        else:
            answer = Answer(404, PAGE)
        time.sleep(self.service.after_s + answer.after_s)
        if answer.status == "hang":
            self.rfile.read(1)  # until the client gives up
        if answer.status in (0, "hang"):
            self.close_connection = True
            return
        kind = "text/html" if answer.body.startswith(b"<") else "application/json"
        self.respond(answer.status, answer.body, **{"Content-Type": f"{kind}; charset=UTF-8"} | answer.headers)
