"""`HEARTBEAT_URL`: an address that the service calls while it is healthy, so that a monitor notices when it is not.

The address is a secret, so it is never logged. Must not know the definition of healthy.
"""

import logging

from providers import transport
from store import server_notes

NOTE = "heartbeat_url"  # why the last call failed; empty if it did not
TIMEOUT_S = 5.0

log = logging.getLogger("pocketbell")

_url = ""


def configure(url: str | None) -> None:
    """Call this address, or (None) nothing."""
    global _url
    _url = url or ""


def is_wanted() -> bool:
    """Whether there is anything to call."""
    return bool(_url)


def last_failure() -> str:
    """Why the last call failed, also of another process; empty if it did not."""
    return server_notes.find(NOTE) or ""


def ping() -> None:
    """Call the configured address once; the first of several failures in a row is logged."""
    reply, before = transport.get(_url, TIMEOUT_S), last_failure()
    failure = reply.failure or ("" if 200 <= reply.status < 300 else f"it answered {reply.status}")
    if failure and not before:
        log.warning("HEARTBEAT_URL could not be called: %s", failure)
    elif before and not failure:
        log.info("HEARTBEAT_URL can be called again")
    if failure != before:
        server_notes.put(NOTE, failure)
