"""The history with search and filters, and the page of one notification: its status on each device, its alarm."""

import re

from flask import flash, redirect, render_template, request

from core import alarms, deletion, digests, local_time, plans
from dashboard.page import Page, Problem
from models import Alert
from process import clock
from store.alarms import Alarm
from store.buttons import ButtonAnswer
from store.database import AFTER_ALL
from store.deliveries import Delivery
from store.held import Held
from store.notifications import Entry, Notification
from store.search import Found, Wanted, search
from web.context import current
from wire.errors import Refused
from wire.notification import DEFAULT_PRIORITY, PRIORITIES, STATUSES
from wire.validation import MAX_SEARCH_CHARACTERS

PAGE_ROWS = 50
MAX_SHOWN_OF_DIGEST = 200
MAX_SHOWN_REPLACED = 5


def show_history() -> Page:
    """GET /app/notifications?search&alert&status&priority&day&before."""
    asked = {name: request.args.get(name, "") for name in ("search", "alert", "status", "priority", "day")}
    try:
        return _history_page(asked, _found(asked))
    except Refused as refused:
        problem = Problem(refused.message, refused.field)
        return _history_page(asked, Found([], AFTER_ALL, True), problem), refused.status


def _history_page(asked: dict[str, str], found: Found, problem: Problem | None = None) -> str:
    account = current().account
    return render_template(
        "history.html",
        asked=asked,
        problem=problem,
        is_filtered=any(asked.values()),
        entries=Notification.entries(found.seqs),
        older=None if found.is_done else {**{k: v for k, v in asked.items() if v}, "before": found.before},
        alerts=Alert.of_account(account.seq),
        statuses=STATUSES,
        priorities=PRIORITIES,
        days_kept=plans.PLANS[account.plan].history_days,
        today=local_time.local_day(clock.now_ms(), account.time_zone),
    )


def _found(asked: dict[str, str]) -> Found:
    """The rows that the query parameters ask for; `Refused` if one is invalid."""
    account, wanted, before = current().account, _wanted(asked), _before()
    since = plans.history_begin(account.plan, clock.now_ms())
    if asked["day"]:
        begin, end = local_time.day_bounds(asked["day"], account.time_zone)
        since, before = max(since, begin), min(before, Notification.newest_between(begin, end) + 1)
        wanted = wanted._replace(until=end)
    return search(account.seq, before, since, PAGE_ROWS, wanted)


def _wanted(asked: dict[str, str]) -> Wanted:
    if len(asked["search"]) > MAX_SEARCH_CHARACTERS:
        raise Refused(400, f"The search is longer than {MAX_SEARCH_CHARACTERS} characters.", field="search")
    if asked["status"] and asked["status"] not in STATUSES:
        raise Refused(400, f"The status must be one of {', '.join(STATUSES)}.", field="status")
    alert = Alert.find(current().account.seq, asked["alert"]) if asked["alert"] else None
    if asked["alert"] and alert is None:
        raise Refused(404, "There is no such alert any more.", field="alert")
    priority = PRIORITIES.get(asked["priority"])
    if asked["priority"] and priority is None:
        raise Refused(400, f"The priority must be one of {', '.join(PRIORITIES)}.", field="priority")
    return Wanted(asked["search"], asked["status"] or None, alert.seq if alert else None, priority)


def _before() -> int:
    value = request.args.get("before", "")
    if not re.fullmatch("[0-9]{0,18}", value):
        raise Refused(400, "This link to older notifications is not one of these pages.")
    return int(value) if value else AFTER_ALL


def show_notification(notification_id: str) -> Page:
    """GET /app/notifications/{id}: works for a digest too, although no list shows digests."""
    account, now = current().account, clock.now_ms()
    entry = Notification.find(account.seq, notification_id, plans.history_begin(account.plan, now))
    if entry is None:
        raise Refused(404, "There is no such notification: it may be older than the history goes back.")
    contents = Notification.entries(Held.lines(entry.seq, MAX_SHOWN_OF_DIGEST)) if entry.is_digest else []
    return render_template(
        "notification.html",
        entry=entry,
        deliveries=Delivery.of_notification(entry.digest_seq or entry.seq),
        alarm=Alarm.find(entry.seq),
        acknowledged_on=Alarm.device_of(entry.seq),
        contents=contents,
        replaced=Notification.entries(Notification.replaced_with(account.seq, entry, MAX_SHOWN_REPLACED)),
        releases=_releases(entry, now),
        given=ButtonAnswer.find(entry.seq) if entry.content.actions else None,
    )


def acknowledge_notification(notification_id: str) -> Page:
    """POST /app/notifications/{id}/acknowledge."""
    alarms.acknowledge_notification(current().account.seq, notification_id, clock.now_ms())
    return redirect(f"/app/notifications/{notification_id}", 303)


def delete_notification(notification_id: str) -> Page:
    """POST /app/notifications/{id}/delete."""
    deletion.delete_notification(current().account.seq, notification_id)
    flash("The notification is deleted.")
    return redirect("/app/notifications", 303)


def _releases(entry: Entry, now: int) -> list[int]:
    """The times at which a held notification will be released, given the present settings."""
    if entry.status != "held" or entry.digest_seq:  # a newer one with its tag stands for it
        return []
    if entry.content.deliver_at is not None:
        return [entry.content.deliver_at]
    collected_with = max(entry.content.priority or DEFAULT_PRIORITY, DEFAULT_PRIORITY)
    held = [one for one in Held.of_account(current().account.seq) if one.alert_seq == entry.alert_seq]
    return digests.releases([one for one in held if one.priority == collected_with], now)
