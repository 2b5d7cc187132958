"""Redis, while all is well and when it is not: no request fails or waits for it."""

import contextlib
import logging
import re
import signal
import socket
import threading
import time

import pytest

from process import redis_client
from process.redis_client import RedisClient
from tests.support.listener import listening
from tests.support.redis_server import RedisServer
from tests.support.server import PATIENCE_S, UNDELAYED_S, free_port, in_threads, join, wait_until

ECHO = "return ARGV[1]"
WRITE = "return redis.call('INCR', KEYS[1])"
PASSWORD = "hunter2pw"


@pytest.fixture
def connect(caplog):
    """Make clients, which are closed at the end, and with whose addresses nothing is logged."""
    caplog.set_level(logging.DEBUG)
    clients = []

    def make(url, **options):
        clients.append(RedisClient(url, "test", **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
    assert PASSWORD not in caplog.text


@pytest.fixture
def often_tried(monkeypatch):
    monkeypatch.setattr(redis_client, "TRIED_EVERY_S", 0.02)


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "pocketbell"]


def cannot(reason):
    return f"Redis cannot be used: {reason}. This process counts by itself until it can."


BACK = "Redis can be used again."


def within(call):
    """What the call returns, in how many seconds."""
    begin = time.monotonic()
    return call(), time.monotonic() - begin


def test_a_scripts_result_is_returned(redis, connect):
    client = connect(redis.url)
    assert client.run(ECHO, [], ["ünlike"]) == "ünlike".encode()
    assert client.run("return {1, 'a', {}}", [], []) == [1, b"a", []]
    assert [client.run(WRITE, [client.key("n")], []) for _ in range(3)] == [1, 2, 3]


def test_each_of_32_threads_gets_its_own_answer(redis, connect):
    client, answers = connect(redis.url), {}

    def ask(number):
        for again in range(20):
            answers[number, again] = client.run(ECHO, [], [number * 100 + again])

    join(in_threads(32, ask))
    assert answers == {(n, again): b"%d" % (n * 100 + again) for n in range(32) for again in range(20)}


def test_one_connection_serves_all(redis, connect):
    client = connect(redis.url)
    client.run(ECHO, [], ["x"])
    before = connections(redis)
    join(in_threads(8, lambda _: client.run(ECHO, [], ["x"])))
    assert connections(redis) == before + 1  # that of `connections`


def connections(redis):
    """How many connections Redis has accepted."""
    return int(re.search(r"total_connections_received:(\d+)", redis.ask("INFO", "stats"))[1])


# --- Redis fails --------------------------------------------------------------------------------------------


def silent(connection, number):
    """The connection stays open."""
    return None


def hangs_up(connection, number):
    connection.close()


def says(answer):
    def serve(connection, number):
        while connection.recv(65536):
            connection.sendall(answer)

    return serve


FAULTS = {
    "silent": (silent, "no answer within 0.25 s"),
    "hangs up": (hangs_up, "Connection reset by peer|ConnectionError"),
    "speaks HTTP": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "InvalidResponse"),
    "loads": (says(b"-LOADING Redis is loading the dataset in memory\r\n"), "BusyLoadingError"),
    "quotes": (says(b"-ERR unknown command with args hunter2pw\r\n"), "ResponseError"),
}


@pytest.mark.parametrize("serve, reason", FAULTS.values(), ids=FAULTS)
def test_a_failing_redis_is_skipped_and_logged_once(connect, caplog, monkeypatch, serve, reason):
    monkeypatch.setattr(redis_client, "TRIED_EVERY_S", UNDELAYED_S)
    if serve is not silent:
        monkeypatch.setattr(redis_client, "TIMEOUT_S", UNDELAYED_S)
    with listening(serve) as listener:
        client = connect(f"redis://name:{PASSWORD}@127.0.0.1:{listener.port}/1")
        answer, seconds = within(lambda: client.run(ECHO, [], [1]))
        assert answer is None and client.is_away and seconds < UNDELAYED_S
        asked = listener.connections
        answers, seconds = within(lambda: [client.run(ECHO, [], [1]) for _ in range(1_000)])
        assert set(answers) == {None} and seconds < UNDELAYED_S and listener.connections <= asked + 1
        assert re.fullmatch(reason, client.fault())
    (line,) = wait_until(lambda: warnings(caplog))
    assert re.fullmatch(cannot(f"({reason})"), line)


