"""The tests' client sends exactly what Flask's own sends."""

import pytest
from flask.testing import FlaskClient

from tests.support.client import Client, is_plain
from tests.support.service import app

PLAIN = [
    ("/a", {}),
    ("/a/%C3%A4%2f%zz%?x=%20y&z=+?b", {"method": "POST", "json": {"ä": "é"}}),
    (
        "/a",
        {"method": "PUT", "data": "ü", "headers": {"Content-Type": "text/plain", "X-Y-z": "1", "User-Agent": "é"}},
    ),
    ("/a:b@c/[]{}|\"<>\\^`'", {"data": b"\xff\x00", "json": None, "environ_overrides": {"REMOTE_ADDR": "192.0.2.1"}}),
    ("/a", {"method": "DELETE", "json": [], "headers": {"content-type": "application/x"}}),
    ("/a", {"json": {}, "headers": None, "environ_overrides": {"HTTP_USER_AGENT": "none"}}),
]
OTHERS = [
    ("/a?", {}),
    ("/ä", {}),
    ("//a", {}),
    ("http://example.org/a#b", {"base_url": "https://example.net"}),
    ("/a", {"data": {"a": "b"}, "method": "POST"}),
    ("/a", {"data": "", "query_string": "b=c"}),
    ("/a", {"data": b"b", "headers": {"Content-Length": "7", "Host": "example.com"}}),
    ("/a", {"headers": [("A", "b"), ("A", "c")], "content_type": "a/b"}),
    ("/a", {"headers": {"A": 1, "a": "b"}}),
]


@pytest.mark.parametrize(("path", "arguments"), PLAIN + OTHERS)
def test_a_request_is_the_same_as_flasks(path, arguments):
    environs = [
        kind(app)._request_from_builder_args((path,), dict(arguments)).environ for kind in (Client, FlaskClient)
    ]
    for environ in environs:
        environ["wsgi.input"] = environ["wsgi.input"].read()
        environ.pop("werkzeug.request", None)
    assert environs[0] == environs[1]


def test_plain_requests_are_known():
    assert [is_plain(path, **arguments) for path, arguments in PLAIN + OTHERS] == [True] * len(PLAIN) + [False] * len(
        OTHERS
    )


@pytest.mark.parametrize("kind", [Client, FlaskClient])
def test_a_cookie_is_kept_for_its_host_alone(kind):
    def answers(environ, start_response):
        start_response("200 OK", [("Set-Cookie", "a=b; Path=/")])
        return [environ.get("HTTP_COOKIE", "none").encode()]

    client = kind(app)
    client.application = answers
    answers.json = app.json
    told = [
        client.get("/", base_url=f"https://{host}.example.org", headers={"Cookie": "c=d"}).text for host in "aabb"
    ]
    assert told == ["none", "a=b", "none", "a=b"]
