"""Watches: the list of heartbeats with a form for a new one, and one with its pings, its address and its settings."""

from collections import defaultdict
from typing import Any

from flask import flash, redirect, render_template, request

from core import heartbeats
from core.durations import short
from dashboard import page
from dashboard.page import Page, Problem
from process import clock
from store.heartbeats import Beat, Heartbeat, Ping
from web import guards
from web.context import current
from wire.errors import Refused

SETTINGS = ("name", "period", "cron", "grace", "priority")
NEW = {"name": "", "period": "1d", "cron": "", "grace": heartbeats.DEFAULT_GRACE, "priority": "4"}
IN_ORDER = ("down", "late", "up", "new", "paused")


def show_watches() -> Page:
    """GET /app/watches."""
    return _list_page(NEW)


def create_heartbeat() -> Page:
    """POST /app/watches."""
    typed = _typed()
    try:
        made = heartbeats.create_heartbeat(current().account, _settings(typed), clock.now_ms())
    except Refused as refused:
        return _list_page(typed, Problem.of(refused)), 422
    return redirect(f"/app/watches/{made.id}", 303)


def show_heartbeat(heartbeat_id: str) -> Page:
    """GET /app/watches/{id}."""
    return _heartbeat_page(_find(heartbeat_id))


def save_heartbeat(heartbeat_id: str) -> Page:
    """POST /app/watches/{id}: name, period or cron, grace, priority."""
    typed = _typed()
    try:
        heartbeats.change_heartbeat(current().account.seq, heartbeat_id, _settings(typed), clock.now_ms())
    except Refused as refused:
        return _heartbeat_page(_find(heartbeat_id), typed, Problem.of(refused)), 422
    return _back_to(heartbeat_id, "Saved.")


def pause_heartbeat(heartbeat_id: str) -> Page:
    """POST /app/watches/{id}/pause."""
    heartbeats.pause_heartbeat(current().account.seq, heartbeat_id)
    return _back_to(heartbeat_id, "It is paused: its pings are kept and change nothing.")


def resume_heartbeat(heartbeat_id: str) -> Page:
    """POST /app/watches/{id}/resume."""
    resumed = heartbeats.resume_heartbeat(current().account.seq, heartbeat_id, clock.now_ms())
    goes_on = "is down until it succeeds" if resumed.state == "down" else "is expected from now on"
    return _back_to(heartbeat_id, f"It is resumed: it {goes_on}.")


def delete_heartbeat(heartbeat_id: str) -> Page:
    """POST /app/watches/{id}/delete."""
    deleted = heartbeats.delete_heartbeat(current().account.seq, heartbeat_id)
    flash(f"The heartbeat “{page.isolated(deleted.name)}” is deleted. Its notifications stay in the history.")
    return redirect("/app/watches", 303)


def _find(heartbeat_id: str) -> Beat:
    return heartbeats.find_heartbeat(current().account.seq, heartbeat_id)


def _typed() -> dict[str, str]:
    return {name: request.form.get(name, "").strip() for name in SETTINGS}


def _settings(typed: dict[str, str]) -> dict[str, Any]:
    """What was typed as settings: a priority is a number, also one that is none."""
    priority = typed["priority"]
    return {**typed, "priority": int(priority) if priority in tuple("12345") else priority}


def _back_to(heartbeat_id: str, message: str) -> Page:
    flash(message)
    return redirect(f"/app/watches/{heartbeat_id}", 303)


def _list_page(typed: dict[str, str], problem: Problem | None = None) -> str:
    account, kinds = current().account, defaultdict[int, list[str]](list)
    for beat_seq, kind in Ping.kinds(account.seq):
        kinds[beat_seq].append(kind)
    beats = sorted(Heartbeat.of_account(account.seq), key=lambda beat: IN_ORDER.index(beat.state))
    return render_template(
        "watches.html",
        beats=[(beat, heartbeats.schedule(beat), kinds[beat.seq]) for beat in beats],
        typed=typed,
        problem=problem,
    )


def _heartbeat_page(beat: Beat, typed: dict[str, str] | None = None, problem: Problem | None = None) -> str:
    saved = {
        "name": beat.name,
        "period": short(beat.period_s) if beat.period_s is not None else "",
        "cron": beat.cron or "",
        "grace": short(beat.grace_s),
        "priority": str(beat.priority),
    }
    return render_template(
        "watch.html",
        beat=beat,
        pings=Ping.newest(beat.seq),
        schedule=heartbeats.schedule(beat),
        address=f"{guards.origin()}/ping/{beat.ping_id}",
        typed=typed or saved,
        problem=problem,
    )
