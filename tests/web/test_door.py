"""The door for programs gives the answers that Flask would give."""

from contextlib import suppress

import pytest
from flask import has_app_context, has_request_context
from werkzeug.test import EnvironBuilder

from app import app
from tests.support.rows import each
from web.context import current
from web.json_answers import JsonAnswer

CODES = ["aB3xY9z", "send", "new", "not-one", "5a2f1c04-7d1e-4c55-9d0b-0d1b2c3e4f50"]
SENDING = "/api/v1/notifications/send"


def found_by_werkzeug(method, path):
    rule, variables = app.url_map.bind("localhost").match(path, method, return_rule=True)
    return rule.endpoint, variables


def test_the_door_matches_routes_as_werkzeug_does():
    fixed = {place: (found.route.endpoint, found.variables) for place, found in app.door.fixed.items()}
    assert fixed == {place: found_by_werkzeug(*place) for place in fixed}
    assert ("POST", SENDING) in fixed and ("GET", "/api/v1/stats") in fixed
    assert ("POST", "/p") in app.door.open_ended
    for method, before in app.door.open_ended:
        for path in (f"{before}/{code}" for code in CODES):
            found = app.door.find(method, path)
            assert (found.route.endpoint, found.variables) == found_by_werkzeug(method, path)


@each(
    "method, path",
    [
        *(("POST", f"/p/{other}") for other in ("", "a/b", "aB3xY9z/", "a.b", "a b", "ä", "_")),
        *(("GET", path) for path in ("//api/v1/stats", "/api/v1/stats/", "/API/v1/stats", "/api/v1/unknown")),
        ("HEAD", "/api/v1/stats"),
        ("GET", SENDING),
        ("GET", "/p/aB3xY9z"),
        ("GET", "/app/"),
    ],
)
def test_other_methods_and_paths_that_are_written_otherwise_are_left_to_flask(method, path):
    assert app.door.find(method, path) is None


@each("more", [(), (201,), ({"A": "b"},), (503, {"A": "b", "C": "d"})])
def test_the_doors_json_answer_is_flasks(more):
    value = {"ok": True, "text": "é \u2028 </script>", "number": 1.5, "none": None, "list": [1, {}]}
    environ = EnvironBuilder().get_environ()
    with app.test_request_context():
        expected = sent(app.make_response((value, *more) if more else value), environ)
    assert sent(JsonAnswer(value, *more), environ) == expected


def sent(answer, environ):
    """What the server gets: status, whose words say nothing, headers and body."""
    head = []
    body = b"".join(answer(environ, lambda status, headers: head.extend([status[:3], headers])))
    return [*head, body]


def fault():
    """A handler that fails, or ends its thread."""
    raise SystemExit


@each("handler", [dict, lambda: 1 / 0, fault])
@each("path", ["/healthz", "/api/v1/stats"])
def test_a_request_that_is_over_leaves_nothing_behind(handler, path, service, owner, monkeypatch):
    monkeypatch.setitem(service.app.view_functions, f"GET {path}", handler)
    with suppress(SystemExit):
        service.app.test_client().get(path, headers={"Authorization": f"Bearer {owner.key}"})
    assert not has_request_context() and not has_app_context()
    with pytest.raises(LookupError):
        current()
