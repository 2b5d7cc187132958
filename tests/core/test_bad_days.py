"""A provider's bad day must not affect other providers, nor prolong a request."""

import pytest

import push
from core import attempts, retries
from process import clock
from providers import base
from providers import fcm as fcm_module
from providers.base import Message, Outcome, Push
from wire.notification import Content

MESSAGE = Message("0" * 32, Content("title", "body"), "/app/")


@pytest.fixture
def service(every_provider):
    return every_provider


def device(owner, kind, phone):
    assert owner.post("/devices", {"kind": kind, "token": phone.token}).status_code == 201
    return phone


@pytest.mark.parametrize("answer", [(500, ""), (400, "invalid_grant")])
def test_oauth_that_fails_is_asked_once_for_all_devices_and_apple_gets_its_push(owner, apns, fcm, answer):
    iphone = device(owner, "apns", apns.phone())
    for _ in range(3):
        device(owner, "fcm", fcm.phone())
    fcm.oauth_then(*answer)
    assert owner.send().json["notification"]["status"] == "delivered"
    assert (len(iphone.messages), fcm.oauth_calls) == (1, 1)


@pytest.mark.parametrize("expires_in", [10**12, -5, 0, "abc", [1], None, 1e300])
def test_a_strange_life_of_an_oauth_token_does_no_harm(owner, fcm, monkeypatch, expires_in):
    phone = device(owner, "fcm", fcm.phone())
    told = {"expires_in": expires_in}
    monkeypatch.setattr(fcm_module, "parsed", lambda reply: base.parsed(reply) | told)
    assert [owner.send().json["notification"]["status"] for _ in range(2)] == ["delivered"] * 2
    assert (len(phone.messages), fcm.oauth_calls) == (2, 1)


def test_nothing_is_sent_when_no_time_is_left_for_an_answer(service, apns, moved_clock, monkeypatch):
    phone = apns.phone()
    request = push._State.providers["apns"].request

    def slow(one, left_s):
        moved_clock.monotonic += 4.0
        return request(one, left_s)

    monkeypatch.setattr(push._State.providers["apns"], "request", slow)
    (answer,) = push.send([Push("apns", phone.token, MESSAGE, "a@example.org")], 4.5)
    assert (answer.outcome, answer.was_tried, phone.pushes) == (Outcome.TRANSIENT, False, [])


def test_a_fault_of_ours_in_pushing_counts_as_an_attempt_and_ends_after_a_day(
    owner, service, apns, moved_clock, monkeypatch
):
    device(owner, "apns", apns.phone())
    monkeypatch.setattr(push, "send_all", lambda *_: 1 / 0)
    assert owner.send().json["notification"]["status"] == "pending"
    for _ in range(30):
        moved_clock.advance(3_600)
        service.work()
    assert owner.listed()[0]["status"] == "failed"


def test_retries_whose_outcome_cannot_be_recorded_are_due_again_when_their_leases_end(
    owner, service, apns, moved_clock, monkeypatch
):
    phone = apns.phone().then(503)
    device(owner, "apns", phone)
    assert owner.send().json["notification"]["status"] == "pending"
    with monkeypatch.context() as patched:
        patched.setattr(retries, "note_outcomes", lambda *_: 1 / 0)
        moved_clock.advance(31)
        service.work()
    assert owner.listed()[0]["status"] == "pending"
    moved_clock.advance(attempts.LEASE_MS / 1000 + 1)
    service.work()
    assert owner.listed()[0]["status"] == "delivered"


def test_what_was_only_put_off_is_given_up_after_a_day(owner, service, apns, moved_clock, monkeypatch):
    device(owner, "apns", apns.phone())
    left_alone = push.Answer(Outcome.TRANSIENT, "Left alone.", 30, was_tried=False)
    monkeypatch.setattr(push, "send", lambda pushes, _: [left_alone] * len(pushes))
    assert owner.send().json["notification"]["status"] == "pending"
    moved_clock.advance(86_400 + 60)
    service.work()
    assert owner.listed()[0]["status"] == "failed"


def test_putting_off_takes_all_that_is_due_on_the_device(owner, service, apns, moved_clock, monkeypatch):
    device(owner, "apns", apns.phone())
    seen = []
    left_alone = push.Answer(Outcome.TRANSIENT, "Left alone.", 30, was_tried=False)
    with monkeypatch.context() as patched:
        patched.setattr(push, "send", lambda pushes, _: [push.Answer(Outcome.TRANSIENT, "No.")] * len(pushes))
        for _ in range(25):
            owner.send()
    monkeypatch.setattr(push, "send", lambda pushes, _: [seen.append(1) or left_alone for _ in pushes])
    moved_clock.advance(31)
    for _ in range(3):
        service.work()
    assert len(seen) == retries.RETRIES_OF_AN_ACCOUNT


def test_the_same_apns_token_in_capitals_is_the_same_device(owner, apns):
    token = apns.phone().token
    ids = {
        owner.post("/devices", {"kind": "apns", "token": one}).json["device"]["id"] for one in (token, token.upper())
    }
    assert len(ids) == 1


def test_apple_gets_no_more_new_tokens_than_it_takes_however_often_it_calls_one_too_old(owner, apns, moved_clock):
    phone = device(owner, "apns", apns.phone())
    for _ in range(4):
        phone.then(403, "ExpiredProviderToken").then(403, "ExpiredProviderToken")
        owner.send()
        moved_clock.advance(60)
    tokens = {pushed["authorization"] for pushed in phone.pushes}
    assert len(tokens) == 2


def test_a_token_from_before_the_clock_was_set_is_made_anew(owner, apns, moved_clock):
    phone = device(owner, "apns", apns.phone())
    owner.send()
    moved_clock.set_wall(clock.now_ms() - 7_200_000)
    assert owner.send().json["notification"]["status"] == "delivered"
    assert len({pushed["authorization"] for pushed in phone.pushes}) == 2


def test_a_connection_that_does_not_answer_in_time_is_not_used_again(owner, apns, monkeypatch):
    phone = device(owner, "apns", apns.phone())
    owner.send()
    before = apns.connections
    phone.then("hang")
    with monkeypatch.context() as patched:
        patched.setattr(attempts, "PUSH_DEADLINE_S", 0.4)
        assert owner.send().json["notification"]["status"] == "pending"
    assert owner.send().json["notification"]["status"] == "delivered"
    assert apns.connections == before + 1


def test_few_origins_are_remembered_however_many_do_not_answer(service):
    pauses = push.Pauses()
    for number in range(3 * push.MAX_KEPT_ORIGINS):
        pauses.note(f"https://{number}.example.com", {"token"}, has_answered=False)
    assert len(pauses.silent) == push.MAX_KEPT_ORIGINS
