"""The threads that serve connections: as few as possible are awake, nobody starves, and each ends when it is told."""

import threading
from collections import deque
from queue import SimpleQueue

import pytest

from process import clock, crew
from process.crew import Crew
from tests.support.server import PATIENCE_S, wait_until


class Desk:
    """Finds work for a crew, and does it: a piece that is an event waits until that is set."""

    def __init__(self, number):
        self.found, self.coming, self.begun = SimpleQueue(), SimpleQueue(), deque()
        self.number = number
        self.crew = Crew(lambda: self.number, self.find, self.work)

    def find(self, waits):
        if not waits and self.coming.empty():
            return []
        return self.coming.get(timeout=PATIENCE_S)

    def work(self, one):
        self.begun.append((one, threading.get_ident()))
        if isinstance(one, threading.Event):
            assert one.wait(PATIENCE_S)

    def has_begun(self, number):
        wait_until(lambda: len(self.begun) >= number)
        return len(self.begun) == number

    @property
    def alive(self):
        return [thread for thread in self.crew.threads if thread.is_alive()]


@pytest.fixture
def desk():
    desk = Desk(3)
    desk.crew.wake_one()
    yield desk
    desk.crew.end()
    desk.coming.put([])
    for thread in desk.crew.threads.copy():
        thread.join(PATIENCE_S)
    assert not desk.alive


def test_one_thread_does_all_that_does_not_hold_it_up(desk):
    for _ in range(20):
        desk.coming.put([1, 2, 3])
        desk.crew.watch(0)
    assert desk.has_begun(60) and len({ident for _, ident in desk.begun}) == 1
    assert [one for one, _ in desk.begun] == [1, 2, 3] * 20


def test_while_threads_are_held_up_others_take_the_work_and_never_more_than_allowed(desk):
    held = [threading.Event() for _ in range(4)]
    desk.coming.put([*held, "after"])
    assert desk.has_begun(1)
    desk.crew.watch(0)
    assert desk.has_begun(1)
    desk.crew.watch(0)  # and none was taken since the last look
    assert desk.has_begun(3)
    desk.crew.watch(0)
    desk.crew.watch(0)
    assert len(desk.alive) == 3 and desk.has_begun(3)
    for event in held:
        event.set()
    assert desk.has_begun(5)


def test_what_comes_while_all_that_are_awake_work_is_found_by_another(desk):
    held = threading.Event()
    desk.coming.put([held])
    assert desk.has_begun(1)
    desk.crew.watch(0)
    desk.crew.watch(0)
    desk.coming.put(["next"])
    assert desk.has_begun(2)
    held.set()


def test_while_a_thread_that_says_it_takes_long_works_another_goes_on_without_a_look(desk):
    held = threading.Event()
    work = desk.crew.work

    def long(one):
        if one is held:
            desk.crew.step_aside()
        work(one)

    desk.crew.work = long
    desk.coming.put([held, "next"])
    assert desk.has_begun(2) and len(desk.crew.threads) == 2
    desk.crew.step_aside()  # somebody waits for work
    assert len(desk.crew.threads) == 2
    held.set()


def test_how_many_threads_there_may_be_can_change(desk):
    held = threading.Event()
    desk.number = 1
    desk.coming.put([held, "next"])
    assert desk.has_begun(1)
    desk.crew.wake_one()
    assert len(desk.crew.threads) == 1 and desk.has_begun(1)
    desk.number = 2
    desk.crew.wake_one()
    assert desk.has_begun(2) and len(desk.crew.threads) == 2
    held.set()


def test_many_that_wake_one_at_once_start_no_more_threads_than_allowed(desk):
    callers = [threading.Thread(target=desk.crew.wake_one) for _ in range(50)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE_S)
    assert len(desk.crew.threads) <= 3


def test_looks_that_come_late_are_farther_apart(monkeypatch):
    times = iter([0.0, 0.001, 1.0, 1.009, 2.0, 7.0, 8.0, 8.05])
    monkeypatch.setattr(clock, "monotonic_s", lambda: next(times))
    crew = Crew(lambda: 0, list, bool)
    seen = []
    for _ in range(4):
        crew.ring()  # so that no pause takes time
        crew.watch(1)
        seen.append(round(crew.tick_s, 3))
    assert seen == [0.001, 0.032, 0.05, 0.001]


