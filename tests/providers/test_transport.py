"""The transport: many requests at once, one deadline, public addresses alone, no redirects, nothing sent twice."""

import socket
import threading
import time
from contextlib import suppress

import pytest

import config
from providers import transport
from providers.transport import is_public, send_all
from tests.support.listener import PLENTY_S, answer, ignore, listening, post, read_request
from tests.support.rows import each


def test_requests_run_at_the_same_time_in_the_calling_thread():
    together = threading.Barrier(5)

    def answer_once_all_have_come(connection, number):
        read_request(connection)
        together.wait(timeout=PLENTY_S)
        answer(connection)

    with listening(answer_once_all_have_come) as listener:
        replies = send_all([post(listener.url)] * 5, timeout_s=PLENTY_S)
    assert [reply.status for reply in replies] == [201] * 5


def test_a_silent_push_service_ends_at_the_deadline_and_delays_no_other():
    def first_hangs(connection, number):
        if b"hang" not in read_request(connection):
            answer(connection)

    with listening(first_hangs) as listener:
        began = time.monotonic()
        hanging, healthy = send_all([post(f"{listener.url}/hang"), post(listener.url)], timeout_s=1)
    assert (hanging.status, hanging.failure) == (0, "it did not answer in time")
    assert (healthy.status, healthy.failure) == (201, None)
    assert time.monotonic() - began < PLENTY_S


def test_a_redirect_is_not_followed():
    def redirect(connection, number):
        read_request(connection)
        answer(connection, "307 Temporary Redirect", f"Location: {elsewhere.url}\r\n")

    with listening(ignore) as elsewhere, listening(redirect) as listener:
        (reply,) = send_all([post(listener.url)], timeout_s=PLENTY_S)
        assert (reply.status, elsewhere.connections) == (307, 0)


def test_an_answer_is_read_up_to_16_kilobytes():
    def flood(connection, number):
        read_request(connection)
        connection.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 100000000\r\n\r\n")
        try:
            for _ in range(1000):
                connection.sendall(b"x" * 100_000)
        except OSError:
            pass

    with listening(flood) as listener:
        (reply,) = send_all([post(listener.url)], timeout_s=PLENTY_S)
    assert (reply.status, reply.headers["retry-after"], len(reply.body) <= 16_384) == (503, "7", True)


@each(
    "head, rest, is_open, status",
    [
        ("200 OK\r\nContent-Length: 9\r\n\r\n", "part", False, 200),
        ("200 OK\r\nContent-Length: 9\r\n\r\n", "part", True, 200),
        ("200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "no number\r\n", False, 200),
        ("503 Busy\r\nContent-Length: 9\r\n\r\n", "part", False, 0),
    ],
)
def test_an_acceptance_counts_by_its_whole_head_whatever_becomes_of_the_body(head, rest, is_open, status):
    def accept(connection, number):
        read_request(connection)
        connection.sendall(f"HTTP/1.1 {head}{rest}".encode())
        is_open or connection.shutdown(socket.SHUT_RDWR)

    with listening(accept) as listener:
        (reply,) = send_all([post(listener.url)], timeout_s=0.4 if is_open else PLENTY_S)
    assert (reply.status, reply.failure is None) == (status, status == 200)


@each("host", ["localhost", "127.0.0.1", "2130706433", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]"])
def test_no_connection_is_made_to_an_address_that_is_not_public(host):
    with listening(ignore) as listener, listening(ignore, "::1") as listener6:
        urls = [f"https://{host}:{port}/" for port in (listener.port, listener6.port)]
        replies = send_all([post(url, any_address=False) for url in urls], timeout_s=PLENTY_S)
        assert (listener.connections, listener6.connections) == (0, 0)
    assert all(reply.failure for reply in replies)


@each("scheme", ["http", "ftp", "gopher", "telnet", "dict"])
def test_no_other_scheme_than_https_is_spoken(scheme):
    with listening(ignore) as listener:
        (reply,) = send_all([post(f"{scheme}://127.0.0.1:{listener.port}/", any_address=False)], timeout_s=PLENTY_S)
        assert (reply.status, listener.connections) == (0, 0)
    assert reply.failure


def test_a_proxy_named_in_the_environment_is_not_used(monkeypatch):
    def created(connection, number):
        read_request(connection)
        answer(connection)

    with listening(ignore) as proxy, listening(created) as listener:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{proxy.port}")
        (reply,) = send_all([post(listener.url)], timeout_s=PLENTY_S)
        assert (reply.status, proxy.connections) == (201, 0)


@each("address", ["1.1.1.1", "17.188.143.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"])
def test_public_addresses(address):
    assert is_public(address)


@each(
    "address",
    [
        *("0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1"),
        *("198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1"),
        *("::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2001::1", "2002:7f00:1::", "fc00::1"),
        *("fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "::127.0.0.1", "::ffff:0:127.0.0.1"),
    ],
)
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


@pytest.fixture
def secure_url(authority):
    def answer_over_tls(connection, number):
        with suppress(OSError):
            secure = authority.context("http/1.1").wrap_socket(connection, server_side=True)
            read_request(secure)
            answer(secure)

    with listening(answer_over_tls) as listener:
        yield f"https://127.0.0.1:{listener.port}/push"


def test_the_authority_of_ssl_cert_file_is_trusted_and_without_it_the_public_ones(secure_url, authority):
    named = {"SSL_CERT_FILE": authority.ca_file}
    for settings, expected in ((named, (201, None)), ({}, (0, "its certificate is not trusted"))):
        transport.trust(config.load(settings).ca_file)
        (reply,) = send_all([post(secure_url)], timeout_s=PLENTY_S)
        assert (reply.status, reply.failure) == expected
