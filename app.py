"""`create_app()` and `app`, the WSGI application: settings, routes with their guards and limits, headers, errors.

The table ROUTES is the whole HTTP surface. This module must not know queries or providers.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from random import getrandbits
from typing import Any

import flask
from flask import Flask, Request
from flask.json.provider import DefaultJSONProvider
from werkzeug.routing import MapAdapter

import cli
import config
import dashboard
import push
from core import (
    accounts,
    delivery,
    derived_tokens,
    health_ping,
    proxies,
    push_slots,
    sharing,
    storage,
    streams,
)
from core.server_secret import server_secret
from dashboard import refusals
from process import clock
from store import database, engine
from store.key_limits import FULL, READ, SEND
from web import (
    api_docs,
    context,
    definitions,
    doc_pages,
    followers,
    gotify,
    guards,
    heartbeats,
    mcp,
    metrics,
    mutes,
    ntfy,
    ntfy_topics,
    pictures,
    prometheus,
    rate_limits,
    request_body,
    responses,
    rest,
    webhooks,
)
from web.context import current
from web.door import Door, Found
from web.json_answers import JsonAnswer
from web.long_requests import check_crowd, takes_long
from web.routing import (
    Check,
    Errors,
    IdConverter,
    Route,
    TagConverter,
    TextConverter,
    Unknown,
    first_segments,
    topics_beside,
)
from wire.errors import metrics_body
from wire.gotify import error_body as gotify_errors
from wire.ntfy import error_body as ntfy_errors


def admit(guard: Check, quota: Check, scopes: frozenset[str] = frozenset(), takes_files: bool = False) -> Any:
    """Check the credential (401), then the rate limit (429), the key's scope (404), then the body's size (413).

    A response from the guard or the quota replaces the handler's. Routes with a guard but no quota leave the size to
    the guard, because the size that a page accepts depends on who is signed in.
    """
    answer = guard() if guard else None
    if quota and answer is None:
        answer = quota()
    if scopes:
        guards.check_scope(scopes)
    if answer is None and not takes_files and (quota or not guard):
        request_body.check_size()
    return answer


def rest_route(method: str, rule: str, handler: Callable[..., Any], scopes: frozenset[str], **more: Any) -> Route:
    """A REST route: it needs an API key of one of these scopes and counts against the key's rate limit."""
    return Route(method, f"/api/v1{rule}", handler, guards.api_key, rate_limits.rest, scopes=scopes, **more)


def page(method: str, rule: str, handler: Callable[..., Any], guard: Check = None) -> Route:
    """A page or form of the web app."""
    return Route(method, f"/app{rule}", handler, guard, errors=refusals.page)


def ntfy_routes(rule: str, handler: Callable[..., Any], *methods: str, takes_files: bool = False) -> Iterator[Route]:
    """Routes for ntfy's clients: they need an API key that may send and count against the key's rate limit."""
    return (
        Route(method, rule, handler, guards.ntfy_key, rate_limits.rest, ntfy_errors, SENDERS, takes_files)
        for method in methods
    )


# The scopes of the keys that may call a route.
OWNERS, SENDERS, READERS = frozenset({FULL}), frozenset({FULL, SEND}), frozenset({FULL, READ})
ALL_KEYS = SENDERS | READERS

CUSTOM_METRICS, ASSISTANTS = "/api/webhooks/custom", "/mcp"
FOR_METRICS = guards.api_key, rate_limits.custom_metrics, metrics_body


def is_for_programs(route: Route) -> bool:
    """Whether the door for programs serves it: the REST API and events."""
    return route.rule.startswith("/api/") or (route.method == "POST" and route.rule.startswith("/p/"))


