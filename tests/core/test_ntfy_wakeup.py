"""NTFY_UPSTREAM: an iPhone's ntfy app is woken, and then fetches one message."""

import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest

import push
from core import ntfy_wakeup
from core.scheduler import Scheduler
from store import sqlite
from store.database import EVERYBODY, transaction
from tests.support.ntfy_app import add_phone
from tests.support.postgresql import sqlite_only
from tests.support.server import PATIENCE_S, wait_until
from tests.support.tables import alter

BASE_URL = "https://bell.example.org"


@pytest.fixture
def upstream(receiver):
    """The stand-in for ntfy.sh."""
    return receiver


@pytest.fixture
def service(make_service, upstream, moved_clock):
    return make_service(NTFY_UPSTREAM=upstream.origin, BASE_URL=BASE_URL)


def finish():
    """Wait until all phones are woken."""
    wait([*ntfy_wakeup._waiting])


def send(owner, **more):
    answer = owner.post("/notifications/send", {"title": "t", "body": "secret text", **more})
    finish()
    return answer.json["notification"]["id"]


def path_of(android):
    return "/" + hashlib.sha256(f"{BASE_URL}/{android.topic}".encode()).hexdigest()


def test_the_app_is_woken_with_the_id_alone_and_fetches_that_message(owner, android, upstream):
    id_ = send(owner)
    assert [(one.path, one.headers["x-poll-id"], one.body) for one in upstream.got] == [(path_of(android), id_, b"")]
    assert android.fetch(id_)["message"] == "secret text"


def test_each_phone_is_woken_for_what_it_gets_from_priority_3_on(owner, android, upstream):
    urgent = add_phone(owner, minPriority=5)
    for priority in (1, 2):
        send(owner, priority=priority)
    assert upstream.got == []
    send(owner, priority=3)
    send(owner, priority=5)
    assert [len(upstream.at(path_of(phone))) for phone in (android, urgent)] == [2, 1]


def test_a_notification_released_later_wakes_the_phone_too(owner, android, upstream, hook, moved_clock):
    hook.set("--frequency", "1h")
    hook.post({"message": "held"})
    finish()
    assert upstream.got == []
    moved_clock.advance(3601)
    owner.service.work()
    finish()
    assert len(upstream.got) == 1


@sqlite_only
def test_a_thread_that_wakes_somebody_keeps_no_connection_to_the_database(owner, android, monkeypatch):
    kept, wake = [], push.wake

    def note(*asked):
        kept.append(sqlite._threads.own.reading)
        return wake(*asked)

    monkeypatch.setattr(push, "wake", note)
    send(owner)
    assert kept == [None]


def test_a_failure_is_logged_once_and_not_tried_again(owner, android, upstream, caplog):
    upstream.answers[path_of(android)] = (429,)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            send(owner)
        assert len(upstream.got) == 3
        assert [one.getMessage() for one in caplog.records] == [
            "A device could not be woken: Check NTFY_UPSTREAM: it answered 429."
        ]
        upstream.answers[path_of(android)] = (200,)
        send(owner)
        upstream.answers[path_of(android)] = (500,)
        send(owner)
    assert len(caplog.records) == 2
    assert owner.listed()[0]["status"] == "pending" and android.topic not in caplog.text


def test_a_phone_from_before_there_was_an_upstream_is_not_woken(owner, android, upstream):
    alter(owner.service, "UPDATE device SET poll_hash = NULL")
    send(owner)
    assert upstream.got == []


def test_the_number_of_waiting_wake_ups_is_limited(owner, android, upstream, monkeypatch):
    monkeypatch.setattr(ntfy_wakeup, "MAX_WAITING", 0)
    send(owner)
    assert upstream.got == [] and len(android.messages()) == 1


def test_a_notification_that_is_not_stored_wakes_no_phone(owner, android, upstream):
    with pytest.raises(ZeroDivisionError), transaction(EVERYBODY):
        ntfy_wakeup.wake_later(10**9, [type("Device", (), {"seq": 1, "kind": "ntfy"})])
        raise ZeroDivisionError
    finish()
    assert upstream.got == []


def test_an_exception_in_waking_is_logged_and_does_not_affect_sending(owner, android, monkeypatch, caplog):
    monkeypatch.setattr(push, "wake", lambda *_: 1 / 0)
    send(owner)
    assert "A device could not be woken: ZeroDivisionError" in caplog.text


def test_stopping_the_service_does_not_wait_for_a_hanging_upstream(owner, android, monkeypatch):
    asked, answers = [], Event()
    monkeypatch.setattr(push, "wake", lambda *_: asked.append(1) or (answers.wait(PATIENCE_S) and None))
    for _ in range(ntfy_wakeup.THREADS + 3):
        owner.send()
    wait_until(lambda: len(asked) == ntfy_wakeup.THREADS)
    Scheduler().stop()
    answers.set()
    monkeypatch.setattr(ntfy_wakeup, "_threads", ThreadPoolExecutor(ntfy_wakeup.THREADS))
    assert len(asked) == ntfy_wakeup.THREADS
    send(owner)
    assert len(asked) == ntfy_wakeup.THREADS + 1
