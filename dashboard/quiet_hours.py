"""Quiet hours and mutes: set the windows of the week, mute, show held notifications, and deliver them at once."""

import re
from typing import Any, NamedTuple

from flask import render_template

from core import accounts, alerts, digests, durations, local_time, mutes, week_windows
from core.week_windows import DAYS, MAX_WINDOWS, MINUTES_A_DAY
from dashboard import page
from dashboard.page import Page, Problem
from models import Account, Alert
from process import clock
from store import held_notifications
from store.mutes import ALL, HISTORY
from web.context import current, request
from wire.errors import Refused

QUIET = "/app/quiet"
WIDTH = 240  # of the bar of a day
PASSES = {"ignore": "everything", "urgent": "urgent"}  # of an alert, by its setting
PLACE = re.compile(f"[0-9]{{1,2}}-({'|'.join(DAYS)})")


class Typed(NamedTuple):
    """A window of the form: the words of its days, and its two times."""

    days: tuple[str, ...] = tuple(DAYS)
    begin: str = ""
    end: str = ""

    @property
    def text(self) -> str:
        """The window as the owner would write it."""
        return week_windows.written([*map(list(DAYS).index, self.days)], self.begin, self.end)


USUAL = Typed(begin="22:00", end="07:00")  # offered while they are off


NEW_MUTE = {"what": ALL, "duration": "1h", "cron": "", "urgent": "", "history": ""}  # the fields of its form


class Day(NamedTuple):
    """A day on the strip of the week, or each day: its name, the parts of its bar that are quiet, these in words."""

    name: str
    parts: list[tuple[float, float]]
    words: str
    now: float | None  # the present time on its bar, if it is today


def show_quiet_hours(typed: list[Typed] | None = None, problem: Problem | None = None) -> str:
    """GET /app/quiet, with the `typed` windows."""
    account, now = current().account, clock.now_ms()
    listed = Alert.of_account(account.seq)
    through = [(alert, PASSES[word]) for alert in listed if (word := alerts.quiet_hours_word(alert)) in PASSES]
    return render_template(
        "quiet.html",
        typed=typed or _saved(account),
        day_names=DAYS,
        most_windows=MAX_WINDOWS,
        problem=problem,
        week=_week(account.quiet_hours, account.time_zone, now) if account.quiet_hours else [],
        through=through,
        waiting=len(listed) - len(through),
        **at_present(account, now),
        mutes=mutes.of_account(account.seq, now),
        senders=mutes.choices(account),
        muting={**NEW_MUTE, **request.form.to_dict()},
    )


def _saved(account: Account) -> list[Typed]:
    """The windows that are set; while they are off, those that were, or the usual one."""
    hours, words = account.quiet_hours or account.last_quiet_hours, list(DAYS)
    windows = week_windows.windows_of(hours) if hours else ()
    return [Typed(tuple(words[day] for day in one.days), *one.text[-11:].split("-")) for one in windows] or [USUAL]


def at_present(account: Account, now: int) -> dict[str, Any]:
    """The present or next quiet hours (None: they are off), how much is held, and when that is delivered."""
    hours, zone, held = account.quiet_hours, account.time_zone, held_notifications.of_account(account.seq)
    return {
        "window": local_time.next_window(hours, zone, now) if hours else None,
        "is_quiet": local_time.is_quiet(hours, zone, now),
        "held_count": sum(one.held_count for one in held),
        "releases": digests.releases(held, now),
    }


def _week(hours: str, zone: str, now: int) -> list[Day]:
    """The days of the week, or one for all if these are alike."""
    today, clock_now = local_time.weekday(now, zone), local_time.laid_out(now, "%H:%M", zone)
    minute_now = int(clock_now[:2]) * 60 + int(clock_now[3:])
    week = [week_windows.of_day(hours, number) for number in range(len(DAYS))]
    if all(quiet == week[0] for quiet in week):
        return [_day("Each day", week[0], minute_now)]
    return [
        _day(name, quiet, minute_now if number == today else None)
        for number, (name, quiet) in enumerate(zip(DAYS.values(), week, strict=True))
    ]


