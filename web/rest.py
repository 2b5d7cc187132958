"""The handlers of the REST API.

Each reads its fields, calls one function below, and answers with plain data. The functions that take `fields` serve
assistants, too. Must not know SQL or push.
"""

import re
from collections.abc import Mapping
from itertools import accumulate
from secrets import compare_digest
from typing import Any

from itsdangerous import Signer

from core import accounts, alarms, api_keys, deletion, delivery, devices, local_time, long_poll, snoozes
from core.pictures import path_of
from core.plans import PLANS, history_begin
from core.scheduler import is_healthy
from models import ApiKey, Device
from process import clock
from store import alarms as stored_alarms
from store import buttons, deliveries, heartbeats, key_limits, metric_rules, notification_days, notifications
from store.alarms import Alarm
from store.database import AFTER_ALL
from store.deliveries import Delivery
from store.key_limits import FULL, READ
from store.notifications import Entry, ListedRow
from store.search import Span, Wanted, search
from store.senders import own_key
from web import guards, pictures, rate_limits, shapes
from web.context import Payload, current, request
from web.json_answers import JsonAnswer
from web.multipart import is_multipart
from web.rate_limits import DEFAULT_LISTED, MAX_LISTED
from web.request_body import check_size, read_fields, read_object
from wire.errors import Refused
from wire.json_text import json_bytes
from wire.notification import FIELD_NAMES, MAX_HOPS, Content, Recorded, as_acknowledge, as_answered, checked_content
from wire.unknown_fields import warnings
from wire.validation import MAX_SEARCH_CHARACTERS, checked_name, only_known, optional_text, required_text

IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
HOPS = re.compile(r"[0-9]{1,9}")
MAX_WAIT_S = 25
RETRY_AFTER_S = 1  # for a request that has no place to wait
MAX_PAGE_BYTES, AROUND_BYTES = 500_000, 500  # the second: of a page without notifications, at most
WHOLE_NUMBER = re.compile(r"0*([1-9][0-9]*)")

_cursors: Signer  # set by `configure`


def configure(secret: str) -> None:
    """Sign cursors with a key made of this secret."""
    global _cursors
    _cursors = Signer(secret, salt="cursor")


# --- notifications ------------------------------------------------------------------------------------------


def send_notification() -> Payload | tuple[Payload, dict[str, str]]:
    """POST /api/v1/notifications/send."""
    environ = current().environ
    if is_multipart(environ.get("CONTENT_TYPE", "")):
        fields, content, picture = pictures.read_form()
        mistyped = warnings(fields, FIELD_NAMES)
    else:
        check_size()
        (content, mistyped), picture = read_object(_sent, is_confirmed=True), None  # the key is looked up again
    answer, replayed = deliver(content, environ.get("HTTP_IDEMPOTENCY_KEY"), picture)
    if mistyped:
        answer["warnings"] = mistyped
    return (answer, {"Idempotent-Replayed": "true"}) if replayed else answer


def _sent(fields: Payload) -> tuple[Content, list[str]]:
    """What a request says is to be sent, and a warning for each field that looks mistyped."""
    return checked_content(fields), warnings(fields, FIELD_NAMES) if fields.keys() - FIELD_NAMES else []


def deliver(content: Content, idempotency_key: str | None, picture: bytes | None = None) -> tuple[Payload, bool]:
    """Send it to the caller's devices; the answer, and whether an earlier request had it already."""
    sent = deliver_content(content, idempotency_key, picture)
    return {"ok": True, "notification": _shown(sent.notification)}, sent.replayed


def _shown(notification: Recorded | Entry) -> Payload:
    """A notification as it is answered."""
    content, status, created_at = notification.content, notification.status, notification.created_at
    return as_answered(notification.id, status, created_at, content.title, content.body, content.given, _image_of)


def _image_of(id_: str) -> str:
    return f"{guards.origin()}{path_of(id_)}"


