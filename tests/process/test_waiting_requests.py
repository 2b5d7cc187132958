"""Requests that wait for an answer, on the service as it really runs."""

import json
import os
import time

import pytest

from core import answers
from core.long_poll import MAX_WAITING, MAX_WAITING_OF_ACCOUNT
from models import Account
from tests.support.accounts import OTHER, OWNER
from tests.support.buttons import ANSWERS
from tests.support.server import UNDELAYED_S, bearer, in_threads, join, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="gunicorn runs on POSIX alone")


@pytest.fixture
def server(start):
    server = start(THREADS="2").wait_until_ready()
    question = json.dumps({"title": "Deploy?", "body": "version 7", "actions": ANSWERS})
    server.asked = {}  # by key
    for email in (OWNER, OTHER):
        key = server.owner_key(email=email)
        sent = server.request("POST", "/api/v1/notifications/send", question, bearer(key))
        server.asked[key] = json.loads(sent.text)["notification"]["id"]
    return server


@pytest.fixture
def waiting(server):
    """The answers to requests that wait, and their threads; `MAX_WAITING` wait, and one each was answered at once."""
    found, asked = [], [*server.asked.items()] * (MAX_WAITING_OF_ACCOUNT + 1)

    def wait(number):
        key, id_ = asked[number]
        found.append(server.get(f"/api/v1/notifications/{id_}?wait=25", key))

    threads = in_threads(len(asked), wait)
    wait_until(lambda: len(found) == 2)
    return found, threads


def test_a_long_poll_blocks_no_other_request_and_hears_of_another_processs_answer(server, waiting):
    found, threads = waiting
    key, other = server.asked
    assert server.send(key).status == 200 and len(found) == 2
    with server.beside():
        answers.answer(Account.find(OWNER), server.asked[key], 1)
        answers.answer(Account.find(OTHER), server.asked[other], 1)
    join(threads)
    assert {one.status for one in found} == {200}
    given = [json.loads(one.text)["notification"].get("answer", {}).get("answer") for one in found]
    assert given == [None] * 2 + ["n"] * MAX_WAITING
    assert [one.headers.get("Retry-After") for one in found] == ["1"] * 2 + [None] * MAX_WAITING


def test_a_shutdown_answers_long_polls_without_delay(server, waiting):
    found, threads = waiting
    began = time.monotonic()
    assert server.terminate() == 0
    assert time.monotonic() - began < UNDELAYED_S
    join(threads)
    assert [one.status for one in found] == [200] * (MAX_WAITING + 2)
