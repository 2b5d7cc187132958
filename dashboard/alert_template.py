"""The page of one alert: edit its templates, with a preview of the last payload made by the code that delivers."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from flask import flash, redirect, render_template, request

from core import alerts, delivery, holding, message_templates, presets, recent_requests
from core.alerts import Template
from core.event_fields import holds
from core.icons import ICONS
from core.preset import Preset
from core.template_lint import Unfilled, unfilled
from dashboard import page
from dashboard.page import Page, Problem
from models import Alert
from process import clock
from store.alert_payloads import AlertPayload
from store.senders import Owner, find_webhook
from web import guards
from web.context import current
from web.request_body import read_fields
from wire.errors import Refused
from wire.json_text import as_json
from wire.notification import MIN_PRIORITY, PRIORITY_WORDS, Content
from wire.strict_json import parse_event
from wire.validation import optional_text

Payload = dict[str, Any]
FIELDS = {  # column to form field
    "title_template": "title",
    "body_template": "body",
    "priority_template": "priority",
    "url_template": "url",
    "tag_template": "tag",
    "resolved_when": "resolved",
}
SHORT = 60  # characters shown of each value that can be inserted
NO_LINK = "none, because the result is no address that begins with http"
NO_TAG = "none, because a variable is missing or all are empty"
QUIET_HOURS = {
    "follow": "hold everything",
    "urgent": "hold everything that is not urgent",
    "ignore": "hold nothing",
}
FREQUENCIES = {
    "instant": "each event at once",
    "15m": "a digest every 15 minutes",
    "1h": "a digest every hour",
    "1d": "a digest once a day",
}


class Draft(NamedTuple):
    """Templates that are not saved yet, and the JSON payload to try them on (empty: the last one received)."""

    title: str = ""
    body: str = ""
    priority: str = ""
    url: str = ""
    tag: str = ""
    resolved: str = ""
    payload: str = ""

    @property
    def columns(self) -> dict[str, str]:
        """What would be saved."""
        return {column: getattr(self, name) for column, name in FIELDS.items()}


class Preview(NamedTuple):
    """What a draft makes of a payload, or the `error` that keeps it from making anything.

    `title` and `body` are as delivered; `priority` and the five after it are shown as they are where they are not
    empty. `meant` maps each missing variable to the path that was probably meant. `unfilled` lists what stays as
    written, and why.
    """

    title: str = ""
    body: str = ""
    priority: str = ""
    url: str = ""
    tag: str = ""
    resolved: str = ""
    repeats: str = ""
    arrival: str = ""
    meant: Mapping[str, str | None] = {}
    unfilled: Sequence[Unfilled] = ()
    error: str = ""


def template_page(
    alert: Alert, draft: Draft | None = None, problem: Problem | None = None, settings: dict[str, Any] | None = None
) -> str:
    """The page; `draft` and `settings`, if given, replace the saved templates and settings."""
    draft = draft or _saved(alert)
    last = AlertPayload.find(alert.seq)
    kept = _parsed(last)
    try:
        payload, wrong = _tried(draft, kept), ""
    except Refused as refused:
        payload, wrong = None, refused.message
    preset, paths = presets.of(alert.preset), message_templates.paths(payload or {})
    return render_template(
        "alert.html",
        alert=alert,
        address=page.webhook_address(alert),
        is_local=page.is_local(guards.origin()),
        draft=draft,
        preview=Preview(error=wrong) if wrong else _preview(alert, draft, payload, paths),
        problem=problem,
        settings=settings or alert,
        in_quiet_hours=settings["quiet_hours"] if settings else alerts.quiet_hours_word(alert),
        quiet_hours=QUIET_HOURS,
        last=last,
        values=_values(paths, payload or {}),
        proposed=_proposed(alert, kept),
        preset=preset,
        sample=as_json(preset.sample),
        seen=recent_requests.of_alert(alert.seq),
        frequencies=FREQUENCIES,
        icons=sorted(ICONS),
        longest_payload=alerts.MAX_KEPT_BYTES,
    )


def back_to(alert_id: str, said: str, kind: str = "message") -> Page:
    """Redirect to the alert's page, which shows this message; `kind` is `message`, `warning` or `error`."""
    flash(said, kind)
    return redirect(f"/app/alerts/{alert_id}", 303)


