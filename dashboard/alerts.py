"""Alerts: the list, creating one from a preset, and every change to one except its templates."""

from typing import Any

from flask import redirect, render_template

from core import alerts, presets
from core.alerts import ICONS
from core.definitions import ALERT
from dashboard import page
from dashboard.alert_page import activity_tab, back_to, connect_tab, listed, render, shown_tab
from dashboard.alert_template import message_tab
from dashboard.page import Page, Problem
from models import Alert
from process import clock
from web.context import current, request
from wire.errors import Refused
from wire.validation import checked_choice

LOOKS = ("name", "icon", "color", "frequency")
QUIET_HOURS = {"follow": "Hold everything", "urgent": "Hold all but urgent ones", "ignore": "Hold nothing"}
FREQUENCIES = {
    "instant": "Right away",
    "15m": "Digest every 15 minutes",
    "1h": "Digest every hour",
    "1d": "Daily digest",
}


def show_alerts() -> Page:
    """GET /app/alerts."""
    return render_template("alerts.html", listed=listed())


def show_new_alert(problem: Problem | None = None) -> str:
    """GET /app/alerts/new."""
    return render_template("new_alert.html", presets=presets.PRESETS, problem=problem)


def create_alert() -> Page:
    """POST /app/alerts/new: creates an alert from a preset."""
    preset = presets.of(request.form.get("preset"))
    name = request.form.get("name", "").strip() or preset.name
    try:
        alert = alerts.create_alert(current().account.seq, {"name": name, **preset.settings}, clock.now_ms())
    except Refused as refused:
        return show_new_alert(Problem.of(refused)), 422
    return redirect(f"/app/alerts/{alert.id}", 303)


def show_alert(alert_id: str) -> Page:
    """GET /app/alerts/{id}."""
    alert = alerts.find_alert(current().account.seq, alert_id)
    tabs = {"connect": connect_tab, "message": message_tab, "activity": activity_tab, "settings": _settings_tab}
    return tabs[shown_tab(alert)](alert)


def _settings_tab(alert: Alert, problem: Problem | None = None) -> str:
    """The part of the page, with the saved settings or, if these were refused, with those of the form."""
    settings: Any = request.form if problem else alert
    chosen = request.form.get("icon", "") if problem else page.icon(alert.icon)
    return render(
        alert,
        "settings",
        settings=settings,
        problem=problem,
        chosen=chosen,
        icons=[page.icon(chosen), *sorted(ICONS - {page.icon(chosen)})],
        in_quiet_hours=request.form.get("quiet_hours") if problem else alerts.quiet_hours_word(alert),
        quiet_hours=QUIET_HOURS,
        frequencies=FREQUENCIES,
    )


def save_settings(alert_id: str) -> Page:
    """POST /app/alerts/{id}/settings: name, icon, color, frequency, quiet hours, mute button, keeping of payloads."""
    settings: dict[str, Any] = {name: request.form.get(name, "") for name in LOOKS}
    settings |= {name: name in request.form for name in ("has_mute_button", "keeps_payload")}
    in_quiet_hours = request.form.get("quiet_hours", "follow")
    try:
        changed = settings | alerts.QUIET_HOURS[checked_choice(in_quiet_hours, "quiet_hours", QUIET_HOURS)]
        alerts.change_alert(current().account.seq, alert_id, changed, clock.now_ms())
    except Refused as refused:
        return _settings_tab(alerts.find_alert(current().account.seq, alert_id), Problem.of(refused)), 422
    return back_to(alert_id, "Saved.", "settings")


def switch_alert(alert_id: str) -> Page:
    """POST /app/alerts/{id}/switch?back: on with `on=1`, else off."""
    is_active = request.form.get("on") == "1"
    alerts.change_alert(current().account.seq, alert_id, {"is_active": is_active}, clock.now_ms())
    said = "Alert switched on." if is_active else "Alert switched off. Requests are accepted but ignored."
    return page.back_to(page.asked_for("back", f"/app/alerts/{alert_id}"), said)


def rotate_alert(alert_id: str) -> Page:
    """POST /app/alerts/{id}/rotate."""
    alerts.rotate_code(current().account.seq, alert_id)
    return back_to(alert_id, "New address created. The old one no longer works.", "connect")


def delete_alert(alert_id: str) -> Page:
    """POST /app/alerts/{id}/delete."""
    alert = ALERT.delete(current().account.seq, alert_id)
    return page.back_to(
        "/app/alerts", f"Alert “{page.isolated(alert.name)}” deleted. Its notifications stay in History."
    )


def forget_payload(alert_id: str) -> Page:
    """POST /app/alerts/{id}/forget."""
    alerts.forget_payload(current().account.seq, alert_id)
    return back_to(alert_id, "Last request deleted.", "activity")
