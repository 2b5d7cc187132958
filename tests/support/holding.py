"""Events that are held, and the digests they come in."""

from unittest.mock import ANY

QUIET = "22:00-07:00"
EVENING, NIGHT, MORNING = "2026-11-21T21:50", "2026-11-21T23:00", "2026-11-22T07:00"


def happens(hook, *messages):
    """Post an event for each message, and return the ids of their notifications, which all have the same status."""
    answers = [hook.post({"message": message}) for message in messages]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.json["notificationId"] for answer in answers]


def held(hook, *messages):
    """Post events that are held, and return the ids of their notifications."""
    answers = [hook.post({"message": message}).json for message in messages]
    assert answers == [{"ok": True, "status": "held", "notificationId": ANY}] * len(messages)
    return [answer["notificationId"] for answer in answers]


def statuses(caller):
    """The statuses by body: these tests use different bodies."""
    return {one["body"]: one["status"] for one in caller.listed("?limit=100")}


def shown(browser):
    """The title and the body of each message on the phone."""
    return [(one["notification"]["title"], one["notification"]["body"]) for one in browser.messages]


def digest_of(*lines):
    return f"MCP - {len(lines)} notifications", "\n".join(lines)
