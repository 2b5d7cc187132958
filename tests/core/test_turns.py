"""Turns: a few at once, the others in order; a crowd in one queue does not keep the other queues waiting."""

import threading

import pytest

from core.turns import Turns
from tests.support.server import PATIENCE_S, wait_until
from wire.errors import Refused


def refuse():
    return Refused(429, "Too many.")


class Crowd:
    """Threads that want a turn, which each keeps until `go_on`. `order` is the order in which they got it."""

    def __init__(self, turns):
        self.turns, self.order, self.refused, self.done, self.ends, self.threads = turns, [], [], [], {}, []

    def come(self, name, queue="all", who=""):
        """Start a thread, and wait until it has its turn, queues for it or is refused."""
        waiting = sum(map(len, self.turns.queues.values()))
        known = len(self.order) + len(self.refused)
        self.ends[name] = threading.Event()
        self.threads.append(threading.Thread(target=self._have, args=(name, queue, who)))
        self.threads[-1].start()
        wait_until(
            lambda: sum(map(len, self.turns.queues.values())) > waiting or len(self.order) + len(self.refused) > known
        )

    def _have(self, name, queue, who):
        try:
            with self.turns.turn(queue, who):
                self.order.append(name)
                assert self.ends[name].wait(PATIENCE_S)
            self.done.append(name)
        except Refused as refused:
            self.refused.append((name, refused.status, refused.message))

    def go_on(self, *names):
        """End these threads' turns one after the other, each when the turn before has been passed on."""
        for name in names:
            had, is_waited_for = len(self.order), any(self.turns.queues.values())
            self.ends[name].set()
            wait_until(lambda name=name: name in self.done)
            wait_until(lambda most=had + is_waited_for: len(self.order) == most)

    def end(self):
        for end in self.ends.values():
            end.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.fixture
def crowd_of():
    crowds = []

    def make(*args, **more):
        crowds.append(Crowd(Turns(*args, **more)))
        return crowds[-1]

    yield make
    for crowd in crowds:
        crowd.end()


def test_a_fixed_number_run_at_once_and_others_follow_in_order(crowd_of):
    crowd = crowd_of(2, {"all": 9}, PATIENCE_S, refuse)
    for name in "abcde":
        crowd.come(name)
    assert crowd.order == ["a", "b"]
    crowd.go_on("b", "a", "c", "d")
    assert crowd.order == ["a", "b", "c", "d", "e"]


def test_a_full_queue_refuses_at_once(crowd_of):
    crowd = crowd_of(1, {"all": 1}, PATIENCE_S, refuse)
    for name in "abc":
        crowd.come(name)
    assert (crowd.order, crowd.refused) == (["a"], [("c", 429, "Too many.")])
    assert crowd.turns.most_waiting == 1


def test_without_a_turn_in_time_a_waiter_is_refused(crowd_of):
    crowd = crowd_of(1, {"all": 5}, 0.01, refuse)
    crowd.come("a")
    crowd.come("b")
    wait_until(lambda: crowd.refused == [("b", 429, "Too many.")])
    assert not crowd.turns.queues["all"]
    crowd.go_on("a")
    crowd.come("c")
    assert crowd.order == ["a", "c"]


def test_a_turn_goes_to_the_queues_one_after_the_other(crowd_of):
    crowd = crowd_of(1, {"few": 5, "many": 9}, PATIENCE_S, refuse)
    crowd.come("first", "many")
    for name in ("m1", "m2", "m3", "m4"):
        crowd.come(name, "many")
    for name in ("f1", "f2"):
        crowd.come(name, "few")
    crowd.go_on("first", "f1", "m1", "f2", "m2", "m3")
    assert crowd.order == ["first", "f1", "m1", "f2", "m2", "m3", "m4"]


def test_one_client_cannot_fill_the_queue(crowd_of):
    crowd = crowd_of(1, {"all": 9}, PATIENCE_S, refuse, of_one=2)
    crowd.come("a", who="x")
    for name in ("b", "c", "d"):
        crowd.come(name, who="x")
    crowd.come("e", who="y")
    assert [name for name, *_ in crowd.refused] == ["d"]
    crowd.go_on("a", "b", "c")
    assert crowd.order == ["a", "b", "c", "e"]


def test_a_turn_ends_with_a_fault_too(crowd_of):
    turns = Turns(1, {"all": 0}, PATIENCE_S, refuse)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), turns.turn("all"):
            raise ZeroDivisionError


def test_a_turn_that_comes_just_after_the_wait_ended_is_kept(monkeypatch):
    turns = Turns(1, {"all": 1}, PATIENCE_S, refuse)
    first = turns.turn("all")
    first.__enter__()

    class Late(threading.Event):
        def wait(self, timeout=None):
            first.__exit__(None, None, None)
            return False

    monkeypatch.setattr(threading, "Event", Late)
    with turns.turn("all"):
        assert not turns.free
    assert turns.free == 1


class PassedOn:
    """A lock whose holder has taken a queue out of the others, and puts it behind them before it lets go."""

    def __init__(self, queues):
        self.queues, self.taken = queues, queues.pop("all")

    def __enter__(self):
        self.queues["all"] = self.taken

    def __exit__(self, *_):
        pass


def test_one_that_comes_while_a_turn_is_passed_on_finds_its_queue():
    turns = Turns(1, {"all": 1}, PATIENCE_S, refuse)
    turns.lock = PassedOn(turns.queues)
    with turns.turn("all"):
        assert turns.free == 0
