"""Alerts: the list, creating one from a preset, and every change to one except its templates."""

from typing import Any, NamedTuple

from flask import Response, flash, redirect, render_template, request

from core import alerts, presets
from dashboard import page
from dashboard.alert_template import back_to, template_page
from dashboard.page import Page, Problem
from models import Alert
from process import clock
from store.notifications import LatestOfAlert, Notification
from web.context import current
from wire.errors import Refused

LOOKS = ("name", "icon", "color", "frequency")


def show_alerts() -> Page:
    """GET /app/alerts: alerts with problems come first."""
    latest = Notification.latest_of_alerts(current().account.seq)
    listed = [(_trouble(alert, latest.get(alert.seq)), alert) for alert in Alert.of_account(current().account.seq)]
    listed.sort(key=lambda pair: (not pair[0].is_bad, not pair[0].words, not pair[1].is_active))
    return render_template("alerts.html", alerts=listed)


class Trouble(NamedTuple):
    """What the list says about an alert's problem, empty if it has none; `is_bad` if the alert does not notify."""

    words: str = ""
    is_bad: bool = False


def _trouble(alert: Alert, latest: LatestOfAlert | None) -> Trouble:
    if alert.paused_at:
        return Trouble(f"paused {page.near(alert.paused_at)}: too many requests", True)
    if alert.is_active and latest and latest.status == "failed":
        return Trouble("the last one failed", True)
    if alert.is_active and latest and latest.missing:
        return Trouble(f"{len(latest.missing)} missing in the last event")
    return Trouble()


def show_new_alert() -> Page:
    """GET /app/alerts/new."""
    return render_template("new_alert.html", presets=presets.PRESETS, chosen=None, name="")


def create_alert() -> Page:
    """POST /app/alerts/new: creates an alert from a preset."""
    preset = presets.of(request.form.get("preset"))
    name = request.form.get("name", "").strip() or preset.name
    try:
        alert = alerts.create_alert(current().account.seq, {"name": name, **preset.settings}, clock.now_ms())
    except Refused as refused:
        return render_template(
            "new_alert.html", presets=presets.PRESETS, chosen=preset.id, name=name, problem=Problem.of(refused)
        ), 422
    return redirect(f"/app/alerts/{alert.id}", 303)


def show_alert(alert_id: str) -> Page:
    """GET /app/alerts/{id}."""
    return template_page(alerts.find_alert(current().account.seq, alert_id))


def save_settings(alert_id: str) -> Page:
    """POST /app/alerts/{id}/settings: name, icon, color, frequency, quiet hours, repeating, keeping of payloads."""
    settings: dict[str, Any] = {name: request.form.get(name, "") for name in LOOKS}
    settings |= {name: name in request.form for name in ("repeats_urgent", "keeps_payload")}
    in_quiet_hours = request.form.get("quiet_hours", "follow")
    try:
        changed = settings | alerts.quiet_hours_columns(in_quiet_hours)
        alerts.change_alert(current().account.seq, alert_id, changed, clock.now_ms())
    except Refused as refused:
        alert, typed = alerts.find_alert(current().account.seq, alert_id), settings | {"quiet_hours": in_quiet_hours}
        return template_page(alert, problem=Problem.of(refused), settings=typed), 422
    return back_to(alert_id, "Saved.")


def switch_alert(alert_id: str) -> Page:
    """POST /app/alerts/{id}/switch: on or off."""
    is_active = request.form.get("on") == "1"
    alerts.change_alert(current().account.seq, alert_id, {"is_active": is_active}, clock.now_ms())
    return back_to(
        alert_id, "It is on." if is_active else "It is off: what comes is answered and makes no notification."
    )


def rotate_alert(alert_id: str) -> Page:
    """POST /app/alerts/{id}/rotate."""
    alerts.rotate_code(current().account.seq, alert_id)
    return back_to(alert_id, "It has a new address. The old one leads nowhere any more.")


def delete_alert(alert_id: str) -> Page:
    """POST /app/alerts/{id}/delete."""
    alert = alerts.delete_alert(current().account.seq, alert_id)
    flash(f"The alert “{page.isolated(alert.name)}” is deleted. Its notifications stay in the history.")
    return redirect("/app/alerts", 303)


def forget_payload(alert_id: str) -> Page:
    """POST /app/alerts/{id}/forget."""
    alerts.forget_payload(current().account.seq, alert_id)
    return back_to(alert_id, "The payload is forgotten.")


def show_qr_code(alert_id: str) -> Response:
    """GET /app/alerts/{id}/qr.svg: the address as a QR code, for another device's camera."""
    return page.qr_code(page.webhook_address(alerts.find_alert(current().account.seq, alert_id)))
