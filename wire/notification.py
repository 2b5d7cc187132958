"""What a notification may say, its statuses, and its shape in a request and in an answer. Must not know Flask or SQL.

Stated here once: the REST API, the assistants' tools and the history's filter take it from here, and tests hold
schema.sql and docs/openapi.yaml to it. An optional field is a field of `Content` and a row of `FIELDS`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from wire.errors import Refused
from wire.json_schema import TEXT, TIME, Schema, record, text
from wire.validation import MAX_BODY_CHARACTERS, MAX_TITLE_CHARACTERS, checked_length

STATUSES = ("delivered", "pending", "held", "failed")


class Content(NamedTuple):
    """Everything that a notification says, from the check of a request to the row and the push.

    Each field is the column of its name in the table `notification`. An optional field that was not set has its
    default, which is NULL in the column.
    """

    title: str  # with the prefix once it is recorded
    body: str
    missing: tuple[str, ...] = ()  # the variables that an alert's template wanted and the event lacked


class RequestField(NamedTuple):
    """A field of a request to send a notification, which the answer has too if it was set.

    `check` takes what was sent under the field's name, which is never null, and answers with the value to keep, or
    raises `Refused` (400) that names the field.
    """

    name: str
    column: str  # the field of `Content`
    check: Callable[[Any, str], Any]
    schema: Schema
    is_required: bool = False

    def value(self, request: Mapping[str, Any]) -> Any:
        """The checked value of this field in a request; None if it is optional and absent or null."""
        sent = request.get(self.name)
        if sent is not None:
            return self.check(sent, self.name)
        if self.is_required:
            raise Refused(400, f"{self.name} is required.")
        return None


def _text(longest: int) -> Callable[[Any, str], str]:
    """The check of a text that must not be blank and has at most `longest` characters."""

    def check(sent: Any, name: str) -> str:
        if not isinstance(sent, str):
            raise Refused(400, f"{name} must be a string.")
        return checked_length(sent, name, longest)

    return check


FIELDS = (
    RequestField(
        "title",
        "title",
        _text(MAX_TITLE_CHARACTERS),
        text('one line; "MCP - " is put in front', minLength=1, maxLength=MAX_TITLE_CHARACTERS),
        is_required=True,
    ),
    RequestField(
        "body",
        "body",
        _text(MAX_BODY_CHARACTERS),
        text("plain text", minLength=1, maxLength=MAX_BODY_CHARACTERS),
        is_required=True,
    ),
)
OPTIONAL_FIELDS = tuple(field for field in FIELDS if not field.is_required)
FIELD_NAMES = tuple(field.name for field in FIELDS)

STATUS: Schema = {"type": "string", "enum": list(STATUSES)}
SCHEMA = record(
    {"id": TEXT, "title": TEXT, "body": TEXT, "status": STATUS, "createdAt": TIME},
    {field.name: field.schema for field in OPTIONAL_FIELDS},
)


def checked_content(request: Mapping[str, Any]) -> Content:
    """What a request to send a notification says; `Refused` (400) names the first field that is wrong."""
    said = dict[str, Any]()
    for field in FIELDS:
        value = field.value(request)
        if value is not None:
            said[field.column] = value
    return Content(**said)


class Recorded(Protocol):
    """A notification that is stored."""

    @property
    def id(self) -> str:
        """Its id for the outside."""

    @property
    def content(self) -> Content:
        """What it says."""

    @property
    def status(self) -> str:
        """One of `STATUSES`."""

    @property
    def created_at(self) -> int:
        """When it was recorded, in ms."""


def answered(notification: Recorded) -> dict[str, Any]:
    """A notification as it is answered: `SCHEMA` describes it."""
    content = notification.content
    shown = {
        "id": notification.id,
        "title": content.title,
        "body": content.body,
        "status": notification.status,
        "createdAt": notification.created_at,
    }
    for field in OPTIONAL_FIELDS:
        value = getattr(content, field.column)
        if value is not None:
            shown[field.name] = value
    return shown