def deliver_content(content: Content, idempotency_key: str | None, picture: bytes | None = None) -> delivery.Sent:
    """Send it, with the picture that it describes, or find what an earlier request with this Idempotency-Key sent."""
    if idempotency_key is not None and not IDEMPOTENCY_KEY.fullmatch(idempotency_key):
        raise Refused(400, "Idempotency-Key must be 1 to 255 visible ASCII characters.")
    return delivery.deliver(current().caller, with_hops(content), idempotency_key, picture)


def with_hops(content: Content) -> Content:
    """The content with the number of services like this that the request has come through, as its header says."""
    sent = current().environ.get("HTTP_X_POCKETBELL_HOPS")
    return content._replace(hops=min(int(sent), MAX_HOPS)) if sent and HOPS.fullmatch(sent) else content


def list_notifications() -> JsonAnswer:
    """GET /api/v1/notifications."""
    is_asked = current().environ.get("QUERY_STRING")
    fields = request.args.to_dict() if is_asked else {}  # its own `get` raises an error for what is absent
    page, rows = _page(fields)
    answer = JsonAnswer(page)
    return answer if len(answer.body) <= MAX_PAGE_BYTES else JsonAnswer(_shortened(page, rows))


def find_notifications(fields: Mapping[str, Any]) -> Payload:
    """A page of the caller's history, as `limit`, `cursor` and `search` say, which may all be absent."""
    return _shortened(*_page(fields))


def _page(fields: Mapping[str, Any]) -> tuple[Payload, list[ListedRow]]:
    """The page, however large it is, and the rows on it."""
    limit = min(_whole_number(fields, "limit", "of at least 1") or DEFAULT_LISTED, MAX_LISTED)
    before, term = _before(fields), optional_text(fields, "search") or ""
    if len(term) > MAX_SEARCH_CHARACTERS:
        raise Refused(400, f"search is longer than {MAX_SEARCH_CHARACTERS} characters.")
    caller = current().caller
    since = history_begin(caller.plan, clock.now_ms())
    if term:
        seqs, last, is_done = search(caller.account_seq, Span(before), since, limit, Wanted((term,)))
        rows = notifications.listed(seqs)
    else:
        rows, last, is_done = notifications.page(caller.account_seq, before, since, limit)
    shown = [
        as_answered(id_, status, created_at, title, body, given, _image_of)
        for _, id_, status, created_at, title, body, given in rows
    ]
    pagination = {"nextCursor": _cursor(0 if is_done else last), "isDone": is_done}
    return {"ok": True, "notifications": shown, "pagination": pagination}, rows


def _shortened(page: Payload, rows: list[ListedRow]) -> Payload:
    """The page with as many of its notifications as fit on it, at least one."""
    ends = accumulate(len(json_bytes(one)) + 1 for one in page["notifications"])
    room = max(1, sum(end <= MAX_PAGE_BYTES - AROUND_BYTES for end in ends))
    if room >= len(rows):
        return page
    pagination = {"nextCursor": _cursor(rows[room - 1][0]), "isDone": False}
    return {**page, "notifications": page["notifications"][:room], "pagination": pagination}


def get_notification(notification_id: str) -> tuple[Payload, dict[str, str]]:
    """GET /api/v1/notifications/{id}."""
    found, is_early = find_notification(notification_id, request.args)
    return found, {"Retry-After": str(RETRY_AFTER_S)} if is_early else {}


def find_notification(notification_id: str, fields: Mapping[str, Any]) -> tuple[Payload, bool]:
    """One notification in detail; with `wait`, once it was answered or acknowledged, or after so many seconds.

    Also whether it did not wait, because enough others do.
    """
    wait_s = _whole_number(fields, "wait", f"of seconds from 1 to {MAX_WAIT_S}", MAX_WAIT_S)
    caller = current().caller
    if wait_s and caller.scope == READ:
        raise Refused(404, api_keys.NOT_ALLOWED[READ])
    entry, is_early = _entry(notification_id), False
    if wait_s:
        ends = key_limits.expires_at(caller.key_seq)
        left_s = wait_s if ends is None else min(wait_s, (ends - clock.now_ms()) / 1000)
        is_early = not long_poll.wait_for(caller.account_seq, entry.seq, left_s, current().confirm)
        current().confirm()
        entry = _entry(notification_id)
    return {"ok": True, "notification": _detail(entry)}, is_early


