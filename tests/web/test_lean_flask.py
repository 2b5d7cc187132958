"""What `LeanFlask` leaves out changes no answer."""

from contextlib import suppress

import pytest
from flask import Flask, has_app_context, has_request_context

from app import app
from web.context import current
from web.json_answers import CompactJson, JsonAnswer


def test_a_route_without_variables_is_the_one_that_werkzeug_finds():
    fixed = app.url_map.fixed
    assert {rule.endpoint for rule in app.url_map.iter_rules() if not rule.arguments} == {
        rule.endpoint for rule in fixed.values()
    }
    adapter = app.url_map.bind("localhost")
    found = {(method, path): adapter.match(path, method, return_rule=True) for method, path in fixed}
    assert found == {place: (rule, {}) for place, rule in fixed.items()}


CODES = ["aB3xY9z", "send", "new", "not-one", "5a2f1c04-7d1e-4c55-9d0b-0d1b2c3e4f50"]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_a_route_with_one_variable_at_its_end_is_the_one_that_werkzeug_finds(method):
    adapter = app.url_map.bind("localhost")
    befores = {before for _, before in app.url_map.open_ended}
    assert {"/p", "/a", "/ping", "/api/v1/devices", "/app/alerts"} <= befores
    for path in (f"{before}/{code}" for before in befores for code in CODES):
        found = app.url_map.find(method, path)
        assert found is None or found == adapter.match(path, method, return_rule=True)
    assert app.url_map.find("POST", "/p/aB3xY9z")[1] == {"short_code": "aB3xY9z"}
    others = ("", "a/b", "aB3xY9z/", "a.b", "a b", "ä", "_")
    assert not any(app.url_map.find("POST", f"/p/{other}") for other in others)


@pytest.mark.parametrize("path", ["//api/v1/stats", "/api/v1/stats/", "/API/v1/stats", "/healthz/", "//healthz"])
def test_a_path_that_is_written_otherwise_is_left_to_werkzeug(path):
    with app.test_request_context("/x", environ_overrides={"PATH_INFO": path}) as context:
        adapter = context.url_adapter
        found = adapter.match(return_rule=True)[0] if adapter.test() else None
        assert context.request.url_rule is found


@pytest.mark.parametrize("more", [(), (201,), ({"A": "b"},), (503, {"A": "b", "C": "d"})])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_json_answer_is_the_one_that_flask_would_give(method, more):
    flask = Flask(__name__)
    flask.json = CompactJson(flask)
    value = {"ok": True, "text": "é \u2028 </script>", "number": 1.5, "none": None, "list": [1, {}]}
    environ = {"REQUEST_METHOD": method, "wsgi.url_scheme": "http", "SERVER_NAME": "localhost", "SERVER_PORT": "80"}
    with flask.test_request_context(method=method):
        expected = sent(flask.make_response((value, *more) if more else value), environ)
    assert sent(JsonAnswer.of(value, *more), environ) == expected


def sent(answer, environ):
    """What the server gets: status, headers and body."""
    head = []
    body = b"".join(answer(environ, lambda status, headers: head.extend([status, headers])))
    return [*head, body]


def test_no_hook_is_registered_since_none_would_be_called():
    hooks = (
        app.before_request_funcs,
        app.after_request_funcs,
        app.teardown_request_funcs,
        app.url_value_preprocessors,
    )
    assert not any(map(any, (registered.values() for registered in hooks)))
    assert not app.teardown_appcontext_funcs and not app.blueprints


def fault():
    """A handler that fails, or ends its thread."""
    raise SystemExit


@pytest.mark.parametrize("handler", [dict, lambda: 1 / 0, fault])
def test_a_request_that_is_over_leaves_nothing_behind(handler, service, monkeypatch):
    monkeypatch.setitem(service.app.view_functions, "GET /healthz", handler)
    with suppress(SystemExit):
        service.app.test_client().get("/healthz")
    assert not has_request_context() and not has_app_context()
    with pytest.raises(LookupError):
        current()
