"""The guards, named by credential: each finds out who is asking, or refuses. Must not know handlers."""

import re
import secrets
from functools import partial
from typing import Any, NoReturn
from urllib.parse import urlencode

import flask
from flask import Flask, Request, flash, redirect, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from itsdangerous import URLSafeSerializer
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.wrappers import Response

from core import accounts, alerts, api_keys, proxies, subscriptions
from models import Account, ApiKey, Device, sha256_of
from process import clock
from store import heartbeats
from store.heartbeats import owner_of
from store.senders import Caller, find_caller, find_webhook
from web import rate_limits, request_body
from web.context import current, request, signed_in_account
from wire.errors import Refused, existing
from wire.gotify import error_body as gotify_errors
from wire.ntfy import NtfyRefused, authorization, user_and_password
from wire.ntfy import error_body as ntfy_errors

HOME = "/app/"
SIGN_OUT = "/app/logout"
NOT_SAVED = "You were signed out, so your last change was not saved. Sign in and try again."
MAX_TOPICS = 20  # in one request
# Parts of a User-Agent, most specific first: most browsers and systems name others, too. The first match counts.
BROWSERS = {
    **{"Edg": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "FxiOS/": "Firefox"},
    **{"CriOS/": "Chrome", "Chrome/": "Chrome", "Safari/": "Safari"},
}
SYSTEMS = ("iPhone", "iPad", "Android", "Macintosh", "Windows", "Linux")
API_KEY = re.compile(r"(?i:bearer) +(sk_test_[0-9a-f]{48})", re.ASCII)
KEY_OF_OTHERS = re.compile(r"(?:tk_)?(sk_test_[0-9a-f]{48})", re.ASCII)  # some of ntfy's clients insist on tk_
PING_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
PING_KEY = re.compile(rf"[0-9A-Za-z]{{{accounts.PING_KEY_CHARACTERS}}}", re.ASCII)
BEARER = re.compile(r"bearer +([!-~]+)", re.IGNORECASE | re.ASCII)


def _credential(form: re.Pattern[str]) -> str | None:
    """The credential in `Authorization: Bearer`, if it has that form."""
    match = form.fullmatch(current().environ.get("HTTP_AUTHORIZATION", ""))
    return match[1] if match else None


def api_key() -> None:
    """`Authorization: Bearer <API_KEY>` names the caller; looked up each time, so that revoking works at once."""
    _admit_key(_credential(API_KEY))


def ntfy_key() -> None:
    """An API key as ntfy's clients send a token: `Authorization: Bearer` or `Basic`, or in `?auth=`."""
    key = sent_to_ntfy()
    if key is None and request.path == "/message" and ("token" in request.args or "X-Gotify-Key" in request.headers):
        current().errors = gotify_errors
        raise Refused(404, "Gotify's addresses begin with /gotify here: send to /gotify/message.")
    _admit_key(key)


def sent_to_ntfy() -> str | None:
    """The API key that a client of ntfy sent, if it has the form of one: as Basic's password, or else as its user."""
    query = request.args.get("auth") or request.args.get("authorization")
    value = authorization(query) if query else current().environ.get("HTTP_AUTHORIZATION", "")
    bearer = BEARER.fullmatch(value.strip())
    user, password = user_and_password(value)
    return key_among(bearer[1] if bearer else "", password, user)


def gotify_key() -> None:
    """An API key as Gotify's clients send a token: `?token=`, `X-Gotify-Key` or `Bearer`."""
    header = request.headers.get("X-Gotify-Key", "")
    _admit_key(key_among(request.args.get("token", ""), header, _credential(BEARER) or ""))


def key_among(*sent: str) -> str | None:
    """The first that has the form in which ntfy's and Gotify's clients send an API key, without its `tk_`."""
    return next((match[1] for text in sent if (match := KEY_OF_OTHERS.fullmatch(text))), None)


def _admit_key(key: str | None) -> None:
    known = current()
    known.caller = caller = _caller(key)
    known.confirm = partial(_caller, key)
    ApiKey.mark_used(caller.key_seq, clock.now_ms())


def _caller(key: str | None) -> Caller:
    caller = find_caller(sha256_of(key), clock.now_ms()) if key else None
    if caller is None:
        raise Refused(401)
    return caller


def check_scope(scopes: frozenset[str]) -> None:
    """`Refused` (404; 403 at the addresses of ntfy and Gotify) for a key whose scope is not among these."""
    known = current()
    caller = getattr(known, "caller", None)  # a topic of a device needs no key
    if caller and caller.scope not in scopes:
        status = 403 if known.errors in (ntfy_errors, gotify_errors) else 404
        raise Refused(status, api_keys.NOT_ALLOWED[caller.scope])


def device_token() -> None:
    """`Authorization: Bearer` with the token of a browser's service worker names the device."""
    current().device = _device()
    current().confirm = _device
    request_body.check_size(request_body.MAX_VISITOR_FORM_BYTES)


