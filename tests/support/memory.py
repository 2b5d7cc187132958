"""Opening the service as if in a new process: what the process keeps in memory beside the database is forgotten."""

from concurrent.futures import ThreadPoolExecutor

import app
from core import (
    batches,
    firing,
    heartbeat_checks,
    new_passwords,
    ntfy_wakeup,
    proxies,
    pruning,
    push_slots,
    recent_requests,
    retries,
    snoozes,
    storage,
)
from models import ApiKey
from process import faults


def open_service(application, settings):
    """Forget everything, and open the service."""
    for owner, count in (*((one, batches.ACCOUNTS) for one in batches.ALL), (ntfy_wakeup, ntfy_wakeup.THREADS)):
        owner._threads.shutdown()  # they have connections to the database before
        owner._threads = ThreadPoolExecutor(count)
    app.open_service(application, settings)
    for kept in (
        ApiKey._used,
        new_passwords._asked,
        proxies._unlisted,
        pruning._passed,
        push_slots._taken,
        recent_requests._unwritten,
        retries._left_alone_until_s,
        storage._full_until_s,
        storage._payloads,
        heartbeat_checks._backoff._waits,
        firing.backoff._waits,
        snoozes._backoff._waits,
    ):
        kept.clear()
    proxies._is_listed.cache_clear()
    pruning._looked = heartbeat_checks._began = heartbeat_checks._looked = heartbeat_checks._noted = None
    ntfy_wakeup._failing, faults._until_s, faults._unlogged = False, 0.0, 0
