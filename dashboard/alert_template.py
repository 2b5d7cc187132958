"""The message of an alert: edit its templates, with a preview of the last payload made by the code that delivers."""

from itertools import chain
from typing import Any

from flask import flash, redirect

from core import alerts, definitions, delivery, holding, message_templates, presets
from core.event_fields import holds
from core.holding import KEEP
from core.presets import Preset
from core.template_lint import Unfilled, unfilled
from dashboard import page
from dashboard.alert_page import back_to, render
from dashboard.page import Page, Problem
from models import Alert
from process import clock
from store import alert_events, held_notifications
from store import mutes as stored_mutes
from store.mutes import HOLD
from store.senders import Owner, find_receivers_of_alert, find_webhook
from web.context import current, request
from wire.errors import Refused, existing
from wire.json_text import as_json
from wire.notification import MIN_PRIORITY, PRIORITY_WORDS, Content
from wire.strict_json import parse_event

Payload = dict[str, Any]
# Templates that are not saved yet, by their fields; `repeats`, "1" if urgent events do; and `payload`, the JSON to
# try them on (empty: the last one received).
Draft = dict[str, str]
FIELDS = {f"{name}_template": name for name in presets.TEMPLATES} | {"resolved_when": "resolved"}  # column to field
SHORT = 60  # characters shown of each value that can be inserted
NO_LINK = "none, because the result is not an http or https address"
NO_PICTURE = "none, because the result is not an https address"
NO_TAG = "none, because a value is missing or empty"
TESTED = {
    "delivered": "Test delivered. You can find it in History.",
    "pending": "Test sent, but not delivered yet. You can follow it in History.",
    "failed": "The test could not be delivered. History says why.",
    "held": "Test held: everything is muted. You can find it in History.",
}


def message_tab(alert: Alert, draft: Draft | None = None, problem: Problem | None = None) -> str:
    """The part of the page; `draft`, if given, replaces the saved templates."""
    draft = draft or _saved(alert)
    kept = _kept(alert)
    return render(
        alert,
        "message",
        draft=draft,
        preview=_preview(alert, draft, kept),
        problem=problem,
        proposed=_proposed(alert, kept),
        now=clock.now_ms(),
        longest_payload=alerts.MAX_KEPT_BYTES,
    )


def save_template(alert_id: str) -> Page:
    """POST /app/alerts/{id}: saves the templates, or with `preview` or `test` only shows or sends the result."""
    alert = alerts.find_alert(current().account.seq, alert_id)
    draft = _draft(alert)
    try:
        if "preview" in request.form:
            _tried(alert, draft, None)  # refuses a pasted payload that is not JSON
            return message_tab(alert, draft)
        if "test" in request.form:
            _send_test(alert, draft)
            return message_tab(alert, draft)
        changed = {**_columns(draft), "repeats_urgent": draft["repeats"] == "1"}
        alert = alerts.change_alert(current().account.seq, alert_id, changed, clock.now_ms())
    except Refused as refused:
        problem = Problem.of(refused)
        return message_tab(alert, draft, problem._replace(field=FIELDS.get(problem.field, "payload"))), 422
    said, kind = _words_of_saving(draft)
    if not draft["payload"].strip():
        return back_to(alert_id, said, "message", kind)
    flash(said, kind)  # with the page itself, not a redirect to it, which would lose the pasted JSON
    return message_tab(alert, _saved(alert) | {"payload": draft["payload"]})


def _words_of_saving(draft: Draft) -> tuple[str, str]:
    """What the page says once the draft is saved, and the kind of that message."""
    never_filled = _unfilled(draft, None)
    if not never_filled:
        return "Saved. New notifications will look like this.", "message"
    text, why = never_filled[0]
    more = f" The preview lists {len(never_filled) - 1} more." if len(never_filled) > 1 else ""
    return f"Saved, but “{page.isolated(text)}” cannot be filled: {why}{more}", "warning"


def replay_payload(alert_id: str) -> Page:
    """POST /app/alerts/{id}/replay: sends the last payload again, as if it had just arrived."""
    alert = alerts.find_alert(current().account.seq, alert_id)
    payload = _kept(alert)
    if payload is None:
        return back_to(alert_id, "There is no saved request to send again.", "activity", "error")
    content = alerts.rendered(alert, current().account.time_zone, payload)
    code = alerts.find_alert(current().account.seq, alert_id).short_code  # it may have changed
    sent = delivery.deliver_event(existing(find_webhook(code)), code, content, is_replay=True)
    if sent is None:
        return back_to(alert_id, "Switch the alert on first.", "activity", "error")
    return redirect(f"/app/notifications/{sent.notification.id}", 303)


def use_preset(alert_id: str) -> Page:
    """POST /app/alerts/{id}/preset: applies the proposed preset, never over templates that the owner changed."""
    alert = alerts.find_alert(current().account.seq, alert_id)
    proposed = _proposed(alert, _kept(alert))
    if proposed is None or proposed.id != request.form.get("preset"):
        why = "The message or the last request has changed since. Nothing was saved."
        return back_to(alert_id, why, "message", "error")
    changed = definitions.preset_settings(proposed.id, alert)
    alerts.change_alert(current().account.seq, alert_id, changed, clock.now_ms())
    return back_to(alert_id, f"This alert now uses the message for {proposed.name}.", "message")


def _draft(alert: Alert) -> Draft:
    """The draft in the form; fields that the form lacks come from the saved templates."""
    return {name: request.form.get(name, text).replace("\r\n", "\n") for name, text in _saved(alert).items()}


