"""Channels for tests."""

import re

URL = "https://hooks.example.com/T0/B0/secret"


def add_webhook(caller, url=URL, **more):
    """Add a webhook; the device as it is answered."""
    answer = caller.post("/devices", {"kind": "webhook", "url": url, **more})
    assert answer.status_code == 201, answer.json
    return answer.json["device"]


def device(caller, id_):
    """The caller's device with this id; None if it has none."""
    return next((one for one in caller.get("/devices").json["devices"] if one["id"] == id_), None)


def mail_service(make_service, server, **more):
    """A service that mails through this server."""
    return make_service(SMTP_URL=server.url(), SMTP_FROM="Bell <bell@example.org>", **more)


def add_mail_address(caller, address="ana@example.org", **more):
    """Add a mail address, which is not confirmed; the device as it is answered."""
    answer = caller.post("/devices", {"kind": "email", "address": address, **more})
    assert answer.status_code == 201, answer.json
    return answer.json["device"]


def confirm_path(server):
    """The path of the link in the last mail."""
    text = server.mails[-1].get_body(("plain",)).get_content().replace("\r\n", "\n")
    return re.search(r"Confirm: https?://[^/]+(/\S+)", text)[1]


def confirmed(service, caller, server, address="ana@example.org", **more):
    """Add a mail address and confirm it by the link that it gets."""
    made = add_mail_address(caller, address, **more)
    service.work()
    assert service.client.post(confirm_path(server)).status_code == 200
    return device(caller, made["id"])
