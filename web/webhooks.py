"""The two webhooks: events for alerts and custom metrics. They parse, check and hand over.

Must not know providers or the arithmetic of quiet hours.
"""

from typing import Any, cast

from flask import Response
from werkzeug.datastructures import FileStorage

from core import alerts, delivery, firing, floods
from core.cards import CARDS
from core.default_message import FIELDS
from process import clock
from process.clock import DAY_MS
from store.custom_metrics import MetricColumns
from store.senders import Webhook
from web import event_body, guards, pictures, rate_limits
from web.context import Payload, current
from web.request_body import read_object
from web.rest import with_hops
from wire.errors import Refused
from wire.json_text import as_json
from wire.notification import Content, checked_time
from wire.unknown_fields import warnings

KNOWN = {*FIELDS, *CARDS}
CHALLENGES = ("validationToken", "hub.challenge")  # in the query: Microsoft Graph's, Meta's; Slack's is in JSON
MAX_CHALLENGE = 1_000  # characters; what is longer is an event
MAX_ID = 100  # characters
MAX_METRIC_NAME = 200
MAX_UNIT = 32
MAX_METADATA_BYTES = 4_096


# --- alert webhook ------------------------------------------------------------------------------------------


def admit_event() -> Payload | None:
    """Check the limits of code, sender, alert and service; for an inactive alert this is the whole answer."""
    webhook = current().webhook
    if webhook is None:
        guards.refuse_unknown()
    is_active = bool(webhook.is_active)
    is_seldom_used = (webhook.last_triggered_at or 0) <= clock.now_ms() - DAY_MS
    is_flood, refused = rate_limits.event(
        webhook.account_seq,
        webhook.alert_seq,
        webhook.switched_on_at if is_active else None,
        guards.sender() if is_seldom_used else None,
    )
    if is_flood:
        floods.pause(webhook, rate_limits.FLOOD.amount)
        is_active = False
    if refused:
        raise refused
    return None if is_active else _inactive()


def _inactive() -> Payload:
    current().outcome = "inactive"
    return {"ok": True, "status": "inactive"}


def receive_event(short_code: str) -> Any:
    """POST /p/{short_code}; GET and PUT do the same, HEAD only says that the address is right."""
    known = current()
    if known.environ["REQUEST_METHOD"] == "HEAD":
        known.outcome = "only checked (HEAD)"
        return {"ok": True}
    made = _challenge_in_query() or read_object(_made, event_body.parsed)
    if isinstance(made, str):
        known.outcome = "challenge answered"
        return Response(made, content_type="text/plain; charset=utf-8")  # with `nosniff`, no browser shows a page
    webhook = cast(Webhook, known.webhook)  # `admit_event` has refused a code that leads nowhere
    content, kept, picture, mistyped = made
    sent = delivery.deliver_event(webhook, short_code.removesuffix("/"), with_hops(content), kept, picture)
    if sent is None:
        return _inactive()
    notification = sent.notification
    known.outcome, known.notification_id = sent.shown_status, notification.id
    answer = {"ok": True, "status": notification.status, "notificationId": notification.id}
    return {**answer, "warnings": mistyped} if mistyped else answer


def _made(event: tuple[Payload, list[FileStorage]]) -> tuple[Content, str | None, bytes | None, list[str]] | str:
    """The event's content, its payload to keep, its picture, and warnings of mistyped fields; or a challenge."""
    payload, files = event
    if payload.get("type") == "url_verification" and (challenge := _challenge(payload.get("challenge"))):
        return challenge
    webhook = cast(Webhook, current().webhook)
    ignored = () if webhook.title_template else (name for name in payload if name.lower() not in KNOWN)
    mistyped = warnings(ignored, FIELDS)
    content, picture = alerts.rendered(webhook, webhook.time_zone, payload), None
    if files:
        content, picture = pictures.with_first(content, files)
    return content, alerts.kept_payload(payload), picture, mistyped


def _challenge_in_query() -> str | None:
    if not current().environ.get("QUERY_STRING"):
        return None
    fields = event_body.query()
    return next((text for name in CHALLENGES if (text := _challenge(fields.get(name)))), None)


def _challenge(sent: Any) -> str | None:
    """The text that a service sends and wants back, to learn whether an address wants events (docs/alerts.md)."""
    return sent if isinstance(sent, str) and 0 < len(sent) <= MAX_CHALLENGE else None


# --- metrics webhook ----------------------------------------------------------------------------------------


def store_metrics() -> Payload:
    """POST /api/webhooks/custom."""
    project_id, values = read_object(_batch)
    caller = current().caller
    firing.store_values(caller.account_seq, project_id, values, bool(caller.has_followers))
    return {"success": True, "metricsStored": len(values)}


def _batch(payload: Payload) -> tuple[str, list[MetricColumns]]:
    """The project and its new values; `Refused` (400) names the field that is wrong."""
    now = clock.now_ms()
    project_id = _name(payload, "projectId", MAX_ID)
    metrics = payload.get("metrics")
    if not isinstance(metrics, list) or not 1 <= len(metrics) <= rate_limits.MAX_METRICS:
        raise Refused(400, f"metrics must be an array of 1 to {rate_limits.MAX_METRICS} metrics")
    return project_id, [_metric(metric, position, now) for position, metric in enumerate(metrics)]


def _metric(metric: Any, position: int, now: int) -> MetricColumns:
    if not isinstance(metric, dict):
        raise Refused(400, f"metrics[{position}] must be an object")
    unit, timestamp, metadata = metric.get("unit"), metric.get("timestamp"), metric.get("metadata")
    try:
        return (
            _name(metric, "metricId", MAX_ID),
            _name(metric, "metricName", MAX_METRIC_NAME),
            _number(metric.get("value"), "value") + 0.0,  # a float; no minus before a zero
            None if unit is None else _unit(unit),
            now if timestamp is None else checked_time(int(_number(timestamp, "timestamp")), "timestamp"),
            None if metadata is None else _metadata(metadata),
        )
    except Refused as refused:
        raise Refused(400, f"metrics[{position}].{refused.message.removesuffix('.')}") from None


def _name(payload: Payload, field: str, longest: int) -> str:
    """An id or a name, trimmed."""
    value = payload.get(field)
    if not isinstance(value, str):
        raise Refused(400, f"{field} {'is required' if value is None else 'must be a string'}")
    text = value.strip()
    if not 1 <= len(text) <= longest:
        raise Refused(400, f"{field} must have 1 to {longest} characters")
    return text


def _number(value: Any, field: str) -> int | float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise Refused(400, f"{field} {'is required' if value is None else 'must be a number'}")
    return value


def _unit(sent: Any) -> str:
    if not isinstance(sent, str) or len(sent) > MAX_UNIT:
        raise Refused(400, f"unit must be a string of at most {MAX_UNIT} characters")
    return sent


def _metadata(metadata: Any) -> str:
    if not isinstance(metadata, dict):
        raise Refused(400, "metadata must be an object")
    text = as_json(metadata)
    if len(text.encode()) > MAX_METADATA_BYTES:
        raise Refused(400, f"metadata must have at most {MAX_METADATA_BYTES} bytes as JSON")
    return text
