"""Which sockets have something to read or take more, on Linux and elsewhere."""

import socket

import pytest

from process.poller import MOST_AT_ONCE, WRITE, Poller, Selector


@pytest.fixture(params=[Poller, Selector], ids=["as here", "as elsewhere"])
def poller(request):
    return request.param()


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def other(poller):
    """The descriptor of a connection that something was sent to; it is reported once nothing else is."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        yield ours.fileno()


def test_a_connection_is_reported_once_each_time_it_is_watched(poller, ends, other):
    ours, theirs = ends
    poller.watch(ours.fileno())
    poller.watch(other)
    assert poller.look(True) == [other]
    theirs.send(b"x")
    assert poller.look(True) == [ours.fileno()]
    poller.watch(other)
    assert poller.look(True) == [other]
    poller.watch(ours.fileno())
    assert poller.look(True) == [ours.fileno()]
    ours.recv(1)
    poller.watch(ours.fileno())
    theirs.close()
    assert poller.look(True) == [ours.fileno()]


def test_a_connection_is_reported_when_it_takes_more(poller, ends, other):
    ours, theirs = ends
    ours.setblocking(False)
    written = 0
    while True:
        try:
            written += ours.send(b"x" * 100_000)
        except BlockingIOError:
            break
    poller.watch(ours.fileno(), WRITE)
    poller.watch(other)
    assert poller.look(True) == [other]
    while written:
        written -= len(theirs.recv(100_000))
    assert poller.look(True) == [ours.fileno()]


def test_several_connections_are_reported_together_and_some_at_a_time(poller):
    pairs = [socket.socketpair() for _ in range(MOST_AT_ONCE + 2)]
    for ours, theirs in pairs:
        poller.watch(ours.fileno())
        theirs.send(b"x")
    first = poller.look(True)
    assert len(first) == MOST_AT_ONCE
    assert sorted(first + poller.look(True)) == sorted(ours.fileno() for ours, _ in pairs)
    for pair in pairs:
        for end in pair:
            end.close()


def test_the_descriptor_of_a_closed_connection_can_be_anothers(poller):
    first, other = socket.socketpair()
    number = first.fileno()
    poller.watch(number)
    first.close()
    with socket.socket() as listener, other:
        assert listener.fileno() == number
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        poller.watch(number)
        with socket.create_connection(listener.getsockname()):
            assert poller.look(True) == [number]
