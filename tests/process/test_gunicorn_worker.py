"""gunicorn's worker: what a slow or silent client can hold, and for how long."""

import json
import logging
import math
import os
import resource
import signal
import socket
import struct
import threading
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.sock import TCPSocket

from process import baton, clock, gunicorn_worker
from process.baton import Baton
from process.connections import READ_S, WRITE_S, Connection
from process.gunicorn_worker import IDLE, LINGERING, SILENT, STOP_S, UNFINISHED, UNSENT, ThreadedWorker
from process.http_messages import Answer, Incoming
from process.poller import Epoll as Poller
from tests.support.rows import each
from tests.support.server import PATIENCE_S, UNDELAYED_S, in_threads, join, serving


@pytest.fixture
def ends():
    """Two ends of a connection: as the worker uses it, and the client's."""
    ours, theirs = socket.socketpair()
    with Connection(ours, ("127.0.0.1", 1)) as ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("length", ["Content-Length: 70000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(
    "read, most, waited_s, is_keep_alive",
    [
        (70_001, 200_000, 0, True),
        (69_999, 200_000, 0, False),  # what comes next would be taken for a request
        (0, 200_000, 0, False),
        (70_001, 60_000, 0, False),
        (70_001, 200_000, READ_S, False),
    ],
)
def test_an_answer_says_that_the_connection_goes_on_only_if_the_body_was_read_to_its_end(
    ends, moved_clock, length, read, most, waited_s, is_keep_alive
):
    ours, theirs = ends
    body = b"x" * 70_000 if "Length" in length else b"11170\r\n" + b"x" * 70_000 + b"\r\n0\r\n\r\n"
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 400_000)
    theirs.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode() + body)
    ours.begin(clock.monotonic_s(), most)
    request = Incoming(Config(), ours, ours.peer)
    moved_clock.advance(waited_s)
    with suppress(NoMoreData, ParseException):
        request.body.read(read)
    answer = Answer(ours, request, True)
    answer.start("401 Unauthorized", [("Content-Length", "0")])
    assert (answer.is_keep_alive, b"\r\nConnection: keep-alive\r\n" in answer.head) == (is_keep_alive, is_keep_alive)


@pytest.fixture
def idle():
    """A worker with two connections at most, whose threads have not begun."""
    one = ThreadedWorker(1, os.getppid(), [], None, 30, Config(), logging.getLogger())
    one.cfg.set("worker_connections", 2)
    one.poller, one.PIPE, one.wakes = Poller(), os.pipe(), os.pipe()
    one.poller.watch(one.wakes[0])
    one.baton = Baton(one.poller.look, one._wake, lambda: False)
    yield one
    for connection in one.connections:
        connection.close()
    one.tmp.close()


