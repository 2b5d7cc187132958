"""The pages under /app/: set-up, sign-in, API keys, devices, and the service worker that shows what arrives.

Plain forms: POST, redirect, GET; JavaScript only where a browser subscribes to pushes. Must not know SQL, wire
names of the REST API, or how a push is made.
"""

from typing import Any

from flask import Response, current_app, flash, g, redirect, render_template, request
from werkzeug.wrappers import Response as BaseResponse

import accounts
import auth
import clock
import devices
import push
import quiet
import quotas
from body import read_object
from errors import Refused
from models import Account, ApiKey, Device

Page = str | BaseResponse | tuple[str, int]


def error_page(refused: Refused) -> str:
    """A refusal as a page."""
    return render_template("error.html", message=refused.message, status=refused.status)


def moment(at: int) -> str:
    """A time (ms) as the signed-in owner reads it: the filter of the templates."""
    return quiet.local_time(at, g.account.time_zone)


# --- first way in -------------------------------------------------------------------------------------------


def show_setup(token: str) -> Page:
    """GET /app/setup/{token}: make the owner's account, or set a password."""
    link = accounts.find_link(token, clock.now_ms())
    return _setup_page(link.account, {})


def finish_setup(token: str) -> Page:
    """POST /app/setup/{token}."""
    link = accounts.find_link(token, clock.now_ms())
    form = {name: request.form.get(name, "") for name in ("email", "password", "time_zone")}
    try:
        account = accounts.use_link(token, form, clock.now_ms())
    except Refused as refused:
        if refused.status != 400:
            raise
        return _setup_page(link.account, form, refused.message), 422
    auth.begin_session(account)
    return redirect("/app/devices", 303)


def _setup_page(account: Account | None, form: dict[str, str], error: str = "") -> str:
    zones = sorted(quiet.time_zones())
    return render_template("setup.html", account=account, form=form, zones=zones, error=error)


def show_sign_in() -> Page:
    """GET /app/login."""
    return render_template("login.html", email="", error="")


def sign_in() -> Page:
    """POST /app/login."""
    email, password = request.form.get("email", ""), request.form.get("password", "")
    address = accounts.normalized(email)[:254]
    quotas.check_sign_in(address)
    account = accounts.with_password(email, password)
    if account is None:
        quotas.count_wrong_password(address)
        error = "That e-mail address and password do not belong together."
        return render_template("login.html", email=email, error=error), 422
    auth.begin_session(account)
    return redirect("/app/", 303)


def sign_out() -> Page:
    """POST /app/logout."""
    auth.end_session()
    return redirect("/app/login", 303)


def home() -> Page:
    """GET / and GET /app/: the first page of the web app."""
    return redirect("/app/devices", 303)


# --- API keys -----------------------------------------------------------------------------------------------


def show_keys() -> Page:
    """GET /app/keys."""
    return _keys_page()


def create_key() -> Page:
    """POST /app/keys: the one answer that shows the key, so it is a page and no redirect."""
    try:
        _, full_key = accounts.create_key(g.account.seq, request.form.get("name", ""), clock.now_ms())
    except Refused as refused:
        return _keys_page(error=refused.message, name=request.form.get("name", "")), 422
    return _keys_page(full_key=full_key)


def revoke_key(key_id: str) -> Page:
    """POST /app/keys/{id}/revoke."""
    accounts.revoke_key(g.account.seq, key_id, clock.now_ms())
    flash("The key is revoked: it stopped working now.")
    return redirect("/app/keys", 303)


def _keys_page(**more: str) -> str:
    return render_template("keys.html", keys=ApiKey.of_account(g.account.seq), address=_origin(), **more)


def _origin() -> str:
    """Where this web app is, as its owner's browser sees it."""
    return current_app.config["SETTINGS"].base_url or request.host_url.rstrip("/")


# --- devices ------------------------------------------------------------------------------------------------


def show_devices() -> Page:
    """GET /app/devices."""
    return render_template(
        "devices.html",
        devices=Device.of_account(g.account.seq),
        public_key=push.public_vapid_key(),
        warning=push.contact_warning(g.account.email),
        last_was_dead=Device.last_was_dead(g.account.seq),
    )


def add_device() -> tuple[dict[str, Any], int]:
    """POST /app/devices: this browser's subscription, from the page's script."""
    registration = {**read_object(), "kind": "webpush"}
    only_known = registration.get("only_known") is True  # a device that was removed stays so
    device = devices.add_device(g.account.seq, registration, clock.now_ms(), origin=_origin(), only_known=only_known)
    return {"ok": True, "id": device.id}, 201


def remove_device(device_id: str) -> Page:
    """POST /app/devices/{id}/remove."""
    devices.remove_device(g.account.seq, device_id, clock.now_ms())
    flash("The device is removed: nothing is sent to it any more.")
    return redirect("/app/devices", 303)


def service_worker() -> Response:
    """GET /app/sw.js: at this place, so that its scope is the web app."""
    answer = current_app.send_static_file("sw.js")
    answer.headers["Cache-Control"] = "no-cache"
    return answer