def save_template(alert_id: str) -> Page:
    """POST /app/alerts/{id}: saves the templates, or with `preview` or `test` only shows or sends the result."""
    alert = alerts.find_alert(current().account.seq, alert_id)
    draft = _draft(alert)
    try:
        if "preview" in request.form:
            _tried(draft, None)  # refuses a pasted payload that is not JSON
            return template_page(alert, draft)
        if "test" in request.form:
            _send_test(alert, draft)
            return template_page(alert, draft)
        alerts.change_alert(current().account.seq, alert_id, draft.columns, clock.now_ms())
    except Refused as refused:
        problem = Problem.of(refused)
        return template_page(alert, draft, problem._replace(field=FIELDS.get(problem.field, "payload"))), 422
    never_filled = _unfilled(draft, None, current().account.time_zone)
    if not never_filled:
        return back_to(alert_id, "Saved. The next event is shown like this.")
    text, why = never_filled[0]
    more = f" The preview names {len(never_filled) - 1} more." if len(never_filled) > 1 else ""
    return back_to(alert_id, f"Saved, but “{page.isolated(text)}” cannot be filled: {why}{more}", "warning")


def preview_template(alert_id: str) -> dict[str, Any]:
    """POST /app/alerts/{id}/preview: the preview of a draft as JSON, for the page's script."""
    alert, sent = alerts.find_alert(current().account.seq, alert_id), read_fields(*Draft._fields)
    draft = Draft(*(optional_text(sent, name) or "" for name in Draft._fields))
    try:
        payload = _tried(draft, _kept(alert))
    except Refused as refused:
        return {"ok": True, **Preview(error=refused.message)._asdict(), "values": {}}
    paths = message_templates.paths(payload or {})
    made = _preview(alert, draft, payload, paths)
    return {"ok": True, **made._asdict(), "values": _values(paths, payload or {})}


def replay_payload(alert_id: str) -> Page:
    """POST /app/alerts/{id}/replay: sends the last payload again, as if it had just arrived."""
    alert = alerts.find_alert(current().account.seq, alert_id)
    payload = _kept(alert)
    if payload is None:
        return back_to(alert_id, "No request is kept to send again.", "error")
    content = alerts.rendered(Template.of(alert, current().account.time_zone), payload)
    sent = delivery.deliver_event_again(current().account.seq, alert_id, content)
    if sent is None:
        return back_to(alert_id, "The alert is off: switch it on first.", "error")
    return redirect(f"/app/notifications/{sent.notification.id}", 303)


def use_preset(alert_id: str) -> Page:
    """POST /app/alerts/{id}/preset: applies the proposed preset, never over templates that the owner changed."""
    alert = alerts.find_alert(current().account.seq, alert_id)
    now_used, proposed = presets.of(alert.preset), _proposed(alert, _kept(alert))
    if proposed is None or proposed.id != request.form.get("preset"):
        why = "The templates or the last request have changed meanwhile: nothing was done."
        return back_to(alert_id, why, "error")
    is_own_look = (alert.icon, alert.color) != (now_used.icon, now_used.color)
    look = {"icon": alert.icon, "color": alert.color} if is_own_look else {}
    alerts.change_alert(current().account.seq, alert_id, proposed.settings | look, clock.now_ms())
    return back_to(alert_id, f"The templates are those for {proposed.name}.")


def _draft(alert: Alert) -> Draft:
    """The draft in the form; fields that the form lacks come from the saved templates."""
    saved = _saved(alert)._asdict().items()
    return Draft(*(request.form.get(name, text).replace("\r\n", "\n") for name, text in saved))


def _saved(alert: Alert) -> Draft:
    return Draft(**{name: getattr(alert, column) or "" for column, name in FIELDS.items()})