def test_an_unreachable_redis_is_skipped(connect, caplog, monkeypatch):
    monkeypatch.setattr(redis_client, "TIMEOUT_S", UNDELAYED_S)
    client = connect(f"redis://:{PASSWORD}@127.0.0.1:{free_port()}")
    assert client.run(ECHO, [], [1]) is None
    assert wait_until(lambda: warnings(caplog)) == [cannot("Connection refused")]


def test_an_unresolvable_redis_name_delays_no_request(connect, monkeypatch, caplog):
    looked_up = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: looked_up.wait(UNDELAYED_S) and [])
    client = connect(f"redis://:{PASSWORD}@redis.example.org")
    answer, seconds = within(lambda: client.run(ECHO, [], [1]))
    assert answer is None and seconds < UNDELAYED_S / 4
    looked_up.set()
    assert wait_until(lambda: warnings(caplog)) == [cannot("no answer within 0.25 s")]


def test_many_threads_wait_for_a_silent_redis_at_the_same_time_and_not_one_after_the_other(connect):
    with listening(silent) as listener:
        client = connect(f"redis://127.0.0.1:{listener.port}")
        _, seconds = within(lambda: join(in_threads(32, lambda _: client.run(ECHO, [], [1]))))
    assert seconds < 16 * redis_client.TIMEOUT_S


def test_when_one_has_waited_for_a_silent_redis_those_that_came_later_wait_no_longer(connect, monkeypatch):
    monkeypatch.setattr(RedisClient, "_serve", lambda client: None)
    client = connect("redis://127.0.0.1")
    monkeypatch.setattr(redis_client, "TIMEOUT_S", 10 * PATIENCE_S)
    threads = in_threads(2, lambda _: client.run(ECHO, [], [1]))
    wait_until(lambda: client._questions.qsize() == 2)
    client._open_breaker(TimeoutError())
    join(threads)


def test_a_slowly_dripping_redis_gets_no_more_time_than_a_silent_one(connect):
    over = threading.Event()

    def drip(connection, number):
        connection.recv(65536)
        with contextlib.suppress(OSError):  # the client has closed it
            for byte in b"$100\r\n" + b"x" * 100:
                connection.sendall(bytes([byte]))
                if over.wait(0.1):
                    return

    with listening(drip) as listener:
        client = connect(f"redis://127.0.0.1:{listener.port}")
        answer, seconds = within(lambda: client.run(ECHO, [], [1]))
        assert answer is None and client.is_away and seconds < 5  # all that drips takes 10 s
    over.set()


def test_a_hanging_redis_is_skipped_until_it_answers_again(redis_server, connect, caplog, often_tried):
    client = connect(redis_server.url)
    wait_until(lambda: client.run(ECHO, [], [1]))
    redis_server.process.send_signal(signal.SIGSTOP)
    answer, seconds = within(lambda: client.run(ECHO, [], [1]))
    assert answer is None and seconds < UNDELAYED_S
    redis_server.process.send_signal(signal.SIGCONT)
    wait_until(lambda: not client.is_away)
    assert wait_until(lambda: client.run(ECHO, [], [1])) == b"1"
    assert {cannot("no answer within 0.25 s"), BACK} == {*warnings(caplog)}


def test_redis_is_tried_again_if_a_request_gave_up_on_a_thread_that_was_idle(redis, connect, often_tried):
    client = connect(redis.url)
    assert client.run(ECHO, [], [1]) == b"1"
    client._open_breaker(TimeoutError())
    wait_until(lambda: not client.is_away)


