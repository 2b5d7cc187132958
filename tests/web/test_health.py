"""GET /healthz: the database answers and the background worker's heartbeat is fresh."""

import multiprocessing
import sqlite3
import threading

import peewee
import pytest

from core import scheduler
from process.faults import log_fault
from store.database import WriteFailed
from tests.support.memory import open_service
from tests.support.postgresql import sqlite_only
from tests.support.rows import each
from tests.support.server import PATIENCE_S
from tests.support.tables import alter


@pytest.fixture
def worker(service, monkeypatch):
    """A background worker of this test's own, not yet begun."""
    worker = scheduler.Scheduler()
    monkeypatch.setattr(scheduler, "background", worker)
    yield worker
    worker.stop()


def test_livez_is_200_whatever_the_database_does(service, worker):
    alter(service, "DROP TABLE account")
    answer = service.client.get("/livez")
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


def health(service):
    answer = service.client.get("/healthz")
    return answer.status_code, answer.json


def test_healthz_is_503_while_there_is_no_worker(service, worker):
    assert health(service) == (503, {"status": "unavailable"})


HEALTH = {  # by address: while the service is well, and while it is not
    "/healthz": ({"status": "ok"}, {"status": "unavailable"}),
    "/v1/health": ({"healthy": True}, {"healthy": False}),
    "/gotify/health": (dict.fromkeys(("health", "database"), "green"), dict.fromkeys(("health", "database"), "red")),
}


@each("path, well, ill", [(path, *bodies) for path, bodies in HEALTH.items()])
def test_each_address_of_the_health_tells_it_in_its_own_words(service, monkeypatch, path, well, ill):
    for is_alive, expected in ((True, (200, well)), (False, (503, ill))):
        monkeypatch.setattr(scheduler.background, "is_alive", lambda is_alive=is_alive: is_alive)
        answer = service.client.get(path)
        assert (answer.status_code, answer.json) == expected


def start_and_stop(lane):
    lane.start()
    lane.stop()


def test_a_lane_of_the_worker_that_was_made_before_a_fork_starts_in_the_child():
    """gunicorn's master reads the configuration, which imports `scheduler`; the worker is a fork of it."""
    lane = scheduler.Lane((), threading.Event())
    child = multiprocessing.get_context("fork").Process(target=start_and_stop, args=[lane])
    child.start()
    child.join(PATIENCE_S)
    assert child.exitcode == 0


def test_healthz_is_503_when_no_round_has_ended_for_30_seconds(service, worker, moved_clock):
    worker.start()
    worker.stop()
    moved_clock.advance(29)
    assert health(service) == (200, {"status": "ok"})
    moved_clock.advance(1)
    assert health(service) == (503, {"status": "unavailable"})


def test_healthz_is_503_when_the_database_does_not_answer(service, worker):
    worker.start()
    worker.stop()
    alter(service, "DROP TABLE account")
    assert health(service) == (503, {"status": "unavailable"})


@sqlite_only
def test_healthz_is_503_from_a_failed_write_until_one_succeeds(service, owner, worker, moved_clock, monkeypatch):
    monkeypatch.setattr("store.sqlite_connection.BUSY_TIMEOUT_MS", 20)
    open_service(service.app, service.settings)
    worker.start()
    worker.stop()
    with sqlite3.connect(service.settings.database) as other:
        other.execute("BEGIN IMMEDIATE")
        assert owner.send("t", "b").status_code == 503
        assert health(service) == (503, {"status": "unavailable"})
        service.work()
        assert health(service) == (503, {"status": "unavailable"})
    other.close()
    service.work()
    assert health(service) == (200, {"status": "ok"})
    assert owner.send("t", "b").status_code == 200


def test_while_writes_fail_the_worker_tries_in_each_round_and_logs_no_more_of_it(service, monkeypatch, caplog):
    tries = []

    def fail():
        tries.append("a write")
        raise WriteFailed("database or disk is full")

    monkeypatch.setattr(scheduler, "writes_fail", lambda: True)
    monkeypatch.setattr(scheduler, "try_writing", fail)
    for _ in range(3):
        scheduler.run_due(5, [job for job in scheduler.RECORDS if job.name == "look after writes"])
    assert (len(tries), caplog.text) == (3, "")


def test_a_job_that_fails_does_not_keep_the_others_and_tells_no_payload(caplog):
    done = []
    title = "nobody may read this"

    def fail(now):
        raise ValueError(title)

    scheduler.run_due(5, (scheduler.Job("fail", fail), scheduler.Job("succeed", done.append)))
    assert done == [5]
    assert "fail" in caplog.text and title not in caplog.text


def test_the_log_tells_the_first_cause_of_a_database_fault(caplog):
    try:
        try:
            raise sqlite3.OperationalError("database or disk is full")
        except sqlite3.OperationalError:
            raise peewee.OperationalError("cannot rollback") from None
    except peewee.OperationalError as error:
        log_fault("It failed", error)
    assert "database or disk is full" in caplog.text


def test_a_round_that_waits_for_providers_does_not_hold_up_the_records(service, worker, monkeypatch):
    held, done = threading.Event(), threading.Event()
    waiting, records, *_ = worker.lanes
    monkeypatch.setattr(waiting, "next_run_s", {scheduler.Job("wait", lambda now: held.wait(10)): 0.0})
    monkeypatch.setattr(records, "next_run_s", {scheduler.Job("write", lambda now: done.set()): 0.0})
    worker.start()
    assert done.wait(10)
    held.set()
