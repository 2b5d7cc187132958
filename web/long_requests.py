"""Which requests may take long: lists, pages, forms, downloads, polls, assistants. Must not know their handlers."""

import re
from typing import Any
from urllib.parse import unquote

from wire.errors import Refused

READING = re.compile(
    r"(?s:/api/v1/(?!stats\Z|notifications/).*|/docs.*|/openapi\.json|/app(?!/static/).*|/[^/]+/(?:json|sse|raw|ws))"
)


def takes_long(method: str, path: str) -> bool:
    """Whether the request may read much: the server answers only a few of these at once (`process/baton.py`)."""
    path = unquote(path) if "%" in path else path
    if method in ("GET", "HEAD"):
        return READING.fullmatch(path) is not None
    return path == "/mcp" or (method == "POST" and path.startswith("/app/"))  # a wrong form shows its page again


def check_crowd(environ: dict[str, Any]) -> None:
    """Refuse (503) a long request if too many others wait already."""
    if environ.get("pocketbell.is_crowded"):
        raise Refused(503, "Too many lists, pages or downloads are requested at once.", retry_after_s=5)
