"""The shape of every error: by route, and where there is none by address, method and what the client reads."""

import itertools

import pytest

import app
from tests.support.rows import each
from tests.support.service import METRICS_TOKEN

KEYS = {
    "rest": {"ok", "error", "code", "statusCode"},
    "metrics": {"error"},
    "mcp": {"jsonrpc", "id", "error"},
    "ntfy": {"code", "http", "error"},
    "gotify": {"error", "errorCode", "errorDescription"},
}
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SCRIPT = BROWSER | {"Content-Type": "application/json"}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"]
WRITES = METHODS[1:]
NOWHERE = [
    *("/api", "/api/v1", "/api/v2/stats", "/api/v1/", "/api/v1/x", "/api/v1/%0a", "/api/webhooks", "/mcp/x"),
    *("/api/webhooks/custom/x", "/p", "/p/", "/p//x", "/ping", "/ping/x/a/b/c", "/a", "/healthz/x", "/metrics/x"),
    *("/back.ups", "/größe", "/favicon.ico", "/gotify", "/%61pi", f"/{'t' * 65}", "/openapi.json/x", "/a%00"),
    *("/api/v1/stats/", "/api/v1/stats/more", "/api/v1//stats", "/api/v1/Stats", "/api/v1/%ff", "/api/v1/😀"),
]
UNKNOWN_TO_REST = [path for path in NOWHERE if path.startswith("/api/v1/")]
ONLY_READ = ["/api/v1/stats", "/docs", "/openapi.json", "/healthz", "/livez", "/metrics", "/app"]

# Path, methods, and what a program with a key is answered; then a browser, a page's script, and a program once
# COMPATIBILITY is off: None for the same.
ADDRESSES = [
    *((path, METHODS, "404 rest", None, None, None) for path in NOWHERE),
    *((path, WRITES, "405 rest", None, None, None) for path in ONLY_READ),
    ("/api/v1/notifications/send", ["GET", "PUT"], "405 rest", None, None, None),
    ("/api/v1/notifications/send", ["POST"], "400 rest", None, None, None),
    ("/api/webhooks/custom", ["GET", "DELETE"], "405 metrics", None, None, None),
    ("/api/webhooks/custom", ["POST"], "400 metrics", None, None, None),
    ("/mcp", ["GET", "DELETE"], "405 rest", None, None, None),
    ("/mcp", ["POST"], "400 mcp", None, None, None),
    ("/p/abcdefg", ["GET", "POST", "PUT"], "404 rest", None, None, None),
    ("/p/abcdefg", ["PATCH", "DELETE", "OPTIONS", "BREW"], "405 rest", None, None, None),
    ("/p/CODE", ["GET"], "400 rest", "400 page", "400 page", None),
    ("/p/CODE?x=1&payload={", ["GET"], "400 rest", None, None, None),
    ("/p/CODE", ["POST", "PUT"], "400 rest", None, None, None),
    ("/p/CODE", ["PATCH", "DELETE", "OPTIONS", "BREW"], "405 rest", None, None, None),
    ("/ping/x", ["GET", "POST"], "404 rest", None, None, None),
    ("/ping/x/fail", ["PUT", "DELETE", "OPTIONS", "BREW"], "405 rest", None, None, None),
    ("/a/x", ["GET", "POST"], "404 rest", "404 page", "404 page", None),
    ("/a/x", ["PUT", "DELETE", "OPTIONS", "BREW"], "405 rest", "405 page", "405 page", None),
    *((path, ["GET"], "404 rest", "404 page", "404 page", None) for path in ("/docs/x", "/docs/pictures/x.png")),
    ("/docs/x/y", METHODS, "404 rest", "404 page", "404 page", None),
    ("/docs/api", WRITES, "405 rest", "405 page", "405 page", None),
    ("/metrics", ["GET"], "401 rest", None, None, None),
    *((path, METHODS, "404 page", None, "404 rest", None) for path in ("/app/x", "/app//keys", "/app/static/")),
    ("/app/", WRITES, "405 page", None, "405 rest", None),
    ("/app/keys", ["PUT", "DELETE", "OPTIONS", "BREW"], "405 page", None, "405 rest", None),
    ("/app/login", ["POST"], "400 page", None, "400 rest", None),
    ("/app/setup/x", ["GET"], "404 page", None, "404 rest", None),
    ("/app/devices/resync", ["POST"], "401 page", None, "401 rest", None),
    ("/app/static/no.js", ["GET"], "404 page", None, "404 rest", None),
    ("/app/static/app.css", ["POST", "PUT"], "405 page", None, "405 rest", None),
    ("/", ["POST", "PUT"], "400 ntfy", None, None, "404 rest"),
    ("/", ["PATCH", "DELETE", "BREW"], "405 rest", None, None, None),
    ("/", ["OPTIONS"], "204", None, None, "405 rest"),
    ("/gotify/x", METHODS, "404 gotify", None, None, "404 rest"),
    ("/gotify/message", ["GET", "PUT", "OPTIONS"], "405 gotify", None, None, "404 rest"),
    ("/gotify/message", ["POST"], "400 gotify", None, None, "404 rest"),
    ("/gotify/version", WRITES, "405 gotify", None, None, "404 rest"),
    *((path, ["GET", "POST", "BREW"], "404 ntfy", None, None, "404 rest") for path in ("/v1", "/v1/x", "/v1/a/b")),
    ("/v1/account", ["POST", "PUT", "DELETE", "BREW"], "405 ntfy", None, None, "404 rest"),
    ("/v1/account", ["OPTIONS"], "204", None, None, "404 rest"),
    *((path, ["GET"], "404 rest", None, None, None) for path in ("/backups", "/backups/", "/backups/a/b", "/a,b")),
    *((path, ["PATCH", "BREW"], "404 ntfy", None, None, "404 rest") for path in ("/backups", "/backups/x", "/a,b/x")),
    *((path, ["POST", "DELETE"], "404 ntfy", None, None, "404 rest") for path in ("/backups/a/b/c", "/backups/")),
    *((path, ["OPTIONS"], "204", None, None, "404 rest") for path in ("/backups", "/backups/x/clear", "/a,b/json")),
    ("/backups?priority=x", ["POST", "PUT"], "400 ntfy", None, None, "404 rest"),
    ("/backups/json?since=x", ["GET"], "400 ntfy", None, None, "404 rest"),
    ("/message?token=x", ["POST"], "200", None, None, "404 rest"),  # with a key, a topic like any other
]
WITHOUT_KEY = [
    *((path, METHODS, "401 rest") for path in ("/mcp", "/api/v1/stats", *UNKNOWN_TO_REST)),
    ("/api/webhooks/custom", METHODS, "401 metrics"),
    *((path, ["POST", "PUT"], "401 ntfy") for path in ("/", "/backups", "/backups/x")),
    *((path, ["GET"], "401 ntfy") for path in ("/v1/account", "/backups/publish")),
    *((f"/backups/{name}", ["GET"], "403 ntfy") for name in ("auth", "json", "sse", "raw", "ws")),
    ("/gotify/message", ["POST"], "401 gotify"),
    ("/message?token=x", ["POST"], "404 gotify"),
]