def _send_test(alert: Alert, draft: Draft) -> None:
    """Send the result of the draft to all devices at once, as the owner's own notification: nothing holds it.

    It replaces nothing and does not repeat: what has its tag may be in earnest.
    """
    content = _rendered(alert, draft, _tried(draft, _kept(alert)) or {})
    content = content._replace(missing=(), tag=None, acknowledge=())
    sent = delivery.deliver(Owner.of(current().account), content)
    if sent.devices:
        flash(f"Sent, and {sent.notification.status}: it is in the history.")
    else:
        flash("No device gets it: it is in the history alone.")


def _preview(alert: Alert, draft: Draft, payload: Payload | None, paths: list[str]) -> Preview:
    """Preview a draft on a payload with these `paths`. Without a payload, no variable is reported as missing."""
    try:
        text = _rendered(alert, draft, payload or {})
    except Refused as refused:
        return Preview(error=refused.message)
    made = Preview(
        title=delivery.TITLE_PREFIX + text.title,
        body="" if payload is None and not draft.body.strip() else text.body,
        unfilled=_unfilled(draft, payload, current().account.time_zone),
    )
    if payload is None:
        return made
    return made._replace(
        priority=PRIORITY_WORDS[text.priority] if text.priority else "",
        url=text.url or (NO_LINK if draft.url.strip() else ""),
        tag=text.tag or (NO_TAG if draft.tag.strip() else ""),
        resolved="resolved" if holds(draft.resolved.strip(), payload) else "",
        repeats="repeats until it is acknowledged" if text.acknowledge else "",
        arrival=_arrival(alert, text.priority),
        meant=message_templates.likely_paths(text.missing, paths),
    )


def _arrival(alert: Alert, priority: int | None) -> str:
    """What would become of such an event now."""
    webhook, now = find_webhook(alert.short_code), clock.now_ms()
    if priority == MIN_PRIORITY:
        return "For the history alone: it is not pushed."
    if webhook and holding.is_held(webhook, priority, now, now):
        return "Held now: it comes with a digest, or when quiet hours end."
    return "Pushed at once."


def _unfilled(draft: Draft, payload: Payload | None, zone: str) -> list[Unfilled]:
    """The parts of the templates that stay as written, without duplicates."""
    templates = (draft.title, draft.body, draft.priority, draft.url, draft.tag)
    found = (unfilled(template, payload, zone) for template in templates)
    return list(dict.fromkeys(chain.from_iterable(found)))


def _values(paths: list[str], payload: Payload) -> dict[str, str]:
    """For each path, the shortened text that a template would show."""
    return {path: message_templates.fill(f"{{{{ {path} }}}}", payload, SHORT).text for path in paths}


def _rendered(alert: Alert, draft: Draft, payload: Payload) -> Content:
    checked = alerts.checked_templates(draft.columns)
    template = Template(alert.name, current().account.time_zone, **checked, repeats_urgent=alert.repeats_urgent)
    return alerts.rendered(template, payload)


def _proposed(alert: Alert, kept: Payload | None) -> Preset | None:
    """A preset that recognizes the last payload, if the templates are still unchanged and it is not already used."""
    preset, fits = presets.of(alert.preset), presets.recognized(kept) if kept else None
    saved, whole = _saved(alert).columns, preset.templates
    # An alert may be older than some of its preset's templates, but title and body belong together.
    is_like = {column: (not text, text == whole[column]) for column, text in saved.items()}
    of_texts = zip(is_like["title_template"], is_like["body_template"], strict=True)
    is_untouched = any(map(all, of_texts)) and all(map(any, is_like.values()))
    return fits if fits and fits is not preset and is_untouched else None


def _tried(draft: Draft, kept: Payload | None) -> Payload | None:
    """The payload to try a draft on: the pasted one, or else `kept`. `Refused` (400) if the pasted one is invalid."""
    return parse_event(draft.payload.encode()) if draft.payload.strip() else kept


def _kept(alert: Alert) -> Payload | None:
    return _parsed(AlertPayload.find(alert.seq))


def _parsed(last: AlertPayload | None) -> Payload | None:
    return parse_event(last.payload.encode()) if last and last.payload else None
