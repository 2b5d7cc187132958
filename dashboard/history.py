"""The history: search, filters, pages, the number of new notifications, CSV, and actions on several at once."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Response, redirect, render_template

from core import accounts, alarms, deletion, local_time, plans, runs
from core.runs import RunPage
from dashboard import page
from dashboard.home import last_days
from dashboard.page import Page, Problem
from models import Account, Alert, ApiKey
from process import clock
from store import notifications
from store.database import AFTER_ALL
from store.history import MAX_COUNTED, Sent, by_sender
from store.notifications import Entry
from store.search import Found, Span, Wanted, search, span_between
from web.context import current, request
from wire.errors import Refused
from wire.notification import PRIORITIES, PRIORITY_WORDS, STATUSES
from wire.validation import MAX_SEARCH_CHARACTERS, counted

PAGE_ROWS = 50
MAX_RANG = 5
MAX_NEW = 99  # new notifications that are counted
MAX_CHOSEN = runs.MAX_READ  # notifications of a form: all of a page
MAX_CSV_ROWS = 100_000
ASKED = ("search", "sender", "status", "priority", "since", "until")
ADDRESS = "/app/notifications"
WORD = re.compile(r'"([^"]+)"|“([^”]+)”|„([^“”]+)[“”]|(\S+)')

Asked = dict[str, str]


class Chip(NamedTuple):
    """A filter that one tap sets, or removes if `is_on`."""

    words: str
    query: str
    is_on: bool


# --- the page -----------------------------------------------------------------------------------------------


def show_history() -> Page:
    """GET /app/notifications?search&sender&status&priority&since&until&before&after&select."""
    asked, newest = _asked(request.args), notifications.newest_seq(current().account.seq)
    try:
        span = _span(newest)
        found = _runs(asked, span)
    except Refused as refused:
        problem = Problem(refused.message, refused.field)
        if refused.status == 404:
            asked["sender"] = ""  # another account's answers as an unknown one does, byte for byte
        return _history_page(asked, RunPage([], AFTER_ALL, True), Span(newest + 1), newest, problem), refused.status
    if span.is_upward and found.is_done:  # the first page has these, and older ones up to a full page
        return redirect(ADDRESS + _query(asked, select=request.args.get("select")), 303)
    return _history_page(asked, found, span, newest)


def _history_page(asked: Asked, found: RunPage, span: Span, newest: int, problem: Problem | None = None) -> str:
    values = _list(asked, found, span, newest, request.args.get("select"))
    if not page.is_phone() and not current().account.has_dense_rows:  # these take the whole width
        values |= last_days(current().account, clock.now_ms()) | _rang()
    return render_template("history.html", problem=problem, **values)


def _rang() -> dict[str, Any]:
    """The alerts and keys that sent most in seven days, each with the query for what it sent; and of how many."""
    account = current().account
    first_day = local_time.last_days(7, account.time_zone, clock.now_ms())[0]
    begin, _ = local_time.day_bounds(first_day, account.time_zone)
    alerts = {one.seq: one for one in Alert.of_account(account.seq)}
    keys = {one.seq: one for one in ApiKey.of_account(account.seq)}
    rang, all_sent = list[tuple[Sent, Alert | ApiKey, str]](), by_sender(account.seq, begin)
    for sent in all_sent:
        sender = alerts.get(sent.alert_seq or 0) or keys.get(sent.api_key_seq or 0)
        if sender:  # neither deleted nor Pocketbell itself
            rang.append((sent, sender, _query({"sender": sender.id, "since": first_day})))
    is_cut = sum(sent.sent for sent in all_sent) == MAX_COUNTED
    return {"rang": rang[:MAX_RANG], "rang_of": MAX_COUNTED if is_cut else None}


def beside(seq: int) -> dict[str, Any]:
    """The values of the list beside the notification with this seq: the part of the history named in the address.

    Without a part, or with an invalid filter, it is the first one; if that ends before the notification, it is the
    part that begins with it.
    """
    asked, newest = _asked(request.args), notifications.newest_seq(current().account.seq)
    try:
        span = _span(newest)
        found = _runs(asked, span)
    except Refused:
        asked, span = _asked({}), Span(newest + 1)
        found = _runs(asked, span)
    if found.runs and seq < found.runs[-1][-1].seq:
        span = Span(seq + 1)
        found = _runs(asked, span)
    return _list(asked, found, span, newest)


def alike(seq: int) -> list[int]:
    """The seqs of the others in one row with this notification, newest first, in the part named in the address."""
    try:
        wanted = _wanted(_asked(request.args))
    except Refused:
        wanted = Wanted()
    return [one.seq for one in runs.around(current().account, seq, wanted) if one.seq != seq]


def _list(asked: Asked, found: RunPage, span: Span, newest: int, select: str | None = None) -> dict[str, Any]:
    """The values of the list: its filters, the rows, and the links to older and newer ones."""
    account, is_first = current().account, span == Span(newest + 1)
    older, newer = _places(found, span, is_first)
    begin = None if is_first or not found.runs else found.runs[0][0].seq + 1
    keys, alerts = ApiKey.of_account(account.seq), Alert.of_account(account.seq)
    senders = {**{one.id: one.name for one in keys}, **{one.id: one.name for one in alerts}}
    days_kept = plans.PLANS[account.plan].history_days
    return {
        "asked": asked,
        "terms": terms(asked["search"]),
        "is_filtered": any(asked.values()),
        "chips": list(_chips(asked, senders)),
        "entries": notifications.entries([run[0].seq for run in found.runs]),
        "runs": {run[0].seq: run for run in found.runs},
        "older": older and _query(asked, before=older, select=select),
        "newer": newer is not None and _query(asked, after=newer, select=select),
        "news": _query(asked, after=newest) if is_first else "",
        "is_selecting": bool(select),
        "select": _query(asked, before=begin, select=None if select else "1"),
        "first_page": _query(asked),
        "this_page": _query(asked, before=begin),
        "alerts": alerts,
        "keys": [key for key in keys if not key.revoked_at or key.id == asked["sender"]],
        "statuses": STATUSES,
        "priorities": PRIORITIES,
        "days_kept": days_kept,
        "searched": "" if found.runs else _searched(asked, senders, days_kept),
        "all_time": _query(asked, since="", until="") if asked["since"] or asked["until"] else None,
        "today": local_time.local_day(clock.now_ms(), account.time_zone),
    }


def _places(found: RunPage, span: Span, is_first: bool) -> tuple[int | None, int | None]:
    """The seq before which the next page begins, and the seq after which the page before it does; None if none."""
    if span.is_upward:
        return (found.runs[-1][-1].seq if found.runs else span.after + 1), found.last
    return (None if found.is_done else found.last), (None if is_first else max(0, span.before - 1))


def _chips(asked: Asked, senders: dict[str, str]) -> Iterator[Chip]:
    """The usual filters, and other filters that are set."""
    week = local_time.last_days(7, current().account.time_zone, clock.now_ms())
    usual = {
        "Last 7 days": {"since": week[0], "until": ""},
        "Failed": {"status": "failed"},
        "Urgent": {"priority": "urgent"},
    }
    for words, filters in usual.items():
        is_on = filters.items() <= asked.items()
        yield Chip(words, _query({**asked, **(dict.fromkeys(filters, "") if is_on else filters)}), is_on)
    others = {
        ("since", "until"): _days_words(asked),
        ("sender",): senders.get(asked["sender"], ""),
        ("status",): asked["status"].capitalize(),
        ("priority",): asked["priority"] and f"Priority {asked['priority']}",
    }
    for names, words in others.items():
        if words and {name: asked[name] for name in names} not in usual.values():
            yield Chip(words, _query({**asked, **dict.fromkeys(names, "")}), True)


def _days_words(asked: Asked) -> str:
    """The wanted days, if any are."""
    begin, until = asked["since"], asked["until"]
    if begin == until:
        return begin
    return f"{begin} to {until}" if begin and until else f"From {begin}" if begin else f"Until {until}"


def _searched(asked: Asked, senders: dict[str, str], days_kept: int) -> str:
    """What an empty page of the history was searched for, beside the words, as a sentence."""
    week = local_time.last_days(7, current().account.time_zone, clock.now_ms())
    is_week = (asked["since"], asked["until"]) == (week[0], "")
    days = "In the last 7 days" if is_week else _days_words(asked) or f"In the {days_kept:,} days that are kept"
    name = senders.get(asked["sender"])
    more = [f"{field} {asked[field]}" for field in ("status", "priority") if asked[field]]
    return ", ".join([days, f"sent by {page.isolated(name) if name else 'any sender'}", *more]) + "."


def part_asked() -> str:
    """The query for the way back to the part of the history that the address names: its filters and its page."""
    return _query(_asked(request.args), before=request.args.get("before"))


def _query(asked: Mapping[str, Any], **more: Any) -> str:
    """The query of the page's address for these filters, without the empty ones."""
    query = urlencode({name: value for name, value in {**asked, **more}.items() if value not in (None, "")})
    return f"?{query}" if query else ""


