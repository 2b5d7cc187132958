"""Firebase Cloud Messaging, HTTP v1: requests, the OAuth token, what an answer says (CONTRACT 6).

pyfcm makes the message and holds the credentials; both go out through our own transport, since pyfcm's sending blocks
and repeats (docs/decisions.md). It is imported when it is first needed: it weighs 32 MB. Must not know Flask, the
database, or what an outcome leads to.
"""

import re
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from config import FcmSettings
from process import clock
from providers.base import (
    LIFE_S,
    Answer,
    Outcome,
    Push,
    Said,
    Unavailable,
    compact_json,
    fitted,
    parsed,
    retry_after_s,
    shown,
)
from providers.transport import Reply, Request, send_all

MAX_BYTES = 4_000  # of notification and data, which may have 4,096
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
RENEWED_S = 300  # before an OAuth token's end
SHORTEST_LIFE_S = 60
LONGEST_LIFE_S = 86_400
OAUTH_TIMEOUT_S = 1.5  # of a push's time: other providers' pushes wait meanwhile
TOKEN = re.compile(r"[!-~]{1,4096}")
OAUTH = "Google's OAuth service"


class Fcm:
    """The Firebase project that the settings name."""

    def __init__(self, settings: FcmSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._client: Any = None
        self._token, self._rejected, self._good_until_s = "", "", 0.0
        self._failed_at_s, self._failure = -1.0, Unavailable(Answer(Outcome.TRANSIENT))

    def origin(self, push: Push) -> str:
        """Google's."""
        return self.settings.url

    def request(self, push: Push, left_s: float) -> Request:
        """The request that pushes; it may take an OAuth token first, for at most `left_s`, or raise `Unavailable`."""
        token = self._oauth_token(left_s)
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        return Request(self._client.fcm_end_point, headers, self._payload(push), any_address=True)

    def said(self, reply: Reply) -> Said:
        """The error's code or reason, and whether its message names the registration token."""
        error = parsed(reply).get("error")
        if not isinstance(error, dict):
            return Said(reply.status)
        details = error.get("details")
        details = [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []
        words = [str(one[key]) for one in details for key in ("errorCode", "reason") if key in one]
        if words and "registration token" in str(error.get("message", "")):
            words.append("of the registration token")
        return Said(reply.status, " ".join(words)[:100])

    def renew(self, used: Request) -> None:
        """Take another token, since FCM says that the one that was used is not good."""
        self._rejected = used.headers["authorization"].removeprefix("Bearer ")

    def _payload(self, push: Push) -> bytes:
        message = push.message
        data = {"id": message.id, "path": message.path}
        android = {
            "priority": "HIGH",
            "ttl": f"{LIFE_S}s",
            "notification": {"tag": message.id},
        }

        def measured(title: str, body: str) -> bytes:
            return compact_json({"notification": {"title": title, "body": body}, "data": data})

        title, body = fitted(shown(message.content.title), shown(message.content.body), measured, MAX_BYTES)
        made: bytes = self._client.parse_payload(
            fcm_token=push.token,
            notification_title=title,
            notification_body=body,
            data_payload=data,
            android_config=android,
        )
        return made

    def _oauth_token(self, left_s: float) -> str:
        """The token that all threads share; one of them renews it while the others wait."""
        began_s = clock.monotonic_s()
        left_s = max(min(left_s, OAUTH_TIMEOUT_S), 0)
        if not self._lock.acquire(timeout=left_s):
            raise Unavailable(Answer(Outcome.TRANSIENT, f"{OAUTH} did not answer in time."), is_for_all=True)
        try:
            now_s = clock.monotonic_s()
            if self._token == self._rejected or now_s >= self._good_until_s:
                if self._failed_at_s > began_s:  # while this thread waited
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
        self._good_until_s = clock.monotonic_s() + asked.life_s - min(RENEWED_S, asked.life_s / 2)

    def _new_client(self) -> Any:
        from google.oauth2.service_account import Credentials
        from pyfcm import FCMNotification

        class Client(FCMNotification):  # type: ignore[misc]
            FCM_END_POINT_BASE = f"{self.settings.url}/v1/projects"

        account = self.settings.service_account
        credentials = Credentials.from_service_account_info(account, scopes=[SCOPE])  # type: ignore[no-untyped-call]
        return Client(credentials=credentials)


class _OAuthRequest:
    """google-auth's way out, by our transport; it sees good answers alone, since it would wait and repeat others."""

    class Response(NamedTuple):
        """What google-auth reads."""

        status: int
        headers: Mapping[str, str]
        data: bytes

    def __init__(self, left_s: float) -> None:
        self.left_s = left_s
        self.life_s = 3600.0  # unless it says otherwise

    def __call__(self, url: str, method: str, body: bytes, headers: dict[str, str], **_: object) -> Response:
        (reply,) = send_all([Request(url, headers, body, any_address=True)], self.left_s)
        if reply.failure:
            what = f"{OAUTH} could not be reached: {reply.failure}."
            raise Unavailable(Answer(Outcome.TRANSIENT, what), is_for_all=True)
        answer = parsed(reply)
        token, life_s = answer.get("access_token"), answer.get("expires_in")
        if reply.status != 200 or not isinstance(token, str) or not re.fullmatch(r"[!-~]+", token):
            raise Unavailable(_oauth_refusal(reply, answer.get("error")), is_for_all=True)
        if type(life_s) is int:
            self.life_s = float(min(max(life_s, SHORTEST_LIFE_S), LONGEST_LIFE_S))
        made = compact_json({"access_token": token, "expires_in": round(self.life_s)})
        return self.Response(200, reply.headers, made)


def _oauth_refusal(reply: Reply, error: object) -> Answer:
    word = f" ({error})" if isinstance(error, str) and re.fullmatch(r"\w{1,60}", error) else ""
    if reply.status == 200:
        word = " without a usable token"
    outcome = Outcome.CONFIGURATION if reply.status in (400, 401, 403) else Outcome.TRANSIENT
    return Answer(outcome, f"{OAUTH} answered {reply.status}{word}.", retry_after_s(reply.headers))
