"""Pushing to devices: what a provider's answer means, and when a provider is left alone (CONTRACT 3, 6).

`send` pushes to many devices at once and says of each what became of it; how each provider is spoken to is in
`webpush`, `apns` and `fcm`. Must not know Flask, the database, or who the user is.
"""

import logging
import math
import re
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from config import Settings
from process import clock
from process.counters import count
from providers import apns, fcm
from providers.apns import Apns
from providers.base import Answer, Outcome, Push, Said, Unavailable, retry_after_s
from providers.fcm import Fcm
from providers.transport import Reply, Request, send_all, trust
from providers.webpush import Subscription, WebPush
from wire.errors import Refused, log_fault

log = logging.getLogger("pocketbell")

KINDS = {"apns": "APNs", "fcm": "FCM", "webpush": "Web Push"}
SERVICES = {"apns": "Apple's push service", "fcm": "Google's push service", "webpush": "The push service"}
CHECK = {
    "apns": "Check the APNS_ settings.",
    "fcm": "Check FCM_SERVICE_ACCOUNT.",
    "webpush": "Check BASE_URL and the server's clock.",
}
FAILURES_BEFORE_PAUSE = 3
PAUSE_S = 30.0
LEAST_SHARE = 0.2  # of the time must be left to ask anybody
PROBE_S = 5.0  # no probe takes longer: whoever makes it has a deadline
PROBED_AGAIN_S = 1.0  # others look again after so long whether it has ended
YIELDS_FOR_S = 15.0  # a device that was not answered for leaves the probe to others for so long
KEPT_ORIGINS = 1_000
MAX_KEPT_TOKENS = 1_000


class Meaning(NamedTuple):
    """A row of the table of answers: provider, status, what it says (both as regular expressions), outcome."""

    kind: str
    status: str
    reason: str
    outcome: Outcome


ANSWERS = tuple(  # CONTRACT 6: the first row that fits
    Meaning(*row)
    for row in (
        ("webpush", "200|201|202|204", "", Outcome.DELIVERED),
        ("apns|fcm", "200", "", Outcome.DELIVERED),
        ("apns", "410", "", Outcome.DEAD),
        ("fcm", "404", r"\bUNREGISTERED\b", Outcome.DEAD),
        ("fcm", "400", r"\bINVALID_ARGUMENT of the registration token", Outcome.DEAD),
        ("webpush", "404|410", "", Outcome.DEAD),
        ("apns", "400", "BadDeviceToken", Outcome.REFUSED),
        ("apns", "400", "IdleTimeout", Outcome.TRANSIENT),
        ("apns", "400", "DeviceTokenNotForTopic|TopicDisallowed|MissingTopic|BadTopic", Outcome.CONFIGURATION),
        ("apns", "403", "ExpiredProviderToken", Outcome.EXPIRED),
        ("fcm", "401", "THIRD_PARTY_AUTH_ERROR", Outcome.CONFIGURATION),
        ("fcm", "401", "", Outcome.EXPIRED),
        ("apns|fcm", "404", "", Outcome.CONFIGURATION),
        (".*", "401|403", "", Outcome.CONFIGURATION),
        (".*", "1..|2..|3..|408|425|429|5..", "", Outcome.TRANSIENT),
        (".*", ".*", "", Outcome.REFUSED),
    )
)


@lru_cache
def meaning(kind: str, said: Said) -> Outcome:
    """What a provider's answer means."""
    return next(
        row.outcome
        for row in ANSWERS
        if re.fullmatch(row.kind, kind)
        and re.fullmatch(row.status, str(said.status))
        and re.search(row.reason, said.reason)
    )


class Provider(Protocol):
    """How a kind of device is reached."""

    def origin(self, push: Push) -> str:
        """Who is asked."""

    def request(self, push: Push, left_s: float) -> Request:
        """What is sent; may raise `Unavailable`."""

    def said(self, reply: Reply) -> Said:
        """What was answered."""

    def renew(self, used: Request) -> None:
        """The credential in that request is too old."""


class Silence:
    """An origin that does not answer: for how long it is left alone, and who has asked it or would like to."""

    def __init__(self) -> None:
        self.failures = 0  # batches in a row without any answer
        self.pause_ends_s = 0.0
        self.probe_ends_s = 0.0  # until then one push finds out whether it answers again
        self.unanswered = set[str]()  # tokens of devices that it did not answer for
        self.turned_away = set[str]()  # tokens of devices that it was not asked for during this pause


