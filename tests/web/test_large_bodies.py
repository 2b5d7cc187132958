"""Large bodies: few are parsed at a time, the others wait for a bounded time, and no parsed object is kept."""

import gc
import json
import sys
from contextlib import nullcontext

import pytest
from werkzeug.test import EnvironBuilder

from core import delivery, recent_requests
from core.turns import Turns
from models import Account, Alert
from tests.support.rows import each
from web import context, request_body
from wire import strict_json
from wire.errors import Refused

LARGE = {"padding": [{"marker": ["x" * 700]}] * 100}  # over 64 KB; in none of the fields that anybody knows
METRICS = "/api/webhooks/custom"
METRIC = {"metricId": "m", "metricName": "M", "value": 1}
CALL = {"name": "send_notification", "arguments": {"title": "t", "body": "b"}}
DOORS = {
    "event": lambda owner, hook, more: hook.post({"title": "t", **more}),
    "send": lambda owner, hook, more: owner.post("/notifications/send", {"title": "t", "body": "b", **more}),
    "key": lambda owner, hook, more: owner.post("/api-keys/generate", {"name": "n", **more}),
    "metrics": lambda owner, hook, more: owner.request(
        "POST", METRICS, {"projectId": "p", "metrics": [{**METRIC, **more}], **more}
    ),
    "assistant": lambda owner, hook, more: owner.request(
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**CALL, "_meta": more, **more}, **more},
        headers={"Accept": "application/json, text/event-stream"},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def few_objects_to_look_at():
    """Leave out what was there before these tests, when objects are counted: it takes long to look at.

    They are left out for good: `unfreeze` would let the collector look through them again in all tests that follow.
    """
    gc.freeze()


@pytest.fixture
def turns(monkeypatch):
    """The turns at parsing a large body; one, for which nobody may wait."""
    turns = Turns(1, {"all": 0}, 0, request_body.large_bodies.refuse)
    monkeypatch.setattr(request_body, "large_bodies", turns)
    return turns


def parsed_objects():
    """How many of the objects within LARGE there are."""
    gc.collect()
    return sum(isinstance(one, dict) and one.keys() == {"marker"} for one in gc.get_objects())


every_door = each("door", DOORS)


@every_door
def test_a_large_body_that_finds_no_place_is_429_and_a_small_one_needs_none(owner, hook, turns, door):
    assert len(json.dumps(LARGE)) > request_body.LARGE_BYTES
    with turns.turn("all"):
        answer = DOORS[door](owner, hook, LARGE)
        assert DOORS[door](owner, hook, {}).status_code in (200, 201)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "60")
    assert answer.json["error"] == "Rate limit exceeded"


@every_door
def test_large_bodies_queue_by_account_so_that_one_account_leaves_places_for_others(
    owner, hook, turns, monkeypatch, door
):
    asked = []
    monkeypatch.setattr(turns, "turn", lambda queue, who: nullcontext(asked.append(who)))
    DOORS[door](owner, hook, LARGE)
    assert asked == [str(Account.get().seq)]
    assert request_body.MAX_LARGE_OF_ONE < request_body.MAX_LARGE_WAITING


def test_a_multipart_form_takes_a_turn_however_small_since_its_parts_take_long_to_parse(service, hook, turns):
    with turns.turn("all"):
        answer = service.client.post(f"/p/{hook.code}", data={"a": "b"}, content_type="multipart/form-data")
    assert answer.status_code == 429


def test_a_large_body_gives_its_place_back_taken_or_refused(owner, hook, turns):
    for door in (*DOORS, "event"):
        broken = owner.service.client.post(
            f"/p/{hook.code}", data=json.dumps(LARGE)[:-1], headers={"Content-Type": "application/json"}
        )
        assert broken.status_code == 400, door
        assert DOORS[door](owner, hook, LARGE).status_code in (200, 201), door


@each("door, verb", [("event", "deliver_event"), ("send", "deliver"), ("assistant", "deliver")])
def test_nothing_parsed_is_left_and_no_place_is_held_while_a_notification_is_delivered(
    owner, hook, turns, monkeypatch, door, verb
):
    seen, deliver = [], getattr(delivery, verb)

    def watched(*args, **more):
        seen.append((turns.free, parsed_objects()))
        return deliver(*args, **more)

    before = parsed_objects()
    with monkeypatch.context() as patch:
        patch.setattr(delivery, verb, watched)
        assert DOORS[door](owner, hook, LARGE).status_code == 200
    assert seen == [(1, before)]


def test_a_refusal_holds_nothing_that_was_parsed(turns, service):
    before = parsed_objects()
    begun = context.begin(EnvironBuilder(data=json.dumps(LARGE)).get_environ(), service.settings)
    with pytest.raises(Refused) as caught:
        request_body.read_object(refuse)
    context.end(begun)
    assert caught.value.message == "wrong" and parsed_objects() == before


def refuse(sent):
    try:
        raise Refused(400, "inner")
    except Refused:
        raise Refused(400, "wrong") from None


def test_the_owner_is_told_why_an_event_was_refused(owner, hook, turns, service):
    with turns.turn("all"):
        hook.post(LARGE)
    (seen,) = recent_requests.of_alert(Alert.get().seq)
    assert (seen.status, seen.words) == (429, "too many large requests at once")


@each("number", ["0.1", "1", "1e5", "-0.0", "12345678901234567890"])
@each("first", ["0", "-0"])
def test_parsing_many_numbers_calls_no_python_function_for_each(number, first):
    def calls(count):
        counted = 0

        def count_call(frame, event, _):
            nonlocal counted
            counted += event == "call"

        raw = f'{{"x": [{",".join([first, *[number] * count])}]}}'.encode()
        sys.setprofile(count_call)
        try:
            strict_json.parse_event(raw)
        finally:
            sys.setprofile(None)
        return counted

    assert calls(10_000) == calls(10)
