"""The guards, named by credential (SPEC 5): each finds who is asking, or refuses. Must not know handlers."""

import re
import secrets
from typing import Any
from urllib.parse import urlencode

from flask import Flask, Request, current_app, g, redirect, request, session
from flask.globals import request_ctx
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from itsdangerous import URLSafeSerializer
from werkzeug.wrappers import Response

from core import accounts, alerts, proxies
from models import Account, Alert, ApiKey, Device, digest
from process import clock
from web import request_body
from wire.errors import Refused

HOME = "/app/"
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Macintosh", "Mac"),
    ("Windows", "Windows"),
    ("Linux", "Linux"),
)
DEVICE_TOKEN = re.compile(r"bearer +([A-Za-z0-9_-]{43})", re.IGNORECASE | re.ASCII)
METRICS_TOKEN = re.compile(r"bearer +([!-~]+)", re.IGNORECASE | re.ASCII)
API_KEY = re.compile(r"bearer +(sk_test_[0-9a-f]{48})", re.IGNORECASE | re.ASCII)


def _credential(form: re.Pattern[str]) -> str | None:
    """What `Authorization: Bearer` carries, if it is of that form."""
    match = form.fullmatch(request_ctx.request.environ.get("HTTP_AUTHORIZATION", ""))
    return match[1] if match else None


def api_key() -> None:
    """`Authorization: Bearer <API_KEY>` makes `g.caller`. Looked up each time, so that revoking works at once."""
    key = _credential(API_KEY)
    caller = ApiKey.find_caller(digest(key)) if key else None
    if caller is None:
        raise Refused(401)
    ApiKey.mark_used(caller.key_seq, clock.now_ms())
    g.caller = caller


def device_token() -> None:
    """`Authorization: Bearer` with the token that a browser's service worker has makes `g.device`."""
    token = _credential(DEVICE_TOKEN)
    device = Device.with_resync_token(digest(token)) if token else None
    if device is None:
        raise Refused(401, "No device has this token: open Pocketbell there and sign in.")
    request_body.settle(request_body.MAX_VISITOR_FORM_BYTES)
    g.device = device


def metrics_token() -> None:
    """`Authorization: Bearer` with `METRICS_TOKEN`; without that setting it is as if the address were not there."""
    request_body.settle()
    token = current_app.config["SETTINGS"].metrics_token
    if token is None:
        raise Refused(404)
    if not secrets.compare_digest(_credential(METRICS_TOKEN) or "", token):
        raise Refused(401, "This address takes Authorization: Bearer with the setting METRICS_TOKEN.")


def short_code() -> None:
    """The code in the path makes `g.webhook`, None when it leads nowhere; a malformed one is not looked up."""
    code = (request.view_args or {}).get("short_code", "")
    g.webhook = Alert.find_webhook(code) if alerts.SHORT_CODE.fullmatch(code) else None


def sender() -> str:
    """Whom to count: the client's address, of IPv6 its /64 (CONTRACT 1, FORWARDED_ALLOW_IPS)."""
    address = proxies.client(request.remote_addr or "", request.headers.get("X-Forwarded-For", ""))
    if address is None:
        return "unknown"
    return str(address) if address.version == 4 else f"{int(address) >> 64:x}/64"


def origin() -> str:
    """Where the service is, as who asks sees it."""
    return current_app.config["SETTINGS"].base_url or request.host_url.rstrip("/")


def visitor() -> None:
    """Anybody with a browser; a form must be small and have come from a page of ours."""
    request_body.settle_form(request_body.MAX_VISITOR_FORM_BYTES)
    _check_form()


def signed_in() -> Response | None:
    """A signed-in owner; the account is `g.account`. Others are sent to the sign-in page, and back again after it."""
    account = accounts.session_account(session.get("token", ""), clock.now_ms())
    request_body.settle_form(request_body.MAX_OWNER_FORM_BYTES if account else request_body.MAX_VISITOR_FORM_BYTES)
    if account is None:
        back = request.full_path.rstrip("?") if request.method == "GET" else ""
        return redirect("/app/login" + (f"?{urlencode({'next': back})}" if back not in ("", HOME) else ""), 303)
    _check_form()
    g.account = account
    return None


def begin_session(account: Account) -> None:
    """Sign the browser in, with nothing left of what its cookie held before, and know it again later."""
    end_session()
    session.permanent = True
    session["token"] = accounts.start_session(account, browser_name(), clock.now_ms())
    session["csrf"] = secrets.token_urlsafe(16)
    session["known"] = {"password": accounts.password_mark(account.email), "browser": secrets.token_urlsafe(16)}


def end_session() -> None:
    """Sign the browser out; that it was signed in before stays known."""
    token, known = session.get("token", ""), session.get("known")
    session.clear()  # first: the row may be on a full disk
    if known:
        session.permanent, session["known"] = True, known
    accounts.end_session(token)


def known_browser(password_mark: str) -> str | None:
    """What to count the browser's wrong passwords under, if it was signed in with that password before."""
    known = session.get("known")
    return known["browser"] if known and known["password"] == password_mark else None


def session_token() -> str:
    """The secret of the browser's session, which its cookie alone holds."""
    return str(session.get("token", ""))


def session_hash() -> bytes:
    """What the browser's own session is kept under."""
    return digest(session_token())


def browser_name() -> str:
    """What the request's browser and system are called, as far as they say so."""
    agent = request.headers.get("User-Agent", "")
    browser = next((name for mark, name in BROWSERS if mark in agent), "A browser")
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    return f"{browser} on {system}" if system else browser


def _check_form() -> None:
    """Refuse a form of another site, or of a browser that has opened no page of ours, before it is parsed."""
    expected = session.get("csrf", "")
    if request.method != "POST":
        if not expected:
            session["csrf"] = secrets.token_urlsafe(16)
        return
    origins = (None, f"https://{request.host}", f"http://{request.host}", current_app.config["SETTINGS"].base_url)
    is_ours = bool(expected) and request.headers.get("Origin") in origins
    if is_ours:
        sent = request.headers.get("X-CSRF-Token") or request.form.get("csrf", "")
        is_ours = secrets.compare_digest(sent.encode(), expected.encode())
    if not is_ours:
        raise Refused(400, "This form is too old or came from another site: open the page again.")


class Undated(URLSafeSerializer):
    """Signs without a time: a clock that is set back must sign nobody out. The database knows when a session ends."""

    def loads(self, s: Any, salt: Any = None, **options: Any) -> Any:
        """What was signed, however long ago."""
        return super().loads(s)


class PageSessions(SecureCookieSessionInterface):
    """Flask's signed cookie, for the pages alone; bound to the host and to https where the page came that way."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """The session of a page; none for every other address."""
        is_page = request.path.startswith("/app/") and not request.path.startswith(("/app/static/", "/app/sw.js"))
        return super().open_session(app, request) if is_page else None

    def get_signing_serializer(self, app: Flask) -> Any:
        """What signs the cookie."""
        return Undated(app.secret_key or "", salt=self.salt, serializer=self.serializer)

    def get_cookie_name(self, app: Flask) -> str:
        """`__Host-` cookies can be set by this very host and over https alone."""
        return "__Host-pocketbell" if self.get_cookie_secure(app) else "pocketbell"

    def get_cookie_secure(self, app: Flask) -> bool:
        """Over https the cookie never travels otherwise."""
        return request.is_secure