@pytest.fixture
def listener(idle):
    """A socket at which the worker accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        one.setblocking(False)
        idle.listeners[one.fileno()] = one
        idle.poller.watch(one.fileno())
        yield one


def waits(worker, connection, state):
    """Let a connection wait, whose time is never over."""
    worker.connections.add(connection)
    connection.talk = worker._talk(connection)
    worker._await(connection, state, math.inf)


def work(worker):
    """Do what comes next, as a thread does."""
    worker._work(worker.baton.take())


def test_a_worker_that_has_stopped_gets_no_signal_of_its_timer_any_more(idle):
    idle.wsgi, idle.sockets, idle.alive = SimpleNamespace(config={"MAX_CONTENT_LENGTH": 1}), [], False
    idle.run()
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def test_a_connection_with_a_request_is_never_dropped_for_a_new_one(idle, listener):
    idle.cfg.set("worker_connections", 3)
    idle.wsgi = application_of([])
    with socket.create_connection(listener.getsockname()) as first:
        work(idle)
        first.send(b"GET / HTTP/1.1")
        (fd,) = idle.poller.look(True)
        (asked,) = idle.waiting.values()
        with socket.create_connection(listener.getsockname()):
            del idle.waiting[fd]  # a thread has it
            work(idle)
            assert asked in idle.connections and asked.peer == first.getsockname()


def test_a_client_that_comes_while_a_worker_closes_its_listeners_is_no_fault(idle, caplog):
    listener = TCPSocket(("127.0.0.1", 0), idle.cfg, idle.log)
    fd = listener.fileno()
    idle.listeners[fd] = listener.sock
    idle.poller.watch(fd)
    with socket.create_connection(listener.getsockname()):
        assert idle.poller.look(True) == [fd]
        listener.close()  # the main thread, just then
        idle.alive = False
        idle._work(fd)
        assert caplog.messages == []


def test_all_clients_that_have_come_when_a_worker_stops_are_accepted(idle, monkeypatch):
    monkeypatch.setattr(gunicorn_worker, "ACCEPTED_AT_ONCE", 1)
    idle.sockets, idle.is_over = [TCPSocket(("127.0.0.1", 0), idle.cfg, idle.log)], True
    clients = [socket.create_connection(idle.sockets[0].getsockname()) for _ in range(2)]
    idle._stop()
    assert len(idle.connections) == 2
    for client in clients:
        client.close()


def test_a_full_server_accepts_again_when_a_connection_ends(idle, listener):
    clients = [socket.create_connection(listener.getsockname()) for _ in range(3)]
    for _ in range(2):
        work(idle)
        for connection in idle.connections:
            connection.state = IDLE  # these make no room
    assert len(idle.connections) == 2 and idle.is_full
    idle._end(next(iter(idle.connections)))
    work(idle)
    assert len(idle.connections) == 2 and not idle.poller.epoll.poll(0)
    for client in clients:
        client.close()


def application_of(asked):
    """An application that answers with the body of the request, and adds that to `asked`."""

    def application(environ, start):
        body = environ["wsgi.input"].read()
        asked.append(body)
        start("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    application.takes_long = lambda method, path: False
    return application


@pytest.fixture
def writes(idle, ends):
    """The worker, which serves one connection that has sent a request and reads slowly; what it logs."""
    idle.cfg.set("worker_connections", 1_000)
    idle.logged = []
    idle.log = SimpleNamespace(
        access=lambda _, status, sent, took_s: idle.logged.append(sent),
        error=lambda *said, **_: idle.logged.append(said),
    )
    ours, theirs = ends
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    theirs.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    idle.connections.add(ours)
    return idle


def begin_writing(worker, connection, length, headers=None, body=None):
    """Let the worker write what the client takes of an answer, by default of one of so many bytes."""

    def application(environ, start):
        start("200 OK", [("Content-Length", str(length))] if headers is None else headers)
        return [b"x" * length] if body is None else body

    application.takes_long = lambda method, path: False
    worker.wsgi, worker.max_bytes, connection.talk = application, 1_000_000, worker._talk(connection)
    worker._serve(connection)


def take(worker, theirs, until):
    """Let the client take what it is sent until then, and the worker write more; what it took."""
    taken = b""
    while not until():
        taken += theirs.recv(1_000_000)
        for fd, _ in worker.poller.epoll.poll(0):
            worker._work(fd)
    theirs.setblocking(False)
    with suppress(BlockingIOError):
        taken += theirs.recv(1_000_000)
    return taken


@pytest.mark.parametrize("length", [60_000, 3_000_000])
def test_a_client_that_does_not_take_its_answer_keeps_no_thread_and_gets_it_later(writes, ends, length):
    ours, theirs = ends
    begin_writing(writes, ours, length)
    assert ours.state == UNSENT and writes.logged == [length]
    taken = take(writes, theirs, lambda: ours.state == IDLE)
    assert taken.partition(b"\r\n\r\n")[2] == b"x" * length and not ours.unsent and writes.logged == [length]


def test_an_answer_that_is_made_while_it_is_written_goes_on_when_the_client_takes_more(writes, ends):
    ours, theirs = ends
    made = []

    def body():
        for part in range(40):
            made.append(part)
            yield b"%02d" % part * 50_000
        made.append("closed")

    begin_writing(writes, ours, 0, [], body())
    assert made == [0] and not writes.logged
    taken = take(writes, theirs, lambda: ours.state == IDLE)
    parts = [b"186A0\r\n" + b"%02d" % part * 50_000 + b"\r\n" for part in range(40)]
    assert taken.partition(b"\r\n\r\n")[2] == b"".join(parts) + b"0\r\n\r\n"
    assert made == [*range(40), "closed"] and writes.logged == [4_000_000]


@pytest.mark.parametrize(
    "method, body, state", [(b"GET", b"abcd", IDLE), (b"GET", b"abc", LINGERING), (b"HEAD", b"", IDLE)]
)
def test_a_connection_is_kept_only_if_its_answer_was_as_long_as_announced(idle, ends, method, body, state):
    ours, theirs = ends
    idle.log = SimpleNamespace(access=lambda *_: None)
    theirs.sendall(method + b" / HTTP/1.1\r\nHost: x\r\n\r\n")
    begin_writing(idle, ours, 4, body=[body])
    assert ours.state == state


@pytest.mark.parametrize("why", ["time", "memory", "gone", "fault"])
def test_an_answer_that_is_not_taken_ends_its_connection_alone(writes, ends, moved_clock, monkeypatch, why):
    ours, theirs = ends
    closed = []

    class Body(list):
        def close(self):
            closed.append(1)
            if why == "fault":
                raise ValueError

    if why == "memory":
        monkeypatch.setattr(gunicorn_worker, "MAX_UNSENT_BYTES", 100_000)
    begin_writing(writes, ours, 0, [], Body([b"x" * 200_000, b"never"]))
    assert bool(writes.waiting) == (why != "memory")
    moved_clock.advance(WRITE_S - 1)
    writes._look_after(0)
    if why in ("time", "fault"):
        assert writes.waiting
        moved_clock.advance(1)
        writes._look_after(0)
    elif why == "gone":
        theirs.close()
        while writes.connections:  # it cannot write, and then nothing more comes
            work(writes)
    faults = [("Error handling request",)] if why == "fault" else []
    assert not writes.connections and closed == [1] and writes.logged == [200_000, *faults]


def test_the_answer_of_which_nothing_was_taken_for_longest_makes_room(idle, monkeypatch):
    monkeypatch.setattr(gunicorn_worker, "MAX_UNSENT_BYTES", 25)
    pairs = [socket.socketpair() for _ in range(4)]
    connections = [Connection(ours) for ours, _ in pairs]
    for connection in connections:
        connection.unsent = b"x" * 10
        waits(idle, connection, IDLE if connection is connections[0] else UNSENT)
    idle._bound_unsent()
    assert [*idle.waiting.values()] == [connections[0], *connections[2:]]
    for _, theirs in pairs:
        theirs.close()


@pytest.fixture
def serves(idle):
    """The worker, whose application says what it has read."""
    idle.max_bytes, idle.asked = 1_000_000, []
    idle.log = SimpleNamespace(access=lambda *_: None)
    idle.cfg.set("worker_connections", 1_000)
    idle.wsgi = application_of(idle.asked)
    return idle


BODY = b'{"title":"a","body":"b"}'
SEND = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 24\r\n\r\n" + BODY


@pytest.mark.parametrize("step", [1, 20, len(SEND) - len(BODY), len(SEND)])
def test_a_request_is_answered_once_in_however_many_packets_it_came(serves, ends, step):
    ours, theirs = ends
    waits(serves, ours, SILENT)
    for at in range(0, len(SEND), step):
        assert not serves.asked
        theirs.sendall(SEND[at : at + step])
        work(serves)
    assert serves.asked == [BODY] and ours.state == IDLE
    assert theirs.recv(1_000).endswith(b"\r\n\r\n" + BODY)


def test_an_answer_ends_its_connection_while_there_are_nearly_as_many_as_there_may_be(serves, ends):
    serves.cfg.set("worker_connections", 2)
    silent, others_client = socket.socketpair()
    with others_client:
        serves.connections.add(Connection(silent))  # whose request waits for its turn
        waits(serves, ends[0], IDLE)
        ends[1].sendall(SEND)
        work(serves)
        assert b"\r\nConnection: close\r\n" in ends[1].recv(1_000)


@pytest.mark.parametrize("more", [b"", b"\r\n\r\n"], ids=["half sent", "whole"])
def test_a_head_that_is_too_long_is_refused_at_once(serves, ends, more):
    """The parser would wait for its end, and keep everybody waiting."""
    ours, theirs = ends
    serves.log.request = lambda **_: None
    waits(serves, ours, SILENT)
    field = b"\r\nX: " + b"x" * 8_000
    theirs.sendall(b"GET / HTTP/1.1\r\nHost: x" + 3 * field + more)
    work(serves)
    answer = theirs.recv(1_000)
    assert answer.startswith(b"HTTP/1.1 400 ") and b"16,384 bytes" in answer
    assert not serves.asked and ours.state == LINGERING


def test_half_a_request_times_out_as_a_truncated_one(serves, ends, moved_clock):
    ours, theirs = ends
    theirs.sendall(SEND[:-1])
    waits(serves, ours, SILENT)
    work(serves)
    moved_clock.advance(READ_S - 1)
    serves._look_after(0)
    assert ours.state == UNFINISHED
    moved_clock.advance(1)
    serves._look_after(0)
    theirs.sendall(SEND[-1:] + SEND)  # too late, and not to be taken for a request
    work(serves)
    answer = theirs.recv(1_000)
    assert b"\r\nConnection: close\r\n" in answer and answer.endswith(b"\r\n\r\n" + BODY[:-1])
    assert ours.state == LINGERING and serves.connections == {ours}


@pytest.mark.parametrize("takes_long", [False, True])
def test_requests_sent_at_once_are_answered_one_by_one_behind_the_others(serves, ends, monkeypatch, takes_long):
    monkeypatch.setattr(baton, "MAX_LONG", 1)
    serves.wsgi.takes_long = lambda method, path: takes_long
    ours, theirs = ends
    other, others_client = socket.socketpair()
    with Connection(other) as other, others_client:
        waits(serves, other, IDLE)
        waits(serves, ours, IDLE)
        theirs.sendall(SEND * 3)
        others_client.sendall(SEND.replace(BODY, b" " * len(BODY)))
        while len(serves.asked) < 4:
            work(serves)
            assert not serves.baton.long
        assert [bool(body.strip()) for body in serves.asked] == [True, False, True, True]


@pytest.mark.parametrize("field", [b"Cookie: ", b"X-Forwarded-For: "])
@pytest.mark.parametrize("is_crowded", [False, True], ids=["answered", "refused, as too many long ones wait"])
def test_clients_take_turns_however_many_requests_one_has_sent(serves, is_crowded, field):
    serves.sender_of = lambda peer, forwarded_for: forwarded_for
    serves.wsgi.takes_long = lambda method, path: is_crowded
    serves.baton.is_crowded = lambda connection: is_crowded
    pairs = [socket.socketpair() for _ in range(4)]
    for ours, _ in pairs:
        waits(serves, Connection(ours), IDLE)
    for _ in range(2):
        for (_, theirs), client in zip(pairs, (b"a", b"a", b"a", b"b"), strict=True):
            theirs.sendall(SEND.replace(BODY, client * len(BODY)).replace(b"x", b"x\r\n" + field + client, 1))
        while len(serves.asked) < len(pairs):
            work(serves)
        assert [body[:1] for body in serves.asked] == [b"a", b"b", b"a", b"a"]
        serves.asked.clear()
    for _, theirs in pairs:
        theirs.close()


def test_all_clients_that_have_come_are_accepted_together(serves, listener):
    clients = [socket.create_connection(listener.getsockname()) for _ in range(5)]
    work(serves)
    assert len(serves.connections) == 5
    for client in clients:
        client.close()


@each("state", [SILENT, IDLE, LINGERING])
def test_a_new_connection_does_not_end_because_one_with_its_number_was_over_just_then(serves, state):
    ours, theirs = socket.socketpair()
    with Connection(ours) as old, theirs, Connection(socket.socket()) as new:
        old.state = new.state = state
        new.ends_s = math.inf

        class Changing(dict):
            def copy(self):  # and then another thread ends the old one, and accepts the new one
                return {7: old}

        serves.waiting = Changing({7: new})
        serves._look_after(0)
        assert serves.waiting == {7: new} and new.fileno() > 0


def test_when_the_worker_stops_connections_without_a_request_end_soon_and_others_go_on(serves, moved_clock):
    pairs = [socket.socketpair() for _ in range(4)]
    connections = [Connection(ours) for ours, _ in pairs]
    for connection, state in zip(connections, (SILENT, IDLE, UNSENT, UNFINISHED), strict=True):
        waits(serves, connection, state)
    serves.wsgi.streams = SimpleNamespace(stop=lambda: None)
    serves._end_serving()
    serves._look_after(0)
    assert len(serves.connections) == 4
    moved_clock.advance(STOP_S)
    serves._look_after(0)
    assert serves.connections == set(connections[2:])
    for _, theirs in pairs:
        theirs.close()


def test_a_client_that_was_not_told_of_the_end_gets_its_next_request_answered_when_the_worker_stops(serves, ends):
    ours, theirs = ends
    serves.wsgi.streams = SimpleNamespace(stop=lambda: None)
    serves.log.access = lambda *_: serves._end_serving()  # while the first is being answered
    waits(serves, ours, IDLE)
    for asked, ending in ((1, False), (2, True)):
        theirs.sendall(SEND)
        work(serves)
        assert len(serves.asked) == asked
        assert (b"\r\nConnection: close\r\n" in theirs.recv(1_000)) == ending
    assert ours.state == LINGERING


def test_a_client_that_has_its_answer_makes_room_before_silent_ones_and_these_before_half_a_request(idle):
    pairs = [socket.socketpair() for _ in range(4)]
    connections = [Connection(ours) for ours, _ in pairs]
    for connection, state in zip(connections, (IDLE, UNFINISHED, SILENT, LINGERING), strict=True):
        waits(idle, connection, state)
    for left in (3, 2, 1):
        assert idle._make_room() and idle.connections == set(connections[:left])
    assert not idle._make_room()
    for _, theirs in pairs:
        theirs.close()


def test_an_answer_that_takes_long_keeps_its_connection_if_the_request_came_whole(ends, moved_clock):
    ours, theirs = ends
    for body, is_keep_alive in ((b"xx", True), (b"x", False)):
        theirs.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n" + body)
        ours.begin(clock.monotonic_s(), 1_000)
        answer = Answer(ours, Incoming(Config(), ours, ours.peer), True)
        moved_clock.advance(READ_S)
        answer.start("200 OK", [("Content-Length", "0")])
        assert (answer.is_keep_alive, b"Connection: keep-alive" in answer.head) == (is_keep_alive, is_keep_alive)


def silent(server, number, text=b""):
    """Open `number` connections that send only this."""
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) for _ in range(number)]
    for connection in connections:
        connection.sendall(text)
    return connections


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A service with few threads."""
    with serving(tmp_path_factory.mktemp("few") / "data", THREADS="9") as shared:
        yield shared.wait_until_ready()


