"""Requests to alert webhooks, and their complete answers."""

import itertools
import threading

from tests.support.answers import error

SENDER, OTHER_SENDER, PROXY = "203.0.113.7", "203.0.113.8", "127.0.0.1"


UNKNOWN = "0000000"
CODES = itertools.count(1)  # unknown codes, each used once
INACTIVE = (200, {"ok": True, "status": "inactive"})
LIMITED = error(429, "RATE_LIMIT_EXCEEDED", "Rate limit exceeded")


def whole(answer):
    """Everything by which a sender can tell answers apart."""
    return answer.status_code, list(answer.headers), answer.data


def answered(answer):
    return answer.status_code, answer.json


def assert_limited(answer):
    assert answered(answer) == (429, LIMITED)
    assert answer.headers["Retry-After"] == "60" and "X-Request-Id" not in answer.headers


def ask(service, path, address=SENDER, method="POST", data=b"{}", headers=None):
    """A request to any path under /p/."""
    sender = {"REMOTE_ADDR": address}
    return service.client.open(f"/p/{path}", method=method, data=data, headers=headers, environ_overrides=sender)


def guess(service, count, address=SENDER, headers=None):
    """The statuses that an address gets for `count` unknown codes; `headers` may depend on the number."""
    answers = [
        ask(service, f"{next(CODES):07}", address, headers=headers(number) if callable(headers) else headers)
        for number in range(count)
    ]
    return [answer.status_code for answer in answers]


def burst(hook, count, data=b"{not JSON"):
    """The statuses of `count` requests, which by default record nothing."""
    return [hook.post(data=data).status_code for _ in range(count)]


def at_once(threads, ask_once):
    """The results of `threads` threads that start together."""
    start, results = threading.Barrier(threads), []

    def one():
        start.wait()
        results.append(ask_once())

    running = [threading.Thread(target=one) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert len(results) == threads
    return results


def rotated(hook):
    """The alert with its new address."""
    result = hook.service.flask("alert", "rotate", hook.email, hook.id)
    assert result.exit_code == 0, result.output
    return type(hook)(hook.service, hook.email, result.output.strip())


def the_alert(caller):
    """The only alert of the account, as the API shows it."""
    (alert,) = caller.get("/alerts").json["alerts"]
    return alert