ROUTES = (
    rest_route("POST", "/notifications/send", rest.send_notification, SENDERS, takes_files=True),
    rest_route("GET", "/notifications", rest.list_notifications, READERS),
    rest_route("GET", "/notifications/<id:notification_id>", rest.get_notification, ALL_KEYS),
    rest_route("DELETE", "/notifications/<id:notification_id>", rest.delete_notification, SENDERS),
    rest_route("POST", "/notifications/<id:notification_id>/acknowledge", rest.acknowledge_notification, SENDERS),
    rest_route("POST", "/notifications/<id:notification_id>/snooze", rest.snooze_notification, OWNERS),
    *(
        rest_route(method, rule, handler, READERS if method == "GET" else OWNERS)
        for method, rule, handler in (*definitions.operations(), *followers.operations())
    ),
    rest_route("GET", "/mutes", mutes.list_mutes, READERS),
    rest_route("POST", "/mutes", mutes.create_mute, OWNERS),
    rest_route("GET", "/mutes/<mute_id>", mutes.show_mute, READERS),
    rest_route("DELETE", "/mutes/<mute_id>", mutes.end_mute, OWNERS),
    rest_route("GET", "/watches", rest.list_watches, READERS),
    rest_route("GET", "/stats", rest.get_stats, READERS),
    rest_route("POST", "/api-keys/generate", rest.generate_key, OWNERS),
    rest_route("GET", "/api-keys", rest.list_keys, READERS),
    rest_route("DELETE", "/api-keys/<key_id>", rest.revoke_key, OWNERS),
    rest_route("POST", "/devices", rest.add_device, OWNERS),
    rest_route("GET", "/devices", rest.list_devices, READERS),
    rest_route("PATCH", "/devices/<device_id>", rest.change_device, OWNERS),
    rest_route("DELETE", "/devices/<device_id>", rest.remove_device, OWNERS),
    rest_route("GET", "/metrics", metrics.list_metrics, READERS),
    rest_route("GET", "/metrics/<text:project>/<text:metric>", metrics.show_metric, READERS),
    *(
        Route(
            method,
            "/p/<path:short_code>",
            webhooks.receive_event,
            guards.short_code,
            webhooks.admit_event,
            refusals.event,
        )
        for method in ("GET", "POST", "PUT")  # GET stands for HEAD, too
    ),
    *(
        Route(method, f"/ping/<ping_id>{rule}", heartbeats.receive_ping, guards.ping_id, heartbeats.admit_ping)
        for method in ("GET", "POST")  # GET stands for HEAD, too
        for rule in ("", "/", "/<signal>", "/<slug>/<signal>")
    ),
    Route("POST", CUSTOM_METRICS, webhooks.store_metrics, *FOR_METRICS, SENDERS),
    Route("POST", ASSISTANTS, mcp.answer_message, guards.api_key, rate_limits.rest, mcp.error_body, ALL_KEYS),
    Route("GET", "/a/<path:token>", dashboard.links.show_button, guards.button_token, errors=refusals.wanted),
    Route("POST", "/a/<path:token>", dashboard.links.press_button, guards.button_token, errors=refusals.wanted),
    Route("GET", "/e/<path:token>", dashboard.links.show_address, guards.button_token, errors=refusals.wanted),
    Route("POST", "/e/<path:token>", dashboard.links.press_address, guards.button_token, errors=refusals.wanted),
    Route("GET", "/i/<path:token>", pictures.show_picture, errors=refusals.wanted),
    Route("GET", "/healthz", rest.healthz),
    Route("GET", "/livez", rest.livez),
    Route("GET", "/metrics", prometheus.show_figures, guards.metrics_token),
    Route("GET", "/openapi.json", api_docs.show_json),
    Route("GET", "/docs", api_docs.show_page),
    Route("GET", "/docs/<name>", doc_pages.show_page, errors=refusals.wanted),
    Route("GET", "/docs/pictures/<name>", doc_pages.show_picture, errors=refusals.wanted),
    Route("GET", "/", dashboard.home.enter),
    Route("GET", "/app", dashboard.home.enter),
    page("GET", "/sw.js", dashboard.devices.service_worker),
    page("GET", "/setup/<token>", dashboard.signin.show_setup, guards.visitor),
    page("POST", "/setup/<token>", dashboard.signin.finish_setup, guards.visitor),
    page("GET", "/login", dashboard.signin.show_sign_in, guards.visitor),
    page("POST", "/login", dashboard.signin.sign_in, guards.visitor),
    page("GET", "/forgot", dashboard.signin.show_forgot, guards.visitor),
    page("POST", "/forgot", dashboard.signin.send_link, guards.visitor),
    page("GET", "/phone", dashboard.phone.show_phone, guards.visitor),
    page("POST", "/phone", dashboard.phone.send_typed_code, guards.phone_code),
    page("GET", "/phone/<code>", dashboard.phone.show_link, guards.phone_code),
    page("POST", "/phone/<code>", dashboard.phone.send_code, guards.phone_code),
    page("POST", "/devices/resync", dashboard.devices.resync_device, guards.device_token),
    *(page(*operation, guards.signed_in) for operation in dashboard.OWNERS),
    *(page(*operation, guards.administrator) for operation in dashboard.ADMINISTRATORS),
)

