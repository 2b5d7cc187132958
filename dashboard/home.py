"""Home: the latest notifications, the first steps that are left, and warnings."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

from flask import redirect, render_template

import push
from core import accounts, delivery, digests, local_time, metric_rules, plans, proxies, storage
from dashboard import page
from dashboard.page import Page
from models import Account, Alert, ApiKey, Device
from process import clock
from store import heartbeats, held_notifications, notification_days, notifications
from store import metric_rules as stored_metric_rules
from store.senders import Owner, find_receivers
from web import guards
from web.context import current, request
from wire.notification import Content

LATEST = 5
CHART_DAYS = 14
LAST_IS_GONE = (
    "Your last device no longer exists, according to its push service. Notifications fail until you add another."
)

STORAGE_IS_FULL = (
    "New notifications, events and metrics are refused until you delete some. Select them in History, or run"
    " ./pocketbell history delete or ./pocketbell metric delete on the server."
)


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
    days = local_time.last_days(CHART_DAYS, account.time_zone, now)
    counts = notification_days.since(account.seq, days[0])
    newest = notifications.newest_seq(account.seq)
    latest = notifications.page(account.seq, newest + 1, plans.history_begin(account.plan, now), LATEST)
    devices, stats = Device.of_account(account.seq), notification_days.stats(account.seq, days[-1])
    return render_template(
        "home.html",
        stats=stats,
        days=[(day, counts.get(day, 0)) for day in days],
        latest=notifications.entries([seq for seq, *_ in latest.rows]),
        newest=newest,
        quiet=_quiet(account, now),
        devices=devices,
        has_key=ApiKey.count_live(account.seq) > 0,
        warnings=list(_warnings(account, devices)),
        new_devices=[(one, one.api_key) for one in devices if one.api_key and one.seq > account.known_device_seq],
        public_key=None if devices else push.public_vapid_key(),
    )


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


def _warnings(account: Account, devices: list[Device]) -> Iterator[tuple[str, str]]:
    """A sentence for each problem, with the page where the owner can fix it ("" if none)."""
    origin, kinds = guards.origin(), {device.kind for device in devices}
    if not origin.startswith("https://") and not page.is_local(origin):
        yield "Phones and other computers need https. This page uses http.", "/docs/phones#https-in-one-command"
    if proxy := proxies.warning(clock.now_ms()):
        yield proxy, ""
    if storage.is_full(account.seq):
        yield f"{storage.what_is_full()} {STORAGE_IS_FULL}", "/app/notifications"
    for kind, warning in push.warnings(account.email).items():
        if kind in kinds:
            yield warning, ""
    if not devices and find_receivers(account.seq).last_was_dead:
        yield LAST_IS_GONE, "/app/devices"
    elif not devices and account.hides_first_steps:
        yield "No device receives your notifications. They are only saved to History.", "/app/devices"
    for error in {device.last_error: None for device in devices if device.last_error}:
        names = [page.isolated(device.name) for device in devices if device.last_error == error]
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        yield f"No notifications for {', '.join(names[:2])}{more}: {error}", "/app/devices"
    yield from _stopped(account)


def _stopped(account: Account) -> Iterator[tuple[str, str]]:
    """A sentence for each heartbeat that is down, each rule that is firing and each alert that is paused."""
    for beat in heartbeats.of_account(account.seq):
        if beat.down_since and beat.state == "down":
            yield (
                f"“{page.isolated(beat.name)}” has been down since {page.near(beat.down_since)}.",
                f"/app/watches/{beat.id}",
            )
    for rule in stored_metric_rules.of_account(account.seq):
        if metric_rules.firing_since(rule):
            name, said = page.isolated(metric_rules.metric_title(rule)), metric_rules.firing_text(rule)
            since = "" if rule.holds_since is None else f" since {page.near(rule.holds_since)}"
            asked = urlencode({"project": rule.project_id, "metric": rule.metric_id})
            yield (
                f"“{name}” {said}{since}.",
                f"/app/metrics/one?{asked}",
            )
    for alert in Alert.of_account(account.seq):
        if alert.paused_at:
            since = f"since {page.near(alert.paused_at)}: it got too many requests"
            what = f"The alert “{page.isolated(alert.name)}” has been paused {since}."
            yield what, f"/app/alerts/{alert.id}"
