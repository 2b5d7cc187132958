"""Watches: the lists of heartbeats and of rules on metrics, and a heartbeat's page with pings, address, settings.

A rule is on its metric's page: `metrics.py`.
"""

from flask import redirect, render_template

from core import accounts, attention, heartbeats, metric_rules, uptime
from core.definitions import HEARTBEAT
from core.durations import short
from dashboard import page
from dashboard.home import STATES
from dashboard.page import Page, Problem
from process import clock
from store import heartbeats as stored_heartbeats
from store import metric_rules as stored_metric_rules
from store.heartbeats import Beat, newest_pings
from store.metric_rules import Rule
from web import guards
from web.context import current, request
from wire.errors import Refused
from wire.notification import PRIORITY_WORDS

NEW = {"name": "", "period": "1d", "cron": "", "grace": heartbeats.DEFAULT_GRACE, "priority": "high"}
SHOWN_PINGS = 8  # older ones are folded


def show_watches() -> str:
    """GET /app/watches."""
    account, now = current().account, clock.now_ms()
    beats = sorted(stored_heartbeats.of_account(account.seq), key=lambda beat: STATES.index(beat.state))
    rules = sorted(stored_metric_rules.of_account(account.seq), key=lambda rule: STATES.index(rule.state))
    records = uptime.records(account.seq, beats, now)
    values = stored_metric_rules.latest_values(account.seq, now)
    return render_template(
        "watches.html",
        beats=[(beat, heartbeats.schedule_words(beat), records[beat.seq], _why_down(beat)) for beat in beats],
        rules=[_shown_rule(rule, *values.get(rule.seq, (None, ""))) for rule in rules],
        by_key=f"{guards.origin()}/ping/{account.ping_key}",
    )


def _why_down(beat: Beat) -> str:
    return attention.why_down(beat).lower() if beat.state == "down" else ""


def _shown_rule(rule: Rule, value: float | None, unit: str) -> tuple[Rule, str, str, float | None, str]:
    return rule, metric_rules.metric_title(rule), metric_rules.rule_words(rule, unit), value, unit


def show_new_heartbeat(problem: Problem | None = None) -> str:
    """GET /app/watches/new."""
    return render_template("new_heartbeat.html", typed={**NEW, **request.form.to_dict()}, problem=problem)


def create_heartbeat() -> Page:
    """POST /app/watches/new."""
    try:
        made = heartbeats.create_heartbeat(current().account, _typed(), clock.now_ms())
    except Refused as refused:
        return show_new_heartbeat(Problem.of(refused)), 422
    return redirect(f"/app/watches/{made.id}", 303)


def change_ping_key() -> Page:
    """POST /app/watches/key."""
    accounts.change_ping_key(current().account)
    return page.back_to("/app/watches", "New ping key created. Jobs with the old one get a 404 from now on.")


def show_heartbeat(heartbeat_id: str, problem: Problem | None = None) -> str:
    """GET /app/watches/{id}."""
    beat = heartbeats.find_heartbeat(current().account.seq, heartbeat_id)
    saved = {
        "name": beat.name,
        "period": short(beat.period_s) if beat.period_s is not None else "",
        "cron": beat.cron or "",
        "grace": short(beat.grace_s),
        "priority": PRIORITY_WORDS[beat.priority],
    }
    pings = newest_pings(beat.seq)
    record = uptime.record_of(beat, pings, clock.now_ms())
    oldest_first = zip(pings[::-1], record.outcomes, record.run_times, record.late_by, strict=False)
    listed = list(oldest_first)[::-1]
    return render_template(
        "watch.html",
        beat=beat,
        pings=[one for one in listed if one[1] != "start" or one[0].body or one[0] == pings[0]],
        shown=SHOWN_PINGS,
        schedule=heartbeats.schedule_words(beat),
        record=record,
        address=f"{guards.origin()}/ping/{beat.ping_id}",
        typed={**saved, **request.form.to_dict()},
        problem=problem,
        is_edited=problem or "edit" in request.args,
        why=_why_down(beat),
    )


def save_heartbeat(heartbeat_id: str) -> Page:
    """POST /app/watches/{id}: name, period or cron, grace, priority."""
    try:
        heartbeats.change_heartbeat(current().account.seq, heartbeat_id, _typed(), clock.now_ms())
    except Refused as refused:
        return show_heartbeat(heartbeat_id, Problem.of(refused)), 422
    return page.back_to(f"/app/watches/{heartbeat_id}", "Saved.")


def switch_heartbeat(heartbeat_id: str) -> Page:
    """POST /app/watches/{id}/switch?back: resumes it with `on=1`, else pauses it."""
    account_seq, now = current().account.seq, clock.now_ms()
    if request.form.get("on") == "1":
        is_down = heartbeats.resume_heartbeat(account_seq, heartbeat_id, now).state == "down"
        more = "It is down until it succeeds." if is_down else "The next ping is expected from now on."
        said = f"Heartbeat resumed. {more}"
    else:
        heartbeats.pause_heartbeat(account_seq, heartbeat_id, now)
        said = "Heartbeat paused. Pings are recorded but nobody is notified."
    return page.back_to(page.asked_for("back", f"/app/watches/{heartbeat_id}"), said)


def delete_heartbeat(heartbeat_id: str) -> Page:
    """POST /app/watches/{id}/delete."""
    deleted = HEARTBEAT.delete(current().account.seq, heartbeat_id)
    return page.back_to(
        "/app/watches", f"Heartbeat “{page.isolated(deleted.name)}” deleted. Its notifications stay in History."
    )


def _typed() -> dict[str, str]:
    return {name: request.form.get(name, "").strip() for name in NEW}
