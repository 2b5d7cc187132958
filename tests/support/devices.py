"""Devices, registered with the stand-in push service."""


def subscribe(caller, push_service):
    """A new device of the caller's account."""
    browser = push_service.browser()
    assert caller.post("/devices", {"kind": "webpush", "subscription": browser.subscription}).status_code == 201
    return browser
