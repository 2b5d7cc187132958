"""Requests that wait for an answer, on the service as it really runs."""

import json
import os
import time

import pytest

from core import answers
from core.waiting import MAX_WAITING
from models import Account
from tests.support.accounts import OWNER
from tests.support.buttons import ANSWERS
from tests.support.server import UNDELAYED_S, bearer, in_threads, join, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gunicorn runs on POSIX alone")


@pytest.fixture
def server(start):
    server = start(THREADS="2").wait_until_ready()
    server.key = server.owner_key()
    question = json.dumps({"title": "Deploy?", "body": "version 7", "actions": ANSWERS})
    sent = server.request("POST", "/api/v1/notifications/send", question, bearer(server.key))
    server.asked = json.loads(sent.text)["notification"]["id"]
    return server


@pytest.fixture
def waiting(server):
    """The answers to requests that wait, and their threads; `MAX_WAITING` wait, and one more was answered at once."""
    found, path = [], f"/api/v1/notifications/{server.asked}?wait=25"
    threads = in_threads(MAX_WAITING + 1, lambda _: found.append(server.get(path, server.key)))
    wait_until(lambda: len(found) == 1)
    return found, threads


def test_what_waits_takes_no_thread_from_the_others_and_hears_of_an_answer_from_another_process(server, waiting):
    found, threads = waiting
    assert server.send(server.key).status == 200 and len(found) == 1
    with server.beside():
        answers.answer(Account.find(OWNER), server.asked, 1)
    join(threads)
    assert {one.status for one in found} == {200}
    given = [json.loads(one.text)["notification"].get("answer", {}).get("answer") for one in found]
    assert given == [None] + ["n"] * MAX_WAITING


def test_the_end_of_the_service_is_not_delayed_and_what_waits_is_answered(server, waiting):
    found, threads = waiting
    began = time.monotonic()
    assert server.terminate() == 0
    assert time.monotonic() - began < UNDELAYED_S
    join(threads)
    assert [one.status for one in found] == [200] * (MAX_WAITING + 1)