def test_a_redis_that_was_killed_is_used_again_once_it_is_back(redis, connect, caplog, often_tried, monkeypatch):
    monkeypatch.setattr(redis_client, "TIMEOUT_S", UNDELAYED_S)
    client = connect(redis.url)
    assert client.run(WRITE, [client.key("n")], []) == 1
    redis.stop()
    assert client.run(WRITE, [client.key("n")], []) is None
    assert client.fault() == "Connection refused"
    redis.start()
    wait_until(lambda: not client.is_away)
    assert client.run(WRITE, [client.key("n")], []) == 1
    assert len(warnings(caplog)) == 2 and warnings(caplog)[1] == BACK


@pytest.mark.parametrize("command", [("SCRIPT", "FLUSH"), ("FLUSHALL",), ("FLUSHDB",)], ids=" ".join)
def test_a_redis_that_lost_its_data_or_scripts_is_used_again_at_once(redis, connect, caplog, command):
    client = connect(redis.url)
    assert client.run(WRITE, [client.key("n")], []) == 1
    redis.ask(*command)
    assert client.run(WRITE, [client.key("n")], []) in (1, 2)
    assert warnings(caplog) == []


REFUSALS = {
    "replica": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "ReadOnlyError"),
    "full": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "OutOfMemoryError"),
    "disk full": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
        "ResponseError",
    ),
}


@pytest.mark.parametrize("begin, end, reason", REFUSALS.values(), ids=REFUSALS)
def test_a_read_only_redis_is_skipped_until_it_accepts_writes(
    redis, connect, caplog, often_tried, begin, end, reason
):
    client = connect(redis.url)
    assert client.run(WRITE, [client.key("n")], []) == 1
    redis.ask(*begin)
    assert client.run(WRITE, [client.key("n")], []) is None
    assert client.fault().startswith(reason)
    redis.ask(*end)
    wait_until(lambda: not client.is_away)
    assert client.run(WRITE, [client.key("n")], []) == 2
    assert len(warnings(caplog)) == 2 and warnings(caplog)[1] == BACK


def test_a_connection_that_was_closed_while_nobody_used_it_is_no_failure(redis, connect, caplog):
    client = connect(redis.url)
    client.run(ECHO, [], ["x"])
    redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert client.run(ECHO, [], ["y"]) == b"y"
    assert warnings(caplog) == []


def test_a_wrong_password_is_reported_without_the_password(redis, connect):
    client = connect(f"redis://somebody:{PASSWORD}@127.0.0.1:{redis.port}")
    assert client.fault() == "AuthenticationError"


def test_a_closed_client_answers_nothing_and_has_no_connection(redis, connect, caplog):
    client = connect(redis.url)
    client.run(ECHO, [], ["x"])
    client.close()
    assert client.run(ECHO, [], ["x"]) is None and warnings(caplog) == []
    wait_until(lambda: "connected_clients:1\r" in redis.ask("INFO", "clients"))


# --- TLS ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encrypted(authority):
    port = str(free_port())
    files = f"--tls-cert-file {authority.file} --tls-key-file {authority.file} --tls-ca-cert-file {authority.ca_file}"
    tls = ("--port", "0", "--tls-port", port, "--tls-auth-clients", "no")
    with RedisServer(*tls, *files.split(), port=port) as server:
        yield server


def test_a_certificate_is_checked(encrypted, authority, connect, monkeypatch):
    monkeypatch.setattr(redis_client, "TIMEOUT_S", UNDELAYED_S)
    url = f"rediss://localhost:{encrypted.port}"
    assert connect(url, ca_file=authority.ca_file).fault() is None
    assert "self-signed" in connect(url).fault() or "unable to get" in connect(url).fault()
    assert connect(url, verifies=False).fault() is None
