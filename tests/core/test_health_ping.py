"""`HEARTBEAT_URL` is called while the service is healthy."""

import logging
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from core import doctor, health_ping, scheduler
from tests.support.listener import answer, listening
from tests.support.server import free_port


@contextmanager
def at_little_time():
    """Fail if the block takes much longer than the tests' 0.3 s for a call."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 10


@pytest.fixture
def watcher():
    """An address that answers with the statuses of `says` in turn, and then with 200; `asked` are the requests."""
    says, asked = [], []

    def serve(connection, _):
        asked.append(connection.recv(4096))
        answer(connection, says.pop(0) if says else "200 OK", "Connection: close\r\n", b"body")
        connection.close()

    with listening(serve) as listener:
        listener.says, listener.asked = says, asked
        yield listener


@pytest.fixture
def watched(make_service, watcher, moved_clock, monkeypatch):
    """A service that is well, and calls it."""
    monkeypatch.setattr(scheduler.background, "is_alive", lambda: True)
    return make_service(HEARTBEAT_URL=f"{watcher.url}/5ecret?a=b")


def test_the_heartbeat_url_is_not_called_while_the_service_is_unhealthy(watched, watcher, moved_clock, monkeypatch):
    monkeypatch.setattr(scheduler.background, "is_alive", lambda: False)
    scheduler.ping_if_healthy(moved_clock.ms)
    assert watcher.asked == []


def test_the_heartbeat_url_is_called_each_minute_in_its_own_thread():
    (job,) = scheduler.Scheduler().pinger.next_run_s
    assert (job.run, job.every_s) == (scheduler.ping_if_healthy, 60.0)


def test_the_health_ping_thread_runs_only_if_a_url_is_set(service, monkeypatch):
    worker = scheduler.Scheduler()
    monkeypatch.setattr(worker, "lanes", ())
    worker.start()
    assert worker.pinger.thread is None
    worker.stop()


def test_stopping_the_service_does_not_wait_for_the_health_ping(service, monkeypatch):
    called, may_end = threading.Event(), threading.Event()

    def hang(now):
        called.set()
        may_end.wait(timeout=5)  # a stop that waited would find it ended

    worker = scheduler.Scheduler()
    monkeypatch.setattr(worker, "lanes", ())
    monkeypatch.setattr(worker, "pinger", scheduler.Lane((scheduler.Job("hang", hang),), threading.Event()))
    worker.pinger.start()
    assert called.wait(timeout=30)
    worker.stop()
    assert worker.pinger.thread.is_alive()
    may_end.set()
    worker.pinger.thread.join()


def test_failures_in_a_row_are_logged_once_and_without_the_address(watched, watcher, moved_clock, caplog):
    caplog.set_level(logging.INFO, "pocketbell")
    watcher.says += ["500 Oh", "404 No", "200 OK", "503 Later"]
    for _ in range(5):
        scheduler.ping_if_healthy(moved_clock.ms)
    assert [record.getMessage() for record in caplog.records] == [
        "HEARTBEAT_URL could not be called: it answered 500",
        "HEARTBEAT_URL can be called again",
        "HEARTBEAT_URL could not be called: it answered 503",
        "HEARTBEAT_URL can be called again",
    ]


def test_an_address_that_does_not_answer_is_a_failure_too(make_service, moved_clock, caplog):
    make_service(HEARTBEAT_URL=f"http://127.0.0.1:{free_port()}/5ecret")
    health_ping.ping()
    (record,) = caplog.records
    assert record.getMessage() == "HEARTBEAT_URL could not be called: no connection could be made"


@pytest.mark.parametrize(
    "head, drop",
    [
        (b"HTTP/1.1 2", b"0"),
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", b"x"),
        (b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
def test_an_endless_answer_is_abandoned_in_time(make_service, moved_clock, monkeypatch, head, drop):
    def drip(connection, _):
        with suppress(OSError):
            while connection.recv(4096):
                connection.sendall(head)
                while drop:
                    connection.sendall(drop)
                    ended.wait(0.02)

    ended = threading.Event()
    monkeypatch.setattr(health_ping, "TIMEOUT_S", 0.3)
    with listening(drip) as listener, at_little_time():
        make_service(HEARTBEAT_URL=listener.url)
        health_ping.ping()
    ended.set()
    assert health_ping.last_failure() in ("it did not answer in time", "it redirects without an end")
    assert listener.connections <= 6


def test_the_doctor_says_whether_a_heartbeat_url_is_set(service, watched, watcher, make_service):
    def seen():
        return next(one[1:] for one in doctor.examine(watched.settings) if one.check == "watched")

    assert doctor.CHECKS["watched"](service.settings)[0] == "look"
    assert seen() == ("ok", "HEARTBEAT_URL is called each minute while the service is healthy.")
    watcher.says.append("410 Gone")
    health_ping.ping()
    assert seen() == ("bad", "The last call of HEARTBEAT_URL failed: it answered 410.")
    health_ping.ping()
    assert seen()[0] == "ok"
