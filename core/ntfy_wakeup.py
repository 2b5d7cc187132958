"""Waking polling devices without an open connection, so that they fetch at once (`NTFY_UPSTREAM`).

It is done in the background, after the notification is stored. Failures in a row are logged once and not retried,
since the device also polls by itself. Must not know how a device is woken.
"""

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import push
from models import ActiveDevice
from process.faults import log_fault
from store import topics
from store.database import after_commit, give_back
from wire.notification import DEFAULT_PRIORITY

TIMEOUT_S = 5.0
THREADS = 2
MAX_WAITING = 1_000  # notifications; beyond it devices are not woken: they fetch when they poll

log = logging.getLogger("pocketbell")

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="wake")
_waiting: set[Future[None]] = set()
_failing = False


def stop() -> None:
    """Drop the remaining wake-ups: the end of the service does not wait for a server that hangs."""
    _threads.shutdown(wait=False, cancel_futures=True)


def wake_later(notification_seq: int, devices: list[ActiveDevice]) -> None:
    """Wake these devices once the notification is stored; call inside the transaction that stores it."""
    seqs = [device.seq for device in devices if push.can_wake(device.kind)]
    if seqs:
        after_commit(partial(_submit, notification_seq, seqs))


def _submit(notification_seq: int, device_seqs: list[int]) -> None:
    if len(_waiting) >= MAX_WAITING:
        return
    with suppress(RuntimeError):  # the service is at its end
        task = _threads.submit(_wake, notification_seq, device_seqs)
        _waiting.add(task)
        task.add_done_callback(_waiting.discard)


def _wake(notification_seq: int, device_seqs: list[int]) -> None:
    try:
        sleepers = topics.sleepers(notification_seq, device_seqs)
        give_back()  # waking a device may take seconds
        for one in sleepers:
            if one.priority is None or one.priority >= DEFAULT_PRIORITY:  # the silent ones wake no device
                _note(push.wake(one.kind, one.poll_hash, one.id, TIMEOUT_S))
    except Exception as error:
        log_fault("A device could not be woken", error)


def _note(failure: str | None) -> None:
    """Log a failure, if the last try did not fail as well."""
    global _failing
    if failure and not _failing:
        log.warning("A device could not be woken: %s", failure)
    _failing = failure is not None
