"""Home: what needs the owner, the first steps that are left, the latest notifications."""

import re
from typing import Any
from urllib.parse import quote_plus

from flask import flash, redirect, render_template

import push
from core import accounts, attention, delivery, followers, holding, local_time, metric_rules, mutes, runs
from core.attention import Watched
from dashboard import page, quiet_hours
from dashboard.page import Page
from models import Account, ApiKey, Device
from process import clock
from store import notification_days, notifications
from store.search import Span, Wanted, count_failed_by_quarter_hour
from store.senders import Owner
from web import guards
from web.context import current, request
from wire.notification import Content

LATEST = 6
MAX_INVITATIONS = 5
CHART_DAYS = 14
PATHS = {  # the page for each kind of need, and of what is followed
    "alarm": "/app/notifications/{}",
    "storage": "/app/notifications",
    "no device": "/app/devices",
    "question": "/app/notifications/{}",
    "heartbeat": "/app/watches/{}",
    "rule": "/app/metrics/one?project={}&metric={}",
    "alert": "/app/alerts/{}",
    "device": "/app/devices",
    "key": "/app/keys",
    "https": "/docs/phones#https-in-one-command",
}
STATES = ("down", "firing", "late", "up", "new", "ok", "paused")  # of heartbeats and rules, the worst first


def enter() -> Page:
    """GET / and GET /app: redirect to the web app."""
    return redirect("/app/", 303)


def show_home() -> Page:
    """GET /app/."""
    account, now = current().account, clock.now_ms()
    answer = _answer(account, now)
    invitations = [one for one in followers.followed(account, now) if not one.is_following]
    latest = runs.read(account, Span(answer["newest"] + 1), Wanted(), LATEST).runs
    return render_template(
        "home.html",
        **answer,
        **last_days(account, now),
        latest=notifications.entries([run[0].seq for run in latest]),
        runs={run[0].seq: run for run in latest},
        quiet=_quiet(account, now),
        invitations=invitations[:MAX_INVITATIONS],
        more_invitations=len(invitations[MAX_INVITATIONS:]),
        public_key=None if answer["devices"] else push.public_vapid_key(),
    )


def show_attention() -> Page:
    """GET /app/attention: the part of Home that says what needs the owner, for the page's script."""
    return render_template("attention.html", **_answer(current().account, clock.now_ms()))


def _answer(account: Account, now: int) -> dict[str, Any]:
    """The values of the part of Home that says how everything is, or what the first steps are."""
    watched, origin = Watched.of(account.seq), guards.origin()
    receiving = watched.receiving
    is_secure = origin.startswith("https://") or page.is_local(origin)
    newest = notifications.newest_seq(account.seq)
    needs = attention.needs(account, watched, is_secure, now)
    stats = notification_days.stats(account.seq, local_time.local_day(now, account.time_zone))
    steps = (True, bool(receiving), stats.all_time > 0, ApiKey.count_live(account.seq) > 0, stats.alerts > 0)
    is_first = not account.hides_first_steps and not all(steps)
    calm = "Let it ring once" if is_first and not (receiving and stats.all_time) else "All is well"
    many = "1 thing needs you" if len(needs) == 1 else f"{len(needs)} things need you"
    return {
        "heading": many if needs else calm,
        "needs": [(need, address_of(need.kind, *need.ids)) for need in needs],
        "watches": _watches(watched),
        "down": sum(beat.state == "down" for beat in watched.beats),
        "is_up": all(beat.state in ("up", "late") for beat in watched.beats),
        "beats": len(watched.beats),
        "devices": receiving,
        "newest_device": watched.devices[0].seq if watched.devices else 0,
        "unreachable": sum(device.last_error is not None for device in receiving),
        "newest": newest,
        "newest_at": notifications.one(newest).created_at if newest else None,
        "steps": steps,
        "is_first": is_first,
    }


def _watches(watched: Watched) -> list[tuple[str, str, str, int | None]]:
    """The name, the state, the page and the last ping of the heartbeats and the rules, the worst first."""
    found = [(one.name, one.state, address_of("heartbeat", one.id), one.last_ping_at) for one in watched.beats]
    for rule in watched.rules:
        path = address_of("rule", rule.project_id, rule.metric_id)
        found.append((metric_rules.metric_title(rule), rule.state, path, None))
    return sorted(found, key=lambda one: STATES.index(one[1]))


def last_days(account: Account, now: int) -> dict[str, Any]:
    """The values of the chart of the last days: how many notifications each had and how many of them failed."""
    days = local_time.last_days(CHART_DAYS, account.time_zone, now)
    counts = notification_days.since(account.seq, days[0])
    begin, _ = local_time.day_bounds(days[0], account.time_zone)
    failed = local_time.count_by_day(count_failed_by_quarter_hour(account.seq, begin), account.time_zone)
    each = [(day, counts.get(day, 0), min(failed.get(day, 0), counts.get(day, 0))) for day in days]
    return {"days": each, "stats": notification_days.stats(account.seq, days[-1])}


def send_test() -> Page:
    """POST /app/test: sends an ordinary notification to all devices; the first one leads to the next steps."""
    account, content = current().account, Content("It works", "This is a test from Pocketbell.")
    is_first = not notifications.newest_seq(account.seq)
    sent = delivery.deliver(Owner.of(account), content)
    if is_first:
        flash("Sent. Next, connect a script or a service: Home shows how.")
    return redirect(f"/app/notifications/{sent.notification.id}", 303)


def hide_first_steps() -> Page:
    """POST /app/first-steps/hide."""
    accounts.change(current().account, hides_first_steps=1)
    return redirect("/app/", 303)


def note_devices() -> Page:
    """POST /app/devices/seen: the owner has seen the present devices, so Home stops warning about them."""
    account, seen = current().account, request.form.get("seen", "")
    newest = max((one.seq for one in Device.of_account(account.seq)), default=0)
    known = min(int(seen), newest) if re.fullmatch("[0-9]{1,18}", seen) else 0
    accounts.change(account, known_device_seq=max(known, account.known_device_seq))
    return page.back_to("/app/", "Thanks. You will be told when a key adds another device.")


def _quiet(account: Account, now: int) -> dict[str, Any] | None:
    """The present or next quiet hours, the mutes in force and what is held; None if there is none of them."""
    found = quiet_hours.at_present(account, now)
    muted = [one for one in mutes.of_account(account.seq, now) if holding.ends_at(one.mute, now) is not None]
    return {**found, "mutes": muted} if found["window"] or found["held_count"] or muted else None


def address_of(kind: str, *ids: str) -> str:
    """The page of such a thing, or where the owner can do something about such a need; "" if there is none."""
    return PATHS.get(kind, "").format(*map(quote_plus, ids))
