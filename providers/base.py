"""The interface of a push provider, and the parts that all providers share.

`Provider` is the whole interface: a new provider subclasses it in a module of its own and gets a line in the table
`PROVIDERS` of `providers/__init__.py`. Beside it: messages, the meanings of answers, fitting a text into a push. Must
not know any single provider, Flask or the database.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from process import clock
from providers.transport import Reply, Request
from settings.variables import Variable
from wire.errors import Refused
from wire.json_text import json_bytes, longest
from wire.notification import DEFAULT_PRIORITY, Content
from wire.validation import required_text

LIFE_S = 86_400  # how long a provider keeps a push for a device that cannot be reached, unless it expires earlier
MAX_PUSHED_URL_BYTES = 2_300  # as JSON: a longer one would leave too little for the text
MAX_BESIDE_BYTES = 2_500  # of the URL and all buttons
BUTTON_BYTES = 110  # of a button beside its label: its names, and an address of ours
MIN_BODY_CHARACTERS = 200  # a long title is shortened until this much of the body fits beside it
MAX_RETRY_AFTER_S = 48 * 3600
NOT_PUSHED = {code: None for code in (*range(32), *range(127, 160)) if code != ord("\n")}

S = TypeVar("S")


# --- pushes and answers -------------------------------------------------------------------------------------


class Outcome(Enum):
    """The meaning of a provider's answer for the device and the notification."""

    DELIVERED = "delivered"
    DEAD = "dead"  # the token no longer exists: remove the device
    REFUSED = "refused"  # this device will never get this push: it failed, the device stays
    TRANSIENT = "transient"  # try again later
    CONFIGURATION = "configuration"  # try again later, and tell the owner
    EXPIRED = "expired"  # our credential is too old and nothing was delivered: try once more with a new one


class PushedButton(NamedTuple):
    """A button of a push. A press opens `url`, or sends us `token`."""

    action: str  # its name among the buttons of the push
    label: str
    url: str | None = None
    token: str | None = None