# --- the filters --------------------------------------------------------------------------------------------


def terms(text: str) -> tuple[str, ...]:
    """The words of a search, and its phrases in quotes, each once: all must be found."""
    return tuple(dict.fromkeys(next(filter(None, found.groups())) for found in WORD.finditer(text)))


def _asked(sent: Mapping[str, str]) -> Asked:
    asked = {name: sent.get(name, "") for name in ASKED}
    asked["sender"] = asked["sender"] or sent.get("alert", "")  # as alerts' pages link it
    return asked


def _runs(asked: Asked, span: Span) -> RunPage:
    """The rows of a page; `Refused` if a filter is invalid."""
    wanted = _wanted(asked)
    return runs.read(current().account, _of_days(wanted, span), wanted, PAGE_ROWS)


def _of_days(wanted: Wanted, span: Span) -> Span:
    """The part of the span within the wanted days, if any are given."""
    if wanted.begin == 0 and wanted.until == AFTER_ALL:
        return span
    days = span_between(wanted.begin, wanted.until)
    return span._replace(before=min(span.before, days.before), after=max(span.after, days.after))


def _wanted(asked: Asked) -> Wanted:
    if len(asked["search"]) > MAX_SEARCH_CHARACTERS:
        raise Refused(400, f"The search is longer than {MAX_SEARCH_CHARACTERS} characters.", field="search")
    if asked["status"] and asked["status"] not in STATUSES:
        raise Refused(400, f"The status must be one of {', '.join(STATUSES)}.", field="status")
    priority = PRIORITIES.get(asked["priority"])
    if asked["priority"] and priority is None:
        raise Refused(400, f"The priority must be one of {', '.join(PRIORITIES)}.", field="priority")
    alert_seq, key_seq = _sender(asked["sender"])
    zone = current().account.time_zone
    begin = local_time.day_bounds(asked["since"], zone, "since")[0] if asked["since"] else 0
    until = local_time.day_bounds(asked["until"], zone, "until")[1] if asked["until"] else AFTER_ALL
    if begin >= until:
        raise Refused(400, "The first day must not be after the last one.", field="since")
    status, words = asked["status"] or None, terms(asked["search"])
    return Wanted(words, status, alert_seq, key_seq, priority, begin, until, is_bare=True)


