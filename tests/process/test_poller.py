"""Which sockets have something to read, on Linux and elsewhere."""

import socket

import pytest

from process.poller import Poller, Selector


@pytest.fixture(params=[Poller, Selector], ids=["as here", "as elsewhere"])
def poller(request):
    return request.param()


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_connection_is_reported_once_each_time_it_is_awaited(poller, ends):
    ours, theirs = ends
    poller.await_first(ours.fileno())
    assert poller.ready(False) == []
    theirs.send(b"x")
    assert (poller.ready(True), poller.ready(False)) == ([ours.fileno()], [])
    poller.await_next(ours.fileno())
    assert (poller.ready(True), poller.ready(False)) == ([ours.fileno()], [])
    ours.recv(1)
    poller.await_next(ours.fileno())
    assert poller.ready(False) == []
    theirs.close()
    assert poller.ready(True) == [ours.fileno()]


def test_what_is_watched_is_reported_until_it_is_forgotten(poller, ends):
    ours, theirs = ends
    poller.watch(ours.fileno())
    theirs.send(b"x")
    assert poller.ready(True) == poller.ready(True) == [ours.fileno()]
    poller.forget(ours.fileno())
    poller.forget(ours.fileno())
    assert poller.ready(False) == []
    poller.watch(ours.fileno())
    assert poller.ready(True) == [ours.fileno()]


def test_the_descriptor_of_a_closed_connection_can_be_anothers(poller):
    first, other = socket.socketpair()
    number = first.fileno()
    poller.await_first(number)
    first.close()
    with socket.socket() as listener, other:
        assert listener.fileno() == number
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        poller.watch(number)
        with socket.create_connection(listener.getsockname()):
            assert poller.ready(True) == [number]
