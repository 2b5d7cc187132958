"""Which requests may read much: lists, pages, downloads, polls, assistants. Must not know their handlers."""

import re
from typing import Any

from wire.errors import Refused

READING = re.compile("/api/v1/notifications|/app(?!/static/).*|/[^/]+/(?:json|sse|raw|ws)")


def takes_long(method: str, path: str) -> bool:
    """Whether the server is to answer only a few such requests at once."""
    return path == "/mcp" or (method == "GET" and READING.fullmatch(path) is not None)


def check_crowd(environ: dict[str, Any]) -> None:
    """Refuse (503) a request before which the server has enough others waiting."""
    if environ.get("pocketbell.is_crowded"):
        raise Refused(503, "Too many lists, pages or downloads are asked for at once.", retry_after_s=5)
