"""Phones and browsers of one account, one of each kind, at the stand-ins of their push services."""

import json

import push
from providers import webpush
from providers.base import Message, Push
from wire.json_text import json_bytes
from wire.notification import Content

ORIGIN = "http://127.0.0.1:8000"
MESSAGE = Message("a" * 32, Content("Disk", "full"), "/app/notifications/" + "a" * 32)


class Phones:
    """One device of each kind of an account, and the last push to each."""

    def __init__(self, service, apns, fcm, push_service):
        service.account()
        self.service, self.caller = service, service.caller()
        self.apple, self.android, self.browser = apns.phone(), fcm.phone(), push_service.browser()
        self.of_kind = {"apns": self.apple, "fcm": self.android, "webpush": self.browser}
        for kind, address in (
            ("apns", {"token": self.apple.token}),
            ("fcm", {"token": self.android.token}),
            ("webpush", {"subscription": self.browser.subscription}),
        ):
            assert self.caller.post("/devices", {"kind": kind, **address}).status_code == 201

    def send(self, title="Disk", body="full", **more):
        answer = self.caller.post("/notifications/send", {"title": title, "body": body, **more})
        assert answer.status_code == 200, answer.json
        assert answer.json["notification"]["status"] == "delivered"
        details = self.caller.get(f"/notifications/{answer.json['notification']['id']}").json["notification"]
        assert {one["status"] for one in details["deliveries"]} <= {"delivered"}, details
        return answer.json["notification"]

    def then(self, status, **headers):
        """Let each provider answer its next push like this."""
        for phone in self.of_kind.values():
            phone.then(status, **headers)

    def push_to(self, kind, message=MESSAGE):
        """A push to the device of this kind."""
        keys = self.browser.subscription["keys"] if kind == "webpush" else {}
        token = self.browser.endpoint if keys else self.of_kind[kind].token
        return Push(kind, token, message, "owner@example.org", **keys)

    def pushed_to(self, kind, message=MESSAGE):
        """What becomes of that push, without an account."""
        (answer,) = push.send([self.push_to(kind, message)], 5)
        return answer

    def built(self, content, buttons=()):
        """What the providers would send of this, which fits: to Apple, to Android and to a browser, as below."""
        message = MESSAGE._replace(content=content, tag_slot=content.tag and "s" * 32, buttons=buttons)
        bodies = [push.provider_of(kind).request(self.push_to(kind, message), 5).body for kind in ("apns", "fcm")]
        apple, android, browser = map(json.loads, (*bodies, webpush._payload(message, ORIGIN)))
        android = android["message"]
        assert max(len(bodies[0]), len(json_bytes([android["data"], android["notification"]]))) <= 4_096
        assert len(json_bytes(browser)) <= webpush.MAX_BYTES
        return apple, android, browser["notification"]

    def seen(self):
        """How many pushes each provider saw."""
        return [len(phone.pushes) for phone in self.of_kind.values()]

    def taken(self):
        """How many messages each device has."""
        return [len(phone.messages) for phone in self.of_kind.values()]

    def errors(self):
        """The error that each device shows, by kind."""
        return {one["kind"]: one["lastError"] for one in self.caller.get("/devices").json["devices"]}

    @property
    def to_apple(self):
        return self.apple.messages[-1].body, self.apple.pushes[-1]

    @property
    def to_android(self):
        return self.android.messages[-1]

    @property
    def to_browser(self):
        return self.browser.messages[-1]["notification"], self.browser.pushes[-1]
