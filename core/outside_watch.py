"""`HEARTBEAT_URL`: what is called while this service is well, so that something else notices when it is not.

The address is a secret, so it is in no line of the log. Must not know what it means to be well.
"""

import http.client
import logging

from core import http_get
from store.server_notes import ServerNote

NOTE = "heartbeat_url"  # why the last call failed; empty if it did not

log = logging.getLogger("pocketbell")

_url: str | None = None
_ca_file: str | None = None
_failure: str | None = None  # of the last call in this process; None before the first


def configure(url: str | None, ca_file: str | None) -> None:
    """Call this address, or (None) nothing."""
    global _url, _ca_file, _failure
    _url, _ca_file, _failure = url, ca_file, None


def is_wanted() -> bool:
    """Whether there is anything to call."""
    return _url is not None


def last_failure() -> str:
    """Why the last call failed, also of another process; empty if it did not."""
    return ServerNote.find(NOTE) or ""


def call() -> None:
    """Call the address once; the first of several failures in a row is logged."""
    global _failure
    if _url is None:
        return
    failure, before = _failure_of_call(_url), _failure
    if failure and not before:
        log.warning("HEARTBEAT_URL was called in vain: %s", failure)
    elif before and not failure:
        log.info("HEARTBEAT_URL takes calls again")
    _failure = failure
    if failure != before:
        ServerNote.put(NOTE, failure)


def _failure_of_call(url: str) -> str:
    try:
        status, _, _ = http_get.get(url, _ca_file)
    except (OSError, http.client.HTTPException) as error:
        return http_get.reason(error)[:200] if isinstance(error, OSError) else "it answered with something else"
    return "" if 200 <= status < 300 else f"it answered {status}"
