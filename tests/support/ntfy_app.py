"""The ntfy apps as far as they fetch: what they ask for, in their words, and what they keep."""

import json
import re
import socket

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Pong, RejectConnection, Request, TextMessage

from tests.support.server import PATIENCE_S, bearer

TOPIC = re.compile(r"(?<![\w-])pb[0-9A-Za-z]{40}(?![\w-])")  # not inside a longer random text
ANDROID = "ntfy/1.24.0 (fdroid; Android 15; SDK 35)"
IPHONE = "ntfy/1.6 (build 1; iOS 18.5)"
GIVES_UP_S = 77  # Android's app: without a line for so long, it connects again


def add_phone(caller, **more):
    """Add a device of the ntfy app, and return the phone that has it."""
    answer = caller.post("/devices", {"kind": "ntfy", **more})
    assert answer.status_code == 201, answer.json
    return Phone(caller.service, answer.json["device"])


class Phone:
    """A phone with the app, whose requests go to a service in this process."""

    def __init__(self, service, device):
        self.service, self.id, self.topic = service, device["id"], device["topic"]
        self.last_id = None  # of the newest message that it keeps
        self.kept = {}  # messages by id: the app drops one that it has

    def get(self, path, topics=None, headers=None, agent=ANDROID, address="203.0.113.9"):
        sent = {"User-Agent": agent, "Accept-Encoding": "gzip", **(headers or {})}
        sender = {"REMOTE_ADDR": address}
        return self.service.client.get(f"/{topics or self.topic}/{path}", headers=sent, environ_overrides=sender)

    def messages(self, query="since=all", **more):
        """The messages that a poll answers with."""
        answer = self.get(f"json?poll=1&{query}", **more)
        assert answer.status_code == 200, answer.text
        assert answer.content_type == "application/x-ndjson; charset=utf-8"
        return [json.loads(line) for line in answer.text.splitlines()]

    def bodies(self, query="since=all", **more):
        return [message["message"] for message in self.messages(query, **more)]

    def poll(self):
        """Fetch as Android's app does in the background; returns the messages that are new to it."""
        new = [one for one in self.messages(f"since={self.last_id or 'all'}") if one["id"] not in self.kept]
        self.kept |= {one["id"]: one for one in new}
        self.last_id = new[-1]["id"] if new else self.last_id
        return new

    def fetch(self, message_id):
        """Fetch one message, as the iPhone's app does when it is woken; it reads a single object."""
        answer = self.get(f"json?poll=1&id={message_id}", agent=IPHONE)
        assert answer.status_code == 200
        return json.loads(answer.text)


def add_topic(server, key, **more):
    """Add a device of the ntfy app at a service in another process; returns the device with its topic."""
    answer = server.request("POST", "/api/v1/devices", json.dumps({"kind": "ntfy", **more}), bearer(key))
    assert answer.status == 201, answer.text
    return json.loads(answer.text)["device"]


def dialled(server):
    """A connection to the service."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


class Listener:
    """An open stream of Android's app: it reads lines, keeps what is new, and can come back where it left off."""

    def __init__(self, server, topics, since="none", path="json", dial=None, host="bell"):
        self.server, self.topics, self.path = server, topics, path
        self.dial, self.host = dial or (lambda: dialled(self.server)), host
        self.kept, self.last_id, self.doubled = {}, None, []
        self.connect(since)

    def connect(self, since=None):
        """Connect, and read the answer's head and the event `open`."""
        self.connection = self.dial()
        self.file = self.connection.makefile("rb")
        query = f"?since={since or self.last_id or 'none'}"
        lines = (f"GET /{self.topics}/{self.path}{query} HTTP/1.1", f"Host: {self.host}", f"User-Agent: {ANDROID}")
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())
        self.status = int(self.file.readline().split()[1])
        lines = iter(self.file.readline, b"\r\n")
        self.headers = dict(line.decode().strip().lower().split(": ", 1) for line in lines if line)
        return self

    def event(self):
        """The next event, or None at the end of the stream."""
        while (line := self.file.readline()) and not line.startswith(b"{"):
            pass  # a proxy writes in chunks: their sizes are lines
        return json.loads(line) if line else None

    def message(self):
        """The next message, which is kept, or None at the end; signs of life are passed over."""
        while (event := self.event()) and event["event"] != "message":
            pass
        if event:
            if event["id"] in self.kept:
                self.doubled.append(event["id"])
            self.kept[event["id"]] = event
            self.last_id = event["id"]
        return event

    def bodies(self, number):
        return [self.message()["message"] for _ in range(number)]

    def close(self):
        self.file.close()
        self.connection.close()


class WebSocketListener:
    """An open WebSocket of Android's app."""

    def __init__(self, server, topics, since="none", dial=None, host="bell"):
        self.connection = dial() if dial else dialled(server)
        self.frames, self.got = WSConnection(ConnectionType.CLIENT), []
        self.send(Request(host=host, target=f"/{topics}/ws?since={since}"))

    def send(self, event):
        self.connection.sendall(self.frames.send(event))

    def event(self):
        """The next event of the protocol; None when the connection has ended."""
        while not self.got:
            data = self.connection.recv(65_536)
            if not data:
                return None
            self.frames.receive_data(data)
            self.got += self.frames.events()
        return self.got.pop(0)

    def message(self):
        """The next text frame as JSON."""
        event = self.event()
        assert isinstance(event, TextMessage), event
        assert event.message_finished
        return json.loads(event.data)


__all__ = ["AcceptConnection", "CloseConnection", "Ping", "Pong", "RejectConnection", "TextMessage"]
