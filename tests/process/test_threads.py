"""The threads that serve connections: one runs at a time, unless it waits or takes long, and each ends when told."""

import logging
import math
import os
import socket
import threading
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from process import baton as baton_module
from process.baton import Baton
from process.connections import Connection
from process.gunicorn_worker import IDLE, UNSENT, ThreadedWorker
from process.poller import Poller
from tests.support.server import PATIENCE_S, wait_until

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def desk():
    """A worker of three threads at most and its clients; while `held` is not set, each answer keeps its thread."""
    worker = ThreadedWorker(1, os.getppid(), [], None, 30, Config(), logging.getLogger())
    worker.cfg.set("threads", 3)
    worker.cfg.__dict__.update(threads=3)
    worker.poller, worker.wakes, worker.PIPE, worker.max_bytes = Poller(), os.pipe(), os.pipe(), 1_000_000
    worker.poller.watch(worker.wakes[0])
    worker.baton = Baton(worker.poller.look, worker._wake, worker._start_thread)
    worker.log = SimpleNamespace(access=lambda *_: None)
    held, begun = threading.Event(), []

    def application(environ, start):
        begun.append(threading.get_ident())
        assert held.wait(PATIENCE_S)
        start("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    application.takes_long = lambda method, path: False
    worker.wsgi = application
    pairs = [socket.socketpair() for _ in range(5)]
    for ours, _ in pairs:
        connection = Connection(ours)
        worker.connections.add(connection)
        connection.talk = worker._talk(connection)
        worker._await(connection, IDLE, math.inf)
    worker.baton.take_away()
    yield SimpleNamespace(worker=worker, held=held, begun=begun, clients=[theirs for _, theirs in pairs])
    held.set()
    worker.is_over = True
    worker._wake()
    wait_until(lambda: not worker.threads)
    for pair in pairs:
        pair[1].close()
    for connection in worker.connections:
        connection.close()
    worker.tmp.close()


def make_way_in_each_request(desk):
    """Let each request say that its thread is about to wait."""
    call_in_each_request(desk, lambda path: desk.worker.make_way())


def call_in_each_request(desk, call):
    """Let each request call this, with its path, before it is answered."""
    answers = desk.worker.wsgi

    def waits(environ, start):
        call(environ["PATH_INFO"])
        return answers(environ, start)

    waits.takes_long = answers.takes_long
    desk.worker.wsgi = waits


def look_after(desk):
    """Do the main thread's work, which is to look often whether a thread keeps the baton."""
    while not desk.held.is_set():
        desk.worker._look_after(0.001)


def test_requests_one_after_another_need_one_thread(desk):
    desk.worker.cfg.__dict__.update(threads=200)
    desk.held.set()
    for _ in range(200):
        desk.clients[0].sendall(REQUEST)
        assert desk.clients[0].recv(1_000).endswith(b"ok")
    assert desk.worker.threads == 1


def test_a_thread_that_keeps_the_baton_loses_it_and_never_more_threads_than_allowed_serve(desk):
    desk.clients[0].sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 1)
    for client in desk.clients[1:]:
        client.sendall(REQUEST)
    watch = threading.Thread(target=look_after, args=(desk,))
    watch.start()
    wait_until(lambda: len(desk.begun) == 3 and not desk.worker.baton.holder)
    assert desk.worker.threads == 3
    desk.held.set()
    assert all(client.recv(1_000).endswith(b"ok") for client in desk.clients)
    watch.join()
    assert len(desk.begun) == 5


def test_a_thread_that_waits_for_work_keeps_the_baton(desk):
    wait_until(lambda: desk.worker.baton.is_looking)
    for _ in range(3):
        desk.worker.baton.take_away()
    assert desk.worker.threads == 1


def test_a_thread_that_waits_for_work_keeps_the_baton_when_another_comes_to_rest(desk):
    make_way_in_each_request(desk)
    baton = desk.worker.baton
    desk.clients[0].sendall(REQUEST)
    wait_until(lambda: desk.begun and baton.is_looking)
    waits_for_work = baton.holder
    assert waits_for_work != desk.begun[0]
    desk.held.set()
    wait_until(lambda: baton.resting)
    for _ in range(3):
        baton.take_away()
    assert (baton.holder, baton.resting) == (waits_for_work, desk.begun)