def _saved(alert: Alert) -> Draft:
    texts = {name: getattr(alert, column) or "" for column, name in FIELDS.items()}
    return {**texts, "repeats": "1" if alert.repeats_urgent else "0", "payload": ""}


def _columns(draft: Draft) -> dict[str, str]:
    """The templates as they would be saved."""
    return {column: draft[name] for column, name in FIELDS.items()}


def _send_test(alert: Alert, draft: Draft) -> None:
    """Send the result of the draft to all devices at once, as the owner's own notification: nothing holds it.

    It replaces no other notification and does not repeat: the others with its tag may be real.
    """
    content = _rendered(alert, draft, _tried(alert, draft, _kept(alert))[0])
    content = content._replace(missing=(), tag=None, acknowledge=())
    sent = delivery.deliver(Owner.of(current().account), content)
    is_told = sent.devices or sent.notification.status == "held"
    flash(TESTED[sent.notification.status] if is_told else "Test saved to History. No device received it.")


def _preview(alert: Alert, draft: Draft, kept: Payload | None) -> dict[str, Any]:
    """The notification that a draft makes of a payload, or the `error` that prevents it.

    `offered` maps the paths that a template can name to their shortened texts, `source` describes the payload.
    `meant` maps each missing variable to a similar path: none for a sample, which lacks fields of real requests.
    `unfilled` lists the parts that stay as written, and why.
    """
    offered: dict[str, str] = {}
    try:
        payload, source, is_real = _tried(alert, draft, kept)
        paths = message_templates.paths(payload)
        offered = {path: message_templates.fill(f"{{{{ {path} }}}}", payload, SHORT).text for path in paths}
        text = _rendered(alert, draft, payload)
    except Refused as refused:
        return {"offered": offered, "error": refused.message}
    return {
        "offered": offered,
        "source": source,
        "title": text.title,
        "body": text.body,
        "priority": PRIORITY_WORDS[text.priority] if text.priority else "",
        "url": text.url or (NO_LINK if is_real and draft["url"].strip() else ""),
        "tag": text.tag or (NO_TAG if is_real and draft["tag"].strip() else ""),
        "image": text.image or (NO_PICTURE if is_real and draft["image"].strip() else ""),
        "is_resolved": holds(draft["resolved"].strip(), payload),
        "repeats": text.acknowledge,
        "arrival": _arrival(alert, text.priority),
        "meant": message_templates.likely_paths(text.missing, paths) if is_real else {},
        "unfilled": _unfilled(draft, payload if is_real else None),
    }


def _arrival(alert: Alert, priority: int | None) -> str:
    """The fate of such an event now, in a sentence."""
    found, now = find_receivers_of_alert(alert.short_code), clock.now_ms()
    if priority == MIN_PRIORITY:
        return "Saved to History only."
    if found is None:
        return "Delivered right away."
    mutes = stored_mutes.of_account(found[0].account_seq) if found[1].has_mutes else []
    fate = holding.fate(found[0], priority, mutes, now)
    if fate == HOLD:
        held = held_notifications.of_account(found[0].account_seq)
        until, why = holding.held_until(found[0], priority, mutes, held, now)
        return f"Held until {page.near(until)} ({why})."
    return "Saved to History only: it is muted." if fate == KEEP else "Delivered right away."


def _unfilled(draft: Draft, payload: Payload | None) -> list[Unfilled]:
    """The parts of the templates that stay as written, without duplicates."""
    found = (unfilled(draft[name], payload, current().account.time_zone) for name in presets.TEMPLATES)
    return list(dict.fromkeys(chain.from_iterable(found)))


def _rendered(alert: Alert, draft: Draft, payload: Payload) -> Content:
    drafted = Alert(name=alert.name, **alerts.checked(_columns(draft)), repeats_urgent=draft["repeats"] == "1")
    return alerts.rendered(drafted, current().account.time_zone, payload)


def _proposed(alert: Alert, kept: Payload | None) -> Preset | None:
    """A preset that recognizes the last payload, if the templates are still unchanged and it is not already used."""
    preset, fits = presets.of(alert.preset), presets.recognized(kept) if kept else None
    saved, whole = _columns(_saved(alert)), preset.templates
    # An alert may be older than some of its preset's templates, but title and body belong together.
    is_like = {column: (not text, text == whole[column]) for column, text in saved.items()}
    of_texts = zip(is_like["title_template"], is_like["body_template"], strict=True)
    is_untouched = any(map(all, of_texts)) and all(map(any, is_like.values()))
    return fits if fits and fits is not preset and is_untouched else None


def _tried(alert: Alert, draft: Draft, kept: Payload | None) -> tuple[Payload, str, bool]:
    """The payload for a draft, where it is from, and whether it is a real one.

    That is the pasted JSON (`Refused` (400) if invalid), or else `kept`, or else a sample.
    """
    if draft["payload"].strip():
        return parse_event(draft["payload"].encode()), "With your JSON", True
    if kept is not None:
        return kept, "With the last request", True
    preset = presets.of(alert.preset)
    whose = "sample data" if preset is presets.of(None) else f"sample data from {preset.name}"
    return parse_event(as_json(preset.sample).encode()), f"With {whose}", False


def _kept(alert: Alert) -> Payload | None:
    last = alert_events.find_payload(alert.seq)
    return parse_event(last.payload.encode()) if last and last.payload else None
