"""Connections that stay open: one thread for all, room for so many, signs of life, and their ends."""

import asyncio
import socket
import threading

import pytest

from process import streams
from process.streams import MAX_STREAMS, MESSAGES_AT_ONCE, Ended, Framing, Hub, Stream
from tests.support.ntfy_app import GIVES_UP_S
from tests.support.server import PATIENCE_S, wait_until


class Tape:
    """A source with the messages that a test gives it."""

    def __init__(self, *messages, key=1, owner=None):
        self.messages, self.keys, self.took = list(messages), [key], 0
        self.owners = [key if owner is None else owner]

    def next(self):
        return self.messages.pop(0) if self.messages else None

    def taken(self):
        self.took += 1

    def keepalive(self):
        return b"alive\n"


class Talk(Framing):
    """Answers the client, until that says "end"."""

    def received(self, data):
        if data == b"end":
            raise Ended
        return b"heard\n"

    def end(self):
        return b"ended\n"


class Library:
    """A feed that notes what it is asked."""

    def __init__(self):
        self.looks, self.looked_at, self.settled, self.over, self.closed = 0, [], [], [], 0

    def look(self, sources, is_woken):
        self.looks += 1
        self.looked_at.append(sources)
        return [source for source in sources if source in self.over]

    def settle(self, sources):
        self.settled += [source for source in sources if source.took]

    def close(self):
        self.closed += 1


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(streams, "LOOKED_EVERY_S", 0.01)


@pytest.fixture
def hub():
    hub = Hub(Library())
    yield hub
    hub.finish()


def offer(hub, source, head=b""):
    """Let the hub open a stream; the client's end of it."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(PATIENCE_S)
    hub.open(Stream(ours, head, source, {"route": "/test"}, Talk()))
    return theirs


@pytest.fixture
def connect(hub):
    """Opens a stream, and returns the client's end of it."""
    ends = []

    def connect_one(source, head=b""):
        assert hub.has_room(source)
        ends.append(offer(hub, source, head))
        return ends[-1]

    yield connect_one
    for end in ends:
        end.close()


def read_to_end(connection):
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_messages_are_written_in_order_and_noted_as_taken(hub, connect):
    tape = Tape(b"one\n", b"two\n")
    client = connect(tape, b"head\n")
    wait_until(lambda: tape in hub.feed.settled and tape.took == 2)
    assert client.recv(100) == b"head\none\ntwo\n"


def test_a_new_message_is_written_when_the_hub_is_woken(hub, connect, monkeypatch):
    monkeypatch.setattr(streams, "LOOKED_EVERY_S", PATIENCE_S * 2)
    tape = Tape(b"one\n")
    client = connect(tape)
    assert client.recv(100) == b"one\n"
    tape.messages.append(b"two\n")
    hub.wake(1)
    assert client.recv(100) == b"two\n"


def test_only_the_streams_of_the_woken_owner_are_looked_at(hub, connect, monkeypatch):
    monkeypatch.setattr(streams, "LOOKED_EVERY_S", PATIENCE_S * 2)
    tapes = [Tape(b"begun\n", key=1), Tape(b"begun\n", key=2)]
    for tape in tapes:
        connect(tape).recv(100)
    hub.feed.looked_at.clear()
    hub.wake(3)
    hub.wake(2)
    wait_until(lambda: hub.feed.looked_at)
    assert hub.feed.looked_at == [[tapes[1]]]


def test_the_hub_polls_for_new_messages(hub, connect):
    connect(Tape())
    wait_until(lambda: hub.feed.looks > 2)


def test_without_streams_the_thread_holds_nothing_and_looks_for_nothing_until_the_next_begins(hub, connect):
    assert hub.thread is None
    for _ in range(3):
        client = connect(Tape(b"one\n"))
        assert client.recv(100) == b"one\n"
        hub.feed.closed = 0
        client.close()
        wait_until(lambda: hub.feed.closed)
        looks = hub.feed.looks
        hub.thread.join(0.05)
        assert hub.thread.is_alive() and not hub.streams and hub.feed.looks == looks


