"""Firebase Cloud Messaging, HTTP v1: its settings, requests, OAuth token and answers.

pyfcm builds the message and holds the credentials, but both go out through our own transport, because pyfcm's sending
blocks and repeats (docs/decisions.md). It is imported when it is first needed: it weighs 32 MB. Must not know Flask,
the database, or the consequences of an outcome.
"""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from process import clock
from providers.base import (
    Answer,
    Meaning,
    Outcome,
    Provider,
    Push,
    Server,
    Unavailable,
    fitted,
    parsed,
    private_key,
    retry_after_s,
)
from providers.transport import Reply, Request, send_all
from settings.variables import Variable, http_origin, text_of_file, value_or_file
from wire.json_text import as_json, json_bytes
from wire.notification import LOW_PRIORITY

MAX_BYTES = 4_000  # of notification and data; FCM allows 4,096
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
RENEWED_BEFORE_END_S = 300
MIN_TOKEN_LIFE_S = 60
MAX_TOKEN_LIFE_S = 86_400
DEFAULT_TOKEN_LIFE_S = 3600.0
OAUTH_TIMEOUT_S = 1.5  # part of a push's time: pushes to other providers wait meanwhile
OAUTH = "Google's OAuth service"
ACCOUNT_FIELDS = {
    "project_id": r"[a-z0-9.:-]+",
    "client_email": r"[!-~]+",
    "private_key": r"[ -~\r\n]+",
    "token_uri": r"https?://[!-~]+",
}


@dataclass(frozen=True)
class FcmSettings:
    """The Firebase project: its service account as Google gives it."""

    url: str
    service_account: Mapping[str, str] = field(repr=False)


def _service_account(value: str) -> Mapping[str, str]:
    try:
        account = json.loads(value)
    except RecursionError:
        raise ValueError from None
    if not isinstance(account, dict) or not all(isinstance(account.get(name), str) for name in ACCOUNT_FIELDS):
        raise ValueError
    is_rsa = hasattr(private_key(account["private_key"]), "decrypt")
    well_formed = all(re.fullmatch(form, account[name]) for name, form in ACCOUNT_FIELDS.items())
    if not is_rsa or not well_formed:
        raise ValueError
    return account


ACCOUNT = Variable(
    "FCM_SERVICE_ACCOUNT",
    None,
    _service_account,
    f"a Google service account's JSON with {', '.join(ACCOUNT_FIELDS)}",
    secret=True,
)
ACCOUNT_FILE = Variable("FCM_SERVICE_ACCOUNT_FILE", None, text_of_file, "the path of a Google service account's JSON")


