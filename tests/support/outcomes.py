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


def push_at_once(phones, kind, threads=16):
    """The outcomes that `threads` threads get, which start together and push to this kind of device."""
    return at_once(threads, lambda: phones.pushed_to(kind).outcome.value)


def assert_shortened(shown, body):
    assert shown == body or (shown.endswith("…") and body.startswith(shown[:-1]) and len(shown) > 600)
