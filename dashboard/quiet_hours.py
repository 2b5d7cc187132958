"""Quiet hours: set the daily window, show held notifications, and deliver them at once."""

from flask import render_template

from core import accounts, digests, local_time
from dashboard import page
from dashboard.page import Page, Problem
from process import clock
from store import held_notifications
from web.context import current, request
from wire.errors import Refused


def show_quiet_hours() -> Page:
    """GET /app/quiet."""
    begin, _, end = (current().account.quiet_hours or "").partition("-")
    return _quiet_page(begin, end)


def _quiet_page(begin: str, end: str, problem: Problem | None = None) -> str:
    account, now = current().account, clock.now_ms()
    held = held_notifications.of_account(account.seq)
    return render_template(
        "quiet.html",
        begin=begin,
        end=end,
        problem=problem,
        is_quiet=local_time.is_quiet(account.quiet_hours, account.time_zone, now),
        window=local_time.next_window(account.quiet_hours, account.time_zone, now) if account.quiet_hours else None,
        held_count=sum(alert.held_count for alert in held),
        releases=digests.releases(held, now),
    )


def save_quiet_hours() -> Page:
    """POST /app/quiet: sets the window, or removes it with `off`."""
    begin, end = request.form.get("begin", ""), request.form.get("end", "")
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
