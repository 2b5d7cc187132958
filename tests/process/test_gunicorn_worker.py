"""gunicorn's worker: what a slow or silent client can hold, and for how long (CONTRACT 7); the log's lines."""

import json
import logging
import resource
import socket
import threading
from datetime import UTC, datetime
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.http.parser import RequestParser

from process import connections, logs
from process.connections import KEPT_BYTES, READ_S, Connection, Patience, Threads
from process.gunicorn_worker import ThreadedWorker
from tests.support.rows import each
from tests.support.server import PATIENCE_S, UNDELAYED_S, bearer, serving


@pytest.fixture
def ends():
    """Two ends of a connection: as the worker uses it, and the client's."""
    ours, theirs = socket.socketpair()
    with Connection(ours) as ours, theirs:
        yield ours, theirs


def test_a_request_that_dribbles_in_is_at_its_end_after_10_seconds(ends, moved_clock):
    ours, theirs = ends
    patience = Patience(ours, 1000)
    received = b""
    for _ in range(20):
        theirs.sendall(b"x")
        received += patience.recv(100)
        moved_clock.advance(1)
    assert READ_S == 10 and received == b"x" * 10


def test_a_connection_that_sends_no_more_is_at_its_end_when_the_time_is_over(ends, monkeypatch):
    monkeypatch.setattr(connections, "READ_S", 0.05)
    assert Patience(ends[0], 1000).recv(100) == b""


def test_a_request_that_takes_more_bytes_on_the_wire_than_any_of_ours_is_at_its_end(ends, moved_clock):
    ours, theirs = ends
    patience = Patience(ours, 10)
    theirs.sendall(b"x" * 30)
    assert [patience.recv(8), patience.recv(8), patience.recv(8)] == [b"x" * 8, b"x" * 8, b""]


def test_an_answer_that_is_not_taken_ends_too(ends, monkeypatch):
    monkeypatch.setattr(connections, "WRITE_S", 0.05)
    with pytest.raises(TimeoutError):
        ends[0].sendall(b"x" * 10_000_000)


def test_the_head_and_the_body_of_an_answer_are_written_together(ends):
    ours, theirs = ends
    ours.sendall(b"head, ")
    ours.sendall(b"body")
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(100)
    ours.flush()
    assert theirs.recv(100) == b"head, body"


def test_a_long_answer_arrives_whole_at_a_client_that_reads_slowly(ends, tmp_path):
    ours, theirs = ends
    (tmp_path / "file").write_bytes(b"f" * 1_000_000)
    arrived = []
    reader = threading.Thread(target=lambda: arrived.extend(iter(lambda: theirs.recv(65_536), b"")))
    reader.start()
    ours.sendall(b"head")
    with (tmp_path / "file").open("rb") as file:
        ours.sendfile(file)
    for _ in range(20):
        ours.sendall(b"x" * KEPT_BYTES)
    ours.flush()
    ours.shutdown(socket.SHUT_WR)
    reader.join()
    assert b"".join(arrived) == b"head" + b"f" * 1_000_000 + b"x" * 20 * KEPT_BYTES


def test_there_are_as_many_threads_as_work_at_once_and_never_more_than_allowed():
    begun, may_end, done = threading.Semaphore(0), threading.Event(), SimpleQueue()

    def work(one):
        begun.release()
        may_end.wait(PATIENCE_S)
        done.put(one)

    threads = Threads(3, work)
    for number in range(5):
        threads.submit(number)
    for _ in range(3):
        begun.acquire(timeout=PATIENCE_S)
    assert len(threads.threads) == 3
    may_end.set()
    assert sorted(done.get(timeout=PATIENCE_S) for _ in range(5)) == [0, 1, 2, 3, 4]
    threads.shutdown()
    for thread in threads.threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads.threads)


@pytest.mark.parametrize(
    "sent, most, may_wait, goes_on",
    [
        (b"x" * 500, 1_000, True, True),
        (b"x" * 499, 1_000, True, False),  # and then nothing within ten seconds
        (b"x" * 500, 300, True, False),
        (b"x" * 500, 1_000, False, True),  # short bodies are read whatever others do
    ],
)
def test_a_connection_goes_on_after_a_refused_body_only_if_that_came_whole(
    ends, moved_clock, sent, most, may_wait, goes_on
):
    ours, theirs = ends
    theirs.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n" + sent)
    theirs.shutdown(socket.SHUT_WR)
    parser = RequestParser(Config(), ours, ("127.0.0.1", 1))
    parser.unreader.sock = Patience(ours, most)
    next(parser)
    if len(sent) < 500:
        moved_clock.advance(READ_S)
    assert kept(parser, may_wait) == goes_on


