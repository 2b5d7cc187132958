"""Challenges: a service that asks whether an address wants its events gets its own text back (docs/alerts.md).

Slack's Events API sends one in JSON, Microsoft Graph and Meta in the query.
"""

from typing import Any

from flask import Response

from web import event_body
from web.context import current

MAX_CHALLENGE = 1_000  # characters; what is longer is an event
IN_QUERY = ("validationToken", "hub.challenge")


def of_query() -> str | None:
    """The challenge in the request's query."""
    if not current().environ.get("QUERY_STRING"):
        return None
    fields = event_body.query()
    return next((text for name in IN_QUERY if (text := _checked(fields.get(name)))), None)


def of_payload(payload: dict[str, Any]) -> str | None:
    """The challenge in an event."""
    return _checked(payload.get("challenge")) if payload.get("type") == "url_verification" else None


def _checked(challenge: Any) -> str | None:
    is_short = isinstance(challenge, str) and 0 < len(challenge) <= MAX_CHALLENGE
    return challenge if is_short else None


def answer(challenge: str) -> Response:
    """The challenge as plain text, which no browser takes for a page (`nosniff` is on every answer)."""
    current().outcome = "challenge answered"
    return Response(challenge, content_type="text/plain; charset=utf-8")
