"""Flask without what nothing here uses: signals, hooks, blueprints, sessions of programs.

They took a third of the instructions of a small request. `request`, `session`, `current_app`, error handlers, pages
and the test client work as they do in Flask. Must not know any route.
"""

from typing import Any

from flask import Flask, Request
from flask.ctx import AppContext, RequestContext
from flask.globals import _cv_app, _cv_request
from flask.sessions import NullSession, SessionMixin
from werkzeug._internal import _wsgi_decoding_dance
from werkzeug.datastructures import EnvironHeaders, Headers
from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter
from werkzeug.utils import cached_property

from web import context
from web.json_answers import CompactJson, JsonAnswer
from web.routing import MatchedRule, RouteMap, adapter, host


class LeanRequest(Request):
    """Flask's request; what few handlers read is made when it is read."""

    server = None  # `host` is known without it

    def __init__(self, environ: Any) -> None:
        path = environ.get("PATH_INFO", "")
        self.environ = environ
        self.method = environ["REQUEST_METHOD"].upper()
        self.scheme = environ["wsgi.url_scheme"]
        root = environ.get("SCRIPT_NAME")
        self.root_path = _wsgi_decoding_dance(root).rstrip("/") if root else ""
        self.path = "/" + (path if path.isascii() else _wsgi_decoding_dance(path)).lstrip("/")
        self.remote_addr = environ.get("REMOTE_ADDR")
        self.shallow = False

    @cached_property
    def headers(self) -> Headers:
        """The headers received with the request."""
        return EnvironHeaders(self.environ)

    @cached_property
    def query_string(self) -> bytes:
        """What follows the `?`."""
        return str(self.environ.get("QUERY_STRING", "")).encode("latin1")


class CurrentRequest(RequestContext):
    """What Flask's `request`, `session` and `current_app` stand for while a thread answers a request."""

    app: "LeanFlask"
    request: LeanRequest
    url_adapter: MapAdapter | None = None  # unless Werkzeug finds the route
    flashes = None
    _session: SessionMixin | None = None

    def __init__(self, app: "LeanFlask", environ: Any) -> None:
        self.app, self.request = app, LeanRequest(environ)
        try:
            self.request.host = host(environ)  # where Werkzeug keeps it
        except HTTPException as error:
            self.request.routing_exception = error

    def push(self) -> None:
        """Begin the request: open its session, and find its route."""
        app = self.app
        begun = context.begin(self.request, app.config["SETTINGS"])
        self._tokens = _cv_app.set(app.only_context), _cv_request.set(self), begun
        if self._session is None:
            session = app.session_interface.open_session(app, self.request)
            self._session = app.no_session if session is None else session
        if self.request.routing_exception is None:
            self.match_request()

    def match_request(self) -> None:
        """Find a simple route by its path, any other as Flask does."""
        sent, routes = self.request, self.app.url_map
        found = routes.find(sent.method, sent.environ.get("PATH_INFO", ""))
        if found:
            sent.url_rule, sent.view_args = found
        else:
            self.url_adapter = adapter(routes, sent)
            super().match_request()

    def pop(self, exc: BaseException | None = None) -> None:
        """End the request."""
        app_token, request_token, begun = self._tokens
        context.end(begun)
        _cv_request.reset(request_token)
        _cv_app.reset(app_token)
        if "files" in vars(self.request):  # of a form, which was parsed
            self.request.close()


class LeanFlask(Flask):
    """An application that answers requests by `dispatch_request` and `process_response`; it calls no hooks."""

    url_map: RouteMap
    url_map_class = RouteMap
    url_rule_class = MatchedRule
    json_provider_class = CompactJson

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.only_context, self.no_session = AppContext(self), NullSession()

    def request_context(self, environ: Any) -> RequestContext:
        """What a thread begins with when a request comes."""
        return CurrentRequest(self, environ)

    def full_dispatch_request(self) -> Any:
        """The answer to the request, which may be a refusal."""
        try:
            returned = self.dispatch_request()
        except Exception as error:
            returned = self.handle_user_exception(error)
        return self.process_response(self.make_response(returned))

    def make_response(self, rv: Any) -> Any:
        """The answer that a handler's return value stands for; where there are no sessions, it has no cookie."""
        value, *more = rv if isinstance(rv, tuple) else (rv,)
        if isinstance(value, dict) and _cv_request.get()._session is self.no_session:
            return JsonAnswer.of(value, *more)
        if isinstance(rv, JsonAnswer):
            return rv
        return super().make_response(rv)

    def process_response(self, response: Any) -> Any:
        """Send the session's cookie, if the address has sessions."""
        session = _cv_request.get()._session  # Flask's `session` would note that the answer depends on the cookie
        if session is not None and session is not self.no_session:
            self.session_interface.save_session(self, session, response)
        return response
