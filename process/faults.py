"""Logs faults: each with its stack, but those of a database that is away or has a full disk only once a minute.

Must not know requests, jobs or the database.
"""

import logging
import threading
import traceback
from collections.abc import Iterator

from process import clock

MINUTE_S = 60.0
WRITE_FAILED = "peewee", "OperationalError"  # module and name of the class, which this package does not import

log = logging.getLogger("pocketbell")

_lock = threading.Lock()
_until_s = 0.0  # until then, faults of a database that cannot be used are only counted
_unlogged = 0  # so many


def log_fault(what: str, error: BaseException, **fields: str) -> None:
    """Log a fault with its stack and `fields`.

    The text of an exception may quote a request, so only that of exceptions of the database and the system is logged.
    """
    told = "".join(f": {cause}" for cause in _shown(error))
    kind = type(error).__module__, type(error).__name__
    count = _take_outage() if kind == WRITE_FAILED else 0
    if count:
        log.error("The database still cannot be used: %d more faults within a minute%s", count, told)
    elif count == 0:
        frames = "".join(traceback.format_tb(error.__traceback__))
        log.error("%s: %s%s\n%s", what, type(error).__name__, told, frames.rstrip(), extra={"fields": fields})


def _take_outage() -> int | None:
    """How many faults a line also stands for: 0 for the first of an outage, None if there is to be no line."""
    global _until_s, _unlogged
    now_s = clock.monotonic_s()
    with _lock:
        if now_s < _until_s:
            _unlogged += 1
            return None
        goes_on = now_s < _until_s + MINUTE_S
        count, _unlogged, _until_s = _unlogged if goes_on else 0, 0, now_s + MINUTE_S
        return count


def _shown(error: BaseException | None) -> Iterator[BaseException]:
    """Those of the error and its chain of causes whose text may be shown: the first cause may say most."""
    while error is not None:
        if isinstance(error, OSError) or type(error).__module__ in ("peewee", "sqlite3"):
            yield error
        error = error.__context__