# Beside the specified surface: a program that can send to ntfy or Gotify needs only another host.
# `COMPATIBILITY=off` removes them.
COMPATIBLE_ROUTES = (
    *ntfy_routes("/", ntfy.publish_json, "POST", "PUT"),
    *ntfy_routes("/<topic:topic>", ntfy.publish, "POST", "PUT", takes_files=True),
    *ntfy_routes("/<topic:topic>/<tag:sequence_id>", ntfy.publish, "POST", "PUT", takes_files=True),
    *ntfy_routes("/<topic:topic>/<tag:sequence_id>", ntfy.delete, "DELETE"),
    *ntfy_routes("/<topic:topic>/<tag:sequence_id>/clear", ntfy.clear, "PUT"),
    *ntfy_routes("/<topic:topic>/<tag:sequence_id>/read", ntfy.clear, "PUT"),
    *ntfy_routes("/<topic:topic>/publish", ntfy.publish_by_get, "GET"),
    *ntfy_routes("/<topic:topic>/send", ntfy.publish_by_get, "GET"),
    *ntfy_routes("/<topic:topic>/trigger", ntfy.publish_by_get, "GET"),
    *ntfy_routes("/v1/account", ntfy.show_account, "GET"),
    *ntfy_routes("/v1/account/token", ntfy.show_token, "POST"),
    Route("GET", "/v1/health", ntfy.show_health, errors=ntfy_errors),
    *(
        Route("GET", f"/<topics:topics>/{name}", handler, guards.topic, errors=ntfy_errors, scopes=OWNERS)
        for name, handler in ntfy_topics.OPERATIONS.items()
    ),
    Route("POST", "/gotify/message", gotify.publish, guards.gotify_key, rate_limits.rest, gotify_errors, SENDERS),
    Route("GET", "/gotify/version", gotify.show_version, errors=gotify_errors),
    Route("GET", "/gotify/health", gotify.show_health, errors=gotify_errors),
)
ROUTE_OF = {route.endpoint: route for route in ROUTES + COMPATIBLE_ROUTES}
OWN_SEGMENTS, COMPATIBLE_SEGMENTS = first_segments(ROUTES), first_segments(COMPATIBLE_ROUTES)
TOPIC, TOPICS = topics_beside(OWN_SEGMENTS | COMPATIBLE_SEGMENTS)

# Addresses without a route for the method, by the first row that fits.
UNKNOWN = (
    Unknown(r"\S+ /api/v1/.*", guards.api_key, rate_limits.rest),
    Unknown(rf"\S+ {ASSISTANTS}", guards.api_key, rate_limits.rest),
    Unknown(rf"\S+ {CUSTOM_METRICS}", *FOR_METRICS),
    Unknown(r"\S+ /(?:p|ping)(?:/.*)?", guards.malformed_code),
    Unknown(r"\S+ /app/.*", guards.owner_or_stranger, errors=refusals.page),
    Unknown(r"\S+ /(?:a|e|i|docs)/.*", errors=refusals.wanted),
    Unknown(r"(?:POST|PUT) /", ntfy_topics.refuse_method),  # ntfy's, switched off
)
COMPATIBLE_UNKNOWN = (
    Unknown(r"\S+ /gotify/.*", errors=gotify_errors),
    Unknown(r"(?:OPTIONS /|\S+ /v1(?:/.*)?)", ntfy_topics.preflight, errors=ntfy_errors),
    Unknown(rf"(?:GET|HEAD) /{TOPICS.regex}(?:/.*)?", ntfy_topics.refuse_method),  # which a browser may have opened
    Unknown(rf"\S+ /{TOPICS.regex}(?:/.*)?", ntfy_topics.refuse_method, errors=ntfy_errors),
)


_opening = threading.Lock()


class Application(Flask):
    """The service, which opens its database with the first request, so that importing this module creates no file."""

    is_open = False
    door = Door(route for route in ROUTES if is_for_programs(route))
    streams = streams.hub  # gunicorn's worker ends them when it stops
    takes_long = staticmethod(takes_long)  # and asks this

    def open(self) -> None:
        """Open the database that the settings name, unless it is open already; create it if it is missing."""
        with _opening:
            if not self.is_open:
                open_service(self, self.config["SETTINGS"])

    def wsgi_app(self, environ: Any, start_response: Any) -> Any:
        """Answer a request; open the database first if the server has not (gunicorn.conf.py does)."""
        if not self.is_open:
            self.open()
        if database.is_shared():
            engine.go_beside()  # for PostgreSQL and Redis
        begun = context.begin(environ, self.config["SETTINGS"])
        try:
            found = self.door.find(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""))
            if found is None:
                return super().wsgi_app(environ, start_response)
            return responses.completed(self._answered(found))(environ, start_response)
        finally:
            context.end(begun)
            database.give_back()

    def _answered(self, found: Found) -> Any:
        """The response of guard, quota or handler, or to what they raise."""
        route, variables = found
        current().variables = variables
        try:
            returned = _admit(route)
            if returned is None:
                returned = self.view_functions[route.endpoint](**variables)
        except Exception as error:
            returned = refusals.answer(error)
        value, *more = returned if isinstance(returned, tuple) else (returned,)
        return JsonAnswer(value, *more) if isinstance(value, dict) else value

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """As Flask's, but an Upgrade header leads to the same routes: Werkzeug would look for WebSocket routes."""
        adapter = super().create_url_adapter(request)
        if adapter:
            adapter.websocket = False
        return adapter


