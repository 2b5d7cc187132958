"""The transport against a stand-in for APNs: who goes first, what is repeated and what is not."""

import itertools
import json
import re
import socket
import struct
import threading
import time

import jwt
import pytest

from providers import transport
from providers.transport import Request, send_all
from tests.support.apns_service import ApnsService
from tests.support.listener import PLENTY_S, answer, ignore, listening, post, read_request
from tests.support.rows import each
from tests.support.server import wait_until
from tests.support.webhooks import at_once

LATE_S = 10.0  # on a machine that has much else to do
REFUSAL = b"HTTP/2 stream 1 refused by server, try again on a new connection\n"
END_OF_A_SENTENCE = re.compile(r"[a-z][^0-9]*[^0-9.!?\s]")


@pytest.fixture
def apns(authority):
    """One for each test: no connection is kept from another."""
    server = ApnsService(authority)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def trusted(authority, monkeypatch):
    transport.trust(authority.ca_file)
    monkeypatch.setattr(transport, "CONNECT_TIMEOUT_MS", PLENTY_S * 1000)  # a handshake may wait for a processor
    yield
    transport.trust(None)


@pytest.fixture
def to(apns):
    """Makes one right request to each of these phones, each with an id of its own."""
    claims, numbers = {"iss": apns.team_id, "iat": int(time.time())}, itertools.count()
    token = jwt.encode(claims, apns.key_pem, "ES256", {"kid": apns.key_id})
    headers = {"authorization": f"bearer {token}", "apns-topic": apns.topic, "apns-push-type": "alert"}
    headers |= {"apns-priority": "10", "apns-expiration": "1795341600"}

    def make(*phones):
        bodies = [json.dumps({"aps": {"alert": "finished"}, "id": str(next(numbers))}).encode() for _ in phones]
        urls = [f"{apns.url}/3/device/{phone.token}" for phone in phones]
        return [Request(url, headers, body, True, True) for url, body in zip(urls, bodies, strict=True)]

    return make


@pytest.fixture
def arrivals(apns, monkeypatch):
    """When each phone's pushes reached the provider, by `time.monotonic`."""
    times, receive = {}, apns.receive

    def note(headers, body):
        times.setdefault(dict(headers)[":path"].rpartition("/")[2], []).append(time.monotonic())
        return receive(headers, body)

    monkeypatch.setattr(apns, "receive", note)
    return times


def phones(apns, count):
    return [apns.phone() for _ in range(count)]


def statuses(replies):
    return [reply.status for reply in replies]


def seen(some):
    return [len(phone.pushes) for phone in some]


def taken(some):
    return [len(phone.messages) for phone in some]


def is_told(reply):
    """Whether it failed, and says so in words that can end a sentence."""
    words = reply.failure or ""
    return reply.status == 0 and bool(END_OF_A_SENTENCE.fullmatch(words)) and "curl" not in words.lower()


# Who goes first


def test_sixteen_to_a_fresh_connection_all_succeed_over_that_one(apns, to):
    some = phones(apns, 16)
    assert statuses(send_all(to(*some), PLENTY_S)) == [200] * 16
    assert (apns.connections, apns.excess, apns.seen, apns.duplicates) == (1, 0, 16, 0)
    assert taken(some) == [1] * 16


def test_the_first_goes_alone_and_the_others_when_it_has_ended(apns, to, arrivals):
    first, *others = some = phones(apns, 5)
    first.then(200, after_s=0.2)
    assert statuses(send_all(to(*some), PLENTY_S)) == [200] * 5
    (led,) = arrivals[first.token]
    assert min(arrivals[phone.token][0] for phone in others) >= led + 0.2


def test_the_others_go_after_a_third_of_the_time_when_the_first_does_not_end(apns, to, arrivals):
    apns.first_streams = 1000
    first, *others = some = phones(apns, 5)
    first.then("hang")
    others[-1].then(0, after_s=0.05)  # the connection is lost, which ends the first as well
    began = time.monotonic()
    replies = send_all(to(*some), 3)
    assert statuses(replies) == [0, 200, 200, 200, 0]
    assert min(arrivals[phone.token][0] for phone in others) >= began + 0.99


@each("status", [410, 503])
def test_the_others_go_too_when_the_first_is_refused(apns, to, status):
    first, *others = some = phones(apns, 4)
    first.then(status)
    assert statuses(send_all(to(*some), PLENTY_S)) == [status] + [200] * 3
    assert (seen(some), taken(others)) == ([1] * 4, [1] * 3)


def test_the_others_go_too_when_the_first_is_closed_upon(apns, to):
    first, *others = some = phones(apns, 4)
    first.then(0)
    led, *rest = send_all(to(*some), PLENTY_S)
    assert is_told(led)
    assert statuses(rest) == [200] * 3
    assert (seen(some), taken(others), apns.duplicates) == ([1] * 4, [1] * 3, 0)