def _device() -> Device:
    token = _credential(BEARER)
    device = Device.with_resync_token(sha256_of(token)) if token else None
    if device is None:
        raise Refused(401, "No device has this token: open Pocketbell there and sign in.")
    return device


def button_token() -> None:
    """The token of a button, in the path, is the credential; 60 requests a minute per sender. The body is ignored."""
    rate_limits.count(rate_limits.BUTTONS, sender())
    request_body.check_size(request_body.MAX_VISITOR_FORM_BYTES)


def metrics_token() -> None:
    """`Authorization: Bearer` with `METRICS_TOKEN`; without that setting the address does not exist."""
    request_body.check_size()
    token = existing(current().settings.metrics_token)
    if not secrets.compare_digest(_credential(BEARER) or "", token):
        raise Refused(401, "This address takes Authorization: Bearer with the setting METRICS_TOKEN.")


def short_code() -> None:
    """The code in the path names the webhook, if it leads to one; a malformed code is not looked up."""
    known = current()
    code = known.variables.get("short_code", "").removesuffix("/")
    known.webhook = find_webhook(code) if alerts.SHORT_CODE.fullmatch(code) else None


def malformed_code() -> None:
    """Treat an address that matches no route as an unknown code; one called with a wrong method stays a 405."""
    if not isinstance(flask.request.routing_exception, MethodNotAllowed):
        refuse_unknown()


def refuse_unknown() -> NoReturn:
    """`Refused` (404) for an unknown code or ping id; counts against its sender (429 beyond the limit)."""
    rate_limits.count(rate_limits.UNKNOWN_CODES, sender())
    raise Refused(404)


def ping_id() -> None:
    """The UUID in the path names the heartbeat, a ping key its account; what has neither form is not looked up."""
    known = current()
    sent = known.variables.get("ping_id", "")
    if PING_ID.fullmatch(sent.lower()):
        known.beat = heartbeats.pinged(sent.lower())
    elif PING_KEY.fullmatch(sent):
        known.ping_owner = owner_of(sent)


def topic() -> None:
    """The topics in the path: those that are a device's are kept; 403 if none is, and 429 after too many such.

    With a key any topic will do: one that never has a message. A device's own topic passes whoever guessed from the
    same address: a household often shares one.
    """
    names = current().variables.get("topics", "").split(",")
    if len(names) > MAX_TOPICS:
        raise NtfyRefused(40009, f"invalid request: more than {MAX_TOPICS} topics")
    current().topics = subscriptions.known(names)
    if current().topics:
        return
    key = sent_to_ntfy()
    try:
        if key is None:
            raise NtfyRefused(40301, "forbidden")
        _admit_key(key)
    except Refused:
        rate_limits.count(rate_limits.UNKNOWN_TOPICS, sender())
        raise
    rate_limits.rest()


OF_KEYS = (api_key, ntfy_key, gotify_key, topic)  # guards that admit API keys


def sender() -> str:
    """The key under which a client's requests are counted."""
    return proxies.sender(*_peer_and_forwarded_for())


def client_address() -> str:
    """The client's address, for people to read."""
    return str(proxies.client(*_peer_and_forwarded_for()) or "an unknown address")


def _peer_and_forwarded_for() -> tuple[str, str]:
    environ = current().environ
    return environ.get("REMOTE_ADDR", ""), environ.get("HTTP_X_FORWARDED_FOR", "")


def origin() -> str:
    """The origin of this service as its client sees it; what it listens on if `Host` holds no address."""
    settings = current().settings
    try:
        return settings.base_url or (request.host_url.rstrip("/") if request.host else settings.local_url)
    except ValueError:  # Werkzeug takes "[::::1]" for a host, but makes no address of it
        return settings.local_url


def visitor() -> None:
    """No credential; a form must be small and pass the CSRF check."""
    request_body.check_form(request_body.MAX_VISITOR_FORM_BYTES)
    _check_form()


def phone_code() -> None:
    """The code, in path or form, is the credential; 30 requests in 15 minutes per sender."""
    rate_limits.count(rate_limits.PHONE_CODES, sender())
    visitor()


def signed_in() -> Response | None:
    """A signed-in owner, whose account is kept. Others are sent to the sign-in page, and back again afterwards."""
    owner_or_stranger()
    account = signed_in_account()
    request_body.check_form(request_body.MAX_OWNER_FORM_BYTES if account else request_body.MAX_VISITOR_FORM_BYTES)
    if account and request.method == "POST":  # reading the form may have taken seconds: the session may have ended
        account = session_account()
    if account is None:
        back = request.full_path.rstrip("?") if request.method == "GET" else ""
        if request.method == "POST" and request.path != SIGN_OUT:
            back = _lost_form()
        return redirect("/app/login" + (f"?{urlencode({'next': back})}" if back not in ("", HOME) else ""), 303)
    _check_form()
    current().confirm = _confirm_session
    return None