def test_signs_of_life_come_when_nothing_else_does_and_often_enough_for_the_app(connect, monkeypatch):
    assert streams.KEEPALIVE_S == 45 < GIVES_UP_S
    monkeypatch.setattr(streams, "KEEPALIVE_S", 0.02)
    client = connect(Tape())
    assert client.recv(6) + client.recv(6) == b"alive\nalive\n"


def test_a_client_that_takes_nothing_is_given_up(hub, connect, monkeypatch):
    monkeypatch.setattr(streams, "KEEPALIVE_S", 0.1)
    tape = Tape(*[b"x" * 100_000] * 1_000)
    client = connect(tape)
    wait_until(lambda: not hub.streams)
    assert tape.took < 1_000 and len(read_to_end(client)) < 100_000_000


def test_behind_a_part_of_a_message_nothing_is_written(hub, connect, monkeypatch):
    monkeypatch.setattr(streams, "KEEPALIVE_S", 0.1)
    client = connect(Tape(b"x" * 1_000_000))
    client.sendall(b"hello")
    begun = client.recv(50_000)  # so much that an answer fits, too little for the message to go on
    wait_until(lambda: not hub.streams)
    assert {*(begun + read_to_end(client))} == {ord("x")}


def test_a_client_may_take_a_large_message_slowly(monkeypatch):
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    monkeypatch.setattr(streams, "KEEPALIVE_S", 0.3)
    tape, paused = Tape(b"x" * 200_000), threading.Event()

    def take():
        while tape.took == 0 and theirs.recv(2_000):
            paused.wait(0.005)
        theirs.close()

    taking = threading.Thread(target=take)
    taking.start()
    asyncio.run(Stream(ours, b"", tape, {}).serve(paused.wait, lambda: None, asyncio.Lock()))
    ours.close()
    taking.join()
    assert tape.took == 1


def test_one_slow_client_does_not_keep_the_others_waiting(connect):
    connect(Tape(*[b"x" * 100_000] * 1_000))
    assert connect(Tape(b"quick\n", key=2)).recv(100) == b"quick\n"


def test_a_new_message_waits_for_few_turns_of_streams_that_have_much(hub, connect, monkeypatch):
    monkeypatch.setattr(streams, "LOOKED_EVERY_S", PATIENCE_S * 2)

    class Much(Tape):
        def next(self):
            if len(hub.streams) < 11:
                return None
            read.append(self)
            if len(read) == 1_010:
                quiet.messages.append(b"new\n")
                hub.wake(0)
            return super().next()

    class Quiet(Tape):
        def taken(self):
            waited.append(len(read) - 1_010)

    quiet, read, waited = Quiet(key=0), [], []
    connect(quiet)
    for key in range(1, 11):
        connect(Much(*[b""] * 200, key=key))
    for key in range(1, 11):
        hub.wake(key)
    wait_until(lambda: waited)
    assert waited[0] < 4 * MESSAGES_AT_ONCE


def test_skipped_messages_count_towards_a_streams_turn():
    ours, theirs = socket.socketpair()
    tape, left = Tape(*[b""] * (2 * MESSAGES_AT_ONCE), b"one\n"), []
    stream = Stream(ours, b"head\n", tape, {})
    pause, note = lambda _: left.append(len(tape.messages)), lambda: tape.messages or theirs.close()
    asyncio.run(stream.serve(pause, note, asyncio.Lock()))
    assert left == [MESSAGES_AT_ONCE + 1, 1] and tape.took == 1


def test_the_end_of_the_client_is_the_end_of_the_stream_also_while_it_takes_nothing(hub, connect):
    connect(Tape()).close()
    client = connect(Tape(b"x" * 1_000_000))
    client.recv(5)
    client.sendall(b"hello")
    wait_until(lambda: hub.streams and hub.streams[-1].heard)
    client.shutdown(socket.SHUT_WR)
    wait_until(lambda: not hub.streams, streams.KEEPALIVE_S / 3)


