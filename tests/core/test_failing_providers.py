"""A failing provider does not affect other providers and does not prolong a request."""

import pytest

import push
from core import attempts, retries
from providers import base
from providers import fcm as fcm_module
from providers.base import Message, Outcome, Push
from tests.support.alarms import every
from wire.notification import Content

MESSAGE = Message("0" * 32, Content("title", "body"), "/app/")


@pytest.fixture
def service(every_provider):
    return every_provider


def device(owner, kind, phone):
    assert owner.post("/devices", {"kind": kind, "token": phone.token}).status_code == 201
    return phone


def test_a_failing_oauth_token_request_is_made_once_and_apns_still_gets_its_push(owner, apns, fcm):
    iphone = device(owner, "apns", apns.phone())
    for _ in range(3):
        device(owner, "fcm", fcm.phone())
    for number, answer in enumerate([(500, ""), (400, "invalid_grant")], 1):
        fcm.oauth_then(*answer)
        assert owner.send().json["notification"]["status"] == "delivered"
        assert (len(iphone.messages), fcm.oauth_calls) == (number, number)


def test_an_invalid_lifetime_of_an_oauth_token_does_not_stop_pushes(service, owner, fcm, monkeypatch):
    phone = device(owner, "fcm", fcm.phone())
    for number, expires_in in enumerate([10**12, -5, 0, "abc", [1], None, 1e300], 1):
        push.configure(service.settings, lambda: "")  # as a process that has no token yet
        told = {"expires_in": expires_in}
        monkeypatch.setattr(fcm_module, "parsed", lambda reply, told=told: base.parsed(reply) | told)
        assert [owner.send().json["notification"]["status"] for _ in range(2)] == ["delivered"] * 2
        assert (len(phone.messages), fcm.oauth_calls) == (2 * number, number), expires_in


def test_nothing_is_sent_when_no_time_is_left_for_an_answer(service, apns, moved_clock, monkeypatch):
    phone = apns.phone()
    request = push.provider_of("apns").request

    def slow(one, left_s):
        moved_clock.monotonic += 4.0
        return request(one, left_s)

    monkeypatch.setattr(push.provider_of("apns"), "request", slow)
    (answer,) = push.send([Push("apns", phone.token, MESSAGE, "a@example.org")], 4.5)
    assert (answer.outcome, answer.was_tried, phone.pushes) == (Outcome.TRANSIENT, False, [])


def test_an_exception_while_pushing_counts_as_an_attempt_and_fails_after_a_day(
    owner, service, apns, moved_clock, monkeypatch
):
    device(owner, "apns", apns.phone())
    monkeypatch.setattr(push, "send_all", lambda *_: 1 / 0)
    assert owner.send().json["notification"]["status"] == "pending"
    every(service, moved_clock, 23 * 3_600)
    assert owner.listed()[0]["status"] == "pending"
    every(service, moved_clock, 3_600, 2)
    assert owner.listed()[0]["status"] == "failed"


def test_retries_whose_outcome_cannot_be_recorded_are_due_again_when_their_leases_end(
    owner, service, apns, moved_clock, monkeypatch
):
    phone = apns.phone().then(503)
    device(owner, "apns", phone)
    assert owner.send().json["notification"]["status"] == "pending"
    with monkeypatch.context() as patched:
        patched.setattr(retries, "note_outcomes", lambda *_: 1 / 0)
        every(service, moved_clock, 31)
    assert owner.listed()[0]["status"] == "pending"
    every(service, moved_clock, attempts.LEASE_MS / 1000 + 1)
    assert owner.listed()[0]["status"] == "delivered"


def test_a_push_that_was_only_postponed_fails_after_a_day(owner, service, apns, moved_clock, monkeypatch):
    device(owner, "apns", apns.phone())
    left_alone = push.Answer(Outcome.TRANSIENT, "Left alone.", 30, was_tried=False)
    monkeypatch.setattr(push, "send", lambda pushes, _: [left_alone] * len(pushes))
    assert owner.send().json["notification"]["status"] == "pending"
    every(service, moved_clock, 86_400 + 60)
    assert owner.listed()[0]["status"] == "failed"


def test_postponing_a_device_postpones_all_its_due_pushes(owner, service, apns, moved_clock, monkeypatch):
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


def test_apns_gets_no_more_new_tokens_than_its_limit_however_often_it_reports_one_expired(owner, apns, moved_clock):
    phone = device(owner, "apns", apns.phone())
    for _ in range(4):
        phone.then(403, "ExpiredProviderToken").then(403, "ExpiredProviderToken")
        owner.send()
        moved_clock.advance(60)
    tokens = {pushed["authorization"] for pushed in phone.pushes}
    assert len(tokens) == 2


def test_a_connection_that_does_not_answer_in_time_is_not_used_again(owner, apns, monkeypatch):
    phone = device(owner, "apns", apns.phone())
    owner.send()
    before, push_within = apns.connections, push.send
    phone.then("hang")
    with monkeypatch.context() as patched:
        patched.setattr(push, "send", lambda pushes, _: push_within(pushes, 0.4))
        assert owner.send().json["notification"]["status"] == "pending"
    assert owner.send().json["notification"]["status"] == "delivered"
    assert apns.connections == before + 1


def test_the_number_of_remembered_unanswering_origins_is_limited(service):
    pauses = push.Pauses()
    for number in range(3 * push.MAX_KEPT_ORIGINS):
        pauses.note(f"https://{number}.example.com", {"token"}, has_answered=False)
    assert len(pauses.silent) == push.MAX_KEPT_ORIGINS
