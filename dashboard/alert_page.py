"""The frame of an alert's page: four parts, each at an address of its own, and the list of alerts beside them."""

import re
from itertools import takewhile
from typing import Any, NamedTuple

from flask import render_template

from core import presets, recent_requests
from dashboard import page
from dashboard.page import Page
from models import Alert
from store import alert_events, notifications
from store.notifications import LatestOfAlert
from web import guards
from web.context import current, request
from wire.json_text import as_json
from wire.validation import counted

TABS = {"connect": "Connect", "message": "Message", "activity": "Activity", "settings": "Settings"}
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^{}\[\],:"]+')
DEEPEST = 8  # levels that are indented: a deeper payload must not make a page of spaces


def shown_tab(alert: Alert) -> str:
    """The part that the address asks for. Until the first request it is Connect, and then Message."""
    asked = request.args.get("tab", "")
    return asked if asked in TABS else "message" if alert.last_triggered_at else "connect"


def render(alert: Alert, tab: str, **more: Any) -> str:
    """A part of the page, with the common values of all parts."""
    return render_template(
        f"alert_{tab}.html",
        alert=alert,
        tab=tab,
        tabs=TABS,
        preset=presets.of(alert.preset),
        seen=recent_requests.of_alert(alert.seq),
        **more,
    )


def listed() -> list[tuple["Trouble", Alert]]:
    """The owner's alerts, those with problems first."""
    latest = notifications.latest_of_alerts(current().account.seq)
    found = [(_trouble(alert, latest.get(alert.seq)), alert) for alert in Alert.of_account(current().account.seq)]
    return sorted(found, key=lambda pair: (not pair[0].is_bad, not pair[0].words, not pair[1].is_active))


class Trouble(NamedTuple):
    """An alert's problem in words, empty if it has none; `is_bad` if the alert does not notify."""

    words: str = ""
    is_bad: bool = False


def _trouble(alert: Alert, latest: LatestOfAlert | None) -> Trouble:
    if alert.paused_at:
        return Trouble(f"Paused {page.near(alert.paused_at)}: too many requests", True)
    if alert.is_active and latest and latest.status == "failed":
        return Trouble("Last notification failed", True)
    seen = recent_requests.of_alert(alert.seq) if alert.is_active else []
    if refused := list(takewhile(lambda one: one.status >= 400, seen)):
        times, first = sum(one.times for one in refused), refused[-1]
        since = page.near(first.at if first.since is None else first.since).removeprefix("today ")
        return Trouble(f"Refused {counted(times, 'request')} since {since}: {refused[0].words}", True)
    if alert.is_active and latest and latest.missing:
        return Trouble(f"{counted(len(latest.missing), 'variable')} missing in the last request")
    return Trouble()


def connect_tab(alert: Alert) -> str:
    """The address, and how to send to it."""
    sample, address = as_json(presets.of(alert.preset).sample), f"{guards.origin()}/p/{alert.short_code}"
    return render(alert, "connect", address=address, picture=page.qr_svg(address), sample=sample)


def activity_tab(alert: Alert) -> str:
    """The latest requests, and the last one in full."""
    last, seen = alert_events.find_payload(alert.seq), recent_requests.of_alert(alert.seq)
    made = [one.notification_id for one in seen if one.notification_id]
    payload = laid_out(last.payload) if last and last.payload else ""
    titles = notifications.titles(current().account.seq, made)
    return render(alert, "activity", last=last, payload=payload, titles=titles)


def back_to(alert_id: str, said: str, tab: str, kind: str = "message") -> Page:
    """Redirect to a part of the alert's page, which shows this message."""
    return page.back_to(f"/app/alerts/{alert_id}?tab={tab}", said, kind)


def laid_out(compact: str) -> str:
    """JSON text over several lines, digit for digit as it came."""
    parts, depth, before = list[str](), 0, ""
    for token in TOKEN.findall(compact):
        is_end = token in ("}", "]")
        depth -= is_end
        if before == ":":
            parts.append(" ")
        elif (before in ("{", "[", ",") and not is_end) or (is_end and before not in ("{", "[")):
            parts.append("\n" + "  " * min(depth, DEEPEST))
        parts.append(token)
        depth += token in ("{", "[")
        before = token
    return "".join(parts)