def _entry(notification_id: str) -> Entry:
    caller = current().caller
    since = history_begin(caller.plan, clock.now_ms())
    entry = notifications.find(caller.account_seq, notification_id, since, own_key(caller))
    if entry is None or entry.is_digest:
        raise Refused(404)
    return entry


def acknowledge_notification(notification_id: str) -> Payload:
    """POST /api/v1/notifications/{id}/acknowledge."""
    caller = current().caller
    alarms.acknowledge_notification(caller.account_seq, _entry(notification_id).id, clock.now_ms(), own_key(caller))
    return {"ok": True, "notification": _detail(_entry(notification_id))}


def snooze_notification(notification_id: str) -> Payload:
    """POST /api/v1/notifications/{id}/snooze."""
    for_s, caller, now = read_object(snoozes.checked), current().caller, clock.now_ms()
    snoozes.snooze(caller.account_seq, caller.plan, notification_id, now + for_s * 1000, now)
    return {"ok": True, "notification": _detail(_entry(notification_id))}


def delete_notification(notification_id: str) -> Payload:
    """DELETE /api/v1/notifications/{id}."""
    deletion.delete_notification(current().caller.account_seq, _entry(notification_id).id, own_key(current().caller))
    return {"ok": True}


def get_stats() -> Payload:
    """GET /api/v1/stats."""
    caller = current().caller
    stats = notification_days.stats(caller.account_seq, local_time.local_day(clock.now_ms(), caller.time_zone))
    return {
        "ok": True,
        "stats": {
            "plan": caller.plan,
            "totalNotificationsAllTime": stats.all_time,
            "notificationsThisMonth": stats.month,
            "notificationsThisDay": stats.day,
            "alertsCount": stats.alerts,
            "historyLimitDays": PLANS[caller.plan].history_days,
        },
    }


def list_watches() -> Payload:
    """GET /api/v1/watches."""
    account_seq = current().caller.account_seq
    return {
        "ok": True,
        "watches": [shapes.watch(beat) for beat in heartbeats.of_account(account_seq)],
        "rules": [shapes.rule(one) for one in metric_rules.of_account(account_seq)],
    }


# --- keys ---------------------------------------------------------------------------------------------------


def generate_key() -> tuple[Payload, int]:
    """POST /api/v1/api-keys/generate."""
    fields, now = read_fields("name", "scope", "expiresAt"), clock.now_ms()
    name, scope = checked_name(required_text(fields, "name")), optional_text(fields, "scope")
    limits = api_keys.limits(FULL if scope is None else scope, fields.get("expiresAt"), now, "expiresAt")
    rate_limits.count(rate_limits.NEW_KEYS, current().caller.account_seq)
    key, full_key = accounts.create_key(current().caller.account_seq, name, now, limits=limits)
    return {"ok": True, "apiKey": {**shapes.key(key), "fullKey": full_key}}, 201


def list_keys() -> Payload:
    """GET /api/v1/api-keys."""
    keys = ApiKey.of_account(current().caller.account_seq)
    return {"ok": True, "apiKeys": [shapes.listed_key(key) for key in keys]}


def revoke_key(key_id: str) -> Payload:
    """DELETE /api/v1/api-keys/{keyId}."""
    accounts.revoke_key(current().caller.account_seq, key_id, clock.now_ms())
    return {"ok": True}


# --- devices ------------------------------------------------------------------------------------------------


def add_device() -> tuple[Payload, int]:
    """POST /api/v1/devices."""
    caller = current().caller
    registration = read_fields(*devices.ADDRESS, *devices.SETTINGS)
    device = devices.add_device(caller.account_seq, registration, clock.now_ms(), key_seq=caller.key_seq)
    once = {name: value for name, value in (("topic", device.topic), ("secret", device.secret)) if value}
    return {"ok": True, "device": {**shapes.device(device), **once}}, 201


def list_devices() -> Payload:
    """GET /api/v1/devices."""
    found = Device.of_account(current().caller.account_seq)
    return {"ok": True, "devices": [shapes.device(device) for device in found]}