class Message(NamedTuple):
    """A notification for a screen. A tap opens `path`, the notification's page, unless the content has a URL.

    It replaces the message with the same `slot` on the screen: by default only its own repeats.
    """

    id: str
    content: Content
    path: str
    tag_slot: str | None = None  # of the account and the tag, if there is one
    buttons: tuple[PushedButton, ...] = ()
    picture: str | None = None  # the address of its picture, or the path here
    turn: str = ""  # if it is pushed again, as a repeat is, or later than it came: the time, after a dash

    @property
    def turn_id(self) -> str:
        """The id of what is sent: the same at each try, and another for a repeat."""
        return self.id + self.turn

    @property
    def slot(self) -> str:
        """At most 32 characters that are safe in a URL and in a header."""
        return self.tag_slot or self.id

    @property
    def priority(self) -> int:
        """From 1 to 5."""
        return self.content.priority or DEFAULT_PRIORITY

    @property
    def url(self) -> str | None:
        """The URL that a tap opens; None also if it leaves too little room for the text."""
        url = self.content.url
        return url if url and len(json_bytes(url)) <= self._url_bytes else None

    def addressed_buttons(self, origin: str) -> list[tuple[PushedButton, str]]:
        """Each button with the address that a press opens, or is sent to; `origin` is this server's.

        Instead of a URL that would leave too little room for the text, the page of the notification, which has all
        the buttons.
        """
        return list(zip(self.buttons, self._addresses(origin)[0], strict=True))

    def image(self, origin: str) -> str | None:
        """The address of the picture; None also if it leaves too little room for the text."""
        if self.picture is None or self.picture.startswith("/"):
            return self.picture and origin + self.picture
        return self.picture if _size_of_part(self.picture) <= self._addresses(origin)[1] else None

    def _addresses(self, origin: str) -> tuple[list[str], int]:
        """The buttons' addresses, and how many bytes are left for others."""
        left = self._url_bytes - len(json_bytes(self.url or ""))
        found: list[str] = []
        for button in self.buttons:
            size = _size_of_part(button.url) if button.url else 0
            if button.token:
                found.append(f"{origin}/a/{button.token}")
            elif button.url and size <= left:
                found.append(button.url)
                left -= size
            else:
                found.append(origin + self.path)
        return found, left

    @property
    def _url_bytes(self) -> int:
        """How many bytes are left for URLs beside the buttons' labels."""
        used = sum(BUTTON_BYTES + _size_of_part(button.label) for button in self.buttons)
        used += BUTTON_BYTES if self.picture and self.picture.startswith("/") else 0
        return min(MAX_PUSHED_URL_BYTES, MAX_BESIDE_BYTES - used)

    def for_apps(self, origin: str) -> dict[str, Any]:
        """What a native app gets beside the text: it sends a POST where a button has a `method`, and opens others."""
        said: dict[str, Any] = {"id": self.id, "path": self.path, "url": self.url, "tag": self.content.tag}
        said["actions"] = [
            {"label": one_line(button.label), "url": address, **({"method": "POST"} if button.token else {})}
            for button, address in self.addressed_buttons(origin)
        ]
        return {name: value for name, value in said.items() if value}

    def life_s(self, now: int) -> int:
        """For how many seconds a provider should keep the push."""
        expires_at = self.content.expires_at
        return LIFE_S if expires_at is None else max(0, min(LIFE_S, (expires_at - now) // 1000))


class Push(NamedTuple):
    """One message to one device. `email` is the owner's, for providers that want a contact.

    `p256dh`, `auth` and `origin` are Web Push's: the browser's keys, and where it has the web app open. A webhook has
    a `preset`, and its secret in `auth`.
    """

    kind: str
    token: str
    message: Message
    email: str
    p256dh: str | None = None
    auth: str | None = None
    origin: str | None = None
    preset: str | None = None


class Answer(NamedTuple):
    """The outcome of a push; `error` is a sentence for the owner unless it was delivered."""

    outcome: Outcome
    error: str | None = None
    retry_after_s: int | None = None
    was_tried: bool = True  # False: nothing was sent, as when the provider is left alone for a while


class Unavailable(Exception):
    """A push cannot be made now. `answer` is given instead; with `is_for_all` to every push of this provider."""

    def __init__(self, answer: Answer, is_for_all: bool = False) -> None:
        self.answer, self.is_for_all = answer, is_for_all
        super().__init__(answer.outcome.value)


class Meaning(NamedTuple):
    """A row of a table of answers. `status` and `reason` are regular expressions: of the whole, and of a part.

    The reason is the provider's own word for a fault.
    """

    status: str
    outcome: Outcome
    reason: str = ""


COMMON_ANSWERS = (  # after each provider's own rows
    Meaning("401|403", Outcome.CONFIGURATION),
    Meaning("1..|2..|3..|408|425|429|5..", Outcome.TRANSIENT),
    Meaning(".*", Outcome.REFUSED),
)


# --- the interface ------------------------------------------------------------------------------------------


class Server(NamedTuple):
    """The facts about this server for providers: its public address, its Web Push key, and all of its origins."""

    public_url: str
    vapid_key: Callable[[], str]
    own_origins: frozenset[str] = frozenset()


class Provider(ABC, Generic[S]):
    """A push service, which reaches one kind of device. `S` is the type of its settings.

    A subclass declares the names below and says how a push becomes a request; the rest has defaults.
    """

    kind: ClassVar[str]  # its name in the API, the command line and the database
    name: ClassVar[str]  # its name for people; also the name of a device that was given none
    service: ClassVar[str]  # begins sentences such as "… answered 503."
    hint: ClassVar[str]  # a sentence for the owner when the credentials seem wrong
    answers: ClassVar[tuple[Meaning, ...]]  # the first row that fits counts, then COMMON_ANSWERS
    variables: ClassVar[tuple[Variable, ...]] = ()
    # The pattern of its devices' tokens, and what they "must be" in words; None if no person could type them.
    token_form: ClassVar[tuple[str, str] | None] = None
    address_field: ClassVar[str] = "token"  # of a registration
    unreachable: ClassVar[str | None] = None  # a sentence for a device that cannot be reached with these settings
    company: ClassVar[str] = "its push service"  # that receives the pushes, for people
    is_fetched: ClassVar[bool] = False  # its devices poll: nothing is pushed
    is_slow: ClassVar[bool] = False  # its servers may take long to answer: retries wait longer than a request can
    is_mailed: ClassVar[bool] = False  # what takes long: it is done in the background, never while a request waits
    needed: ClassVar[str] = "only native apps need it."  # what `doctor` says of one that is not configured
    is_channel: ClassVar[bool] = False  # its devices are no phones: they may wait until no phone took a notification
    nobody: ClassVar[str | None] = None  # a token that no device has, with which `doctor` tries the credentials

    def __init__(self, settings: S | None, server: Server) -> None:
        self._settings, self.server = settings, server

    @classmethod
    @abstractmethod
    def read(cls, values: Mapping[str, Any]) -> S | None:
        """The settings in the values of all variables; None if it has none, `SettingError` if it lacks a part."""

    @classmethod
    def taken_by(cls, token: str) -> str:
        """The receiver of pushes to this token, for people; the token of a removed device is empty."""
        return cls.company

    @classmethod
    def name_of(cls, values: Mapping[str, Any]) -> str:
        """The name of a device with these columns that was given none."""
        return cls.name

    @classmethod
    def registration(cls, text: str) -> dict[str, Any]:
        """The registration, as for `POST /api/v1/devices`, from the TOKEN of `device add`."""
        return {cls.address_field: text}

    @classmethod
    def not_configured(cls) -> str:
        """The sentence for a device that cannot be reached with these settings."""
        return cls.unreachable or f"{cls.name} is not configured on this server."

    @property
    def is_configured(self) -> bool:
        """Whether devices of this kind can be pushed to."""
        return self._settings is not None

    @property
    def settings(self) -> S:
        """The settings. Without any, `Unavailable` answers the push that needs them."""
        if self._settings is None:
            raise Unavailable(Answer(Outcome.CONFIGURATION, self.not_configured()))
        return self._settings

    def checked_address(self, registration: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a device that registers like this: its own `token`, and more if needed.

        `Refused` (400) names a wrong value. Devices may register before their provider is configured.
        """
        token = required_text(registration, "token")
        if self.token_form and not re.fullmatch(self.token_form[0], token):
            raise Refused(400, f"token must be {self.token_form[1]} for {self.name}.", field="token")
        return {"token": token}

    def origin(self, push: Push) -> str:
        """The receiving server: if it does not answer, it is left alone for a while under this name."""
        return self.kind  # which has one server

    @abstractmethod
    def request(self, push: Push, left_s: float) -> Request | Answer:
        """The HTTP request that pushes, made within `left_s` seconds; may raise `Unavailable`.

        A provider that needs no HTTP request delivers here, and returns the answer.
        """

    def reason(self, reply: Reply) -> str:
        """The provider's word for the fault, for its table of answers: the `reason` in a reply, if it is JSON."""
        return str(parsed(reply).get("reason", ""))

    def renew(self, used: Request) -> None:
        """Replace the credential in this request, which the provider calls too old."""

    def warning(self, email: str) -> str | None:
        """A warning if pushes will fail for the owner with this address."""
        return None

    def waking(self, poll_hash: str, message_id: str) -> Request | None:
        """The request that makes a polling device fetch; None if there is none."""
        return None

    def ready(self) -> str:
        """The sentence of `doctor` for a working provider without `nobody`; `Unavailable` if it does not work."""
        return "it is ready."


# --- texts --------------------------------------------------------------------------------------------------


def shown(text: str) -> str:
    """The text as a push carries it: CR LF as LF, no other control characters."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(NOT_PUSHED)


def one_line(text: str) -> str:
    """The text as a button shows it."""
    return " ".join(shown(text).split())


def _size_of_part(text: str) -> int:
    """The bytes of a text within a button: one provider gets the buttons as JSON in a JSON string."""
    return len(json_bytes(json_bytes(text).decode()))


def fitted(content: Content, build: Callable[[str, str], bytes], limit: int) -> tuple[str, str, bytes]:
    """Title and body as shown, shortened until `build(title, body)` has at most `limit` bytes, and those bytes."""
    title, body = shown(content.title), shown(content.body)
    built = build(title, body)
    if len(built) > limit:
        title = longest(title, lambda text: len(build(text, body[:MIN_BODY_CHARACTERS])) <= limit)
        body = longest(body, lambda text: len(build(title, text)) <= limit)
        built = build(title, body)
    return title, body, built


# --- replies and keys ---------------------------------------------------------------------------------------


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


def parsed(reply: Reply) -> dict[str, object]:
    """The JSON object in a reply; empty when there is none."""
    if not reply.body:
        return {}
    try:
        value = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def private_key(pem: str) -> Any:
    """The private key in a PEM text; raises `ValueError`, as the parser of a variable does."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem.encode(), None)
    except (TypeError, UnsupportedAlgorithm):
        raise ValueError from None