class Pauses:
    """Which origins do not answer and are left alone: after three failures in a row, for 30 s at a time.

    After a pause one push asks. It is not that of a device that went unanswered before if another device waits: one
    device that never answers must not keep its origin from the others.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.silent: dict[str, Silence] = {}

    def wait_s(self, origin: str, token: str) -> float:
        """For how long the origin is to be left alone; 0 lets the caller ask, after a pause as the only one."""
        with self.lock:
            silence, now_s = self.silent.get(origin), clock.monotonic_s()
            if silence is None or silence.failures < FAILURES_BEFORE_PAUSE:
                return 0.0
            if now_s < max(silence.pause_ends_s, silence.probe_ends_s):
                if len(silence.turned_away) < MAX_KEPT_TOKENS:
                    silence.turned_away.add(token)
                return silence.pause_ends_s - now_s if now_s < silence.pause_ends_s else PROBED_AGAIN_S
            yields = token in silence.unanswered and silence.turned_away - silence.unanswered
            if yields and now_s < silence.pause_ends_s + YIELDS_FOR_S:
                return PROBED_AGAIN_S
            silence.probe_ends_s = now_s + PROBE_S
            return 0.0

    def note(self, origin: str, tokens: set[str], has_answered: bool) -> None:
        """What came of asking it for these devices at once."""
        with self.lock:
            if has_answered:
                self.silent.pop(origin, None)
                return
            if origin not in self.silent and len(self.silent) >= KEPT_ORIGINS:
                del self.silent[next(iter(self.silent))]
            silence = self.silent.setdefault(origin, Silence())
            silence.failures += 1
            silence.pause_ends_s, silence.probe_ends_s = clock.monotonic_s() + PAUSE_S, 0.0
            silence.turned_away.clear()
            if len(silence.unanswered) < MAX_KEPT_TOKENS:
                silence.unanswered |= tokens


class _State:
    """What `configure` made."""

    providers: dict[str, Provider | None]
    webpush: WebPush
    pauses: Pauses


def configure(settings: Settings, vapid_key: Callable[[], str]) -> None:
    """Call before anything else. `vapid_key` answers with the text that was made once for this service."""
    trust(settings.ca_file)
    _State.webpush = WebPush(settings, vapid_key)
    _State.providers = {
        "webpush": _State.webpush,
        "apns": Apns(settings.apns) if settings.apns else None,
        "fcm": Fcm(settings.fcm) if settings.fcm else None,
    }
    _State.pauses = Pauses()


def checked_token(kind: str, token: str) -> str:
    """An APNs or FCM device token, one text for each; raises `Refused` (400) when it cannot be one."""
    if kind == "apns" and not apns.TOKEN.fullmatch(token):
        raise Refused(400, "token must be 64 to 200 hexadecimal digits for APNs.", field="token")
    if kind == "fcm" and not fcm.TOKEN.fullmatch(token):
        raise Refused(400, "token must be 1 to 4,096 visible ASCII characters for FCM.", field="token")
    return token.lower() if kind == "apns" else token


def checked_subscription(value: Any) -> Subscription:
    """A browser's subscription; raises `Refused` (400) naming what is wrong with it."""
    return _State.webpush.checked_subscription(value)


def public_vapid_key() -> str:
    """What a browser needs to subscribe."""
    return _State.webpush.public_key()


def configured() -> set[str]:
    """The kinds of devices that can be pushed to with these settings."""
    return {kind for kind, provider in _State.providers.items() if provider}


def not_configured(kind: str) -> str:
    """The sentence for a device that cannot be pushed to with these settings."""
    return f"{KINDS[kind]} is not configured on this server."


def contact_warning(email: str) -> str | None:
    """A sentence when the contact that goes with this owner's pushes is one that Apple refuses."""
    return _State.webpush.contact_warning(email)


# --- sending ------------------------------------------------------------------------------------------------