def test_a_thread_that_goes_from_one_request_to_the_next_keeps_the_baton():
    baton = Baton(lambda waits: range(1, 9), lambda: None, lambda: False)
    for number in range(1, 9):
        assert baton.take() == number
        baton.take_away()
        assert baton.holder == threading.get_ident()
    baton.take_away()
    assert not baton.holder


def test_a_thread_that_a_fault_ends_leaves_its_place_to_another(desk, monkeypatch):
    ended = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    desk.held.set()

    def failing(piece):
        raise MemoryError

    desk.worker._work = failing
    for number in range(1, 4):
        desk.clients[number].sendall(REQUEST)
        wait_until(lambda: len(ended) == number)  # noqa: B023
    del desk.worker._work
    desk.clients[0].sendall(REQUEST)
    assert desk.clients[0].recv(1_000).endswith(b"ok")
    assert desk.worker.threads == 1


def test_where_the_system_allows_no_more_threads_the_next_one_without_work_goes_on(desk, monkeypatch):
    make_way_in_each_request(desk)
    wait_until(lambda: desk.worker.baton.is_looking)

    def refused(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        for client in desk.clients[:2]:
            client.sendall(REQUEST)
        wait_until(lambda: desk.begun and not desk.worker.baton.holder)
    assert desk.worker.threads == 1
    desk.held.set()
    assert all(client.recv(1_000).endswith(b"ok") for client in desk.clients[:2])


@pytest.mark.parametrize(
    ("most", "found", "expected"),
    [
        (24, [(1, 2, 3), (4,)], [1, 2, 3, -1, -2, -3, 4, -4]),
        (2, [(1, 2, 3, 4)], [1, 2, 3, -1, 4, -2, -3, -4]),
    ],
    ids=["all", "as many as may"],
)
def test_what_is_ready_goes_before_a_thread_that_lets_others_go_first(monkeypatch, most, found, expected):
    """So the writes of all of them share a commit."""
    monkeypatch.setattr(baton_module, "MAX_BEFORE", most)
    found, order, over = iter(found), [], threading.Event()
    threads = []

    def look(waits):
        for numbers in found:
            for number in numbers:
                baton.put(Numbered(number))
            return ()
        order.append("waits")
        assert over.wait(PATIENCE_S)
        return (0,)

    def run():
        while number := baton.take():
            order.append(number)
            baton.let_others()
            order.append(-number)
        baton.pass_on()  # to the next, which ends, too

    def start():
        if not over.is_set():
            threads.append(threading.Thread(target=run))
            threads[-1].start()
        return not over.is_set()

    baton = Baton(look, lambda: None, start)
    baton.take_away()
    wait_until(lambda: "waits" in order)
    assert order == [*expected, "waits"] and len(threads) == 3
    over.set()
    for thread in threads:
        thread.join(PATIENCE_S)


class Numbered(int):
    """A request, with its client."""

    sender = client = "a"


def test_new_requests_are_looked_for_after_some_however_many_wait_by_the_thread_with_the_baton(monkeypatch):
    monkeypatch.setattr(baton_module, "LOOKED_EVERY", 2)
    looked = []

    def look(waits):
        for _ in range(2):
            baton.take_away()
        looked.append((waits, bool(baton.holder)))
        return []

    baton = Baton(look, lambda: None, lambda: False)
    requests = [Numbered(number) for number in range(5)]
    for one in requests:
        baton.put(one)
    assert [baton.take() for _ in requests] == requests and looked == [(False, True)] * 3


def test_a_request_that_is_put_wakes_the_thread_that_waits_for_work(desk):
    wait_until(lambda: desk.worker.baton.is_looking)
    ours = next(one for one in desk.worker.waiting.values() if desk.worker._takes(one))
    desk.worker.baton.put(ours)
    wait_until(lambda: ours in desk.worker.waiting.values())


def test_of_requests_that_take_long_two_are_served_at_once_beside_others(desk):
    desk.worker.cfg.__dict__.update(threads=20)
    desk.worker.wsgi.takes_long = lambda method, path: path == "/long"
    for client in desk.clients[:4]:
        client.sendall(REQUEST.replace(b"/ ", b"/long "))
    wait_until(lambda: len(desk.begun) == 2 and desk.worker.baton.waiting.number == 2)
    desk.clients[4].sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 3)
    desk.held.set()
    assert all(client.recv(1_000).endswith(b"ok") for client in desk.clients)
    wait_until(lambda: not desk.worker.baton.long)