@pytest.mark.parametrize("kind", ["refuse", "goaway", "goaway-hard"])
def test_all_succeed_when_the_first_is_sent_back(apns, to, kind):
    some = phones(apns, 4)
    some[0].then(kind)
    assert statuses(send_all(to(*some), PLENTY_S)) == [200] * 4
    assert (taken(some), apns.duplicates) == ([1] * 4, 0)


def test_requests_to_another_origin_do_not_wait(apns, fcm, to, monkeypatch):
    elsewhere, was_in_time = threading.Event(), []
    receive_there, receive = fcm.receive, apns.receive
    monkeypatch.setattr(fcm, "receive", lambda *args: (elsewhere.set(), receive_there(*args))[1])

    def wait_for_the_other(*args):
        was_in_time.append(elsewhere.wait(PLENTY_S / 3 - 1))
        return receive(*args)

    monkeypatch.setattr(apns, "receive", wait_for_the_other)
    to_fcm = Request(fcm.url, {"Content-Type": "application/json"}, b"{}", True, True)
    replies = send_all([*to(*phones(apns, 2)), to_fcm, to_fcm], PLENTY_S)
    assert was_in_time[0]
    assert statuses(replies) == [200, 200, 401, 401]


# What the provider sent back is repeated


@pytest.mark.parametrize(("kind", "times"), [("refuse", 2), ("goaway", 1), ("goaway-hard", 2)])
@pytest.mark.parametrize("is_kept", [False, True], ids=["fresh", "kept"])
def test_a_request_that_http2_returned_unprocessed_is_sent_again(apns, to, kind, times, is_kept):
    if is_kept:
        send_all(to(apns.phone()), PLENTY_S)
    phone = apns.phone().then(kind)
    assert statuses(send_all(to(phone), PLENTY_S)) == [200]
    assert (len(phone.pushes), len(phone.messages), apns.duplicates) == (times, 1, 0)


def test_a_request_is_sent_ten_times_at_most(apns, to):
    apns.inject("refuse", every=1)
    assert is_told(*send_all(to(phone := apns.phone()), PLENTY_S)) and len(phone.pushes) == 10


def test_sixteen_threads_lose_and_double_nothing_while_the_provider_goes_away(apns, to):
    apns.after_s = 0.005
    for kind, every in (("goaway", 12), ("goaway-hard", 20), ("refuse", 16)):
        apns.inject(kind, every)
    some = phones(apns, 3)
    batches = [to(*some) for _ in range(32)]
    replies = at_once(16, lambda: send_all(batches.pop(), PLENTY_S) + send_all(batches.pop(), PLENTY_S))
    assert statuses(itertools.chain(*replies)) == [200] * 96
    assert (taken(some), apns.duplicates) == ([32] * 3, 0)


# What the provider may have taken is not


@pytest.mark.parametrize("is_kept", [False, True], ids=["fresh", "kept"])
def test_a_request_whose_connection_closed_without_an_answer_is_not_repeated(apns, to, is_kept):
    if is_kept:
        send_all(to(apns.phone()), PLENTY_S)
    phone = apns.phone().then(0)
    (reply,) = send_all(to(phone), PLENTY_S)
    assert is_told(reply)
    assert (len(phone.pushes), apns.duplicates, apns.connections) == (1, 0, 1)


def test_one_that_speaks_of_a_refusal_itself_is_not_repeated(apns, to):
    (request,) = to(phone := apns.phone().then(0))
    said = REFUSAL.decode()
    body = json.dumps({"aps": {"alert": said}, "id": "1"}).encode()
    (reply,) = send_all([request._replace(body=body, headers={**request.headers, "x-said": said.strip()})], PLENTY_S)
    assert is_told(reply)
    assert (len(phone.pushes), apns.duplicates) == (1, 0)


@pytest.mark.parametrize("head", [b"HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\n", b""], ids=["body", "head"])
def test_one_whose_answer_speaks_of_a_refusal_is_not_repeated(authority, head):
    came = []

    def speak_and_close(connection, number):
        with authority.context("http/1.1").wrap_socket(connection, server_side=True) as secure:
            came.append(read_request(secure))
            secure.sendall(head + REFUSAL)

    with listening(speak_and_close) as listener:
        (reply,) = send_all([Request(f"https://127.0.0.1:{listener.port}/push", {}, b"body", True)], PLENTY_S)
    assert is_told(reply)
    assert len(came) == 1


def test_an_accepted_request_on_a_closed_connection_is_not_repeated(apns, to):
    send_all(to(apns.phone()), PLENTY_S)
    some = phones(apns, 12)
    apns.inject(0, every=13)  # the connection closes when it has taken the last of them, and none was answered
    apns.inject("hang", every=1)
    at_once = [request._replace(leads=False) for request in to(*some)]
    assert all(is_told(reply) for reply in send_all(at_once, PLENTY_S))
    assert (seen(some), apns.duplicates) == ([1] * 12, 0)


def test_after_a_connection_that_closed_the_next_request_gets_another(apns, to):
    phone = apns.phone().then(0)
    send_all(to(phone), PLENTY_S)
    assert statuses(send_all(to(phone), PLENTY_S)) == [200]
    assert apns.connections == 2


# Time


