"""Pushing to devices: the meaning of providers' answers, and leaving silent providers alone.

`send` pushes to many devices at once and returns each outcome. A provider's protocol and its own answers are in its
module in `providers/`. Must not know Flask, the database, or users.
"""

import math
import re
import threading
from collections.abc import Callable
from typing import Any

from config import Settings
from process import clock
from process.counters import count
from process.faults import log_fault
from providers import PROVIDERS
from providers.base import COMMON_ANSWERS, Answer, Outcome, Provider, Push, Server, Unavailable, retry_after_s
from providers.transport import Reply, Request, send_all, trust
from providers.web_addresses import address_of
from providers.webpush import WebPush

FAILURES_BEFORE_PAUSE = 3
PAUSE_S = 30.0
MIN_SHARE = 0.2  # nothing is sent when less of the time is left: a provider could not answer in it
PROBED_AGAIN_S = 1.0  # after which the other pushes look again whether the probe has ended
YIELDS_FOR_S = 15.0  # for which a device without an answer leaves the probe to other devices
MAX_KEPT_ORIGINS = 1_000
MAX_KEPT_TOKENS = 1_000
WORD = re.compile(r"[A-Za-z_ ]{1,100}")  # a provider's reason that is fit to be shown to the owner


# --- origins that do not answer -----------------------------------------------------------------------------


class Silence:
    """An origin that does not answer: its pause, and the devices that got no answer or were turned away."""

    def __init__(self) -> None:
        self.failures = 0  # batches in a row without any answer
        self.pause_ends_s = 0.0
        self.probe_ends_s = 0.0  # until then one push probes whether it answers again
        self.unanswered = set[str]()  # tokens of devices whose pushes it did not answer
        self.turned_away = set[str]()  # tokens of devices whose pushes were not sent during this pause


class Pauses:
    """Circuit breakers for origins: each pauses for 30 s after three failures in a row.

    After a pause one push probes the origin. A device without an answer before yields to devices that were turned
    away: otherwise a device that never answers could keep its origin from all the others.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.silent: dict[str, Silence] = {}

    def wait_s(self, origin: str, token: str, until_s: float) -> float:
        """The seconds to leave the origin alone.

        0: the caller may ask it until `until_s`; after a pause, as its only probe.
        """
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
            silence.probe_ends_s = until_s
            return 0.0

    def note(self, origin: str, tokens: set[str], has_answered: bool) -> None:
        """Note whether the origin answered any of these devices' pushes."""
        with self.lock:
            if has_answered:
                self.silent.pop(origin, None)
                return
            if origin not in self.silent and len(self.silent) >= MAX_KEPT_ORIGINS:
                del self.silent[next(iter(self.silent))]
            silence = self.silent.setdefault(origin, Silence())
            silence.failures += 1
            silence.pause_ends_s, silence.probe_ends_s = clock.monotonic_s() + PAUSE_S, 0.0
            silence.turned_away.clear()
            if len(silence.unanswered) < MAX_KEPT_TOKENS:
                silence.unanswered |= tokens


# --- the providers of this server ---------------------------------------------------------------------------


_providers: dict[str, Provider[Any]] = {}  # by kind, once configured
_pauses = Pauses()


def configure(settings: Settings, vapid_key: Callable[[], str]) -> None:
    """Call this before anything else. `vapid_key` returns the Web Push key that was made once for this server."""
    global _providers, _pauses
    trust(settings.ca_file)
    server = Server(settings.public_url, vapid_key, own_origins(settings))
    _providers = {kind: one(settings.providers[kind], server) for kind, one in PROVIDERS.items()}
    _pauses = Pauses()


def own_origins(settings: Settings) -> frozenset[str]:
    """The origins at which this service answers, as far as the settings tell."""
    local = settings.local_url, f"http://localhost:{settings.port}", f"http://127.0.0.1:{settings.port}"
    found = (address_of(url) for url in (settings.public_url, *local))
    return frozenset(address.origin for address in found if address)


def provider_of(kind: str) -> Provider[Any]:
    """The provider that reaches devices of this kind, with the settings of this server."""
    return _providers[kind]


def configured() -> set[str]:
    """The kinds of devices that can be pushed to with these settings."""
    return {kind for kind, provider in _providers.items() if provider.is_configured}


def asked() -> set[str]:
    """The kinds of devices that are pushed to; the others poll, or get mails."""
    return {kind for kind in configured() if not PROVIDERS[kind].is_fetched and not PROVIDERS[kind].is_mailed}


def slow() -> set[str]:
    """The kinds that are pushed to and whose servers may take long to answer."""
    return {kind for kind in asked() if PROVIDERS[kind].is_slow}


def mailed() -> set[str]:
    """The kinds of devices that get mails."""
    return {kind for kind in configured() if PROVIDERS[kind].is_mailed}


def warnings(email: str) -> dict[str, str]:
    """Warnings about pushes that will fail for this owner, by kind of device."""
    found = {kind: one.warning(email) for kind, one in _providers.items() if one.is_configured}
    return {kind: warning for kind, warning in found.items() if warning}


def public_vapid_key() -> str:
    """The public key with which a browser subscribes."""
    provider = provider_of(WebPush.kind)
    assert isinstance(provider, WebPush)  # noqa: S101
    return provider.public_key()


# --- waking ---------------------------------------------------------------------------------------------------