def test_a_download_that_goes_on_after_a_pause_waits_for_its_turn(desk):
    answers = desk.worker.wsgi

    def application(environ, start):
        if environ["PATH_INFO"] != "/download":
            return answers(environ, start)
        start("200 OK", [])
        return (b"x" * 20_000 for _ in range(100) if desk.worker.baton.holder != threading.get_ident())

    application.takes_long = lambda method, path: True
    desk.worker.wsgi = application
    desk.clients[0].sendall(REQUEST.replace(b"/ ", b"/download "))
    wait_until(lambda: UNSENT in [one.state for one in desk.worker.connections])
    for client in desk.clients[1:3]:
        client.sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 2)
    received = desk.clients[0].recv(2_000_000)
    wait_until(lambda: desk.worker.baton.waiting.number)
    desk.held.set()
    while not received.endswith(b"\r\n0\r\n\r\n"):
        received += desk.clients[0].recv(2_000_000)
    assert received.count(b"x") == 2_000_000


def test_a_long_request_before_which_enough_others_wait_is_left_to_the_application_to_refuse(desk, monkeypatch):
    seen = []

    def application(environ, start):
        seen.append(environ["pocketbell.is_crowded"])
        start("503 Service Unavailable", [("Content-Length", "2")])
        return [b"no"]

    application.takes_long = lambda method, path: True
    desk.worker.wsgi = application
    monkeypatch.setattr(desk.worker.baton, "is_crowded", lambda connection: not seen)
    monkeypatch.setattr(desk.worker.baton, "begin_long", lambda connection: bool(seen))
    desk.clients[0].settimeout(PATIENCE_S)
    for _ in range(2):
        desk.clients[0].sendall(REQUEST)
        assert desk.clients[0].recv(1_000).endswith(b"no")
    assert seen == [True, False]


def test_a_thread_that_is_about_to_wait_lets_another_long_request_begin(desk):
    desk.worker.cfg.__dict__.update(threads=20)
    desk.worker.wsgi.takes_long = lambda method, path: True
    make_way_in_each_request(desk)
    for client in desk.clients:
        client.sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 5)


def test_threads_that_wait_leave_the_baton_to_others(desk):
    desk.worker.cfg.__dict__.update(threads=20)
    make_way_in_each_request(desk)
    for client in desk.clients:
        client.sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 5)
    desk.held.set()
    assert all(client.recv(1_000).endswith(b"ok") for client in desk.clients)
    wait_until(lambda: len(desk.worker.baton.resting) == desk.worker.threads - 1)


def test_some_threads_may_query_a_server_without_the_baton_and_those_that_wait_for_long_do_not_count(
    desk, monkeypatch
):
    desk.worker.cfg.__dict__.update(threads=20)
    monkeypatch.setattr(baton_module, "MAX_BESIDE", 1)
    baton = desk.worker.baton

    def query(path):
        baton.go_beside()
        if path == "/waits":
            desk.worker.make_way()

    call_in_each_request(desk, query)
    for client in desk.clients[:2]:
        client.sendall(REQUEST.replace(b"/ ", b"/waits "))
    wait_until(lambda: len(desk.begun) == 2)
    for client in desk.clients[2:]:
        client.sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 4)
    assert baton.holder == desk.begun[3]
    desk.held.set()
    assert all(client.recv(1_000).endswith(b"ok") for client in desk.clients)
    wait_until(lambda: not baton.beside)


def test_other_threads_than_the_workers_have_no_baton_to_pass_on(desk):
    wait_until(lambda: desk.worker.baton.is_looking)
    desk.worker.make_way()
    desk.worker.baton.let_others()
    assert desk.worker.threads == 1 and desk.worker.baton.is_looking