def _sender(sender_id: str) -> tuple[int | None, int | None]:
    """The seq of the alert or that of the key with this id; `Refused` if there is neither."""
    if not sender_id:
        return None, None
    account_seq = current().account.seq
    if alert := Alert.find(account_seq, sender_id):
        return alert.seq, None
    for key in ApiKey.of_account(account_seq):
        if key.id == sender_id:
            return None, key.seq
    raise Refused(404, "This alert or key no longer exists.", field="sender")


def _span(newest: int) -> Span:
    """The span by the page's place in the address: all, if it has none."""
    places = {name: request.args.get(name, "") for name in ("before", "after")}
    if not all(re.fullmatch("[0-9]{0,18}", value) for value in places.values()):
        raise Refused(400, "This link to a page of the history is broken.")
    if places["after"]:
        return Span(newest + 1, int(places["after"]), is_upward=True)
    return Span(min(newest + 1, int(places["before"] or AFTER_ALL)))


# --- new notifications, and a download ----------------------------------------------------------------------


def count_new() -> dict[str, str]:
    """GET /app/notifications/new?after: the number of newer ones that pass the filters; "" if there is none."""
    wanted = _wanted(_asked(request.args))
    found = _found(current().account, wanted, _of_days(wanted, _span(AFTER_ALL - 1)), MAX_NEW)
    many = f"{len(found.seqs)}{'' if found.is_done else '+'}"
    return {"new": many if found.seqs else ""}