def send(pushes: list[Push], timeout_s: float) -> list[Answer]:
    """Push to all devices at once and answer for each, in order; waits for providers at most `timeout_s` seconds."""
    deadline_s, least_s = clock.monotonic_s() + timeout_s, timeout_s * LEAST_SHARE
    answers = _send(pushes, deadline_s, least_s)
    again = [place for place, answer in enumerate(answers) if answer.outcome is Outcome.EXPIRED]
    if again:
        for place, answer in zip(again, _send([pushes[place] for place in again], deadline_s, least_s), strict=True):
            expired = answer.outcome is Outcome.EXPIRED
            answers[place] = Answer(Outcome.CONFIGURATION, answer.error) if expired else answer
    for push, answer in zip(pushes, answers, strict=True):
        if answer.was_tried:
            count("pushes", push.kind, answer.outcome.value)
    return answers


def _send(pushes: list[Push], deadline_s: float, least_s: float) -> list[Answer]:
    prepared = _prepared(pushes, deadline_s)
    left_s = deadline_s - clock.monotonic_s()
    if left_s < least_s:  # too little for a provider to answer in: it would get the push and we not its word
        late = Answer(Outcome.TRANSIENT, "There was no time left to ask.", 1, was_tried=False)
        return [late if isinstance(one, Request) else one for one in prepared]
    requests = [request for request in prepared if isinstance(request, Request)]
    replies = iter(send_all(requests, left_s) if requests else [])
    asked = [
        (push, one, next(replies)) if isinstance(one, Request) else one
        for push, one in zip(pushes, prepared, strict=True)
    ]
    _note_silence([(push, reply) for push, _, reply in (one for one in asked if not isinstance(one, Answer))])
    return [one if isinstance(one, Answer) else _read(*one) for one in asked]


def _note_silence(replies: list[tuple[Push, Reply]]) -> None:
    """Count this batch once for each origin: as answered if any of its pushes was."""
    tokens, answered = defaultdict[str, set[str]](set), set[str]()
    for push, reply in replies:
        origin = _provider(push).origin(push)
        tokens[origin].add(push.token)
        if not reply.failure:
            answered.add(origin)
    for origin, its_tokens in tokens.items():
        _State.pauses.note(origin, its_tokens, has_answered=origin in answered)


def _prepared(pushes: list[Push], deadline_s: float) -> list[Request | Answer]:
    """For each the request, or the answer if there is to be none."""
    prepared, unavailable = list[Request | Answer](), dict[str, Answer]()
    for push in pushes:
        try:
            prepared.append(unavailable.get(push.kind) or _request(push, deadline_s))
        except Unavailable as refusal:
            prepared.append(refusal.answer)
            if refusal.is_for_all:
                unavailable[push.kind] = refusal.answer
        except Exception as error:  # must not take the others with it
            log_fault(log, "A push could not be built", error)
            outcome = Outcome.REFUSED if isinstance(error, ValueError) else Outcome.TRANSIENT
            prepared.append(Answer(outcome, "This push could not be built."))
    return prepared


def _request(push: Push, deadline_s: float) -> Request:
    provider = _State.providers[push.kind]
    if provider is None:
        raise Unavailable(Answer(Outcome.CONFIGURATION, not_configured(push.kind)))
    wait_s = _State.pauses.wait_s(provider.origin(push), push.token)
    if wait_s:
        what = f"{SERVICES[push.kind]} has not answered lately and is left alone for a moment."
        raise Unavailable(Answer(Outcome.TRANSIENT, what, math.ceil(wait_s), was_tried=False))
    return provider.request(push, deadline_s - clock.monotonic_s())


def _provider(push: Push) -> Provider:
    """The provider that made the push's request."""
    provider = _State.providers[push.kind]
    assert provider is not None  # noqa: S101
    return provider


def _read(push: Push, request: Request, reply: Reply) -> Answer:
    provider, name = _provider(push), SERVICES[push.kind]
    if reply.failure:
        return Answer(Outcome.TRANSIENT, f"{name} could not be reached: {reply.failure}.")
    said = provider.said(reply)
    outcome = meaning(push.kind, said)
    if outcome is Outcome.DELIVERED:
        return Answer(outcome)
    if outcome is Outcome.EXPIRED:
        provider.renew(request)
    is_word = re.fullmatch(r"[A-Za-z_ ]{1,100}", said.reason) and push.token not in said.reason
    reason = f" ({said.reason})" if is_word else ""
    error = f"{name} answered {said.status}{reason}."
    if outcome in (Outcome.CONFIGURATION, Outcome.EXPIRED):
        error += f" {CHECK[push.kind]}"
    return Answer(outcome, error, retry_after_s(reply.headers) if outcome is Outcome.TRANSIENT else None)
