"""Flask's test client, which asks plain requests in half the time."""

import sys
from io import BytesIO
from urllib.parse import unquote, urlsplit

from flask.testing import FlaskClient
from flask.wrappers import Request
from werkzeug.test import run_wsgi_app
from werkzeug.wsgi import get_current_url

PLAIN = {"method", "json", "data", "headers", "environ_overrides"}


class Client(FlaskClient):
    """What is sent and what comes back are the same as Flask's (tests/test_client.py)."""

    def _request_from_builder_args(self, args, kwargs):
        if not is_plain(*args, **kwargs):
            return super()._request_from_builder_args(args, kwargs)
        if kwargs.get("json") is not None:
            kwargs["data"] = self.application.json.dumps(kwargs["json"])
        environ = environ_of(*args, **kwargs)
        return Request({**self._copy_environ({}), **environ, **(kwargs.get("environ_overrides") or {})})

    def run_wsgi_app(self, environ, buffered=False):
        if self._cookies:
            return super().run_wsgi_app(environ, buffered)
        environ.pop("HTTP_COOKIE", None)  # a cookie is sent by `set_cookie` alone
        answer = run_wsgi_app(self.application, environ, buffered)
        if cookies := answer[2].getlist("Set-Cookie"):
            url = urlsplit(get_current_url(environ))
            self._update_cookies_from_response(url.hostname or "localhost", url.path, cookies)
        return answer


def is_plain(path, **arguments):
    """Whether this is a request whose environment `environ_of` knows."""
    data, headers = arguments.get("data"), arguments.get("headers") or {}
    return (
        arguments.keys() <= PLAIN
        and path.isascii()
        and path.isprintable()
        and path[:1] == "/" != path[1:2]
        and "#" not in path
        and path[-1] != "?"
        and (data is None or (arguments.get("json") is None and isinstance(data, str | bytes) and data))
        and isinstance(headers, dict)
        and all(isinstance(value, str) and value.isprintable() for value in headers.values())
        and len({name.lower() for name in headers} - {"content-length", "host"}) == len(headers)
    )


def environ_of(path, method="GET", json=None, data=None, headers=None, **_):
    """The environment of a request as WSGI has it."""
    where, _, query = path.partition("?")
    sent = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(where).encode().decode("latin1"),
        "QUERY_STRING": query,
        "REQUEST_URI": path,
        "RAW_URI": path,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "HTTP_HOST": "localhost",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if json is not None:
        sent["CONTENT_TYPE"] = "application/json"
    body = data.encode() if isinstance(data, str) else data or b""
    if body:
        sent["CONTENT_LENGTH"] = str(len(body))
    sent["wsgi.input"] = BytesIO(body)
    for name, value in (headers or {}).items():
        key = name.upper().replace("-", "_")
        sent[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
    return sent
