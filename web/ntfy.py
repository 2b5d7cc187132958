"""Publishing by ntfy's addresses, for programs that can send to ntfy: only their host changes.

Each handler reads its parameters, sends through the function that the REST API sends through, and answers in ntfy's
shapes. Must not know SQL or push.
"""

from contextlib import suppress

from core import alarms, delays, deletion, local_time
from core.pictures import attachment
from core.plans import PLANS
from models import ApiKey
from process import clock
from process.clock import DAY_MS
from store import key_limits, notification_days, notifications
from store.senders import own_key
from web import guards, pictures
from web.context import Payload, current, request
from web.request_body import MAX_UPLOAD_BYTES, read_fields, read_upload
from web.rest import deliver_content, healthz
from wire.errors import Refused
from wire.ntfy import (
    JSON_FIELDS,
    Body,
    NtfyRefused,
    Publication,
    access_token,
    account,
    body_of,
    file_name,
    fitted,
    message,
    published,
    topic_of,
    user_and_password,
)
from wire.ntfy_stream import event, notification_id
from wire.picture_formats import MAX_PICTURE_BYTES, Picture, begins_picture

KEPT_BYTES = 65_536  # of a body that is no picture: more than the longest message has

Answer = tuple[Payload, dict[str, str]]


def publish(topic: str, sequence_id: str = "") -> Answer:
    """POST and PUT /TOPIC and /TOPIC/ID: the body is the message, or a file."""
    kept, size = read_upload(
        lambda beginning: MAX_PICTURE_BYTES if begins_picture(beginning) else KEPT_BYTES,
        MAX_UPLOAD_BYTES,
        current().settings.max_body_bytes,
    )
    picture = pictures.of_upload(kept) if len(kept) == size else None
    body = (
        Body(None, size, picture.content_type, is_picture=True) if picture else body_of(kept, size, request.mimetype)
    )
    return _deliver(topic, body, sequence_id, publication({}), picture)


def publish_by_get(topic: str) -> Answer:
    """GET /TOPIC/publish, /TOPIC/send and /TOPIC/trigger: for what can only open an address."""
    if request.method == "HEAD":  # some programs ask so whether an address is there
        raise Refused(404)
    return publish(topic)


def delete(topic: str, sequence_id: str) -> Payload:
    """DELETE /TOPIC/ID: delete the newest message with that ID; the answer is the same if there is none."""
    caller = current().caller
    deletion.delete_several(caller.account_seq, [_newest(sequence_id)], own_key(caller))
    return _event("message_delete", topic, sequence_id)


def clear(topic: str, sequence_id: str) -> Payload:
    """PUT /TOPIC/ID/clear and /TOPIC/ID/read: acknowledge the newest message with that ID, if there is one."""
    caller = current().caller
    with suppress(Refused):
        alarms.acknowledge_notification(caller.account_seq, _newest(sequence_id), clock.now_ms(), own_key(caller))
    return _event("message_clear", topic, sequence_id)


def _newest(sequence_id: str) -> str:
    """The id of the newest notification with that tag; a message without one has its own id for it."""
    caller = current().caller
    found = notifications.newest_with_tag(caller.account_seq, sequence_id, own_key(caller))
    return found or notification_id(sequence_id)


def _event(name: str, topic: str, sequence_id: str) -> Payload:
    return {**event(name, topic, clock.now_ms()), "sequence_id": sequence_id}


def publish_json() -> Answer:
    """POST and PUT /: a JSON object that names its topic."""
    try:
        fields = read_fields(*JSON_FIELDS)
    except Refused as refused:
        raise NtfyRefused(40024, refused.message) if refused.status == 400 else refused from None
    topic, text = topic_of(fields), fields.pop("message", None)
    if not isinstance(text, str | None):
        raise NtfyRefused(40017, "message must be a string.")
    return _deliver(topic, Body((text or "").strip()), "", publication(fields))


def publication(fields: Payload) -> Publication:
    """The parameters of the request, in dictionaries: up to fifty names are asked for."""
    sent = current().environ.items()
    headers = {name[5:].replace("_", "-").lower(): value for name, value in sent if name[:5] == "HTTP_"}
    return Publication(headers, request.args.to_dict(), fields)


def _deliver(topic: str, body: Body, sequence_id: str, sent: Publication, picture: Picture | None = None) -> Answer:
    zone, now = current().caller.time_zone, clock.now_ms()
    content, left_out = published(sent, topic, body, sequence_id, lambda delay: delays.moment(delay, zone, now))
    if picture:
        content = pictures.described(content, picture, file_name(sent))
    made = deliver_content(content, request.headers.get("Idempotency-Key"), picture and picture.data)
    headers = {"Idempotent-Replayed": "true"} if made.replayed else {}
    if left_out:
        headers["X-Pocketbell-Ignored"] = ", ".join(left_out)
    attached = attachment(made.notification, guards.origin())
    return fitted(message(made.notification, topic, attached)), headers


def show_account() -> Payload:
    """GET /v1/account: what Home Assistant reads when it is set up, and then as sensors."""
    caller, window, now = current().caller, current().window, clock.now_ms()
    plan = PLANS[caller.plan]
    today = notification_days.stats(caller.account_seq, local_time.local_day(now, caller.time_zone)).day
    limit = plan.rest_per_minute
    remaining = window.remaining if window else limit
    kept_s = plan.history_days * DAY_MS // 1_000
    return account(_user() or ApiKey.name_of(caller.key_seq), caller.plan, today, limit, remaining, kept_s)


def _user() -> str:
    """The user that came with the key as a password: Home Assistant wants to find it again."""
    user, password = user_and_password(request.headers.get("Authorization", ""))
    return user if guards.key_among(password) else ""


def show_token() -> Payload:
    """POST /v1/account/token: the key that was sent, for Home Assistant, which wants a token for a password."""
    ends = key_limits.expires_at(current().caller.key_seq)
    return access_token(guards.sent_to_ntfy() or "", ends, clock.now_ms())


def show_health() -> tuple[Payload, int]:
    """GET /v1/health: as /healthz."""
    status = healthz()[1]
    return {"healthy": status == 200}, status
