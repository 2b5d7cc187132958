"""While nothing can be written, or the database is away: every door says so, and what needs no database goes on."""

import re
import sqlite3

import pytest

from core import recent_requests
from process import counters
from process.faults import log_fault
from store import sqlite_writer
from store.database import WriteFailed
from store.senders import find_webhook
from tests.support.memory import open_service
from tests.support.postgresql import sqlite_only

SAID = "The database does not answer, or its disk is full. Try again in a few seconds."
OF_REST = {"ok": False, "error": SAID, "code": "INTERNAL_ERROR", "statusCode": 503}
METRIC = {"projectId": "p", "metrics": [{"metricId": "m", "metricName": "M", "value": 1}]}
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
ASKED = {**CALL, "params": {"name": "send_notification", "arguments": {"title": "t", "body": "b"}}}
DOORS = {
    "/api/v1/notifications/send": ({"title": "t", "body": "b"}, OF_REST),
    "/api/webhooks/custom": (METRIC, {"error": SAID}),
    "/mcp": (ASKED, {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": SAID}}),
    "/topic": ({}, {"code": 50300, "http": 503, "error": SAID}),
    "/gotify/message": (
        {"message": "m"},
        {"error": "Service Unavailable", "errorCode": 503, "errorDescription": SAID},
    ),
}


@pytest.fixture
def locked(service, owner, monkeypatch):
    """Another process keeps the file locked."""
    monkeypatch.setattr("store.sqlite_connection.BUSY_TIMEOUT_MS", 1)
    open_service(service.app, service.settings)
    with sqlite3.connect(service.settings.database) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
    other.close()


@sqlite_only
def test_each_door_answers_503_in_its_shape_and_says_when_to_try_again(service, owner, hook, beat, locked):
    doors = {**DOORS, f"/p/{hook.code}": ({}, OF_REST), beat.path: ({}, OF_REST)}
    for path, (sent, said) in doors.items():
        answer = service.client.post(path, json=sent, headers={"Authorization": f"Bearer {owner.key}"})
        assert (answer.status_code, answer.json, answer.headers["Retry-After"]) == (503, said, "10"), path


@sqlite_only
def test_a_failed_commit_is_neither_answered_nor_counted(service, owner, hook, monkeypatch):
    def run_on(one, statement, values=(), run_on=sqlite_writer.run_on):
        if statement == "COMMIT":
            raise WriteFailed("disk I/O error") from sqlite3.OperationalError()
        return run_on(one, statement, values)

    counters.reset()
    monkeypatch.setattr(sqlite_writer, "run_on", run_on)
    assert [owner.send().json, hook.post({}).json] == [OF_REST] * 2
    assert counters.counted("notifications") == {}
    assert [labels[2] for labels in counters.counted("responses")] == ["503"] * 2
    (seen,) = recent_requests.of_alert(find_webhook(hook.code).alert_seq)
    assert (seen.status, seen.notification_id) == (503, None)


def test_public_pages_need_no_database(service, monkeypatch):
    def fail(*_):
        raise WriteFailed("there is no connection to PostgreSQL")

    monkeypatch.setattr("core.accounts.Session.find", fail)
    opened = [service.client.get(path).status_code for path in ("/app/static/app.css", "/app/login", "/app/sw.js")]
    assert opened == [200] * 3


def test_each_answer_names_the_request_as_its_line_in_the_log_does(service, owner, hook):
    answers = [
        owner.get("/stats"),
        owner.send(),
        hook.post({}),
        hook.post(data="{"),
        *map(service.client.get, ("/livez", "/app/login", "/x")),
    ]
    names = [answer.headers["X-Request-Id"] for answer in answers]
    assert len(set(names)) == len(names) and all(re.fullmatch("[0-9a-f]{16}", name) for name in names)


# --- the log ------------------------------------------------------------------------------------------------


def fail_with(error):
    try:
        raise error
    except Exception as raised:
        log_fault("It failed", raised, request_id="0")


def test_an_outage_is_logged_with_its_stack_once_and_then_in_a_line_a_minute(service, moved_clock, caplog):
    for _ in range(130):
        fail_with(WriteFailed("database or disk is full"))
        moved_clock.advance(1)
    assert [record.getMessage().count("\n") > 0 for record in caplog.records] == [True, False, False]
    line = "The database still cannot be used: 59 more faults within a minute: database or disk is full"
    assert [record.getMessage() for record in caplog.records][1:] == [line] * 2
    moved_clock.advance(120)
    fail_with(WriteFailed("disk I/O error"))
    assert "disk I/O error\n" in caplog.records[-1].getMessage()


def test_other_faults_are_logged_each_with_its_stack(service, caplog):
    for error in (ValueError(), sqlite3.ProgrammingError("no such table"), ValueError()):
        fail_with(error)
    assert ["Traceback" in record.getMessage() or "\n" in record.getMessage() for record in caplog.records] == [
        True
    ] * 3