def test_a_connection_with_a_long_refused_body_ends_while_others_are_being_read(ends):
    ours, theirs = ends
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 400_000)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 400_000)
    theirs.sendall(head + b"x" * 200_000)
    parser = RequestParser(Config(), ours, ("127.0.0.1", 1))
    next(parser)
    parser.unreader.sock = Patience(ours, 1_000_000)
    assert not kept(parser, may_read_long=False)


def kept(parser, may_read_long):
    """Whether the worker keeps the connection that this parser reads, once its request is answered."""
    one = ThreadedWorker.__new__(ThreadedWorker)
    one.draining = threading.Semaphore(may_read_long)
    return one._keepalive_after(SimpleNamespace(parser=parser), True)


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


def test_connections_that_say_nothing_hold_no_thread(server):
    connections = silent(server, 60)
    for _ in range(5):
        assert server.request("GET", "/healthz", timeout=UNDELAYED_S).status == 200
    connections[30].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert connections[30].recv(100).startswith(b"HTTP/1.1 200")
    for connection in connections:
        connection.close()


def test_clients_that_do_not_close_what_is_closed_delay_nobody(server):
    connections = silent(server, 30, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    for _ in range(5):
        assert server.request("GET", "/healthz", timeout=UNDELAYED_S).status == 200
    for connection in connections:
        connection.close()


def test_a_client_that_sends_on_after_it_was_refused_gets_its_answer(server):
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
            connection.sendall(
                b"POST /p/0000000 HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9000
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 4")


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))


def test_more_connections_than_there_may_be_files_stop_nothing(tmp_path):
    with serving(tmp_path / "data", before=few_files, THREADS="9") as server:
        server.wait_until_ready()
        connections = silent(server, 400)
        for _ in range(5):
            assert server.request("GET", "/healthz", timeout=UNDELAYED_S).status == 200
        for connection in connections:
            connection.close()
        assert server.log.count("Booting worker") == 1 and "Errno" not in server.log


def test_every_line_of_the_log_is_one_json_object_with_time_level_and_message(tmp_path):
    with serving(tmp_path / "data", LOG_LEVEL="debug") as server:
        key = server.wait_until_ready().owner_key()
        server.send(key, "line\nbreak", "b")
        server.raw(b"\x00\r\n\r\n")
        server.raw(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 9000 + b"\r\n\r\n")
        server.request("POST", "/api/v1/nothing", "{", bearer(key))
        assert server.terminate() == 0
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    assert [line["status"] for line in lines if line.get("client") and line["method"] == "-"] == [400, 400]
    (*_, failed) = [line for line in lines if line.get("client")]
    assert (failed["status"], failed["method"], failed["route"]) == (404, "POST", "-")
    assert len({line["request_id"] for line in lines if "request_id" in line}) == server.answered


@each("text", ["a\nb", "a\r\nb", "\x1b[31m", "ü🔥\u2028", '"quoted"', "{}"])
def test_no_text_adds_a_line_to_the_log(text):
    record = logging.LogRecord("pocketbell", logging.INFO, "", 0, "%s", (text,), None)
    line = logs.JsonLines().format(record)
    assert len(line.splitlines()) == 1 and json.loads(line)["message"] == text


@each("at", [1_790_000_000.0, 1_790_000_000.25, 1_790_000_059.9375])
def test_a_line_has_its_time_in_utc_and_milliseconds(at):
    record = logging.LogRecord("pocketbell", logging.INFO, "", 0, "", (), None)
    record.created, record.msecs = at, at % 1 * 1000
    told = json.loads(logs.JsonLines().format(record))["time"]
    assert told == datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


@each(
    "address",
    [
        *("/api/v1/api-keys/sk_test_5ecret", "/p/c0d5ecr", "/a/t0ken5ecret", "/app/setup/l1nk5ecret", "/%70/c0d5ecr"),
        *("/app/phone/c0d5ecret", "/ping/u5ecret/fail", "/%61/t0ken5ecret", "/%73k_test_5ecret"),
    ],
)
def test_no_key_code_or_link_is_left_in_what_the_server_says_of_an_address(address):
    record = logging.LogRecord("gunicorn.error", logging.DEBUG, "", 0, "Invalid request line: %r", (address,), None)
    assert logs.WithoutSecrets().filter(record)
    said = record.getMessage()
    assert said.startswith("Invalid request line: '") and "…" in said and "5ecr" not in said
