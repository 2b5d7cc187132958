"""Publishing by Gotify's addresses, for programs that can send to Gotify: only their address changes.

Each handler reads its fields, sends through the function that the REST API sends through, and answers in Gotify's
shapes. Must not know SQL or push.
"""

from models import ApiKey
from web.context import Payload, current, request
from web.multipart import MULTIPART
from web.request_body import FORM, read_fields, read_form
from web.rest import deliver_content, healthz
from wire.gotify import FIELDS, VERSION, content, message


def publish() -> tuple[Payload, dict[str, str]]:
    """POST /gotify/message: JSON or a form; the query may have fields, too."""
    caller, fields = current().caller, {name: request.args[name] for name in FIELDS if name in request.args}
    if request.mimetype in (FORM, MULTIPART):
        fields |= read_form().items()
    elif request.content_length or not fields:
        fields |= read_fields(*FIELDS)
    said = content(fields, lambda: ApiKey.name_of(caller.key_seq))
    sent = deliver_content(said, request.headers.get("Idempotency-Key"))
    answer = message(sent.notification, fields, caller.key_seq)
    return answer, {"Idempotent-Replayed": "true"} if sent.replayed else {}


def show_version() -> Payload:
    """GET /gotify/version."""
    return {"version": VERSION, "commit": "pocketbell", "buildDate": ""}


def show_health() -> tuple[Payload, int]:
    """GET /gotify/health: as /healthz."""
    status = healthz()[1]
    color = "green" if status == 200 else "red"
    return {"health": color, "database": color}, status
