"""The ntfy app's streams at the service as it really runs."""

import base64
import itertools
import json
import signal
import socket
import time
from unittest.mock import ANY

import pytest

from process.streams import MAX_STREAMS, MAX_STREAMS_OF_OWNER, Ended
from tests.support.accounts import OWNER
from tests.support.ntfy_app import CloseConnection, Listener, Ping, Pong, TextMessage, WebSocketListener, add_topic
from tests.support.server import bearer, serving, wait_until
from web.websocket import WebSocket

BUSY_S = 8.0
MASKED_TEXT = b"\x81\x83\x00\x00\x00\x00abc"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The service that most tests share: its four threads would not do for so many streams."""
    with serving(tmp_path_factory.mktemp("streams") / "data", THREADS="4") as shared:
        shared.key = shared.owner_key()
        yield shared.wait_until_ready()


@pytest.fixture
def device(server):
    device = add_topic(server, server.key)
    yield device
    server.request("DELETE", f"/api/v1/devices/{device['id']}", headers=bearer(server.key))


@pytest.fixture
def listen(server):
    """Opens streams, which are closed with the test."""
    listeners = []

    def listen_to(*devices, **more):
        listeners.append(Listener(server, ",".join(device["topic"] for device in devices), **more))
        return listeners[-1]

    yield listen_to
    for listener in listeners:
        listener.close()


def send(server, body, key=None, **more):
    said = json.dumps({"title": "Backup", "body": body, **more})
    answer = server.request("POST", "/api/v1/notifications/send", said, bearer(key or server.key))
    assert answer.status == 200, answer.text
    return json.loads(answer.text)["notification"]["id"]


def status(server, id_):
    return json.loads(server.get(f"/api/v1/notifications/{id_}", server.key).text)["notification"]["status"]


def remove(server, device, key=None):
    path = f"/api/v1/devices/{device['id']}"
    assert server.request("DELETE", path, headers=bearer(key or server.key)).status == 200


# --- what comes ---------------------------------------------------------------------------------------------


def test_a_message_arrives_and_counts_as_delivered(server, device, listen):
    listener = listen(device)
    assert listener.status == 200
    assert listener.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert (listener.headers["x-accel-buffering"], listener.headers["cache-control"]) == ("no", "no-store")
    opened = listener.event()
    assert (opened["event"], opened["topic"]) == ("open", device["topic"])
    id_ = send(server, "one")
    message = listener.message()
    assert (message["id"], message["topic"], message["message"]) == (id_, device["topic"], "one")
    wait_until(lambda: status(server, id_) == "delivered")


def test_stored_messages_come_first(server, device, listen):
    ids = [send(server, body) for body in ("one", "two", "three")]
    assert listen(device, since="all").bodies(3) == ["one", "two", "three"]
    wait_until(lambda: status(server, ids[2]) == "delivered")  # what is pending would come with any id
    assert listen(device, since=ids[0]).bodies(2) == ["two", "three"]
    last = listen(device, since=ids[2])
    send(server, "four")
    assert last.bodies(1) == ["four"]


def test_one_stream_carries_several_topics(server, device, listen):
    urgent = add_topic(server, server.key, minPriority=5)
    listener = listen(device, {"topic": "unknown"}, urgent)
    send(server, "low", priority=2)
    send(server, "urgent", priority=5)
    got = [(message["topic"], message["message"]) for message in (listener.message() for _ in range(3))]
    assert got[0] == (device["topic"], "low")
    assert {*got[1:]} == {(device["topic"], "urgent"), (urgent["topic"], "urgent")}
    remove(server, urgent)
    assert listener.event() is None


def test_filters_apply_to_new_messages_too(server, device, listen):
    listener = listen(device, path="json", since="none&priority=5")
    ids = [send(server, "low", priority=2), send(server, "urgent", priority=5)]
    assert listener.bodies(1) == ["urgent"]
    assert status(server, ids[0]) == "pending"


def test_a_message_that_another_process_stores_arrives(server, device, listen):
    listener = listen(device)
    assert listener.event()["event"] == "open"
    server.flask("send", OWNER, "From a shell", "b")
    assert listener.message()["title"] == "MCP - From a shell"


def test_a_stream_may_begin_on_a_connection_that_answered_before(server, device):
    with socket.create_connection(("127.0.0.1", server.port), timeout=BUSY_S) as connection:
        file = connection.makefile("rb")
        for path in ("auth", "json?poll=1", "json"):
            connection.sendall(f"GET /{device['topic']}/{path} HTTP/1.1\r\nHost: bell\r\n\r\n".encode())
            assert file.readline() == b"HTTP/1.1 200 OK\r\n"
            head = dict(line.decode().lower().split(": ", 1) for line in iter(file.readline, b"\r\n"))
            file.read(int(head.get("content-length", 0)))
        assert json.loads(file.readline())["event"] == "open"
        send(server, "one")
        assert json.loads(file.readline())["message"] == "one"


# --- room and ends ------------------------------------------------------------------------------------------


def refused(server, device):
    answer = server.get(f"/{device['topic']}/json")
    error = {"code": 42903, "http": 429, "error": "limit reached: too many active subscriptions"}
    return (answer.status, answer.headers.get("Retry-After"), json.loads(answer.text)) == (429, "30", error)


def test_the_service_answers_while_all_streams_are_open_of_which_an_account_holds_twelve(server, listen):
    keys = [server.key, *(server.owner_key(email=f"{name}@example.org") for name in "bc")]
    devices = [[add_topic(server, key) for _ in range(4)] for key in keys]
    listeners = [listen(devices[number // 12][number % 12 // 4]) for number in range(12)]
    assert refused(server, devices[0][3])
    listeners += [listen(devices[number // 12][number % 12 // 4]) for number in range(12, MAX_STREAMS)]
    assert refused(server, devices[2][3])
    wanted = [str(number) for number in range(6)]
    for body, key in itertools.product(wanted, keys):
        send(server, body, key)
    assert all(listener.bodies(6) == wanted for listener in listeners)
    listeners[0].close()
    wait_until(lambda: listen(devices[0][3]).status == 200)
    for key, device in ((key, device) for key, of_key in zip(keys, devices, strict=True) for device in of_key):
        remove(server, device, key)
    assert [listener.message() for listener in listeners[1:]] == [None] * (MAX_STREAMS - 1)


def test_a_stream_ends_when_its_device_is_removed(server, device, listen):
    listener = listen(device)
    listener.event()
    remove(server, device)
    begun = time.monotonic()
    assert listener.event() is None
    assert time.monotonic() - begun < BUSY_S
    assert Listener(server, device["topic"]).status == 403


def test_nothing_is_lost_or_doubled_by_a_kill_and_streams_end_at_once_with_a_stop_and_no_topic_in_the_log(start):
    killed = start().wait_until_ready()
    killed.key = killed.owner_key()
    device = add_topic(killed, killed.key)
    listener = Listener(killed, device["topic"])
    ids = [send(killed, str(number)) for number in range(5)]
    listener.message()
    killed.kill()
    while listener.message():
        pass
    server = listener.server = start(PORT=str(killed.port))
    server.key, server.port = killed.key, killed.port
    server.wait_until_ready()
    listener.connect()
    ids.append(send(server, "last"))
    while listener.message()["message"] != "last":
        pass
    assert ([*listener.kept], listener.doubled) == (ids, [])

    frames = WebSocketListener(server, device["topic"])
    frames.event(), frames.message()
    begun = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert listener.event() is None
    assert frames.event() is None  # a close frame would keep Android's app from coming back
    assert time.monotonic() - begun < BUSY_S
    assert server.process.wait(BUSY_S) == 0
    lines = [json.loads(line) for line in server.log.splitlines()]
    (line,) = (line for line in lines if line["message"] == "stream" and line["route"].endswith("/json"))
    assert (line["method"], line["status"], line["client"]) == ("GET", 200, "127.0.0.1")
    assert device["topic"] not in server.log


def test_with_a_key_a_stream_of_any_topic_stays_open_and_silent_until_the_key_is_revoked(server):
    made = json.loads(
        server.request("POST", "/api/v1/api-keys/generate", '{"name": "Home"}', bearer(server.key)).text
    )["apiKey"]
    query = f"none&auth={base64.urlsafe_b64encode(b'Bearer ' + made['fullKey'].encode()).decode()}"
    listeners = [Listener(server, "backups", since=query) for _ in range(MAX_STREAMS_OF_OWNER)]
    frames = WebSocketListener(server, "backups", since=query)
    assert frames.event().__class__.__name__ == "RejectConnection"  # more than an account has
    assert [listener.event()["event"] for listener in listeners] == ["open"] * MAX_STREAMS_OF_OWNER
    listeners.pop().close()
    wait_until(lambda: _is_open(WebSocketListener(server, "backups", since=query)))
    send(server, "not for these")
    server.request("POST", "/backups", "nor this", bearer(made["fullKey"]))
    server.request("DELETE", f"/api/v1/api-keys/{made['id']}", headers=bearer(server.key))
    assert [listener.event() for listener in listeners] == [None] * len(listeners)


def _is_open(frames):
    if frames.event().__class__.__name__ != "AcceptConnection":
        return False
    assert frames.message() == {"id": ANY, "time": ANY, "event": "open", "topic": "backups"}
    return True


# --- WebSocket ----------------------------------------------------------------------------------------------


@pytest.fixture
def frames(server, device):
    listener = WebSocketListener(server, device["topic"])
    assert listener.event().__class__.__name__ == "AcceptConnection"
    assert listener.message()["event"] == "open"
    yield listener
    listener.connection.close()


def test_a_web_socket_gets_each_message_in_a_frame(server, frames):
    id_ = send(server, "one ✓")
    assert frames.message()["message"] == "one ✓"
    wait_until(lambda: status(server, id_) == "delivered")


def test_pings_of_a_web_socket_are_answered(server, frames):
    frames.send(Ping(b"are you there"))
    assert frames.event() == Pong(bytearray(b"are you there"))
    frames.send(TextMessage("ignored"))
    send(server, "one")
    assert frames.message()["message"] == "one"


def test_the_server_closes_when_the_client_does(frames):
    frames.send(CloseConnection(1000))
    assert frames.event() == CloseConnection(1000, "")
    assert frames.event() is None


def test_nothing_is_framed_once_the_client_has_closed():
    socket_of_app = WebSocket()
    with pytest.raises(Ended):
        socket_of_app.received(b"\x88\x82\x00\x00\x00\x00\x03\xe8")
    assert (socket_of_app.frame("more"), socket_of_app.end()) == (b"", b"\x88\x02\x03\xe8")


@pytest.mark.parametrize(
    "sent, code",
    [
        (b"\x81\x03abc", 1002),  # not masked
        (b"\x01" + MASKED_TEXT[1:], 1003),  # the first of several frames
        (b"\x81\xfe\x20\x00\x00\x00\x00\x00" + b"x" * 8_192, 1009),
        (b"\x83\x80\x00\x00\x00\x00", 1002),  # an opcode that nobody knows
        (b"\x89\xfe\x01\x00\x00\x00\x00\x00" + b"x" * 256, 1002),  # a ping that is too long
        (b"\x81\x81\x00\x00\x00\x00\xff", 1007),  # not UTF-8
    ],
)
def test_a_protocol_error_ends_the_connection(frames, sent, code):
    frames.connection.sendall(sent)
    event = frames.event()
    assert isinstance(event, CloseConnection) and event.code == code
    assert frames.event() is None


def test_a_poll_over_a_web_socket_ends(server, device):
    send(server, "one")
    frames = WebSocketListener(server, device["topic"], since="all&poll=1")
    frames.event()
    assert frames.message()["event"] == "open"
    assert frames.message()["message"] == "one"
    assert frames.event() == CloseConnection(1000, "")
    frames.connection.close()


def test_a_request_without_an_upgrade_is_refused(server, device):
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    for sent in (
        {},
        headers,
        headers | {"Sec-WebSocket-Key": "short"},
        headers | {"Sec-WebSocket-Key": "A" * 22 + "==", "Sec-WebSocket-Version": "8"},
    ):
        answer = server.request("GET", f"/{device['topic']}/ws", headers=sent)
        assert (answer.status, json.loads(answer.text)["code"]) == (400, 40016)
