"""Notifications that repeat until they are acknowledged, and those that are sent later."""

from unittest.mock import ANY


def ring(caller, every_s=60, for_s=3600, **more):
    """Send a notification that repeats, and return its id."""
    answer = caller.post(
        "/notifications/send",
        {"title": "Disk", "body": "full", "acknowledge": {"everyS": every_s, "forS": for_s}, **more},
    )
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]["id"]


def send_at(caller, at, body="later", **more):
    """Send a notification that is delivered at a time in ms, and return its id."""
    answer = caller.post("/notifications/send", {"title": "Later", "body": body, "deliverAt": at, **more})
    assert (answer.status_code, answer.json["notification"]["status"]) == (200, "held"), answer.json
    return answer.json["notification"]["id"]


def detail(caller, id_):
    answer = caller.get(f"/notifications/{id_}")
    assert answer.json == {"ok": True, "notification": ANY}, answer.json
    return answer.json["notification"]


def acknowledge(caller, id_):
    """Acknowledge it, and return what is answered."""
    answer = caller.post(f"/notifications/{id_}/acknowledge")
    assert answer.status_code == 200, answer.json
    return answer.json["notification"]


def rung(caller, id_):
    """The state of a notification that repeats, and how often it did."""
    found = detail(caller, id_)
    return found["acknowledge"]["state"], found.get("repeats", 0)


def bodies(browser):
    """What the phone was shown, in order."""
    return [message["notification"]["body"] for message in browser.messages]


def every(service, moved_clock, seconds, times=1):
    """Let so many seconds pass so many times, and the worker work after each."""
    for _ in range(times):
        moved_clock.advance(seconds)
        service.work()
