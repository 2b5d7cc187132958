"""Quiet hours: set the daily window, show held notifications, and deliver them at once."""

from typing import NamedTuple

from flask import render_template

from core import accounts, alerts, digests, local_time
from dashboard import page
from dashboard.page import Page, Problem
from models import Account, Alert
from process import clock
from store import held_notifications
from web.context import current, request
from wire.errors import Refused

USUAL = ("22:00", "07:00")  # offered while they are off
WIDTH = 240  # of the bar of a day
PASSES = {"ignore": "everything", "urgent": "urgent"}  # of an alert, by its setting


class Night(NamedTuple):
    """The quiet hours on a bar of a day: their two times, the parts that they cover, and the present time."""

    begin: str
    end: str
    parts: list[tuple[float, float]]
    clock: str
    now: float


def show_quiet_hours() -> Page:
    """GET /app/quiet."""
    begin, end = _hours(current().account) or USUAL
    return _quiet_page(begin, end)


def _hours(account: Account) -> list[str] | None:
    return account.quiet_hours.split("-") if account.quiet_hours else None


def _quiet_page(begin: str, end: str, problem: Problem | None = None) -> str:
    account, now = current().account, clock.now_ms()
    held, listed = held_notifications.of_account(account.seq), Alert.of_account(account.seq)
    through = [(alert, PASSES[word]) for alert in listed if (word := alerts.quiet_hours_word(alert)) in PASSES]
    return render_template(
        "quiet.html",
        begin=begin,
        end=end,
        problem=problem,
        is_quiet=local_time.is_quiet(account.quiet_hours, account.time_zone, now),
        night=_night(account, now),
        through=through,
        waiting=len(listed) - len(through),
        window=local_time.next_window(account.quiet_hours, account.time_zone, now) if account.quiet_hours else None,
        held_count=sum(alert.held_count for alert in held),
        releases=digests.releases(held, now),
    )


def _night(account: Account, now: int) -> Night | None:
    hours = _hours(account)
    if hours is None:
        return None
    clock_now = local_time.laid_out(now, "%H:%M", account.time_zone)
    begin, end, at = (round(WIDTH * (int(one[:2]) + int(one[3:]) / 60) / 24, 1) for one in (*hours, clock_now))
    return Night(hours[0], hours[1], [(begin, end)] if begin < end else [(0, end), (begin, WIDTH)], clock_now, at)


def save_quiet_hours() -> Page:
    """POST /app/quiet: sets the window, or removes it with `off`; with `on`, sets the usual one."""
    sent = dict(zip(("begin", "end"), USUAL, strict=True)) if request.form.get("on") else request.form
    begin, end = sent.get("begin", ""), sent.get("end", "")
    window = None if request.form.get("off") else f"{begin}-{end}"
    try:
        if window and not (begin.strip() and end.strip()):
            raise Refused(400, "Enter when quiet hours begin and end.")
        accounts.set_quiet_hours(current().account, window)
    except Refused as refused:
        problem = Problem.of(refused)
        return _quiet_page(begin, end, problem._replace(field="end" if begin.strip() else "begin")), 422
    return page.back_to("/app/quiet", f"Quiet hours set: {begin} to {end}." if window else "Quiet hours turned off.")


def deliver_held() -> Page:
    """POST /app/quiet/deliver: delivers everything that is held, now."""
    count = digests.release_now(current().account.seq)
    said = {0: "Nothing was held.", 1: "The held notification is being delivered."}
    return page.back_to("/app/quiet", said.get(count, f"{count} notifications are being delivered as one digest."))