@pytest.mark.parametrize("kind", ["hang", "refuse", "goaway-hard"])
def test_a_provider_that_takes_nothing_costs_no_more_than_the_time_given(apns, to, kind):
    apns.inject(kind, every=1)
    some = phones(apns, 2)
    began = time.monotonic()
    replies = send_all(to(*some), 0.4)
    assert time.monotonic() - began <= 0.4 + LATE_S
    assert all(is_told(reply) for reply in replies)
    assert taken(some) == [0] * 2


def test_a_connection_that_is_never_made_costs_no_more_than_the_time_given():
    with listening(ignore) as listener:
        some = [Request(f"https://127.0.0.1:{listener.port}/{n}", {}, b"body", True, True) for n in range(4)]
        began = time.monotonic()
        replies = send_all(some, 0.4)
        assert time.monotonic() - began <= 0.4 + LATE_S
    assert [reply.failure for reply in replies] == ["it did not answer in time"] * 4


def test_a_connection_that_takes_too_long_is_given_up_before_the_deadline(monkeypatch):
    monkeypatch.setattr(transport, "CONNECT_TIMEOUT_MS", 1)
    with listening(ignore) as listener:
        began = time.monotonic()
        (reply,) = send_all([Request(f"https://127.0.0.1:{listener.port}/push", {}, b"body", True)], PLENTY_S)
        assert time.monotonic() - began < PLENTY_S
    assert (reply.status, reply.failure) == (0, "it did not answer in time")


def test_lost_connections_are_closed_by_another_thread_since_a_silent_dns_delays_that(monkeypatch):
    class Connections:
        def __init__(self, multi):
            self.multi = multi

        def __getattr__(self, name):
            return getattr(self.multi, name)

        def __del__(self):
            closed_by.append(threading.get_ident())

    closed_by, multi = [], transport._connections()
    monkeypatch.setattr(transport._thread, "multi", Connections(multi))
    with listening(ignore) as listener:
        send_all([Request(f"https://127.0.0.1:{listener.port}/push", {}, b"body", True)], 0.1)
    wait_until(lambda: closed_by)
    assert closed_by != [threading.get_ident()]


def test_a_late_answer_counts_as_no_answer(apns, to):
    phone = apns.phone().then(200, after_s=1)
    began = time.monotonic()
    (reply,) = send_all(to(phone), 0.3)
    assert time.monotonic() - began <= 0.3 + LATE_S
    assert (reply.status, reply.failure) == (0, "it did not answer in time")


# Order, connections, words


def test_replies_come_in_the_order_of_the_requests_however_long_each_took(apns, fcm, to):
    wanted = [200, 410, 503, 429, 400, 200, 500, 413]
    some = [apns.phone().then(status, after_s=0.08 - n / 100) for n, status in enumerate(wanted)]
    to_fcm = Request(fcm.url, {"Content-Type": "application/json"}, b"{}", True, True)
    mixed = [one for request in to(*some) for one in (request, to_fcm)]
    replies = send_all(mixed, PLENTY_S)
    assert statuses(replies[::2]) == wanted
    assert statuses(replies[1::2]) == [401] * 8
    assert json.loads(replies[2].body)["reason"] == "Unregistered"


def close(connection, number):
    read_request(connection)
    connection.shutdown(socket.SHUT_RDWR)


def close_when_kept(connection, number):
    read_request(connection)
    answer(connection)
    close(connection, number)


def garbage(connection, number):
    read_request(connection)
    connection.sendall(b"\x00\x01\x02 this is no HTTP\r\n\r\n")
    connection.close()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def reset_unanswered(connection, number):
    read_request(connection)
    reset(connection)


def reset_unread(connection, number):
    connection.recv(1000)
    reset(connection)


def reset_amid_the_answer(connection, number):
    read_request(connection)
    connection.sendall(b"HTTP/1.1 201 Created\r\nContent-")
    reset(connection)


@each(
    ("serve", "body"),
    [
        (close, b"body"),
        (close_when_kept, b"body"),
        (garbage, b"body"),
        (reset_unanswered, b"body"),
        (reset_unread, b"x" * 8_000_000),
        (reset_amid_the_answer, b"body"),
    ],
)
def test_a_connection_that_breaks_is_told_in_words(serve, body):
    with listening(serve) as listener:
        if serve is close_when_kept:
            assert statuses(send_all([post(listener.url)], PLENTY_S)) == [201]
        (reply,) = send_all([Request(listener.url, {}, body, True)], PLENTY_S)
        assert listener.connections == 1
    assert is_told(reply)


def test_a_connection_that_breaks_under_tls_is_told_in_words(fcm):
    phone = fcm.phone().then(0)
    body = json.dumps({"message": {"token": phone.token, "notification": {"title": "t", "body": "b"}}}).encode()
    fcm.access["known"] = time.time() + 60
    headers = {"Authorization": "Bearer known", "Content-Type": "application/json"}
    (reply,) = send_all([Request(fcm.url, headers, body, True, True)], PLENTY_S)
    assert is_told(reply)
    assert (len(phone.pushes), fcm.duplicates) == (1, 0)
