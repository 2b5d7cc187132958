"""Challenges of services that ask whether an address wants their events."""

from urllib.parse import quote

from tests.support.answers import FORM
from tests.support.rows import each
from tests.support.webhooks import INACTIVE, UNKNOWN, answered, ask, the_alert
from web.webhooks import MAX_CHALLENGE

ECHOED = "3eZb<script>alert(1)</script> ü&=+%"


def assert_echoed(answer, owner, text=ECHOED):
    assert (answer.status_code, answer.text) == (200, text)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert (owner.listed(), the_alert(owner)["notificationCount"]) == ([], 0)


def test_a_url_verification_is_answered_with_its_challenge(owner, hook):
    verification = {"token": "x", "type": "url_verification", "challenge": ECHOED}
    assert_echoed(hook.post(verification), owner)


@each("name", ["validationToken", "hub.challenge"])
@each("method, data, headers", [("GET", None, {}), ("POST", b"", {"Content-Type": "text/plain"}), ("PUT", b"{}", {})])
def test_a_challenge_in_the_query_is_answered(service, owner, hook, name, method, data, headers):
    path = f"{hook.code}?hub.mode=subscribe&{name}={quote(ECHOED)}"
    assert_echoed(ask(service, path, method=method, data=data, headers=headers), owner)


def test_a_challenge_of_more_than_1000_characters_is_an_event(service, owner, hook):
    longest = "x" * MAX_CHALLENGE
    assert_echoed(hook.post({"type": "url_verification", "challenge": longest}), owner, longest)
    assert_echoed(ask(service, f"{hook.code}?validationToken={longest}", data=b""), owner, longest)
    assert hook.post({"type": "url_verification", "challenge": longest + "x"}).json["ok"]
    assert ask(service, f"{hook.code}?validationToken={longest}x", method="GET", data=b"").json["ok"]
    assert len(owner.listed()) == 2


@each("payload", [{"challenge": "x"}, {"type": "url_verification"}, {"type": "url_verification", "challenge": ""}])
def test_anything_but_a_challenge_is_an_event(hook, payload):
    assert hook.post(payload).json["status"] == "delivered"


def test_neither_an_unknown_code_nor_an_inactive_alert_answers_a_challenge(service, hook):
    for query in ("?validationToken=x", "?hub.challenge=x"):
        assert ask(service, UNKNOWN + query, method="GET", data=b"").status_code == 404
    hook.set("--inactive")
    assert answered(ask(service, f"{hook.code}?validationToken=x", data=b"")) == INACTIVE
    assert answered(hook.post(data=b"type=url_verification&challenge=x", headers=FORM)) == INACTIVE
