"""The rules for alerts, and the content of an event's notification. Must not know requests."""

import re
import secrets
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.default_message import default_message
from core.event_fields import checked_condition, event_fields
from core.local_time import COLLECTED_MS
from core.message_templates import Filled, check_template, fill
from core.template_filters import Work
from core.value_text import cut, payload_json
from models import Alert
from store import alert_events
from store.database import transaction
from store.senders import Webhook, find_webhook
from wire.errors import Refused, existing
from wire.notification import MAX_URL_CHARACTERS, Content
from wire.validation import (
    MAX_BODY_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    checked_choice,
    checked_name,
    checked_text,
    not_among,
)

SHORT_CODE = re.compile(r"[0-9A-Za-z]{7}", re.ASCII)
ALPHABET = string.digits + string.ascii_letters
COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
SPRITE = Path(__file__).parents[1] / "static" / "icons.svg"  # of the web app; `tools/make_icons.py` makes it
ICONS = frozenset(re.findall(r'<symbol id="([a-z0-9-]+)"', SPRITE.read_text()))
MAX_ALERTS = 1_000  # of an account
MAX_KEPT_BYTES = 65_536
TEMPLATES = 6  # of an alert
MAX_FIELD_TEMPLATE = 200  # characters of the templates for priority and tag
QUIET_HOURS = {  # an alert's columns, by its word for quiet hours
    "follow": {"ignores_quiet_hours": False, "urgent_passes_quiet_hours": False},
    "urgent": {"ignores_quiet_hours": False, "urgent_passes_quiet_hours": True},
    "ignore": {"ignores_quiet_hours": True, "urgent_passes_quiet_hours": False},
}


def create_alert(account_seq: int, settings: dict[str, Any], now: int) -> Alert:
    """A new alert with a name and other `settings` of `change_alert`; `Refused` (400) if wrong, or one too many."""
    values = checked(settings)
    with transaction(account_seq):
        if Alert.count(account_seq) >= MAX_ALERTS:
            raise Refused(400, f"An account can have at most {MAX_ALERTS:,} alerts. Delete one first.")
        return Alert.add(account_seq, {**values, "short_code": _new_code()}, now)


def change_alert(account_seq: int, alert_id: str, settings: dict[str, Any], now: int) -> Alert:
    """Change the columns that `settings` name, and return the alert.

    They are name, icon, color, the templates and resolved_when (None or empty: none), frequency, repeats_urgent,
    has_mute_button, the columns of `QUIET_HOURS`, keeps_payload and is_active. `Refused` (404) when there is no such
    alert, (400) when a value is wrong. A value that does not change is not checked: an old alert may have an icon
    that no longer exists.
    """
    with transaction(account_seq):
        alert = find_alert(account_seq, alert_id)
        values = checked({name: value for name, value in settings.items() if value != getattr(alert, name)})
        if values.get("is_active") and not alert.is_active:
            values["switched_on_at"] = now
        if "is_active" in settings:
            values["paused_at"] = None
        alert.change(**values)
        if not alert.keeps_payload:
            alert_events.forget_payload(alert.seq)
    return alert


def find_alert(account_seq: int, alert_id: str) -> Alert:
    """The account's alert; `Refused` (404) when it has no such alert."""
    return existing(Alert.find(account_seq, alert_id))


def rotate_code(account_seq: int, alert_id: str) -> Alert:
    """Give the alert a new short code; the old one stops working at once."""
    with transaction(account_seq):
        alert = find_alert(account_seq, alert_id)
        alert.change(short_code=_new_code())
    return alert


def _new_code() -> str:
    """A short code that no alert has; call inside `transaction()`."""
    while True:
        code = "".join(secrets.choice(ALPHABET) for _ in range(7))
        if find_webhook(code) is None:
            return code


def checked(settings: dict[str, Any]) -> dict[str, Any]:
    """The columns of these settings as they are saved; `Refused` (400) names the first that is wrong."""
    values = dict[str, Any]()
    for column, value in settings.items():
        try:
            values[column] = CHECKS[column](value) if column in CHECKS else value
        except Refused as refused:
            refused.field = column
            raise
    return values


def quiet_hours_word(alert: Alert) -> str:
    """The word of `QUIET_HOURS` for an alert as it is saved."""
    if alert.ignores_quiet_hours:
        return "ignore"
    return "urgent" if alert.urgent_passes_quiet_hours else "follow"


def _checked_icon(icon: str) -> str:
    if icon not in ICONS:
        raise Refused(400, f"There is no icon {not_among(icon, ICONS)} The icons are {', '.join(sorted(ICONS))}.")
    return icon


def _checked_color(color: str) -> str:
    if not COLOR.fullmatch(color):
        raise Refused(400, "color must be written like #3B82F6.")
    return color


def _checked_template(template: str | None, field: str, longest: int) -> str | None:
    if not template or not template.strip():
        return None
    checked = checked_text(template, field, longest)
    check_template(checked)
    return checked


CHECKS: dict[str, Callable[[Any], Any]] = {
    "name": checked_name,
    "icon": _checked_icon,
    "color": _checked_color,
    "frequency": lambda frequency: checked_choice(frequency, "frequency", COLLECTED_MS),
    "title_template": lambda template: _checked_template(template, "The title template", MAX_TITLE_CHARACTERS),
    "body_template": lambda template: _checked_template(template, "The body template", MAX_BODY_CHARACTERS),
    "priority_template": lambda template: _checked_template(template, "The priority template", MAX_FIELD_TEMPLATE),
    "url_template": lambda template: _checked_template(template, "The link template", MAX_URL_CHARACTERS),
    "tag_template": lambda template: _checked_template(template, "The tag template", MAX_FIELD_TEMPLATE),
    "image_template": lambda template: _checked_template(template, "The picture template", MAX_URL_CHARACTERS),
    "resolved_when": checked_condition,
}


# --- the content of an event's notification -----------------------------------------------------------------


def rendered(alert: Alert | Webhook, zone: str, payload: dict[str, Any]) -> Content:
    """The content of the notification for an event with this payload, without the prefix."""
    work = Work(zone, TEMPLATES)
    content, title, body = event_fields(alert, payload, work), None, None
    if alert.title_template is not None:
        title = fill(alert.title_template, payload, MAX_TITLE_CHARACTERS, work)
    if alert.body_template is not None:
        body = fill(alert.body_template, payload, MAX_BODY_CHARACTERS, work)
    if title is None or body is None:
        usual = default_message(payload, alert.name)
        title = title or Filled(cut(usual.title, MAX_TITLE_CHARACTERS), ())
        body = body or Filled(cut(usual.body, MAX_BODY_CHARACTERS), ())
        if not alert.url_template:
            content = content._replace(url=usual.url)
        if not alert.image_template:
            content = content._replace(image=usual.image)
    is_blank = not any(c.isprintable() and c != " " for c in title.text)
    missing = dict.fromkeys(title.missing + body.missing + content.missing)  # each once, in order
    return Content(alert.name if is_blank else title.text, body.text, tuple(missing), *content[3:])


def kept_payload(payload: dict[str, Any]) -> str | None:
    """The payload as the JSON text that is kept, its numbers digit for digit; None if that has more than 64 KB."""
    text = payload_json(payload)
    return text.decode() if len(text) <= MAX_KEPT_BYTES else None


def forget_payload(account_seq: int, alert_id: str) -> None:
    """Delete the last payload."""
    with transaction(account_seq):
        alert_events.forget_payload(find_alert(account_seq, alert_id).seq)