def change_device(device_id: str) -> Payload:
    """PATCH /api/v1/devices/{id}."""
    caller = current().caller
    changes = read_object(lambda sent: only_known(sent, *devices.SETTINGS))
    device = devices.change_device(caller.account_seq, device_id, changes, key_seq=caller.key_seq)
    return {"ok": True, "device": shapes.device(device)}


def remove_device(device_id: str) -> Payload:
    """DELETE /api/v1/devices/{id}."""
    devices.remove_device(current().caller.account_seq, device_id, clock.now_ms(), key_seq=current().caller.key_seq)
    return {"ok": True}


# --- health -------------------------------------------------------------------------------------------------


def livez() -> Payload:
    """GET /livez: this process answers requests, whatever the database does."""
    return {"status": "ok"}


def healthz() -> tuple[Payload, int]:
    """GET /healthz: whether the database answers and the background worker is alive."""
    return ({"status": "ok"}, 200) if is_healthy() else ({"status": "unavailable"}, 503)


# --- reading requests ---------------------------------------------------------------------------------------


def _whole_number(fields: Mapping[str, Any], name: str, allowed: str, most: int = 10**9) -> int | None:
    """The number in this field, None if there is none; `Refused` (400) unless it is from 1 to `most`."""
    value = fields.get(name)
    if value in (None, ""):
        return None
    match = WHOLE_NUMBER.fullmatch(str(value))
    number = int(match[1][:9]) if match else 0  # nine digits are far beyond the limits
    if not 1 <= number <= most:
        raise Refused(400, f"{name} must be a whole number {allowed}.")
    return number


def _before(fields: Mapping[str, Any]) -> int:
    """The seq before which the page begins, from a cursor that was issued to this account."""
    cursor = optional_text(fields, "cursor")
    if not cursor:
        return AFTER_ALL
    seq = f"{cursor}.".split(".")[1]
    # `unsign` would take other spellings of the signature, which covers the account, too
    if not compare_digest(_cursor(seq).encode(), cursor.encode()):
        raise Refused(400, "cursor was not issued to this account by this service.")
    return int(seq)


def _cursor(seq: int | str) -> str:
    return _cursors.sign(f"{current().caller.account_seq}.{seq}").decode()


# --- wire shapes --------------------------------------------------------------------------------------------


def _detail(entry: Entry) -> Payload:
    detail = _shown(entry) | _alarm(stored_alarms.find(entry.seq), entry.content)
    detail["deliveries"] = [_delivery(one) for one in deliveries.of_notification(entry.delivered_as)]
    caller, other = current().caller, entry.replaced_by
    # a key that may only send must not learn of what others sent
    if other and notifications.find_seq(caller.account_seq, other, own_key(caller)) is not None:
        detail["replacedBy"] = other
    if snoozed_until := snoozes.snoozed_until(entry):
        detail["snoozedUntil"] = snoozed_until
    given = buttons.answer_to(entry.seq) if entry.content.actions else None
    if given:
        action = entry.content.actions[given.position]
        detail["answer"] = {**action, "at": given.answered_at, "device": given.device_id} | _by(given.by)
    return detail


def _alarm(alarm: Alarm | None, content: Content) -> Payload:
    """The state of a notification that repeats, which replaces its `acknowledge` as sent, or was acknowledged."""
    if alarm is None:
        return {}
    shown: Payload = {}
    if content.acknowledge:
        shown["acknowledge"] = {**as_acknowledge(content.acknowledge), "state": alarm.state}
    if alarm.acknowledged_at is not None:
        shown |= {"acknowledgedAt": alarm.acknowledged_at, **_by(alarm.by, "acknowledgedBy")}
    return {**shown, "repeats": alarm.repeats} if alarm.repeats else shown


def _by(email: str | None, field: str = "by") -> Payload:
    """The field for the account that did it, if that was another one."""
    return {} if email is None else {field: email}


def _delivery(one: Delivery) -> Payload:
    failed = {} if one.error is None else {"error": one.error}
    return {"device": one.device.id, "kind": one.device.kind, "status": one.status, **failed}
