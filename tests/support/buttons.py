"""Buttons as a device gets them and presses them."""

from urllib.parse import urlsplit

ANSWERS = [{"label": "Yes", "answer": "y"}, {"label": "No", "answer": "n"}]


def addresses(browser):
    """The addresses of the buttons of the newest push to a browser, by label."""
    return {action["title"]: action["navigate"] for action in browser.messages[-1]["notification"]["actions"]}


def paths(browser):
    """The paths of those addresses."""
    return {label: urlsplit(address).path for label, address in addresses(browser).items()}


def press(service, path, method="POST", address="203.0.113.7", **more):
    """Press a button as its device does."""
    return service.client.open(path, method=method, environ_overrides={"REMOTE_ADDR": address}, **more)
