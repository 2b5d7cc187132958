"""The page of a notification: its status on each device, its alarm, actions."""

from functools import partial

from flask import flash, redirect, render_template

from core import alarms, answers, deletion, local_time, plans, snoozes
from dashboard import history, page
from dashboard.page import Page
from process import clock
from process.clock import HOUR_MS
from providers import PROVIDERS
from store import alarms as stored_alarms
from store import buttons, deliveries, held_notifications, notifications
from store.notifications import Entry
from web.context import current, request
from wire.errors import Refused, existing

MAX_SHOWN_OF_DIGEST = 200
MAX_SHOWN_REPLACED = 5
MAX_SHOWN_ALIKE = 100


def show_notification(notification_id: str) -> Page:
    """GET /app/notifications/{id}: works for a digest too, although no list shows digests."""
    account, entry = current().account, _find(notification_id)
    lines = held_notifications.lines(entry.seq, MAX_SHOWN_OF_DIGEST) if entry.is_digest else []
    alike = [] if entry.is_digest else history.alike(entry.seq)
    return render_template(
        "notification.html",
        entry=entry,
        **({"this_page": history.part_asked()} if page.is_phone() else history.beside(entry.seq)),
        deliveries=deliveries.of_notification(entry.delivered_as),
        alike=notifications.entries(alike[:MAX_SHOWN_ALIKE]),
        alike_count=len(alike),
        alarm=stored_alarms.find(entry.seq),
        lasts_s=alarms.lasts_s,
        stops_at=partial(alarms.stops_at, now=clock.now_ms()),
        contents=notifications.entries(lines),
        replaced=notifications.entries(
            notifications.replaced_with(account.seq, entry.content.tag, entry.seq, MAX_SHOWN_REPLACED)
        ),
        taken_by=lambda device: PROVIDERS[device.kind].taken_by(device.token),
        can_snooze=not entry.is_digest and snoozes.why_not(entry) is None,
        snoozed_until=snoozes.snoozed_until(entry),
        given=buttons.answer_to(entry.seq) if entry.content.actions else None,
    )


def _find(notification_id: str) -> Entry:
    account = current().account
    since = plans.history_begin(account.plan, clock.now_ms())
    gone = "This notification no longer exists. It was deleted, or it is too old."
    return existing(notifications.find(account.seq, notification_id, since), gone)


def answer_notification(notification_id: str) -> Page:
    """POST /app/notifications/{id}/answer with `position`, the place of the answer among the actions."""
    position = request.form.get("position", "")
    try:
        answers.answer(current().account, notification_id, int(position) if position in tuple("0123456789") else -1)
    except Refused as refused:
        if refused.status != 409:
            raise
        flash(refused.message, "error")
    return redirect(_address(notification_id), 303)


def acknowledge_notification(notification_id: str) -> Page:
    """POST /app/notifications/{id}/acknowledge?back, by its page or by Home."""
    alarms.acknowledge_notification(current().account.seq, notification_id, clock.now_ms())
    return redirect(page.asked_for("back", _address(notification_id)), 303)


def snooze_notification(notification_id: str) -> Page:
    """POST /app/notifications/{id}/snooze, for `hour` or until `morning`, as the field `until` says."""
    account, now = current().account, clock.now_ms()
    _find(notification_id)
    morning = local_time.at_clock(now, 1, (9, 0), account.time_zone)  # tomorrow at 9:00
    until = {"hour": now + HOUR_MS, "morning": morning}.get(request.form.get("until", ""))
    if until is None:
        raise Refused(400, "Choose until when it is snoozed.")
    try:
        snoozes.snooze(account.seq, account.plan, notification_id, until, now)
    except Refused as refused:
        flash(refused.message, "error")
    return redirect(_address(notification_id), 303)


def delete_notification(notification_id: str) -> Page:
    """POST /app/notifications/{id}/delete."""
    deletion.delete_notification(current().account.seq, notification_id)
    return page.back_to(history.ADDRESS + history.part_asked(), "Notification deleted.")


def _address(notification_id: str) -> str:
    """The notification's page, in the part of the history that the address names."""
    return f"/app/notifications/{notification_id}{history.part_asked()}"
