"""The answer to a request that is refused or that failed, in the shape that its route names.

Must not know guards or limits, which raise the refusals.
"""

from typing import Any

from flask import render_template
from werkzeug.exceptions import HTTPException

from dashboard.page import error_page, is_wanted
from process.faults import log_fault
from store.engine import IntegrityError, WriteFailed
from web.context import current, request
from wire.errors import CODES, Refused, rest_body

AWAY_S = 10  # when a client may try again, after the database could not be used


def answer(error: Exception) -> tuple[Any, int, dict[str, str]]:
    """The body, status and headers that tell of a refusal or an unexpected exception."""
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        allowed = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))  # of a 405
        headers = {"Allow": allowed} if allowed else {}
        only = f"This address takes only {' and '.join(allowed.rsplit(', ', 1))}." if allowed else None
        refused = Refused(error.code if error.code and error.code in CODES else 400, only)
    elif isinstance(error, Refused):
        refused = error
    elif isinstance(error, IntegrityError) and (void := _void()):
        refused = void
    else:
        where, request_id = (current().environ.get(f"pocketbell.{what}", "-") for what in ("route", "request"))
        log_fault(f"{request.method} {where} failed", error, request_id=request_id)
        refused = Refused(503, retry_after_s=AWAY_S) if isinstance(error, WriteFailed) else Refused(500)
    current().outcome, current().notification_id = refused.owner_message, None  # a commit may fail last of all
    return current().errors(refused), refused.status, {**headers, **refused.headers}


def _void() -> Refused | None:
    """The refusal, if the request's key or session has become void: its account may have been deleted meanwhile."""
    try:
        current().confirm()
    except Refused as refused:
        return refused
    return None


def page(refused: Refused) -> Any:
    """The shape of a page's errors; its scripts, which send JSON, get JSON."""
    return rest_body(refused) if request.is_json else error_page(refused)


def wanted(refused: Refused) -> Any:
    """The shape of errors at an address that people and programs open: a page for a browser."""
    return error_page(refused) if is_wanted() else rest_body(refused)


def event(refused: Refused) -> Any:
    """The shape of errors at an alert's address; a browser that opens it gets a page about it."""
    is_opened = request.method == "GET" and refused.status == 400 and not request.query_string
    return render_template("address.html") if is_opened and is_wanted() else rest_body(refused)