def _admit(route: Route) -> Any:
    """Name the request for the log, and check it; a response replaces the handler's."""
    _begin(route.rule, route.errors)
    return admit(route.guard, route.quota, route.scopes, route.takes_files)


def _begin(rule: str, errors: Errors) -> None:
    known = current()
    known.errors, environ = errors, known.environ
    environ["pocketbell.route"] = rule
    environ["pocketbell.request"] = f"{getrandbits(64):016x}"
    if "HTTP_X_FORWARDED_FOR" in environ:
        proxies.note_peer(environ.get("REMOTE_ADDR", ""))
        environ["pocketbell.client"] = guards.client_address()
    check_crowd(environ)


def _admit_to_flask() -> Any:
    """Before Flask calls a handler: check the request, also one to an address without a row in ROUTES."""
    known, sent = current(), flask.request
    known.request = sent.environ["werkzeug.request"]
    route = ROUTE_OF.get(sent.url_rule.endpoint) if sent.url_rule else None
    if route:
        known.variables = sent.view_args or {}
        return _admit(route)
    rows = UNKNOWN + COMPATIBLE_UNKNOWN if known.settings.compatibility else UNKNOWN
    unknown = next((row for row in rows if row.fits(sent.method, sent.path)), Unknown(".*"))
    _begin(sent.url_rule.rule if sent.url_rule else "-", unknown.errors)
    return admit(unknown.guard, unknown.quota) if unknown.guard else None


def create_app(settings: config.Settings | None = None) -> Application:
    """The application for `settings` (by default the environment's). It does not open the database yet."""
    os.umask(0o077)
    app = Application(__name__, static_url_path="/app/static")
    app.config["SETTINGS"] = settings = settings or config.load()
    app.json = json = DefaultJSONProvider(app)
    json.compact, json.ensure_ascii, json.sort_keys = True, False, False
    app.jinja_env.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    dashboard.page.install(app)
    app.session_interface = guards.PageSessions()
    rate_limits.configure(app)
    _add_routes(app, ROUTES + COMPATIBLE_ROUTES if settings.compatibility else ROUTES)
    cli.add_commands(app, app.open)
    return app


def open_service(app: Application, settings: config.Settings) -> None:
    """Make the application serve `settings`, for the first time in this process."""
    app.config.update(
        SETTINGS=settings,
        MAX_CONTENT_LENGTH=settings.max_body_bytes,
        MAX_FORM_MEMORY_SIZE=request_body.MAX_OWNER_FORM_BYTES,
        SESSION_COOKIE_SAMESITE="Lax",
        PERMANENT_SESSION_LIFETIME=accounts.SESSION_LIFE_MS // 1000,
    )
    database.open_database(settings.database)
    app.config["SECRET_KEY"] = settings.secret_key or server_secret(settings.data_dir)
    clock.begin()
    push.configure(settings, delivery.vapid_key)
    push_slots.configure(settings.threads)
    health_ping.configure(settings.heartbeat_url)
    derived_tokens.configure(app.config["SECRET_KEY"])
    rest.configure(app.config["SECRET_KEY"])
    sharing.configure(settings)
    rate_limits.reset(settings.ingest_per_minute, sharing.redis())
    storage.configure(settings.account_megabytes)
    proxies.configure(settings.trusted_proxies)
    app.is_open = True


def _add_routes(app: Flask, routes: Iterable[Route]) -> None:
    app.url_map.merge_slashes = False
    app.url_map.converters.update(id=IdConverter, text=TextConverter, topic=TOPIC, topics=TOPICS, tag=TagConverter)
    for route in routes:
        if route.guard in guards.OF_KEYS and not route.scopes:
            raise ValueError(f"{route.endpoint} does not say which keys may call it")
        methods = [route.method]
        app.add_url_rule(route.rule, route.endpoint, route.handler, methods=methods, provide_automatic_options=False)
    app.before_request(_admit_to_flask)
    app.after_request(responses.completed)
    app.register_error_handler(Exception, refusals.answer)


app = create_app()
