"""The frame of an alert's page: four parts, each at an address of its own, and what they all show."""

import re
from typing import Any

from flask import flash, redirect, render_template, request

from core import presets, recent_requests
from dashboard import page
from dashboard.page import Page
from models import Alert
from store.alert_payloads import AlertPayload
from store.notifications import Notification
from web import guards
from web.context import current
from wire.json_text import as_json

TABS = {"connect": "Connect", "message": "Message", "activity": "Activity", "settings": "Settings"}
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^{}\[\],:"]+')
DEEPEST = 8  # levels that are indented: a deeper payload must not make a page of spaces


def shown_tab(alert: Alert) -> str:
    """The part that the address asks for. Until the first request it is Connect, and then Message."""
    asked = request.args.get("tab", "")
    return asked if asked in TABS else "message" if alert.last_triggered_at else "connect"


def render(alert: Alert, tab: str, **more: Any) -> str:
    """A part of the page, with what all parts have in common."""
    return render_template(
        f"alert_{tab}.html",
        alert=alert,
        tab=tab,
        tabs=TABS,
        preset=presets.of(alert.preset),
        seen=recent_requests.of_alert(alert.seq),
        listed=Alert.of_account(current().account.seq),
        **more,
    )


def connect_tab(alert: Alert) -> str:
    """The address, and how to send to it."""
    return render(
        alert,
        "connect",
        address=page.webhook_address(alert),
        is_local=page.is_local(guards.origin()),
        sample=as_json(presets.of(alert.preset).sample),
    )


def activity_tab(alert: Alert) -> str:
    """The latest requests, and the last one in full."""
    last, seen = AlertPayload.find(alert.seq), recent_requests.of_alert(alert.seq)
    made = [one.notification_id for one in seen if one.notification_id]
    payload = laid_out(last.payload) if last and last.payload else ""
    titles = Notification.titles(current().account.seq, made)
    return render(alert, "activity", last=last, payload=payload, titles=titles)


def back_to(alert_id: str, said: str, tab: str, kind: str = "message") -> Page:
    """Redirect to a part of the alert's page, which shows this message: a `message`, `warning` or `error`."""
    flash(said, kind)
    return redirect(f"/app/alerts/{alert_id}?tab={tab}", 303)


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
