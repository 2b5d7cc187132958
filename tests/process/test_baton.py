"""Requests that take long: two at once, and clients take turns."""

import pytest

from process import baton as module
from process.baton import Baton


@pytest.fixture
def baton():
    """The baton; `admitted` has the connections whose turn has come after a wait."""
    baton = Baton(lambda waits: (), lambda: None, lambda: False)
    baton.reported = baton.admitted = []  # done before all other requests
    return baton


class Asked:
    """A connection whose request takes long."""

    def __init__(self, client, sender="s"):
        self.client, self.sender = client, sender


def of(client, number):
    return [Asked(client) for _ in range(number)]


def test_two_long_requests_run_at_once_and_others_follow_in_order(baton):
    first, second, third, fourth = of("a", 4)
    assert [baton.begin_long(one) for one in (first, second, third, fourth)] == [True, True, False, False]
    baton.end_long(second)
    assert baton.admitted == [third]
    baton.end_long(second)
    assert baton.admitted == [third]
    for one in (first, third, fourth):
        baton.end_long(one)
    assert baton.admitted == [third, fourth] and not baton.long and not baton.waiting.number


@pytest.mark.parametrize("clients, sender", [("aaaa", "s"), ("abcd", "t")], ids=["of a sender", "of two senders"])
def test_clients_take_turns(baton, clients, sender):
    first, second = of("a", 2)
    crowd, others = [Asked(client) for client in clients], [Asked("b", sender) for _ in range(2)]
    assert baton.begin_long(first) and baton.begin_long(second)
    begun = [baton.begin_long(one) for one in (*crowd, *others)]
    assert not any(begun)
    baton.end_long(first)
    baton.end_long(second)
    for one in baton.admitted:
        baton.end_long(one)
    assert baton.admitted == [crowd[0], others[0], crowd[1], others[1], crowd[2], crowd[3]]


def test_waiting_requests_are_limited_per_client_and_in_total(baton, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING_OF_CLIENT", 2)
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    monkeypatch.setattr(module, "MAX_BEYOND", 1)
    for one in of("a", 4):
        assert not baton.is_crowded(Asked("a"))
        baton.begin_long(one)
    assert baton.is_crowded(Asked("a")) and not baton.is_crowded(Asked("b"))
    baton.begin_long(*of("b", 1))
    assert baton.is_crowded(Asked("b")) and baton.is_crowded(Asked("c")) and not baton.is_crowded(Asked("c", "t"))
    baton.begin_long(Asked("c", "t"))
    assert baton.is_crowded(Asked("c", "t"))