def can_wake(kind: str) -> bool:
    """Whether polling devices of this kind can be woken."""
    return provider_of(kind).waking("", "") is not None


def wake(kind: str, poll_hash: str, message_id: str, timeout_s: float) -> str | None:
    """Make a device fetch a message; returns the failure in words, or None."""
    provider = provider_of(kind)
    request = provider.waking(poll_hash, message_id)
    if request is None:
        return None
    (reply,) = send_all([request], timeout_s)
    if reply.failure or not 200 <= reply.status < 300:
        return f"{provider.hint.removesuffix('.')}: {reply.failure or f'it answered {reply.status}'}."
    return None


# --- sending ------------------------------------------------------------------------------------------------


def send(pushes: list[Push], timeout_s: float) -> list[Answer]:
    """Push to all devices at once and answer for each, in order; waits for providers at most `timeout_s` seconds."""
    deadline_s, least_s = clock.monotonic_s() + timeout_s, timeout_s * MIN_SHARE
    answers = _send_once(pushes, deadline_s, least_s)
    again = [place for place, answer in enumerate(answers) if answer.outcome is Outcome.EXPIRED]
    if again:
        retried = _send_once([pushes[place] for place in again], deadline_s, least_s)
        for place, answer in zip(again, retried, strict=True):
            expired = answer.outcome is Outcome.EXPIRED
            answers[place] = Answer(Outcome.CONFIGURATION, answer.error) if expired else answer
    for push, answer in zip(pushes, answers, strict=True):
        if answer.was_tried:
            count("pushes", push.kind, answer.outcome.value)
    return answers


def _send_once(pushes: list[Push], deadline_s: float, least_s: float) -> list[Answer]:
    prepared = _prepared(pushes, deadline_s)
    left_s = deadline_s - clock.monotonic_s()
    if left_s < least_s:  # too late to wait for an answer: a push might be delivered without our knowing
        late = Answer(Outcome.TRANSIENT, "There was no time left to ask.", 1, was_tried=False)
        return [late if isinstance(one, Request) else one for one in prepared]
    asked = [(push, one) for push, one in zip(pushes, prepared, strict=True) if isinstance(one, Request)]
    replies = send_all([request for _, request in asked], left_s) if asked else []
    answered = [(push, request, reply) for (push, request), reply in zip(asked, replies, strict=True)]
    _note_silence([(push, reply) for push, _, reply in answered])
    answers = iter([_read(*one) for one in answered])
    return [one if isinstance(one, Answer) else next(answers) for one in prepared]


def _note_silence(replies: list[tuple[Push, Reply]]) -> None:
    """Count this batch once for each origin: as answered if any of its pushes was."""
    tokens: dict[str, set[str]] = {}
    answered: set[str] = set()
    for push, reply in replies:
        origin = provider_of(push.kind).origin(push)
        tokens.setdefault(origin, set()).add(push.token)
        if not reply.failure:
            answered.add(origin)
    for origin, its_tokens in tokens.items():
        _pauses.note(origin, its_tokens, has_answered=origin in answered)


def _prepared(pushes: list[Push], deadline_s: float) -> list[Request | Answer]:
    """A request for each push, or the answer if no request is to be made."""
    prepared: list[Request | Answer] = []
    unavailable: dict[str, Answer] = {}
    for push in pushes:
        try:
            prepared.append(unavailable.get(push.kind) or _request(push, deadline_s))
        except Unavailable as refusal:
            prepared.append(refusal.answer)
            if refusal.is_for_all:
                unavailable[push.kind] = refusal.answer
        except Exception as error:  # the other pushes must go out all the same
            log_fault("A push could not be built", error)
            outcome = Outcome.REFUSED if isinstance(error, ValueError) else Outcome.TRANSIENT
            prepared.append(Answer(outcome, "This push could not be built."))
    return prepared


def _request(push: Push, deadline_s: float) -> Request | Answer:
    provider = provider_of(push.kind)
    wait_s = _pauses.wait_s(provider.origin(push), push.token, deadline_s)
    if wait_s:
        error = f"{provider.service} has not answered lately and is left alone for a moment."
        return Answer(Outcome.TRANSIENT, error, math.ceil(wait_s), was_tried=False)
    return provider.request(push, deadline_s - clock.monotonic_s())


def _read(push: Push, request: Request, reply: Reply) -> Answer:
    """The answer in a provider's reply."""
    provider = provider_of(push.kind)
    if reply.failure:
        return Answer(Outcome.TRANSIENT, f"{provider.service} could not be reached: {reply.failure}.")
    status, reason = str(reply.status), provider.reason(reply)
    outcome = next(
        row.outcome
        for row in provider.answers + COMMON_ANSWERS
        if re.fullmatch(row.status, status) and re.search(row.reason, reason)
    )
    if outcome is Outcome.DELIVERED:
        return Answer(outcome)
    if outcome is Outcome.EXPIRED:
        provider.renew(request)
    shown = f" ({reason})" if WORD.fullmatch(reason) and push.token not in reason else ""
    error = f"{provider.service} answered {status}{shown}."
    if outcome in (Outcome.CONFIGURATION, Outcome.EXPIRED):
        error += f" {provider.hint}"
    return Answer(outcome, error, retry_after_s(reply.headers) if outcome is Outcome.TRANSIENT else None)
