"""Accounts whose providers do not answer, and a gate that holds their pushes."""

import threading
from collections import Counter

from core import retries

KINDS = ("webpush", "apns", "fcm")


class Gate:
    """Stands in front of `push.send`, counts each account's batches, and holds those of accounts it is closed to."""

    def __init__(self, send):
        self.send = send
        self.begun = []  # an account's email and the number of rows, for each batch
        self.ended = 0
        self.under_way, self.most = Counter(), Counter()
        self.most_accounts = 0
        self.closed_to = set()
        self.changed = threading.Condition()

    def __call__(self, pushes, timeout_s):
        emails = {one.email for one in pushes}
        with self.changed:
            self.begun += [(email, len(pushes)) for email in emails]
            self.under_way.update(emails)
            self.most |= self.under_way
            self.most_accounts = max(self.most_accounts, len(+self.under_way))
            self.changed.notify_all()
            self.changed.wait_for(lambda: not emails & self.closed_to, timeout=5)
        try:
            return self.send(pushes, timeout_s)
        finally:
            with self.changed:
                self.under_way.subtract(emails)
                self.ended += 1
                self.changed.notify_all()

    def close(self, *callers):
        self.closed_to |= {email_of(caller) for caller in callers}

    def open(self, *callers):
        """Let the batches of these accounts pass, or of all."""
        with self.changed:
            self.closed_to -= {email_of(caller) for caller in callers} or set(self.closed_to)
            self.changed.notify_all()

    def until(self, condition, timeout=4):
        with self.changed:
            return self.changed.wait_for(condition, timeout)

    def holds(self, batches):
        return self.until(lambda: self.under_way.total() == batches)


def email_of(caller):
    return f"{caller.name}@example.org"


def account(service, name, plan="pro"):
    """Make an account, and return a caller of it."""
    caller = service.caller(service.account(f"{name}@example.org", plan))
    caller.name = name
    return caller


def sent(caller):
    """Send a notification, and return the status in the answer."""
    answer = caller.send()
    assert answer.status_code == 200
    return answer.json["notification"]["status"]


def listed(caller):
    return [one["status"] for one in caller.listed("?limit=100")]


def pending(caller, phone, count=1):
    """Make `count` notifications that are due in 30 seconds."""
    for _ in range(count):
        phone.then(503)
        assert sent(caller) == "pending"


def work(service):
    """Let the worker do everything that is due now."""
    service.work()
    for _ in range(20):
        if not retries.batches.due.is_set():
            return
        retries.batches.due.clear()
        service.work()


def later(service, moved_clock, seconds):
    """Let `seconds` pass, and then the worker do what is due."""
    moved_clock.advance(seconds)
    work(service)


def in_thread(caller):
    """Send in a new thread, and return a function that waits for the status."""
    statuses = []

    def ask():
        client = caller.service.app.test_client()
        headers = {"Authorization": f"Bearer {caller.key}"}
        answer = client.post("/api/v1/notifications/send", json={"title": "t", "body": "b"}, headers=headers)
        statuses.append(answer.json["notification"]["status"])

    thread = threading.Thread(target=ask)
    thread.start()
    return lambda: (thread.join(), statuses[0])[1]