def test_threads_that_have_nothing_to_do_rest_and_are_woken_before_new_ones_start(desk):
    for number in range(1, 6):
        held = threading.Event()
        desk.coming.put([held])
        assert desk.has_begun(number)
        desk.crew.watch(0)
        desk.crew.watch(0)
        held.set()
        wait_until(lambda: desk.crew.resting)
    assert len(desk.crew.threads) == 2


def test_work_that_is_put_back_comes_after_all_that_is_ready(desk):
    again = []

    def work(one):
        if one == "again" and len(again) < 1_000:
            again.append(one)
            desk.crew.put(one)
            if len(again) == 500:
                desk.coming.put(["other"])
        desk.begun.append((one, len(again)))

    desk.crew.work = work
    desk.coming.put(["again"])
    assert desk.has_begun(1_002)
    assert ("other", 500) in desk.begun or ("other", 501) in desk.begun


def test_work_that_is_brought_is_done_although_all_threads_rest_or_wait(desk):
    wait_until(lambda: desk.crew.waits.locked())
    desk.crew.bring("brought")
    assert desk.has_begun(1)


def test_it_is_looked_at_rarely_while_there_is_nothing_to_do_and_often_once_there_is(desk):
    wait_until(lambda: desk.crew.waits.locked())
    desk.crew.watch(0)
    desk.crew.watch(0)
    assert not desk.crew.is_watched
    desk.coming.put([1])
    desk.crew.watch(PATIENCE_S)  # ends as soon as the piece is taken
    assert desk.has_begun(1) and desk.crew.is_watched


def test_a_thread_that_a_fault_ends_leaves_its_place_to_another(monkeypatch):
    faults, ended = [OSError] * 3, []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    desk = Desk(1)
    find = desk.crew.find

    def failing(waits):
        if faults:
            raise faults.pop()
        return find(waits)

    desk.crew.find = failing
    for number in range(1, 4):
        desk.crew.wake_one()
        wait_until(lambda: len(ended) == number and not desk.crew.threads)  # noqa: B023
    desk.coming.put(["work"])
    desk.crew.wake_one()
    assert desk.has_begun(1)
    desk.crew.end()
    desk.coming.put([])


class Long(threading.Event):
    """A piece that takes long, until it is set; it may wait for something in between."""

    waits = False


def test_of_the_pieces_that_take_long_two_are_done_at_once_beside_others(desk):
    desk.number, done, work = 9, [], desk.work

    def begun(one):
        if isinstance(one, Long):
            if not desk.crew.may_begin(one, "a client"):
                return
            if one.waits:
                desk.crew.step_aside()
        work(one)
        done.append(one)

    desk.crew.work = begun
    pieces = [Long() for _ in range(5)]
    pieces[4].waits = True
    desk.coming.put(pieces)

    def run():
        return [one for one, _ in desk.begun if isinstance(one, Long)]

    def begins(number):
        desk.crew.watch(0)
        return len(run()) >= number

    wait_until(lambda: begins(2))
    desk.coming.put(["short"])
    wait_until(lambda: desk.crew.watch(0) or "short" in done)
    assert run() == pieces[:2]
    pieces[0].set()
    wait_until(lambda: begins(3))
    assert run() == pieces[:3]
    pieces[1].set()
    pieces[2].set()
    wait_until(lambda: begins(5))
    more = [Long(), Long()]
    desk.coming.put(more)
    wait_until(lambda: begins(6))  # beside the one that waits
    assert run()[5:] == more[:1]
    for one in [*pieces, *more]:
        one.set()
    wait_until(lambda: begins(7) and not desk.crew.long)


def test_the_clients_whose_pieces_take_long_take_turns_and_none_may_fill_the_queue(desk, monkeypatch):
    monkeypatch.setattr(crew, "MAX_LONG_WAITING", 5)
    monkeypatch.setattr(crew, "MAX_LONG_WAITING_OF_ONE", 3)
    one = Crew(lambda: 1, desk.find, desk.work)
    asked = ["a1", "a2", "a3", "a4", "a5", "b1", "c1"]
    assert [one.may_begin(name, name[0]) for name in asked] == [True, True, *[False] * 5]
    assert [one.is_crowded(name) for name in "abd"] == [True, True, True]
    one.long_waiting["c"].clear()
    assert [one.is_crowded(name) for name in "abd"] == [True, False, False]
    one.long_waiting["c"].append("c1")
    order = []
    for _ in range(5):
        one._end_long(next(iter(one.long)))  # as its thread does
        order += one.ready
        one.ready.clear()
    assert order == ["a3", "b1", "c1", "a4", "a5"] and not one.long_waiting
