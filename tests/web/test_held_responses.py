"""An answer that waits for its commit: what it says, and what is counted, holds, also when the commit fails."""

import json
import sqlite3
from http import HTTPStatus

import pytest
from werkzeug.test import EnvironBuilder

from app import app
from core import recent_requests
from process import counters
from process.held_answer import HeldAnswer
from store import database, sqlite_writer
from store.senders import find_webhook
from tests.support.devices import subscribe
from tests.support.ntfy_app import add_phone
from tests.support.tables import look

SENDING = "/api/v1/notifications/send"  # of a caller without devices


def begun(path, key="", headers=()):
    """Post a message; the answer, before anybody looks into it, and a list where its head appears then."""
    head = []
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    builder = EnvironBuilder(method="POST", path=path, headers=headers, json={"title": "a", "body": "b"})
    return app(builder.get_environ(), lambda status, headers, *_: head.append((int(status[:3]), dict(headers)))), head


def stored(service):
    return look(service.settings.database, "SELECT count(*) FROM notification")[0][0]


def counted_statuses():
    return {labels[2]: number for labels, number in counters.counted("responses").items()}


@pytest.fixture
def failing(service, owner, hook, monkeypatch):
    """From now on no commit reaches the disk."""

    def run_on(one, statement, values=(), run_on=sqlite_writer.run_on):
        if statement == "COMMIT":
            raise database.WriteFailed("disk I/O error") from sqlite3.OperationalError()
        return run_on(one, statement, values)

    counters.reset()
    monkeypatch.setattr(sqlite_writer, "run_on", run_on)


def test_a_send_that_no_device_is_pushed_to_is_answered_and_counted_once_it_is_stored(service, owner):
    answer, head = begun(SENDING, owner.key)
    assert isinstance(answer, HeldAnswer) and head == [] and stored(service) == 0
    assert counters.counted("notifications") == {} == counters.counted("responses")
    assert json.loads(b"".join(answer))["ok"] and stored(service) == 1
    assert head[0][0] == HTTPStatus.OK and "X-RateLimit-Remaining" in head[0][1]
    assert counters.counted("notifications") == {("send", "delivered"): 1} and counted_statuses() == {"200": 1}


def test_an_event_that_no_device_is_pushed_is_on_its_alerts_page_once_it_is_stored(service, owner, hook):
    webhook = find_webhook(hook.code)
    answer, _ = begun(f"/p/{hook.code}")
    assert isinstance(answer, HeldAnswer) and stored(service) == 0
    assert recent_requests.of_alert(webhook.alert_seq) == []
    said = json.loads(b"".join(answer))
    (seen,) = recent_requests.of_alert(webhook.alert_seq)
    assert (seen.status, seen.notification_id) == (200, said["notificationId"]) and stored(service) == 1


def test_what_a_device_fetches_is_held_and_what_it_is_pushed_is_not(service, owner, push_service):
    add_phone(owner)
    assert isinstance(begun(SENDING, owner.key)[0], HeldAnswer)
    subscribe(owner, push_service)
    assert not isinstance(begun(SENDING, owner.key)[0], HeldAnswer)


def test_when_the_commit_fails_the_answer_is_an_error_with_its_head_and_nothing_else_is_counted(failing, owner):
    answer, head = begun(SENDING, owner.key)
    assert json.loads(b"".join(answer))["code"] == "INTERNAL_ERROR"
    ((status, headers),) = head
    assert status == 503 and headers["X-Request-Id"] and "X-RateLimit-Remaining" in headers
    assert counters.counted("notifications") == {} and counted_statuses() == {"503": 1}


def test_when_the_commit_fails_each_door_says_so_in_its_own_shape(failing, owner, hook):
    at_once = [(path, key, *begun(path, key)) for path, key in ((SENDING, owner.key), ("/topic", owner.key))]
    event, event_head = begun(f"/p/{hook.code}")
    for path, _, answer, head in at_once:
        said = json.loads(b"".join(answer))
        assert head[0][0] == 503 and ("http" in said) == (path == "/topic")
    assert json.loads(b"".join(event))["code"] == "INTERNAL_ERROR" and event_head[0][0] == 503
    (seen,) = recent_requests.of_alert(find_webhook(hook.code).alert_seq)
    assert (seen.status, seen.notification_id) == (503, None)


def test_a_send_with_an_idempotency_key_waits_for_its_commit(service, owner):
    assert owner.send(headers={"Idempotency-Key": "k"}).status_code == 200
    replayed = owner.send(headers={"Idempotency-Key": "k"})
    assert replayed.headers["Idempotent-Replayed"] == "true" and stored(service) == 1
