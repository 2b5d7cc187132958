"""Messages as programs send them to ntfy's addresses, and what is stored of them."""

from unittest.mock import ANY

from store import notifications
from tests.support.service import MovedClock

NOW = MovedClock().ms
LINK = "https://example.org/?a=1&b=2"
VIEW = {"action": "view", "label": "Open", "url": LINK}
KEPT = {"label": "Open", "url": LINK}


def ntfy_error(code, sentence=ANY):
    """The whole body of an error."""
    return {"code": code, "http": code // 100, "error": sentence}


def publish(caller, path="/backups", body="finished", method="POST", headers=None, **more):
    return caller.request(method, path, data=body, headers=headers, **more)


def stored(**expected):
    """The newest notification's content, by the names of `expected`."""
    content = notifications.one(notifications.newest_seq(1)).content
    return {name: getattr(content, name) for name in expected}


def assert_stored(answer, **expected):
    assert answer.status_code == 200, answer.data
    assert stored(**expected) == expected
