"""Devices, registered with the stand-in push service."""


def subscribe(caller, push_service):
    """Add a new browser to the caller's account as a device."""
    browser = push_service.browser()
    assert caller.post("/devices", {"kind": "webpush", "subscription": browser.subscription}).status_code == 201
    return browser