def outcome(answer):
    """The status and the name of the shape."""
    if answer.status_code < 400:
        return str(answer.status_code)
    kind = answer.content_type
    if kind == "text/html; charset=utf-8":
        return f"{answer.status_code} page"
    assert kind == "application/json"
    return f"{answer.status_code} {next(name for name, keys in KEYS.items() if keys == answer.json.keys())}"


@pytest.fixture(params=["on", "off"])
def caller(request, make_service, moved_clock, monkeypatch):
    """A caller without limits, and the setting COMPATIBILITY."""
    service = make_service(COMPATIBILITY=request.param, METRICS_TOKEN=METRICS_TOKEN)
    service.account()
    monkeypatch.setattr("web.rate_limits.count", lambda *_: None)
    caller, code = service.caller(), service.alert().code

    def answer(method, path, headers, environ=None):
        moved_clock.advance(61)
        sent = {"method": method, "data": b"", "headers": headers, "environ_overrides": environ}
        return outcome(service.client.open(path.replace("CODE", code), **sent))

    return answer, {"Authorization": f"Bearer {caller.key}"}, request.param == "on"


@each("path, methods, program, browser, script, off", ADDRESSES)
def test_a_refusal_has_the_shape_of_its_address(caller, path, methods, program, browser, script, off):
    answer, key, is_on = caller
    shapes = [({}, program), (BROWSER, browser or program), (SCRIPT, script or program)]
    for method, (headers, shape) in zip([methods[0]] * 2 + methods, itertools.cycle(shapes), strict=False):
        assert answer(method, path, key | headers) == (shape if is_on else off or shape), (method, headers)


@each("path, methods, expected", WITHOUT_KEY)
def test_a_stranger_is_refused_in_the_shape_of_the_address(caller, path, methods, expected):
    answer, _, is_on = caller
    for method in methods:
        is_there = is_on or expected.split()[1] not in ("ntfy", "gotify")
        assert answer(method, path, {}) == (expected if is_there else "404 rest"), method


FAULTS = [
    ("GET", "/api/v1/stats", "rest"),
    ("POST", "/api/webhooks/custom", "metrics"),
    ("POST", "/mcp", "mcp"),
    ("POST", "/p/CODE", "rest"),
    ("GET", "/app/keys", "page"),
    ("GET", "/a/x", "rest"),
    ("GET", "/docs", "rest"),
    ("POST", "/", "ntfy"),
    ("GET", "/backups/json", "ntfy"),
    ("POST", "/gotify/message", "gotify"),
]


@pytest.mark.parametrize("caller", ["on"], indirect=True)
@each("method, path, shape", FAULTS)
def test_a_fault_of_the_service_has_the_shape_of_its_route(caller, monkeypatch, method, path, shape):
    monkeypatch.setattr(app, "admit", lambda *_: 1 / 0)
    answer, key, _ = caller
    assert answer(method, path, key) == f"500 {shape}"


@pytest.mark.parametrize("caller", ["on"], indirect=True)
@each("method, path, shape", FAULTS)
def test_a_crowded_server_refuses_in_the_shape_of_the_route(caller, method, path, shape):
    answer, key, _ = caller
    assert answer(method, path, key, {"pocketbell.is_crowded": True}) == f"503 {shape}"


def test_an_accept_header_that_is_too_long_for_a_browser_is_answered_with_json(service):
    assert service.client.get("/i/x", headers={"Accept": "text/html," + "a/b," * 300}).is_json