class Fcm(Provider[FcmSettings]):
    """FCM with the Firebase project that the settings name."""

    kind = "fcm"
    name = "FCM"
    service = "Google's push service"
    hint = "Check FCM_SERVICE_ACCOUNT."
    company = "Google"
    answers = (
        Meaning("200", Outcome.DELIVERED),
        Meaning("404", Outcome.DEAD, r"\bUNREGISTERED\b"),
        Meaning("400", Outcome.DEAD, r"\bINVALID_ARGUMENT of the registration token"),
        Meaning("401", Outcome.CONFIGURATION, "THIRD_PARTY_AUTH_ERROR"),
        Meaning("401", Outcome.EXPIRED),
        Meaning("404", Outcome.CONFIGURATION),
    )
    variables = (
        ACCOUNT,
        ACCOUNT_FILE,
        Variable(
            "FCM_URL", "https://fcm.googleapis.com", http_origin, "an origin, such as https://fcm.googleapis.com"
        ),
    )
    token_form = r"[!-~]{1,4096}", "1 to 4,096 visible ASCII characters"
    nobody = "nobody"

    def __init__(self, settings: FcmSettings | None, server: Server) -> None:
        super().__init__(settings, server)
        self._lock = threading.Lock()
        self._client: Any = None
        self._token, self._rejected, self._good_until_s = "", "", 0.0
        self._failed_at_s, self._failure = -1.0, Unavailable(Answer(Outcome.TRANSIENT))

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> FcmSettings | None:
        """The project, from the FCM_ variables."""
        account = value_or_file(values, ACCOUNT, ACCOUNT_FILE)
        return FcmSettings(values["FCM_URL"], account) if account is not None else None

    def request(self, push: Push, left_s: float) -> Request:
        """The request that pushes; it may get an OAuth token first, within `left_s`, or raise `Unavailable`."""
        token = self._oauth_token(left_s)
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        return Request(self._client.fcm_end_point, headers, self._payload(push), any_address=True)

    def reason(self, reply: Reply) -> str:
        """The error's codes and reasons, and whether it blames the registration token.

        FCM answers 400 INVALID_ARGUMENT both to a malformed token and to a malformed push: its message or the field
        that it names tells which.
        """
        error = parsed(reply).get("error") if reply.status != 200 else None
        if not isinstance(error, dict):
            return ""
        details = error.get("details")
        details = [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []
        words = [str(one[key]) for one in details for key in ("errorCode", "reason") if key in one]
        is_named = "registration token" in str(error.get("message", "")) or "message.token" in _wrong_fields(details)
        if words and is_named:
            words.append("of the registration token")
        return " ".join(words)[:100]

    def renew(self, used: Request) -> None:
        """Get another OAuth token before the next push, unless that has happened since this request."""
        self._rejected = used.headers["authorization"].removeprefix("Bearer ")

    def _payload(self, push: Push) -> bytes:
        message = push.message
        data = message.for_apps(self.server.public_url)
        if message.buttons:
            data["actions"] = as_json(data["actions"])  # FCM takes only strings
        android = {
            "priority": "NORMAL" if message.priority <= LOW_PRIORITY else "HIGH",
            "ttl": f"{message.life_s(clock.now_ms())}s",
            "notification": {"tag": message.slot},
        }

        image = message.image(self.server.public_url)
        pictured = {"image": image} if image else {}

        def measured(title: str, body: str) -> bytes:
            return json_bytes({"notification": {"title": title, "body": body, **pictured}, "data": data})

        title, body, _ = fitted(message.content, measured, MAX_BYTES)
        made: bytes = self._client.parse_payload(
            fcm_token=push.token,
            notification_title=title,
            notification_body=body,
            notification_image=image,
            data_payload=data,
            android_config=android,
        )
        return made

    def _oauth_token(self, left_s: float) -> str:
        """The OAuth token that all threads share; one of them renews it while the others wait."""
        began_s = clock.monotonic_s()
        left_s = max(min(left_s, OAUTH_TIMEOUT_S), 0)
        if not self._lock.acquire(timeout=left_s):
            raise Unavailable(Answer(Outcome.TRANSIENT, f"{OAUTH} did not answer in time."), is_for_all=True)
        try:
            now_s = clock.monotonic_s()
            if self._token == self._rejected or now_s >= self._good_until_s:
                if self._failed_at_s > began_s:  # another thread failed while this thread waited
                    raise self._failure
                self._renew_token(left_s - (now_s - began_s))
            return self._token
        finally:
            self._lock.release()

    def _renew_token(self, left_s: float) -> None:
        asked = _OAuthRequest(left_s)
        self._client = self._client or self._new_client()
        try:
            self._client.credentials.refresh(asked)
        except Unavailable as unavailable:
            self._failed_at_s, self._failure = clock.monotonic_s(), unavailable
            raise
        self._token = self._client.credentials.token
        self._good_until_s = clock.monotonic_s() + asked.life_s - min(RENEWED_BEFORE_END_S, asked.life_s / 2)

    def _new_client(self) -> Any:
        from google.oauth2.service_account import Credentials
        from pyfcm import FCMNotification

        class Client(FCMNotification):  # type: ignore[misc]
            FCM_END_POINT_BASE = f"{self.settings.url}/v1/projects"

        account = self.settings.service_account
        credentials = Credentials.from_service_account_info(account, scopes=[SCOPE])  # type: ignore[no-untyped-call]
        return Client(credentials=credentials)


class _OAuthRequest:
    """Our transport as google-auth's way to ask for a token.

    It gets good answers only: others raise `Unavailable`, as it would wait and ask again.
    """

    def __init__(self, left_s: float) -> None:
        self.left_s = left_s
        self.life_s = DEFAULT_TOKEN_LIFE_S

    def __call__(self, url: str, method: str, body: bytes, headers: dict[str, str], **_: object) -> SimpleNamespace:
        (reply,) = send_all([Request(url, headers, body, any_address=True)], self.left_s)
        if reply.failure:
            what = f"{OAUTH} could not be reached: {reply.failure}."
            raise Unavailable(Answer(Outcome.TRANSIENT, what), is_for_all=True)
        answer = parsed(reply)
        token, life_s = answer.get("access_token"), answer.get("expires_in")
        if reply.status != 200 or not isinstance(token, str) or not re.fullmatch(r"[!-~]+", token):
            raise Unavailable(_oauth_refusal(reply, answer.get("error")), is_for_all=True)
        if type(life_s) is int:
            self.life_s = float(min(max(life_s, MIN_TOKEN_LIFE_S), MAX_TOKEN_LIFE_S))
        made = json_bytes({"access_token": token, "expires_in": round(self.life_s)})
        return SimpleNamespace(status=200, headers=reply.headers, data=made)


def _oauth_refusal(reply: Reply, error: object) -> Answer:
    word = f" ({error})" if isinstance(error, str) and re.fullmatch(r"\w{1,60}", error) else ""
    if reply.status == 200:
        word = " without a usable token"
    outcome = Outcome.CONFIGURATION if reply.status in (400, 401, 403) else Outcome.TRANSIENT
    return Answer(outcome, f"{OAUTH} answered {reply.status}{word}.", retry_after_s(reply.headers))


def _wrong_fields(details: list[dict[str, object]]) -> list[object]:
    """The fields of our message that a BadRequest names."""
    lists = [one.get("fieldViolations") for one in details]
    violations = [violation for found in lists if isinstance(found, list) for violation in found]
    return [violation.get("field") for violation in violations if isinstance(violation, dict)]
