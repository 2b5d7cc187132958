"""Phones and browsers of one account, one of each kind, at the stand-ins of their push services."""


class Phones:
    """One device of each kind of an account, and the last push to each."""

    def __init__(self, service, apns, fcm, push_service):
        service.account()
        self.caller = service.caller()
        self.apple, self.android, self.browser = apns.phone(), fcm.phone(), push_service.browser()
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

    @property
    def to_apple(self):
        return self.apple.messages[-1].body, self.apple.pushes[-1]

    @property
    def to_android(self):
        return self.android.messages[-1]

    @property
    def to_browser(self):
        return self.browser.messages[-1]["notification"], self.browser.pushes[-1]
