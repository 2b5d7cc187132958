"""A client's connection: what a slow or silent one can hold, and for how long."""

import os
import socket
import threading

import pytest

from process import clock, connections
from process.connections import READ_S, Connection


@pytest.fixture
def ends():
    """Two ends of a connection: as the worker uses it, with a request of at most 1,000 bytes begun; the client's."""
    ours, theirs = socket.socketpair()
    with Connection(ours) as ours, theirs:
        ours.begin(clock.monotonic_s(), 1_000)
        yield ours, theirs


def test_a_slowly_arriving_request_is_ended_after_10_seconds(ends, moved_clock):
    ours, theirs = ends
    ours.begin(clock.monotonic_s(), 1_000)
    received = b""
    for _ in range(20):
        theirs.sendall(b"x")
        received += ours.read()
        moved_clock.advance(1)
    assert READ_S == 10 and received == b"x" * 10 and ours.is_over


def test_a_connection_that_stops_sending_is_ended_at_its_timeout(ends, monkeypatch):
    monkeypatch.setattr(connections, "READ_S", 0.05)
    ends[0].begin(clock.monotonic_s(), 1_000)
    assert ends[0].read() == b""


def test_a_request_above_the_limit_of_bytes_on_the_wire_is_ended(ends):
    ours, theirs = ends
    theirs.sendall(b"x" * 1_000)
    assert len(ours.read()) == 1_000
    theirs.sendall(b"x")
    assert ours.read() == b"" and ours.is_over


def test_bytes_received_with_the_previous_request_count_too(ends):
    ours, theirs = ends
    ours.unread(b"x" * 999)
    ours.begin(clock.monotonic_s(), 1_000)
    theirs.sendall(b"yz")
    assert (ours.read(999), ours.read(), ours.read()) == (b"x" * 999, b"yz", b"")


def test_reading_returns_the_requested_number_of_bytes_and_keeps_the_rest(ends):
    ours, theirs = ends
    theirs.sendall(b"abcdef")
    assert (ours.read(0), ours.read(2), ours.rest) == (b"", b"ab", b"cdef")
    theirs.sendall(b"ghi")
    assert (ours.read(6, read_ahead=7), ours.read()) == (b"cdefgh", b"i")
    ours.unread(b"xy")
    ours.unread(b"w")
    theirs.close()
    assert (ours.read(9), ours.read(9), ours.read()) == (b"wxy", b"", b"")


def test_a_request_in_pieces_is_gathered_without_blocking(ends):
    ours, theirs = ends
    seen = []
    for piece in (b"", b"ab", b"", b"cdef"):
        theirs.sendall(piece)
        seen.append((ours.gather(lambda rest: len(rest) >= 5), ours.rest, ours.left))
    assert seen == [(False, b"", 1_000), (False, b"ab", 998), (False, b"ab", 998), (True, b"abcdef", 994)]


@pytest.mark.parametrize("end", ["time", "bytes", "closed", "reset"])
def test_reading_does_not_wait_beyond_the_end_of_the_body(ends, moved_clock, end):
    ours, theirs = ends
    ours.begin(clock.monotonic_s(), 2 if end == "bytes" else 1_000)
    theirs.sendall(b"ab")
    if end == "time":
        assert not ours.gather(lambda rest: False)
        moved_clock.advance(READ_S)
    elif end == "closed":
        theirs.close()
    elif end == "reset":
        ours.send(b"unread")
        theirs.close()  # with unread data
    assert ours.gather(lambda rest: False) and ours.rest == b"ab"


def test_one_thread_reads_a_body_at_a_time_and_another_one_while_it_waits_for_its_client(ends):
    (ours, theirs), read = ends, []
    with Connection(socket.socket()) as other:

        def read_also():
            with other.alone():
                read.append("another")
                theirs.sendall(b"a")

        thread = threading.Thread(target=read_also)
        with ours.alone():
            thread.start()
            assert read == [] and ours.read(1) == b"a" and read == ["another"]
        thread.join()


def test_all_parts_are_sent_together(ends):
    ours, theirs = ends
    ours.write(b"head, ")
    ours.write(b"body")
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(100)
    assert ours.is_flushed() and theirs.recv(100) == b"head, body"


def test_a_long_answer_and_what_is_written_behind_it_arrive_whole_at_a_slow_client_that_is_not_waited_for(ends):
    ours, theirs = ends
    written, arrived = os.urandom(5_000_000), b""
    ours.write(written)
    assert not ours.is_flushed()
    ours.write(b", more")
    while not ours.is_flushed():
        arrived += theirs.recv(1_000_000)
    ours.shutdown(socket.SHUT_WR)
    assert arrived + b"".join(iter(lambda: theirs.recv(1_000_000), b"")) == written + b", more"
