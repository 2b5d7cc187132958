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


def asked(server, keys):
    """Send a question with each key; what was sent, with its key."""
    question = json.dumps({"title": "Deploy?", "body": "version 7", "actions": ANSWERS})
    sent = [server.request("POST", "/api/v1/notifications/send", question, bearer(key)) for key in keys]
    return [(json.loads(one.text)["notification"]["id"], key) for one, key in zip(sent, keys, strict=True)]


def waiting(server, questions):
    """The answers to requests that wait, and their threads; `MAX_WAITING` wait, and one each was answered at once."""
    found, waits = [], questions * (MAX_WAITING_OF_ACCOUNT + 1)

    def wait(number):
        id_, key = waits[number]
        found.append(server.get(f"/api/v1/notifications/{id_}?wait=25", key))

    threads = in_threads(len(waits), wait)
    wait_until(lambda: len(found) == 2)
    return found, threads


def test_a_long_poll_blocks_nobody_and_hears_of_another_processs_answer_and_of_a_shutdown_without_delay(start):
    server = start(THREADS="2").wait_until_ready()
    keys = [server.owner_key(email=email) for email in (OWNER, OTHER)]
    (one, key), (other, _) = questions = asked(server, keys)
    found, threads = waiting(server, questions)
    assert server.send(key).status == 200 and len(found) == 2
    with server.beside():
        answers.answer(Account.find(OWNER), one, 1)
        answers.answer(Account.find(OTHER), other, 1)
    join(threads)
    assert {answer.status for answer in found} == {200}
    given = [json.loads(answer.text)["notification"].get("answer", {}).get("answer") for answer in found]
    assert given == [None] * 2 + ["n"] * MAX_WAITING
    assert [answer.headers.get("Retry-After") for answer in found] == ["1"] * 2 + [None] * MAX_WAITING

    found, threads = waiting(server, asked(server, keys))
    began = time.monotonic()
    assert server.terminate() == 0
    assert time.monotonic() - began < UNDELAYED_S
    join(threads)
    assert [answer.status for answer in found] == [200] * (MAX_WAITING + 2)
