"""Settings: the plan's limits and their use, theme, time zone, password, sessions."""

from flask import redirect, render_template

from config import VERSION
from core import accounts, devices, followers, local_time, plans
from dashboard import page, signin
from dashboard.page import Page, Problem
from models import ApiKey, Device, sha256_of
from process import clock
from store.sessions import Session
from web import guards, rate_limits
from web.context import current, request
from wire.errors import Refused
from wire.validation import checked_choice

THEMES = ("system", "light", "dark")


def show_settings(problem: Problem | None = None) -> str:
    """GET /app/settings."""
    account, now = current().account, clock.now_ms()
    keys = [key for key in ApiKey.of_account(account.seq) if key.revoked_at is None]
    return render_template(
        "settings.html",
        problem=problem,
        zones=local_time.time_zone_names(),
        themes=THEMES,
        sessions=Session.of_account(account.seq, now),
        this_session=sha256_of(guards.session_token()),
        plan=plans.PLANS[account.plan],
        rest_used=rate_limits.used(rate_limits.REST[account.plan], *(key.seq for key in keys)),
        metrics_used=rate_limits.used(rate_limits.CUSTOM_METRICS[account.plan], account.seq),
        keys=len(keys),
        most_keys=accounts.MAX_LIVE_KEYS,
        devices=Device.count(account.seq),
        most_devices=devices.MAX_DEVICES,
        following=[one for one in followers.followed(account, now) if one.is_following],
        version=VERSION,
    )


def save_theme() -> Page:
    """POST /app/settings/theme."""
    try:
        accounts.change(current().account, theme=checked_choice(request.form.get("theme", ""), "theme", THEMES))
    except Refused as refused:
        return show_settings(Problem.of(refused)), 422
    return redirect("/app/settings", 303)


def save_time_zone() -> Page:
    """POST /app/settings/time-zone."""
    zone, account = request.form.get("time_zone", ""), current().account
    try:
        change = accounts.zone_change(account, zone, clock.now_ms())
        change()
    except Refused as refused:
        return show_settings(Problem.of(refused)), 422
    return page.back_to("/app/settings", f"Time zone set to {zone}.")


def save_password() -> Page:
    """POST /app/settings/password: changes the password and signs out all other browsers."""
    account, new = current().account, request.form.get("new", "")
    if signin.with_password(account.email, request.form.get("current", "")) is None:
        return show_settings(Problem("This is not your current password.", "current")), 422
    try:
        hashed = accounts.password_hash(new, accounts.KNOWN_BROWSER, account.email)
    except Refused as refused:
        return show_settings(Problem.of(refused, "new")), 422
    accounts.set_password(account, hashed)
    guards.begin_session(account)
    return page.back_to("/app/settings", "Password changed. All other browsers were signed out.")


def sign_out_browser(session_id: str) -> Page:
    """POST /app/settings/sessions/{id}/end: signs out one browser."""
    ended = accounts.sign_out_browser(current().account.seq, session_id, clock.now_ms())
    return page.back_to("/app/settings", f"{ended.name or 'Unknown browser'} was signed out.")


def sign_out_everywhere() -> Page:
    """POST /app/settings/sign-out-everywhere: signs out all browsers, this one too."""
    accounts.sign_out_everywhere(current().account.seq)
    guards.end_session()
    return redirect("/app/login", 303)
