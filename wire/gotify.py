"""Gotify's messages and errors, in requests and answers. Must not know Flask.

A text that is too long is cut, and an invalid link is left out, so that no message is lost.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from wire.errors import Refused
from wire.notification import Content, Recorded, image_address, web_address
from wire.ntfy import cut
from wire.validation import MAX_BODY_CHARACTERS, MAX_TITLE_CHARACTERS, optional_text

FIELDS = ("title", "message", "priority", "extras")
VERSION = "2.9.0"  # of Gotify: publishing works as there
OUR_PRIORITIES = (1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5)  # by Gotify's
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,15}", re.ASCII)
NAMES = {413: "Request Entity Too Large", 422: "Unprocessable Entity"}  # Gotify's; Python 3.13 has changed its own
ON_A_TAP = ("client::notification", "click", "url")  # where `extras` have the link
PICTURE = ("client::notification", "bigImageUrl")  # and the picture
TEXT_KIND = ("client::display", "contentType")
MARKDOWN_PICTURE = re.compile(r"!\[[^\[\]\n]*\]\((?P<url>https://[^\s()]+)\)", re.I)


def content(fields: Mapping[str, Any], key_name: Callable[[], str]) -> Content:
    """The content of a request to publish; the default title is the key's name. `Refused` (400) without a message."""
    title, body = optional_text(fields, "title") or "", optional_text(fields, "message") or ""
    if not body.strip():
        raise Refused(400, "message is required.")
    extras = fields.get("extras")
    image = image_address(_among(extras, PICTURE))
    if _among(extras, TEXT_KIND) == "text/markdown":
        body, image = _without_picture(body, image)
    return Content(
        title=cut(title, MAX_TITLE_CHARACTERS) or key_name(),
        body=cut(body, MAX_BODY_CHARACTERS),
        priority=_priority(fields.get("priority")),
        url=web_address(_among(extras, ON_A_TAP)),
        image=image,
    )


def _without_picture(text: str, image: str | None) -> tuple[str, str | None]:
    """Markdown without its first picture, and the picture to show: this one, unless there is another already."""
    found = MARKDOWN_PICTURE.search(text)
    address = image_address(found["url"]) if found else None
    if found is None or address is None or image not in (None, address):
        return text, image
    rest = text[: found.start()] + text[found.end() :]
    return rest if rest.strip() else text, address


def _priority(sent: Any) -> int | None:
    """Our priority for Gotify's, which is a number from 0 to 10; forms send it as text."""
    if sent is None or sent == "":
        return None
    if isinstance(sent, str) and WHOLE_NUMBER.fullmatch(sent.strip()):
        sent = int(sent)
    if type(sent) is not int:
        raise Refused(400, "priority must be a whole number.")
    return OUR_PRIORITIES[min(max(sent, 0), len(OUR_PRIORITIES) - 1)]


def _among(extras: Any, path: tuple[str, ...]) -> Any:
    """What `extras` have at this path, or None."""
    for name in path:
        extras = extras.get(name) if isinstance(extras, dict) else None
    return extras


def message(notification: Recorded, sent: Mapping[str, Any], app_id: int) -> dict[str, Any]:
    """The notification as Gotify's message, with the priority as it was sent.

    The id is a number, as in Gotify: the first 52 bits of ours, which begin with the time.
    """
    kept = notification.content
    shown: dict[str, Any] = {ON_A_TAP[1]: {ON_A_TAP[2]: kept.url}} if kept.url else {}
    if kept.image:
        shown[PICTURE[1]] = kept.image
    return {
        "id": int(notification.id[:13], 16),
        "appid": app_id,
        "message": kept.body,
        "title": kept.title,
        "priority": int(sent.get("priority") or 0),
        "date": datetime.fromtimestamp(notification.created_at / 1_000, UTC).isoformat(timespec="milliseconds"),
        **({"extras": {ON_A_TAP[0]: shown}} if shown else {}),
    }


def error_body(refused: Refused) -> dict[str, object]:
    """An error in Gotify's shape."""
    status = refused.status
    return {
        "error": NAMES.get(status) or HTTPStatus(status).phrase,
        "errorCode": status,
        "errorDescription": refused.message,
    }
