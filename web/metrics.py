"""The handlers for metrics in the REST API: the list of them, and the course of one. Must not know SQL."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from urllib.parse import unquote_to_bytes

from core.plans import history_begin
from process import clock
from store import custom_metrics
from store.custom_metrics import MAX_CHARTED, MAX_LISTED_SERIES
from web.context import Payload, current, request
from wire.errors import Refused
from wire.notification import checked_time
from wire.strict_json import without_nul

MAX_POINTS = 1_000
ADDRESS = re.compile(r"[^?]*/api/v1/metrics/([^/?]+)/([^/?]+)(?:\?.*)?", re.DOTALL)
TIME = re.compile(r"[0-9]{1,15}", re.ASCII)


def list_metrics() -> Payload:
    """GET /api/v1/metrics?cursor."""
    caller, now = current().caller, clock.now_ms()
    after = _after()
    found = custom_metrics.list_series(caller.account_seq, *after)
    listed, begin = found[:MAX_LISTED_SERIES], history_begin(caller.plan, now)
    metrics = list[Payload]()
    for project, metric in listed:
        if latest := custom_metrics.latest(caller.account_seq, (project, metric), begin, now):
            named = {"project": project, "metric": metric, "name": latest.metric_name, "unit": latest.unit}
            metrics.append({**named, "value": latest.value, "at": latest.timestamp})
    return {
        "ok": True,
        "metrics": metrics,
        "pagination": {"nextCursor": _cursor(*[after, *listed][-1]), "isDone": len(found) == len(listed)},
    }


def show_metric(**_: str) -> Payload:
    """GET /api/v1/metrics/{project}/{metric}?from&to."""
    caller, now = current().caller, clock.now_ms()
    until = _time("to", now)
    since = _time("from", max(0, until - clock.DAY_MS))
    if since > until:
        raise Refused(400, "from must not be after to.")
    ids, begin = _ids(), history_begin(caller.plan, now)
    if custom_metrics.latest(caller.account_seq, ids, begin, now) is None:
        raise Refused(404, "There is no such metric.")
    return {"ok": True, "points": _points(caller.account_seq, ids, max(since, begin), until)}


def _points(account_seq: int, ids: tuple[str, str], since: int, until: int) -> list[Payload]:
    """Each value, or, if there are more than `MAX_POINTS`, the parts of the time that have values."""
    values = custom_metrics.newest(account_seq, ids, since, until, MAX_POINTS + 1)
    if len(values) <= MAX_POINTS:
        return [{"at": at, "mean": value, "min": value, "max": value} for at, value, _ in values]
    width = (until - since) // MAX_POINTS + 1
    parts = custom_metrics.buckets(account_seq, ids, since, until, width, MAX_CHARTED)
    return [
        {"at": (part.first_at + part.last_at) // 2, "mean": part.mean, "min": part.least, "max": part.most}
        for part in parts
    ]


def _after() -> tuple[str, str]:
    """The ids after which the list continues."""
    cursor = request.args.get("cursor") or _cursor("", "")
    try:
        project, metric = urlsafe_b64decode(cursor).decode().split("\0")
    except ValueError:
        raise Refused(400, "cursor was not issued by this service.") from None
    return project, metric


def _cursor(project: str, metric: str) -> str:
    return urlsafe_b64encode(f"{project}\0{metric}".encode()).decode()


def _ids() -> tuple[str, str]:
    """The project and the metric in the address.

    WSGI's path is decoded: it does not tell a slash of an id from the one between the ids.
    """
    address = ADDRESS.fullmatch(current().environ["RAW_URI"])
    project, metric = map(_decoded, address.groups()) if address else ("", "")
    return project, metric


def _decoded(part: str) -> str:
    return without_nul(unquote_to_bytes(part.encode("latin-1")).decode(errors="replace"))


def _time(name: str, default: int) -> int:
    sent = request.args.get(name)
    if not sent:
        return default
    return checked_time(int(sent) if TIME.fullmatch(sent) else sent, name)
