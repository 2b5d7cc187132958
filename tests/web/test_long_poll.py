"""`GET /api/v1/notifications/{id}?wait=N` until an answer, an acknowledgement or the time is over."""

import threading

import pytest

from core import long_poll
from store import database
from store.database import EVERYBODY, transaction
from tests.support.alarms import acknowledge
from tests.support.assistants import call
from tests.support.buttons import ANSWERS, paths, press
from tests.support.rows import each
from tests.support.server import PATIENCE_S, in_threads, join
from tests.support.service import Caller
from tests.support.tables import alter


@pytest.fixture
def meanwhile(monkeypatch, moved_clock):
    """Lets the clock pass where a request would wait. What is put into this list happens in the first pause."""
    happens, pause = [], long_poll._pause

    def passes(pause_s):
        moved_clock.advance(pause_s)
        if happens:
            join(in_threads(1, lambda _: happens.pop()()))  # as another request
        pause(0)

    monkeypatch.setattr(long_poll, "_pause", passes)
    return happens


@pytest.fixture
def asked(owner, browser):
    """The id of a question that repeats until it is acknowledged."""
    fields = {"title": "Deploy?", "body": "version 7", "actions": ANSWERS, "acknowledge": True}
    return owner.post("/notifications/send", fields).json["notification"]["id"]


def waited(caller, id_, wait):
    return caller.get(f"/notifications/{id_}?wait={wait}")


@each("wait", ["0", "26", "-1", " 1", "1.5", "x", "1e1", "9" * 5000, "٣", "true", "25s"])
def test_a_wait_that_is_no_number_from_1_to_25_is_refused(owner, wait):
    for id_ in (owner.send().json["notification"]["id"], "unknown"):
        answer = waited(owner, id_, wait)
        assert answer.status_code == 400
        assert answer.json["error"] == "wait must be a whole number of seconds from 1 to 25."


@each("wait", [1, 25, "007"])
def test_without_an_answer_it_returns_when_the_time_is_over(owner, asked, meanwhile, moved_clock, wait):
    began, detail = moved_clock.monotonic, owner.get(f"/notifications/{asked}").json
    answer = waited(owner, asked, wait)
    assert (answer.status_code, answer.json) == (200, detail) and "answer" not in detail["notification"]
    assert moved_clock.monotonic - began == int(wait)


def test_the_wait_returns_with_the_answer(service, owner, browser, asked, meanwhile, moved_clock):
    began = moved_clock.monotonic
    meanwhile.append(lambda: press(service, paths(browser)["No"]))
    assert waited(owner, asked, 25).json["notification"]["answer"]["answer"] == "n"
    assert moved_clock.monotonic - began == long_poll.POLLED_EVERY_S
    assert waited(owner, asked, 25).json["notification"]["answer"]["answer"] == "n"
    assert moved_clock.monotonic - began == long_poll.POLLED_EVERY_S


def test_the_wait_returns_with_the_acknowledgement(service, owner, browser, asked, meanwhile, moved_clock):
    began = moved_clock.monotonic
    meanwhile.append(lambda: press(service, paths(browser)["Acknowledge"]))
    assert "answer" not in waited(owner, asked, 25).json["notification"]
    assert moved_clock.monotonic - began == long_poll.POLLED_EVERY_S


def test_a_wait_ends_when_the_key_expires(owner, asked, meanwhile, moved_clock):
    made = owner.post("/api-keys/generate", {"name": "short", "expiresAt": moved_clock.ms + 60_000}).json
    short, began = Caller(owner.service, made["apiKey"]["fullKey"]), moved_clock.monotonic
    moved_clock.advance(57)
    assert waited(short, asked, 25).status_code == 401
    assert moved_clock.monotonic - began == pytest.approx(60)


def test_an_answer_that_another_process_took_is_found(service, owner, asked, meanwhile, moved_clock):
    def elsewhere():
        alter(service, f"INSERT INTO answer SELECT seq, 1, {moved_clock.ms}, NULL, NULL FROM notification")

    meanwhile.append(elsewhere)
    expected = {"label": "No", "answer": "n", "at": moved_clock.ms + 500, "device": None}
    assert waited(owner, asked, 25).json["notification"]["answer"] == expected


