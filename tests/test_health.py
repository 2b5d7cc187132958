"""GET /healthz (CONTRACT 3): the database answers and the background worker's heartbeat is fresh."""

import pytest

import api
import jobs
from database import database


@pytest.fixture
def worker(service, monkeypatch):
    """A background worker of this test's own, not yet begun."""
    worker = jobs.Worker()
    monkeypatch.setattr(api, "worker", worker)
    yield worker
    if worker.thread.is_alive():
        worker.stop()


def health(service):
    answer = service.client.get("/healthz")
    return answer.status_code, answer.json


def test_it_is_503_while_there_is_no_worker(service, worker):
    assert health(service) == (503, {"status": "unavailable"})


def test_it_is_200_while_the_worker_works(service, worker):
    worker.start()
    assert health(service) == (200, {"status": "ok"})


def test_it_is_503_when_no_round_of_the_worker_has_ended_for_30_seconds(service, worker, moved_clock):
    worker.start()
    worker.stop()
    moved_clock.advance(29)
    assert health(service) == (200, {"status": "ok"})
    moved_clock.advance(1)
    assert health(service) == (503, {"status": "unavailable"})


def test_it_is_503_when_the_database_does_not_answer(service, worker):
    worker.start()
    worker.stop()
    database.execute_sql("ALTER TABLE account RENAME TO gone")
    assert health(service) == (503, {"status": "unavailable"})


def test_a_job_that_fails_keeps_neither_the_others_nor_the_heartbeat(service, worker, monkeypatch, caplog):
    done = []
    title = "nobody may read this"

    def fail(now):
        raise ValueError(title)

    monkeypatch.setattr(jobs, "JOBS", (jobs.Job("fail", fail), jobs.Job("succeed", done.append)))
    jobs.run_due(5)
    assert done == [5]
    assert "fail" in caplog.text and title not in caplog.text
