"""Requests that take long: two at once, and clients take turns."""

import pytest

from process import turns as module
from process.turns import LongTurns


@pytest.fixture
def turns():
    """The turns; `admitted` has the connections whose turn has come after a wait."""
    admitted = []
    turns = LongTurns(admitted.append)
    turns.admitted = admitted
    return turns


class Asked:
    """A connection whose request takes long."""

    def __init__(self, client):
        self.client = client


def of(client, number):
    return [Asked(client) for _ in range(number)]


def test_two_long_requests_run_at_once_and_others_follow_in_order(turns):
    first, second, third, fourth = of("a", 4)
    assert [turns.begin(one) for one in (first, second, third, fourth)] == [True, True, False, False]
    assert turns.begin(first)  # it has its turn still
    turns.end(second)
    assert turns.admitted == [third] and turns.begin(third)
    turns.end(second)
    assert turns.admitted == [third]
    for one in (first, third, fourth):
        turns.end(one)
    assert turns.admitted == [third, fourth] and not turns.running and not turns.waiting.number


def test_clients_take_turns(turns):
    first, second, *crowd = of("a", 6)
    others = of("b", 2)
    assert turns.begin(first) and turns.begin(second)
    begun = [turns.begin(one) for one in (*crowd, *others)]
    assert not any(begun)
    turns.end(first)
    turns.end(second)
    for one in turns.admitted:
        turns.end(one)
    assert turns.admitted == [crowd[0], others[0], crowd[1], others[1], crowd[2], crowd[3]]


def test_waiting_requests_are_limited_per_client_and_in_total(turns, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING_OF_CLIENT", 2)
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    for one in of("a", 4):
        assert not turns.is_crowded(Asked("a"))
        turns.begin(one)
    assert not turns.is_crowded(next(iter(turns.running)))
    assert turns.is_crowded(Asked("a")) and not turns.is_crowded(Asked("b"))
    turns.begin(*of("b", 1))
    assert turns.is_crowded(Asked("b")) and turns.is_crowded(Asked("c"))
