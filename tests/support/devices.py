"""Devices, registered with the stand-in push service."""


def subscribe(caller, push_service, **more):
    """Add a new browser, with the device's id, to the caller's account as a device."""
    browser = push_service.browser()
    answer = caller.post("/devices", {"kind": "webpush", "subscription": browser.subscription, **more})
    assert answer.status_code == 201, answer.json
    browser.id = answer.json["device"]["id"]
    return browser
