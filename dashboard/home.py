"""Home: the latest notifications, the first steps that are left, and warnings."""

import re
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from flask import redirect, render_template

import push
from core import accounts, attention, delivery, digests, local_time, plans
from core.attention import Need
from dashboard import page
from dashboard.page import Page
from models import Account, ApiKey, Device
from process import clock
from store import held_notifications, notification_days, notifications
from store.senders import Owner
from web import guards
from web.context import current, request
from wire.notification import Content

LATEST = 5
CHART_DAYS = 14
PATHS = {  # where the owner does something about a need
    "alarm": "/app/notifications/{}",
    "storage": "/app/notifications",
    "no device": "/app/devices",
    "question": "/app/notifications/{}",
    "heartbeat": "/app/watches/{}",
    "rule": "/app/metrics/one?project={}&metric={}",
    "alert": "/app/alerts/{}",
    "device": "/app/devices",
    "https": "/docs/phones#https-in-one-command",
}


class Quiet(NamedTuple):
    """When the quiet hours in force end (None: there are none), how many are held, and when they are released."""

    until: int | None
    held_count: int
    releases: list[int]


def enter() -> Page:
    """GET / and GET /app: redirect to the web app."""
    return redirect("/app/", 303)


def show_home() -> Page:
    """GET /app/."""
    account, now = current().account, clock.now_ms()
    newest = notifications.newest_seq(account.seq)
    latest = notifications.page(account.seq, newest + 1, plans.history_begin(account.plan, now), LATEST)
    watched, origin = attention.Watched.of(account.seq), guards.origin()
    devices = watched.devices
    needs = attention.needs(account, watched, origin.startswith("https://") or page.is_local(origin), now)
    return render_template(
        "home.html",
        **last_days(account, now),
        latest=notifications.entries([seq for seq, *_ in latest.rows]),
        newest=newest,
        quiet=_quiet(account, now),
        devices=devices,
        has_key=ApiKey.count_live(account.seq) > 0,
        warnings=[(_sentence(need), _path(need)) for need in needs if need.kind != "new device"],
        new_devices=[(one, one.api_key) for one in devices if one.api_key and one.seq > account.known_device_seq],
        public_key=None if devices else push.public_vapid_key(),
    )


def last_days(account: Account, now: int) -> dict[str, Any]:
    """The values of the chart of the last days: their counts, and the account's counters."""
    days = local_time.last_days(CHART_DAYS, account.time_zone, now)
    counts = notification_days.since(account.seq, days[0])
    stats = notification_days.stats(account.seq, days[-1])
    return {"days": [(day, counts.get(day, 0)) for day in days], "stats": stats}


def send_test() -> Page:
    """POST /app/test: sends an ordinary notification to all devices."""
    content = Content("It works", "This is a test from Pocketbell.")
    sent = delivery.deliver(Owner.of(current().account), content)
    return redirect(f"/app/notifications/{sent.notification.id}", 303)


def hide_first_steps() -> Page:
    """POST /app/first-steps/hide."""
    accounts.hide_first_steps(current().account)
    return redirect("/app/", 303)


def note_devices() -> Page:
    """POST /app/devices/seen: the owner has seen the present devices, so Home stops warning about them."""
    account, seen = current().account, request.form.get("seen", "")
    newest = max((one.seq for one in Device.of_account(account.seq)), default=0)
    accounts.note_devices(account, min(int(seen), newest) if re.fullmatch("[0-9]{1,18}", seen) else 0)
    return page.back_to("/app/", "Thanks. You will be told when a key adds another device.")


def _quiet(account: Account, now: int) -> Quiet | None:
    """The quiet hours in force and the held notifications; None if there are neither."""
    held = held_notifications.of_account(account.seq)
    until = None
    if account.quiet_hours and local_time.is_quiet(account.quiet_hours, account.time_zone, now):
        until = local_time.next_change(account.quiet_hours, account.time_zone, now)
    if not held and until is None:
        return None
    return Quiet(until, sum(one.held_count for one in held), digests.releases(held, now))


def _sentence(need: Need) -> str:
    name = f"“{page.isolated(need.name)}” " if need.name else ""
    since = f" since {page.near(need.since)}" if need.since else ""
    return f"{name}{need.said}. {need.why}{since}.".replace("..", ".")


def _path(need: Need) -> str:
    """The page where the owner can do something about it; "" if there is none."""
    return PATHS.get(need.kind, "").format(*map(quote_plus, need.ids))
