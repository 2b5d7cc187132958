"""What is known of the request that is being answered: the guards find it out, the handlers read it."""

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import NamedTuple

from flask import Request

from config import Settings
from core.subscriptions import Topic
from models import Account, Device
from store.heartbeats import Beat
from store.senders import Caller, Webhook


class Window(NamedTuple):
    """What an authenticated answer says of the quota (CONTRACT 3, X-RateLimit-*)."""

    limit: int
    remaining: int
    reset_s: int


def _confirm_nothing() -> None:
    """For an address without a credential."""


class RequestContext:
    """One request. Reading a credential that no guard of the route has found is a fault (`AttributeError`)."""

    caller: Caller  # guards.api_key, and guards.topic unless there are topics
    account: Account  # guards.signed_in
    device: Device  # guards.device_token
    topics: list[Topic]  # guards.topic
    webhook: Webhook | None = None  # guards.short_code; None when the code leads nowhere
    beat: Beat | None = None  # guards.ping_id; None when the UUID leads nowhere
    ping_owner: Account | None = None  # guards.ping_id; None without a ping key, or when it is nobody's
    confirm: Callable[[], object] = staticmethod(_confirm_nothing)  # `Refused` if the credential has become void
    window: Window | None = None  # of the quota that the request counted against
    outcome: str = ""  # of an event, as the alert's page shows it
    notification_id: str | None = None  # of what an event made
    is_modern: bool = False  # an assistant's request of the newest protocol revision
    message_id: str | int | None = None  # of an assistant's message

    def __init__(self, sent: Request, settings: Settings) -> None:
        self.sent = sent  # what Flask's `request` stands for
        self.settings = settings


_context = ContextVar[RequestContext]("request")  # Flask's `g` and `request` take nine times as long


def begin(sent: Request, settings: Settings) -> Token[RequestContext]:
    """Each request begins so, also one that no guard sees; returns what `end` takes."""
    return _context.set(RequestContext(sent, settings))


def end(begun: Token[RequestContext]) -> None:
    """Forget the request, with its body: its thread may rest for hours."""
    _context.reset(begun)


def current() -> RequestContext:
    """The context of the request that this thread is answering."""
    return _context.get()


def signed_in_account() -> Account | None:
    """The account of the signed-in owner, if somebody is signed in: some pages are for strangers, too."""
    return getattr(_context.get(None), "account", None)