def _day(name: str, quiet: list[tuple[int, int]], minute_now: int | None) -> Day:
    words = " and ".join(f"{_clock(begin)} to {_clock(end)}" for begin, end in quiet) or "never"
    parts = [(_place(begin), _place(end - begin)) for begin, end in quiet]
    if minute_now is None:
        return Day(name, parts, words, None)
    return Day(name, parts, f"{words}; now {_clock(minute_now)}", _place(minute_now))


def _place(minutes: int) -> float:
    """So many minutes on the bar of a day."""
    return round(WIDTH * minutes / MINUTES_A_DAY, 1)


def _clock(minute: int) -> str:
    """A minute of the day as a clock shows it; 24:00 is its end."""
    return f"{minute // 60:02}:{minute % 60:02}"


def save_quiet_hours() -> Page:
    """POST /app/quiet: sets the windows, or switches them off with `on=0`, and with `on=1` on as they were.

    A window is each `begin` with its `end`, and the `days` that have its place before them, such as `0-mo`. `without`
    is the place of one that is removed. With `more`, nothing is set yet: the form has an empty window, too.
    """
    form, account = request.form, current().account
    typed = _saved(account) if form.get("on") == "1" else [] if form.get("on") == "0" else _typed()
    if form.get("more") and len(typed) < MAX_WINDOWS:
        return show_quiet_hours([*typed, Typed((), "", "")]), 200
    try:
        for place, one in enumerate(typed):
            _check(one, place)
        accounts.set_quiet_hours(account, "; ".join(one.text for one in typed) or None)
    except Refused as refused:
        return show_quiet_hours(typed or [USUAL], _problem(refused, typed)), 422
    words = f"Quiet hours set: {week_windows.in_words('; '.join(one.text for one in typed))}." if typed else ""
    return page.back_to(QUIET, words or "Quiet hours turned off.")


def _typed() -> list[Typed]:
    """The windows of the form, without the one to be removed."""
    begins, ends, days = (request.form.getlist(name) for name in ("begin", "end", "days"))
    of_place = [day.split("-") for day in days if PLACE.fullmatch(day)]
    number = min(max(len(begins), len(ends), 1), MAX_WINDOWS + 1)
    begins, ends = (texts + [""] * (number - len(texts)) for texts in (begins, ends))
    each = [
        Typed(tuple(day for day in DAYS if [str(place), day] in of_place), begins[place], ends[place])
        for place in range(number)
    ]
    return [one for place, one in enumerate(each) if request.form.get("without") != str(place)]


def _check(one: Typed, place: int) -> None:
    if not (one.begin.strip() and one.end.strip()):
        field = f"{'end' if one.begin.strip() else 'begin'}-{place}"
        raise Refused(400, "Enter when quiet hours begin and end.", field=field)
    if not one.days:
        raise Refused(400, f"Choose the days of the quiet hours {one.begin}-{one.end}.", field=f"days-{place}")


def _problem(refused: Refused, typed: list[Typed]) -> Problem:
    """What is wrong, at the last of the windows that it names."""
    problem = Problem.of(refused)
    if problem.field:
        return problem
    named = [place for place, one in enumerate(typed) if one.text.lower() in refused.message.lower()]
    return problem._replace(field=f"end-{named[-1] if named else len(typed) - 1}")


def deliver_held() -> Page:
    """POST /app/quiet/deliver: delivers everything that is held, now."""
    count = digests.release_now(current().account.seq)
    said = {0: "Nothing was held.", 1: "The held notification is being delivered."}
    return page.back_to(QUIET, said.get(count, f"{count} notifications are being delivered as one digest."))


# --- mutes --------------------------------------------------------------------------------------------------


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
        return show_quiet_hours(None, Problem.of(refused)), 422
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