def test_a_clients_data_is_answered_and_may_end_the_stream(hub, connect):
    client = connect(Tape())
    client.sendall(b"hello")
    assert client.recv(100) == b"heard\n"
    client.sendall(b"end")
    assert read_to_end(client) == b"ended\n"


def test_a_client_that_never_stops_talking_is_given_up(hub, connect, monkeypatch):
    monkeypatch.setattr(streams, "MAX_HEARD_BYTES", 10)
    client = connect(Tape())
    client.sendall(b"hello")
    assert client.recv(100) == b"heard\n"
    client.sendall(b"hello!")
    assert read_to_end(client) == b""


def test_a_source_that_is_over_ends_its_stream_alone(hub, connect):
    gone, stays = Tape(), Tape(key=2)
    ends = connect(gone), connect(stays)
    hub.feed.over.append(gone)
    assert read_to_end(ends[0]) == b""
    stays.messages.append(b"still here\n")
    assert ends[1].recv(100) == b"still here\n"


def test_a_fault_of_a_source_ends_its_stream_alone(connect, monkeypatch):
    class Broken(Tape):
        def next(self):
            raise KeyError

    other = connect(Tape(b"one\n", key=2))
    assert read_to_end(connect(Broken())) == b""
    assert other.recv(100) == b"one\n"


def test_a_fault_of_the_feed_ends_nothing(hub, connect):
    client, tape = None, Tape()
    client = connect(tape)
    hub.feed.over = None  # looking fails from now on
    looks = hub.feed.looks
    wait_until(lambda: hub.feed.looks > looks + 2)
    tape.messages.append(b"one\n")
    assert client.recv(100) == b"one\n"


def test_there_is_room_for_so_many_and_always_for_a_key_whose_oldest_ends(hub, connect):
    clients = [connect(Tape(key=number // 4)) for number in range(MAX_STREAMS)]
    assert not hub.has_room(Tape(key=99))
    assert read_to_end(offer(hub, Tape(key=99))) == b""  # the room was taken since it was asked for
    fifth = connect(Tape(b"one\n", key=0))
    assert fifth.recv(100) == b"one\n" and read_to_end(clients[0]) == b""
    clients[1].close()
    wait_until(lambda: hub.has_room(Tape(key=99)))


def test_a_thread_that_cannot_start_is_tried_again_with_the_next_stream(hub, connect, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda thread: threading.Thread.join(thread))  # a RuntimeError
        with pytest.raises(RuntimeError):
            connect(Tape())
    assert connect(Tape(b"one\n")).recv(100) == b"one\n"


def test_of_one_owner_there_are_twelve_and_a_full_keys_oldest_makes_room(hub, connect):
    clients = [connect(Tape(key=number // 4, owner=7)) for number in range(12)]
    assert not hub.has_room(Tape(key=10, owner=7)) and hub.has_room(Tape(key=20))
    assert connect(Tape(b"one\n", key=0, owner=7)).recv(100) == b"one\n" and read_to_end(clients[0]) == b""


def test_when_it_stops_all_end_and_no_more_begin(hub, connect):
    clients = [connect(Tape(b"one\n", key=number)) for number in range(3)]
    for client in clients:
        assert client.recv(4) == b"one\n"
    hub.finish()
    assert [read_to_end(client) for client in clients] == [b""] * 3
    assert not hub.has_room(Tape())


def test_a_stream_that_begins_while_the_hub_stops_ends_too(hub, connect, monkeypatch):
    assert connect(Tape(b"one\n")).recv(100) == b"one\n"

    def has_room(source):
        hub.stop()
        hub.thread.join(0.1)
        return True

    monkeypatch.setattr(hub, "has_room", has_room)
    assert read_to_end(offer(hub, Tape(key=2))) == b""
