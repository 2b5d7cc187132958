"""Channels for tests."""

URL = "https://hooks.example.com/T0/B0/secret"


def add_webhook(caller, url=URL, **more):
    """Add a webhook; the device as it is answered."""
    answer = caller.post("/devices", {"kind": "webhook", "url": url, **more})
    assert answer.status_code == 201, answer.json
    return answer.json["device"]


def device(caller, id_):
    """The caller's device with this id; None if it has none."""
    return next((one for one in caller.get("/devices").json["devices"] if one["id"] == id_), None)
