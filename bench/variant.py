"""The service with another way to store notifications: `python -m bench.variant NAME gunicorn ...`.

`unstored` does everything but the write; `one-commit` commits each request separately, one after the other.
"""

import sys
import threading
from collections.abc import Callable

from core import delivery, local_time
from models import Caller, Device, new_id
from process import clock
from store import database
from store.notifications import Notification, NotificationRow, Text

_lock = threading.Lock()


def unstored(caller: Caller, title: str, body: str, idempotency_key: str | None = None) -> delivery.Sent:
    """Read everything, write nothing."""
    status = delivery.first_status(caller.account_seq, Device.active(caller.account_seq))
    now = clock.now_ms()
    return delivery.Sent(NotificationRow(0, new_id(now), delivery.TITLE_PREFIX + title, body, status, now))


def one_commit(caller: Caller, title: str, body: str, idempotency_key: str | None = None) -> delivery.Sent:
    """Commit each request in its own transaction, one after the other."""
    with _lock, database.transaction():
        now = clock.now_ms()
        status = delivery.first_status(caller.account_seq, Device.active(caller.account_seq))
        text, day = Text(delivery.TITLE_PREFIX + title, body), local_time.local_day(now, caller.time_zone)
        notification, _ = Notification.record(caller, text, status, day, now)
        return delivery.Sent(notification)


VARIANTS: dict[str, Callable[..., delivery.Sent]] = {"unstored": unstored, "one-commit": one_commit}


if __name__ == "__main__":
    from gunicorn.app.wsgiapp import run

    delivery.send = VARIANTS[sys.argv[1]]
    del sys.argv[:2]
    sys.exit(run())
