"""Which requests may read much: lists, pages, downloads, polls, assistants. Must not know their handlers."""

import re

READING = re.compile("/api/v1/notifications|/app(?!/static/).*|/[^/]+/(?:json|sse|raw|ws)")


def takes_long(method: str, path: str) -> bool:
    """Whether the server is to answer only a few such requests at once."""
    return path == "/mcp" or (method == "GET" and READING.fullmatch(path) is not None)
