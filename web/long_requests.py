"""Which requests may take long: lists, pages, downloads, polls, assistants. Must not know their handlers."""

import re
from typing import Any

from wire.errors import Refused

READING = re.compile("/api/v1/notifications|/app(?!/static/).*|/[^/]+/(?:json|sse|raw|ws)")


def takes_long(method: str, path: str) -> bool:
    """Whether the request may read much: the server answers only a few of these at once (`process/long_turns.py`)."""
    return path == "/mcp" or (method == "GET" and READING.fullmatch(path) is not None)


def check_crowd(environ: dict[str, Any]) -> None:
    """Refuse (503) a long request if too many others wait already."""
    if environ.get("pocketbell.is_crowded"):
        raise Refused(503, "Too many lists, pages or downloads are requested at once.", retry_after_s=5)
