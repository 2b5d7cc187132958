"""The service with another way to store notifications: `python -m bench.variant NAME gunicorn ...`.

`unstored` does everything but the write; `one-commit` commits each request separately, one after the other.
"""

import sys
import threading
from collections.abc import Callable

from core import delivery, local_time, recording
from process import clock
from store import database, engine, notifications
from store.rows import new_id
from store.senders import Caller, find_receivers
from wire.notification import Content, Recorded

_lock = threading.Lock()


def unstored(caller: Caller, content: Content, *_: object) -> delivery.Sent:
    """Read everything, write nothing."""
    status = recording.first_status(find_receivers(caller.account_seq, caller.key_seq))
    now = clock.now_ms()
    return delivery.Sent(Recorded(0, new_id(now), status, now, content.prefixed()))


def one_commit(caller: Caller, content: Content, *_: object) -> delivery.Sent:
    """Commit each request in its own transaction, one after the other."""
    engine.make_way()
    with _lock, database.transaction(caller.account_seq):
        now = clock.now_ms()
        status = recording.first_status(find_receivers(caller.account_seq, caller.key_seq))
        content, day = content.prefixed(), local_time.local_day(now, caller.time_zone)
        return delivery.Sent(notifications.record(caller, content, status, day, now))


VARIANTS: dict[str, Callable[..., delivery.Sent]] = {"unstored": unstored, "one-commit": one_commit}


if __name__ == "__main__":
    from gunicorn.app.wsgiapp import run

    delivery.deliver = VARIANTS[sys.argv[1]]
    del sys.argv[:2]
    sys.exit(run())