@each(
    "begin",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: x",
        b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
        b"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{",
        b"POST /nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfff0\r\n{",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ],
)
def test_half_sent_requests_and_half_closed_connections_delay_nobody(server, begin):
    connections = silent(server, 250, begin)  # it has 109 threads
    assert server.request("GET", "/healthz", timeout=UNDELAYED_S).status == 200
    for connection in connections:
        connection.close()


def test_a_client_that_sends_on_after_it_was_refused_gets_its_answer(server):
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
            connection.sendall(
                b"POST /p/0000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9000
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 4")


def test_fifty_requests_sent_at_once_are_answered_in_their_order(server):
    texts = [f"GET /nothing{n} HTTP/1.1\r\nHost: x\r\nX-Request-Id: r{n}\r\n\r\n" for n in range(49)]
    last = "POST /p/0000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    answers = server.raw("".join([*texts, last]).encode(), half_close=False).split(b"HTTP/1.1 ")[1:]
    assert len(answers) == 50 and all(answer.startswith(b"404 ") for answer in answers)
    assert [b"Connection: close" in answer for answer in answers] == [False] * 49 + [True]


def test_sends_of_one_client_and_of_many_are_answered_in_their_order_each_once_it_is_stored(server):
    key, many = server.owner_key(), 10
    body = b'{"title":"a","body":"b"}'
    head = f"POST /api/v1/notifications/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    send = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    answers = [b""] * 8

    def ask(n):
        answers[n] = server.raw(send * many)

    join(in_threads(8, ask))
    listed = server.listed_ids(key)
    assert len(listed) == 8 * many
    for answer in answers:
        seen = [
            json.loads(part.partition(b"\r\n\r\n")[2])["notification"]["id"]
            for part in answer.split(b"HTTP/1.1 200 OK")[1:]
        ]
        places = [listed.index(one) for one in seen]
        assert len(seen) == many and places == sorted(places, reverse=True)


def test_while_one_client_sends_on_and_on_the_others_are_answered(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as greedy:
        stop = threading.Event()
        sending = threading.Thread(target=send_on, args=(greedy, stop))
        sending.start()
        for _ in range(20):
            assert server.request("GET", "/healthz", timeout=UNDELAYED_S).status == 200
        stop.set()
        sending.join()


def send_on(connection, stop):
    """Send requests without a pause, and read the answers whenever there are some."""
    text = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 20
    while not stop.is_set():
        connection.sendall(text)
        connection.recv(1_000_000)


def test_a_client_that_has_closed_its_half_gets_its_answer(server):
    assert server.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").endswith(b'{"status":"ok"}\n')


def test_a_client_that_asks_whether_to_go_on_is_told_so(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
        connection.sendall(
            b"POST /p/0000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert connection.recv(100).startswith(b"HTTP/1.1 404")


def test_clients_that_leave_in_the_middle_of_an_answer_leave_no_fault_in_the_log(server):
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(b"GET /app/static/app.css HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
    assert server.get("/healthz").status == 200
    assert "Traceback" not in server.log and '"level": "error"' not in server.log


def test_more_connections_than_there_may_be_files_stop_nothing(tmp_path):
    few_files = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (300, 300))
    with serving(tmp_path / "data", before=few_files, THREADS="9") as server:
        server.wait_until_ready()
        connections = silent(server, 400)
        for _ in range(3):
            assert server.request("GET", "/healthz", timeout=UNDELAYED_S).status == 200
        for connection in connections:
            connection.close()
        assert server.log.count("Booting worker") == 1 and "Errno" not in server.log