def download_history() -> Response:
    """GET /app/notifications.csv: the newest that pass the filters."""
    wanted = _wanted(_asked(request.args))
    pieces = _newest(current().account, wanted, _of_days(wanted, Span()))
    return page.csv_file("notifications.csv", CSV_COLUMNS, (list(map(_cells, piece)) for piece in pieces))


CSV_COLUMNS = ("time", "title", "body", "from", "status", "priority", "link", "tag")


def _cells(entry: Entry) -> tuple[str, ...]:
    said = entry.content
    priority = PRIORITY_WORDS[said.priority] if said.priority else ""
    sender = entry.alert or entry.api_key or ""
    at = local_time.utc_time(entry.created_at)
    return at, said.title, said.body, sender, entry.shown_status, priority, said.url or "", said.tag or ""


def _newest(account: Account, wanted: Wanted, span: Span) -> Iterator[list[Entry]]:
    """The newest that pass the filters, as many as fit into a download; a piece may be empty."""
    rows = 0
    while rows < MAX_CSV_ROWS:
        found = _found(account, wanted, span, min(PAGE_ROWS, MAX_CSV_ROWS - rows))
        yield notifications.entries(found.seqs)
        if found.is_done:
            return
        rows += len(found.seqs)
        span = span._replace(before=found.last)


def _found(account: Account, wanted: Wanted, span: Span, limit: int) -> Found:
    """The newest of the span that pass the filters, within the history that the plan keeps."""
    return search(account.seq, span, plans.history_begin(account.plan, clock.now_ms()), limit, wanted)


def save_rows() -> Page:
    """POST /app/notifications/rows?… with `dense`, 1 or 0: how the account's rows look."""
    accounts.change(current().account, has_dense_rows=int(request.form.get("dense") == "1"))
    return redirect(ADDRESS + part_asked(), 303)


# --- several at once ----------------------------------------------------------------------------------------


def delete_chosen() -> Page:
    """POST /app/notifications/delete?… with `id`s: asks first, unless the form has `confirmed`."""
    account, ids = current().account, _chosen()
    if not ids:
        return page.back_to(ADDRESS + part_asked(), "Select some notifications first.", "warning")
    if not request.form.get("confirmed"):
        entries = notifications.entries(notifications.find_seqs(account.seq, ids))
        return render_template("delete_several.html", entries=entries, part=part_asked())
    deleted = deletion.delete_several(account.seq, ids)
    return page.back_to(ADDRESS + part_asked(), f"{counted(deleted, 'notification')} deleted.")


def acknowledge_chosen() -> Page:
    """POST /app/notifications/acknowledge?… with `id`s: acknowledges the ones that wait for it."""
    count = alarms.acknowledge_several(current().account.seq, _chosen(), clock.now_ms())
    if not count:
        return page.back_to(ADDRESS + part_asked(), "None of these was waiting to be acknowledged.", "warning")
    return page.back_to(ADDRESS + part_asked(), f"{counted(count, 'notification')} acknowledged.")


def _chosen() -> list[str]:
    ids = [one for row in request.form.getlist("id") for one in row.split(",") if one]  # a row may be several
    if len(ids) > MAX_CHOSEN:
        raise Refused(400, f"Select at most {MAX_CHOSEN} notifications at once.")
    return ids