def test_a_key_that_is_revoked_meanwhile_is_401(service, owner, asked, meanwhile, moved_clock):
    other = service.caller(name="other")
    (key,) = [one["id"] for one in other.get("/api-keys").json["apiKeys"] if one["name"] == "test"]
    meanwhile.append(lambda: other.delete(f"/api-keys/{key}"))
    assert waited(owner, asked, 25).status_code == 401
    assert moved_clock.monotonic == 1000 + long_poll.POLLED_EVERY_S


def test_a_notification_deleted_meanwhile_is_404(service, owner, asked, meanwhile, moved_clock):
    meanwhile.append(lambda: owner.delete(f"/notifications/{asked}"))
    assert waited(owner, asked, 25).status_code == 404
    assert moved_clock.monotonic == 1000 + long_poll.POLLED_EVERY_S


def test_when_the_service_ends_it_returns_at_once(owner, asked, meanwhile, moved_clock, monkeypatch):
    monkeypatch.setattr(long_poll, "goes_on", lambda: False)
    assert waited(owner, asked, 25).status_code == 200
    assert moved_clock.monotonic == 1000


def test_no_lock_is_held_while_it_waits(service, owner, asked, meanwhile):
    def write():
        alter(service, "UPDATE account SET theme = 'dark'")
        with transaction(EVERYBODY):
            database.run("UPDATE account SET theme = 'light'")

    meanwhile.append(write)
    assert waited(owner, asked, 1).status_code == 200 and meanwhile == []


@each("taken", [[1] * 4, [2] * 4 + [3] * 4, [1] * 3 + [2] * 4 + [3]])
def test_eight_wait_and_four_of_an_account_and_the_others_are_answered_at_once(owner, asked, monkeypatch, taken):
    monkeypatch.setattr(long_poll, "_waiting", list(taken))
    answer = waited(owner, asked, 25)  # the clock stands still: it would wait for ever
    assert (answer.status_code, answer.headers["Retry-After"]) == (200, "1")
    assert answer.json == owner.get(f"/notifications/{asked}").json and long_poll._waiting == taken
    told = call(owner, "get_notification", {"id": asked, "wait": 25})
    assert told["structuredContent"]["notification"]["id"] == asked


@pytest.mark.parametrize("taken", [[], [1] * 3 + [2] * 4])
def test_with_a_place_it_waits_and_the_place_is_free_again(owner, asked, meanwhile, moved_clock, monkeypatch, taken):
    monkeypatch.setattr(long_poll, "_waiting", list(taken))
    for happens in (lambda: None, lambda: owner.delete(f"/notifications/{asked}")):
        began = moved_clock.monotonic
        meanwhile.append(happens)
        assert "Retry-After" not in waited(owner, asked, 1).headers
        assert moved_clock.monotonic > began and sorted(long_poll._waiting) == taken


@each(
    "fields, is_over, wake",
    [
        ({"actions": ANSWERS}, "answer", lambda id_, service, owner, browser: press(service, paths(browser)["Yes"])),
        ({"acknowledge": True}, "acknowledgedAt", lambda id_, service, owner, browser: acknowledge(owner, id_)),
    ],
)
def test_an_answer_and_an_acknowledgement_wake_the_request_that_waits(
    service, owner, browser, monkeypatch, fields, is_over, wake
):
    """Within this process it does not wait for its next look at the database."""
    waits, real = threading.Event(), long_poll._pause

    def pause(pause_s):
        with long_poll._changed:  # until it waits
            waits.set()
            real(3600)

    content = {"title": "Deploy?", "body": "version 7", **fields}
    id_ = owner.post("/notifications/send", content).json["notification"]["id"]
    client, found = service.app.test_client(), []
    with monkeypatch.context() as patch:
        patch.setattr(long_poll, "_pause", pause)
        headers, path = {"Authorization": f"Bearer {owner.key}"}, f"/api/v1/notifications/{id_}?wait=25"
        threads = in_threads(1, lambda _: found.append(client.get(path, headers=headers)))
        assert waits.wait(PATIENCE_S)
        wake(id_, service, owner, browser)
        join(threads)
    assert found[0].json["notification"][is_over]
