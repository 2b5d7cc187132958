"""The ntfy apps as far as they fetch: what they ask for, in their words, and what they keep (CONTRACT 9)."""

import json
import re

TOPIC = re.compile(r"pb[0-9A-Za-z]{40}")
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