def _lost_form() -> str:
    """Have the sign-in page say that our form was not saved; returns the page that it stands on, if that is known.

    A form of another site comes without the cookie, so that saying anything would sign its owner out.
    """
    origin = request.headers.get("Origin")
    if not origin or origin not in _our_origins():
        return ""
    flash(NOT_SAVED, "warning")
    referrer = request.headers.get("Referer", "")
    return referrer.removeprefix(origin) if referrer.startswith(f"{origin}/") else ""


def administrator() -> Response | None:
    """A signed-in administrator; to all other accounts these pages do not exist."""
    answer = signed_in()
    if answer is None and not current().account.is_administrator:
        raise Refused(404)
    return answer


def owner_or_stranger() -> None:
    """No credential. Keeps the account of a signed-in owner, so that an error page has the navigation, too."""
    account = session_account()
    if account:
        current().account = account


def session_account() -> Account | None:
    """The account that this browser is signed in to."""
    token = session.get("token")
    return accounts.session_account(token, clock.now_ms()) if token else None


def _confirm_session() -> None:
    if session_account() is None:
        raise Refused(401, "You have been signed out. Sign in again.")


def begin_session(account: Account) -> None:
    """Start a fresh session, and mark this browser as known."""
    end_session()
    session.permanent = True
    session["token"] = accounts.start_session(account, browser_name(), clock.now_ms())
    session["csrf"] = secrets.token_urlsafe(16)
    session["known"] = {"password": accounts.password_mark(account.email), "browser": secrets.token_urlsafe(16)}


def end_session() -> None:
    """Sign the browser out; it stays marked as known."""
    token, known = session.get("token", ""), session.get("known")
    session.clear()  # first: deleting the row may fail on a full disk
    if known:
        session.permanent, session["known"] = True, known
    accounts.end_session(token)


def known_browser(password_mark: str) -> str | None:
    """The key under which to count a known browser's wrong passwords; None if it never knew this password."""
    known = session.get("known")
    return known["browser"] if known and known["password"] == password_mark else None


def session_token() -> str:
    """The token of the browser's session, which only its cookie holds."""
    return str(session.get("token", ""))


def browser_name() -> str:
    """The names of the request's browser and system, as far as they say."""
    agent = request.headers.get("User-Agent", "")
    browser = next((name for mark, name in BROWSERS.items() if mark in agent), "A browser")
    system = next((name for name in SYSTEMS if name in agent), "").replace("Macintosh", "Mac")
    return f"{browser} on {system}" if system else browser


def _check_form() -> None:
    """The CSRF check: refuse, before parsing it, a form from another origin or without the session's token."""
    expected = session.get("csrf", "")
    if request.method != "POST":
        if not expected:
            session["csrf"] = secrets.token_urlsafe(16)
        return
    is_ours = bool(expected) and request.headers.get("Origin") in (None, *_our_origins())
    if is_ours:
        sent = request.headers.get("X-CSRF-Token") or request.form.get("csrf", "")
        is_ours = secrets.compare_digest(sent.encode(), expected.encode())
    if not is_ours:
        raise Refused(400, "This form has expired or came from another site. Open the page again and try again.")


def _our_origins() -> tuple[str | None, ...]:
    """The origins from which our own pages may send forms."""
    return f"https://{request.host}", f"http://{request.host}", current().settings.base_url


class Undated(URLSafeSerializer):
    """Signs without a timestamp, so that a clock set back signs nobody out. The database has the sessions' expiry."""

    def loads(self, s: Any, salt: Any = None, **options: Any) -> Any:
        """The signed value, without a maximum age."""
        return super().loads(s)


class PageSessions(SecureCookieSessionInterface):
    """Flask's signed cookie, for pages only; bound to the host, and to https if the page came over https."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """The session of a page; none for every other address."""
        is_page = request.path.startswith("/app/") and not request.path.startswith(("/app/static/", "/app/sw.js"))
        return super().open_session(app, request) if is_page else None

    def should_set_cookie(self, app: Flask, session: SessionMixin) -> bool:
        """Only a signed-in owner's is renewed: an ended session's could replace one that began meanwhile."""
        return session.modified or (session.permanent and signed_in_account() is not None)

    def get_signing_serializer(self, app: Flask) -> Any:
        """The serializer that signs the cookie."""
        return Undated(app.secret_key or "", salt=self.salt, serializer=self.serializer)

    def get_cookie_name(self, app: Flask) -> str:
        """Only this very host can set a `__Host-` cookie, and only over https."""
        return "__Host-pocketbell" if self.get_cookie_secure(app) else "pocketbell"

    def get_cookie_secure(self, app: Flask) -> bool:
        """A cookie that was set over https is sent over https only."""
        return flask.request.is_secure
