"""The answer to a request that is refused or that failed, in the shape of the called address.

Must not know guards or limits, which raise the refusals.
"""

import logging
from typing import Any

from flask import render_template
from werkzeug.exceptions import HTTPException

from dashboard import page
from process.faults import log_fault
from store.engine import WriteFailed
from web import mcp
from web.context import current, request
from wire import gotify, ntfy
from wire.errors import CODES, Refused, metrics_body, rest_body

log = logging.getLogger("pocketbell")
CUSTOM_METRICS, ASSISTANTS = "/api/webhooks/custom", "/mcp"
OF_GOTIFY = "/gotify/"
AWAY_S = 10  # when a client may try again, after the database could not be used


def answer(error: Exception, is_compatible: bool, is_ntfys: bool) -> tuple[Any, int, dict[str, str]]:
    """The body, status and headers that tell of a refusal or an unexpected exception.

    `is_compatible` if ntfy's and Gotify's addresses are served, `is_ntfys` if one of ntfy's was called.
    """
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        headers = {name: value for name, value in error.get_headers() if name == "Allow"}
        *others, last = sorted(headers.get("Allow", "").split(", "))
        only = f"This address takes only {', '.join(others)}{' and ' * bool(others)}{last}." if headers else None
        refused = Refused(error.code if error.code and error.code in CODES else 400, only)
    elif isinstance(error, Refused):
        refused = error
    else:
        where, request_id = (current().environ.get(f"pocketbell.{what}", "-") for what in ("route", "request"))
        log_fault(log, f"{request.method} {where} failed", error, request_id=request_id)
        refused = Refused(503, retry_after_s=AWAY_S) if isinstance(error, WriteFailed) else Refused(500)
    current().outcome, current().notification_id = refused.owner_message, None  # a commit may fail last of all
    return _body(refused, is_compatible, is_ntfys), refused.status, {**headers, **refused.headers}


def _body(refused: Refused, is_compatible: bool, is_ntfys: bool) -> Any:
    if request.path.startswith("/app/") and not request.is_json:
        return page.error_page(refused)
    if request.path.startswith(("/a/", "/docs/")) and page.is_wanted():
        return page.error_page(refused)
    is_empty_read = request.method == "GET" and refused.status == 400 and not request.query_string
    if request.path.startswith("/p/") and is_empty_read and page.is_wanted():
        return render_template("address.html")
    if request.path == ASSISTANTS and refused.status >= 500:
        return mcp.fault(refused.message)
    if is_compatible and (request.path.startswith(OF_GOTIFY) or isinstance(refused, gotify.Misplaced)):
        return gotify.error_body(refused)
    if is_ntfys:
        return ntfy.error_body(refused)
    return metrics_body(refused) if request.path == CUSTOM_METRICS else rest_body(refused)
