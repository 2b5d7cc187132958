"""What becomes of a notification at a provider, and what its owner is shown of it."""

import re

from tests.support.webhooks import at_once

TEXTS = ["a", "é", "漢", "😀", '"', "\\", "\n", "👩‍👩‍👧"]


def register(caller, phone, kind="apns"):
    answer = caller.post("/devices", {"kind": kind, "token": phone.token})
    assert answer.status_code == 201, answer.json
    return answer.json["device"]["id"]


def sent_status(caller):
    """Send a notification, and return the status in the answer."""
    return caller.send().json["notification"]["status"]


def newest(caller):
    """The status of the newest notification now, which is listed once."""
    return caller.listed()[0]["status"]


def last_error(caller):
    """The error that the account's only device shows."""
    (device,) = caller.get("/devices").json["devices"]
    return device["lastError"]


def assert_says(error, reason, *secrets):
    assert reason in error and re.fullmatch(r"[A-Z].*\.", error)
    assert [secret for secret in secrets if secret in error] == []


def pass_time(service, moved_clock, seconds):
    moved_clock.advance(seconds)
    service.work()


def send_at_once(service, server, kind, threads=16):
    """The statuses that `threads` threads get, which start together and send for an account with one phone each."""
    callers = []
    for number in range(threads):
        email = service.account(f"{kind}{number}@example.org")
        callers.append(service.caller(email))
        register(callers[-1], server.phone(), kind)

    def send():
        client, headers = service.app.test_client(), {"Authorization": f"Bearer {callers.pop().key}"}
        answer = client.post("/api/v1/notifications/send", json={"title": "t", "body": "b"}, headers=headers)
        return answer.json["notification"]["status"]

    return at_once(threads, send)


def assert_shortened(shown, body):
    assert shown == body or (shown.endswith("…") and body.startswith(shown[:-1]) and len(shown) > 600)


def assert_retried_after(seconds, service, caller, phone, moved_clock):
    """The first push left the notification pending; a second one delivers it after this time."""
    assert (newest(caller), len(phone.pushes)) == ("pending", 1)
    pass_time(service, moved_clock, seconds - 1)
    assert (newest(caller), len(phone.pushes)) == ("pending", 1)
    pass_time(service, moved_clock, 1)
    assert (newest(caller), len(phone.pushes), len(phone.messages)) == ("delivered", 2, 1)
    assert last_error(caller) is None
