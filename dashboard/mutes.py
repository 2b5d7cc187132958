"""Mutes in the web app: made and ended on the page Quiet hours, and at one press on the pages of what they mute."""

from typing import Any

from core import durations, mutes
from dashboard import page
from dashboard.page import Page, Problem
from dashboard.quiet_hours import NEW_MUTE, show_quiet_hours
from models import Account
from process import clock
from store.mutes import HISTORY
from web.context import current, request
from wire.errors import Refused

QUIET = "/app/quiet"


def create_mute() -> Page:
    """POST /app/mutes: mutes `what` for an hour, or for the `duration` of the form on the page Quiet hours."""
    account, form, now = current().account, request.form, clock.now_ms()
    if "duration" not in form:
        mutes.mute_for_an_hour(account.seq, mutes.subject_of(account, form.get("what", "")), now)
        return page.back_to(page.asked_for("back", QUIET), "Muted for an hour. Notifications are held until then.")
    typed = {name: form.get(name, "").strip() for name in NEW_MUTE}
    try:
        made = mutes.create_mute(account, _fields(account, typed), now)
    except Refused as refused:
        return show_quiet_hours(typed, Problem.of(refused)), 422
    said = f"Muted {mutes.subject_words(made)} {mutes.time_words(made.mute, now)}."
    return page.back_to(QUIET, said)


def _fields(account: Account, typed: dict[str, str]) -> dict[str, Any]:
    """The fields of the REST API for what was typed."""
    what, id_ = mutes.named(account, typed["what"])
    for_s = durations.seconds_of(typed["duration"], "duration", mutes.MIN_FOR_S, mutes.MAX_FOR_S)
    more = {"mode": HISTORY} if typed["history"] else {}
    cron = typed["cron"] or None
    return {"what": what, "id": id_, "forS": for_s, "cron": cron, "urgentPasses": not typed["urgent"], **more}


def end_mute(mute_id: str) -> Page:
    """POST /app/mutes/{id}/end."""
    ended = mutes.end_mute(current().account.seq, mute_id, clock.now_ms())
    words = mutes.subject_words(ended)
    return page.back_to(page.asked_for("back", QUIET), f"{words[0].upper()}{words[1:]} is no longer muted.")


OPERATIONS = (
    ("POST", "/mutes", create_mute),
    ("POST", "/mutes/<mute_id>/end", end_mute),
)
