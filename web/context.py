"""The context of the current request: guards fill it in, handlers read it."""

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import cached_property
from typing import Any, NamedTuple, cast

from werkzeug.local import LocalProxy
from werkzeug.wrappers import Request

from config import Settings
from core.subscriptions import Topic
from models import Account, Device
from store.heartbeats import Beat
from store.senders import Caller, Webhook
from web.routing import Errors
from wire.errors import rest_body

Payload = dict[str, Any]  # a JSON object, as it came or as it is answered


class Window(NamedTuple):
    """The state of the quota, for the X-RateLimit headers."""

    limit: int
    remaining: int
    reset_s: int


class RequestContext:
    """One request. Reading a credential that no guard of the route has found is a fault (`AttributeError`)."""

    caller: Caller  # guards.api_key, and guards.topic unless there are topics
    account: Account  # guards.signed_in
    device: Device  # guards.device_token
    topics: list[Topic]  # guards.topic
    webhook: Webhook | None = None  # guards.short_code; None when the code leads nowhere
    beat: Beat | None = None  # guards.ping_id; None when the UUID leads nowhere
    ping_owner: Account | None = None  # guards.ping_id; None without a ping key, or when it is nobody's
    errors: Errors = staticmethod(rest_body)  # of the route
    confirm: Callable[[], object] = staticmethod(lambda: None)  # `Refused` if the credential has become void
    window: Window | None = None  # of the quota that the request counted against
    outcome: str = ""  # of an event, as the alert's page shows it
    notification_id: str | None = None  # of what an event made
    is_modern: bool = False  # an assistant's request of the newest protocol revision
    message_id: str | int | None = None  # of an assistant's message

    def __init__(self, environ: dict[str, Any], settings: Settings) -> None:
        self.environ, self.settings = environ, settings
        self.variables: dict[str, str] = {}  # of the path
        self.picture_origins: set[str] = set()  # beside ours, from which the page shows pictures

    @cached_property
    def request(self) -> Request:
        """The request as Werkzeug reads it: Flask's, where that answers; few requests of programs need one."""
        return Request(self.environ, populate_request=False)


_context = ContextVar[RequestContext]("request")
request = cast(Request, LocalProxy(_context, "request"))  # where nobody hurries: `current().environ` takes a ninth


def begin(environ: dict[str, Any], settings: Settings) -> Token[RequestContext]:
    """Make the context of a new request; returns the token for `end`."""
    return _context.set(RequestContext(environ, settings))


def end(begun: Token[RequestContext]) -> None:
    """Release the request and its body, which an idle thread would otherwise keep in memory."""
    _context.reset(begun)


def current() -> RequestContext:
    """The context of the request that this thread is answering."""
    return _context.get()


def signed_in_account() -> Account | None:
    """The account of the signed-in owner; None on a page that nobody is signed in to."""
    return getattr(_context.get(None), "account", None)
