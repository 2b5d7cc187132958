"""POST /api/v1/notifications/{id}/acknowledge, and what a notification answers of its repeats."""

from unittest.mock import ANY

import pytest

from tests.support.alarms import acknowledge, bodies, detail, every, ring
from tests.support.rows import each


@pytest.fixture
def rings(owner, browser):
    return ring(owner, every_s=90, for_s=900)


def told(notification):
    """What is answered of the repeats."""
    return {name: notification.get(name) for name in ("acknowledge", "acknowledgedAt", "repeats")}


def test_the_answer_has_the_state_of_the_alarm(service, owner, rings, moved_clock):
    asked = {"everyS": 90, "forS": 900}
    waiting = {"acknowledge": {**asked, "state": "waiting"}, "acknowledgedAt": None, "repeats": None}
    assert told(detail(owner, rings)) == waiting
    assert owner.listed()[0]["acknowledge"] == asked  # a list has what was sent
    every(service, moved_clock, 90)
    assert told(detail(owner, rings)) == {**waiting, "repeats": 1}
    at = moved_clock.ms
    answer = acknowledge(owner, rings)
    assert told(answer) == {"acknowledge": {**asked, "state": "acknowledged"}, "acknowledgedAt": at, "repeats": 1}
    assert answer == detail(owner, rings)


@each("data", [None, b"", b"{}", b'{"x": 1}', b"not JSON", b"\xff"])
def test_the_body_of_an_acknowledgement_is_ignored(owner, rings, data):
    assert owner.post(f"/notifications/{rings}/acknowledge", data=data).status_code == 200


def test_a_notification_without_repeats_is_acknowledged_too_and_the_first_time_is_kept(owner, browser, moved_clock):
    sent = owner.send().json["notification"]
    first = acknowledge(owner, sent["id"])
    assert first == {**sent, "acknowledgedAt": moved_clock.ms, "deliveries": ANY}
    moved_clock.advance(5)
    assert acknowledge(owner, sent["id"]) == detail(owner, sent["id"]) == first


def test_its_devices_show_that_a_notification_without_repeats_was_acknowledged(service, owner, browser):
    acknowledge(owner, owner.send().json["notification"]["id"])
    service.work()
    assert bodies(browser)[1:] == ["Acknowledged."]
    service.work()
    assert len(browser.messages) == 2
