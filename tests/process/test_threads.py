"""The threads that serve connections: there is always one that waits for the next, and each ends when it is told."""

import logging
import math
import os
import socket
import threading
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from process import gunicorn_worker
from process.connections import Connection
from process.gunicorn_worker import KEPT, ThreadedWorker
from process.poller import Poller
from tests.support.server import PATIENCE_S, wait_until

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def desk():
    """A worker of three threads at most and its clients; while `held` is not set, each answer keeps its thread."""
    worker = ThreadedWorker(1, os.getppid(), [], None, 30, Config(), logging.getLogger())
    worker.cfg.set("threads", 3)
    worker.cfg.__dict__.update(threads=3)
    worker.poller, worker.queue_pipe, worker.max_bytes = Poller(), os.pipe(), 1_000_000
    worker.poller.watch(worker.queue_pipe[0])
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
        worker._await(connection, KEPT, math.inf)
    worker._start_thread()
    yield SimpleNamespace(worker=worker, held=held, begun=begun, clients=[theirs for _, theirs in pairs])
    held.set()
    worker.is_over = True
    os.write(worker.queue_pipe[1], b"\0")
    wait_until(lambda: not worker.threads)
    for pair in pairs:
        pair[1].close()
    for connection in worker.connections:
        connection.close()
    worker.tmp.close()


def make_way_in_each_request(desk):
    """Let each request say that its thread is about to wait."""
    answers = desk.worker.wsgi

    def waits(environ, start):
        desk.worker.make_way()
        return answers(environ, start)

    waits.takes_long = answers.takes_long
    desk.worker.wsgi = waits


def test_a_request_starts_no_thread_where_one_waits(desk):
    desk.worker.cfg.__dict__.update(threads=200)
    desk.held.set()
    for _ in range(200):
        desk.clients[0].sendall(REQUEST)
        assert desk.clients[0].recv(1_000).endswith(b"ok")
    assert 2 <= len(desk.worker.threads) < 20


def test_while_threads_are_held_up_others_serve_and_never_more_than_allowed(desk):
    for client in desk.clients:
        client.sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 3)
    assert len(desk.worker.threads) == 3 and not desk.worker.idle
    desk.worker._start_thread()
    assert len(desk.worker.threads) == 3
    desk.held.set()
    assert all(client.recv(1_000).endswith(b"ok") for client in desk.clients)
    wait_until(lambda: len(desk.worker.idle) == 3)
    assert len(desk.begun) == 5


def test_a_thread_that_a_fault_ends_leaves_its_place_to_another(desk, monkeypatch):
    ended = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    desk.held.set()

    def failing(fd):
        raise MemoryError

    desk.worker._work = failing
    for number in range(1, 4):
        desk.clients[number].sendall(REQUEST)
        wait_until(lambda: len(ended) == number)  # noqa: B023
    del desk.worker._work
    desk.clients[0].sendall(REQUEST)
    assert desk.clients[0].recv(1_000).endswith(b"ok")
    assert len(desk.worker.threads) <= 3


def test_many_that_start_a_thread_at_once_start_one(desk):
    wait_until(lambda: desk.worker.threads)
    desk.worker.idle.clear()
    callers = [threading.Thread(target=desk.worker._start_thread) for _ in range(50)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE_S)
    assert len(desk.worker.threads) == 2
    desk.worker.idle.append(None)  # for the first one


def test_a_system_that_allows_no_more_threads_leaves_the_worker_as_it_is(desk, monkeypatch):
    wait_until(lambda: desk.worker.threads)
    desk.worker.idle.clear()

    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    desk.worker._start_thread()
    assert len(desk.worker.threads) == 1 and desk.worker.idle == []
    desk.worker.idle.append(None)


def test_of_requests_that_take_long_two_are_served_at_once_beside_others(desk):
    desk.worker.cfg.__dict__.update(threads=20)
    desk.worker.wsgi.takes_long = lambda method, path: path == "/long"
    for client in desk.clients[:4]:
        client.sendall(REQUEST.replace(b"/ ", b"/long "))
    wait_until(lambda: len(desk.begun) == 2 and sum(map(len, desk.worker.long.waiting.values())) == 2)
    desk.clients[4].sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 3)
    desk.held.set()
    assert all(client.recv(1_000).endswith(b"ok") for client in desk.clients)
    wait_until(lambda: not desk.worker.long.running)


def test_a_long_request_before_which_enough_others_wait_is_left_to_the_application_to_refuse(desk, monkeypatch):
    seen = []

    def application(environ, start):
        seen.append(environ["pocketbell.is_crowded"])
        start("503 Service Unavailable", [("Content-Length", "2")])
        return [b"no"]

    application.takes_long = lambda method, path: True
    desk.worker.wsgi = application
    monkeypatch.setattr(desk.worker.long, "is_crowded", lambda connection: not seen)
    monkeypatch.setattr(desk.worker.long, "begin", lambda connection: bool(seen))
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


def test_only_so_many_threads_run_at_once_beside_those_that_wait(desk, monkeypatch):
    monkeypatch.setattr(gunicorn_worker, "MAX_RUNNING", 2)
    desk.worker.cfg.__dict__.update(threads=20)
    for client in desk.clients[:3]:
        client.sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 2)
    desk.worker._start_thread()
    assert len(desk.worker.threads) == 2


def test_a_thread_that_waits_in_a_request_counts_again_when_it_is_back(desk, monkeypatch):
    monkeypatch.setattr(gunicorn_worker, "MAX_RUNNING", 1)
    desk.worker.cfg.__dict__.update(threads=20)
    make_way_in_each_request(desk)
    for client in desk.clients[:3]:
        client.sendall(REQUEST)
    wait_until(lambda: len(desk.begun) == 3)
    desk.held.set()
    wait_until(lambda: len(desk.worker.idle) == len(desk.worker.threads))
    assert not any(desk.worker.threads.values())


def test_other_threads_than_the_workers_do_not_add_to_them(desk):
    desk.worker.make_way()
    assert threading.get_ident() not in desk.worker.threads
